import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.semi_supervised import LabelPropagation

from kernelweave import RBF, FromCallable, Linear, Polynomial
from kernelweave.estimators.harmonic import HarmonicClassifier, HarmonicRegressor
from kernelweave.estimators.shared import memory
from kernelweave.kernels.graph import EDGE_WEIGHTS, neighbor_graph
from kernelweave.solvers import harmonic as solver
from kernelweave.solvers.result import Status

BOTH = [HarmonicClassifier, HarmonicRegressor]


def moons(seed=0, n=80, n_labeled=10):
    X, truth = make_moons(n, noise=0.1, random_state=seed)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def numbers(seed=0, n=60, n_labeled=15):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 6.0, size=(n, 2))
    return X, np.where(np.arange(n) < n_labeled, np.sin(X[:, 0]) + X[:, 1], np.nan)


def spread(W, values):
    """The harmonic function by the linear system, the first rows being labelled."""
    n = len(values)
    L = np.diag(W.sum(axis=1)) - W
    return np.vstack([values, np.linalg.solve(L[n:, n:], W[n:, :n] @ values)])


# The harmonic function


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
def test_it_is_the_solution_of_the_linear_system(weights):
    X, y, _ = moons(1)
    model = HarmonicClassifier(edge_weights=weights, metric="euclidean", class_prior=None).fit(X, y)
    expected = spread(neighbor_graph(X, 5, edge_weights=weights).toarray(), np.eye(2)[y[:10]])
    np.testing.assert_allclose(model.harmonic_, expected, atol=1e-9)
    np.testing.assert_allclose(model.label_distributions_, expected, atol=1e-9)
    np.testing.assert_array_equal(model.transduction_, expected.argmax(axis=1))
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.kind == "KKT residual"


def test_it_is_the_limit_of_label_propagation():
    X, y, _ = moons(2)
    y[20:30] = 2
    given = y >= 0
    model = HarmonicClassifier(kernel=RBF(5.0), class_prior=None).fit(X, y)
    limit = LabelPropagation(gamma=5.0, max_iter=100_000, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.label_distributions_, limit.label_distributions_, atol=1e-8)
    np.testing.assert_array_equal(model.transduction_[given], y[given])


def test_unlabelled_rows_help():
    X, y, truth = moons(4, n=200, n_labeled=6)
    assert np.mean(HarmonicClassifier().fit(X, y).transduction_ == truth) > 0.95


def test_conjugate_gradients_give_the_same(monkeypatch):
    X, y, _ = moons(5)
    direct = HarmonicClassifier().fit(X, y)
    monkeypatch.setattr(solver, "MAX_DENSE_ROWS", 0)
    iterated = HarmonicClassifier().fit(X, y)
    assert direct.n_iter_ == 1 < iterated.n_iter_
    np.testing.assert_allclose(iterated.harmonic_, direct.harmonic_, atol=1e-6)


@pytest.mark.parametrize("Model", BOTH)
def test_too_few_steps_are_a_warning_with_the_error(Model, monkeypatch):
    monkeypatch.setattr(solver, "MAX_DENSE_ROWS", 0)
    X, y = numbers(6)
    y = y if Model is HarmonicRegressor else np.where(np.isnan(y), -1, y > 3)
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter .* errors .*: (inf|\d.*), tolerance: 1.0e-06. Raise max_iter"
    ):
        model = Model(max_iter=2).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        Model().fit(X, y)


def test_fully_labelled_rows_keep_their_labels():
    X, _, truth = moons(7)
    model = HarmonicClassifier().fit(X, truth)
    np.testing.assert_array_equal(model.transduction_, truth)
    np.testing.assert_array_equal(model.class_factors_, 1.0)
    assert model.score(X, truth) > 0.9


def test_rows_out_of_reach_have_the_shares_of_the_classes():
    X, y, _ = moons(8)
    X = np.vstack([X, np.full((12, 2), 1e4)])
    y = np.append(y, np.full(12, -1))
    model = HarmonicClassifier(class_prior=0.7).fit(X, y)
    assert model.unreached_.tolist() == list(range(80, 92))
    np.testing.assert_allclose(model.label_distributions_[80:], [[0.3, 0.7]] * 12)
    np.testing.assert_allclose(model.predict_proba(X[80:]), [[0.3, 0.7]] * 12)
    assert 0 <= model.error_bound_ <= model.tol
    alone = HarmonicClassifier(class_prior=0.7).fit(X[:80], y[:80])
    np.testing.assert_allclose(model.transduction_[:80], alone.transduction_)


# Masses of the classes


def test_masses_of_the_classes_are_their_shares():
    X, y, _ = moons(9)
    y[10:14] = 2
    shares = {0: 0.2, 1: 0.3, 2: 0.5}
    model = HarmonicClassifier(class_prior=shares).fit(X, y)
    plain = HarmonicClassifier(class_prior=None).fit(X, y)
    np.testing.assert_array_equal(model.harmonic_, plain.harmonic_)
    masses = plain.harmonic_[14:].sum(axis=0)
    weighted = model.harmonic_[14:] * model.class_factors_
    np.testing.assert_allclose(weighted.sum(axis=0) / weighted.sum(), [0.2, 0.3, 0.5], rtol=1e-12)
    expected = plain.harmonic_ / masses * [0.2, 0.3, 0.5]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.label_distributions_, expected, atol=1e-12)


def test_shares_may_be_those_of_the_labelled_rows_or_one_number():
    X, y, _ = moons(10)
    share = float(np.mean(y[:10] == 1))
    models = [HarmonicClassifier(class_prior=prior).fit(X, y) for prior in ("labeled", share, {1: share})]
    for model in models[1:]:
        np.testing.assert_allclose(model.label_distributions_, models[0].label_distributions_, rtol=1e-9)
    more = HarmonicClassifier(class_prior=0.9).fit(X, y)
    assert np.sum(more.transduction_ == 1) >= np.sum(models[0].transduction_ == 1)


def test_a_class_that_spreads_to_no_row_is_still_predicted_at_its_own():
    X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1]])
    model = HarmonicClassifier(1).fit(X, np.array([0, -1, -1, 1, 1]))
    assert model.transduction_.tolist() == [0, 0, 0, 1, 1]
    assert model.predict([[9.05], [0.05]]).tolist() == [1, 0]


# New rows


def means(X, new, f, n_neighbors, weigh):
    """The mean over nearest neighbours, by definition."""
    distances = np.linalg.norm(new[:, None] - X, axis=-1)
    out = []
    for row in distances:
        near = np.argsort(row)[:n_neighbors]
        w = weigh(row[near], near)
        out.append(w @ f[near] / w.sum())
    return np.array(out)


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
def test_new_rows_have_the_mean_of_their_neighbours(weights):
    X, y = numbers(11)
    new = np.random.default_rng(0).uniform(0.0, 6.0, size=(30, 2))
    model = HarmonicRegressor(5, edge_weights=weights, metric="euclidean").fit(X, y)
    distances = np.linalg.norm(X[:, None] - X, axis=-1)
    edges = neighbor_graph(X, 5, edge_weights="binary").toarray() > 0
    unit, reach = distances[edges].mean(), np.sort(distances, axis=1)[:, 5]
    weigh = {
        "binary": lambda d, _: np.ones(len(d)),
        "gaussian": lambda d, _: np.exp(-(d**2) / (2 * unit**2)),
        "self_tuning": lambda d, near: np.exp(-(d**2) / (d[-1] * reach[near])),
    }[weights]
    np.testing.assert_allclose(model.predict(new), means(X, new, model.transduction_, 5, weigh), rtol=1e-9)


def test_new_rows_have_the_mean_of_all_by_the_kernel():
    X, y, _ = moons(12)
    new = np.random.default_rng(0).normal(size=(30, 2))
    model = HarmonicClassifier(kernel=RBF(3.0), class_prior=None).fit(X, y)
    K = rbf_kernel(new, X, gamma=3.0)
    np.testing.assert_allclose(model.predict_proba(new), K @ model.harmonic_ / K.sum(axis=1)[:, None], atol=1e-10)


@pytest.mark.parametrize("kernel", [None, RBF(3.0)], ids=str)
@pytest.mark.parametrize("weights", ["gaussian", "self_tuning"])
def test_far_away_rows_have_the_value_of_the_nearest(kernel, weights):
    X, y = numbers(13)
    far = np.array([[1e6, 1e6], [-1e6, 0.0]])
    model = HarmonicRegressor(5, kernel=kernel, edge_weights=weights).fit(X, y)
    nearest = np.linalg.norm(far[:, None] - X, axis=-1).argmin(axis=1)
    if weights == "gaussian" or kernel is not None:
        np.testing.assert_allclose(model.predict(far), model.transduction_[nearest], rtol=1e-9)
    assert np.all(np.isfinite(model.predict(far)))


def test_rows_that_resemble_none_have_the_mean_of_all():
    X, y = numbers(14)
    near = FromCallable(lambda A, B: (np.abs(A[:, :1] - B[:, 0]) < 1.0).astype(float))
    model = HarmonicRegressor(kernel=near).fit(X, y)
    assert model.predict([[100.0, 0.0]])[0] == pytest.approx(model.transduction_.mean())


@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
def test_equal_rows_are_no_trouble(weights):
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 15, axis=0)
    y = np.full(30, np.nan)
    y[[0, 15]] = [1.0, 2.0]
    model = HarmonicRegressor(3, edge_weights=weights).fit(X, y)
    np.testing.assert_allclose(model.predict([[0.0, 1.0], [5.0, 5.0]]), model.transduction_[[1, 16]], atol=0.6)
    assert np.all(np.isfinite(model.predict(X + 0.1)))


@pytest.mark.parametrize("Model", BOTH)
def test_predictions_stay_in_the_range_of_what_is_given(Model):
    X, y = numbers(15)
    new = np.random.default_rng(0).normal(3.0, 5.0, size=(50, 2))
    if Model is HarmonicRegressor:
        predicted = Model().fit(X, y).predict(new)
        assert np.nanmin(y) - 1e-9 <= predicted.min() <= predicted.max() <= np.nanmax(y) + 1e-9
    else:
        probabilities = Model().fit(X, np.where(np.isnan(y), -1, y > 3)).predict_proba(new)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        assert probabilities.min() >= 0.0


# Data


@pytest.mark.parametrize("kernel", [None, RBF(0.5)], ids=str)
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_columns", [2, 20])  # with a tree of neighbours, and without
def test_sparse_rows_are_predicted_as_dense_ones_by_a_model_of_dense_rows(kernel, metric, n_columns):
    X, y, _ = moons(17)
    X = np.tile(X + 2.0, n_columns // 2)  # far from zero, which is not where distances are measured from
    number = np.where(np.arange(len(y)) < 20, X[:, 0], np.nan)
    options = {"kernel": kernel, "metric": metric}
    for model in (HarmonicClassifier(**options).fit(X, y), HarmonicRegressor(**options).fit(X, number)):
        predict = getattr(model, "predict_proba", model.predict)
        for form in (sparse.csr_array, sparse.csc_matrix):
            np.testing.assert_allclose(predict(form(X[::2] + 0.1)), predict(X[::2] + 0.1), rtol=1e-9)


def test_sparse_rows_are_compared_by_their_angle():
    X, y, _ = moons(17)
    X = X + 2.0
    dense = HarmonicClassifier(metric="cosine").fit(X, y)
    model = HarmonicClassifier().fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.harmonic_, dense.harmonic_, atol=1e-6)
    longer = HarmonicClassifier(metric="cosine").fit(X * np.linspace(1.0, 9.0, 80)[:, None], y)
    np.testing.assert_allclose(longer.harmonic_, dense.harmonic_, atol=1e-6)


def test_several_outputs_are_each_alone():
    X, y = numbers(19)
    Y = np.column_stack([y, 3.0 - y**2])
    model = HarmonicRegressor().fit(X, Y)
    assert model.predict(X).shape == model.transduction_.shape == (60, 2)
    for k in range(2):
        alone = HarmonicRegressor().fit(X, Y[:, k])
        np.testing.assert_allclose(model.transduction_[:, k], alone.transduction_, rtol=1e-9)
        np.testing.assert_allclose(model.predict(X)[:, k], alone.predict(X), rtol=1e-9)
    assert model.score(X, Y) == pytest.approx(r2_score(Y[:15], model.predict(X)[:15]))
    Y[3, 0] = np.nan
    with pytest.raises(ValueError, match="have only some of their targets"):
        HarmonicRegressor().fit(X, Y)


def test_few_rows_are_enough():
    assert HarmonicClassifier().fit([[0.0], [3.0]], ["a", "b"]).predict([[0.1], [9.0]]).tolist() == ["a", "b"]
    assert HarmonicRegressor().fit([[0.0]], [2.0]).predict([[5.0]]).tolist() == [2.0]


# Bad input

X0, Y0, _ = moons(23)
BAD_INPUT = {
    "n_neighbors": ({"n_neighbors": 0}, "HarmonicClassifier got n_neighbors=0; expected a whole number, 1 or more"),
    "metric": ({"metric": "manhattan"}, 'metric=\'manhattan\'; expected "auto", "euclidean", "cosine" or "power"'),
    "weights": ({"edge_weights": None}, 'edge_weights=None; expected "gaussian", "binary" or "self_tuning"'),
    "tol": ({"tol": 0.0}, "tol=0.0; expected a positive finite number"),
    "max_iter": ({"max_iter": 1.5}, "max_iter=1.5; expected a whole number, 1 or more"),
    "class_prior in words": ({"class_prior": "even"}, "class_prior='even'; expected \"labeled\", None, the share"),
    "class_prior above 1": ({"class_prior": 1.5}, "class_prior=1.5; expected"),
    "class_prior of strangers": ({"class_prior": {"a": 0.5}}, "expected a share for each of the classes"),
    "negative": ({"kernel": Linear()}, r"The kernel Linear\(\) has negative values, down to -"),
    "not symmetric": ({"kernel": FromCallable(lambda A, B: np.abs(A[:, :1]) + 0.0 * B[:, 0])}, "is not symmetric"),
    "not finite": ({"kernel": Polynomial(2, gamma=1e200)}, "not finite"),
}


@pytest.mark.parametrize("case", BAD_INPUT, ids=str)
def test_bad_parameters_give_one_clear_sentence_and_fit_nothing(case):
    options, message = BAD_INPUT[case]
    model = HarmonicClassifier(**options)
    with pytest.raises(ValueError, match=message), np.errstate(over="ignore"):
        model.fit(X0, Y0)
    assert not hasattr(model, "harmonic_")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weights", EDGE_WEIGHTS)
@pytest.mark.parametrize("Model", BOTH)
def test_repeated_rows_are_predicted(Model, weights):
    X = np.random.default_rng(0).normal(size=(300, 3)).round()
    y = np.where(np.arange(300) % 5 == 0, X[:, 0] > 0, np.nan)  # equal rows have equal labels
    model = Model(edge_weights=weights).fit(X, y)
    assert np.mean((model.predict(X) > 0.5) == (model.transduction_ > 0.5)) > 0.97
    labeled = ~np.isnan(y)
    assert np.mean((model.predict(X[labeled]) > 0.5) == y[labeled]) > 0.97


def test_more_rows_than_fit_the_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "MEMORY_SHARE", 1e-12)
    with pytest.raises(MemoryError, match=r"HarmonicClassifier joins all pairs of 80 rows .* Pass kernel=None"):
        HarmonicClassifier(kernel=RBF()).fit(X0, Y0)
    with pytest.raises(MemoryError, match=r"joins 80 rows with 5 neighbours each, .* fewer rows or a smaller n_neigh"):
        HarmonicClassifier().fit(X0, Y0)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("Model", [HarmonicRegressor, HarmonicClassifier])
def test_a_column_whose_squares_overflow_counts_as_any_other(Model):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:, 0] *= 1e200
    marker = np.nan if Model is HarmonicRegressor else -1
    y = np.where(np.arange(60) < 20, X[:, 1] if Model is HarmonicRegressor else X[:, 1] > 0, marker)
    model, same = Model().fit(X, y), Model().fit(X * [1e-200, 1.0, 1.0], y)
    assert np.isfinite(model.predict(X) if Model is HarmonicRegressor else model.predict_proba(X)).all()
    np.testing.assert_allclose(model.harmonic_, same.harmonic_, atol=1e-5)  # both within tol
