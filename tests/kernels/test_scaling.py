import numpy as np
import pytest
from scipy import sparse
from scipy.stats import skew, yeojohnson
from sklearn import config_context
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave.kernels.scaling import (
    MAX_POWER,
    MIN_FLAG_VARIANCE,
    BlockScaler,
    ColumnScaler,
    PowerScaler,
    skewed_columns,
)


def columns(seed=0, n=300):
    """A symmetric, a skewed and a two-valued column."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(5, 2, n), rng.lognormal(size=n), rng.random(n) < 0.3])


def test_columns_are_standardised_as_scikit_learn_does():
    X = columns()
    np.testing.assert_allclose(ColumnScaler().fit(X).transform(X), StandardScaler().fit_transform(X), atol=1e-12)


@pytest.mark.parametrize("keep_scale", [False, True])
def test_powers_do_not_depend_on_the_container_that_scikit_learn_gives(keep_scale):
    X = columns()
    with config_context(transform_output="pandas"):
        found = PowerScaler(keep_scale).fit(X).transform(X)
    np.testing.assert_array_equal(found, PowerScaler(keep_scale).fit(X).transform(X))


def test_columns_far_from_zero_keep_what_they_differ_by():
    X = columns()[:, :1]
    near, far = ColumnScaler().fit(X), ColumnScaler().fit(X + 1e9)
    np.testing.assert_allclose(
        far.transform(X + 1e9), near.transform(X), atol=1e-6
    )  # 1e9 has 1e-7 units in its last place


def test_a_rare_flag_is_not_blown_up_and_a_constant_column_is_zero():
    X = np.zeros((1000, 2))
    X[0, 0] = 3.0
    scaled = ColumnScaler().fit(X).transform(X)
    assert np.ptp(scaled[:, 0]) == pytest.approx(1 / np.sqrt(MIN_FLAG_VARIANCE))
    assert not scaled[:, 1].any()


def test_small_variances_may_count_as_a_given_one():
    X = columns()[:, :1] * 1e-3
    assert ColumnScaler(min_variance=1.0).fit(X).transform(X).std() == pytest.approx(X.std())


def test_a_block_keeps_the_proportions_of_its_columns():
    X = np.random.default_rng(0).normal(size=(30, 4)) * [1, 2, 3, 0.1]
    Z = BlockScaler(variance=2.0).fit_transform(X)
    np.testing.assert_allclose(Z.var(axis=0).sum(), 2.0)
    np.testing.assert_allclose(np.diff(Z, axis=0) / np.diff(X, axis=0), 1 / BlockScaler(2.0).fit(X).scale_)
    np.testing.assert_allclose(BlockScaler().fit_transform(X).var(axis=0).sum(), 4.0)
    np.testing.assert_array_equal(BlockScaler().fit_transform(np.ones((3, 2))), 0)


@pytest.mark.parametrize("scaler", [BlockScaler(), ColumnScaler(), PowerScaler()])
def test_sparse_rows_are_scaled_as_dense_ones_but_not_fitted(scaler):
    X = np.random.default_rng(0).lognormal(size=(30, 3)) * (np.arange(90).reshape(30, 3) % 4 > 0)
    thin = sparse.csr_array(X)
    np.testing.assert_array_equal(scaler.fit(X).transform(thin), scaler.transform(X))
    with pytest.raises(TypeError, match="Sparse data was passed"):
        scaler.fit(thin)


def test_skewed_columns_are_those_of_more_than_two_values():
    X = columns()
    assert skewed_columns(ColumnScaler().fit(X).transform(X)).tolist() == [1]


def test_powers_are_those_of_maximum_likelihood_and_other_columns_are_standardised():
    X = columns()
    standard, powered = ColumnScaler().fit(X).transform(X), PowerScaler().fit(X).transform(X)
    np.testing.assert_allclose(powered[:, [0, 2]], standard[:, [0, 2]], rtol=1e-12)
    expected = yeojohnson(standard[:, 1])[0]
    expected = np.clip((expected - expected.mean()) / expected.std(), -MAX_POWER, MAX_POWER)
    np.testing.assert_allclose(powered[:, 1], expected, atol=1e-3)  # two optimisers of one likelihood
    assert abs(skew(powered[:, 1])) < 0.3 < skew(X[:, 1])


def test_powers_do_not_depend_on_units_and_keep_the_order_of_values():
    X = columns()
    powered = PowerScaler().fit(X).transform(X)
    np.testing.assert_allclose(PowerScaler().fit(1e6 * X + 7).transform(1e6 * X + 7), powered, atol=1e-6)
    order = np.argsort(X[:, 1])
    assert (np.diff(powered[order, 1]) >= 0).all()


def test_columns_that_were_scaled_keep_their_deviations():
    X = columns() * [1.0, 10.0, 0.1]
    powered = PowerScaler(keep_scale=True).fit(X).transform(X)
    np.testing.assert_array_equal(powered[:, [0, 2]], X[:, [0, 2]])
    np.testing.assert_allclose(powered[:, 1], X[:, 1].std() * PowerScaler().fit(X).transform(X)[:, 1])


def test_values_far_outside_are_cut_off():
    X = columns()
    far = PowerScaler().fit(X).transform(np.array([[0.0, 1e300, 0.0], [0.0, -1e300, 1.0]]))
    assert np.isfinite(far).all()
    assert np.abs(far[:, 1]).max() <= MAX_POWER


def test_outliers_in_the_training_rows_do_no_harm():
    X = columns()
    X[0, 1] = 1e12
    powered = PowerScaler().fit(X).transform(X)
    assert np.isfinite(powered).all()
    assert np.abs(powered[:, 1]).max() <= MAX_POWER


@parametrize_with_checks([BlockScaler(), ColumnScaler(), PowerScaler()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("size", [2.0**500, 2.0**700, 2.0**1000])
@pytest.mark.parametrize("make", [ColumnScaler, BlockScaler, PowerScaler])
def test_columns_whose_squares_overflow_are_scaled_as_small_ones(make, size):
    X = np.random.default_rng(0).normal(size=(60, 3))
    np.testing.assert_allclose(make().fit_transform(size * X), make().fit_transform(X), rtol=1e-9)


@pytest.mark.parametrize("make", [ColumnScaler, BlockScaler])
def test_columns_whose_differences_overflow_are_refused(make):
    X = np.array([[0.0, 1.5e308], [1.0, -1.5e308], [2.0, 1.0]])
    with pytest.raises(ValueError, match=r"Column 1 of X .* up to 1\.5e\+308 .*Divide it by a power of ten\."):
        make().fit(X)
