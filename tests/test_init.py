"""`import kernelweave` is lazy, and its public names are there."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import kernelweave

ROOT = Path(__file__).parents[1]


def test_import_loads_nothing_but_the_standard_library():
    code = f"""
import json, sys
sys.path.insert(0, {str(ROOT / "src")!r})
before = set(sys.modules)
import kernelweave
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = json.loads(done.stdout)
    assert [name for name in loaded if name.split(".")[0] not in sys.stdlib_module_names] == ["kernelweave"]


@pytest.mark.parametrize("name", kernelweave.__all__)
def test_every_public_name_resolves_and_is_listed(name):
    assert getattr(kernelweave, name).__name__ == name
    assert name in dir(kernelweave)


def test_every_name_with_a_home_is_public():
    assert list(kernelweave._HOME) == kernelweave.__all__


def test_an_unknown_name_is_an_attribute_error_that_says_it():
    with pytest.raises(AttributeError, match="module 'kernelweave' has no attribute 'RFB'"):
        kernelweave.RFB  # noqa: B018
    with pytest.raises(ImportError, match="RFB"):
        from kernelweave import RFB  # noqa: F401


def test_the_version_is_that_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert kernelweave.__version__ == project["version"]
