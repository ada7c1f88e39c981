import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from checks.fit_order import in_order
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import f1_score
from sklearn.model_selection import KFold, StratifiedKFold

from kernelweave import (
    RBF,
    CGBoostClassifier,
    CGBoostClassifierCV,
    CGBoostOneClass,
    CGBoostRegressor,
    Linear,
    cg_boost_path,
)
from kernelweave.estimators.cg_boost_path import PATH_RANGE, path_values
from kernelweave.estimators.shared.mixture import MixturePath
from kernelweave.solvers import deadline
from kernelweave.solvers.result import Status

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 3))
Y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.4 * rng.normal(size=90) > 0.3).astype(int)
NUMBERS = np.sin(X[:, 0]) + 0.1 * rng.normal(size=90)
WEIGHT = rng.uniform(0.5, 2.0, 90)
X, Y, NUMBERS, WEIGHT = in_order(X, Y, NUMBERS, WEIGHT)  # folds of a given number are dealt in this order
CS = [0.03, 0.5, 3.0, 100.0]
KERNELS = [RBF(0.5), Linear()]


@pytest.mark.parametrize(
    "options, rel",
    # Both ends are within their certified gaps: 1e-6 with l1, tol of the model with the others.
    [
        ({"penalty": "l1"}, 1e-6),
        ({"penalty": "l1", "positive": True, "intercept": "penalized"}, 1e-6),
        ({"penalty": "l1", "pricing": "full", "intercept": None}, 1e-6),
        ({"penalty": "l2", "tol": 1e-5}, 1e-5),
        ({"penalty": "l2", "positive": True, "tol": 1e-5}, 1e-5),
        ({"penalty": "rkhs", "tol": 1e-6}, 1e-6),
    ],
)
def test_every_model_of_a_path_is_what_a_fit_alone_gives(options, rel):
    model = CGBoostClassifier(KERNELS, **options)
    path = cg_boost_path(X, Y, Cs=CS, estimator=model, sample_weight=WEIGHT)
    for C, objective, member in zip(CS, path.objectives, path.models, strict=True):
        alone = clone(model).set_params(C=C).fit(X, Y, sample_weight=WEIGHT)
        assert objective == pytest.approx(alone.objective_, rel=rel)
        assert member.C == C
        assert member.status_.converged
    if options["penalty"] == "l1" and not options.get("positive"):
        np.testing.assert_allclose(member.decision_function(X), alone.decision_function(X), atol=1e-4)


def test_at_a_loose_tolerance_both_are_within_their_gaps():
    path = cg_boost_path(X, Y, Cs=CS, estimator=CGBoostClassifier(KERNELS, penalty="l2"))
    for C, model in zip(CS, path.models, strict=True):
        tight = CGBoostClassifier(KERNELS, penalty="l2", C=C, tol=1e-6).fit(X, Y)
        assert model.objective_ >= tight.objective_ - tight.certificate_.gap
        assert model.objective_ - model.certificate_.gap <= tight.objective_ * (1 + 1e-9)
        assert model.certificate_.relative <= 0.1


def test_costs_may_come_in_any_order():
    estimator = CGBoostClassifier(random_state=0)
    one, other = (cg_boost_path(X, Y, Cs=Cs, estimator=estimator) for Cs in (CS, [100.0, 0.5, 0.03, 3.0, 0.5]))
    np.testing.assert_array_equal(one.Cs, other.Cs)
    np.testing.assert_array_equal(one.objectives, other.objectives)


def test_a_path_starts_each_fit_from_the_last():
    path = cg_boost_path(X, Y, Cs=[10.0, 10.5])
    assert path.n_iter[1] < path.n_iter[0]


def test_what_a_path_tells_is_what_its_models_tell():
    path = cg_boost_path(X, Y, Cs=CS)
    np.testing.assert_array_equal(path.n_columns, [model.n_columns_ for model in path.models])
    np.testing.assert_array_equal(path.relative_gaps, [model.certificate_.relative for model in path.models])
    np.testing.assert_array_equal(path.n_iter, [len(model.history_) for model in path.models])
    assert path.validation_scores is None
    with pytest.raises(ValueError, match="no validation scores; give cg_boost_path X_val and y_val"):
        _ = path.best


def test_each_model_of_a_path_stands_alone():
    path = cg_boost_path(X, Y, Cs=CS)
    before = [model.decision_function(X) for model in path.models]
    path.models[0].set_params(C=7.0).fit(X[:50], Y[:50])
    for model, values in list(zip(path.models, before, strict=True))[1:]:
        np.testing.assert_array_equal(model.decision_function(X), values)
    assert len({id(model.expansion_) for model in path.models}) == len(CS)


def test_the_best_model_has_the_best_validation_score_and_the_smallest_cost_of_equals():
    path = cg_boost_path(X[:60], Y[:60], Cs=CS, X_val=X[60:], y_val=Y[60:])
    expected = [model.score(X[60:], Y[60:]) for model in path.models]
    np.testing.assert_array_equal(path.validation_scores, expected)
    assert path.best is path.models[int(np.argmax(expected))]


def test_the_estimator_is_not_changed():
    model = CGBoostClassifier(KERNELS, C=7.0)
    cg_boost_path(X, Y, Cs=CS, estimator=model)
    assert model.C == 7.0
    assert not hasattr(model, "expansion_")


def test_several_classes_have_one_path():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    path = cg_boost_path(X, labels, Cs=[0.5, 5.0], estimator=CGBoostClassifier(random_state=0))
    for C, objective, model in zip([0.5, 5.0], path.objectives, path.models, strict=True):
        alone = CGBoostClassifier(C=C, random_state=0).fit(X, labels)
        np.testing.assert_allclose(model.objective_, alone.objective_, rtol=2e-6)
        assert objective == pytest.approx(alone.objective_.sum(), rel=2e-6)


@pytest.mark.parametrize("penalty, rel", [("l1", 1e-6), ("l2", 1e-5), ("rkhs", 1e-5)])
def test_a_regressor_has_a_path_too(penalty, rel):
    model = CGBoostRegressor(KERNELS, penalty=penalty, epsilon=0.05, tol=rel)
    path = cg_boost_path(X[:60], NUMBERS[:60], Cs=CS, estimator=model, X_val=X[60:], y_val=NUMBERS[60:])
    for C, objective in zip(CS, path.objectives, strict=True):
        assert objective == pytest.approx(clone(model).set_params(C=C).fit(X[:60], NUMBERS[:60]).objective_, rel=rel)
    assert path.best.score(X[60:], NUMBERS[60:]) == pytest.approx(path.validation_scores.max(), rel=1e-10)


def test_limits_hold_for_every_model_of_a_path():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        path = cg_boost_path(X, Y, Cs=[1.0, 100.0], estimator=CGBoostClassifier(penalty="l2", max_columns=5, tol=1e-6))
    assert path.n_columns.max() <= 5
    assert sum(issubclass(w.category, ConvergenceWarning) for w in seen) == 2


@pytest.mark.parametrize(
    "options, error, message",
    [
        (
            {"estimator": CGBoostOneClass()},
            TypeError,
            "takes a CGBoostClassifier or CGBoostRegressor; got CGBoostOneCl",
        ),
        ({"estimator": CGBoostClassifier(nu=0.1)}, ValueError, "needs an estimator with nu=None"),
        ({"estimator": CGBoostClassifier(validation_fraction=0.1)}, ValueError, "and validation_fraction=None"),
        ({"X_val": X}, ValueError, "needs X_val and y_val together"),
        ({"X_val": X, "y_val": Y[:-1]}, ValueError, f"X_val has {len(X)} rows but y_val has {len(X) - 1}"),
        ({"X_val": X, "y_val": Y + 5}, ValueError, "y_val holds 6, 5, which no training row has"),
        ({"Cs": []}, ValueError, r"cg_boost_path got Cs=\[\]; expected a whole number >= 1 or positive numbers"),
        ({"Cs": [1.0, -1.0]}, ValueError, "expected a whole number >= 1 or positive numbers"),
        ({"Cs": 0}, ValueError, "expected a whole number >= 1 or positive numbers"),
        ({"Cs": [[1.0], [2.0]]}, ValueError, "expected a whole number >= 1 or positive numbers"),
        ({"Cs": "many"}, ValueError, "expected a whole number >= 1 or positive numbers"),
        ({"Cs": [np.inf]}, ValueError, "expected a whole number >= 1 or positive numbers"),
    ],
)
def test_what_has_no_path_is_refused_with_a_sentence(options, error, message):
    with pytest.raises(error, match=message):
        cg_boost_path(X, Y, **options)


def test_a_number_of_values_spans_the_range():
    values = path_values("test", 4)
    np.testing.assert_allclose(values[[0, -1]], PATH_RANGE)
    np.testing.assert_allclose(np.diff(np.log(values)), np.log(values[1] / values[0]))
    assert path_values("test", 1).tolist() == [10.0]
    assert path_values("test", 2.5).tolist() == [2.5]


# Cross-validation


def by_hand(folds, score=lambda model, X, y: model.score(X, y), weight=None, **options):
    """Scores of separate fits, one a fold and C."""
    out = []
    for train, test in folds:
        given = None if weight is None else weight[train]
        models = [CGBoostClassifier(KERNELS, C=C, **options).fit(X[train], Y[train], given) for C in CS]
        out.append([score(model, X[test], Y[test]) for model in models])
    return np.array(out)


def fold_scores(model):
    """The scores of the folds, shape (n_folds, n_Cs)."""
    results = model.cv_results_
    n_folds = sum(name.startswith("split") for name in results)
    return np.array([results[f"split{k}_test_score"] for k in range(n_folds)])


def test_scores_are_those_of_cross_validation_by_hand_and_the_best_cost_is_taken():
    model = CGBoostClassifierCV(KERNELS, Cs=CS, cv=3).fit(X, Y)
    np.testing.assert_allclose(fold_scores(model), by_hand(StratifiedKFold(3).split(X, Y)))
    means = fold_scores(model).mean(axis=0)
    assert CS[int(np.argmax(means))] == model.C_
    alone = CGBoostClassifier(KERNELS, C=model.C_).fit(X, Y)
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-6)
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))
    np.testing.assert_array_equal(model.Cs_, CS)
    assert model.path_.Cs[-1] == model.C_


def test_scoring_and_folds_may_be_chosen():
    folds = KFold(4, shuffle=True, random_state=0)
    model = CGBoostClassifierCV(KERNELS, Cs=CS, cv=folds, scoring="f1").fit(X, Y)
    expected = by_hand(folds.split(X), lambda model, X, y: f1_score(y, model.predict(X)))
    np.testing.assert_allclose(fold_scores(model), expected)


def two_scores(model, X, y):
    return {"accuracy": model.score(X, y), "f1": 0.0}


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        (["roc_auc", "f1"], r"CGBoostClassifierCV got scoring=\['roc_auc', 'f1'\]; expected one scorer"),
        ({"a": "roc_auc"}, r"got scoring=\{'a': 'roc_auc'\}; expected one scorer"),
        (7, "got scoring=7; expected one scorer"),
        (two_scores, r"scoring=<function two_scores.* gave \{'accuracy': .*; expected one number"),
    ],
)
def test_several_scores_are_refused_with_a_sentence(scoring, message):
    with pytest.raises(ValueError, match=message):
        CGBoostClassifierCV(Linear(), Cs=[1.0], cv=2, scoring=scoring).fit(X, Y)


def test_weights_count_in_fits_and_in_scores():
    model = CGBoostClassifierCV(KERNELS, Cs=CS, cv=3).fit(X, Y, sample_weight=WEIGHT)
    for (train, test), scores in zip(StratifiedKFold(3).split(X, Y), fold_scores(model), strict=True):
        alone = CGBoostClassifier(KERNELS, C=CS[-1]).fit(X[train], Y[train], WEIGHT[train])
        assert scores[-1] == pytest.approx(alone.score(X[test], Y[test], WEIGHT[test]))


def test_parameters_of_the_estimator_with_one_cost_are_not_among_its_own():
    params = CGBoostClassifierCV().get_params()
    assert not {"C", "nu", "validation_fraction", "n_iter_no_change"} & set(params)
    with pytest.raises(ValueError, match="CGBoostClassifierCV got Cs=-1"):
        CGBoostClassifierCV(Cs=-1).fit(X, Y)
    with pytest.raises(ValueError, match="penalty='l5'"):
        CGBoostClassifierCV(penalty="l5").fit(X, Y)
    with pytest.raises(ValueError, match=r"CGBoostClassifierCV got n_jobs=1.5; expected None or a whole number"):
        CGBoostClassifierCV(n_jobs=1.5).fit(X, Y)


def test_a_limit_on_columns_is_met_anew_for_each_cost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=60) > 0).astype(int)
    estimator = CGBoostClassifier(penalty="l2", max_columns=6, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the limit is meant to bind
        path = cg_boost_path(X, y, Cs=[0.01, 1.0, 100.0], estimator=estimator)
        alone = [clone(estimator).set_params(C=C).fit(X, y).objective_ for C in path.Cs]
    np.testing.assert_allclose(path.objectives, alone, rtol=1e-9)


# What is read once, warned of once, and kept in one step


def test_only_the_model_that_is_kept_is_warned_of():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = CGBoostClassifierCV(KERNELS, Cs=[0.5, 100.0], cv=3, max_columns=3, tol=1e-9).fit(X, Y)
    assert not model.status_.converged
    assert [w.category for w in seen] == [ConvergenceWarning]
    assert seen[0].filename == __file__


def test_the_model_is_the_last_of_its_path():
    model = CGBoostClassifierCV(KERNELS, Cs=CS, cv=3).fit(X, Y)
    last = model.path_.models[-1]
    assert isinstance(last, CGBoostClassifier)
    assert last.get_params(deep=False)["kernels"] is KERNELS
    assert last.expansion_ is model.expansion_
    np.testing.assert_array_equal(last.decision_function(X), model.decision_function(X))


def test_folds_may_repeat_rows_and_come_in_any_order():
    rng = np.random.default_rng(0)
    folds = [(rng.choice(60, 80), np.arange(60, 90)), (rng.permutation(np.arange(30, 90)), np.arange(30))]
    model = CGBoostClassifierCV(KERNELS, Cs=CS, cv=folds).fit(X, Y)
    np.testing.assert_allclose(fold_scores(model), by_hand(folds))


def test_fitted_copies_of_an_estimator_come_in_the_order_of_the_costs():
    estimator = CGBoostClassifier(KERNELS, C=7.0)
    models = estimator.fit_path(X, Y, [3.0, 0.5])
    assert [model.C for model in models] == [3.0, 0.5]
    assert not hasattr(estimator, "expansion_")
    for model in models:
        assert model.objective_ == pytest.approx(clone(model).fit(X, Y).objective_, rel=1e-6)


@pytest.mark.parametrize("estimator", [CGBoostClassifier(nu=0.1), CGBoostRegressor(validation_fraction=0.2)])
def test_fitted_copies_differ_in_their_cost_only(estimator):
    with pytest.raises(ValueError, match="A path over C needs an estimator with nu=None and validation_fraction=None"):
        estimator.fit_path(X, Y, [1.0])


# Limits of time


@pytest.fixture(name="now")
def clock_that_only_fits_move(monkeypatch):
    now, solve = [0.0], MixturePath.solve

    def solve_in_a_second(self, problems):
        now[0] += 1.0
        return solve(self, problems)

    monkeypatch.setattr(MixturePath, "solve", solve_in_a_second)
    monkeypatch.setattr(deadline, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    return now


def fit_in_time(max_time, recwarn, Cs=CS):
    model = CGBoostClassifierCV(KERNELS, Cs=Cs, cv=3, max_time=max_time).fit(X, Y)
    return model, [str(each.message) for each in recwarn if each.category is ConvergenceWarning]


def test_a_limit_that_does_not_bind_changes_nothing(now, recwarn):
    model, messages = fit_in_time(1000.0, recwarn)
    free = CGBoostClassifierCV(KERNELS, Cs=CS, cv=3).fit(X, Y)
    assert messages == []
    assert model.status_ is Status.CONVERGED
    np.testing.assert_array_equal(fold_scores(model), fold_scores(free))
    np.testing.assert_array_equal(model.decision_function(X), free.decision_function(X))


def test_only_the_costs_and_folds_for_which_there_is_time_are_compared(now, recwarn):
    model, messages = fit_in_time(8.0, recwarn)  # half of it for three folds: two costs in each of two
    free = CGBoostClassifierCV(KERNELS, Cs=CS, cv=3).fit(X, Y)
    np.testing.assert_array_equal(fold_scores(model), fold_scores(free)[:2, :2])
    assert model.C_ in CS[:2]
    assert model.path_.Cs[-1] == model.C_
    assert model.status_ is Status.MAX_TIME
    assert messages == [
        f"Stopped at max_time before all was compared: C={model.C_:g} was chosen by 2 of 4 costs on 2 of 3 folds. "
        "Raise max_time, or give fewer Cs or folds."
    ]


def test_the_limit_is_one_of_the_whole_fit(now, recwarn):
    many = np.geomspace(0.01, 10.0, 30)
    for max_time in (5.0, 12.0, 30.0):
        now[0] = 0.0
        model, _ = fit_in_time(max_time, recwarn, many)
        assert now[0] <= max_time + 1.0  # the last cost is fitted in any case
        assert model.status_ is Status.MAX_TIME


def test_without_time_for_a_fold_a_middle_cost_is_fitted(recwarn):
    model, (message,) = fit_in_time(1e-9, recwarn)
    assert model.C_ == 0.5  # nearest to the default, 10 over the root of 90
    assert model.cv_results_ == {}
    assert model.path_.Cs.tolist() == [0.5]
    assert model.status_ is Status.MAX_TIME
    assert message.startswith(
        "Stopped at max_time before costs up to the default were compared: C=0.5, which is nearest to it, was taken. "
    )
    assert "Certified relative gap" in message
    assert message.endswith("Raise max_time, or give fewer Cs or folds.")


def test_costs_below_the_default_alone_are_nothing_to_choose_from(now, recwarn):
    model, (message,) = fit_in_time(5.0, recwarn)  # one cost in each of three folds
    assert model.C_ == 0.5
    assert model.cv_results_ == {}
    assert "before costs up to the default were compared" in message
