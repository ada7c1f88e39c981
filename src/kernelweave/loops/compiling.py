"""Loops that numba compiles as soon as it pays, and that numpy runs until then.

To import numba and load compiled code takes about half a second, and to compile the loops of a machine a few seconds:
more than many a fit. So loops that small problems need have a plain form, whose innermost loops are written with numpy.
It runs until the process has spent as much time in plain forms as it takes to load or to compile the others.

Both forms do the same operations in the same order, but for how numpy is called: what a solver returns does not depend
on when its loops were compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from types import FunctionType
from typing import Any

import numpy as np

LOADING_SECONDS = 0.4  # to import numba and to load the loops of a machine from the cache
COMPILING_SECONDS = 4.0  # to compile them


class Loop:
    """A function that numba compiles, and its plain form.

    Parameters
    ----------
    function : callable
        What numba compiles. Loops that it calls are taken in the same form as itself.
    plain : callable, optional
        What runs until compiling pays; without it, the function is compiled at its first call.
    **options
        Further options of numba.
    """

    def __init__(self, function: Callable[..., Any], plain: Callable[..., Any] | None = None, **options: Any):
        self._function, self._plain, self._options = function, plain, options
        self._chosen: Callable[..., Any] | None = None
        self.__doc__, self.__name__ = function.__doc__, function.__name__

    def __call__(self, *arguments: Any) -> Any:
        if self._chosen is None:
            if self._plain is not None and not self._compiling_pays():
                return _run_timed(self.plain, arguments)
            self._chosen = self.compiled
        return self._chosen(*arguments)

    def in_numpy(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Take a function as the plain form (a decorator)."""
        self._plain = function
        return function

    @cached_property
    def plain(self) -> Callable[..., Any]:
        """The plain form, which calls the plain forms of other loops."""
        return _bind_loops(self._plain or self._function, lambda loop: loop.plain)

    @cached_property
    def compiled(self) -> Any:
        """What numba makes of the function; the function itself where NUMBA_DISABLE_JIT=1."""
        from .numba_cache import jit

        return jit(_bind_loops(self._function, lambda loop: loop.compiled), **self._options)

    def _compiling_pays(self) -> bool:
        return _Plain.seconds > LOADING_SECONDS and _Plain.seconds > self._max_plain_seconds

    @cached_property
    def _max_plain_seconds(self) -> float:
        """Time in plain forms after which this loop is loaded or compiled; known once numba is imported."""
        from .numba_cache import is_jitted, is_kept

        if not is_jitted(self.compiled):
            return float("inf")
        return LOADING_SECONDS if is_kept(self.compiled) else COMPILING_SECONDS


def compiled(function: Callable[..., Any]) -> Loop:
    """Compile a function at its first call, or load it from the cache."""
    return Loop(function)


def compiled_later(function: Callable[..., Any]) -> Loop:
    """Compile a function when this pays; until then it runs as it is, or in the form that ``in_numpy`` is given."""
    return Loop(function, plain=function)


def summing(function: Callable[..., Any]) -> Loop:
    """Compile a function at its first call, one that may add up numbers in any order."""
    return Loop(function, fastmath={"reassoc"})


def compile_at_once() -> None:
    """Have all loops compiled or loaded at their first call from now on, as where fits are timed."""
    _Plain.seconds = float("inf")


class _Plain:
    """What this process has spent in plain forms."""

    seconds = 0.0


def _run_timed(plain: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    begin = time.thread_time()
    with np.errstate(all="ignore"):  # compiled loops do not warn either
        result = plain(*arguments)
    _Plain.seconds += time.thread_time() - begin
    return result


def _bind_loops(function: Callable[..., Any], form: Callable[[Loop], Any]) -> Callable[..., Any]:
    """Return the function with a form of each loop in place of the loops that it calls."""
    known = function.__globals__
    loops = {name: known[name] for name in function.__code__.co_names if isinstance(known.get(name), Loop)}
    if not loops:
        return function
    names = known | {name: form(loop) for name, loop in loops.items()}
    bound = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    bound.__qualname__, bound.__module__, bound.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return bound
