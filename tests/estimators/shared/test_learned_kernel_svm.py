import numpy as np
import pytest
from checks.fit_order import labeled_rows
from sklearn.datasets import make_moons
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    KernelLibrary,
    LabelAwareKernelLearner,
    LearnedKernelClassifier,
    LearnedKernelRegressor,
    Linear,
    ManifoldKernel,
    OrderedSpectralKernelLearner,
)
from kernelweave.estimators.shared import learned_kernel_svm

LEARNERS = {
    "label-aware": LabelAwareKernelLearner(RBF(1.0)),
    "mixed": LabelAwareKernelLearner(RBF(1.0), leave_one_out=True, weighting="align", extra_kernels=[Linear()]),
    "aligned": AlignedKernelLearner([RBF(1.0), ManifoldKernel(RBF(1.0), 5)]),
    "ordered": OrderedSpectralKernelLearner(RBF(5.0)),
}
PAIR = [LEARNERS["label-aware"], LEARNERS["mixed"]]


def moons(seed=0, n=60, n_labeled=24):
    X, classes = make_moons(n, noise=0.1, random_state=seed)
    return X, np.where(np.arange(n) < n_labeled, classes, -1), classes


def curve(seed=0, n=60, n_labeled=25):
    X = np.random.default_rng(seed).uniform(-2, 2, size=(n, 2))
    truth = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2])
    return X, np.where(np.arange(n)[:, None] < n_labeled, truth, np.nan), truth


def recorded_folds(monkeypatch):
    """The folds of the next fits, as they are made."""
    folds, original = [], learned_kernel_svm.kernel_folds
    monkeypatch.setattr(learned_kernel_svm, "kernel_folds", lambda *args: folds.append(original(*args)) or folds[-1])
    return folds


@pytest.mark.parametrize("name", LEARNERS)
def test_the_loss_of_folds_is_that_of_fits_without_the_held_out_labels(name, monkeypatch):
    X, y, classes = moons(6)
    folds = recorded_folds(monkeypatch)
    model = LearnedKernelClassifier(LEARNERS[name], tol=1e-6, random_state=0).fit(X, y)
    assert len(folds[0]) == 5
    assert sorted(np.concatenate([held for _, held in folds[0]])) == list(range(24))
    labeled = labeled_rows(X, np.arange(60) < 24)
    for C, score in zip(model.cv_results_["param_C"], model.cv_results_["mean_test_score"], strict=True):
        errors = 0
        for held in (labeled[places] for _, places in folds[0]):
            masked = np.where(np.isin(np.arange(60), held), -1, y)
            other = LearnedKernelClassifier(LEARNERS[name], C=C, tol=1e-6).fit(X, masked)
            errors += np.sum(other.predict(X[held]) != classes[held])
        assert score == pytest.approx(1 - errors / 24)
    best = int(np.argmax(model.cv_results_["mean_test_score"]))
    assert model.cv_results_["params"][best] == {"learner": 0, "C": model.C_}


def test_the_loss_of_numbers_is_that_of_fits_without_the_held_out_targets(monkeypatch):
    X, y, truth = curve(7)
    folds = recorded_folds(monkeypatch)
    model = LearnedKernelRegressor(PAIR, C=2.0, epsilon=0.1, tol=1e-9, random_state=0).fit(X, y)
    labeled = labeled_rows(X, np.arange(60) < 25)
    for score, learner in zip(model.cv_results_["mean_test_score"], PAIR, strict=True):
        total = 0.0
        for held in (labeled[places] for _, places in folds[0]):
            masked = np.where(np.isin(np.arange(60), held)[:, None], np.nan, y)
            other = LearnedKernelRegressor(learner, C=2.0, epsilon=0.1, tol=1e-9).fit(X, masked)
            total += np.sum(((other.predict(X[held]) - truth[held]) / y[:25].std(axis=0)) ** 2) / 2
        assert -score == pytest.approx(total / 25, rel=1e-3)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_labels_at_random_are_not_predicted(leave_one_out):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(120, 5)), rng.permutation(np.repeat([0, 1], 60))
    learner = LabelAwareKernelLearner(RBF(multiple=30.0), leave_one_out=leave_one_out)
    model = LearnedKernelClassifier(learner, random_state=0).fit(X, y)
    assert max(model.cv_results_["mean_test_score"]) < 0.65  # 120 coins: 0.5 +- 0.046; the best of four
    if not leave_one_out:  # features that have seen the labels seem to predict all
        Z = learner.fit(X, y).transform(X)
        assert cross_val_score(SVC(kernel="linear", C=10.0), Z, y).mean() > 0.95


def test_of_a_list_the_better_learner_is_chosen():
    X, y, classes = moons(9, n=120, n_labeled=40)
    poor, good = AlignedKernelLearner(Linear()), LabelAwareKernelLearner(RBF(multiple=5.0))
    model = LearnedKernelClassifier([poor, good], random_state=0).fit(X, y)
    assert isinstance(model.learner_, LabelAwareKernelLearner)
    assert model.cv_results_["param_learner"].tolist() == [0] * 4 + [1] * 4
    assert model.score(X, classes) > 0.95
    fixed = LearnedKernelClassifier([good, poor], C=10.0).fit(X, y)
    assert isinstance(fixed.learner_, LabelAwareKernelLearner)
    assert len(fixed.cv_results_["params"]) == 2


def test_of_equals_the_first_learner_is_chosen():
    X, y, _ = moons(9)
    named = [AlignedKernelLearner(KernelLibrary([(name, RBF(1.0))])) for name in ("first", "second")]
    model = LearnedKernelClassifier(named, random_state=0).fit(X, y)
    assert model.learner_.base_kernels_[0]["name"] == "first"
    assert model.cv_results_["mean_test_score"][0] == model.cv_results_["mean_test_score"][4]


@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_classes_of_few_labels_are_learned_without_folds(n_labels):
    X, _, classes = moons(10)
    rows = np.concatenate([np.flatnonzero(classes == k)[:n_labels] for k in (0, 1)])
    y = np.where(np.isin(np.arange(60), rows), classes, -1)
    model = LearnedKernelClassifier(random_state=0).fit(X, y)
    assert (len(model.cv_results_) > 0) == (n_labels == 3)
    assert n_labels == 3 or model.C_ == 10.0
    np.testing.assert_array_equal(model.transduction_[rows], classes[rows])


@pytest.mark.parametrize("n_labels", [2, 3, 6])
def test_folds_of_one_and_the_same_number_are_left_out(n_labels):
    X, _, _ = curve(11)
    y = np.full(60, np.nan)
    y[:n_labels] = 0.0
    y[0] = 1.0
    model = LearnedKernelRegressor(random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_costs_of_numbers_are_in_units_of_each_target():
    X, y, _ = curve(12)
    model = LearnedKernelRegressor(LEARNERS["label-aware"], epsilon=0.0, random_state=0, tol=1e-8).fit(X, y)
    scaled = LearnedKernelRegressor(LEARNERS["label-aware"], epsilon=0.0, random_state=0, tol=1e-8).fit(
        X, y * [1e-3, 1e4]
    )
    np.testing.assert_allclose(scaled.C_, model.C_ * [1e-3, 1e4])
    np.testing.assert_allclose(scaled.predict(X) / [1e-3, 1e4], model.predict(X), atol=2e-3)


# Bind once, fit many


def test_all_folds_share_one_binding(monkeypatch):
    X, y, _ = moons(13)
    calls, original = [], KernelLibrary.bind
    monkeypatch.setattr(
        KernelLibrary, "bind", lambda self, *args, **kw: calls.append(self) or original(self, *args, **kw)
    )
    model = LearnedKernelClassifier(PAIR, random_state=0).fit(X, y)
    assert len(model.cv_results_["params"]) == 8
    assert [library.names for library in calls] == [("RBF(gamma=1.0)",), ("Linear()",)]  # what is new to each learner


def test_binding_and_comparison_are_announced(capsys):
    X = np.random.default_rng(0).normal(size=(40, 3))
    learner = LabelAwareKernelLearner(RBF(), n_eigenvectors=5, n_landmarks=20)
    LearnedKernelClassifier(learner, verbose=1).fit(X, (X[:, 0] > 0).astype(int))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "LearnedKernelClassifier: learner 1 of 1, 1 base kernel on 40 rows, eigenvectors of 20 landmarks",
        "LearnedKernelClassifier: 5 folds compare 1 learner and 4 costs",
    ]
