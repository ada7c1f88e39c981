"""The constraints that `make test-lowest` installs: the lowest version of everything that pyproject.toml names."""

import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
lowest_versions = runpy.run_path(str(ROOT / ".ci" / "lowest.py"))["lowest_versions"]


def test_dependencies_and_extras_have_their_lowest_versions():
    project = {
        "name": "mine",
        "dependencies": ["numpy>=2.0", "scikit-learn >= 1.6"],
        "optional-dependencies": {"io": ["skops>=0.15"], "all": ["mine[io]"], "test": ["skops>=0.15", "pytest>=8.2"]},
    }
    assert lowest_versions(project) == {"numpy": "2.0", "scikit-learn": "1.6", "skops": "0.15", "pytest": "8.2"}


@pytest.mark.parametrize("requirement", ["numpy", "numpy==2.0", "numpy>2.0", "numpy>=2.0,<3", "other[io]"])
def test_a_requirement_without_a_lowest_version_is_refused(requirement):
    with pytest.raises(ValueError, match=r"names no lowest version\. Write it as 'name>=version'"):
        lowest_versions({"name": "mine", "dependencies": [requirement]})


def test_two_lowest_versions_of_a_package_are_refused():
    project = {"name": "mine", "dependencies": ["numpy>=2.0"], "optional-dependencies": {"test": ["numpy>=2.1"]}}
    with pytest.raises(ValueError, match=r"numpy has two lowest versions, 2\.0 and 2\.1"):
        lowest_versions(project)


def test_every_requirement_of_ours_names_its_lowest_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"numpy", "typer", "matplotlib", "cvxpy", "skops", "pynndescent", "pytest"} <= set(lowest_versions(project))
