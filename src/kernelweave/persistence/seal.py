"""The end of a model file: the number of its format, and a digest of all bytes before it.

A file is refused before anything in it is read if one of its bytes was altered or is missing. The digest tells damage
and careless changes, not forgery: who writes a file can write its digest. Hence the checks of what the file holds.
"""

from __future__ import annotations

import io
import os
import re
import stat
from hashlib import sha256
from zipfile import ZipFile

FORMAT = 6
MAX_FILE_BYTES = 2**32
TITLE = "kernelweave model file, format {}, SHA-256 "
SEAL = re.compile(rb"kernelweave model file, format ([0-9]{4}), SHA-256 ([0-9a-f]{64})")
N_SEAL_BYTES = len(TITLE.format("0000")) + 64


def add_seal(archive: bytes, number: int = FORMAT) -> bytes:
    """Return a zip archive with its seal, which is the comment at its end: other programs still read it.

    Parameters
    ----------
    archive : bytes
    number : int
        Of the format.
    """
    title = TITLE.format(f"{number:04d}").encode()
    file = io.BytesIO(archive)
    with ZipFile(file, "a") as opened:
        opened.comment = title + bytes(64)  # the archive holds the length of the comment
    content = file.getvalue()[:-64]
    return content + sha256(content).hexdigest().encode()


def read_sealed(path: str | os.PathLike[str]) -> tuple[bytes, int | None]:
    """Return the bytes of a file and the number of its format, None where it has no seal.

    Raises
    ------
    ValueError
        If it is no ordinary file, larger than any model file, or not the one that was sealed. The message goes on after
        the name of the file.
    """
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):  # a device may have no end, and a pipe no writer
        raise ValueError("is not an ordinary file")
    if about.st_size > MAX_FILE_BYTES:
        raise ValueError(f"has {about.st_size:,} bytes; a model file has at most {MAX_FILE_BYTES:,}")
    with open(path, "rb") as file:
        data = file.read(about.st_size)
    seal = SEAL.fullmatch(data[-N_SEAL_BYTES:])
    if seal is None:
        return data, None
    if sha256(memoryview(data)[:-64]).hexdigest().encode() != seal[2]:
        raise ValueError("is damaged or was changed after it was saved; copy it again from its source")
    return data, int(seal[1])
