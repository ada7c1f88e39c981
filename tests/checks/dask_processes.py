"""A scheduler and a worker of Dask as processes that a test may kill."""

import os
import subprocess
import sys
from contextlib import contextmanager
from functools import partial

PROGRAM = "import sys; from distributed.cli.{0} import main; sys.exit(main())"


@contextmanager
def run_scheduler(path=sys.path):
    """Give the address of a scheduler, its process, and that of its one worker; both find modules on `path`."""
    start = partial(_start, os.environ | {"PYTHONPATH": os.pathsep.join(path)})
    started = [start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", stderr=subprocess.PIPE)]
    try:
        address = next(line.split()[-1] for line in started[0].stderr if "Scheduler at:" in line)
        started.append(start("dask_worker", address, "--nthreads", "1", "--no-nanny", stderr=subprocess.DEVNULL))
        yield address, *started
    finally:
        for process in started:
            process.kill()
            process.communicate()


def _start(environment, program, *options, stderr):
    line = [sys.executable, "-c", PROGRAM.format(program), *options, "--no-dashboard"]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=stderr, text=True, env=environment)
