"""Equal weights, and the choice between these and learned ones, of `RKDAClassifier`."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave import RBF, Linear, Precomputed, RKDAClassifier
from kernelweave.solvers.result import Status

TRIO = [RBF(0.3), RBF(1.0), Linear()]


def sample(seed=0, n=60, n_classes=2):
    """Overlapping classes that are not linear."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noisy = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    return X, np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1]) + 0.2)


def many_columns(seed, n=120, n_columns=60):
    """Two classes that a plane tells apart, in more directions than so many rows show well."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns)) / np.sqrt(n_columns)
    return X, (X @ rng.normal(size=n_columns) > 0).astype(int)


def summed(X):
    """The sum of the kernel matrices of TRIO, each centred and of trace 1."""
    centred = [K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() for K in raw(X)]
    return sum(K / np.trace(K) for K in centred)


def raw(X):
    return rbf_kernel(X, gamma=0.3), rbf_kernel(X, gamma=1.0), linear_kernel(X)


def indicators(y):
    shares = np.bincount(y) / len(y)
    return (np.eye(len(shares))[y] - shares) / np.sqrt(shares)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_ridge_of_equal_weights_is_the_best_beside_their_sum(n_classes):
    X, y = sample(1, n_classes=n_classes)
    model = RKDAClassifier(TRIO, weighting="uniform").fit(X, y)
    S, H = summed(X), indicators(y)

    def objective(w):
        return np.trace(H.T @ np.linalg.solve(w / 60 * np.eye(60) + (1 - w) * S, H))

    best = optimize.minimize_scalar(objective, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10})
    assert model.objective_ == pytest.approx(best.fun, rel=1e-6)
    assert model.certificate_.relative <= 1e-6
    assert model.objective_ - model.certificate_.gap <= best.fun * (1 + 1e-12)
    np.testing.assert_allclose(model.weights_, 1 / 3)
    # w I / 60 + (1 - w) S is, up to a factor, ridge I + S / 3
    assert model.ridge_ == pytest.approx(best.x / 60 / (3 * (1 - best.x)), rel=1e-2)
    again = clone(model).set_params(ridge=model.ridge_).fit(X, y)
    np.testing.assert_allclose(again.transform(X), model.transform(X), atol=1e-8)


FORMS = [{"ridge": 0.01}, {"ridge": 0.01, "formulation": "joint"}, {"ridge": 0.01, "scatter": "within"}]
FORMS += [{"ridge": "learned", "formulation": "joint"}, {"ridge": 0.01, "n_landmarks": 60}]


@pytest.mark.parametrize("options", FORMS, ids=str)
def test_equal_weights_are_the_one_kernel_that_is_their_mean(options):
    X, y = sample(2)
    equal = RKDAClassifier(TRIO, weighting="uniform", tol=1e-10, **options).fit(X, y)
    one = RKDAClassifier(Precomputed(summed(X) / 3), ridge=equal.ridge_, tol=1e-10)
    one.set_params(**{name: value for name, value in options.items() if name in ("scatter", "formulation")}).fit(
        np.arange(60)[:, None], y
    )
    np.testing.assert_allclose(equal.transform(X), one.transform(np.arange(60)[:, None]), atol=1e-5)
    if options["ridge"] != "learned":
        assert equal.objective_ == pytest.approx(one.objective_, rel=1e-6)


def errors_by_the_others(K, y, ridge):
    """Squared errors of ridge regression with an offset on the indicators, each row predicted by all others."""
    H, errors = indicators(y), []
    for i in range(len(y)):
        rest = np.delete(np.arange(len(y)), i)
        system = np.ones((len(y), len(y)))
        system[:-1, :-1] = K[np.ix_(rest, rest)] + ridge * np.eye(len(rest))
        system[-1, -1] = 0.0
        found = np.linalg.solve(system, np.vstack([H[rest], np.zeros(H.shape[1])]))
        errors.append(np.square(H[i] - np.append(K[i, rest], 1.0) @ found).sum())
    return np.array(errors)


FEW, MANY = [sample(3, n_classes=3), sample(4)], [many_columns(0), many_columns(1)]


@pytest.mark.parametrize(("data", "taken"), [(d, False) for d in FEW] + [(d, True) for d in MANY], ids=lambda value: "")
def test_equal_weights_are_taken_where_they_predict_rows_that_are_left_out_better(data, taken):
    X, y = data
    learned, equal, chosen = (RKDAClassifier(TRIO, weighting=w).fit(X, y) for w in ("learned", "uniform", "auto"))
    kernels = [K / (np.trace(K) - K.sum() / len(K)) for K in raw(X)]
    by_learned, by_equal = (
        errors_by_the_others(sum(w * K for w, K in zip(m.weights_, kernels, strict=True)), y, m.ridge_)
        for m in (learned, equal)
    )
    better = by_learned - by_equal
    assert (better.sum() > better.std() * np.sqrt(len(y))) == taken
    expected = equal if taken else learned
    np.testing.assert_array_equal(chosen.decision_function(X), expected.decision_function(X))
    assert chosen.objective_ == expected.objective_


def test_equal_weights_help_with_many_columns_and_many_classes():
    X, y = load_digits(return_X_y=True)
    learned, chosen = (RKDAClassifier(weighting=w).fit(X[:300] / 16, y[:300]) for w in ("learned", "auto"))
    assert np.ptp(chosen.weights_) < 1e-12
    assert chosen.score(X[300:] / 16, y[300:]) >= learned.score(X[300:] / 16, y[300:])


@pytest.mark.parametrize("seed", [0, 5])
def test_a_weight_is_a_number_of_rows(seed):
    X, y = many_columns(seed)
    weight = np.arange(120) % 4
    model = RKDAClassifier(TRIO, weighting="auto", tol=1e-11)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-5)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weighting", ["uniform", "auto"])
def test_unlabelled_and_sparse_rows_and_landmarks_are_taken(weighting):
    X, y = many_columns(2)
    y = np.where(np.arange(120) < 60, y, -1)
    model = RKDAClassifier(TRIO, weighting=weighting, tol=1e-9).fit(X, y)
    thin = clone(model).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.decision_function(sparse.csr_array(X)), model.decision_function(X), atol=1e-3)
    by_landmarks = clone(model).set_params(n_landmarks=120).fit(X, y)
    np.testing.assert_allclose(by_landmarks.decision_function(X), model.decision_function(X), rtol=1e-3, atol=1e-3)


def test_a_fit_that_is_stopped_keeps_the_learned_weights_and_says_so():
    X, y = many_columns(0)
    model = RKDAClassifier(TRIO, weighting="auto", callback=lambda state: True).fit(X, y)
    assert model.status_ is Status.CALLBACK


def test_what_was_chosen_is_told(capsys):
    RKDAClassifier(TRIO, weighting="auto", verbose=1).fit(*many_columns(0))
    assert "weights; squared error at held-out rows:" in capsys.readouterr().err


@pytest.mark.parametrize("weighting", ["learned", "uniform", "auto"])
def test_rows_that_count_for_too_little_are_warned_of(weighting):
    X, y = sample()
    with pytest.warns(UserWarning, match=r"outweighs the kernels .* sum to 1\. Scale them") as caught:
        RKDAClassifier(TRIO, weighting=weighting).fit(X, y, sample_weight=np.full(60, 1 / 60))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("weighting", ["shared", "equal", None, 1.0])
def test_other_weights_are_refused(weighting):
    with pytest.raises(ValueError, match=r'RKDAClassifier got weighting=.*; expected "learned", "uniform" or "auto"'):
        RKDAClassifier(weighting=weighting).fit(*sample())


def test_the_scatter_within_does_not_choose():
    with pytest.raises(ValueError, match=r'weighting="learned" or "uniform"'):
        RKDAClassifier(weighting="auto", scatter="within", ridge=0.1).fit(*sample())
