"""Every estimator says what it solves, what its parameters mean, and what it keeps."""

import inspect
import re

import pytest
from common.estimators import cases, fitted

SECTIONS = ["Parameters", "Attributes", "See Also", "Notes", "References", "Examples"]


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
def test_every_attribute_is_documented(case):
    documented = set(names(sections(case.estimator)["Attributes"]))
    kept = {name for name in vars(fitted(case)) if name.endswith("_") and not name.startswith("_")}
    assert kept - documented <= {"n_features_in_", "feature_names_in_"}


@cases()
@pytest.mark.parametrize("method", ["fit", "predict", "transform", "decision_function", "predict_proba", "score"])
def test_every_method_is_documented(case, method):
    if hasattr(case.estimator, method):
        assert re.match(r"[A-Z].*\.", inspect.getdoc(getattr(type(case.estimator), method)))
