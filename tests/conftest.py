"""Shared by all tests: one thread a process, the benchmark data, read-only samples."""

import os
from pathlib import Path

# Before numpy is imported: test processes already share the cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import hypothesis  # noqa: E402
import pytest  # noqa: E402

DATA = os.environ.get("KERNELWEAVE_DATA")
NO_DATA = "KERNELWEAVE_DATA does not name the folder of the benchmark data"

# Files with tests of many seconds come first, so that no process works alone at the end.
LONG = ("test_readme.py", "test_numba_cache.py", "test_runner.py", "test_streams.py", "test_table.py")

# No deadline: the first call of a numba loop compiles it.
hypothesis.settings.register_profile("kernelweave", deadline=None)
hypothesis.settings.load_profile("kernelweave")


def pytest_configure(config):
    if DATA and not Path(DATA).is_dir():
        raise pytest.UsageError(f"KERNELWEAVE_DATA is {DATA!r}, which is no folder. Correct it or unset it.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONG)
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker("data")
        if not DATA and item.get_closest_marker("data"):
            item.add_marker(pytest.mark.skip(reason=NO_DATA))


def pytest_terminal_summary(terminalreporter):
    def count(*outcomes):
        reports = [report for outcome in outcomes for report in terminalreporter.getreports(outcome)]
        return sum("data" in getattr(report, "keywords", ()) for report in reports)

    ran, skipped = count("passed", "failed", "xfailed", "xpassed"), count("skipped")
    because = f" ({NO_DATA})" if not DATA else ""
    terminalreporter.write_line(f"tests marked data: {ran} ran, {skipped} skipped{because}")


@pytest.fixture(scope="session")
def data_dir():
    """Folder of the benchmark data; a test that asks for it is marked `data`."""
    return Path(DATA).resolve()


@pytest.fixture(scope="session")
def digits():
    """Pixels in [0, 1] and classes of scikit-learn's digits; read-only, so that no test spoils the next."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X /= 16.0
    X.setflags(write=False)
    y.setflags(write=False)
    return X, y


@pytest.fixture(params=["plain", "compiled"])
def form(request):
    """The form in which all loops run that have two."""
    from checks.loop_forms import run_loops

    with run_loops(request.param):
        yield request.param
