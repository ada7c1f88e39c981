"""The table of the stored sets: consistent in itself, and true of the data."""

import re

import numpy as np
import pytest
from scipy.sparse import issparse

from kernelweave.datasets import list_datasets, load
from kernelweave.datasets.archives import checksum
from kernelweave.datasets.records import STORED, Dataset

ALL = list_datasets()
BOOK = {"digit1", "usps_ssl", "coil2", "bci", "g241c", "coil6", "g241n", "text_ssl"}
PROTOCOLS = {
    **{name: {"10": 12, "100": 12} for name in BOOK},
    **{name: {"50": 10} for name in ("g50c", "uspst", "text_macwin")},
}
SPARSE = {"text_ssl", "text_macwin", "webkb_page", "webkb_link", "webkb_pagelink"}


@pytest.mark.parametrize("record", ALL, ids=lambda record: record.name)
def test_a_record_is_consistent_in_itself(record):
    assert re.fullmatch(r"[a-z0-9_]+", record.name)
    assert record.task == ("classification" if record.n_classes else "regression")
    if record.n_classes:
        assert sum(record.class_counts) == record.n_rows
        assert len(record.target_names) == record.n_classes
    assert record.name in record.description
    assert record.origin in record.description
    assert "\n\n" not in record.description


def test_checksums_are_those_of_sha256_and_all_differ():
    sums = {record.checksum for record in STORED.values()}
    assert len(sums) == len(STORED)
    assert all(re.fullmatch(r"[0-9a-f]{64}", each) for each in sums)


def test_a_record_shows_what_a_user_asks_for():
    record = Dataset(name="a", n_rows=3, n_columns=2, class_counts=(1, 2), origin="here", note="hidden")
    assert repr(record) == "Dataset(name='a', n_rows=3, n_columns=2, origin='here')"


def test_a_description_tells_codes_and_names_of_classes():
    sets = {record.name: record.description.splitlines()[0] for record in ALL}
    assert sets["sonar"] == "sonar: 208 rows, 60 columns; classes -1 (rock): 97, +1 (mine): 111"
    assert sets["wine"] == "wine: 178 rows, 13 columns; classes 0: 59, 1: 71, 2: 48"
    assert sets["g50c"] == "g50c: 550 rows, 50 columns; classes -1: 275, +1: 275"
    assert sets["wifi_icdm2007"] == "wifi_icdm2007: 2642 rows, 101 columns; targets x, y"


def test_what_scikit_learn_brings_along_has_the_checksum():
    bundled = [record for record in STORED.values() if record.bundled]
    assert [record.name for record in bundled] == ["wine"]
    for record in bundled:
        assert checksum(record.bundled()) == record.checksum


@pytest.mark.data
def test_every_file_of_the_folder_is_a_set_and_every_set_is_a_file(data_dir):
    assert {path.stem for path in data_dir.glob("*.npz")} == set(STORED)


@pytest.mark.data
@pytest.mark.parametrize("record", ALL, ids=lambda record: record.name)
def test_a_record_is_true_of_the_data(record):
    bunch = load(record.name, download_if_missing=False)
    assert bunch.data.shape == (record.n_rows, record.n_columns)
    assert issparse(bunch.data) == (record.name in SPARSE)
    assert bunch.data.dtype == np.float64
    assert np.isfinite(bunch.data.data if issparse(bunch.data) else bunch.data).all()
    assert record.description == bunch.DESCR
    assert bunch.target_names.tolist() == list(record.target_names)
    if record.task == "regression":
        assert bunch.target.shape == (record.n_rows, len(record.target_names))
        return
    classes, counts = np.unique(bunch.target, return_counts=True)
    assert classes.tolist() == ([-1, 1] if record.n_classes == 2 else list(range(record.n_classes)))
    assert tuple(counts) == record.class_counts


@pytest.mark.data
@pytest.mark.parametrize("record", ALL, ids=lambda record: record.name)
def test_original_splits_are_disjoint_and_cover_all_rows(record):
    bunch = load(record.name, download_if_missing=False)
    splits = bunch.get("splits", {})
    assert {name: len(pairs) for name, pairs in splits.items()} == PROTOCOLS.get(record.name, {})
    for n_labels, pairs in splits.items():
        for labeled, unlabeled in pairs:
            assert len(labeled) == int(n_labels)
            assert np.array_equal(np.sort(np.r_[labeled, unlabeled]), np.arange(record.n_rows))
            assert set(bunch.target[labeled]) == set(bunch.target)


@pytest.mark.data
@pytest.mark.parametrize("name, n_test", [("usps_full", 2007), ("wifi_icdm2007", 2137)])
def test_the_test_rows_are_the_last(name, n_test):
    is_test = load(name).is_test
    assert is_test.dtype == bool
    assert np.array_equal(np.flatnonzero(is_test), np.arange(len(is_test) - n_test, len(is_test)))


@pytest.mark.data
def test_rows_of_text_have_length_one_unless_they_are_zero():
    zero = {"webkb_page": 5, "webkb_link": 5}
    for name in sorted(SPARSE - {"webkb_pagelink"}):
        X = load(name).data
        length = np.sqrt((X * X).sum(axis=1))
        assert np.sum(length == 0) == zero.get(name, 0)
        # rounded to float32 when they were stored
        np.testing.assert_allclose(length[length > 0], 1.0, atol=1e-6)
