"""How estimators are made, enforced: parts instead of ancestors, one border, one place for warnings and for labels."""

import ast
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import kernelweave
from kernelweave.estimators.shared.base import KernelEstimator

SOURCE = Path(kernelweave.__file__).parent
ESTIMATORS = [
    value
    for value in (getattr(kernelweave, name) for name in kernelweave.__all__)
    if inspect.isclass(value) and issubclass(value, KernelEstimator)
]
MAX_OWN_CLASSES = 3  # the base, what it gives out (classes, numbers, features), and the class itself


def trees():
    for file in sorted(SOURCE.rglob("*.py")):
        yield file.relative_to(SOURCE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def calls(tree):
    """Name and node of every call, dotted where an attribute is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_every_estimator_is_looked_at():
    assert len(ESTIMATORS) >= 19
    assert all(issubclass(estimator, BaseEstimator) for estimator in ESTIMATORS)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_an_estimator_has_at_most_three_classes_of_ours(estimator):
    own = [parent.__name__ for parent in estimator.__mro__ if parent.__module__.startswith("kernelweave.")]
    assert len(own) <= MAX_OWN_CLASSES, own


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_every_parameter_has_a_declared_constraint_and_nothing_else_has(estimator):
    assert sorted(estimator._constraints) == sorted(estimator().get_params(deep=False))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_no_class_attribute_stands_in_for_a_parameter(estimator):
    parameters = {name for other in ESTIMATORS for name in other().get_params(deep=False)}
    named = {
        name for parent in estimator.__mro__ if parent.__module__.startswith("kernelweave.") for name in vars(parent)
    }
    assert not (named & parameters)


def test_no_class_of_the_estimators_has_hooks_that_a_parent_calls():
    found = [
        f"{path}: {node.name}"
        for path, tree in trees()
        if path.startswith("estimators/")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and (node.name == "_check_params" or any("abstractmethod" in ast.unparse(d) for d in node.decorator_list))
    ]
    assert not found


def test_estimators_are_not_probed_nor_copied():
    """No getattr with a default on an estimator, no super() that skips a parent, no vars of another estimator."""
    found = []
    for path, tree in trees():
        if not path.startswith("estimators/"):
            continue
        for name, call in calls(tree):
            probe = name == "getattr" and len(call.args) == 3 and ast.unparse(call.args[0]) == "self"
            skip = name == "super" and call.args
            copy = name == "vars" and ast.unparse(call.args[0]) not in ("self", "scratch")
            if probe or skip or copy:
                found.append(f"{path}:{call.lineno} {ast.unparse(call)}")
    assert not found


def test_no_private_method_of_another_object_is_called_by_estimators():
    """`self._x()`, `super()._x()` and functions of the module are fine; `other._x()` is not."""
    found = [
        f"{path}:{call.lineno} {name}"
        for path, tree in trees()
        if path.startswith("estimators/")
        for name, call in calls(tree)
        if re.search(r"\._[a-z]\w*$", name)
        and name.split("._")[0] not in ("self", "cls", "super()")
        and not name.startswith("self._")
    ]
    assert not found


def test_only_one_module_warns():
    found = [f"{path}:{call.lineno}" for path, tree in trees() for name, call in calls(tree) if name == "warnings.warn"]
    assert [place.split(":")[0] for place in found] == ["warn.py"]


def test_only_labels_knows_what_unlabelled_looks_like():
    """Nobody else compares labels with -1, or asks whether a label is NaN."""
    found = []
    for path, tree in trees():
        if not path.startswith(("estimators/", "kernels/", "solvers/", "model_selection/")):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare):
                text = ast.unparse(node)
                if re.search(r"\b(y|labels?)\b\s*(==|!=)\s*-1\b", text):
                    found.append(f"{path}:{node.lineno} {text}")
        found += [
            f"{path}:{call.lineno} {ast.unparse(call)}"
            for name, call in calls(tree)
            if name.endswith("isnan") and call.args and ast.unparse(call.args[0]) in ("y", "labels", "targets")
        ]
    assert not found


def test_the_table_of_benchmarks_is_made_of_their_results():
    file = SOURCE.parents[1] / "benchmarks" / "table.py"
    if not file.exists():
        pytest.skip("the tests run on an installed package")
    spec = importlib.util.spec_from_file_location("benchmarks_table", file)
    table = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = table  # where dataclasses look for their annotations
    spec.loader.exec_module(table)
    assert sorted(entry.folder for entry in table.ENTRIES) == table.list_folders(), "add an entry in table.py"
    assert file.with_name("README.md").read_text() == table.make_page(), "run python benchmarks/table.py"
