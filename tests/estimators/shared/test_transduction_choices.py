"""Choices of transductive machines by folds of the labelled rows: whether unlabelled ones are kept, costs and ramps."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC

from kernelweave import RBF, Linear, TSVMClassifier, TSVMMKLClassifier
from kernelweave.solvers.result import Status

pytestmark = pytest.mark.filterwarnings("ignore:The class shares are")  # some small samples do
each_tsvm = pytest.mark.parametrize("model", [TSVMClassifier(RBF()), TSVMMKLClassifier([RBF(), Linear()])], ids=str)


def blobs(seed=0, n=80, n_labeled=16, n_classes=2, distance=2.0):
    """Overlapping clusters, the first rows labelled, -1 the others."""
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(n_classes), np.arange(n_classes), rng.integers(0, n_classes, size=n - 2 * n_classes)]
    X = rng.normal(size=(n, 3)) + distance * np.eye(n_classes, 3)[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


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
    options = {"C": 1.0, "scale": None, "tol": 1e-9, "C_unlabeled": 10.0, "random_state": 0}
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
    model = TSVMClassifier(RBF(0.5), C=1.0, class_prior=0.95, safe=True, scale=None, tol=1e-9, random_state=0).fit(X, y)
    assert model.status_ is Status.SUPERVISED
    assert model.class_prior_ is None
    svm = SVC(C=1.0, tol=1e-9, gamma=0.5).fit(X[:16], y[:16])
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(X), atol=3e-4)


def many_columns(n=160, n_labeled=20):
    """Two clusters that only one of many columns tells apart: more than so few labels show."""
    truth = np.arange(n) % 2
    X = np.random.default_rng(1).normal(size=(n, 40)) + 4.0 * truth[:, None] * np.eye(1, 40)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


@each_tsvm
def test_unlabelled_rows_that_help_are_kept(model):
    X, y, truth = many_columns()
    fits = [clone(model).set_params(random_state=seed, tol=1e-8, safe=True).fit(X, y) for seed in range(6)]
    kept = [safe for safe in fits if safe.status_ is Status.CONVERGED]
    assert len(kept) >= 3  # with one seed in eight folds do not tell
    plain = clone(kept[0]).set_params(safe=False).fit(X, y)
    supervised = clone(model).set_params(C_unlabeled=0.0, class_prior=None).fit(X, y)
    for safe in kept:
        np.testing.assert_allclose(safe.decision_function(X), plain.decision_function(X), atol=1e-3)
        assert np.mean(safe.transduction_ != truth) < np.mean(supervised.transduction_ != truth)


@each_tsvm
def test_unlabelled_rows_that_change_nothing_in_folds_are_left_out(model):
    X, y, _ = blobs(16, distance=20.0)  # no row is wrong, with them or without
    assert clone(model).set_params(safe=True, random_state=0).fit(X, y).status_ is Status.SUPERVISED
    assert clone(model).set_params(safe=True).fit(X[:16], y[:16]).status_ is Status.CONVERGED  # there are none


@each_tsvm
def test_cross_validation_fills_what_was_chosen(model):
    X, y, _ = blobs(17)
    found = clone(model).set_params(C="cv", ramp="cv", random_state=0).fit(X, y)
    assert found.C_ in (1.0, 10.0, 100.0)
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
    said = r'got C="cv" and ramp="cv" and safe=True, .* class 0 has only one .* C is 10, ramp is 0.4, unlabelled rows'
    with pytest.warns(UserWarning, match=said) as caught:
        model = TSVMClassifier(RBF(), C="cv", ramp="cv", safe=True).fit(X, y)
    assert caught[0].filename == __file__
    assert (model.C_, model.ramp_, model.cv_results_, model.status_) == (10.0, 0.4, {}, Status.SUPERVISED)
    alone = TSVMClassifier(RBF(), C_unlabeled=0.0, class_prior=None).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-2)
