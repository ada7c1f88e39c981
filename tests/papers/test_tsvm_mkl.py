from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.svm import SVC

from kernelweave.datasets import load
from kernelweave.kernels.pointwise import RBF
from kernelweave.papers import data, tsvm_mkl
from kernelweave.papers.tsvm_mkl import PAPER, TABLE_1, TABLE_2

FIRST = next(TABLE_1.cells(PAPER.name, 1))


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """Neither the benchmark data nor a cache nor a server."""
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("KERNELWEAVE_CACHE", str(tmp_path))
    data._try_loading.cache_clear()
    yield
    data._try_loading.cache_clear()


@pytest.mark.parametrize("row", TABLE_1.rows)
def test_all_methods_and_tables_share_the_labels_of_a_trial(row):
    cell = replace(FIRST, row=row)
    found, labeled = tsvm_mkl.draw(cell, fast=True)
    other, other_labeled = tsvm_mkl.draw(replace(cell, method="TSVM", item="table 2"), fast=True)
    np.testing.assert_array_equal(labeled, other_labeled)
    np.testing.assert_array_equal(found.y, other.y)
    assert abs(found.X - other.X).sum() == 0
    assert len(found.y) == tsvm_mkl.N_FAST
    assert set(found.y) == {0, 1}
    again = tsvm_mkl.draw(replace(cell, trial=1), fast=True)
    assert not np.array_equal(found.y[labeled], again[0].y[again[1]]) or not np.array_equal(labeled, again[1])


def test_labels_are_the_original_ones_or_three_and_nine(data_dir):
    split = load("g50c").splits["50"][3]
    found, labeled = tsvm_mkl.draw(replace(FIRST, trial=3), fast=False)
    assert found.source == "original"
    np.testing.assert_array_equal(np.flatnonzero(labeled), np.sort(split[0]))
    for row in ("Link", "Page", "Pagelink"):
        found, labeled = tsvm_mkl.draw(replace(FIRST, row=row), fast=False)
        assert (labeled.sum(), found.y[labeled].sum()) == (12, 3)
        assert issparse(found.X)


def test_a_trial_without_an_original_split_is_refused(data_dir):
    with pytest.raises(ValueError, match=r"G50c has 10 original splits, and none for trial 10.*at most 10 trials"):
        TABLE_1.run(replace(FIRST, trial=10), False)


def test_the_chosen_settings_belong_to_the_grids():
    for chosen, grids in [
        (tsvm_mkl.LAPSVM_CHOSEN, (tsvm_mkl.SUPERVISED_COSTS, tsvm_mkl.RATIOS)),
        (tsvm_mkl.LAPSVM_CHOSEN_INDUCTIVE, (tsvm_mkl.SUPERVISED_COSTS, tsvm_mkl.RATIOS)),
        (tsvm_mkl.TSVM_CHOSEN, (tsvm_mkl.COSTS, tsvm_mkl.ENDS)),
        (tsvm_mkl.TSVM_MKL_CHOSEN, (tsvm_mkl.COSTS, tsvm_mkl.ENDS)),
    ]:
        assert chosen.keys() == tsvm_mkl.SETS.keys()
        for values in chosen.values():
            assert all(value in grid for value, grid in zip(values, grids, strict=True))
    assert tsvm_mkl.SVM_CHOSEN.keys() == tsvm_mkl.SETS.keys()
    assert set(tsvm_mkl.SVM_CHOSEN.values()) <= set(tsvm_mkl.SUPERVISED_COSTS)


def test_each_method_is_what_its_name_says():
    made = {method: tsvm_mkl.model(replace(FIRST, method=method), 550) for method in TABLE_1.methods}
    assert made["SVM"].ratio == 0
    assert (made["LapSVM"].n_neighbors, made["LapSVM"].degree, made["LapSVM"].ratio) == (50, 5, 1e4)
    assert pytest.approx(100 / 550) == made["TSVM"].C == made["TSVM-MKL"].C  # the paper's kernels have unit trace
    assert made["TSVM"].kernel == made["TSVM-MKL"].kernels[0] == RBF(gamma=0.5 / 17.5**2)
    assert len(made["TSVM-MKL"].kernels) == 5
    assert (made["TSVM-MKL, by folds"].C, made["TSVM-MKL, by folds"].ramp) == ("cv", "cv")
    assert made["TSVM-MKL, default"].kernels is made["TSVM, default"].kernel is None
    linear = tsvm_mkl.model(replace(FIRST, row="Link", method="LapSVM", item="table 2"), 800)
    assert (linear.metric, linear.C, linear.ratio) == ("cosine", *tsvm_mkl.LAPSVM_CHOSEN_INDUCTIVE["Link"])


def test_the_svm_is_that_of_scikit_learn_on_a_kernel_of_unit_spread_over_all_rows():
    cell = replace(FIRST, method="SVM")
    found, labeled = tsvm_mkl.draw(cell, fast=True)
    K = RBF(gamma=0.5 / 17.5**2).bind(found.X, np.random.default_rng(0)).block(slice(None), slice(None))
    K = K / (K.diagonal().mean() - K.mean())
    machine = SVC(C=tsvm_mkl.SVM_CHOSEN["G50c"], kernel="precomputed").fit(
        K[np.ix_(labeled, labeled)], found.y[labeled]
    )
    outputs = machine.decision_function(K[:, labeled])
    _, said = tsvm_mkl.fit(cell, found.X, found.y, labeled)
    clear = np.abs(outputs) > 0.02  # both machines stop at a gap of 1e-3
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(said[clear & ~labeled], (outputs > 0)[clear & ~labeled])


@pytest.mark.parametrize("method", ["SVM", "TSVM", "TSVM-MKL", "TSVM-MKL, default"])
@pytest.mark.parametrize("row", ["G50c", "Text", "Page"])
def test_cells_without_data_are_computed_on_generated_rows(no_data, row, method):
    values = TABLE_1.run(replace(FIRST, row=row, method=method), True)
    assert values["data"] == "generated"
    assert 0 <= values["unlabelled error"] < 40
    assert values == TABLE_1.run(replace(FIRST, row=row, method=method), True)


@pytest.mark.parametrize("method", ["LapSVM", "TSVM-MKL", "sklearn.neighbors:KNeighborsClassifier"])
def test_a_cell_of_the_inductive_table(no_data, method):
    values = TABLE_2.run(replace(FIRST, item="table 2", method=method), True)
    assert 0 <= values["unlabelled error"] < 60
    assert 0 <= values["test error"] < 60


def test_each_row_without_a_label_is_held_out_once(no_data, monkeypatch):
    cell = replace(FIRST, item="table 2", method="sklearn.dummy:DummyClassifier")
    found, labeled = tsvm_mkl.draw(cell, fast=True)
    times_given = np.zeros(len(found.y), dtype=int)
    fit = tsvm_mkl.fit

    def counting(cell, X, y, given):
        rows = [int(np.flatnonzero((row == found.X).all(axis=1))[0]) for row in X]
        times_given[rows] += 1
        np.testing.assert_array_equal(given, labeled[rows])
        return fit(cell, X, y, given)

    monkeypatch.setattr(tsvm_mkl, "fit", counting)
    monkeypatch.setattr(tsvm_mkl, "N_FAST_FOLDS", tsvm_mkl.N_FOLDS)
    tsvm_mkl.inductive(cell, True)
    np.testing.assert_array_equal(times_given, np.where(labeled, tsvm_mkl.N_FOLDS, tsvm_mkl.N_FOLDS - 1))


@pytest.mark.parametrize("method", ["sklearn.ensemble:HistGradientBoostingClassifier", "sklearn.svm:SVC"])
@pytest.mark.parametrize("item", PAPER.items, ids=lambda item: item.name)
def test_outside_methods_get_sparse_rows_only_if_they_take_them(no_data, item, method):
    values = item.run(replace(FIRST, item=item.name, row="Link", method=method), True)
    assert 0 <= values["unlabelled error"] <= 100
