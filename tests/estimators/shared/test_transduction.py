import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelweave
from kernelweave import (
    RBF,
    FromCallable,
    LapSVMClassifier,
    Linear,
    OnColumns,
    Precomputed,
    SemiSupervisedSplit,
    Sigmoid,
    TSVMClassifier,
    TSVMMKLClassifier,
)
from kernelweave.estimators.shared.transduction import clearly_better
from kernelweave.model_selection import labeled_scorer
from kernelweave.solvers.result import FitState, Status

PAIR = [RBF(), Linear()]
pytestmark = pytest.mark.filterwarnings("ignore:The labelled rows have equally many")  # some small samples do
TSVMS = [TSVMClassifier(), TSVMMKLClassifier(PAIR)]
MODELS = [*TSVMS, TSVMMKLClassifier(), LapSVMClassifier()]
each_model = pytest.mark.parametrize("model", MODELS, ids=str)
each_tsvm = pytest.mark.parametrize("model", TSVMS, ids=str)


def blobs(seed=0, n=80, n_labeled=16, n_classes=2, distance=2.0):
    """Overlapping clusters, the first rows labelled, -1 the others."""
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(n_classes), np.arange(n_classes), rng.integers(0, n_classes, size=n - 2 * n_classes)]
    X = rng.normal(size=(n, 3)) + distance * np.eye(n_classes, 3)[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


# What goes in and what comes out


@each_model
@pytest.mark.parametrize(
    "to_labels",
    [
        lambda y: np.where(y < 0, None, np.array(["no", "yes"])[y]),
        lambda y: np.where(y < 0, np.nan, y.astype(float)),
        lambda y: pd.Series(y).astype("Int64").mask(y < 0),
        lambda y: pl.Series([None if v < 0 else int(v) for v in y]),
        lambda y: y.tolist(),
    ],
    ids=["strings and None", "NaN", "pandas NA", "polars null", "a list with -1"],
)
def test_labels_of_any_kind_give_the_same_model(model, to_labels):
    X, y, _ = blobs(1)
    expected = clone(model).fit(X, y)
    found = clone(model).fit(X, to_labels(y))
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))
    codes = {label: k for k, label in enumerate(found.classes_.tolist())}
    assert [codes[label] for label in found.transduction_] == expected.transduction_.tolist()
    np.testing.assert_array_equal(expected.transduction_[:16], y[:16])
    np.testing.assert_array_equal(expected.transduction_[16:], expected.predict(X)[16:])


@each_model
@pytest.mark.parametrize("marker", [-1, np.nan])
def test_the_score_ignores_unlabelled_rows(model, marker):
    X, y, _ = blobs(1)
    found = clone(model).fit(X, y)
    labels = np.where(y < 0, marker, y)
    assert found.score(X, labels) == np.mean(found.predict(X[:16]) == y[:16])
    with pytest.raises(ValueError, match="score needs at least one labelled row"):
        found.score(X, np.full(80, np.nan))


@each_model
@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X, columns: pl.DataFrame(X, schema=columns)], ids=["pd", "pl"])
def test_frames_give_the_model_of_arrays(model, frame):
    X, y, _ = blobs(2)
    data = frame(X, columns=["a", "b", "c"])
    found = clone(model).set_params(tol=1e-8).fit(data, y)
    expected = clone(model).set_params(tol=1e-8).fit(X, y)
    # Frames are kept by columns, so that products round elsewhere.
    np.testing.assert_allclose(found.decision_function(data), expected.decision_function(X), atol=1e-3)
    assert found.feature_names_in_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("make", [TSVMClassifier, TSVMMKLClassifier, LapSVMClassifier])
def test_kernels_may_name_columns(make):
    X, y, _ = blobs(3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = make(OnColumns(RBF(), ["a", "c"]), tol=1e-8).fit(frame, y)
    numbered = make(OnColumns(RBF(), [0, 2]), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(named.decision_function(frame), numbered.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("make", [TSVMClassifier, TSVMMKLClassifier, LapSVMClassifier])
def test_sparse_rows_have_a_linear_kernel_by_default(make):
    X, y, truth = blobs(4, distance=4.0)
    X = np.where(X > 0.5, X, 0.0)
    model = make(tol=1e-6).fit(sparse.csr_array(X), y)
    assert "Linear" in str(model.library_)
    assert "RBF" not in str(model.library_)
    assert ("cosine" in str(model.library_)) == (make is not TSVMClassifier)
    assert np.mean(model.transduction_ == truth) > 0.7
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), model.decision_function(X), atol=1e-9)


@each_model
def test_single_precision_is_taken(model):
    X, y, _ = blobs(5)
    found = clone(model).set_params(dtype="float32").fit(X.astype(np.float32), y)
    expected = clone(model).fit(X, y)
    assert np.mean(found.transduction_ == expected.transduction_) >= 0.97
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-3)


@pytest.mark.parametrize("make", [TSVMClassifier, TSVMMKLClassifier, LapSVMClassifier])
def test_a_precomputed_kernel_takes_row_numbers(make):
    X, y, _ = blobs(6)
    rows = np.arange(80)[:, None]
    K = X @ X.T
    before = K.copy()
    metric = {"metric": "kernel"} if make is LapSVMClassifier else {}
    given = make(Precomputed(K), tol=1e-8).fit(rows, y)
    computed = make(Linear(), tol=1e-8, **metric).fit(X, y)
    np.testing.assert_allclose(given.decision_function(rows), computed.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("make", [TSVMClassifier, TSVMMKLClassifier])
def test_a_precomputed_kernel_may_be_kept_in_single_precision(make):
    X, y, _ = blobs(6)
    model = make(Precomputed(X @ X.T), dtype="float32").fit(np.arange(80)[:, None], y)
    assert model.status_ is Status.CONVERGED


@each_model
def test_new_rows_are_predicted_as_if_they_were_old(model):
    X, y, _ = blobs(7)
    found = clone(model).fit(X, y)
    values = found.decision_function(X)
    # the blocks of a product differ in the last digits
    np.testing.assert_allclose(found.decision_function(X[::-1][:7]), values[::-1][:7], atol=1e-10)
    assert np.isfinite(found.decision_function(1e3 * X)).all()
    parts = found.decision_function(X, split=True)
    assert parts.shape == (80, len(found.library_))
    np.testing.assert_allclose(parts.sum(axis=1), values, atol=1e-9)


@each_model
def test_a_copy_of_a_model_predicts_the_same(model, tmp_path):
    X, y, _ = blobs(8)
    found = clone(model).fit(X, y)
    kernelweave.save(found, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(found)), kernelweave.load(tmp_path / "model")):
        assert_same_but_for_rounding(copy.decision_function(X), found.decision_function(X))
        assert copy.status_ is found.status_
        assert copy.certificate_ == found.certificate_


@pytest.mark.parametrize("make", [TSVMClassifier, LapSVMClassifier])
def test_the_kernel_has_parameters(make):
    model = make(RBF(gamma=0.1))
    assert model.get_params()["kernel__gamma"] == 0.1
    other = clone(model).set_params(kernel__gamma=2.0)
    assert (model.kernel.gamma, other.kernel.gamma) == (0.1, 2.0)


@pytest.mark.parametrize("make", [TSVMClassifier, LapSVMClassifier])
def test_parameters_are_searched_with_labelled_folds(make):
    X, y, _ = blobs(9)
    search = GridSearchCV(
        make(RBF(gamma=0.1)),
        {"kernel__gamma": [0.1, 1.0]},
        cv=SemiSupervisedSplit(2, random_state=0),
        scoring=labeled_scorer("accuracy"),
        error_score="raise",
    ).fit(X, y)
    assert 0.5 < search.best_score_ <= 1.0


@each_model
def test_a_pipeline_scales_first(model):
    X, y, truth = blobs(10)
    found = make_pipeline(StandardScaler(), clone(model)).fit(X * [1.0, 100.0, 0.01], y)
    assert np.mean(found.predict(X * [1.0, 100.0, 0.01]) == truth) > 0.7


@each_model
def test_a_row_without_weight_is_no_row(model):
    X, y, _ = blobs(11)
    weight = np.ones(80)
    weight[[2, 5, 20, 40, 79]] = 0.0
    kept = weight > 0
    found = clone(model).set_params(random_state=0).fit(X, y, sample_weight=weight)
    expected = clone(model).set_params(random_state=0).fit(X[kept], y[kept])
    np.testing.assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-10)
    assert not found.dual_coef_[~kept].any()
    np.testing.assert_array_equal(found.transduction_[[2, 5]], y[[2, 5]])


@each_model
def test_three_classes_are_told_apart(model):
    X, y, truth = blobs(12, n=90, n_labeled=30, n_classes=3, distance=4.0)
    found = clone(model).fit(X, y)
    assert found.decision_function(X).shape == (90, 3)
    assert found.dual_coef_.shape == (90, 3)
    assert np.mean(found.transduction_ == truth) > 0.9


@each_model
def test_the_same_seed_gives_the_same_bits(model):
    X, y, _ = blobs(13)
    model = clone(model).set_params(random_state=3)
    if not isinstance(model, LapSVMClassifier):
        model.set_params(n_restarts=2, ramp="cv", safe=True)
    np.testing.assert_array_equal(*(clone(model).fit(X, y).decision_function(X) for _ in range(2)))


# Flat ramps, stages and restarts


@pytest.mark.parametrize("annealing", [True, False])
@pytest.mark.parametrize("kernel", [Linear(), RBF()], ids=str)
def test_flat_ramps_do_not_stop_the_descent(kernel, annealing):
    X, y, _ = blobs(14, distance=4.0)
    model = TSVMClassifier(kernel, C=1e-3, class_prior=0.5, annealing=annealing).fit(X, y)
    assert model.history_[0]["stretched"]
    assert np.isfinite(model.objective_)
    assert all(np.isfinite(path).all() for path in model.objective_path_)
    assert len(np.unique(model.transduction_[16:])) == 2


@each_tsvm
def test_restarts_never_give_a_worse_objective(model):
    for seed in range(3):
        X, y, _ = blobs(seed, distance=1.0)
        alone = clone(model).fit(X, y)
        best = clone(model).set_params(n_restarts=3, random_state=seed).fit(X, y)
        assert best.objective_ <= alone.objective_
        assert best.n_solves_ > alone.n_solves_


@each_tsvm
def test_the_limit_warns_with_the_number_and_a_remedy(model):
    X, y, _ = blobs(0, distance=1.0)
    model = clone(model).set_params(max_iter=1, annealing=False)
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter .* Relative distance from stationarity: .* Raise max_iter"
    ) as w:
        model.fit(X, y)
    assert w[0].filename == __file__
    assert model.status_ is Status.MAX_ITER
    assert model.predict(X).shape == (80,)


@each_tsvm
def test_a_callback_stops_with_a_model_that_predicts(model):
    X, y, _ = blobs(0, distance=1.0)
    seen = []
    stopped = clone(model).set_params(callback=lambda state: seen.append(state) or True, annealing=False)
    stopped.set_params(class_prior=0.5).fit(X, y)
    assert stopped.status_ is Status.CALLBACK
    assert len(seen) == 1
    assert set(stopped.predict(X)) == {0, 1}
    assert isinstance(seen[0], FitState)
    assert (seen[0].iteration, seen[0].phase, seen[0].target) == (1, "annealing at 1", 1e-4)
    assert {"stage", "n_changed", "stretched", "n_solves"} == set(seen[0].details)


def always(state):
    return True


def test_the_objective_after_a_callback_is_that_of_the_problem():
    X, y, _ = blobs(0, distance=1.0)
    early = TSVMClassifier(callback=always, class_prior=0.5).fit(X, y)
    assert early.status_ is Status.CALLBACK
    # a descent from there ends lower
    assert early.objective_ >= TSVMClassifier(class_prior=0.5).fit(X, y).objective_


@pytest.mark.parametrize(
    "options", [{}, {"n_restarts": 2, "class_prior": 0.5}, {"safe": True}, {"ramp": "cv"}], ids=str
)
def test_a_callback_that_says_stop_is_asked_no_more(options):
    X, y, _ = blobs(0, distance=1.0)  # equally many of each class, so that their shares are looked at
    seen = []
    model = TSVMClassifier(callback=lambda state: seen.append(state) or True, random_state=0, **options)
    model.fit(X, y)
    assert len(seen) == 1


def interrupt(*given):
    raise KeyboardInterrupt


@each_model
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(model):
    X, y, _ = blobs(0)
    stop = {"kernel": FromCallable(interrupt)} if isinstance(model, LapSVMClassifier) else {"callback": interrupt}
    first = clone(model).set_params(**stop)
    with pytest.raises(KeyboardInterrupt):
        first.fit(X, y)
    with pytest.raises(NotFittedError):
        first.predict(X)
    fitted = clone(model).fit(X, y)
    before = fitted.decision_function(X)
    with pytest.raises(KeyboardInterrupt):
        fitted.set_params(**stop).fit(X[:, :2], 1 - np.where(y < 0, 2, y))
    np.testing.assert_array_equal(fitted.decision_function(X), before)
    assert fitted.n_features_in_ == 3


@each_tsvm
def test_progress_is_printed_step_by_step(model, capsys):
    X, y, _ = blobs(0)
    found = clone(model).set_params(verbose=1, safe=True, random_state=0).fit(X, y)  # folds are not reported
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(found.history_)
    pattern = r"TSVM\w*: annealing at [\d.]+, step \d+, objective [\d.e+]+, \d+ slopes changed, \d+\.\d s"
    assert all(re.fullmatch(pattern, line) for line in lines)
    assert [float(re.search(r"at ([\d.]+)", line)[1]) for line in lines] == [
        pytest.approx(record["stage"], rel=1e-2) for record in found.history_
    ]


# With or without the unlabelled rows


def misleading(seed=0, n=120, n_labeled=40):
    """Two clusters along the first column; the classes are about the second."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 0.3 + np.where(np.arange(n) % 2, 4.0, -4.0)[:, None] * [1, 0]
    truth = (X[:, 1] > 0).astype(int)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


@pytest.mark.parametrize("prior", ["labeled", 0.5])
def test_unlabelled_rows_that_mislead_are_left_out(prior):
    X, y, truth = misleading()
    options = {"scale": None, "tol": 1e-9, "C_unlabeled": 10.0, "random_state": 0}
    plain = TSVMClassifier(Linear(), class_prior=prior, **options).fit(X, y)
    safe = TSVMClassifier(Linear(), class_prior=prior, safe=True, **options).fit(X, y)
    svm = SVC(C=1.0, kernel="linear", tol=1e-9).fit(X[:40], y[:40])
    assert np.mean(plain.transduction_ == truth) < np.mean(svm.predict(X) == truth)
    assert safe.status_ is Status.SUPERVISED
    assert safe.status_.converged
    assert safe.certificate_.kind == "duality gap"
    np.testing.assert_allclose(safe.decision_function(X), svm.decision_function(X), atol=3e-4)


def test_what_is_kept_without_unlabelled_rows_is_the_supervised_machine():
    X, y, _ = blobs(15, distance=4.0)
    # With such shares most rows of the other class are wrong.
    model = TSVMClassifier(RBF(0.5), class_prior=0.95, safe=True, scale=None, tol=1e-9, random_state=0).fit(X, y)
    assert model.status_ is Status.SUPERVISED
    svm = SVC(C=1.0, tol=1e-9, gamma=0.5).fit(X[:16], y[:16])
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(X), atol=3e-4)


@each_tsvm
def test_unlabelled_rows_that_help_are_kept(model):
    X, y, _ = blobs(16, distance=4.0)
    plain = clone(model).set_params(random_state=0, tol=1e-8).fit(X, y)
    safe = clone(model).set_params(random_state=0, tol=1e-8, safe=True).fit(X, y)
    assert safe.status_ is Status.CONVERGED
    np.testing.assert_allclose(safe.decision_function(X), plain.decision_function(X), atol=1e-3)


def test_one_error_less_is_not_clearly_better():
    wrong = np.zeros(20, dtype=bool)
    other = wrong.copy()
    other[0] = True
    assert not clearly_better(wrong, other)
    other[:2] = True
    assert clearly_better(wrong, other)
    assert not clearly_better(other, wrong)


@each_tsvm
def test_cross_validation_fills_what_was_chosen(model):
    X, y, _ = blobs(17)
    found = clone(model).set_params(C="cv", ramp="cv", random_state=0).fit(X, y)
    assert found.C_ in (0.1, 1.0, 10.0)
    assert found.ramp_ in (0.2, 0.4)
    assert found.C_unlabeled_ == found.C_
    assert len(found.cv_results_["params"]) == 6
    assert np.all((found.cv_results_["mean_test_score"] >= 0) & (found.cv_results_["mean_test_score"] <= 1))
    assert set(found.cv_results_["params"][0]) == {"C", "C_unlabeled", "ramp"}
    given = clone(model).set_params(C=2.0, ramp=0.1).fit(X, y)
    assert (given.C_, given.C_unlabeled_, given.ramp_, given.cv_results_) == (2.0, 2.0, 0.1, {})


def test_cross_validation_needs_two_labels_a_class():
    X, _, truth = blobs(18)
    y = np.where(np.arange(80) < 2, truth, -1)
    model = TSVMClassifier(C="cv", ramp="cv", safe=True).fit(X, y)
    assert (model.C_, model.ramp_, model.cv_results_, model.status_) == (1.0, 0.4, {}, Status.CONVERGED)


# Bad input

X0, Y0, T0 = blobs(20)
BAD = {
    "C": [0.0, -1.0, np.inf, np.nan, "CV", None, True],
    "C_unlabeled": [-1.0, np.inf, np.nan, "cv", True],
    "ramp": [1.0, -0.1, np.nan, "CV", None],
    "n_restarts": [-1, 1.5, "a", True],
    "annealing": [1, "yes", None],
    "safe": [0, "no"],
    "scale": ["max", 1.0],
    "tol": [0.0, np.nan],
    "max_iter": [0, 1.5],
    "dtype": ["float16"],
    "callback": [3],
    "verbose": ["yes"],
}
# Equal to zero, but no number that is asked for.
ALMOST = {"n_restarts": [0.0, False, np.zeros(2)], "C_unlabeled": [False, np.zeros(2)], "ramp": [False, np.zeros(2)]}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
@each_tsvm
def test_bad_parameters_give_one_clear_sentence_and_fit_nothing(model, name, value):
    model = clone(model).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"{type(model).__name__} got {name}="):
        model.fit(X0, Y0)
    assert not hasattr(model, "expansion_")


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in ALMOST for value in ALMOST[name]], ids=str)
def test_what_equals_zero_but_is_no_number_gives_one_clear_sentence(name, value):
    with pytest.raises(ValueError, match=f"TSVMClassifier got {name}="):
        TSVMClassifier(**{name: value}).fit(X0, Y0)


BAD_DATA = {
    "NaN in X": (np.where(X0 > 2, np.nan, X0), Y0, "contains NaN"),
    "inf in X": (np.where(X0 > 2, np.inf, X0), Y0, "contains infinity"),
    "one class": (X0, np.where(np.arange(80) < 9, 1.0, np.nan), "at least two classes"),
    "no label": (X0, np.full(80, np.nan), "y holds no labelled row"),
    "another length": (X0, Y0[:-1], "X has 80 rows but y has 79"),
    "y is None": (X0, None, "requires y to be passed"),
    "one column": (X0[:, 0], Y0, "Expected 2D array"),
    "two outputs": (X0, np.c_[Y0, Y0], "y should be a 1d array"),
}


@pytest.mark.parametrize("case", BAD_DATA, ids=str)
@each_model
def test_bad_data_give_one_clear_sentence_and_fit_nothing(model, case):
    X, y, message = BAD_DATA[case]
    model = clone(model)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "expansion_")


@pytest.mark.parametrize("make", [TSVMClassifier, TSVMMKLClassifier])
def test_kernels_that_are_none_are_refused(make):
    with pytest.raises(ValueError, match=f"not positive semi-definite, as {make.__name__} requires"):
        make(Sigmoid(5.0, 5.0)).fit(X0, Y0)
    with pytest.raises(ValueError, match=f"is not symmetric, and {make.__name__} needs"):
        make(FromCallable(lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T)).fit(X0, Y0)
    with pytest.raises(TypeError, match="kernel"):
        make("rbf").fit(X0, Y0)


@each_model
def test_rows_that_say_nothing_and_rows_that_repeat_are_taken(model):
    found = clone(model).fit(np.ones((80, 3)), Y0)
    assert len(np.unique(found.predict(X0))) == 1
    repeated = clone(model).fit(np.repeat(X0[:20], 4, axis=0), np.repeat(np.where(np.arange(20) < 8, T0[:20], -1), 4))
    assert np.isfinite(repeated.objective_)


@each_tsvm
@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_the_scale_of_features_does_not_matter(model, size):
    expected = clone(model).fit(X0, Y0)
    found = clone(model).fit(size * X0, Y0)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-4)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
