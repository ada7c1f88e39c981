import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.estimators.shared.share_estimate import estimate_shares, regress, row_count, shrink_to_equal

RIDGE = 0.1


def estimate(X, labeled, y, weight=None, ridge=RIDGE, gamma=0.5):
    """The estimate with an RBF kernel from the labels of some rows."""
    weight = np.ones(len(X)) if weight is None else weight
    others = np.setdiff1d(np.arange(len(X)), labeled)
    K = rbf_kernel(X, gamma=gamma)
    return estimate_shares(
        K[np.ix_(labeled, labeled)],
        lambda coef: K[np.ix_(others, labeled)] @ coef,
        np.eye(y.max() + 1)[y[labeled]],
        weight[labeled],
        weight[others],
        ridge,
    )


def clusters(seed, n=200, shares=(0.5, 0.5), distance=3.0):
    """Rows about centres on the axes, one for each class."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(len(shares)), rng.choice(len(shares), size=n - len(shares), p=shares)]
    return distance * np.eye(len(shares), 3)[y] + rng.normal(size=(n, 3)), y, rng


def by_class(y, n_each, rng):
    return np.concatenate([rng.choice(np.flatnonzero(y == k), n_each, replace=False) for k in range(y.max() + 1)])


def distance(estimated, truth):
    return 0.5 * np.abs(estimated - truth).sum()


# The regression


@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_that_is_left_out_is_predicted_by_a_regression_without_one_of_it(weighted):
    X, y, rng = clusters(0, n=14, shares=(0.4, 0.3, 0.3))
    weight = rng.integers(1, 4, size=10).astype(float) if weighted else np.ones(10)
    K, Y = rbf_kernel(X), np.eye(3)[y[:10]]

    def fitted(weight):
        rows = np.flatnonzero(weight)
        system = np.ones((len(rows) + 1,) * 2)
        system[:-1, :-1] = K[np.ix_(rows, rows)] + np.diag(RIDGE / weight[rows])
        system[-1, -1] = 0.0
        solved = np.linalg.solve(system, np.vstack([Y[rows], np.zeros(3)]))
        return np.c_[K[:, rows], np.ones(14)] @ solved

    left_out, values = regress(K[:10, :10], lambda coef: K[10:, :10] @ coef, Y, weight, RIDGE)
    np.testing.assert_allclose(values, fitted(weight)[10:], atol=1e-10)
    for i in range(10):
        np.testing.assert_allclose(left_out[i], fitted(weight - (np.arange(10) == i))[i], atol=1e-10)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.6, 0.3, 0.1)])
@pytest.mark.parametrize("how", ["random", "by class"])
def test_a_weight_is_a_number_of_rows(shares, how):
    X, y, rng = clusters(1, n=60, shares=shares)
    labeled = by_class(y, 5, rng) if how == "by class" else np.arange(20)
    weight = rng.integers(1, 4, size=60).astype(float)
    repeated = np.repeat(np.arange(60), weight.astype(int))
    found = estimate(X, labeled, y, weight)
    expected = estimate(X[repeated], np.flatnonzero(np.isin(repeated, labeled)), y[repeated])
    np.testing.assert_allclose(found.labeled, expected.labeled, atol=1e-12)
    np.testing.assert_allclose(found.shares, expected.shares, atol=1e-8)
    assert found.shifted == expected.shifted


@pytest.mark.parametrize("size", [1e-3, 1.0])
def test_small_weights_say_as_much_as_equal_ones(size):
    assert row_count(np.full(7, size)) == pytest.approx(7.0)


# Labels drawn at random


def test_a_kernel_that_says_nothing_leaves_the_james_stein_estimate_of_shares():
    counts = np.array([9, 5, 4, 2])
    codes = np.repeat(np.arange(4), counts)
    found = estimate_shares(
        np.zeros((20, 20)), lambda coef: np.zeros((500, 4)), np.eye(4)[codes], np.ones(20), np.ones(500), RIDGE
    )
    p = counts / 20
    variance = (1.0 - p @ p) * (1 / 19 + 1 / 500)  # of the labelled rows' shares, for those of 500 others
    kappa = 0.75 * variance / np.square(p - 0.25).sum()
    np.testing.assert_allclose(found.shares, (1 - kappa) * p + kappa / 4, atol=1e-12)
    np.testing.assert_allclose(found.labeled, p, atol=1e-12)
    assert not found.shifted


def test_a_regression_without_errors_gives_the_shares_of_the_unlabelled_rows():
    X, y, rng = clusters(2, shares=(0.5, 0.3, 0.2), distance=1e3)
    X = np.round(X, -2)  # three points
    labeled = rng.permutation(200)[:40]
    found = estimate(X, labeled, y, ridge=1e-6)
    truth = np.bincount(np.delete(y, labeled)) / 160
    assert not found.shifted
    np.testing.assert_allclose(found.shares, truth, atol=1e-3)


EQUAL, UNEQUAL, THREE, EIGHT = (0.5, 0.5), (0.7, 0.3), (0.5, 0.3, 0.2), np.full(8, 1 / 8)


@pytest.mark.parametrize(
    ("shares", "n_labeled"),
    [(EQUAL, 16), (EQUAL, 40), (UNEQUAL, 16), (UNEQUAL, 40), (THREE, 16), (THREE, 40), (EIGHT, 40)],
)
def test_estimated_shares_are_nearer_than_those_of_labels_drawn_at_random(shares, n_labeled):
    estimated, labels, shifted = [], [], []
    for seed in range(60):
        X, y, rng = clusters(seed, shares=shares, distance=2.0)
        labeled = rng.permutation(200)[:n_labeled]
        if len(np.unique(y[labeled])) < len(shares):
            continue
        found = estimate(X, labeled, y)
        truth = np.bincount(np.delete(y, labeled), minlength=len(shares)) / (200 - n_labeled)
        estimated.append(distance(found.shares, truth))
        labels.append(distance(found.labeled, truth))
        shifted.append(found.shifted)
    assert np.mean(estimated) < np.mean(labels)
    assert np.mean(shifted) <= 0.1  # the level of the test is 0.025; 4.5 of 60 are two deviations above it


# Labels drawn class by class


@pytest.mark.parametrize("shares", [(0.85, 0.15), (0.7, 0.2, 0.1)])
def test_labels_drawn_class_by_class_are_noticed_and_the_shares_found(shares):
    errors = []
    for seed in range(10):
        X, y, rng = clusters(seed, n=300, shares=shares, distance=4.0)
        labeled = by_class(y, 15, rng)
        found = estimate(X, labeled, y)
        truth = np.bincount(np.delete(y, labeled)) / (300 - len(labeled))
        assert found.shifted
        errors.append([distance(found.shares, truth), distance(found.labeled, truth)])
    errors = np.array(errors)
    assert errors[:, 0].mean() < 0.25 * errors[:, 1].mean()
    assert errors[:, 0].max() < 0.5 * errors[:, 1].min()


# Little to go by


@pytest.mark.parametrize("n_each", [1, 2])
def test_with_one_or_two_labels_a_class_shares_are_equal(n_each):
    X, y, rng = clusters(3, n=100, shares=np.full(8, 1 / 8))
    found = estimate(X, by_class(y, n_each, rng), y)
    np.testing.assert_allclose(found.shares, 1 / 8, atol=1e-12)


@pytest.mark.parametrize("kind", ["equal rows", "narrow kernel", "next to no ridge", "few rows"])
def test_shares_are_positive_and_sum_to_one(kind):
    X, y, _ = clusters(4, n=40, shares=(0.5, 0.3, 0.2))
    labeled = np.arange(20) if kind != "few rows" else np.arange(39)
    X = np.ones_like(X) if kind == "equal rows" else X
    gamma = 1e6 if kind == "narrow kernel" else 0.5
    found = estimate(X, labeled, y, ridge=1e-300 if kind == "next to no ridge" else RIDGE, gamma=gamma)
    assert found.shares.min() > 0
    assert found.shares.sum() == pytest.approx(1.0)


def test_shares_known_for_sure_stay_and_unsure_ones_become_equal():
    shares = np.array([0.7, 0.2, 0.1])
    np.testing.assert_allclose(shrink_to_equal(shares, 0.0), shares)
    np.testing.assert_allclose(shrink_to_equal(shares, 10.0), 1 / 3)
    np.testing.assert_allclose(shrink_to_equal(np.full(4, 0.25), 0.1), 0.25)
