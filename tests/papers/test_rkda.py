from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import euclidean_distances
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from kernelweave import RBF, RKDAClassifier
from kernelweave.papers import rkda
from kernelweave.papers.rkda import FIGURE, PAPER, TABLE_1, TABLE_2

FIRST = {item.name: next(item.cells(PAPER.name, 1)) for item in PAPER.items}


@pytest.mark.parametrize("row", [*rkda.BINARY, *rkda.SEVERAL])
def test_a_partition_has_all_classes_in_the_shares_of_the_paper(row):
    (X, y), (X_test, y_test), _ = rkda.partition(row, 0, fast=True)
    n_classes = (rkda.BINARY | rkda.SEVERAL)[row].n_classes
    n_test = round(rkda.FAST_N_EACH * (0.2 if n_classes == 2 else 0.4))
    np.testing.assert_array_equal(np.bincount(y_test), np.full(n_classes, n_test))
    np.testing.assert_array_equal(np.bincount(y), np.full(n_classes, rkda.FAST_N_EACH - n_test))
    assert X.shape[1] == X_test.shape[1]


def test_partitions_differ_between_trials_and_not_between_calls():
    (X, _), _, _ = rkda.partition("Wine (3)", 0, fast=False)  # comes with scikit-learn
    (again, _), _, _ = rkda.partition("Wine (3)", 0, fast=False)
    (other, _), _, _ = rkda.partition("Wine (3)", 1, fast=False)
    np.testing.assert_array_equal(X, again)
    assert not np.array_equal(X, other)


def test_columns_are_scaled_by_the_training_rows_alone():
    (X, _), (X_test, _), _ = rkda.partition("Wine (3)", 0, fast=False)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    assert np.abs(X_test.mean(axis=0)).max() > 0.01
    (X, _), _, _ = rkda.partition("Sonar", 0, fast=True)
    np.testing.assert_allclose([X.min(axis=0), X.max(axis=0)], [np.zeros(X.shape[1]), np.ones(X.shape[1])], atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_by_one_decomposition_are_those_of_the_classifier(n_classes):
    rng = np.random.default_rng(0)
    X, y = rkda.clouds(rng, n_classes)
    X_test = X + rng.normal(scale=2.0, size=X.shape)
    gamma, ridges = 0.03, (1e-8, 1e-4, 1e-2, 1.0)
    K, K_test = (np.exp(-gamma * euclidean_distances(A, X, squared=True)) for A in (X, X_test))
    found = rkda.discriminant_classes(K, K_test, y, ridges)
    for ridge, classes in zip(ridges, found, strict=True):
        slow = RKDAClassifier([RBF(gamma=gamma)], ridge=ridge).fit(X, y).predict(X_test)
        np.testing.assert_array_equal(classes, slow)
        assert 0.0 < np.mean(classes != y) < 0.8


def test_folds_choose_what_a_search_of_the_grid_scores_best():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = 1.5 * rng.normal(size=(3, 2))[y] + rng.normal(size=(60, 2))
    folds = StratifiedKFold(rkda.FAST_N_FOLDS, shuffle=True, random_state=0)
    gammas = [width**-2 for width in rkda.FAST_CV_WIDTHS]
    machines = [SVC(C=C, gamma=gamma) for gamma in gammas for C in rkda.FAST_COSTS]
    discriminants = [RKDAClassifier([RBF(gamma=gamma)], ridge=ridge) for gamma in gammas for ridge in rkda.FAST_RIDGES]
    for choose, grid in ((rkda.choose_svm, machines), (rkda.choose_rkda, discriminants)):
        scores = [cross_val_score(model, X, y, cv=folds).mean() for model in grid]
        assert cross_val_score(choose(X, y, True), X, y, cv=folds).mean() == max(scores) > min(scores)


@pytest.mark.parametrize("method", TABLE_1.methods)
def test_a_cell_of_the_first_table(method):
    values = TABLE_1.run(replace(FIRST["table 1"], row="Heart", method=method), True)
    assert 50 < values["accuracy"] <= 100


def test_a_cell_that_is_not_printed_is_computed():
    assert ("Cancer", "SDP_Kim") in {(cell.row, cell.method) for cell in TABLE_1.cells(PAPER.name, 1)}
    assert "SDP_Kim" not in PAPER.published()["table 1"]["rows"]["Cancer"]


@pytest.mark.parametrize("method", [*TABLE_2.methods, "sklearn.neighbors:NearestCentroid"])
def test_a_cell_of_the_second_table(method):
    values = TABLE_2.run(replace(FIRST["table 2"], method=method), True)
    assert 80 < values["accuracy"] <= 100


def test_a_bar_of_the_figure_is_a_cell_of_the_table():
    for name in ("SDP_theta", "SDP_theta,lambda"):
        for form, printed in ((f"{name}, exact", f"{name}, exact"), (f"{name}, approximate", name)):
            bar = FIGURE.run(replace(FIRST["figure 1"], row="Wine (3)", method=form), True)
            cell = TABLE_2.run(replace(FIRST["table 2"], row="Wine (3)", method=printed), True)
            assert bar["accuracy"] == cell["accuracy"]
            assert bar["time"] > 0


def test_forms_differ_for_several_classes_only():
    (X, y), _, _ = rkda.partition("Wine (3)", 0, fast=True)
    forms = {method: rkda.model(method, (X, y), True).formulation for method in ("SDP_theta", "SDP_theta, exact")}
    assert forms == {"SDP_theta": "joint", "SDP_theta, exact": "exact"}
    assert rkda.model("SDP_theta", (X, np.minimum(y, 1)), True).formulation == "exact"


def test_the_learned_ridge_is_next_to_nothing_with_the_widths_of_the_paper(recwarn):
    values = TABLE_1.run(replace(FIRST["table 1"], row="Sonar", method="SDP_theta,lambda"), True)
    assert values["ridge"] < 1e-8
    assert sum(values["weights"]) == pytest.approx(1.0, abs=1e-3)
    assert not recwarn.list
