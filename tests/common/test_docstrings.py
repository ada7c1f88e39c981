"""Every public name says what it takes and returns; every estimator what it solves and what it keeps."""

import inspect
import re
from ast import literal_eval
from importlib import import_module
from operator import attrgetter

import numpy as np
import pytest
from common.estimators import cases, fitted
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import kernelweave
from kernelweave import LapSVMClassifier, SemiSupervisedCalibration, datasets, model_selection
from kernelweave.estimators.cg_boost_path import CGBoostPath
from kernelweave.inspection.comparison import Comparison
from kernelweave.inspection.explanation import CombinedExplanation, Explanation
from kernelweave.inspection.importance import ColumnImportance
from kernelweave.kernels.diagnosis import KernelDiagnosis
from kernelweave.kernels.expansion import KernelExpansion
from kernelweave.solvers.result import Certificate

SECTIONS = ["Parameters", "Attributes", "See Also", "Notes", "References", "Examples"]
# Of numpydoc's checks, those that do not hold here, and why.
IGNORED = {
    "GL01": "the summary begins on the line of the opening quotes",
    "GL02": "a docstring of one line is closed on it",
    "SS05": "a summary says what one gets, and need not begin with a verb",
    "SS06": "a summary may take two lines",
    "ES01": "a summary may say it all",
}
IGNORED_IN_CLASSES = {
    "SA01": "the relatives of a method are those of its class",
    "EX01": "the example of a class shows its methods",
}
# What public functions return and models keep. Users do not make these: fields are attributes, not parameters.
RESULTS = (
    Certificate,
    CGBoostPath,
    ColumnImportance,
    CombinedExplanation,
    Comparison,
    Explanation,
    KernelDiagnosis,
    KernelExpansion,
)


def sections(estimator):
    """Titles and texts of a numpydoc docstring, the summary under the empty title."""
    text = inspect.cleandoc(type(estimator).__doc__)
    found = re.split(r"\n\n([A-Z][A-Za-z ]+)\n-{4,}\n", f"\n\n{text}")
    return {"": found[0].strip(), **dict(zip(found[1::2], found[2::2], strict=True))}


def names(section):
    """Names that a section documents, in order."""
    heads = re.findall(r"(?m)^(\w[\w, ]*?)(?: :|$)", section)
    return [name for head in heads for name in head.split(", ")]


@cases()
def test_the_docstring_has_its_sections_in_order(case):
    found = list(sections(case.estimator))[1:]
    assert {"Parameters", "Attributes", "Examples"} <= set(found)
    assert found == [title for title in SECTIONS if title in found]


@cases()
def test_the_first_line_is_a_sentence_and_the_problem_is_written(case):
    summary = sections(case.estimator)[""]
    assert re.match(r"[A-Z][^\n]*\.(\n|$)", summary)
    assert ".. math::" in summary or ":math:" in summary or "The problem is that of :class:" in summary


@cases()
def test_every_parameter_is_documented_once_and_nothing_else(case):
    documented = names(sections(case.estimator)["Parameters"])
    signature = [name for name in inspect.signature(type(case.estimator).__init__).parameters if name != "self"]
    assert sorted(documented) == sorted(signature)


@cases()
def test_every_attribute_is_documented_and_no_other(case):
    check_attributes(fitted(case))


def test_every_attribute_of_the_calibration_is_documented_and_no_other():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(np.arange(40) < 30, X[:, 0] > 0, np.nan)
    check_attributes(SemiSupervisedCalibration(LapSVMClassifier(ratio=0.0), cv=2).fit(X, y))


def check_attributes(model):
    documented = set(names(sections(model)["Attributes"]))
    kept = {name for name in {*vars(model), *dir(type(model))} if re.fullmatch(r"[^_](.*[^_])?_", name)}
    assert kept <= documented <= kept | {"feature_names_in_"}


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.__name__)
def test_every_field_of_a_result_is_described(result):
    entries = NumpyDocString(inspect.getdoc(result))["Attributes"]
    assert [entry.name for entry in entries if not entry.desc] == []
    described = {name for entry in entries for name in entry.name.split(", ")}
    assert set(inspect.signature(result).parameters) <= described


# Docstrings of all public names, by numpydoc


def public_things():
    """Public classes and functions, each with the package that users import it from."""
    packages = (model_selection, datasets, kernelweave)
    return {getattr(package, name): package for package in packages for name in package.__all__}


def members(cls):
    """Names of the public methods and properties that are written in this package."""
    for name in dir(cls):
        value = inspect.getattr_static(cls, name)
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not name.startswith("_") and inspect.isfunction(function) and function.__module__.startswith("kernelweave."):
            yield name


def docstrings():
    """What every public docstring belongs to, by dotted path; a method that overrides may have none of its own."""
    found = {}
    for thing in (*public_things(), *RESULTS):
        if thing not in RESULTS:
            found[f"{thing.__module__}.{thing.__qualname__}"] = thing
        for name in members(thing) if inspect.isclass(thing) else ():
            parents = [parent for parent in thing.__mro__ if name in vars(parent)]
            home = next((parent for parent in parents if vars(parent)[name].__doc__), parents[0])
            found[f"{home.__module__}.{home.__qualname__}.{name}"] = getattr(home, name)
    return found


DOCSTRINGS = docstrings()


def test_public_names_are_looked_at():
    assert len(public_things()) >= 65
    assert {
        "kernelweave.estimators.ssmk.SSMKClassifier.fit",
        "kernelweave.estimators.shared.outputs.KernelClassifier.score",
        "kernelweave.kernels.base.Kernel.is_psd",
        "kernelweave.inspection.path.PathDisplay.from_path",
        "kernelweave.datasets.loading.load",
    } <= set(DOCSTRINGS)


@pytest.mark.parametrize("path", DOCSTRINGS)
def test_numpydoc_has_nothing_to_complain_about(path):
    report = validate(path)
    ignored = IGNORED if DOCSTRINGS[path] in public_things() else {**IGNORED, **IGNORED_IN_CLASSES}
    assert [error for error in report["errors"] if error[0] not in ignored] == []
    parsed = NumpyDocString(report["docstring"])  # numpydoc looks at no attributes, nor at types with braces
    assert [entry.name for entry in parsed["Parameters"] + parsed["Attributes"] if not entry.desc] == []


@pytest.mark.parametrize("path", [path for path, thing in DOCSTRINGS.items() if callable(thing)])
def test_defaults_are_those_of_the_signature(path):
    thing = DOCSTRINGS[path]
    actual = {name: value.default for name, value in inspect.signature(thing).parameters.items()}
    for entry in NumpyDocString(inspect.getdoc(thing))["Parameters"]:
        for name in entry.name.split(", "):
            default = actual[name.lstrip("*")]
            assert read_default(entry.type) == ({} if repr(default) == "<factory>" else default), name


def read_default(text):
    """The default that a type such as 'int, default=5' names; empty where it names none."""
    found = re.search(r", (?:default=(.+)|optional)$", text)
    if found is None:
        return inspect.Parameter.empty
    return np.float64 if found[1] == "float64" else literal_eval(found[1] or "None")


@pytest.mark.parametrize("thing, package", public_things().items(), ids=lambda value: value.__name__)
def test_every_relative_exists(thing, package):
    relatives = [name for names, _ in NumpyDocString(inspect.getdoc(thing))["See Also"] for name, _ in names]
    assert relatives
    assert thing.__name__ not in relatives
    for name in relatives:
        module, _, leaf = name.rpartition(".") if name.startswith(("sklearn.", "kernelweave.")) else ("", "", name)
        home = import_module(module) if module else package if hasattr(package, leaf.partition(".")[0]) else kernelweave
        attrgetter(leaf)(home)
