"""Predictions taken apart: the parts are exact, and each is what its kernel, source or training row adds."""

import pickle

import numpy as np
import pandas as pd
import pytest
from checks.fit_order import labeled_rows
from common.estimators import ESTIMATORS, cases, fitted, outputs, sample
from scipy import sparse
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    AutoKernelClassifier,
    CGBoostClassifier,
    HarmonicClassifier,
    KernelLibrary,
    LabelAwareKernelLearner,
    LearnedKernelClassifier,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    OnColumns,
    RKDAClassifier,
    SemiSupervisedCalibration,
    SSMKClassifier,
    explain,
    load,
    save,
)
from kernelweave.inspection.explanation import CombinedExplanation, Explanation
from kernelweave.kernels import expansion as expansions

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
X_NEW = RNG.normal(size=(6, 4))
Y = np.where(X[:, 0] + X[:, 2] ** 2 > 0.5, 1.0, 0.0)
PARTLY = np.where(np.arange(50) < 25, Y, np.nan)
SIDES = KernelLibrary(
    {
        "near": OnColumns(RBF(), [0, 1], source="left"),
        "far": OnColumns(RBF(multiple=0.1), [0, 1], source="left"),
        "line": OnColumns(Linear(), [2, 3], source="right"),
    }
)


@pytest.fixture(scope="module")
def weighted():
    return MKLClassifier(SIDES, C=10.0, weighting="uniform").fit(X, Y)


@pytest.fixture(scope="module")
def deformed():
    return SSMKClassifier([Linear(), ManifoldKernel(RBF(), 5), ManifoldKernel(RBF(), 5, ratio=10.0)]).fit(X, PARTLY)


def explained(model, rows, **options):
    """The explanation, or those of all members."""
    found = explain(model, rows, **options)
    return list(found.explanations.values()) if isinstance(found, CombinedExplanation) else [found]


# The parts sum to the whole


@cases("classes", "numbers", "one class", variants=True)
def test_parts_and_intercept_sum_to_the_decision_value(case):
    check_sums(case, 2)


@cases("classes", where=lambda case: not case.combines_models and case.name != "CGBoostClassifierCV")
def test_parts_sum_to_the_decision_values_of_three_classes(case):
    check_sums(case, 3)


def check_sums(case, n_classes):
    model, rows = fitted(case, n_classes), np.asarray(sample(case)[0])[:5]
    found = explain(model, rows)
    expected = outputs(model, rows)
    if isinstance(found, CombinedExplanation) and case.task == "classes":
        expected = model.predict_proba(rows)
    expected = expected.reshape(5, -1)
    difference = found.decision - expected
    if isinstance(model, RKDAClassifier) and n_classes == 3:  # up to what all classes share
        difference = difference - difference[:, :1]
        np.testing.assert_array_equal(found.outputs[found.decision.argmax(axis=1)], model.predict(rows))
    size = max(np.abs(expected).max(), 1.0)
    np.testing.assert_allclose(difference, 0.0, atol=1e-9 * size)
    for each in explained(model, rows, n_training_rows=None):
        unit = max(1.0, np.abs(each.by_training_row).sum(axis=(1, 2)).max())
        np.testing.assert_allclose(each.by_kernel.sum(axis=1) + each.intercept, each.decision, atol=1e-12 * unit)
        np.testing.assert_allclose(each.by_source.sum(axis=1) + each.intercept, each.decision, atol=1e-12 * unit)
        assert each.undivided == ()
        np.testing.assert_allclose(each.rest, 0.0, atol=1e-8 * unit)  # folds are ill-conditioned


def test_every_estimator_is_explained_or_refused_in_a_sentence():
    refused = []
    for case in ESTIMATORS:
        if case.task == "features":
            with pytest.raises(TypeError, match=f"explain cannot take {case.name} apart: .* takes fitted mixtures"):
                explain(fitted(case), np.asarray(sample(case)[0])[:2])
            refused.append(case.name)
    assert len(refused) == 3


# What is attributed to what


def test_a_training_row_adds_its_coefficient_times_the_kernels(weighted):
    found = explain(weighted, X_NEW, n_training_rows=None)
    for group in weighted.expansion_.groups:
        kernel = SIDES.entries[group.kernel].kernel
        expected = kernel(X_NEW, X)[:, group.centers] * group.coef[:, 0]
        np.testing.assert_allclose(found.by_kernel[:, group.kernel, 0], expected.sum(axis=1))
    assert found.kernels == ("near", "far", "line")
    assert found.sources == ("left", "right")
    np.testing.assert_allclose(found.by_source[:, 0], found.by_kernel[:, :2].sum(axis=1))
    group = weighted.expansion_.groups[2]
    by_line = np.zeros((6, 50))
    by_line[:, group.centers] = Linear()(X_NEW[:, 2:], X[:, 2:])[:, group.centers] * group.coef[:, 0]
    for i in range(6):
        np.testing.assert_allclose(found.by_training_row[i, :, 1, 0], by_line[i, found.training_rows[i, :, 0]])


def test_a_deformed_kernel_is_attributed_to_its_centres(deformed):
    found = explain(deformed, X_NEW, n_training_rows=None)
    expected = np.zeros((6, 50))
    for group in deformed.expansion_.groups:
        kernel = deformed.library_.entries[group.kernel].kernel
        expected[:, group.centers] += kernel(X_NEW, X)[:, group.centers] * group.coef[:, 0]
    assert any(group.fold is not None for group in deformed.expansion_.groups)
    for i in range(6):
        np.testing.assert_allclose(
            found.by_training_row[i, :, 0, 0], expected[i, found.training_rows[i, :, 0]], atol=1e-9
        )


def test_what_is_too_large_to_keep_is_said_and_stays_in_the_sum(deformed, monkeypatch):
    monkeypatch.setattr(expansions, "MAX_FOLD_VALUES", 0)
    model = SSMKClassifier(deformed.kernels).fit(X, PARTLY)
    found = explain(model, X_NEW, n_training_rows=None)
    assert found.undivided
    assert all(name.startswith("ManifoldKernel") for name in found.undivided)
    np.testing.assert_allclose(found.decision[:, 0], deformed.decision_function(X_NEW))
    undivided = sum(found.by_kernel[:, found.kernels.index(name)] for name in found.undivided)
    np.testing.assert_allclose(found.rest.sum(axis=1), undivided, atol=1e-12)


def test_neighbours_carry_a_harmonic_prediction():
    model = HarmonicClassifier(n_neighbors=3, metric="euclidean", edge_weights="binary").fit(X, PARTLY)
    found = explain(model, X_NEW)
    assert found.kernels == ("nearest neighbours",)
    nearest = np.argsort(np.linalg.norm(X_NEW[:, None] - X, axis=2), axis=1)[:, :3]
    assert [set(rows) for rows in found.training_rows[:, :, 0].tolist()] == [set(rows) for rows in nearest.tolist()]
    dense = explain(HarmonicClassifier(kernel=RBF()).fit(X, PARTLY), X_NEW, n_training_rows=4)
    assert dense.kernels == ("RBF()",)
    assert dense.training_rows.shape == (6, 4, 2)


def test_rows_are_those_of_the_sample_that_was_given_though_some_weigh_nothing():
    weight = np.where(np.arange(50) % 5 == 0, 0.0, 1.0)
    model = SSMKClassifier(RBF()).fit(X, PARTLY, sample_weight=weight)
    found = explain(model, X_NEW, n_training_rows=None)
    assert np.all(found.training_rows % 5 != 0)
    centers = np.unique(np.concatenate([group.centers for group in model.expansion_.groups]))
    assert set(found.training_rows[0, :, 0]) == set(centers)


# The rows that are kept


def test_those_that_add_most_are_kept_and_the_others_summed(weighted):
    whole, some = explain(weighted, X_NEW, n_training_rows=None), explain(weighted, X_NEW, n_training_rows=3)
    size = np.abs(whole.by_training_row.sum(axis=2))
    assert np.all(np.diff(size, axis=1) <= 0)
    np.testing.assert_array_equal(some.training_rows, whole.training_rows[:, :3])
    np.testing.assert_allclose(some.rest, whole.by_training_row[:, 3:].sum(axis=1), atol=1e-12)


def test_blocks_change_nothing(weighted, deformed):
    for model in (weighted, deformed):
        whole = explain(model, X_NEW)
        with config_context(working_memory=1e-3):
            parts = explain(model, X_NEW)
        np.testing.assert_allclose(parts.by_training_row, whole.by_training_row, atol=1e-12)
        np.testing.assert_array_equal(parts.training_rows, whole.training_rows)
        np.testing.assert_allclose(parts.by_kernel, whole.by_kernel, atol=1e-12)


# Combinations


@pytest.fixture(scope="module")
def combined():
    weight = np.where(np.arange(50) == 3, 0.0, 1.0)
    candidates = ["harmonic", CGBoostClassifier(RBF()), "logistic regression"]
    model = AutoKernelClassifier(candidates, class_prior={0.0: 0.3, 1.0: 0.7}, random_state=0, combine="stack")
    return model.fit(X, PARTLY, sample_weight=weight)


def test_shares_of_members_make_up_the_probability_of_the_predicted_class(combined):
    found = explain(combined, X_NEW)
    probabilities = combined.predict_proba(X_NEW)
    np.testing.assert_allclose(found.decision, probabilities, atol=1e-12)
    np.testing.assert_allclose(found.by_member.sum(axis=1), probabilities, atol=1e-12)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    best = probabilities.argmax(axis=1)
    expected = found.by_member[np.arange(6), :, best] / probabilities.max(axis=1)[:, None]
    np.testing.assert_allclose(found.shares, expected)


def test_members_that_are_sums_are_explained_and_others_refused(combined):
    found = explain(combined, X_NEW)
    assert set(found.explanations) | set(found.refused) == set(found.members)
    for member in combined.members_:
        if member.name in found.explanations:
            assert hasattr(member.model, "certificate_")
        else:
            assert "cannot take" in found.refused[member.name]


def test_members_name_rows_as_the_user_does(combined):
    found = explain(combined, X_NEW, n_training_rows=None)
    assert "CGBoostClassifier" in found.explanations
    boosted = found.explanations["CGBoostClassifier"]
    model = next(member.model for member in combined.members_ if member.name == "CGBoostClassifier")
    kept = np.delete(np.arange(len(X)), 3)  # of positive weight; the first 25 of all are labelled
    used = kept[labeled_rows(X[kept], kept < 25)]
    centers = np.unique(np.concatenate([group.centers for group in model.expansion_.groups]))
    assert set(boosted.training_rows[0, :, 0]) == set(used[centers])


def test_a_member_that_names_columns_is_explained():
    frame = pd.DataFrame(X, columns=list("abcd"))
    scaled = ColumnTransformer([("some", StandardScaler(), ["a", "c"])])
    candidate = ("scaled", make_pipeline(scaled, MKLClassifier(RBF(), C=10.0, weighting="uniform")))
    model = AutoKernelClassifier([candidate], random_state=0).fit(frame, PARTLY)
    found = explain(model, frame[:3])
    expected = model.members_[0].model.decision_function(frame[:3])
    np.testing.assert_allclose(found.explanations["scaled"].decision[:, 0], expected)


# What is taken


def test_pipelines_and_searches_are_explained_by_what_predicts():
    pipeline = make_pipeline(StandardScaler(), SSMKClassifier(RBF())).fit(X, Y)
    found = explain(pipeline, X_NEW)
    np.testing.assert_allclose(found.decision[:, 0], pipeline.decision_function(X_NEW))
    search = GridSearchCV(MKLClassifier(RBF(), weighting="uniform"), {"C": [1.0, 10.0]}, cv=2).fit(X, Y)
    np.testing.assert_allclose(explain(search, X_NEW).decision[:, 0], search.decision_function(X_NEW))


def test_frames_and_sparse_rows_are_taken():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = MKLClassifier([OnColumns(RBF(), "a"), Linear()], C=1.0).fit(frame, Y)
    found = explain(model, frame[:4])
    np.testing.assert_allclose(found.decision[:, 0], model.decision_function(frame[:4]))
    model = SSMKClassifier([RBF(), Linear()]).fit(sparse.csr_array(X), Y)
    found = explain(model, sparse.csr_array(X_NEW))
    np.testing.assert_allclose(found.decision[:, 0], model.decision_function(sparse.csr_array(X_NEW)))


def test_a_model_without_kernels_in_use_is_its_intercept():
    model = SSMKClassifier(RBF(), C=1e-9).fit(X, Y)
    assert model.expansion_.groups == ()
    found = explain(model, X_NEW)
    assert found.training_rows.shape == (6, 0, 1)
    np.testing.assert_allclose(found.decision, np.tile(found.intercept, (6, 1)))
    assert found.rows(0) == []


def test_a_saved_model_is_explained_as_before(deformed, tmp_path):
    save(deformed, tmp_path / "model")
    expected = explain(deformed, X_NEW)
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(deformed))):
        found = explain(again, X_NEW)
        assert found.undivided == ()
        np.testing.assert_allclose(found.by_training_row, expected.by_training_row)


def test_a_calibration_is_explained_by_the_decision_values_of_its_estimator():
    model = SemiSupervisedCalibration(MKLClassifier(RBF()), random_state=0).fit(X, Y)
    found, inner = explain(model, X_NEW), explain(model.estimator_, X_NEW)
    np.testing.assert_allclose(found.by_kernel, inner.by_kernel)
    np.testing.assert_allclose(found.decision, np.atleast_2d(model.estimator_.decision_function(X_NEW).T).T)
    order = np.argsort(found.decision[:, 0])
    assert (np.diff(model.predict_proba(X_NEW)[order, 1]) >= 0).all()


@pytest.mark.parametrize(
    "model", [LogisticRegression().fit(X, Y), LabelAwareKernelLearner().fit(X, Y), StandardScaler().fit(X), "model"]
)
def test_what_is_no_sum_over_rows_is_refused(model):
    with pytest.raises(TypeError, match=f"explain cannot take {type(model).__name__} apart"):
        explain(model, X_NEW)


def test_models_that_are_not_fitted_and_wrong_numbers_of_rows_are_refused(weighted):
    for model in (MKLClassifier(), RKDAClassifier(), HarmonicClassifier(), AutoKernelClassifier()):
        with pytest.raises(NotFittedError):
            explain(model, X_NEW)
    for wrong in (0, 1.5, "all"):
        with pytest.raises(ValueError, match=r"explain got n_training_rows=.*expected None or a whole number"):
            explain(weighted, X_NEW, n_training_rows=wrong)
    with pytest.raises(ValueError, match="4 features"):
        explain(weighted, X_NEW[:, :2])


def test_a_learned_kernel_is_explained_by_its_members():
    model = LearnedKernelClassifier(LabelAwareKernelLearner(n_eigenvectors=4), C=10.0).fit(X, PARTLY)
    found = explain(model, X_NEW, n_training_rows=None)
    assert isinstance(found, Explanation)
    assert found.kernels[0] == "label-aware"
    assert set(found.training_rows[0, :, 0]) <= set(range(25))
