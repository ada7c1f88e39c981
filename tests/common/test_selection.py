"""Cross-validation, grids, pipelines and scores, on rows of which some have no label."""

import warnings

import numpy as np
import pytest
from common.estimators import assert_close, cases, fitted, labeled_sample, outputs, sample
from sklearn.calibration import CalibrationDisplay
from sklearn.ensemble import VotingClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import PrecisionRecallDisplay, RocCurveDisplay, accuracy_score, get_scorer, r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from kernelweave import RBF, Linear, Precomputed, RKDAClassifier, SemiSupervisedCalibration, SemiSupervisedSplit
from kernelweave.model_selection import labeled_scorer

FOLDS = SemiSupervisedSplit(2, random_state=0)


def is_predictor(case):
    return case.task in ("classes", "numbers")


@cases(where=is_predictor)
def test_scores_of_folds_are_those_of_labelled_rows(case):
    X, y = sample(case)
    scores = cross_val_score(case.model(), X, y, cv=FOLDS, error_score="raise")
    for score, (train, test) in zip(scores, FOLDS.split(X, y), strict=True):
        assert score == pytest.approx(case.model().fit(X[train], y[train]).score(X[test], y[test]))
    measure = labeled_scorer("accuracy" if case.task == "classes" else "r2")
    np.testing.assert_allclose(cross_val_score(case.model(), X, y, cv=FOLDS, scoring=measure), scores)


@cases("classes")
def test_every_classifier_has_probabilities_or_says_who_has_them_for_tools_that_need_them(case):
    X, y = (labeled_sample if case.needs_labels else sample)(case, n_classes=3)
    model = case.model()
    if not hasattr(model, "predict_proba"):
        assert f"``SemiSupervisedCalibration({case.name}())`` has ``predict_proba``" in " ".join(model.__doc__.split())
        model = SemiSupervisedCalibration(model, cv=2, min_labels=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few labels may be no better than chance
        probabilities = model.fit(X, y).predict_proba(X)
    known = np.isin(y, model.classes_)
    assert probabilities.shape == (len(X), 3)
    assert np.isfinite(get_scorer("neg_log_loss")(model, X[known], y[known]))
    assert 0.5 < get_scorer("roc_auc_ovr")(model, X[known], y[known]) <= 1.0


@pytest.fixture(scope="module")
def calibrated():
    """A classifier without probabilities that has been given some, and rows of two classes, all labelled."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 2)) + 2.0 * y[:, None] * [1.0, 0.0]
    model = SemiSupervisedCalibration(RKDAClassifier(RBF()), cv=2, random_state=0)
    return model.fit(X, np.where(np.arange(60) < 30, y, -1)), X, y


def test_scikit_learns_tools_take_calibrated_classifiers(calibrated):
    model, X, y = calibrated
    assert cross_val_predict(model, X, y, cv=2, method="predict_proba").shape == (60, 2)
    importance = permutation_importance(model, X, y, scoring="roc_auc", n_repeats=2, random_state=0)
    assert importance.importances_mean.argmax() == 0
    assert VotingClassifier([("one", model), ("two", LogisticRegression())], voting="soft").fit(X, y).score(X, y) > 0.7


@pytest.mark.parametrize("display", [RocCurveDisplay, PrecisionRecallDisplay, CalibrationDisplay])
def test_scikit_learns_plots_take_calibrated_classifiers(display, calibrated):
    axes = pytest.importorskip("matplotlib.figure").Figure().add_subplot()
    assert display.from_estimator(*calibrated, ax=axes).ax_ is axes


def agreement(model, X, y):
    """A score for models that have none."""
    return np.mean((model.predict(X) > 0) == (y > 0)) if hasattr(model, "predict") else model.alignment_["after"]


@cases()
def test_a_grid_reaches_into_the_kernel_through_a_pipeline(case):
    X, y = sample(case)
    model = case.with_kernel(RBF())
    name = f"{type(model).__name__.lower()}__{case.kernel or 'learner__kernel'}__multiple"
    search = GridSearchCV(
        make_pipeline(StandardScaler(), model),
        {name: [0.5, 2.0]},
        cv=FOLDS if not case.needs_labels else 2,
        scoring=None if is_predictor(case) else lambda steps, X, y: agreement(steps[-1], steps[:-1].transform(X), y),
        error_score="raise",
    ).fit(X, y)
    assert [params[name] for params in search.cv_results_["params"]] == [0.5, 2.0]
    best = search.best_estimator_[-1]
    assert (best.get_params()[name.partition("__")[2]]) == search.best_params_[name]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert outputs(search.best_estimator_, X).shape[0] == len(X)


@cases(where=lambda case: case.kernel is not None)
def test_a_nested_parameter_is_set_in_a_copy_of_the_recipe(case):
    recipe = RBF()
    first, second = (case.model(**{case.kernel: recipe}) for _ in range(2))
    first.set_params(**{f"{case.kernel}__multiple": 3.0})
    assert first.get_params()[f"{case.kernel}__multiple"] == 3.0
    assert second.get_params()[case.kernel] is recipe
    assert recipe == RBF()
    with pytest.raises(ValueError, match="RBF has no parameter 'width'"):
        first.set_params(**{f"{case.kernel}__width": 2.0})


@cases()
def test_a_pipeline_is_the_model_of_what_its_first_step_makes(case):
    X, y = sample(case)
    X = X * [1.0, 100.0, 0.01]
    whole = make_pipeline(StandardScaler(), case.model()).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    assert_close(outputs(whole, X), outputs(case.model().fit(scaled, y), scaled), 1e-10)


@cases(where=lambda case: hasattr(case.estimator, "transform"))
def test_features_serve_a_linear_model_in_a_pipeline(case):
    X, y = labeled_sample(case)
    model = make_pipeline(case.model(), LinearSVC()).fit(X, y)
    assert model.score(X, y) > 0.7
    assert len(model[:-1].get_feature_names_out()) == model[0].transform(X).shape[1]


@cases(where=lambda case: is_predictor(case) and case.kernel is not None)
def test_precomputed_kernels_are_cross_validated_by_row_numbers(case):
    X, y = sample(case)
    rows = np.arange(len(X))[:, None]
    metric = {"metric": "kernel"} if "C" in case.parameters and "metric" in case.parameters else {}
    given = case.with_kernel(Precomputed(rbf_kernel(X, gamma=0.5)), **metric)
    computed = case.with_kernel(RBF(0.5), **metric)
    scores = [
        cross_val_score(given, rows, y, cv=FOLDS, error_score="raise"),
        cross_val_score(computed, X, y, cv=FOLDS, error_score="raise"),
    ]
    if "metric" in case.parameters and not metric:
        return  # neighbours are those of the rows, not of the kernel: row numbers have others
    # Searches deal rows to folds by their content, and row numbers are another one.
    assert_close(*scores, share=0.05 if case.combines_models else case.close)


@cases(where=is_predictor)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_score_is_that_of_labelled_rows(case, weighted):
    X, y = sample(case)
    model, known = fitted(case), ~np.isnan(y)
    weight = np.arange(len(X)) % 3 + 1.0 if weighted else None
    measure = accuracy_score if case.task == "classes" else r2_score
    expected = measure(y[known], model.predict(X[known]), sample_weight=weight[known] if weighted else None)
    assert model.score(X, y, sample_weight=weight) == pytest.approx(expected)


@cases(where=lambda case: is_predictor(case) and not case.needs_labels)
def test_a_score_of_no_labelled_row_is_refused(case):
    X, _ = sample(case)
    with pytest.raises(ValueError, match="labelled row"):
        fitted(case).score(X, np.full(len(X), np.nan))


@cases("classes", where=lambda case: not case.needs_labels)
def test_minus_one_is_not_scored_where_it_marks_unlabelled_rows(case):
    X, y = sample(case)
    assert fitted(case).score(X, np.where(np.isnan(y), -1, y)) == fitted(case).score(X, y)


@cases(where=lambda case: case.kernel == "kernels")
def test_grids_over_whole_libraries_have_readable_results(case):
    X, y = sample(case)
    grid = {"kernels": [[Linear()], [RBF(), Linear()]]}
    cv = FOLDS if not case.needs_labels else 2
    search = GridSearchCV(case.model(), grid, cv=cv, scoring=agreement, error_score="raise").fit(X, y)
    assert [str(value) for value in search.cv_results_["param_kernels"]] == ["[Linear()]", "[RBF(), Linear()]"]
