"""The map of the rooms, enforced: who may import whom, which package lives where, a test for every module."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Room (top-level module or package) -> what it may import of ours. Its own modules it may always import.
MAY_IMPORT = {
    "errors": (),
    "warn": (),
    "short_text": (),
    "parameters": ("short_text",),
    "labels": ("warn",),
    "report": ("short_text",),
    "datasets": (),
    "distributed": ("errors",),
    "loops": ("warn",),
    "kernels": ("distributed", "loops", "parameters", "short_text", "warn"),
    "solvers": ("loops", "warn"),
    "model_selection": ("distributed", "labels", "parameters", "short_text", "warn"),
    "estimators": (
        "kernels",
        "solvers",
        "warn",
        "labels",
        "model_selection",
        "parameters",
        "short_text",
        "distributed",
    ),
    "files": ("errors",),
    "persistence": ("kernels", "estimators", "files", "warn"),
    "labeling": (
        *("estimators", "kernels", "model_selection", "labels"),
        *("files", "errors", "short_text", "distributed", "persistence"),
    ),
    "inspection": (
        *("estimators", "kernels", "model_selection", "labels"),
        *("parameters", "short_text", "warn", "report", "files"),
    ),
    "papers": ("estimators", "kernels", "model_selection", "datasets"),
}
MAY_IMPORT["cli"] = tuple(room for room in MAY_IMPORT if room != "solvers")
MAY_IMPORT["__main__"] = ("cli",)
ONLY_IN = {
    "dask": "distributed/",
    "distributed": "distributed/",
    "highspy": "solvers/columns/highs.py",
    "matplotlib": "report/",
    "numba": "loops/numba_cache.py",
}
NEVER_IN = {"sklearn": "solvers/"}
ONLY_IN_TESTS = ("cvxpy", "clarabel")  # the oracles
MAX_LINES = 500
MAX_FILES = 7  # at the top, beside __init__ and __main__: what is more is a room


def test_the_source_keeps_to_the_map():
    found = offences(ROOT / "src" / "kernelweave", ROOT / "tests")
    assert not found, "\n".join(found)


def test_the_top_level_is_rooms_and_a_few_files():
    files = {file.stem for file in (ROOT / "src" / "kernelweave").glob("*.py")} - {"__init__", "__main__"}
    assert len(files) <= MAX_FILES, sorted(files)


def offences(package, tests):
    """One sentence for each breach of the map in `package`, whose mirror is `tests`."""
    found = []
    for file in sorted(package.rglob("*.py")):
        path = file.relative_to(package)
        for target in imports(file, package):
            found += [f"{path} imports {target}: {why}" for why in objections(path, target)]
        mirror = path.with_name(f"test_{path.name}")
        if path.name != "__init__.py" and not (tests / mirror).exists():
            found.append(f"{path} has no mirror tests/{mirror}")
    for file in sorted([*package.rglob("*.py"), *tests.rglob("*.py")]):
        n_lines = len(file.read_text(encoding="utf-8").splitlines())
        if n_lines > MAX_LINES:
            found.append(f"{file} has {n_lines} lines; {MAX_LINES} are the end")
    return found


def imports(file, package):
    """Dotted name of everything that `file` imports, at any depth, relative forms made absolute."""
    here = (package.name, *file.relative_to(package).parent.parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            yield from (".".join(filter(None, (*base, node.module, alias.name))) for alias in node.names)


def objections(path, target):
    """Why the module at `path` may not import `target`; nothing if it may."""
    top, *inside = target.split(".")
    where = path.as_posix()
    if top in ONLY_IN and not where.startswith(ONLY_IN[top]):
        yield f"{top} belongs in {ONLY_IN[top]} only"
    if top in ONLY_IN_TESTS:
        yield f"{top} belongs in tests only"
    if top in NEVER_IN and where.startswith(NEVER_IN[top]):
        yield f"{top} is not for {NEVER_IN[top]}"
    if top != "kernelweave" or where == "__init__.py":
        return
    room, target_room = path.parts[0].removesuffix(".py"), "".join(inside[:1])
    name = ".".join(inside) + "."
    if room not in MAY_IMPORT:
        yield f"{room} is not on the map"
    elif target_room not in MAY_IMPORT:
        # Through the package's public names an arrow would go unseen.
        if target_room != "__version__":
            yield "name the room that it comes from"
    elif room != target_room and not any(name.startswith(f"{other}.") for other in MAY_IMPORT[room]):
        yield f"{room} may import {', '.join(MAY_IMPORT[room]) or 'nothing of ours'}"


FORBIDDEN = [
    ("kernels/a.py", "import kernelweave.solvers.smo"),
    ("kernels/a.py", "from kernelweave.solvers import smo"),
    ("kernels/a.py", "from ..solvers.smo import solve"),
    ("kernels/a.py", "from .. import labels"),
    ("kernels/a.py", "from kernelweave import RBF"),
    ("kernels/a.py", "import kernelweave"),
    ("kernels/__init__.py", "from ..estimators import ssmk"),
    ("kernels/a.py", "def f():\n    from ..solvers import smo"),
    ("kernels/a.py", "if TYPE_CHECKING:\n    from ..solvers import smo"),
    ("solvers/a.py", "from ..kernels.base import Kernel"),
    ("solvers/a.py", "from sklearn.utils import check_array"),
    ("solvers/a.py", "import sklearn"),
    ("solvers/a.py", "import highspy"),
    ("solvers/columns/a.py", "import highspy"),
    ("solvers/columns/a.py", "from ...kernels.base import Kernel"),
    ("solvers/columns/a.py", "import sklearn"),
    ("solvers/a.py", "import clarabel"),
    ("estimators/a.py", "from highspy import Highs"),
    ("estimators/a.py", "import matplotlib.pyplot as plt"),
    ("estimators/a.py", "import cvxpy"),
    ("estimators/a.py", "from .. import papers"),
    ("labels/rule.py", "from ..kernels import base"),
    ("report/a.py", "from ..datasets import load"),
    ("inspection/a.py", "from ..solvers.smo import solve"),
    ("datasets/a.py", "from kernelweave.labels import partition"),
    ("model_selection.py", "from . import estimators"),
    ("papers/a.py", "from ..solvers.smo import solve"),
    ("papers/a.py", "from .. import solvers"),
    ("persistence.py", "from .labels import partition"),
    ("cli/a.py", "from ..solvers.smo import solve"),
    ("labeling/a.py", "from ..cli.errors import EXIT_CODES"),
    ("labeling/a.py", "from ..papers import runner"),
    ("labeling/a.py", "import dask.array as da"),
    ("cli/a.py", "from distributed import Client"),
    ("distributed/a.py", "from ..files import atomic_write"),
    ("errors.py", "from .files import reason"),
    ("files.py", "from .labeling.table import read_table"),
    ("attic.py", "from .labels import partition"),
    ("__init__.py", "import matplotlib"),
]
ALLOWED = [
    ("kernels/a.py", "from .base import Kernel\nfrom . import graph\nimport numpy as np\nimport sklearn"),
    ("solvers/a.py", "import kernelweave.solvers.result\nfrom ..solvers.result import Status"),
    ("solvers/columns/highs.py", "import highspy"),
    ("solvers/columns/a.py", "from ..machines import smo\nfrom ..result import Status\nfrom . import masters"),
    ("report/a.py", "import matplotlib.pyplot as plt"),
    ("inspection/a.py", "from ..report import bars\nfrom ..estimators import rkda"),
    ("estimators/a.py", "from .. import labels\nfrom ..kernels import library\nfrom ..solvers import smo"),
    ("persistence.py", "from . import kernels, estimators\nfrom . import __version__"),
    ("cli/a.py", "from ..papers import runner\nfrom .. import report, datasets"),
    ("distributed/a.py", "import dask\nfrom distributed import Client\nfrom ..errors import ErrorCode"),
    ("labeling/a.py", "from ..distributed.cluster import run_each"),
    ("__init__.py", "from .solvers import smo"),
]


@pytest.mark.parametrize("path, source", FORBIDDEN)
def test_a_forbidden_import_is_found(tmp_path, path, source):
    assert len(offences(*tree(tmp_path, path, source))) == 1


@pytest.mark.parametrize("path, source", ALLOWED)
def test_an_allowed_import_is_left_alone(tmp_path, path, source):
    assert offences(*tree(tmp_path, path, source)) == []


def test_a_module_without_its_mirror_test_is_found(tmp_path):
    package, tests = tree(tmp_path, "kernels/a.py", "")
    (tests / "kernels/test_a.py").rename(tests / "test_a.py")
    assert offences(package, tests) == ["kernels/a.py has no mirror tests/kernels/test_a.py"]


def test_a_file_that_is_too_long_is_found(tmp_path):
    package, tests = tree(tmp_path, "kernels/a.py", "x = 1\n" * (MAX_LINES + 1))
    assert offences(package, tests) == [f"{package}/kernels/a.py has 501 lines; 500 are the end"]


def tree(folder, path, source):
    """A package with one module, and its tests."""
    package, tests = folder / "kernelweave", folder / "tests"
    module, mirror = package / path, (tests / path).with_name(f"test_{Path(path).name}")
    for file, text in ((module, source), (mirror, "")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return package, tests
