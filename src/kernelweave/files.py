"""Outputs that exist whole or not at all: one file, or several that take their places together.

An output is written to a temporary file beside it, flushed to the disk and renamed.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from .errors import ErrorCode, KernelweaveError

StrPath = str | os.PathLike[str]
Writer = Callable[[BinaryIO], object]


def check_output(out: StrPath, source: StrPath | None = None) -> None:
    """Raise a KernelweaveError if `out` cannot be written, or is the file `source`: now, not after the long work."""
    path, exists = os.path.realpath(out), os.path.exists(out)
    if exists and source is not None and os.path.exists(source) and os.path.samefile(path, source):
        raise KernelweaveError(
            f"The output '{out}' is the input itself, which is never overwritten.", ErrorCode.SAME_FILE
        )
    folder = os.path.dirname(path)
    for wrong, why in (
        (not os.path.isdir(folder), f"there is no folder '{folder}'"),
        (exists and not os.path.isfile(path), "it is not a file"),  # renaming would replace even /dev/null
        (exists and not os.access(path, os.W_OK), "permission denied"),
    ):
        if wrong:
            raise KernelweaveError(f"'{out}' cannot be written: {why}.", ErrorCode.NOT_WRITABLE)
    try:  # permissions do not tell: in /proc, for one, nobody can make a file
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        message = f"'{out}' cannot be written: no file can be made in '{folder}' ({reason(error)})."
        raise KernelweaveError(message, ErrorCode.NOT_WRITABLE) from None


def atomic_write(out: StrPath, content: bytes | Writer) -> None:
    """Write bytes, or whatever `content` writes to the open file it is given, so that `out` exists whole or not at all.

    The temporary file ``.NAME.*.part`` beside `out` is removed on every error and on Ctrl-C. Only a killed process can
    leave it behind; the next writing of the same output removes it.
    """
    check_output(out)
    path = Path(os.path.realpath(out))  # through a link, not over it
    _remove_stale(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as file:
            with contextlib.suppress(OSError):  # not every file system knows locks
                _lock(file)
            if path.exists():
                os.chmod(temporary, stat.S_IMODE(path.stat().st_mode))
            file.write(content) if isinstance(content, bytes) else content(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        message = f"'{out}' cannot be written: {reason(error)}."
        raise KernelweaveError(message, ErrorCode.NO_SPACE if is_full(error) else ErrorCode.NOT_WRITABLE) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_all(files: Sequence[tuple[StrPath, bytes]], last: Callable[[], None]) -> None:
    """Write the files, and do the last writing once they are on the disk; only then do they take their places.

    Until then, what an earlier run wrote is where it was.
    """
    if not files:
        last()
        return
    (path, content), *others = files

    def write(file: BinaryIO) -> None:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        write_all(others, last)

    atomic_write(path, write)


def reason(error: Exception) -> str:
    """Return why a file could not be read or written, without its name: the system's words, or the error's first line.

    Examples
    --------
    >>> reason(FileNotFoundError(2, "No such file or directory", "in.csv"))
    'No such file or directory'
    """
    return (getattr(error, "strerror", None) or str(error)).strip().split("\n")[0].rstrip(".")


def is_full(error: OSError) -> bool:
    """Return whether a disk, a quota or the size that a file may have is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _remove_stale(path: Path) -> None:
    for other in path.parent.glob(glob.escape(f".{path.name}.") + "[0-9a-f]" * 8 + ".part"):
        with contextlib.suppress(OSError):  # whoever is writing it holds the lock
            with open(other, "rb") as file:
                _lock(file)
            other.unlink()


def _lock(file: BinaryIO) -> None:
    with contextlib.suppress(ImportError):  # Windows, where a file that someone writes cannot be removed anyway
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
