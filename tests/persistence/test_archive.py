import io
import json
import zipfile

import numpy as np
import pytest
from checks.model_files import as_bytes, craft, read_parts, walk, write_parts
from scipy import sparse

from kernelweave.persistence import archive, load, save
from kernelweave.persistence.archive import check_npy, list_types, make_compact
from kernelweave.persistence.seal import add_seal


@pytest.fixture(name="path")
def saved(tmp_path):
    """A file of an array, a mask and a sparse matrix, in place of a model."""
    parts = {"array": np.arange(6.0), "mask": np.array([True, False]), "sparse": sparse.csr_array(np.eye(50))}
    save(parts, tmp_path / "m.skops")
    return tmp_path / "m.skops"


def refused(path, why):
    with pytest.raises(ValueError, match=f"m.skops is not a model file of kernelweave .*{why}"):
        load(path)


def test_entries_are_not_compressed_not_even_those_of_sparse_matrices(path):
    parts = read_parts(path)
    (inner,) = (content for name, content in parts.items() if name.endswith(".npz"))
    for content in (path.read_bytes(), inner):
        with zipfile.ZipFile(io.BytesIO(content)) as opened:
            assert {entry.compress_type for entry in opened.infolist()} == {zipfile.ZIP_STORED}
    np.testing.assert_array_equal(load(path)["sparse"].toarray(), np.eye(50))


def test_a_compact_schema_means_the_same_in_fewer_bytes():
    skops = pytest.importorskip("skops.io")
    content = {"labels": np.array(["a", "b", None] * 200, dtype=object)}
    data = skops.dumps(content)
    compact = make_compact(data)
    assert len(compact) < 0.6 * len(data)
    np.testing.assert_array_equal(skops.loads(compact)["labels"], content["labels"])


def test_a_compressed_file_is_refused(path):
    parts = read_parts(path)
    parts["zeros.npy"] = as_bytes(np.save, np.zeros(10**6))
    write_parts(path, parts, compression=zipfile.ZIP_DEFLATED)
    refused(path, "entries are compressed")


def test_a_compressed_sparse_matrix_is_refused(path):
    parts = read_parts(path)
    (name,) = (name for name in parts if name.endswith(".npz"))
    arrays = np.load(io.BytesIO(parts[name]))
    parts[name] = as_bytes(np.savez_compressed, **arrays)
    write_parts(path, parts)
    refused(path, "entries are compressed")


def test_entries_that_share_their_bytes_are_refused(path, monkeypatch):
    entries = zipfile.ZipFile(path).infolist()
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda _: entries * 3)
    refused(path, "larger than the file")


def test_a_schema_is_measured_before_it_is_read(path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_SCHEMA_BYTES", 1000)
    monkeypatch.setattr(json, "loads", None)
    refused(path, "at most 1,000 are read")


def test_a_schema_of_lists_alone_is_refused_before_it_is_read(path, monkeypatch):
    with zipfile.ZipFile(path) as opened:
        schema = opened.read("schema.json")
    assert 2 * archive.MIN_OPENED_BYTES * (schema.count(b"{") + schema.count(b"[")) < len(schema)  # far from the bound
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("schema.json", f"[{','.join(['{}'] * 1000)}]")
    path.write_bytes(add_seal(file.getvalue()))
    monkeypatch.setattr(archive, "MAX_OPENED", 100)
    monkeypatch.setattr(json, "loads", None)
    refused(path, "consists of lists alone")


def test_a_schema_that_is_too_large_to_be_read_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_SCHEMA_BYTES", 1000)
    with pytest.raises(ValueError, match=r"cannot be saved: .*at most 1,000 are read"):
        save(list("abcdefghij"), tmp_path / "m.skops")


@pytest.mark.parametrize("schema", [[], {}, {"content": 3}, None, "text"])
def test_a_schema_of_something_else_is_refused(path, schema):
    write_parts(path, {"schema.json": schema})
    with pytest.raises(ValueError, match=r"m.skops is not a model file"):
        load(path)


def test_a_schema_of_any_depth_is_refused_with_a_sentence(path):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("schema.json", "[" * 10**6)
    path.write_bytes(add_seal(file.getvalue()))
    refused(path, "")


@pytest.mark.parametrize("protocol", [0, 1, True, None, "2"])
def test_an_older_protocol_is_refused(path, protocol):
    parts = read_parts(path)
    parts["schema.json"]["protocol"] = protocol
    write_parts(path, parts)
    refused(path, "protocol")


def test_many_objects_from_one_entry_are_refused(path):
    def change(node):
        arrays = [each for each in walk(node) if each["__loader__"] == "NdArrayNode"]
        return {**node, "content": {f"a{k}": {**arrays[0], "__id__": 1000 + k} for k in range(50)}}

    craft(path, change)
    refused(path, "several objects are read from one entry")


def test_an_array_that_is_described_again_is_read_once(path, monkeypatch):
    one = np.arange(3.0)
    save([one] * 50, path)
    n_read = []
    monkeypatch.setattr(archive, "check_npy", lambda content: n_read.append(1) or check_npy(content))
    assert len(load(path)) == 50
    assert len(n_read) == 1


def header(**changed):
    file = io.BytesIO()
    fields = {"descr": "<f8", "fortran_order": False, "shape": (2,), **changed}
    np.lib.format.write_array_header_1_0(file, fields)
    return file.getvalue()


@pytest.mark.parametrize(
    "content, why",
    [
        (header(shape=(10**15,)) + bytes(16), "larger or smaller"),
        (header(shape=(10**15,), descr="<U0"), "larger or smaller"),
        (header(shape=(-1, -2)) + bytes(16), "larger or smaller"),
        (header() + bytes(8), "larger or smaller"),
        (header() + bytes(24), "larger or smaller"),
        (header(descr="|O") + bytes(16), "type [|]O"),
        (header(descr="|V8") + bytes(16), "type [|]V8"),
        (header(descr=[("a", "<f8")]) + bytes(16), "type [|]V8"),
        (header(descr="|b1") + b"\x00\x02", "true and false"),
        (b"\x93NUMPY\x09\x00", "EOF"),
        (b"nothing", "magic"),
        (b"", "magic|EOF"),
    ],
)
def test_an_array_that_is_not_what_its_header_says_is_refused(content, why):
    with pytest.raises(ValueError, match=why):
        check_npy(content)


@pytest.mark.parametrize(
    "array",
    [np.arange(3.0), np.array(2), np.zeros((0, 3)), np.array([], dtype="U5"), np.array(["a", "bc"]), np.eye(2).T],
)
def test_arrays_as_numpy_writes_them_pass(array):
    check_npy(as_bytes(np.save, array))


def test_foreign_types_are_named_before_any_array_is_read():
    skops = pytest.importorskip("skops.io")
    data = make_compact(skops.dumps({"a": np.arange(3), "b": json.loads}))
    assert list_types(data)[1] == ["json.loads"]
