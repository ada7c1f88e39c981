"""What is published says the same everywhere: project file, recipe, workflows, citation."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONDA_NAMES = {"matplotlib": "matplotlib-base", "dask": "dask-core"}


def read_yaml(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def recipe():
    return read_yaml("recipe/recipe.yaml")


def conda(requirements):
    """Requirements of pyproject.toml as conda writes them."""
    names = [re.fullmatch(r"([\w.-]+)(.*)", requirement).groups() for requirement in requirements]
    return sorted(f"{CONDA_NAMES.get(name, name)} {versions}" for name, versions in names)


def test_the_recipe_asks_for_what_the_project_asks_for(project, recipe):
    python = f"python {project['requires-python']}"
    assert sorted(recipe["requirements"]["run"]) == sorted([python, *conda(project["dependencies"])])
    extras = project["optional-dependencies"]
    optional = {requirement for name in ("cli", "report", "io", "ann", "dask") for requirement in extras[name]}
    assert sorted(recipe["requirements"]["run_constraints"]) == conda(optional)


def test_the_recipe_builds_as_the_project_does(project, recipe):
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert set(conda(build)) <= set(recipe["requirements"]["host"])
    assert recipe["build"]["python"]["entry_points"] == [f"{k} = {v}" for k, v in project["scripts"].items()]


def test_version_licence_and_summary_are_the_same_everywhere(project, recipe):
    citation = read_yaml("CITATION.cff")
    assert project["version"] == recipe["context"]["version"] == citation["version"]
    assert project["license"] == recipe["about"]["license"] == citation["license"] == "BSD-3-Clause"
    assert project["description"] == recipe["about"]["summary"]
    assert project["license-files"] == [recipe["about"]["license_file"]]
    assert (ROOT / "LICENSE").exists()


def test_pythons_of_classifiers_and_workflow_agree(project):
    classifiers = [line.rpartition(" ")[2] for line in project["classifiers"] if ":: Python :: 3." in line]
    assert classifiers[0] == project["requires-python"].removeprefix(">=")
    matrix = read_yaml(".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert sorted({*matrix["python"], *(extra["python"] for extra in matrix["include"])}) == sorted(classifiers)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_has_jobs_with_steps_and_makes_targets_that_exist(workflow):
    content = yaml.safe_load(workflow.read_text(encoding="utf-8"))
    targets = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert content["permissions"] == {"contents": "read"}
    for job in content["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            made = re.findall(r"^make ([a-z -]+)", step.get("run", ""), re.MULTILINE)
            assert {target for line in made for target in line.split()} <= targets


def test_only_the_job_that_publishes_may_ask_for_an_identity():
    jobs = read_yaml(".github/workflows/publish.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "permissions" not in jobs["build"]


def test_no_address_of_the_project_is_invented(project, recipe):
    """There is no public repository yet. When there is one, its address comes here, and into both files."""
    assert "urls" not in project
    assert not {"homepage", "repository", "documentation"} & set(recipe["about"])
