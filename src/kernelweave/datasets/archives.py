"""Archives of arrays that nobody has to trust: bounded, without pickles, and known by a checksum of their content.

An archive is what ``numpy.savez_compressed`` writes, with these arrays:

=============================== ==============================================================================
``X``                           the rows, dense; or ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` (CSR)
``y`` or ``Y``                  classes of shape (n_rows,), or targets of shape (n_rows, n_targets)
``idxLabs_k``, ``idxUnls_k``    original splits, one a row; without ``_k`` where there is one kind only
others                          one number a row, such as ``is_test``
=============================== ==============================================================================

The checksum is that of the arrays, not of the file: SHA-256 over names, shapes and numbers, values (``X``, ``X_data``,
``Y``) as float64 and everything else as int64, little-endian, rows in their order. So a copy that was stored with
other types or another compression is the same set, and one with a single other value is not.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import secrets
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arrays", "canonical", "checksum", "read_archive", "write_archive"]

Arrays = dict[str, NDArray[Any]]

MAX_BYTES = 1 << 27  # of all arrays of an archive; the largest set here has 44 MB as float32
MAX_ARRAYS = 32
VALUES = ("X", "X_data", "Y")
TORN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError, ValueError, OverflowError)


def read_archive(path: Path) -> Arrays:
    """The arrays of an archive, none of which is read before its size is known.

    A file that is torn, too large, or holds anything but arrays of numbers is refused with a ValueError.
    """
    with open(path, "rb") as file:
        try:
            return _read_arrays(zipfile.ZipFile(file))
        except TORN as error:
            raise ValueError(
                f"'{path}' is not an archive of arrays: {error}. Replace it by a sound copy, or delete it."
            ) from error


def write_archive(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an archive that exists whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def checksum(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the content, as the top of this module says.

    Examples
    --------
    >>> stored = {"X": np.array([[0.5, -0.0]]), "y": np.array([1], dtype=np.int8)}
    >>> again = {"y": np.array([1]), "X": np.array([[0.5, 0.0]], dtype=np.float32)}
    >>> checksum(stored) == checksum(again)
    True
    """
    digest = hashlib.sha256()
    for name, array in sorted(canonical(arrays).items()):
        digest.update(f"{name}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


def canonical(arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """The arrays as the checksum sees them: values as float64, with one zero only, and everything else as int64."""
    with np.errstate(invalid="ignore"):  # a NaN among row numbers becomes one that the checksum does not know
        return {
            name: np.asarray(array, dtype=np.float64) + 0.0 if name in VALUES else np.asarray(array, dtype=np.int64)
            for name, array in arrays.items()
        }


def _read_arrays(archive: zipfile.ZipFile) -> Arrays:
    members = archive.infolist()
    size = sum(member.file_size for member in members)
    if size > MAX_BYTES or len(members) > MAX_ARRAYS:
        raise ValueError(
            f"it unpacks to {len(members)} arrays of {size} bytes; {MAX_ARRAYS} of {MAX_BYTES} are allowed"
        )
    # zipfile gives out no more bytes than the directory says, and checks their CRC
    return {member.filename.removesuffix(".npy"): _read_array(archive.read(member)) for member in members}


def _read_array(raw: bytes) -> NDArray[Any]:
    """The array in the bytes of an ``.npy`` file, whose header must not promise more than there is."""
    file = io.BytesIO(raw)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"it holds an array in version {version} of the NumPy format, not (1, 0)")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.kind not in "biuf":
        raise ValueError(f"it holds an array of dtype {dtype}, and only numbers are read")
    size = dtype.itemsize
    for length in shape:
        size *= length
    if min(shape, default=0) < 0 or size != len(raw) - file.tell():
        raise ValueError(f"it holds an array whose header says {size} bytes, and there are {len(raw) - file.tell()}")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
