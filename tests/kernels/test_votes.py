import pickle

import numpy as np
import pytest
import sklearn
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import RBF, FromCallable, Linear, OnColumns
from kernelweave.kernels.features import BoundFeatures
from kernelweave.kernels.votes import VoteFeatures

N_VOTERS, N_NEW = 12, 9


@pytest.fixture(name="voters")
def voters_():
    return np.random.default_rng(0).normal(size=(N_VOTERS, 2))


@pytest.fixture(name="X_new")
def new_rows():
    return np.random.default_rng(1).normal(size=(N_NEW, 2))


def votes(X, recipe=None, *, divided=True, seed=2):
    """The features, the values p Y and the weights p that they are made of."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, size=X.shape[0])
    values = weights[:, None] * rng.normal(size=(X.shape[0], 3))
    base = (recipe or RBF(0.7)).bind(X, rng)
    return VoteFeatures(base, values, weights if divided else None), values, weights


def test_votes_are_weighted_means_by_the_kernel(voters, X_new):
    features, values, weights = votes(voters)
    K = rbf_kernel(X_new, voters, gamma=0.7)
    np.testing.assert_allclose(features.of(X_new), K @ values / (K @ weights)[:, None], rtol=1e-12)
    assert features.n_features == 3
    assert features.n_evaluations == N_VOTERS


def test_votes_that_are_not_divided_are_sums(voters, X_new):
    features, values, _ = votes(voters, divided=False)
    np.testing.assert_allclose(features.of(X_new), rbf_kernel(X_new, voters, gamma=0.7) @ values, rtol=1e-12)
    features, values, _ = votes(voters, Linear(), divided=False)  # negative values are no matter
    np.testing.assert_allclose(features.of(X_new), X_new @ voters.T @ values, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("distance", [1e2, 1e6, 1e12])
def test_far_away_the_nearest_row_votes(gamma, distance, voters):
    features, values, weights = votes(voters, RBF(gamma))
    direction = np.array([[0.6, 0.8]])
    found = features.of(distance * direction)
    nearest = np.argmax(voters @ direction[0])  # as seen from far away
    assert np.isfinite(found).all()
    gaps = np.sort(voters @ direction[0])
    if gamma * distance * (gaps[-1] - gaps[-2]) > 40.0:  # the second is exp(-2 * 40) of the first
        np.testing.assert_allclose(found[0], values[nearest] / weights[nearest], rtol=1e-9)


def test_a_narrow_kernel_gives_a_voter_its_own_value(voters):
    features, values, weights = votes(voters, RBF(1e8))
    np.testing.assert_allclose(features.of(voters), values / weights[:, None], rtol=1e-12)


def test_without_any_similarity_a_row_gets_the_mean_of_all(voters):
    features, values, weights = votes(np.abs(voters), Linear())
    np.testing.assert_allclose(features.of(np.zeros((1, 2)))[0], values.sum(axis=0) / weights.sum(), rtol=1e-12)


def test_a_kernel_with_negative_values_cannot_share_out_votes(voters, X_new):
    features, _, _ = votes(voters, Linear())
    with pytest.raises(
        ValueError, match=r'without negative values; this one has values down to -.*normalization="class"'
    ):
        features.of(X_new)


@pytest.mark.parametrize("divided", [True, False])
@pytest.mark.parametrize("recipe", [RBF(0.7), FromCallable(lambda A, B: rbf_kernel(A, B, gamma=0.7))], ids=str)
def test_shares_without_own_are_those_of_the_others(recipe, divided, voters):
    features, _, weights = votes(voters, recipe, divided=divided)
    shares = features.shares(voters, without_own=True)
    assert not np.diag(shares).any()
    K = rbf_kernel(voters, gamma=0.7)
    np.fill_diagonal(K, 0.0)
    if divided:  # up to a factor of each row
        K /= (K @ weights)[:, None]
        shares = shares / (shares @ weights)[:, None]
    np.testing.assert_allclose(shares, K, rtol=1e-12, atol=1e-15)


def test_where_there_is_no_other_voter_shares_are_zero(voters):
    features, _, _ = votes(voters[:1])
    np.testing.assert_array_equal(features.shares(voters[:1], without_own=True), [[0.0]])


def test_rows_may_be_sparse(voters, X_new):
    features, _, _ = votes(sparse.csr_array(voters))
    expected = votes(voters)[0].of(X_new)
    np.testing.assert_allclose(features.of(sparse.csr_array(X_new)), expected, rtol=1e-10)


def test_single_precision_is_kept(voters, X_new):
    found = votes(voters.astype(np.float32))[0].of(X_new.astype(np.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, votes(voters)[0].of(X_new), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("divided", [True, False])
def test_the_working_memory_does_not_matter(divided, voters, X_new):
    features, _, _ = votes(voters, divided=divided)
    with sklearn.config_context(working_memory=1e-4):
        found = features.of(X_new)
    np.testing.assert_allclose(found, features.of(X_new), rtol=1e-13)


def test_no_rows_have_no_votes(voters):
    assert votes(voters)[0].of(np.empty((0, 2))).shape == (0, 3)


def test_they_are_the_features_of_a_kernel(voters, X_new):
    features, _, _ = votes(voters)
    kernel = BoundFeatures(features, features.of(voters), np.array([1.0, 0.0, 2.0]))
    Z_new, Z = features.of(X_new), features.of(voters)
    np.testing.assert_allclose(kernel.against(X_new), Z_new * [1.0, 0.0, 2.0] @ Z.T, rtol=1e-12)
    again = pickle.loads(pickle.dumps(kernel))
    assert_same_but_for_rounding(again.against(X_new), kernel.against(X_new))


def test_a_kernel_of_some_columns_has_votes_too(voters, X_new):
    features, values, weights = votes(voters, OnColumns(RBF(0.7), [1]))
    K = rbf_kernel(X_new[:, 1:], voters[:, 1:], gamma=0.7)
    np.testing.assert_allclose(features.of(X_new), K @ values / (K @ weights)[:, None], rtol=1e-12)
    assert np.isfinite(features.of(1e6 * X_new)).all()  # the mean of all, where its values underflow
