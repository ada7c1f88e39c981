from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave import RBF, LabelAwareKernelLearner, LearnedKernelClassifier
from kernelweave.papers import label_aware
from kernelweave.papers.label_aware import FIGURE_1, FIGURE_2, FIGURE_3, PAPER, TABLE, PrintedLearner

FIRST = next(TABLE.cells(PAPER.name, 1))


def test_all_methods_of_a_trial_see_the_same_labels():
    found, labeled = label_aware.draw("Digit1", 0, fast=True)
    again, same = label_aware.draw("Digit1", 0, fast=True)
    _, other = label_aware.draw("Digit1", 1, fast=True)
    np.testing.assert_array_equal(found.X, again.X)
    np.testing.assert_array_equal(labeled, same)
    assert (labeled != other).any()
    assert np.bincount(found.y[labeled]).tolist() == [label_aware.FAST_PER_CLASS] * 2


@pytest.mark.parametrize("method", [*TABLE.methods, "sklearn.svm:SVC"])
def test_a_cell_of_the_table(method):
    values = TABLE.run(replace(FIRST, method=method), True)
    assert 0 <= values["error"] < 50
    assert values["time"] > 0
    if ":" not in method:
        assert 0 <= values["alignment"] <= 1


@pytest.mark.parametrize("epsilon", [1e-3, 1.0])
def test_epsilon_is_added_to_the_matrix_of_the_vectors_as_printed(epsilon):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(np.arange(60) < 30, X[:, 0] * X[:, 1] > 0, -1)
    learner = PrintedLearner(RBF(gamma=1.0), n_eigenvectors=8, ridge=epsilon).fit(X, y)
    K, labeled = rbf_kernel(X, gamma=1.0), y >= 0
    Y = np.eye(2)[y[labeled]]
    votes = K[:, labeled] @ Y / K[:, labeled].sum(axis=1, keepdims=True)
    B = np.column_stack([votes, np.linalg.eigh(K)[1][:, :-9:-1]])[labeled]
    B, T = B - B.mean(axis=0), Y - Y.mean(axis=0)
    M, a = np.square(B.T @ B) + epsilon * np.eye(10), np.square(B.T @ T).sum(axis=1)
    L = np.linalg.cholesky(M)
    weights = nnls(L.T, np.linalg.solve(L, a))[0]
    assert learner.weights_ == pytest.approx(weights / weights.sum(), abs=1e-6)


def test_libsvm_on_a_learned_kernel_is_the_machine_of_this_library():
    found, labeled = label_aware.draw("Digit1", 0, fast=True)
    y = np.where(labeled, found.y, -1)
    learner = LabelAwareKernelLearner(RBF(multiple=5.0), n_eigenvectors=20)
    theirs = label_aware.libsvm(learner.fit(found.X, y).kernel_, found.y, labeled, 1.0)
    ours = LearnedKernelClassifier(learner, C=1.0, tol=1e-6).fit(found.X, y).transduction_[~labeled]
    assert np.mean(theirs != ours) < 0.01


def test_the_alignment_is_its_definition():
    rng = np.random.default_rng(0)
    features, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    H = np.eye(30) - 1 / 30
    K, T = H @ features @ features.T @ H, H @ (y[:, None] == y).astype(float) @ H
    expected = np.sum(K * T) / np.linalg.norm(K) / np.linalg.norm(T)
    assert label_aware.alignment(features, y) == pytest.approx(expected)


def test_label_aware_vectors_are_better_aligned_than_most_of_the_laplacian():
    cells = [replace(next(FIGURE_1.cells(PAPER.name, 1)), method=method) for method in FIGURE_1.methods]
    aware, plain = (FIGURE_1.run(cell, True) for cell in cells)
    assert len(aware["score"]) == len(aware["place"]) == 2
    assert min(aware["score"]) > np.quantile(plain["score"], 0.9)


@pytest.mark.parametrize("method", FIGURE_2.methods)
def test_places_are_found(method):
    values = FIGURE_2.run(replace(next(FIGURE_2.cells(PAPER.name, 1)), method=method), True)
    assert values["mean squared error"] < 0.05
    assert len(values["x"]) == len(values["true x"]) == len(values["y"]) > 100


@pytest.mark.parametrize("row", [label_aware.N_UNLABELED[0], "5.0"])
@pytest.mark.parametrize("method", FIGURE_3.methods)
def test_a_point_of_the_curves(row, method):
    values = FIGURE_3.run(replace(next(FIGURE_3.cells(PAPER.name, 1)), row=row, method=method), True)
    assert values["time"] > 0
    assert 0 < values["mean squared error"] < 0.1


def test_generated_places_stand_in_where_there_are_no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    monkeypatch.setenv("KERNELWEAVE_CACHE", str(tmp_path))
    X, Y, labeled, source = label_aware.places("Wi-Fi", fast=True)
    assert source == "generated"
    assert len(X) == len(Y) == len(labeled)
    assert 0 <= Y.min() <= Y.max() <= 1
