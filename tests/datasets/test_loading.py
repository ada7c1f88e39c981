"""Where a set is looked for, what is refused, and what the user is told."""

import dataclasses
import json

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import issparse

from kernelweave.datasets import list_datasets, load, loading, openml
from kernelweave.datasets.archives import checksum, read_archive, write_archive
from kernelweave.datasets.openml import OpenML
from kernelweave.datasets.records import STORED, Stored

TINY = {
    "X": np.array([[0.5, 1.0], [-2.0, 3.0], [0.5, 0.1]], dtype=np.float32),
    "y": np.array([-1, 1, -1], dtype=np.int8),
}
TINY_ROWS = ["-2,3,b", "0.5,0.1,a", "0.5,1,a"]
SPARSE = {
    "X_data": np.array([1.0, 2.0], dtype=np.float32),
    "X_indices": np.array([1, 0], dtype=np.int32),
    "X_indptr": np.array([0, 1, 1, 2], dtype=np.int32),
    "X_shape": np.array([3, 2]),
    "Y": np.array([[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], dtype=np.float32),
    "idxLabs_1": np.array([[0], [2]], dtype=np.uint16),
    "idxUnls_1": np.array([[1, 2], [0, 1]], dtype=np.uint16),
    "is_test": np.array([0, 0, 1], dtype=np.int8),
}


@pytest.fixture(autouse=True)
def table(monkeypatch, bare, tmp_path):
    """Two more sets in the table: one on OpenML, and one that is not."""
    about = {"n_rows": 3, "n_columns": 2, "origin": "made up"}
    source = OpenML(77, {"a": -1, "b": 1})
    tiny = Stored(name="tiny", class_counts=(2, 1), checksum=checksum(TINY), openml=source, **about)
    sparse = Stored(name="sparse", target_names=("u", "v"), checksum=checksum(SPARSE), **about)
    for record in (tiny, sparse):
        monkeypatch.setitem(STORED, record.name, record)
    ranks = np.argsort(np.lexsort((TINY["y"], *TINY["X"].T)))
    (tmp_path / "row_order.json").write_text(json.dumps({"tiny": ranks.tolist()}))
    monkeypatch.setattr(openml, "ROW_ORDER", tmp_path / "row_order.json")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The folder that KERNELWEAVE_DATA names, with both sets."""
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path / "data"))
    write_archive(tmp_path / "data" / "tiny.npz", TINY)
    write_archive(tmp_path / "data" / "sparse.npz", SPARSE)
    return tmp_path / "data"


def test_a_set_of_the_folder_is_loaded(folder, server):
    bunch = load("tiny")
    assert_array_equal(bunch.data, TINY["X"].astype(float))
    assert bunch.data.dtype == np.float64
    assert_array_equal(bunch.target, [-1, 1, -1])
    assert bunch.target.dtype == np.int64
    assert bunch.target_names.tolist() == ["-1", "+1"]
    assert bunch.DESCR == "tiny: 3 rows, 2 columns; classes -1: 2, +1: 1\nmade up"
    assert server.asked == []


def test_sparse_data_targets_splits_and_test_rows_are_loaded(folder):
    bunch = load("sparse", dtype=np.float32)
    assert issparse(bunch.data)
    assert bunch.data.format == "csr"
    assert bunch.data.indices.dtype == np.int32
    assert_array_equal(bunch.data.toarray(), [[0, 1], [0, 0], [2, 0]])
    assert bunch.data.dtype == bunch.target.dtype == np.float32
    assert_array_equal(bunch.target, SPARSE["Y"])
    assert list(bunch.splits) == ["1"]
    assert [[part.tolist() for part in pair] for pair in bunch.splits["1"]] == [[[0], [1, 2]], [[2], [0, 1]]]
    assert bunch.is_test.tolist() == [False, False, True]


@pytest.mark.parametrize("dtype", [np.float32, "float64"])
def test_the_type_is_the_one_asked_for(folder, dtype):
    assert load("tiny", dtype=dtype).data.dtype == np.dtype(dtype)


def test_two_loads_share_no_memory(folder):
    load("tiny").data[:] = 0.0
    assert_array_equal(load("tiny").data, TINY["X"].astype(float))


def test_wine_needs_no_folder_and_no_network(server, bare):
    assert load("wine").data.shape == (178, 13)
    assert server.asked == []
    assert not bare.exists()


def test_what_openml_has_is_downloaded_once_and_kept(server, bare):
    server.serve(77, TINY_ROWS, "ab", 2)
    first = load("tiny")
    assert_array_equal(first.data, TINY["X"].astype(float))
    assert [path.name for path in bare.iterdir()] == ["tiny.npz"]
    server.answers.clear()
    asked = len(server.asked)
    again = load("tiny", download_if_missing=False)
    assert_array_equal(again.data, first.data)
    assert_array_equal(again.target, first.target)
    assert len(server.asked) == asked


def test_the_folder_comes_before_the_cache(folder, bare):
    write_archive(bare / "tiny.npz", {"X": np.zeros((1, 1))})
    assert load("tiny").data.shape == (3, 2)
    (folder / "tiny.npz").unlink()
    with pytest.raises(ValueError, match=r"cache.*lacks y"):
        load("tiny")


def test_the_cache_is_in_the_data_folder_of_scikit_learn_unless_it_is_named(monkeypatch, tmp_path, server):
    monkeypatch.delenv("KERNELWEAVE_CACHE")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "learn"))
    server.serve(77, TINY_ROWS, "ab", 2)
    load("tiny")
    assert read_archive(tmp_path / "learn" / "kernelweave" / "tiny.npz").keys() == TINY.keys()
    monkeypatch.delenv("SCIKIT_LEARN_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert loading._cache_folder() == tmp_path / "scikit_learn_data" / "kernelweave"
    assert not (tmp_path / "scikit_learn_data").exists()


def test_a_set_that_is_nowhere_names_both_ways(bare):
    with pytest.raises(FileNotFoundError) as error:
        load("tiny", download_if_missing=False)
    for part in ("KERNELWEAVE_DATA (it is not set)", "tiny.npz", "set 77 from OpenML", str(bare), "KERNELWEAVE_CACHE"):
        assert part in str(error.value)


def test_a_set_that_openml_lacks_says_so(monkeypatch, tmp_path, server):
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"without that file.*sparse\.npz.*OpenML does not have this one"):
        load("sparse")
    assert server.asked == []


BROKEN = {
    "nothing there": lambda server: server.answers.clear(),
    "no JSON": lambda server: server.answers.update({"/api/v1/json/data/77": b"<html>"}),
    "other JSON": lambda server: server.answers.update({"/api/v1/json/data/77": b"[]"}),
    "no file": lambda server: server.answers.pop("/data/v1/download/77"),
    "another file": lambda server: server.answers.update({"/data/v1/download/77": b"torn"}),
    "no number": lambda server: server.serve(77, ["x,3,b", "0.5,0.1,a", "0.5,1,a"], "ab", 2),
    "a row too few": lambda server: server.serve(77, TINY_ROWS[:2], "ab", 2),
    "ragged rows": lambda server: server.serve(77, ["1,2,3,4,5", "1"], "ab", 2),
    "no server": lambda server: server.http.server_close(),
}


@pytest.mark.parametrize("way", BROKEN)
def test_a_download_that_fails_names_both_ways_and_leaves_nothing(server, bare, way):
    server.serve(77, TINY_ROWS, "ab", 2)
    if way == "no server":
        server.http.shutdown()
    BROKEN[way](server)
    with pytest.raises(
        FileNotFoundError, match=r"OpenML did not give it: .*Either set .*KERNELWEAVE_DATA.* or let load"
    ):
        load("tiny")
    assert not bare.exists()


@pytest.mark.parametrize("row", ["-2,3.0001,b", "-2,3,a"])
def test_a_download_with_another_value_or_class_is_refused_and_not_kept(server, bare, row):
    server.serve(77, [row, *TINY_ROWS[1:]], "ab", 2)
    with pytest.raises(ValueError, match=r"set 77 of OpenML is not the one that is meant.*checksum"):
        load("tiny")
    assert not bare.exists()


def test_a_cache_that_cannot_be_written_to_is_named(server, bare):
    server.serve(77, TINY_ROWS, "ab", 2)
    bare.write_text("a file where the folder should be")
    with pytest.raises(OSError, match=r"cannot be kept as .*KERNELWEAVE_CACHE"):
        load("tiny")


def without(*names):
    return lambda arrays: {name: array for name, array in arrays.items() if name not in names}


DAMAGED = {
    "no y": ("tiny", without("y"), "lacks y: tiny has 3 rows and 2 columns"),
    "no X": ("tiny", without("X"), "lacks X_data, X_indices, X_indptr, X_shape"),
    "no part of X": ("sparse", without("X_indptr"), "lacks X_indptr"),
    "no splits": ("sparse", without("idxLabs_1", "idxUnls_1"), "checksum"),
    "a row too few": ("tiny", lambda a: {**a, "X": a["X"][:2]}, r"has the shape \(2, 2\), but tiny has 3 rows"),
    "a shape that is none": ("sparse", lambda a: {**a, "X_shape": np.array(3)}, r"has the shape \(3,\)"),
    "another value": ("tiny", lambda a: {**a, "X": a["X"] + 1}, r"checksum is [0-9a-f]{12}\.\.\., expected"),
    "another class": ("tiny", lambda a: {**a, "y": -a["y"]}, "checksum"),
    "another order": ("tiny", lambda a: {name: array[::-1] for name, array in a.items()}, "checksum"),
    "one more array": ("tiny", lambda a: {**a, "z": a["y"]}, "checksum"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_an_archive_that_is_not_the_set_is_refused(folder, damage):
    name, change, message = DAMAGED[damage]
    write_archive(folder / f"{name}.npz", change(STORED_ARRAYS[name]))
    with pytest.raises(ValueError, match=message) as error:
        load(name)
    assert str(folder) in str(error.value)
    assert "Replace it by a sound copy" in str(error.value)


STORED_ARRAYS = {"tiny": TINY, "sparse": SPARSE}


def test_a_torn_archive_is_refused_and_nothing_else_is_tried(folder, server):
    path = folder / "tiny.npz"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"tiny\.npz' is not an archive of arrays"):
        load("tiny")
    assert server.asked == []


@pytest.mark.parametrize("name, near", [("tinny", "'tiny'"), ("usps_8v3", "'usps_3v8'"), ("Wine", "'wine'")])
def test_an_unknown_name_is_refused_with_those_near_it(name, near):
    with pytest.raises(ValueError, match=f"There is no set '{name}'. Did you mean .*{near}.*list_datasets"):
        load(name)


@pytest.mark.parametrize("name", [None, 3, "../tiny", ""])
def test_only_names_of_the_table_are_looked_for(folder, name):
    with pytest.raises(ValueError, match="There is no set"):
        load(name)


def test_the_list_has_every_name_once():
    names = [record.name for record in list_datasets()]
    assert len(names) == len(set(names))
    assert {"g50c", "usps_3v8", "wifi_icdm2007_distinct"} <= set(names)


def test_records_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        list_datasets()[0].n_rows = 1
