"""Sections of a page: what they hold, and that they are left out where there is nothing to say."""

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor

from kernelweave.estimators.auto.leaderboard import ErrorEstimate
from kernelweave.inspection.fit_evidence import FitEvidence, HeldOut
from kernelweave.inspection.report_sections import MAX_CLASSES, SECTIONS, list_cautions, list_facts


def evidence(given, predicted, error, model=None):
    model = DummyClassifier() if model is None else model
    return FitEvidence(
        model, np.zeros((9, 2)), [None] * 9, 6, 3, HeldOut(np.array(given), np.array(predicted), error), str
    )


def sections(fit):
    return {section.title: section for make in SECTIONS for section in make(fit)}


def test_the_confusion_matrix_counts_given_and_predicted_classes():
    fit = evidence(["a", "a", "b", "b", "b", "c"], ["a", "b", "b", "b", "a", "c"], ErrorEstimate(1 / 3, 0.1, 0.7, 6))
    table = sections(fit)["Errors"].tables[0]
    assert table.head == ("given", "a", "b", "c", "rows", "share wrong")
    assert table.lines == (("a", 1, 1, 0, 2, 0.5), ("b", 1, 2, 0, 3, 1 / 3), ("c", 0, 0, 1, 1, 0.0))


def test_rare_classes_of_many_are_left_out_and_counted():
    names = [f"c{k}" for k in range(MAX_CLASSES + 3)]
    found = sections(evidence(names, names, ErrorEstimate(0.0, 0.0, 0.1, len(names))))["Errors"]
    assert len(found.tables[0].lines) == MAX_CLASSES
    assert found.texts[1] == "3 rarer classes are not shown."


def test_a_model_with_nothing_but_predictions_has_what_was_learned_and_errors():
    fit = evidence(["a", "b"], ["a", "b"], ErrorEstimate(0.0, 0.0, 0.5, 2))
    assert list(sections(fit)) == ["What was learned", "Errors"]
    assert [fact.value for fact in list_facts(fit)] == ["3", "0.0 %"]


def test_labels_no_better_than_the_most_frequent_class_are_warned_of():
    fit = evidence(["a", "a", "b"], ["b", "a", "a"], ErrorEstimate(2 / 3, 0.2, 0.9, 3))
    assert list(list_cautions(fit)) == [
        "The labels are no better than the most frequent class, which is wrong in 33.3 %."
    ]
    assert "nothing is known" in next(list_cautions(evidence([], [], None)))


def test_numbers_have_quantiles_of_absolute_errors():
    fit = evidence([0.0, 0.0, 0.0], [1.0, -2.0, 3.0], ErrorEstimate(2.2, 1.0, 3.0, 3), DummyRegressor())
    assert sections(fit)["Errors"].tables[0].lines[-1] == ("100%", 3.0)
