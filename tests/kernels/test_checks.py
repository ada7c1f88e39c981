import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.kernels.checks import (
    are_floats,
    is_index,
    is_semidefinite,
    is_semidefinite_about_its_center,
    is_symmetric,
    remedy,
    require_consistent,
    require_finite,
    require_semidefinite,
    require_symmetric,
)


def gram(seed, n=150, rank=5):
    Z = np.random.default_rng(seed).normal(size=(n, rank))
    return Z @ Z.T


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value):
    require_finite(np.ones((3, 3)), "mine")
    with pytest.raises(ValueError, match=r"The kernel mine gave values that are not finite \(NaN or inf\)\. Check"):
        require_finite(np.array([[1.0, value]]), "mine")


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_an_entry_that_differs_across_the_diagonal_is_found_wherever_it_is(n, scale):
    K = scale * gram(0, n=n)
    assert is_symmetric(K)
    assert is_symmetric(K + 1e-9 * scale * np.triu(np.ones((n, n)), 1))
    if n > 1:
        K[n - 1, 0] += 1e-3 * scale
        assert not is_symmetric(K)
        with pytest.raises(ValueError, match=r"The kernel mine is not symmetric, and MKLRegressor needs .* SSMKRegr"):
            require_symmetric(K, "mine", "MKLRegressor")


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_a_singular_gram_matrix_is_semidefinite_and_one_with_a_negative_eigenvalue_is_not(scale):
    K = scale * gram(1)
    assert is_semidefinite(K)
    require_semidefinite(K, "mine", "Model")
    v = np.linalg.svd(K)[0][:, -1]  # orthogonal to the features
    bad = K - 1e-4 * np.trace(K) * np.outer(v, v)
    assert not is_semidefinite(bad)
    with pytest.raises(ValueError, match="The kernel mine is not positive semi-definite, as Model requires"):
        require_semidefinite(bad, "mine", "Model")


def test_what_is_semidefinite_about_its_center_need_not_be_so_itself():
    K = gram(2) - 1e3
    assert is_semidefinite_about_its_center(K)
    assert not is_semidefinite(K)


def test_the_matrix_is_not_changed():
    K = gram(3)
    before = K.copy()
    is_semidefinite(K)
    is_semidefinite_about_its_center(K)
    np.testing.assert_array_equal(K, before)


def test_the_remedy_names_estimators_of_the_same_kind():
    assert "SSMKClassifier" in remedy("TSVMClassifier")
    assert "SSMKRegressor" in remedy("MKLRegressor")


def test_a_kernel_with_a_negative_direction_beside_the_constant_is_not_definite():
    K = rbf_kernel(np.random.default_rng(0).normal(size=(40, 3)))
    assert is_semidefinite_about_its_center(K)
    assert is_semidefinite_about_its_center(K - 5.0)  # the offset absorbs a constant
    assert is_semidefinite_about_its_center(np.ones((5, 5)))
    assert not is_semidefinite_about_its_center(K - 1.5 * np.eye(40))
    direction = np.where(np.arange(40) % 2, 1.0, -1.0)
    assert not is_semidefinite_about_its_center(K - 0.1 * np.outer(direction, direction))


@pytest.mark.parametrize(
    "values, n_dimensions, expected",
    [
        (np.array([0, 2, 1]), 1, True),
        (np.array([], dtype=int), 1, True),
        (np.array([[0, 2]], dtype=np.uint8), 2, True),
        (np.array([0, 3]), 1, False),
        (np.array([-1, 0]), 1, False),
        (np.array([0.0, 1.0]), 1, False),
        (np.array([[0]]), 1, False),
        (np.array([True]), 1, False),
        ([0, 1], 1, False),
    ],
)
def test_indices_are_whole_numbers_within_their_bounds(values, n_dimensions, expected):
    assert is_index(values, 3, n_dimensions) is expected


@pytest.mark.parametrize(
    "values, is_finite, expected",
    [
        (np.ones((2, 3)), True, True),
        (np.ones((2, 3), dtype=np.float32), True, True),
        (np.full((2, 3), np.inf), False, True),
        (np.full((2, 3), np.inf), True, False),
        (np.ones((3, 2)), True, False),
        (np.ones((2, 3), dtype=int), True, False),
        ([[1.0] * 3] * 2, True, False),
    ],
)
def test_floats_have_their_shape_and_are_finite(values, is_finite, expected):
    assert are_floats(values, 2, 3, is_finite=is_finite) is expected


def test_what_is_wrong_with_an_object_is_said_after_its_type():
    require_consistent({}, True, "is fine")
    with pytest.raises(ValueError, match=r"^its dict has no keys$"):
        require_consistent({}, False, "has no keys")
