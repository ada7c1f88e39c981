"""Which estimators take unlabelled rows, and how labels are written for them."""

import numpy as np
import pytest
from checks.partly_labeled import NearestMean, Recorder
from common.estimators import cases, sample
from numpy.testing import assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from kernelweave import SemiSupervisedCalibration, SSMKClassifier
from kernelweave.labels import partition, partition_targets
from kernelweave.model_selection.semi_supervised import (
    innermost,
    named_markers,
    refuse_inner_marker,
    takes_unlabeled,
    write_labels,
)


@cases("classes", "numbers", "features")
def test_our_estimators_say_truly_whether_they_take_unlabelled_rows(case):
    X, y = sample(case)
    y = np.where(np.arange(len(y)) < 20, y, np.nan)
    if takes_unlabeled(case.model()):
        case.model().fit(X, y)
    else:
        with pytest.raises(ValueError, match="no label"):
            case.model().fit(X, y)


TAKE = [LabelPropagation(), LabelSpreading(), SelfTrainingClassifier(SVC()), Recorder(), SSMKClassifier()]
DO_NOT = [SVC(), NearestMean(), CalibratedClassifierCV(SSMKClassifier()), "passthrough", None]


@pytest.mark.parametrize("wrap", [
    lambda model: model,
    lambda model: make_pipeline(StandardScaler(), model),
    lambda model: GridSearchCV(model, {}),
    lambda model: SemiSupervisedCalibration(model),
    lambda model: GridSearchCV(make_pipeline(StandardScaler(), SemiSupervisedCalibration(model)), {}),
])  # fmt: skip
@pytest.mark.parametrize("model, expected", [(m, True) for m in TAKE] + [(m, False) for m in DO_NOT])
def test_pipelines_and_searches_are_asked_by_the_estimator_inside(wrap, model, expected):
    assert innermost(wrap(model)) is model
    assert takes_unlabeled(wrap(model)) is expected


def test_classes_are_written_with_none_and_numbers_with_nan():
    part = partition([-1, 2, 1, -1])
    written = write_labels(Recorder(), part)
    assert written.y.tolist() == [None, 2, 1, None]
    assert written.hide(np.array([1])).tolist() == [None, None, 1, None]
    assert_array_equal(written.classes, [1, 2])
    numbers = write_labels(Recorder(), partition_targets([[np.nan, None], [2.0, 1.0]], several=True))
    assert_array_equal(numbers.hide(np.array([1])), np.full((2, 2), np.nan))
    assert_array_equal(numbers.y, [[np.nan, np.nan], [2.0, 1.0]])
    assert numbers.classes is None


def test_scikit_learns_semi_supervised_estimators_read_codes():
    written = write_labels(GridSearchCV(LabelSpreading(), {}), partition(["b", None, "a"]))
    assert_array_equal(written.y, [1, -1, 0])
    assert_array_equal(written.hide(np.array([0])), [-1, -1, 0])
    assert_array_equal(written.classes, [0, 1])


def test_a_marker_that_only_the_inner_estimator_knows_is_refused():
    model = make_pipeline(StandardScaler(), SSMKClassifier(unlabeled="?"))
    assert named_markers(model) == ["?"]
    assert named_markers(SSMKClassifier()) == named_markers(LogisticRegression()) == []
    part = partition(["a", "b", "?"], unlabeled=None)
    with pytest.raises(ValueError, match=r"Pass unlabeled='\?' to Owner too"):
        refuse_inner_marker(model, part, None, "Owner")
    refuse_inner_marker(model, partition(["a", "b", "?"], unlabeled="?"), "?", "Owner")
