from dataclasses import replace

import numpy as np
import pytest

from kernelweave.papers import ssmk
from kernelweave.papers.ssmk import FIGURE, PAPER, SIZES

FIRST = next(FIGURE.cells(PAPER.name, 1))


def test_unlabelled_and_test_rows_stay_while_labels_grow():
    X, y, labeled, test, _ = ssmk.split(FIRST, 20, fast=True)
    more_X, more_y, more_labeled, more_test, _ = ssmk.split(replace(FIRST, row="50", method="SSMK"), 50, fast=True)
    assert (labeled.sum(), more_labeled.sum()) == (20, 50)
    np.testing.assert_allclose(X[~labeled] / X.max(), more_X[~more_labeled] / more_X.max())  # the scale may differ
    np.testing.assert_allclose(test[0] / X.max(), more_test[0] / more_X.max())
    np.testing.assert_array_equal(y[labeled], more_y[:20])


def test_both_kernels_have_a_mean_diagonal_of_one():
    X, *_ = ssmk.split(FIRST, 20, fast=True)
    for kernel in ssmk.LIBRARY:
        assert kernel.bind(X, np.random.default_rng(0)).diag().mean() == pytest.approx(1.0)


def test_a_draw_of_labels_has_both_classes():
    y = np.array([1, 1, 1, 1, 0, 1])
    assert ssmk.with_both_classes(np.arange(6), y, 3).tolist() == [2, 3, 4]
    assert ssmk.with_both_classes(np.arange(6), y, 5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("method", ["IMK", "SSMK", "SSMK, default", "sklearn.semi_supervised:LabelSpreading"])
def test_a_point_of_the_figure(method):
    values = FIGURE.run(replace(FIRST, row="50", method=method), True)
    assert 0 <= values["test error"] < 45
    assert 0 <= values["unlabelled error"] < 45


def test_generated_columns_reach_the_optimum_of_the_whole_problem():
    cell = next(SIZES.cells(PAPER.name, 1))
    whole, grown = (SIZES.run(replace(cell, method=method), True) for method in ("IMK", "SSMK"))
    assert grown["objective"] == pytest.approx(whole["objective"], rel=1e-5)
    assert whole["columns"] == 2 * (100 + ssmk.FAST_N_UNLABELED)
    assert grown["columns"] < whole["columns"]
    for values in (whole, grown):
        assert values["functions"] == values["L functions"] + values["R functions"] <= 100  # a vertex: one a row
