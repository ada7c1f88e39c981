"""Predictions of Dask collections are lazy, and those of arrays."""

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from checks.partitions import as_array, as_frame, problem
from scipy import sparse

from kernelweave.distributed.lazy import lazy_on_blocks, map_rows

X, y, _ = problem(60)


class Doubling:
    """Answers with one number, or a row, for each row."""

    n_calls = 0

    @lazy_on_blocks
    def predict(self, X, wide=False, factor=2):
        self.n_calls += 1
        values = factor * np.asarray(X, dtype=float)
        return values if wide else values.sum(axis=1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("n_partitions", [1, 7])
def test_answers_are_those_of_the_rows_in_memory(n_partitions, known):
    model, rows = Doubling(), as_array(X, n_partitions, known=known)
    lazy = model.predict(rows)
    assert model.n_calls == 1  # the row that tells the shape
    np.testing.assert_allclose(lazy.compute(), model.predict(X))
    np.testing.assert_allclose(model.predict(rows, wide=True).compute(), 2 * X)
    np.testing.assert_allclose(model.predict(rows, True).compute(), 2 * X)
    np.testing.assert_allclose(model.predict(rows, True, factor=3).compute(), 3 * X)


def test_frames_keep_their_columns():
    frame = as_frame(X, y, 7)[["x0", "x1"]]
    lazy = map_rows(lambda block: block["x1"].to_numpy(), frame)
    np.testing.assert_allclose(lazy.compute(), X[:, 1])


def test_answers_may_stand_beside_the_columns_of_parquet_files(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    for k in range(4):
        frame.iloc[15 * k : 15 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet", index=False)
    there = dd.read_parquet(tmp_path)
    rows = there[["a"]].fillna(0.0)
    assert len(rows.to_delayed()) < there.npartitions  # joined by Dask
    lazy = map_rows(lambda block: list(block.columns) == ["a"] and block["a"].to_numpy(), rows)
    np.testing.assert_array_equal(there.assign(answer=lazy)["answer"].compute(), X[:, 0])


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_blocks_arrive_as_they_are(container):
    rows = as_array(X, 7, known=True).map_blocks(container)
    lazy = map_rows(lambda block: np.asarray(block.sum(axis=1)).ravel(), rows)
    np.testing.assert_allclose(lazy.compute(), X.sum(axis=1))


def test_rows_need_two_dimensions():
    with pytest.raises(ValueError, match="Expected rows of a 2D Dask array; got 1 dimension"):
        Doubling().predict(as_array(y, 2))
