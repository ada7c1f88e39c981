import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import RBF, CGBoostClassifier, CGBoostRegressor, KernelLibrary, Linear, cg_boost_path
from kernelweave.estimators.shared.early_stopping import (
    HeldOut,
    Validation,
    ValidationCurve,
    hold_out,
    watch_accuracy,
    watch_r2,
)
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition, partition_targets
from kernelweave.solvers.columns.masters import MasterSolution
from kernelweave.solvers.result import FitState, Status


def noisy(seed=0, n=120):
    """Rows whose labels are so noisy that the best model is far from the optimum of the training problem."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + 1.0 * rng.normal(size=n) > 0).astype(int)


X, Y = noisy()
TRAIN, HELD = slice(0, 80), slice(80, None)
NARROW = [RBF(2.0), RBF(0.5)]


def stopped(penalty="l2", **options):
    model = CGBoostClassifier(NARROW, penalty=penalty, C=100.0, tol=1e-4, n_iter_no_change=3, **options)
    return model.fit(X[TRAIN], Y[TRAIN], X_val=X[HELD], y_val=Y[HELD])


def scores_of(model):
    return [record["validation_score"] for record in model.history_]


@pytest.mark.parametrize("penalty", ["l1", "l2", "rkhs"])
def test_the_model_of_the_best_round_is_kept(penalty):
    model = stopped(penalty)
    scores = scores_of(model)
    assert len(scores) == model.n_iter_
    assert model.score(X[HELD], Y[HELD]) == max(scores)
    assert model.n_columns_ <= model.history_[int(np.argmax(scores))]["n_columns"]


def test_the_fit_stops_when_the_score_no_longer_improves():
    model = stopped()
    scores = scores_of(model)
    assert model.status_ is Status.VALIDATION
    assert len(scores) - 1 - int(np.argmax(scores)) == 3
    assert "validation" in model.status_.value


def test_each_score_is_that_of_the_rounds_model():
    for n_rounds in (2, 5):
        whole = stopped()
        part = CGBoostClassifier(
            NARROW, penalty="l2", C=100.0, tol=1e-4, callback=lambda s, n=n_rounds: s.iteration == n
        )
        part.fit(X[TRAIN], Y[TRAIN])
        assert scores_of(whole)[n_rounds - 1] == part.score(X[HELD], Y[HELD])


def test_the_certificate_is_honest_for_the_model_that_is_kept():
    model = stopped()
    best = CGBoostClassifier(NARROW, penalty="l2", C=100.0, tol=1e-6).fit(X[TRAIN], Y[TRAIN])
    assert model.objective_ - model.certificate_.gap <= best.objective_ * (1 + 1e-9)
    assert model.objective_ >= best.objective_ - best.certificate_.gap


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_converges_after_its_best_round_says_why_it_is_not_optimal():
    model = CGBoostClassifier(NARROW, penalty="l2", C=100.0, n_iter_no_change=500)
    model.fit(X[TRAIN], Y[TRAIN], X_val=X[HELD], y_val=Y[HELD])
    assert int(np.argmax(scores_of(model))) < model.n_iter_ - 1
    assert model.status_ is Status.VALIDATION


def test_a_fit_that_the_callback_stops_says_so():
    model = CGBoostClassifier(NARROW, penalty="l2", tol=1e-4, callback=lambda state: state.iteration == 2)
    model.fit(X[TRAIN], Y[TRAIN], X_val=X[HELD], y_val=Y[HELD])
    assert model.status_ is Status.CALLBACK


def test_a_share_of_the_rows_is_held_out_by_class_and_seed():
    models = [CGBoostClassifier(NARROW, validation_fraction=0.25, random_state=seed).fit(X, Y) for seed in (0, 0, 1)]
    for model in models:
        assert len(model.candidates_) == 90
        held = np.setdiff1d(np.arange(120), model.candidates_)
        assert abs(Y[held].mean() - Y.mean()) < 0.05
        assert not model.dual_coef_[held].any()
        assert accuracy_score(Y[held], model.predict(X[held])) == max(scores_of(model))
    np.testing.assert_array_equal(models[0].decision_function(X), models[1].decision_function(X))
    assert not np.array_equal(models[0].candidates_, models[2].candidates_)


def test_held_out_rows_are_as_if_they_had_been_given():
    drawn = CGBoostClassifier(NARROW, validation_fraction=0.25, random_state=0).fit(X, Y)
    kept = drawn.candidates_
    held = np.setdiff1d(np.arange(120), kept)
    given = CGBoostClassifier(NARROW).fit(X[kept], Y[kept], X_val=X[held], y_val=Y[held])
    np.testing.assert_allclose(drawn.decision_function(X), given.decision_function(X), atol=1e-9)
    assert scores_of(drawn) == scores_of(given)


def test_several_classes_are_scored_together():
    rows, labels = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[labels]
    model = CGBoostClassifier(NARROW, n_iter_no_change=2)
    model.fit(rows[::2], names[::2], X_val=rows[1::2], y_val=names[1::2])
    curves = [[r["validation_score"] for r in model.history_ if r["class"] == k] for k in "abc"]
    longest = max(curves, key=len)
    assert len(longest) == model.n_iter_
    for curve in curves:  # a class that is done earlier has a shorter one
        assert curve == longest[: len(curve)]
    assert model.score(rows[1::2], names[1::2]) == max(scores_of(model))


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_numbers_are_scored_by_the_coefficient_of_determination(penalty):
    y = np.sin(X[:, 0]) + 0.5 * np.random.default_rng(1).normal(size=120)
    model = CGBoostRegressor(NARROW, penalty=penalty, C=100.0, tol=1e-4, n_iter_no_change=3)
    model.fit(X[TRAIN], y[TRAIN], X_val=X[HELD], y_val=y[HELD])
    assert r2_score(y[HELD], model.predict(X[HELD])) == pytest.approx(max(scores_of(model)), abs=1e-9)
    held = CGBoostRegressor(NARROW, validation_fraction=0.3, random_state=0).fit(X, y)
    assert len(held.candidates_) == 84


@pytest.mark.parametrize("estimator", [CGBoostClassifier, CGBoostRegressor])
@pytest.mark.parametrize(
    "options, given, message",
    [
        ({}, {"X_val": X[HELD]}, "needs X_val and y_val together"),
        ({}, {"y_val": Y[HELD]}, "needs X_val and y_val together"),
        ({"validation_fraction": 0.2}, {"X_val": X[HELD], "y_val": Y[HELD]}, "both validation_fraction and X_val"),
        ({}, {"X_val": X[HELD], "y_val": Y[TRAIN]}, "X_val has 40 rows but y_val has 80"),
        ({}, {"X_val": X[HELD][:, :2], "y_val": Y[HELD]}, "X has 2 features"),
        ({}, {"X_val": np.full((40, 3), np.nan), "y_val": Y[HELD]}, "contains NaN"),
        ({"validation_fraction": 0}, {}, "validation_fraction=0; expected None or a number between 0 and 1"),
        ({"validation_fraction": "a"}, {}, "validation_fraction='a'; expected"),
    ],
)
def test_wrong_validation_rows_are_refused_with_a_sentence(estimator, options, given, message):
    with pytest.raises(ValueError, match=message):
        estimator(**options).fit(X[TRAIN], Y[TRAIN], **given)


# Metadata


def test_validation_rows_go_through_a_pipeline():
    model = CGBoostClassifier(NARROW, penalty="l2", n_iter_no_change=3)
    with sklearn.config_context(enable_metadata_routing=True):
        step = CGBoostClassifier(NARROW, penalty="l2", n_iter_no_change=3).set_fit_request(X_val=True, y_val=True)
        pipeline = make_pipeline(StandardScaler(), step, transform_input=["X_val"])
        pipeline.fit(X[TRAIN], Y[TRAIN], X_val=X[HELD], y_val=Y[HELD])
    scaler = StandardScaler().fit(X[TRAIN])
    rows, held = scaler.transform(X[TRAIN]), scaler.transform(X[HELD])
    model.fit(rows, Y[TRAIN], X_val=held, y_val=Y[HELD])
    np.testing.assert_array_equal(pipeline[-1].decision_function(held), model.decision_function(held))
    assert scores_of(pipeline[-1]) == scores_of(model)


def test_validation_rows_go_through_a_grid():
    with sklearn.config_context(enable_metadata_routing=True):
        model = CGBoostClassifier(NARROW, n_iter_no_change=2).set_fit_request(X_val=True, y_val=True)
        search = GridSearchCV(model, {"penalty": ["l1", "l2"]}, cv=2)
        search.fit(X[TRAIN], Y[TRAIN], X_val=X[HELD], y_val=Y[HELD])
    assert max(scores_of(search.best_estimator_)) == search.best_estimator_.score(X[HELD], Y[HELD])


# The curve itself


def state(*solutions):
    numbers = dict.fromkeys(("objective", "bound", "gap", "target", "seconds"), 0.0)
    return FitState(iteration=1, phase="columns added", details={"solutions": solutions}, **numbers)


def solution(coef, intercept=0.0):
    return MasterSolution(0.0, np.asarray(coef, float), intercept, np.zeros(3), 0.0, np.zeros(3))


def test_the_curve_evaluates_models_on_scaled_and_moved_columns():
    rows, new = X[:10], X[10:14]
    bound = KernelLibrary([Linear(), RBF(0.5)]).bind(rows, np.random.default_rng(0))
    scale, moved = np.linspace(1, 2, 20), np.linspace(0, 1, 20)
    seen = []
    validation = Validation(new, lambda values: seen.append(values) or 0.0, 5)
    curve = ValidationCurve(bound, validation, lambda J: moved[J], scale)
    K = np.hstack([kernel.against(new, np.arange(10)) for kernel in bound.kernels])
    for columns in ([3, 15, 7], [15, 0, 3], []):
        coef = np.arange(1.0, 1 + len(columns))
        curve(state((np.array(columns, dtype=int), solution(coef, 0.25))))
        expected = ((K - moved) / scale)[:, columns] @ coef + 0.25
        np.testing.assert_allclose(seen[-1][:, 0], expected, atol=1e-12)


def test_of_equal_scores_the_first_is_the_best_and_patience_counts_from_it():
    bound = KernelLibrary([Linear()]).bind(X[:4], np.random.default_rng(0))
    scores = iter([0.1, 0.5, 0.5, 0.4, 0.6])
    curve = ValidationCurve(bound, Validation(X[:4], lambda values: next(scores), 2), np.zeros_like, np.ones(4))
    states = [state((np.array([k]), solution([1.0]))) for k in range(4)]
    assert [curve(s) for s in states] == [False, False, False, True]
    assert curve.best[0][0].tolist() == [1]
    assert curve.scores == [0.1, 0.5, 0.5, 0.4]


def test_solutions_in_the_place_of_the_best_have_their_own_score():
    bound = KernelLibrary([Linear()]).bind(X[:4], np.random.default_rng(0))
    scores = iter([0.1, 0.5, 0.4, 0.3])
    curve = ValidationCurve(bound, Validation(X[:4], lambda values: next(scores), 2), np.zeros_like, np.ones(4))
    for k in range(3):
        curve(state((np.array([k]), solution([1.0]))))
    curve.replace_best([curve.best[0][1]])
    assert curve.scores == [0.1, 0.5, 0.4]  # nothing new, nothing scored
    new = solution([2.0])
    curve.replace_best([new])
    assert curve.scores == [0.1, 0.3, 0.4]
    assert curve.best[0][0].tolist() == [1]
    assert curve.best[0][1] is new


UNKNOWN = {
    "none of the classes": ([5, 6], r"y_val holds 5, 6, which no training row has; the classes of y are 0, 1\. Write"),
    "one more": ([0, 1, 7], r"y_val holds 7, which no training row has"),
    "names": (["0", "1"], r"y_val holds '0', '1', which no training row has; the classes of y are 0, 1\."),
    "both": ([0, "b"], r"y_val holds 'b', which no training row has"),
    "many": (np.arange(40), r"y_val holds 2, 3, 4, 5, 6, \.\.\. \(38 in all\), which no training row has"),
}


@pytest.mark.parametrize("case", UNKNOWN, ids=str)
def test_classes_without_a_training_row_are_refused(case):
    labels, message = UNKNOWN[case]
    y_val = np.resize(np.array(labels, dtype=object), 40)
    model = CGBoostClassifier()
    with pytest.raises(ValueError, match=message):
        model.fit(X[TRAIN], Y[TRAIN], X_val=X[HELD], y_val=y_val)
    assert not hasattr(model, "expansion_")
    with pytest.raises(ValueError, match=message):
        cg_boost_path(X[TRAIN], Y[TRAIN], Cs=[1.0], X_val=X[HELD], y_val=y_val)


def test_validation_rows_need_not_have_all_classes():
    y_val = np.zeros(40, dtype=float)  # 0.0 is the class 0
    model = CGBoostClassifier(NARROW).fit(X[TRAIN], Y[TRAIN], X_val=X[HELD], y_val=y_val)
    assert np.mean(model.predict(X[HELD]) == 0) == max(scores_of(model))


# Linear programs that are solved roughly on the way


@pytest.mark.parametrize("patience", [2, 5])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_best_round_is_kept_as_sparse_as_if_the_fit_had_ended_there(C, patience):
    rows, labels = noisy(1, n=500)
    train, held = slice(0, 350), slice(350, None)
    states = []
    model = CGBoostClassifier(NARROW, C=C, n_iter_no_change=patience, callback=lambda s: bool(states.append(s)))
    model.fit(rows[train], labels[train], X_val=rows[held], y_val=labels[held])
    assert model.status_ is Status.VALIDATION
    best = len(states) - 1 - patience
    columns, rough = states[best].details["solutions"][0]
    assert model.n_columns_ < np.count_nonzero(rough.coef) == len(columns)
    assert model.objective_ < rough.objective
    assert scores_of(model)[best] == model.score(rows[held], labels[held])
    # A bound on the columns, like rows for validation, solves a program in each round: no round is a step alone.
    ended = CGBoostClassifier(NARROW, C=C, max_columns=10**6, callback=lambda s: s.iteration == best + 1)
    ended.fit(rows[train], labels[train])
    assert model.n_columns_ == ended.n_columns_
    assert model.objective_ == pytest.approx(ended.objective_, rel=1e-9)
    assert model.objective_ - model.certificate_.gap >= ended.objective_ - ended.certificate_.gap - 1e-9


# Rows that are held out


@pytest.mark.parametrize("read", [partition, partition_targets])
def test_rows_held_out_and_rows_that_stay_are_all_rows(read):
    sample = read_as_given(Rows(X), read(Y))
    rest, held = hold_out(sample, 0.25, np.random.default_rng(0))
    assert (rest.n_rows, len(held.labels)) == (90, 30)
    gone = np.setdiff1d(np.arange(120), rest.kept)
    np.testing.assert_array_equal(held.X, X[gone])
    np.testing.assert_array_equal(held.labels, Y[gone])


def test_without_a_share_nothing_is_drawn():
    sample, rng = read_as_given(Rows(X), partition(Y)), np.random.default_rng(0)
    given = HeldOut(X[:3], Y[:3])
    assert hold_out(sample, None, rng, given) == (sample, given)
    assert rng.random() == np.random.default_rng(0).random()
    assert watch_accuracy(None, np.array([0, 1]), 5) is watch_r2(None, 5) is None


def test_the_callback_of_the_user_stops_too_and_comes_after_the_score():
    bound = KernelLibrary([Linear()]).bind(X[:4], np.random.default_rng(0))
    seen = []
    validation = Validation(X[:4], lambda values: seen.append("score") or 1.0, 10)
    curve = ValidationCurve(bound, validation, np.zeros_like, np.ones(4), lambda state: seen.append("user") or True)
    assert curve(state((np.array([0]), solution([1.0]))))
    assert seen == ["score", "user"]
    assert not curve.stopped
