"""Rows without a class in `RKDAClassifier`: kernels know them, what is learned does not; or they enter the scatter."""

import numpy as np
import pytest
from scipy import linalg, optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave import RBF, Linear, ManifoldKernel, Precomputed, RKDAClassifier

TRIO = [RBF(0.3), RBF(1.0), Linear()]
RIDGE = 0.01  # of kernels of trace 1, whose mean eigenvalue is 1/60 for the 60 rows here


def sample(seed=0, n=60, n_classes=2, n_labeled=30):
    """Overlapping classes that are not linear; codes, None for unlabelled rows, which come in between."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noisy = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    y = np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1]) + 0.2)
    labeled = np.sort(rng.permutation(n)[:n_labeled])
    return X, np.where(np.isin(np.arange(n), labeled), y, None), labeled


def trio(X):
    """The kernel matrices of TRIO, centred, of trace 1."""
    raw = rbf_kernel(X, gamma=0.3), rbf_kernel(X, gamma=1.0), linear_kernel(X)
    centered = [K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() for K in raw]
    return [K / np.trace(K) for K in centered]


def indicators(y):
    """H of (25) on labelled rows, zero on the others."""
    labeled = np.array([label is not None for label in y])
    codes = y[labeled].astype(int)
    shares = np.bincount(codes) / len(codes)
    H = np.zeros((len(y), len(shares)))
    H[labeled] = (np.eye(len(shares))[codes] - shares) / np.sqrt(shares)
    return H


# Labelled rows only

FORMS = [{}, {"weighting": "auto"}, {"weighting": "uniform"}, {"ridge": RIDGE, "formulation": "joint"}]
FORMS += [{"ridge": RIDGE, "scatter": "within"}, {"class_prior": "labeled", "threshold": "calibrated"}]


@pytest.mark.parametrize("options", FORMS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_that_take_nothing_from_rows_give_the_model_of_the_labelled_rows(options, weighted):
    X, y, labeled = sample(1)
    weight = np.random.default_rng(1).integers(1, 4, size=60).astype(float) if weighted else np.ones(60)
    if options.get("scatter") == "within":
        weight = np.ones(60)
    model = RKDAClassifier(TRIO, tol=1e-10, **options)
    found = clone(model).fit(X, y, weight)
    alone = clone(model).fit(X[labeled], y[labeled].astype(int), weight[labeled])
    assert found.objective_ == pytest.approx(alone.objective_, rel=1e-9)
    assert found.ridge_ == pytest.approx(alone.ridge_, rel=1e-5)
    np.testing.assert_allclose(found.weights_, alone.weights_, atol=1e-6)
    np.testing.assert_allclose(found.transform(X), alone.transform(X), atol=1e-5)
    np.testing.assert_allclose(found.decision_function(X), alone.decision_function(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.scalings_[labeled], alone.scalings_, rtol=1e-4, atol=1e-4)
    assert not np.delete(found.scalings_, labeled, axis=0).any()


def test_widths_are_those_of_all_rows():
    X, y, labeled = sample(2)
    X[labeled] *= 0.1
    width = RBF().fitted(X, np.random.default_rng(0), None).gamma
    found = RKDAClassifier(RBF(), ridge=RIDGE).fit(X, y)
    alone = RKDAClassifier(RBF(width), ridge=RIDGE).fit(X[labeled], y[labeled].astype(int))
    np.testing.assert_allclose(found.transform(X), alone.transform(X), atol=1e-8)


@pytest.mark.parametrize("kernel", [ManifoldKernel(RBF(0.3), n_neighbors=5), RBF(1.0) * RBF(0.3)], ids=str)
def test_a_kernel_that_knows_all_rows_is_its_matrix_at_the_labelled_ones(kernel):
    X, y, labeled = sample(3)
    found = RKDAClassifier(kernel, ridge=RIDGE).fit(X, y)
    K = kernel.bind(X, np.random.default_rng(0)).block(slice(None), slice(None))
    alone = RKDAClassifier(Precomputed(K), ridge=RIDGE).fit(labeled[:, None], y[labeled].astype(int))
    np.testing.assert_allclose(found.transform(X), alone.transform(np.arange(60)[:, None]), atol=1e-7)


def test_landmarks_at_all_rows_change_nothing():
    X, y, _ = sample(4)
    exact = RKDAClassifier(TRIO, tol=1e-10).fit(X, y)
    by_landmarks = RKDAClassifier(TRIO, tol=1e-10, n_landmarks=60).fit(X, y)
    np.testing.assert_allclose(by_landmarks.transform(X), exact.transform(X), atol=1e-4)
    few = RKDAClassifier(TRIO, n_landmarks=10, random_state=0).fit(X, y)
    assert few.n_evaluations_ <= 30
    assert set(few.transduction_) == {0, 1}


# Unlabelled rows in the scatter


@pytest.mark.parametrize("ridge", ["learned", RIDGE])
def test_the_objective_is_that_of_all_rows(ridge):
    X, y, _ = sample(5, n_classes=3)
    kernels, H = trio(X), indicators(y)
    identity = np.eye(60) / 60

    def objective(weights):
        terms = [identity, *kernels] if ridge == "learned" else [60 * RIDGE * identity, *kernels]
        weights = weights if ridge == "learned" else np.append(1.0, weights)
        return np.trace(H.T @ np.linalg.solve(sum(w * K for w, K in zip(weights, terms, strict=True)), H))

    model = RKDAClassifier(TRIO, ridge=ridge, unlabeled_scatter=True, tol=1e-9).fit(X, y)
    n_weights = 4 if ridge == "learned" else 3
    simplex = {"bounds": [(1e-9, 1)] * n_weights, "constraints": {"type": "eq", "fun": lambda w: w.sum() - 1}}
    best = optimize.minimize(objective, np.full(n_weights, 1 / n_weights), options={"ftol": 1e-12}, **simplex)
    assert model.objective_ == pytest.approx(best.fun, rel=1e-6)


def test_directions_are_those_of_linear_discriminant_analysis():
    X, y, _ = sample(6, n_classes=3)
    model = RKDAClassifier(Linear(), ridge=RIDGE, unlabeled_scatter=True).fit(X, y)
    A = X - X.mean(axis=0)
    size = np.sqrt(np.square(A).sum())
    total = A.T @ A / size**2 + RIDGE * np.eye(4)
    between = A.T @ indicators(y) / size
    V = linalg.eigh(between @ between.T, total)[1][:, ::-1][:, :2]  # of unit regularised variance
    expected = A @ V / size
    expected *= np.sign(np.sum(model.transform(X) * expected, axis=0))
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-10)


def test_they_move_nothing_in_the_scatter_within_but_the_trace():
    X, y, labeled = sample(5)
    model = RKDAClassifier(Linear(), scatter="within", ridge=RIDGE, unlabeled_scatter=True).fit(X, y)
    spread = [np.square(rows - rows.mean(axis=0)).sum() for rows in (X, X[labeled])]
    alone = RKDAClassifier(Linear(), scatter="within", ridge=RIDGE * spread[0] / spread[1])
    alone.fit(X[labeled], y[labeled].astype(int))
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-9)


def test_the_ridge_of_equal_weights_is_the_best_beside_their_mean():
    X, y, _ = sample(7, n_classes=3)
    model = RKDAClassifier(TRIO, weighting="uniform", unlabeled_scatter=True).fit(X, y)
    mean, H = sum(trio(X)) / 3, indicators(y)

    def objective(w):
        return np.trace(H.T @ np.linalg.solve(w / 60 * np.eye(60) + (1 - w) * mean, H))

    best = optimize.minimize_scalar(objective, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-10})
    assert model.objective_ == pytest.approx(best.fun, rel=1e-6)
    np.testing.assert_allclose(model.weights_, 1 / 3)
    assert model.ridge_ == pytest.approx(best.x / 60 / (1 - best.x), rel=1e-2)
    again = clone(model).set_params(ridge=model.ridge_).fit(X, y)
    np.testing.assert_allclose(again.transform(X), model.transform(X), atol=1e-6)


def errors_by_the_others(K, H, labeled, ridge):
    """Squared errors of ridge regression with an offset, each labelled row predicted by all others, at the best scale.

    Unlabelled rows are regressed on zero, so that all predictions are too small.
    """
    predicted = []
    for i in labeled:
        rest = np.delete(np.arange(len(H)), i)
        system = np.ones((len(H), len(H)))
        system[:-1, :-1] = K[np.ix_(rest, rest)] + ridge * np.eye(len(rest))
        system[-1, -1] = 0.0
        found = np.linalg.solve(system, np.vstack([H[rest], np.zeros(H.shape[1])]))
        predicted.append(np.append(K[i, rest], 1.0) @ found)
    predicted, given = np.array(predicted), H[labeled]
    factor = max(0.0, np.sum(predicted * given) / np.sum(predicted**2))
    return np.square(given - factor * predicted).sum(axis=1)


@pytest.mark.parametrize("seed", range(4))
def test_equal_weights_are_taken_where_they_predict_rows_that_are_left_out_better(seed):
    rng = np.random.default_rng(seed)
    X, y, labeled = sample(seed, n_classes=3, n_labeled=40)
    if seed % 2:  # a plane in more directions than so many rows show well
        X = rng.normal(size=(60, 40)) / np.sqrt(40)
        y = np.where(y == None, None, (X @ rng.normal(size=40) > 0).astype(int))  # noqa: E711
    models = [RKDAClassifier(TRIO, weighting=w, unlabeled_scatter=True) for w in ("learned", "uniform", "auto")]
    learned, equal, chosen = (model.fit(X, y) for model in models)
    by_learned, by_equal = (
        errors_by_the_others(
            sum(w * K for w, K in zip(m.weights_, trio(X), strict=True)), indicators(y), labeled, m.ridge_
        )
        for m in (learned, equal)
    )
    better = by_learned - by_equal
    taken = better.sum() > better.std() * np.sqrt(len(labeled))
    np.testing.assert_array_equal(chosen.decision_function(X), (equal if taken else learned).decision_function(X))


@pytest.mark.filterwarnings("ignore:The learned ridge is almost zero")
@pytest.mark.parametrize("weighting", ["learned", "uniform", "auto"])
def test_digits_are_told_apart_whatever_the_weights_and_rows(weighting):
    X, truth = load_digits(return_X_y=True)
    X, truth = X[:400] / 16, truth[:400]
    y = np.where(np.arange(400) < 60, truth, -1)
    for option in (False, True):  # 9 of 10 are wrong by chance
        model = RKDAClassifier(weighting=weighting, unlabeled_scatter=option).fit(X, y)
        assert np.mean(model.transduction_[60:] != truth[60:]) < 0.35


@pytest.mark.parametrize("option", [False, True])
@pytest.mark.parametrize("weighting", ["uniform", "auto"])
def test_sparse_rows_give_the_model_of_dense_ones(weighting, option):
    X, y, _ = sample(8)
    model = RKDAClassifier(TRIO, weighting=weighting, unlabeled_scatter=option, tol=1e-9)
    dense, thin = clone(model).fit(X, y), clone(model).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(thin.decision_function(sparse.csr_array(X)), dense.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_what_is_no_answer_is_refused(value):
    with pytest.raises(ValueError, match="RKDAClassifier got unlabeled_scatter="):
        RKDAClassifier(unlabeled_scatter=value).fit(*sample()[:2])
