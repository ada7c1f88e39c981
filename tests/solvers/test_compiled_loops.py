import numpy as np
import pytest

from kernelweave.solvers.compiled_loops import (
    add,
    add_rows,
    add_symmetric_rows,
    dot,
    gather,
    mirror,
    solve_factored,
)


def factored(seed, n=12):
    A = np.random.default_rng(seed).normal(size=(n, n))
    H = A @ A.T + np.eye(n)
    L = np.linalg.cholesky(H)
    return H, np.tril(L) + np.tril(L, -1).T


@pytest.mark.usefixtures("form")
def test_a_vector_is_added_in_place():
    values = np.ones(3)
    add(values, np.arange(3.0), 2.0)
    np.testing.assert_array_equal(values, [1.0, 3.0, 5.0])


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("n", [0, 1, 9])
def test_products_are_added_up(n):
    values = np.random.default_rng(n).normal(size=(2, n))
    assert dot(*values) == pytest.approx(values[0] @ values[1])


@pytest.mark.usefixtures("form")
def test_factors_solve_the_system():
    H, factor = factored(0)
    b = np.arange(12.0)
    x = b.copy()
    solve_factored(factor, x)
    np.testing.assert_allclose(H @ x, b, atol=1e-10)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 6, 9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_added_with_their_factors(n_rows, dtype):
    rng = np.random.default_rng(n_rows)
    K, rows, factors = rng.normal(size=(5, 7)).astype(dtype), rng.integers(5, size=n_rows), rng.normal(size=(2, n_rows))
    out = np.ones((2, 7))
    add_rows(K, rows, factors, out)
    np.testing.assert_allclose(out, 1.0 + factors @ K[rows].astype(float), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 6, 9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_with_symmetric_matrices_need_half_of_their_rows(n_rows, dtype):
    rng = np.random.default_rng(n_rows)
    K = rng.normal(size=(9, 9)).astype(dtype)
    K, rows, X = K + K.T, np.sort(rng.permutation(9)[:n_rows]), np.zeros((2, 9))
    X[:, rows] = rng.normal(size=(2, n_rows))
    out = np.ones((2, 9))
    add_symmetric_rows(np.tril(K), rows, X, out)
    np.testing.assert_allclose(out[:, rows], 1.0 + (X @ K.astype(float))[:, rows], rtol=1e-13, atol=1e-13)


@pytest.mark.usefixtures("form")
def test_rows_and_columns_are_gathered_above_the_diagonal():
    K, rows = np.arange(25.0).reshape(5, 5), np.array([3, 0, 3])
    out = np.zeros((3, 3))
    gather(K, rows, out)
    np.testing.assert_array_equal(np.triu(out), np.triu(K[np.ix_(rows, rows)]))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("n", [1, 31, 32, 70])
def test_what_is_above_the_diagonal_is_copied_below(n):
    A = np.random.default_rng(n).normal(size=(n, n))
    expected = np.triu(A) + np.triu(A, 1).T
    mirror(A)
    np.testing.assert_array_equal(A, expected)
