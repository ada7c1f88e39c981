"""Loops of the solvers in the form that a test asks for."""

from contextlib import contextmanager
from unittest import mock

from kernelweave.loops import compiling


@contextmanager
def run_loops(form):
    """Run all loops in one form, "plain" or "compiled", whatever the process has done before."""

    def call(loop, *arguments):
        return loop.compiled(*arguments) if form == "compiled" else compiling._run_timed(loop.plain, arguments)

    with mock.patch.object(compiling.Loop, "__call__", call):
        yield
