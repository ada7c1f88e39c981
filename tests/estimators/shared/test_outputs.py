import numpy as np
import pytest
from checks.partitions import as_array, as_frame, problem
from sklearn.metrics import accuracy_score, r2_score

from kernelweave import MKLClassifier, SSMKClassifier, SSMKRegressor
from kernelweave.estimators.shared.outputs import (
    choose_classes,
    labeled_accuracy,
    labeled_r2,
    read_all_labels,
    read_all_numbers,
    read_some_labels,
    refuse_unlabeled,
    transduce_classes,
    transduce_numbers,
)
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition, partition_targets


def test_one_output_decides_by_its_sign_and_zero_is_the_first_class():
    np.testing.assert_array_equal(choose_classes(np.array([[-1.0], [0.0], [1e-300]])), [0, 0, 1])


def test_of_several_outputs_the_largest_wins_and_of_equals_the_first():
    np.testing.assert_array_equal(choose_classes(np.array([[1.0, 2.0, 0.0], [-3.0, -1.0, -1.0]])), [1, 1])


@pytest.mark.parametrize("weight", [None, [1.0, 9.0, 2.0, 9.0, 4.0]], ids=["plain", "weighted"])
def test_scores_are_those_of_labelled_rows(weight):
    predicted, rows = np.array([0, 1, 1, 0, 1]), [0, 2, 4]
    given = None if weight is None else np.array(weight)[rows]
    expected = accuracy_score([0, 1, 0], predicted[rows], sample_weight=given)
    classes = np.array([0, 1])
    for y in ([0, None, 1, None, 0], [0, -1, 1, -1, 0], [0.0, np.nan, 1.0, np.nan, 0.0]):
        assert labeled_accuracy(predicted, y, weight, "auto", classes) == pytest.approx(expected)
    numbers, y = np.array([0.1, 5.0, 0.8, 5.0, 0.4]), [0.0, np.nan, 1.0, None, 0.5]
    expected = r2_score([0.0, 1.0, 0.5], numbers[rows], sample_weight=given)
    assert labeled_r2(numbers, y, weight) == pytest.approx(expected)


def test_a_score_of_no_row_or_of_another_number_of_rows_is_refused():
    with pytest.raises(ValueError, match="score needs at least one labelled row; y has none"):
        labeled_accuracy(np.zeros(2), [None, None], None, "auto", np.array([0, 1]))
    with pytest.raises(ValueError, match="labelled row"):
        labeled_r2(np.zeros(2), [np.nan, np.nan], None)
    for y, weight in (([0, 1, 1], None), ([0, 1], [1.0])):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            labeled_accuracy(np.zeros(2), y, weight, "auto", np.array([0, 1]))


def test_given_labels_stay_and_the_others_are_filled_in():
    rows = Rows(np.zeros((4, 1)))
    classes = read_as_given(rows, partition(["b", None, "a", None]), [1.0, 1.0, 1.0, 0.0])
    assert transduce_classes(np.array([[-1.0], [2.0], [3.0], [-1.0]]), classes).tolist() == ["b", "b", "a", "a"]
    numbers = read_as_given(rows, partition_targets([1.0, np.nan, 3.0, np.nan]))
    values = np.array([[9.0], [8.0], [7.0], [6.0]])
    assert transduce_numbers(values, numbers).tolist() == [1.0, 8.0, 3.0, 6.0]
    assert values[:, 0].tolist() == [9.0, 8.0, 7.0, 6.0]


def test_rows_without_a_label_are_refused_with_their_number_and_who_takes_them():
    message = r"Input y contains NaN: 2 rows of y have no label, and Me learns from .*, or use Other, which uses them"
    for y in ([1.0, None, np.nan], ["a", None, None]):
        with pytest.raises(ValueError, match=message):
            refuse_unlabeled(y, "Me", "Other")
    assert refuse_unlabeled([1, -1], "Me", "Other").tolist() == [1, -1]
    assert read_all_numbers([1.0, -1.0], "Me").targets.tolist() == [1.0, -1.0]


def test_minus_one_is_a_class_and_a_word_is_said_where_it_may_mark_rows(recwarn):
    assert read_all_labels([-1, 1, 1], "Me").classes.tolist() == [-1, 1]
    assert not recwarn
    with pytest.warns(UserWarning, match="y holds -1 and 2 other classes; Me treats -1 as a class") as caught:
        assert read_all_labels([-1, 0, 1], "Me").classes.tolist() == [-1, 0, 1]
    assert caught[0].filename == __file__
    assert "leave them out" in str(caught[0].message)
    with pytest.warns(UserWarning, match="unlabelled rows, write NaN or None there"):
        read_some_labels([-1, 0, 1], "Me")


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("estimator", [SSMKClassifier, SSMKRegressor, MKLClassifier])
def test_scores_of_partitions_are_those_in_memory(estimator, known):
    X, y, numbers = problem(60, 30)
    target = numbers if estimator is SSMKRegressor else np.where(y < 0, np.nan, y)
    labeled = ~np.isnan(target)
    model = estimator(random_state=0).fit(X[labeled], target[labeled])
    expected, weight = model.score(X, target), np.arange(1.0, 61)
    there = as_array(X, 3, known=known)
    frame = as_frame(X, target, 3)
    for labels in (target, as_array(target, 3, known=known), frame["y"]):
        assert model.score(there, labels) == pytest.approx(expected)
    assert model.score(X, frame["y"]) == pytest.approx(expected)
    weighted = model.score(there, frame["y"], sample_weight=as_array(weight, 3, known=known))
    assert weighted == pytest.approx(model.score(X, target, sample_weight=weight))
