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
from ..estimators.shared.memory import free_memory
from ..files import Writer, reason

# What reading a damaged zip archive raises: wrong sums, headers and compressed data, methods that are not known.
BROKEN_ZIP = (
    *(zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError),
    *(ValueError, KeyError, RuntimeError, OverflowError),
)
GZIP, ZIP = b"\x1f\x8b", b"PK\x03\x04"
UNPACKED_SHARE = 0.25  # of the free memory, that content may take: its text and its cells are in memory beside it
PART_BYTES = 2**22  # unpacked at a time


def unpack(path: Path, raw: bytes) -> bytes:
    """Return the content of a gzip archive, which is refused as soon as it is too large for the memory."""
    room, parts, n_bytes = UNPACKED_SHARE * free_memory(), [], 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            while part := file.read(PART_BYTES):
                parts.append(part)
                n_bytes += len(part)
                require_room(path, n_bytes, room)
    except (OSError, EOFError, zlib.error) as error:
        raise KernelweaveError(f"'{path}' is a broken gzip archive: {reason(error)}.", ErrorCode.NOT_A_TABLE) from None
    return b"".join(parts)


def require_room(path: Path, n_bytes: int, room: float | None = None) -> None:
    """Refuse content of so many bytes: a small file can stand for any number of them."""
    room = UNPACKED_SHARE * free_memory() if room is None else room
    if n_bytes > room:
        raise KernelweaveError(
            f"'{path}' holds more than the memory here: at least {n_bytes / 2**30:.1f} GB when it is unpacked, and a "
            f"table may have {room / 2**30:.1f} GB. Leave rows or columns out, or use a computer with more memory.",
            ErrorCode.UNSUPPORTED,
        )


def pack_writer(write: Writer) -> Writer:
    """Return what writes the same to a gzip archive; it holds no time, so that equal copies are equal files."""

    def write_packed(file: BinaryIO) -> None:
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
            write(packed)  # type: ignore[arg-type]

    return write_packed


def find_kind(path: Path, raw: bytes) -> str:
    """Return what a zip archive holds: ``"workbook"`` or ``"arrays"``; refuse anything else."""
    try:
        entries = zipfile.ZipFile(io.BytesIO(raw)).infolist()
    except BROKEN_ZIP as error:
        what = f"'{path}' is a broken Excel workbook or zip archive"
        raise KernelweaveError(f"{what}: {reason(error)}.", ErrorCode.NOT_A_TABLE) from None
    require_room(path, sum(entry.file_size for entry in entries))  # nothing beyond these sizes is read
    names = [entry.filename for entry in entries]
    if "xl/workbook.xml" in names:
        return "workbook"
    if any(name.endswith(".npy") for name in names):
        return "arrays"
    what = "an OpenDocument file; save it as .xlsx or CSV" if "mimetype" in names else "a zip archive; unpack it first"
    raise KernelweaveError(f"'{path}' is not a table but {what}.", ErrorCode.NOT_A_TABLE)
