"""Coordinates of rows, and records of doubtful labels."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist

from kernelweave.estimators.auto.trust import MAX_COORDINATES, list_suspects, map_rows
from kernelweave.kernels.scaling import PowerScaler
from kernelweave.model_selection.suspects import rank_suspect_numbers, rank_suspects


def test_few_columns_of_a_table_are_kept_and_scaled():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 100.0, 1e-3]
    points = map_rows(X, seed=0)
    assert points.shape == (50, 3)
    assert points.dtype == np.float32
    expected = PowerScaler().fit_transform(X)
    np.testing.assert_allclose(pdist(points), pdist(expected), rtol=1e-5)  # single precision


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_many_columns_of_one_unit_that_lie_in_a_plane_keep_their_distances(container):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2)) @ rng.uniform(0.9, 1.1, size=(2, 40))
    points = map_rows(container(X), seed=0)
    assert points.shape == (60, MAX_COORDINATES)
    np.testing.assert_allclose(pdist(points), pdist(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (5, 30), (40, 1), (2, 2)])
def test_few_rows_or_columns_are_mapped_too(shape):
    X = np.random.default_rng(0).normal(size=shape)
    for rows in (X, sparse.csr_array(X)):
        points = map_rows(rows, seed=0)
        assert len(points) == shape[0]
        assert np.isfinite(points).all()


def test_rows_with_missing_values_are_mapped():
    X = np.random.default_rng(0).normal(size=(40, 30))
    X[3, :10] = np.nan
    points = map_rows(X, seed=0)
    assert np.isfinite(points).all()
    assert np.isfinite(map_rows(X[:, :4], seed=0)).all()


def test_suspects_are_named_by_row_label_and_suggestion():
    probabilities = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    codes = np.array([0, 0, 0])
    classes = np.array(["cat", "dog"])
    suspects = rank_suspects(probabilities, codes)
    records = list_suspects(suspects, np.array([10, 20, 30]), classes[codes], classes[suspects.suggestions], 2)
    assert [record["row"] for record in records] == [20, 30]
    assert records[0] == {"row": 20, "given": "cat", "suggested": "dog", "score": pytest.approx(0.8)}
    assert type(records[0]["given"]) is str
    assert len(list_suspects(suspects, np.arange(3), codes, codes, None)) == 3


def test_suspect_numbers_are_plain_numbers():
    predictions, targets = np.array([1.0, 2.0, 3.0]), np.array([1.1, 9.0, 3.2])
    record = list_suspects(rank_suspect_numbers(predictions, targets), np.arange(3), targets, predictions, 1)[0]
    assert (record["row"], record["given"], record["suggested"]) == (1, 9.0, 2.0)
    assert type(record["given"]) is float
