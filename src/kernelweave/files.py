"""Outputs that exist whole or not at all: one file, or several that take their places together.

An output is written to a temporary file beside it, flushed to the disk and renamed. Several are renamed by a process of
their own, which goes on if this one is killed. Old outputs are put aside first, all but one, so that even after a
failure of power there are never old and new ones side by side.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import signal
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from .errors import ErrorCode, KernelweaveError

StrPath = str | os.PathLike[str]
Source = StrPath | int  # a path, or the number of an open file
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


def atomic_write(out: StrPath, content: bytes | Writer, like: Sequence[Source] = ()) -> None:
    """Write bytes, or whatever `content` writes to the open file it is given, so that `out` exists whole or not at all.

    The temporary file ``.NAME.*.part`` beside `out` is removed on every error and on Ctrl-C. Only a killed process can
    leave it behind; the next writing of the same output removes it. Nobody may do more with `out` than with each of the
    files that it is made ``like``; an open one is named by its number.
    """
    write_all([(out, content)], like)


def write_all(files: Sequence[tuple[StrPath, bytes | Writer]], like: Sequence[Source] = ()) -> None:
    """Write several files as `atomic_write` does; they take their places together, once all are on the disk.

    Until then, what an earlier run wrote is where it was.
    """
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(_write_beside(out, content, like)) for out, content in files]
        try:
            if len(pairs) == 1:
                os.replace(*pairs[0])
            elif pairs:
                _run_apart(lambda: _replace_all(pairs))
        except OSError as error:
            raise _describe_failure(", ".join(str(out) for out, _ in files), error) from None


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


@contextlib.contextmanager
def _write_beside(out: StrPath, content: bytes | Writer, like: Sequence[Source]) -> Iterator[tuple[Path, Path]]:
    """Write a temporary file, and give its path and that of the output; remove it at the end, if it is still there."""
    check_output(out)
    path = Path(os.path.realpath(out))  # through a link, not over it
    _remove_stale(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(_create(temporary, path, like))
                with contextlib.suppress(OSError):  # not every file system knows locks
                    _lock(file)
                file.write(content) if isinstance(content, bytes) else content(file)
                file.flush()
                os.fsync(file.fileno())
            except OSError as error:
                with contextlib.suppress(OSError):  # what is left in the buffer cannot be written either
                    stack.close()
                raise _describe_failure(str(out), error) from None
            if os.name == "nt":  # where an open file cannot be renamed
                file.close()
            yield temporary, path
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _create(temporary: Path, path: Path, like: Sequence[Source]) -> BinaryIO:
    """Open a new file with the permissions of the output that it replaces, and no more than those of other files."""
    sources = [os.stat(source) for source in like if os.path.isfile(source)]
    mode = 0o666
    for source in sources:
        mode &= source.st_mode | stat.S_IRUSR | stat.S_IWUSR  # the owner can write it again
    number = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)  # less the umask
    given = os.fstat(number)
    if path.exists():
        mode &= stat.S_IMODE(path.stat().st_mode)
    else:
        mode &= given.st_mode
    if any(source.st_gid != given.st_gid for source in sources):
        mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3  # another group: what all others may do
    if hasattr(os, "fchmod") and mode != stat.S_IMODE(given.st_mode):
        os.fchmod(number, mode)
    return os.fdopen(number, "wb")


def _replace_all(pairs: Sequence[tuple[Path, Path]]) -> None:
    """Rename files, each to the path beside it; on an error, all is as it was before."""
    aside = {path: temporary.with_suffix(".old") for temporary, path in pairs if path.exists()}
    done: list[Path] = []
    try:
        for path, old in aside.items():
            if path != pairs[0][1]:
                os.replace(path, old)
            else:  # this one is never missing
                with contextlib.suppress(OSError):  # not every file system knows links
                    os.link(path, old)
        for temporary, path in pairs:
            os.replace(temporary, path)
            done.append(path)
    except OSError:
        for path in done:
            if path not in aside:
                path.unlink()
        for path, old in aside.items():
            if old.exists():
                os.replace(old, path)
                old.unlink(missing_ok=True)  # to rename a file over itself does nothing
        raise
    for old in aside.values():
        old.unlink(missing_ok=True)


def _run_apart(task: Callable[[], None]) -> None:
    """Run a task that only renames files in a process that is not ended with this one; pass its OSError on."""
    if not hasattr(os, "fork"):
        task()
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        _run_in_child(task)
    finally:
        with contextlib.suppress(KeyboardInterrupt):  # that came meanwhile: all is done
            signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _run_in_child(task: Callable[[], None]) -> None:
    reader, writer = os.pipe()
    with open(reader, "rb") as outcomes, open(writer, "wb", buffering=0) as outcome:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads of this process: the other needs none
                child = os.fork()
        except OSError:  # no memory, or too many processes: then in this one
            task()
            return
        if child == 0:
            _report_outcome(task, writer)
        outcome.close()
        number = int(outcomes.read() or errno.EIO)
        os.waitpid(child, 0)
    if number:
        raise OSError(number, os.strerror(number))


def _report_outcome(task: Callable[[], None], writer: int) -> None:  # pragma: no cover - in another process
    """Run the task, write the number of its error, 0 for none, and end the process."""
    number = errno.EIO
    try:
        os.setsid()
        task()
        number = 0
    except OSError as error:
        number = error.errno or number
    finally:
        os.write(writer, str(number).encode())
        os._exit(0)


def _describe_failure(outs: str, error: OSError) -> KernelweaveError:
    code = ErrorCode.NO_SPACE if is_full(error) else ErrorCode.NOT_WRITABLE
    return KernelweaveError(f"'{outs}' cannot be written: {reason(error)}.", code)


def _remove_stale(path: Path) -> None:
    """Remove what a killed process left behind; what it had put aside takes its place again."""
    name = glob.escape(f".{path.name}.") + "[0-9a-f]" * 8
    for other in path.parent.glob(f"{name}.part"):
        if not _is_locked(other):
            other.unlink(missing_ok=True)
    for old in path.parent.glob(f"{name}.old"):
        if not _is_locked(old.with_suffix(".part")):
            with contextlib.suppress(OSError):
                old.unlink() if path.exists() else os.replace(old, path)


def _is_locked(path: Path) -> bool:
    """Return whether somebody is writing a file: he holds its lock."""
    try:
        with open(path, "rb") as file:
            _lock(file)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _lock(file: BinaryIO) -> None:
    with contextlib.suppress(ImportError):  # Windows, where a file that someone writes cannot be removed anyway
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
