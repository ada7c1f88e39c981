"""Tables in gzip archives, and what else a zip archive may be: a workbook, arrays of numpy, or neither."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from ..errors import ErrorCode, KernelweaveError
from ..files import Writer, reason

# What reading a damaged zip archive raises: wrong sums, headers and compressed data, methods that are not known.
BROKEN_ZIP = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError),
    *(ValueError, KeyError, RuntimeError, OverflowError),
)
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"


def unpack(path: Path, raw: bytes) -> bytes:
    """Return the content of a gzip archive."""
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise KernelweaveError(f"'{path}' is a broken gzip archive: {reason(error)}.", ErrorCode.NOT_A_TABLE) from None


def pack_writer(write: Writer) -> Writer:
    """Return what writes the same to a gzip archive; it holds no time, so that equal copies are equal files."""

    def write_packed(file: BinaryIO) -> None:
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
            write(packed)  # type: ignore[arg-type]

    return write_packed


def find_kind(path: Path, raw: bytes) -> str:
    """Return what a zip archive holds: ``"workbook"`` or ``"arrays"``; refuse anything else."""
    try:
        names = zipfile.ZipFile(io.BytesIO(raw)).namelist()
    except BROKEN_ZIP as error:
        what = f"'{path}' is a broken Excel workbook or zip archive"
        raise KernelweaveError(f"{what}: {reason(error)}.", ErrorCode.NOT_A_TABLE) from None
    if "xl/workbook.xml" in names:
        return "workbook"
    if any(name.endswith(".npy") for name in names):
        return "arrays"
    what = "an OpenDocument file; save it as .xlsx or CSV" if "mimetype" in names else "a zip archive; unpack it first"
    raise KernelweaveError(f"'{path}' is not a table but {what}.", ErrorCode.NOT_A_TABLE)
