"""The order of rows and columns by their content."""

import numpy as np
import pytest
from scipy import sparse

from kernelweave.kernels import content_order
from kernelweave.kernels.content_order import order_columns, order_rows


def rows_of(kind, n=80):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    if kind == "flags":  # with as many ones in every column
        return np.array([rng.permutation(np.arange(n) % 2) for _ in range(12)], dtype=float).T
    if kind == "counts":
        return rng.poisson(0.5, size=(n, 30)).astype(float)
    if kind == "far":  # values of which differences are rounding but for the last digits
        return X * [1e-3, 1.0, 1e150, 1e-150, 1.0] + [1e6, 0.0, 0.0, 0.0, -3.0]
    if kind == "gaps":
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


KINDS = ["normal", "flags", "counts", "far", "gaps"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_given_does_not_matter(kind):
    X = rows_of(kind)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    moved = X[rows][:, columns]
    np.testing.assert_array_equal(moved[order_rows(moved)], X[order_rows(X)][:, columns])


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_moves_no_row(kind):
    X = rows_of(kind)
    moved = X / 3.0 * 3.0  # not the same numbers: a value in 10^11 changes its cell
    np.testing.assert_array_equal(order_rows(moved), order_rows(X))


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array])
def test_sparse_rows_have_the_order_of_dense_ones(make):
    X = rows_of("counts")
    X[:, 0] -= 2.0
    np.testing.assert_array_equal(order_rows(make(X)), order_rows(X))


def test_rows_in_that_order_stay_and_equal_ones_do_too():
    X = np.repeat(rows_of("normal", 10), 3, axis=0)
    order = order_rows(X)
    assert (np.diff(order.reshape(10, 3)) == 1).all()
    np.testing.assert_array_equal(order_rows(X[order]), np.arange(30))


@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_columns_of_ranks_are_known_wherever_they_stand(make):
    ranks = rows_of("counts")
    moved = np.random.default_rng(1).permutation(30)
    order = order_columns(make(ranks))
    np.testing.assert_array_equal(ranks[:, order], ranks[:, moved][:, order_columns(make(ranks[:, moved]))])
    shifted = ranks - 1.0  # as ranks about another zero
    np.testing.assert_array_equal(order_columns(make(shifted)), order)


def test_rows_that_are_walked_over_in_strips_have_the_order_of_their_content(monkeypatch):
    X = rows_of("gaps")
    order = order_rows(X)
    for n_values in (1, 7 * X.shape[1]):  # a row at a time; strips of which the last is shorter
        monkeypatch.setattr(content_order, "STRIP_VALUES", n_values)
        np.testing.assert_array_equal(order_rows(X), order)


@pytest.mark.parametrize("n_values", [1, 100, 2**15])
def test_scales_are_powers_of_two_near_the_deviations_wherever_the_first_rows_lie(monkeypatch, n_values):
    X = rows_of("normal", 1000) * [1.0, 1e3, 1e-160, 1e160, 1.0] + [1e6, 0.0, 0.0, 0.0, 0.0]
    X[:, 4] = np.sort(X[:, 4])
    X[0, 0] += 1e3  # the first strip may be this row alone
    monkeypatch.setattr(content_order, "STRIP_VALUES", n_values)
    scale = content_order._scale_columns(X)
    deviation = (X / [1, 1, 1e-160, 1e160, 1]).std(axis=0) * [1, 1, 1e-160, 1e160, 1] * content_order.OFF_POWERS
    np.testing.assert_array_equal(scale, 2.0 ** (content_order.CELLS_PER_DEVIATION - np.frexp(deviation)[1]))


def test_whole_numbers_without_a_sign_are_ordered_as_others():
    X = rows_of("counts")
    np.testing.assert_array_equal(order_rows(X.astype(np.uint8) + np.uint8(3)), order_rows(X + 3))


def test_the_order_leaves_rows_as_they_are():
    for X in (rows_of("gaps"), rows_of("counts").astype(np.float32), sparse.csr_array(rows_of("counts"))):
        before = X.copy()
        order_rows(X)
        np.testing.assert_array_equal(*(each.toarray() if sparse.issparse(each) else each for each in (X, before)))
