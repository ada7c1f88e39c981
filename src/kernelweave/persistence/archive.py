"""What a model file holds, checked before anything of it is built: sizes, kinds of entries, names of types, arrays.

The file is an archive of skops: ``schema.json`` describes objects by nodes, and arrays are entries of their own. No
entry is compressed, so that a file needs no more memory than its size says.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from scipy.sparse import load_npz

from .names import is_loaded
from .nodes import DAMAGED, NodeReader, name_type

MAX_SCHEMA_BYTES = 2**26  # 0.5 million nodes, which take about 1 GB when they are read
# Opened lists and dicts that any schema may have, and bytes for each of more: objects that skops describes take 60, and
# empty lists 3, which become 30 times as large when they are read.
MAX_OPENED, MIN_OPENED_BYTES = 10**6, 16
MIN_PROTOCOL = 2  # of skops >= 0.15
# Nodes that hold data of their own, apart from the names that their types may have.
SPARSE_NODE, ARRAY_NODE = "SparseMatrixNode", "NdArrayNode"
FILE_NODES = {SPARSE_NODE, ARRAY_NODE, "BytesNode", "BytearrayNode"}
KINDS = "biufcUSMm"  # of dtypes: bool, numbers, texts, times


def make_compact(data: bytes) -> bytes:
    """Return an archive of skops as model files are written: nothing compressed, the schema without blanks."""
    out = io.BytesIO()
    with ZipFile(io.BytesIO(data)) as old, ZipFile(out, "w", ZIP_STORED) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                content = json.dumps(json.loads(content), separators=(",", ":")).encode()
            elif name.endswith(".npz"):
                content = _store_arrays(content)
            new.writestr(name, content)
    return out.getvalue()


def _store_arrays(content: bytes) -> bytes:
    """Return arrays of numpy that were compressed, not compressed."""
    out = io.BytesIO()
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        np.savez(out, **arrays)
    return out.getvalue()


def read_schema(archive: ZipFile) -> dict[str, Any]:
    """Return the description of the objects in an archive; refuse one that is too large, also once it is read."""
    n_bytes = archive.getinfo("schema.json").file_size
    if n_bytes > MAX_SCHEMA_BYTES:
        raise ValueError(
            f"its description of objects has {n_bytes:,} bytes, and at most {MAX_SCHEMA_BYTES:,} are read; classes "
            "that are whole numbers need fewer than texts"
        )
    content = archive.read("schema.json")
    if content.count(b"{") + content.count(b"[") > max(MAX_OPENED, n_bytes / MIN_OPENED_BYTES):
        raise ValueError(f"its description of objects consists of lists alone; {DAMAGED}")
    schema = json.loads(content)
    if not isinstance(schema, dict):
        raise ValueError("its description of objects is none")
    return schema


def read_format(schema: dict[str, Any]) -> Any:
    """Return the number of the format that a description says; None where it is none of kernelweave's."""
    content = schema.get("content")
    if not isinstance(content, dict) or not {"format", "model", "about"} <= content.keys():
        return None
    return json.loads(content["format"]["content"])


def list_types(data: bytes) -> tuple[list[str], list[str]]:
    """Return the names of types in an archive, and those of them that are not loaded from files.

    Raises
    ------
    ValueError
        If sizes or arrays do not fit, with what is wrong.
    """
    with ZipFile(io.BytesIO(data)) as archive:
        _check_entries(archive, len(data))
        schema = read_schema(archive)
        protocol = schema.get("protocol")
        if type(protocol) is not int or protocol < MIN_PROTOCOL:
            raise ValueError(f"its protocol is {protocol!r:.20}; {DAMAGED}")
        nodes = list(_walk_nodes(schema))
        names = {(node["__loader__"], name_type(node)) for node in nodes}
        foreign = {name for loader, name in names if not is_loaded(loader, name)}
        if foreign:
            return sorted({name for _, name in names}), sorted(foreign)
        _check_arrays(archive, nodes)
    reader = NodeReader()
    reader.read(schema)
    reader.check()
    return reader.list_names(), []


def _check_entries(archive: ZipFile, n_bytes: int) -> None:
    """Refuse entries that are compressed, or that share bytes: they would need more memory than the file has."""
    entries = archive.infolist()
    if any(entry.compress_type != ZIP_STORED for entry in entries):
        raise ValueError(f"its entries are compressed, which a model file's are not; {DAMAGED}")
    if sum(entry.file_size for entry in entries) > n_bytes:
        raise ValueError(f"its entries are larger than the file; {DAMAGED}")


def _walk_nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the description of each object in a file of skops."""
    waiting: list[Any] = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
            if isinstance(item.get("__loader__"), str):  # a dict of the model may have such a key, not such a value
                yield item
        elif isinstance(item, list):
            waiting.extend(item)


def _check_arrays(archive: ZipFile, nodes: list[dict[str, Any]]) -> None:
    """Refuse entries that do not hold what their nodes say, and such that several objects are read from."""
    owners: dict[str, int] = {}
    checked: set[tuple[str, str, str]] = set()
    for node in nodes:
        if node["__loader__"] not in FILE_NODES or "file" not in node:
            continue
        number = node.get("__id__")
        if type(number) is not int or not number or owners.setdefault(node["file"], number) != number:
            raise ValueError(f"several objects are read from one entry; {DAMAGED}")  # any number of large arrays
        kind = (node["__loader__"], name_type(node), node["file"])
        if kind in checked:  # an object that is described again, which costs few bytes
            continue
        checked.add(kind)
        if node["__loader__"] == ARRAY_NODE:
            shape = check_npy(archive.read(node["file"]))
            if shape and name_type(node) != "numpy.ndarray":
                raise ValueError(f"it holds an array in place of one value; {DAMAGED}")
        elif node["__loader__"] == SPARSE_NODE:
            _check_sparse(name_type(node), archive.read(node["file"]))


def check_npy(content: bytes) -> tuple[int, ...]:
    """Return the shape of an array of numpy's format; refuse other bytes than its header says, and objects."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    n_values = math.prod(shape)
    if dtype.kind not in KINDS:
        raise ValueError(f"it holds an array of type {dtype.str}; {DAMAGED}")
    is_right = min(shape, default=0) >= 0 and (n_values <= 1 or dtype.itemsize > 0)
    if not is_right or n_values * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"it holds an array that is larger or smaller than its header says; {DAMAGED}")
    values = content[file.tell() :]
    if dtype.kind == "b" and values.translate(None, b"\0\1"):
        raise ValueError(f"it holds an array of true and false with other values; {DAMAGED}")
    return tuple(shape)


def _check_sparse(name: str, content: bytes) -> None:
    """Refuse a sparse matrix that is not of the named type, or whose indices point outside of it."""
    try:
        with ZipFile(io.BytesIO(content)) as arrays:
            _check_entries(arrays, len(content))
            for entry in arrays.namelist():
                check_npy(arrays.read(entry))
        matrix = load_npz(io.BytesIO(content))
    except Exception as error:  # whatever numpy, scipy and zipfile raise
        raise ValueError(f"it holds a {name} that cannot be read, {error}: {DAMAGED}") from error
    if f"{type(matrix).__module__}.{type(matrix).__name__}" != name or not _is_sound(matrix):
        raise ValueError(f"it holds a {name} whose indices point outside of it: {DAMAGED}")


def _is_sound(matrix: Any) -> bool:
    """Return whether all indices point into the matrix.

    ``matrix.check_format()`` does not say so: where the last pointer, which is the number of entries, is not positive,
    it looks at no other.
    """
    arrays = pointers, indices, data = matrix.indptr, matrix.indices, matrix.data
    if matrix.ndim != 2 or any(array.ndim != 1 for array in arrays) or data.dtype.kind not in "biuf":
        return False
    n_lines, n_places = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    if len(pointers) != n_lines + 1 or pointers[0] != 0 or not pointers[-1] == len(indices) == len(data):
        return False
    return bool(np.all(pointers[:-1] <= pointers[1:]) and np.all((indices >= 0) & (indices < n_places)))
