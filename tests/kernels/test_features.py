import pickle

import numpy as np
import pytest
import sklearn

from kernelweave.kernels.base import BoundKernel
from kernelweave.kernels.expansion import ExpansionGroup, KernelExpansion
from kernelweave.kernels.features import BoundFeatures, BoundUnits, FeatureMap

WHOLE = slice(None)
N_ROWS, N_NEW = 40, 9
WEIGHTS = np.array([0.5, 0.0, 2.0, 1e-6, 3.0])


class Waves(FeatureMap):
    """Cosines of the first column, at a price of two kernel values a row."""

    def __init__(self, n_features=5):
        self.frequencies = np.arange(n_features)

    @property
    def n_features(self):
        return len(self.frequencies)

    @property
    def n_evaluations(self):
        return 2

    def of(self, X_new):
        return np.cos(X_new[:, :1] * self.frequencies.astype(X_new.dtype))


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, 3))


@pytest.fixture(name="X_new")
def new_sample():
    return np.random.default_rng(1).normal(size=(N_NEW, 3))


def waves(X, weights=WEIGHTS):
    features = Waves()
    return BoundFeatures(features, features.of(X), weights)


def test_the_kernel_is_the_weighted_inner_product_on_and_off_the_sample(X, X_new):
    bound = waves(X)
    assert isinstance(bound, BoundKernel)
    Z, Z_new = Waves().of(X), Waves().of(X_new)
    K, K_new = Z @ np.diag(WEIGHTS) @ Z.T, Z_new @ np.diag(WEIGHTS) @ Z.T
    rows, cols = np.array([3, 0, 39, 3]), np.array([7, 3])
    for found, expected in [
        (bound.block(WHOLE, WHOLE), K),
        (bound.block(rows, cols), K[np.ix_(rows, cols)]),
        (bound.block(slice(2, 9), rows), K[2:9][:, rows]),
        (bound.block(rows[:0], cols), K[:0][:, cols]),
        (bound.against(X_new), K_new),
        (bound.against(X_new, cols), K_new[:, cols]),
        (bound.diag(), np.diag(K)),
        (bound.diag_against(X_new), np.diag(Z_new @ np.diag(WEIGHTS) @ Z_new.T)),
        (bound.restrict(rows).block(WHOLE, WHOLE), K[np.ix_(rows, rows)]),
        (bound.restrict(rows).against(X_new), K_new[:, rows]),
    ]:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_the_matrix_is_symmetric_and_positive_semi_definite(X):
    K = waves(X).block(np.arange(N_ROWS), WHOLE)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] >= -1e-13 * np.trace(K)


def test_the_factor_has_a_column_for_each_positive_weight(X):
    bound = waves(X)
    assert bound.rank == 4
    Z = bound.factor()
    assert Z.shape == (N_ROWS, 4)
    np.testing.assert_allclose(Z @ Z.T, bound.block(WHOLE, WHOLE), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("n_rows, rank", [(5, 4), (4, None), (2, None)])
def test_a_factor_that_is_no_smaller_than_the_matrix_is_none(n_rows, rank, X):
    bound = waves(X[:n_rows])
    assert bound.rank == rank
    assert (bound.factor() is None) == (rank is None)


def test_without_weight_nothing_is_left(X, X_new):
    bound = waves(X, np.zeros(5))
    assert bound.rank == 0
    assert not bound.block(WHOLE, WHOLE).any()
    np.testing.assert_array_equal(bound.against(X_new), np.zeros((N_NEW, N_ROWS)))


def test_a_sum_folds_into_one_coefficient_for_each_feature(X, X_new):
    bound = waves(X)
    coef = np.random.default_rng(2).normal(size=(N_ROWS, 3))
    units, folded = bound.fold(coef)
    assert folded.shape == (5, 3)
    np.testing.assert_allclose(units.against(X_new) @ folded, bound.against(X_new) @ coef, rtol=1e-12, atol=1e-12)
    other = BoundFeatures(bound.features, bound.Z, 2.0 * WEIGHTS)
    assert other.fold(coef)[0] is bound.restrict(np.arange(3)).fold(coef[:3])[0] is units


def test_the_units_are_a_kernel_of_unit_vectors(X_new):
    features = Waves()
    units = features.units
    assert isinstance(units, BoundUnits)
    Z_new = features.of(X_new)
    some = np.array([4, 1])
    np.testing.assert_array_equal(units.block(WHOLE, WHOLE), np.eye(5))
    np.testing.assert_array_equal(units.block(some, WHOLE), np.eye(5)[some])
    np.testing.assert_array_equal(units.against(X_new), Z_new)
    np.testing.assert_array_equal(units.against(X_new, some), Z_new[:, some])
    np.testing.assert_array_equal(units.diag(), np.ones(5))
    np.testing.assert_allclose(units.diag_against(X_new), (Z_new**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_array_equal(units.restrict(some).against(X_new), Z_new[:, some])
    np.testing.assert_array_equal(units.restrict(some).block(WHOLE, WHOLE), np.eye(2))


def test_features_that_cost_few_kernel_values_are_counted_so(X, X_new):
    bound = waves(X)
    coef = np.ones((N_ROWS, 1))
    groups = [
        ExpansionGroup(p, str(p), "all columns", np.arange(N_ROWS), coef, *kernel.fold(coef))
        for p, kernel in enumerate([bound, BoundFeatures(bound.features, bound.Z, np.ones(5))])
    ]
    expansion = KernelExpansion(groups, np.zeros(1), 2)
    assert bound.n_evaluations == expansion.n_evaluations == 2
    K_new = bound.against(X_new) + Waves().of(X_new) @ bound.Z.T
    np.testing.assert_allclose(expansion(X_new), K_new @ coef, rtol=1e-12, atol=1e-12)


def test_a_map_costs_as_many_values_as_it_has_features_unless_it_says_otherwise():
    class Plain(FeatureMap):
        n_features = 3

        def of(self, X_new):
            return X_new[:, :3]

    assert Plain().n_evaluations == 3


def test_single_precision_is_kept_and_computed_in_double(X, X_new):
    single, double = waves(X.astype(np.float32)), waves(X)
    for found, expected in [
        (single.block(WHOLE, WHOLE), double.block(WHOLE, WHOLE)),
        (single.against(X_new.astype(np.float32)), double.against(X_new)),
        (single.diag(), double.diag()),
        (single.diag_against(X_new.astype(np.float32)), double.diag_against(X_new)),
        (single.factor(), double.factor()),
    ]:
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    Z = single.Z.astype(np.float64)
    rounded_once = (Z * WEIGHTS @ Z.T).astype(np.float32)
    np.testing.assert_allclose(single.block(WHOLE, WHOLE), rounded_once, rtol=2e-7, atol=1e-7)


def test_the_working_memory_does_not_matter(X):
    with sklearn.config_context(working_memory=1e-3):
        np.testing.assert_allclose(waves(X).diag(), np.diag(waves(X).block(WHOLE, WHOLE)), rtol=1e-12)


def test_features_are_pickled_without_their_units(X, X_new):
    bound = waves(X)
    units = bound.features.units
    again = pickle.loads(pickle.dumps([bound, units]))
    assert again[1].features is again[0].features
    np.testing.assert_array_equal(again[0].features.units.against(X_new), again[1].against(X_new))


@pytest.mark.parametrize(
    "weights", [np.ones(4), np.ones((5, 1)), -WEIGHTS, np.array([1.0, 2.0, np.nan, 0.0, 0.0]), np.full(5, np.inf)]
)
def test_weights_that_make_no_kernel_are_refused(weights, X):
    with pytest.raises(ValueError, match="must be 5 non-negative numbers; got"):
        waves(X, weights)
