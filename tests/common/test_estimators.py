"""The list that the common tests run over is complete."""

import inspect
from pathlib import Path

from common.estimators import ESTIMATORS, VARIANTS, case_id

import kernelweave
from kernelweave.estimators.shared.base import KernelEstimator

MIRROR = Path(__file__).parents[1] / "estimators"


def test_every_public_estimator_is_listed_once():
    public = [getattr(kernelweave, name) for name in kernelweave.__all__]
    estimators = [value for value in public if inspect.isclass(value) and issubclass(value, KernelEstimator)]
    assert sorted(case.name for case in ESTIMATORS) == sorted(estimator.__name__ for estimator in estimators)
    assert len(estimators) >= 19


def test_what_every_estimator_is_asked_is_asked_here_only():
    copies = [file.name for file in MIRROR.rglob("*.py") if "parametrize_with_checks" in file.read_text("utf-8")]
    assert copies == []


def test_variants_are_of_listed_estimators_and_differ():
    assert {case.name for case in VARIANTS} <= {case.name for case in ESTIMATORS}
    names = [case_id(case) for case in ESTIMATORS + VARIANTS]
    assert len(set(names)) == len(names)


def test_every_task_occurs():
    assert {case.task for case in ESTIMATORS} == {"classes", "numbers", "one class", "features"}


def test_what_a_case_names_are_parameters_of_its_estimator():
    for case in ESTIMATORS + VARIANTS:
        named = {case.kernel or "learner", *case.exact, *case.draws}
        named |= {name for options, _ in case.limits.values() for name in options}
        assert named <= case.parameters, case_id(case)
        assert bool(case.line) == ("verbose" in case.parameters), case_id(case)
