"""Loops compiled by numba, kept on the disk where a folder for them can be written, and compiled anew where none can.

numba refuses to import a function that is to be cached when it finds no writable folder, and gives up a call when the
cache is damaged or the disk is full. Here the cache only saves time: whatever is wrong with it, a function is compiled
and runs, and one warning in each process says that the compiled code was not kept.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache

from ..warn import warn_caller

NUMBA = os.path.join(os.path.dirname(numba.__file__), "")
NO_FOLDER = "neither the folder of the package nor a cache folder of this user can be written"


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Return what numba compiles at its first call, or loads from the cache.

    Division by zero gives infinity, as in numpy: testing for it would keep the loops from using vector instructions.
    """
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if is_jitted(dispatcher):
        try:
            dispatcher._cache = Cache(dispatcher.py_func)  # what enable_caching() sets to numba's own
        except (RuntimeError, OSError):  # no folder; a source file that cannot be read
            dispatcher._cache = NoCache()
    return dispatcher


def is_jitted(dispatcher: Any) -> bool:
    """Tell whether numba compiles it: NUMBA_DISABLE_JIT=1 leaves the function itself."""
    return hasattr(dispatcher, "py_func")


def is_kept(dispatcher: Any) -> bool:
    """Tell whether there is compiled code of a function in the cache."""
    return is_jitted(dispatcher) and isinstance(dispatcher._cache, Cache) and dispatcher._cache.has_code()


class NoCache(NullCache):
    """What stands for the cache where there is none: it warns before the first compilation."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        _warn_once(NO_FOLDER)


class _Files(CompileResultCacheImpl):
    """numba's files, without its cache in the home folder where there is no such folder.

    For a user without a home, numba would make a folder named ``~`` in the current one.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if os.path.expanduser("~") == "~" and not os.environ.get("XDG_CACHE_HOME"):
            known: list[Any] = CompileResultCacheImpl._locator_classes  # type: ignore[assignment]
            self._locator_classes = [kind for kind in known if not kind.__name__.endswith("UserWideCacheLocator")]
        super().__init__(function)


class Cache(FunctionCache):
    """numba's cache of one function, in which a file that cannot be read or written is no error."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001 - a damaged pickle can raise anything
            self._forget()
            return None

    def has_code(self) -> bool:
        """Tell whether the cache holds code that was compiled of the present source."""
        try:
            return bool(self._cache_file._load_index())
        except Exception:  # noqa: BLE001 - likewise
            return False

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001 - likewise, since the index is read again
            self._forget()
            why = getattr(error, "strerror", None) or type(error).__name__
            _warn_once(f"writing to '{self.cache_path}' failed ({why})")

    def _forget(self) -> None:
        """Remove the index.

        It is written before the code that it names: where only the index could be written, it may name a file with the
        code of another version.
        """
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


_has_warned = False


def _warn_once(why: str) -> None:
    """Warn in the name of the user's line, once in a process, and not again in the processes that it starts."""
    global _has_warned
    if not _has_warned and multiprocessing.parent_process() is None:
        _has_warned = True
        warn_caller(
            f"Compiled code cannot be kept, and each new process takes some seconds to compile it again: {why}. Set "
            "the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
            through=(NUMBA,),
        )
