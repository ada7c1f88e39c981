import numpy as np
import pytest
from oracles.reference import full_lp
from scipy import sparse

from kernelweave import RBF, CGBoostClassifier, CGBoostRegressor, KernelLibrary, Linear, SSMKClassifier, SSMKRegressor
from kernelweave.estimators.shared.centers import choose_centers
from kernelweave.estimators.shared.formulation import Formulation
from kernelweave.estimators.shared.mixture import (
    MixtureOptions,
    MixturePath,
    _describe_seconds,
    fit_mixture,
    kernel_usage,
)
from kernelweave.estimators.shared.sample import Rows, bind, read_as_given
from kernelweave.kernels import bound_library
from kernelweave.kernels.expansion import KernelExpansion
from kernelweave.labels import partition
from kernelweave.solvers.deadline import OutOfTimeError
from kernelweave.solvers.margin import classification_rows, regression_rows


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, np.where(np.arange(300) % 10 == 0, (X[:, 0] + X[:, 1] ** 2 > 1) * 1.0, np.nan)


def test_candidates_are_all_labeled_rows_and_some_others(data):
    X, y = data
    model = SSMKClassifier(centers=100, random_state=0).fit(X, y)
    assert len(model.candidates_) == 100
    assert np.isin(np.flatnonzero(~np.isnan(y)), model.candidates_).all()
    for group in model.expansion_.groups:
        assert np.isin(group.centers, model.candidates_).all()
    assert model.transduction_.shape == (300,)


def test_the_certificate_covers_the_candidates(data):
    X, y = data
    drawn = SSMKClassifier([RBF(0.5)], centers=80, random_state=0).fit(X, y)
    rows = drawn.candidates_
    alone = SSMKClassifier([RBF(0.5)]).fit(X[rows], y[rows])
    assert drawn.objective_ == pytest.approx(alone.objective_, rel=1e-6)
    np.testing.assert_allclose(drawn.decision_function(X), alone.decision_function(X), atol=1e-6)


def test_fewer_centers_than_labels_are_drawn_among_the_labeled_rows(data):
    X, y = data
    model = SSMKClassifier(centers=5, random_state=0).fit(X, y)
    assert len(model.candidates_) == 5
    assert not np.isnan(y[model.candidates_]).any()
    assert np.isin(np.concatenate([group.centers for group in model.expansion_.groups]), model.candidates_).all()


def test_candidates_are_drawn_by_the_seed(data):
    X, y = data
    drawn = [SSMKClassifier(centers=60, random_state=seed).fit(X, y).candidates_ for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_duals_belong_to_labeled_rows_and_balance(data):
    X, y = data
    model = SSMKClassifier().fit(X, y)
    assert model.dual_coef_.shape == (300, 1)
    assert not model.dual_coef_[np.isnan(y)].any()
    assert model.dual_coef_.sum() == pytest.approx(0.0, abs=1e-9)


def test_usage_of_an_empty_model_is_zero():
    bound = KernelLibrary([Linear(), RBF()]).bind(np.eye(4), np.random.default_rng(0))
    empty = KernelExpansion([], np.zeros(1), 2)
    assert [record["share"] for record in kernel_usage(empty, bound, np.zeros(2))] == [0.0, 0.0]


@pytest.mark.parametrize("model", [SSMKClassifier(C=1e-9), SSMKRegressor(C=1e-9)])
def test_a_cost_of_almost_nothing_gives_the_empty_model(model, data):
    X, y = data
    model.fit(X, y)
    assert model.n_columns_ == 0
    assert model.status_.converged
    assert len(set(model.predict(X))) == 1


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160])
def test_a_unit_in_which_squares_leave_the_range_is_refused(scale, data):
    X, y = data
    model = SSMKClassifier([RBF(), Linear()])
    with pytest.raises(ValueError, match=r"X has values up to .* Rescale the features"):
        model.fit(X * scale, y)
    assert not hasattr(model, "expansion_")
    for value in (0.0, scale):  # no features tell rows apart: the larger class, in any unit
        assert SSMKClassifier([RBF(), Linear()]).fit(np.full(X.shape, min(value, 1.0)), y).n_columns_ == 0


def test_sparse_rows_with_a_column_far_from_zero_give_the_model_of_dense_ones(data):
    X, y = data
    X = np.where(np.abs(X) > 0.5, X, 0.0) + np.array([0.0, 0.0, 1e8])
    dense = SSMKClassifier([RBF(), RBF(0.3)]).fit(X, y)
    thin = SSMKClassifier([RBF(), RBF(0.3)]).fit(sparse.csr_array(X), y)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-6)
    found = thin.decision_function(sparse.csr_array(X[:50]))
    np.testing.assert_allclose(found, dense.decision_function(X[:50]), atol=1e-4)
    SSMKClassifier(random_state=0).fit(sparse.csr_array(X), y)  # the default library has features of RBF()


# Linear programs that are solved roughly on the way


def exact_on_its_columns(model, X, y):
    """The optimum on the columns that a model of labelled rows uses, by one linear program."""
    n = len(X)
    bound = KernelLibrary(model.kernels).bind(X, np.random.default_rng(0))
    scale = Formulation().scales(bound, np.arange(n), np.ones(n), "std")
    columns = np.concatenate([group.kernel * n + np.asarray(group.centers) for group in model.expansion_.groups])
    cost = np.full(n, model.C)
    rows = classification_rows(2 * y - 1, cost) if hasattr(model, "classes_") else regression_rows(y, 0.1, cost)
    return full_lp(bound.columns(columns) / scale[columns], rows).objective


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("stop", [{"max_columns": 60}, {"callback": lambda state: state.iteration == 5}], ids=" ".join)
@pytest.mark.parametrize("estimator", [CGBoostClassifier, CGBoostRegressor, SSMKClassifier, SSMKRegressor])
def test_a_fit_that_stops_early_keeps_an_exact_solution(estimator, stop):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(320, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=320)
    y = y if "Regressor" in estimator.__name__ else (y > 0) * 1.0
    model = estimator([RBF(0.1), RBF(1.0)], C=10.0, **stop)
    model.set_params(**({"epsilon": 0.1} if "epsilon" in model.get_params() else {})).fit(X, y)
    assert not model.status_.converged
    assert model.objective_ == pytest.approx(exact_on_its_columns(model, X, y), rel=1e-8)
    assert model.objective_ <= min(record["objective"] for record in model.history_) * (1 + 1e-9)


# Fits without an estimator

KERNELS = [RBF(0.5), Linear()]


def bound_to(X, y):
    rng = np.random.default_rng(0)
    centers = choose_centers("all", read_as_given(Rows(X), partition(y)), rng)
    return bind(KernelLibrary(KERNELS), centers.sample, rng, 10.0), centers


def margins(centers, C):
    given = centers.sample.partition
    return [classification_rows(signs, np.full(given.n_labeled, C)) for signs in given.one_vs_rest()]


def test_one_binding_serves_fits_to_several_labelings(data):
    X, y = data
    bound, _ = bound_to(X, y)
    for labels in (y, np.where(np.isnan(y), y, (X[:, 2] > 0) * 1.0)):
        centers = choose_centers("all", read_as_given(Rows(X), partition(labels)), np.random.default_rng(0))
        fit = fit_mixture(bound, centers, margins(centers, 10.0), MixtureOptions("test", 1e-6))
        alone = SSMKClassifier(KERNELS, C=10.0).fit(X, labels)
        np.testing.assert_allclose(fit.expansion(X)[:, 0], alone.decision_function(X), atol=1e-9)
        assert fit.objective == pytest.approx(alone.objective_, rel=1e-9)
        assert fit.status is alone.status_


def test_a_path_gives_the_optimum_of_each_cost_in_fewer_rounds(data):
    X, y = data
    bound, centers = bound_to(X, y)
    options = MixtureOptions("test", 1e-8)
    path, n_rounds = MixturePath(bound, centers, options), []
    for C in (1.0, 1.1, 0.9):
        fit, alone = path.solve(margins(centers, C)), fit_mixture(bound, centers, margins(centers, C), options)
        assert fit.objective == pytest.approx(alone.objective, rel=1e-8)
        n_rounds.append((fit.n_iter, alone.n_iter))
    assert all(warm < cold for warm, cold in n_rounds[1:])


@pytest.mark.parametrize("formulation", [Formulation(), Formulation("l2"), Formulation(intercept=None)])
def test_the_values_of_columns_are_those_of_the_model(formulation, data):
    X, y = data
    bound, centers = bound_to(X, y)
    path = MixturePath(bound, centers, MixtureOptions("test", 1e-4, formulation))
    fit = path.solve(margins(centers, 1.0))
    np.testing.assert_allclose(path.values(fit.results), fit.expansion(X[path.labeled]), atol=1e-9)


def test_each_output_has_its_records_in_the_history():
    X = np.random.default_rng(1).normal(size=(60, 2))
    bound, centers = bound_to(X, np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])])
    fit = fit_mixture(bound, centers, margins(centers, 1.0), MixtureOptions("test", 1e-6))
    assert {record["class"] for record in fit.history} == {"a", "b", "c"}
    assert fit.dual_coef.shape == (60, 3)
    assert len(fit.objective) == len(fit.results) == 3


def test_steps_are_rounds_only_where_the_whole_course_is_wanted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + X[:, 1] ** 2 > 1
    kernels = [RBF(), RBF(4.0)]
    plain = CGBoostClassifier(kernels, C=1.0).fit(X, y)
    limited = CGBoostClassifier(kernels, C=1.0, max_columns=1000).fit(X, y)
    stopped = CGBoostClassifier(kernels, C=1.0).fit(X, y, X_val=X[:50], y_val=y[:50])
    assert plain.objective_ == pytest.approx(limited.objective_, rel=1e-6)
    assert all(record["full_scan"] for record in plain.history_)
    assert plain.n_iter_ > limited.n_iter_
    assert stopped.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "0.012"), (2.0, "2"), (99.4, "99"), (99.96, "100"), (213, "210")]
)
def test_seconds_of_a_pass_are_written_without_exponents(seconds, text):
    assert _describe_seconds(seconds) == text


def test_a_fit_without_the_time_to_see_its_columns_is_refused_at_once(data, monkeypatch):
    monkeypatch.setattr(bound_library, "MAX_SMALL_BYTES", 0)
    monkeypatch.setattr(bound_library.BoundLibrary, "scan_seconds", lambda self, rows: 40.0)
    message = "max_time=60 s would be over before SSMKClassifier has a first model: one pass .* about 40 s .1 kernel x"
    with pytest.raises(OutOfTimeError, match=message):
        SSMKClassifier([RBF()], C=1.0, max_time=60.0).fit(*data)
    assert SSMKClassifier([RBF()], C=1.0, max_time=1000.0).fit(*data).status_.converged
