import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC
from sklearn.utils import get_tags

from kernelweave.papers.outside import acceptable, fit_outside, outside


class Seen:
    """An estimator that remembers what it was given."""

    def fit(self, X, y):
        self.X, self.y = X, y
        return self

    def predict(self, X):
        return np.zeros(len(X))


class SemiSupervised(Seen):
    semi_supervised = True


def test_a_class_a_function_and_a_nested_name_give_an_estimator():
    assert isinstance(outside("sklearn.svm:SVC"), SVC)
    assert isinstance(outside("sklearn:svm.SVC"), SVC)
    assert outside("L,Q,R, 1-norm") is None


@pytest.mark.parametrize(
    "name, words",
    [
        ("no_such_module:SVC", "no_such_module"),
        ("sklearn.svm:Nothing", "Nothing"),
        ("sklearn.multiclass:OneVsRestClassifier", "estimator"),  # needs an argument
        ("sklearn.preprocessing:StandardScaler", "no fit and predict"),
        (":SVC", "module:Class"),
    ],
)
def test_what_gives_no_estimator_is_refused(name, words):
    with pytest.raises(ValueError, match="--with") as caught:
        outside(name)
    assert words in str(caught.value)


def test_a_supervised_estimator_sees_labelled_rows_only():
    X, y, labeled = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 1, 0]), np.arange(6) < 4
    seen = fit_outside(Seen(), X, y, labeled)
    assert seen.X.ravel().tolist() == [0, 1, 2, 3]
    assert seen.y.tolist() == [0, 1, 0, 1]


def test_a_semi_supervised_estimator_sees_all_rows():
    X, y, labeled = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 1, 0]), np.arange(6) < 4
    seen = fit_outside(SemiSupervised(), X, y, labeled)
    assert seen.y.tolist() == [0, 1, 0, 1, -1, -1]
    assert len(fit_outside(LabelSpreading(), X, y, labeled).transduction_) == 6


@pytest.mark.parametrize("make", [Seen, SemiSupervised])
def test_sparse_rows_are_made_dense_for_an_estimator_that_does_not_take_them(make):
    X, y, labeled = csr_array(np.eye(4)), np.array([0, 1, 0, 1]), np.arange(4) < 3
    given = np.eye(4)[: 4 if make is SemiSupervised else 3]
    np.testing.assert_array_equal(fit_outside(make(), X, y, labeled).X, given)


def test_sparse_rows_stay_sparse_for_an_estimator_that_takes_them():
    X = csr_array(np.eye(4))
    assert issparse(acceptable(SVC(), X)) == get_tags(SVC()).input_tags.sparse  # which scikit-learn 1.6 does not say
    assert fit_outside(SVC(), X, np.array([0, 1, 0, 1]), np.arange(4) < 3).support_vectors_.shape[1] == 4
    assert acceptable(Seen(), np.eye(4)) is not None
    assert not issparse(acceptable(Seen(), X))
