"""Rows that live elsewhere: rows by number, reductions in order, lazy arrays, errors in one sentence."""

import operator

import numpy as np
import pytest
from checks.partitions import as_array, as_frame, problem

from kernelweave.distributed import rows as module
from kernelweave.distributed.rows import (
    PartitionedRows,
    bring_all,
    compute,
    inspect_blocks,
    is_partitioned,
    join_rows,
    read_blocks,
)

X = problem(200)[0]


def partitioned(n_partitions, values=X):
    blocks, _ = read_blocks(as_array(values, n_partitions), np.asarray)
    return PartitionedRows(blocks, inspect_blocks(blocks, len), values.shape[1], values.dtype)


@pytest.mark.parametrize("n_partitions", [1, 7, 64])
def test_rows_come_by_their_numbers_in_the_order_asked_for(n_partitions):
    rows, numbers = partitioned(n_partitions), np.array([199, 0, 7, 7, 100, 198])
    assert rows.shape == X.shape
    np.testing.assert_array_equal(rows[numbers], X[numbers])
    assert rows[np.empty(0, dtype=int)].shape == (0, X.shape[1])


def _name_rows(block, first):
    return [(first, len(block))]


@pytest.mark.parametrize("n_partitions", [1, 7, 64])
def test_reductions_visit_blocks_with_rows_in_their_order(n_partitions):
    visited = partitioned(n_partitions).reduce(_name_rows, operator.add)
    assert [first for first, _ in visited] == np.cumsum([0, *(length for _, length in visited)])[:-1].tolist()
    assert sum(length for _, length in visited) == len(X)
    assert all(length > 0 for _, length in visited)


def test_lazy_arrays_have_the_rows_of_the_blocks():
    rows, numbers = partitioned(7), np.array([3, 50, 199])
    np.testing.assert_allclose(rows.map(lambda block, first: 2 * block, (4,), float).compute(), 2 * X)
    np.testing.assert_array_equal(rows.numbers().compute(), np.arange(200))
    expected = np.zeros((200, 2))
    expected[numbers] = 1.5
    np.testing.assert_array_equal(rows.spread(numbers, np.full((3, 2), 1.5)).compute(), expected)
    halves = rows.convert(lambda block: block[:, :2], 2, float)
    np.testing.assert_array_equal(halves[numbers], X[numbers, :2])


def test_rows_in_memory_come_first_where_they_are_joined():
    joined = join_rows(X[:3], partitioned(7))
    np.testing.assert_array_equal(joined[np.arange(6)], np.concatenate([X[:3], X[:3]]))
    assert joined.shape == (203, 4)


def test_columns_in_several_chunks_are_put_together():
    array = as_array(X, 7, known=True).rechunk({1: 2})
    blocks, lengths = read_blocks(array, np.asarray)
    assert [block.shape[1] for block in compute(blocks) if len(block)] == [4] * 6
    assert sum(lengths) == 200


def test_collections_among_values_are_computed():
    rows = as_array(X, 7, known=False)
    array, number, frame, double = bring_all(rows, 3, as_frame(X, X[:, 0], 7), 2 * rows)
    np.testing.assert_array_equal(array, X)
    np.testing.assert_array_equal(double, 2 * X)
    assert number == 3
    assert frame.shape == (200, 5)
    assert bring_all(None, 1) == [None, 1]


def test_numpy_arrays_and_lists_are_not_partitioned():
    assert is_partitioned(as_array(X, 2))
    assert not any(is_partitioned(each) for each in (X, X.tolist(), None))


class KilledWorker(Exception):  # noqa: N818
    """Named as Dask's own."""


class CommClosedError(OSError):
    """Named as that of distributed."""


@pytest.mark.parametrize(
    ("raised", "expected", "words"),
    [
        (OSError("Timed out trying to connect"), ConnectionError, "The Dask cluster was lost"),
        (module.CancelledError("fit-1"), ConnectionError, "start the cluster again"),
        (KilledWorker("task"), MemoryError, "smaller partitions"),
        (FileNotFoundError("rows.parquet"), FileNotFoundError, "rows.parquet"),
        (PermissionError(13, "Permission denied"), PermissionError, "Permission denied"),
        (OSError(5, "Input/output error"), OSError, r"^\[Errno 5\] Input/output error"),
        (OSError("Couldn't deserialize thrift"), OSError, "^Couldn't deserialize thrift"),
        (CommClosedError("in <TCP>"), ConnectionError, "The Dask cluster was lost"),
        (TimeoutError("no answer"), ConnectionError, "The Dask cluster was lost"),
        (ValueError("in the user's function"), ValueError, "in the user's function"),
    ],
)
def test_a_failing_cluster_is_told_in_one_sentence(raised, expected, words):
    def fail():
        raise raised

    with pytest.raises(expected, match=words):
        module._guard(fail)


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dask.delayed", None)
    with pytest.raises(ImportError, match=r"pip install 'kernelweave\[dask\]'"):
        module._delayed()
