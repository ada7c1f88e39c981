from dataclasses import replace

import numpy as np
import pytest

from kernelweave.papers import cg_boost
from kernelweave.papers.cg_boost import FIGURE, PAPER, TABLE
from kernelweave.papers.runner import compute, plan

FIRST = next(TABLE.cells(PAPER.name, 1))


def test_all_methods_of_a_trial_share_its_rows():
    (train, _, _), _ = cg_boost.split(FIRST, fast=True)
    (other, _, _), _ = cg_boost.split(replace(FIRST, method="R, 1-norm", item="figure 1", row="convergence"), fast=True)
    np.testing.assert_array_equal(train[0], other[0])
    (other, _, _), _ = cg_boost.split(replace(FIRST, trial=1), fast=True)
    assert not np.array_equal(train[0], other[0])


def test_training_validation_and_test_rows_are_apart():
    parts, _ = cg_boost.split(FIRST, fast=True)
    assert tuple(len(y) for _, y in parts) == cg_boost.FAST_SIZES
    rows = np.vstack([X for X, _ in parts])
    assert len(np.unique(rows, axis=0)) > 0.99 * len(rows)  # two digits may be the same image


@pytest.mark.parametrize("method", ["L,Q,R, 1-norm", "L+Q, 2-norm", "sklearn.neighbors:KNeighborsClassifier"])
def test_a_cell_of_the_table(method):
    cell = replace(FIRST, method=method)
    values = TABLE.run(cell, True)
    assert 0 <= values["training error"] < 30
    assert 0 < values["test error"] < 30
    counts = {name: value for name, value in values.items() if name.endswith("columns")}
    if method.startswith("L+Q"):
        assert counts["L columns"] == counts["Q columns"] > 0  # one column of the sum is one of each
        assert len(counts) == 2
    elif ":" in method:
        assert counts == {}
    else:
        assert len(counts) == 3
        assert sum(counts.values()) > 0


def test_all_models_of_the_table_can_be_made():
    for method in TABLE.methods:
        assert len(cg_boost.candidates(method, fast=False)) == len(
            cg_boost.OWN_COSTS if method in TABLE.own else cg_boost.COSTS
        )


def test_the_cells_of_the_figure():
    found = {task.cell.method: compute(task) for task in plan([PAPER], kind="figure", number=1, fast=True)}
    assert set(found) == set(FIGURE.methods)
    values = {method: record["values"] for method, record in found.items()}
    for method in ("regular", "stratified"):
        assert values[method]["objective"][-1] < values[method]["objective"][0]
        assert len(values[method]["columns"]) == len(values[method]["objective"])
    assert values["stratified"]["columns computed"] < values["regular"]["columns computed"]
    for method in ("proper C", "too large C"):
        assert min(values[method]["validation error"]) < 30
