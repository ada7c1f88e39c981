import importlib.util
import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest
from checks.poor_user import PoorUser
from numba.core import caching

from kernelweave.loops import numba_cache

SOURCE = """
from kernelweave.loops.numba_cache import jit

@jit
def double(x):
    return {factor} * x
"""
NOTE = "Compiled code cannot be kept"


@pytest.fixture(autouse=True)
def nothing_said_yet(monkeypatch):
    monkeypatch.setattr(numba_cache, "_has_warned", False)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setattr(numba_cache.numba.config, "CACHE_DIR", str(folder))
    return folder


def double(folder, factor=2):
    """The compiled function, as a new process would import it."""
    path = folder / "doubling.py"
    source = SOURCE.format(factor=factor)
    if not path.exists() or path.read_text() != source:  # older versions of numba look at its time
        path.write_text(source)
    spec = importlib.util.spec_from_file_location("doubling", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.double


def hits(function):
    return sum(function.stats.cache_hits.values())


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.usefixtures("quiet", "cache")
def test_compiled_code_is_kept(tmp_path):
    first = double(tmp_path)
    assert not numba_cache.is_kept(first)
    assert first(3) == 6
    again = double(tmp_path)
    assert numba_cache.is_kept(again)
    assert again(3) == 6
    assert hits(again) == 1


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("damage", [b"", b"\x80", b"no pickle at all", b"half", pickle.dumps(0)])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_damaged_files_are_compiled_and_kept_again(tmp_path, cache, kind, damage):
    double(tmp_path)(3)
    (file,) = cache.rglob(f"*.{kind}")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2] if damage == b"half" else damage)
    function = double(tmp_path)
    assert numba_cache.is_kept(function) in (False, kind == "nbc")  # the index is read, and no code
    assert function(3) == 6
    assert hits(function) == 0
    again = double(tmp_path)
    assert again(3) == 6
    assert hits(again) == 1


def refusing(kind, error):
    """An `open` that fails for cache files of a kind which are to be written."""

    def refuse(path, mode="r", *arguments, **options):
        if "w" in mode and f".{kind}" in Path(path).name:
            raise error
        return open(path, mode, *arguments, **options)

    return refuse


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PermissionError(13, "Permission denied")])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_cache_that_can_no_longer_be_written_is_one_warning_at_the_line_of_the_user(
    tmp_path, monkeypatch, kind, error
):
    from numba.core import caching

    function = double(tmp_path)
    monkeypatch.setattr(caching, "open", refusing(kind, error), raising=False)
    with pytest.warns(UserWarning, match=f"{NOTE}.*{error.strerror}.*NUMBA_CACHE_DIR") as caught:
        assert [function(3), function(1.5)] == [6, 3.0]  # compiled twice
    (warning,) = caught
    assert warning.filename == __file__


@pytest.mark.usefixtures("cache")
def test_code_of_another_version_is_not_taken_for_that_of_this_one_after_a_full_disk(tmp_path, monkeypatch):
    assert double(tmp_path, factor=2)(3) == 6
    function = double(tmp_path, factor=5)
    with monkeypatch.context() as patch:
        patch.setattr(caching, "open", refusing("nbc", OSError(28, "No space left on device")), raising=False)
        with pytest.warns(UserWarning, match=NOTE):
            assert function(3) == 15  # its index is written, its code is not
    assert double(tmp_path, factor=5)(3) == 15


@pytest.mark.usefixtures("cache")
def test_code_of_another_version_is_not_kept(tmp_path):
    assert double(tmp_path, factor=2)(3) == 6
    assert not numba_cache.is_kept(double(tmp_path, factor=5))


def test_without_a_cache_there_is_no_word_before_the_first_compilation_and_one_then(tmp_path, monkeypatch):
    def no_locator(self, function):
        raise RuntimeError("cannot cache function 'double': no locator available")

    monkeypatch.setattr(numba_cache._Files, "__init__", no_locator)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        functions = [double(tmp_path), double(tmp_path)]
        assert not numba_cache.is_kept(functions[0])
    with pytest.warns(UserWarning, match=f"{NOTE}.*can be written. Set .*NUMBA_CACHE_DIR") as caught:
        assert [function(3) for function in functions] == [6, 6]
    (warning,) = caught
    assert warning.filename == __file__


def test_a_user_without_a_home_gets_no_folder_of_that_name(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    (in_tree,) = (kind for kind in numba_cache._Files._locator_classes if kind.__name__.endswith("InTreeCacheLocator"))
    monkeypatch.setattr(in_tree, "from_function", lambda *_: None)
    monkeypatch.setattr(numba_cache.numba.config, "CACHE_DIR", "")
    monkeypatch.chdir(tmp_path)
    function = double(tmp_path)
    with pytest.warns(UserWarning, match=NOTE):
        assert function(3) == 6
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["doubling.py"]


def test_functions_that_are_not_compiled_need_no_cache():
    code = "from kernelweave.solvers.compiled_loops import add; x = [1.0, 2.0]; add.compiled(x, x, 1.0); print(x)"
    variables = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout == "[2.0, 4.0]\n"


@pytest.fixture(scope="module")
def poor_user():
    if sys.platform == "win32":
        pytest.skip("folders have no such permissions")
    user = PoorUser(Path(tempfile.mkdtemp()))
    yield user
    user.close()


TABLE = "x,y\n" + "".join(f"{i % 7 - 3 + i / 100},{'ab'[i % 7 > 3] if i < 20 else ''}\n" for i in range(30))
FIT = """
import kernelweave, numpy as np
X = np.random.default_rng(0).normal(size=(40, 2))
for name in kernelweave.__all__:
    getattr(kernelweave, name)
for name in {names}:
    model = getattr(kernelweave, name)()
    model.fit(X, X[:, 0] if name.endswith("Regressor") else X[:, 0] > 0)
    print(name)
"""


def estimators():
    import kernelweave

    wraps = ("SemiSupervisedCalibration",)  # another estimator, so that it cannot be made without one
    return [name for name in kernelweave.__all__ if hasattr(getattr(kernelweave, name), "fit") and name not in wraps]


def test_the_command_needs_no_place_for_compiled_code(poor_user):
    done = poor_user.python("-m", "kernelweave", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    (poor_user.work / "in.csv").write_text(TABLE)
    done = poor_user.python("-m", "kernelweave", "label", "in.csv", "--target", "y")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(NOTE) <= 1
    assert (poor_user.work / "in.labeled.csv").exists()


@pytest.mark.parametrize("names", [["SSMKClassifier", "RKDAClassifier"], pytest.param(None, marks=pytest.mark.slow)])
def test_estimators_need_no_place_for_compiled_code(poor_user, names):
    names = names or estimators()
    done = poor_user.python("-c", FIT.format(names=names))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == names
    assert done.stderr.count(NOTE) <= 1  # small fits compile nothing


def test_with_a_folder_for_compiled_code_there_is_no_word(poor_user):
    cache = poor_user.work / "cache"
    code = "import numpy; from kernelweave.solvers.compiled_loops import mirror; mirror.compiled(numpy.eye(2))"
    done = poor_user.python("-c", code, NUMBA_CACHE_DIR=str(cache))
    assert (done.returncode, done.stderr) == (0, "")
    assert list(cache.rglob("*.nbc"))
