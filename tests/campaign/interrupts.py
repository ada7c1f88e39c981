"""A fit that is interrupted at any of its bytecodes leaves the estimator as it was, and the next fit is a whole one."""

import sys
import warnings
from functools import cache

import numpy as np
from campaign.apart import PACKAGE
from common.estimators import ESTIMATORS, VARIANTS, Case, case_id, outputs, sample

from kernelweave import RBF, LapSVMClassifier, SemiSupervisedCalibration
from kernelweave.loops import compiling
from kernelweave.solvers.result import Status

CASES = [
    *ESTIMATORS,
    *VARIANTS,
    Case(SemiSupervisedCalibration(LapSVMClassifier(RBF(), C=1.0, ratio=1.0), cv=2, min_labels=2)),
]
CLOSE = 1e-9


def run(number):
    """One interrupt."""
    compiling._Plain.seconds = float("inf")  # loops are compiled, and not only after a while
    case = CASES[number % len(CASES)]
    rng = np.random.default_rng([6, number])
    X, y = sample(case, n=24)
    at = int(rng.integers(1, count_bytecodes(number % len(CASES)) + 1))
    fitted = rng.random() < 0.5
    model = case.model().fit(X, y) if fitted else case.model()
    before = dict(vars(model))
    given = X.copy(), y.copy()
    complaints = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ended = interrupt(lambda: model.fit(X, y), at)
        changed = list_changed(before, model)
        if ended == "interrupted" and changed:
            ended = "interrupted at its end"  # all was kept, in one step, and the fit was about to return
            if changed != list_replaced(number % len(CASES), fitted) or not is_whole(model, number % len(CASES), X):
                complaints.append(f"changed {changed}")
        elif ended == "interrupted" and fitted and not is_whole(model, number % len(CASES), X):
            complaints.append("predicts otherwise than before")
        elif ended in ("lost", "not reached") and not is_whole(model, number % len(CASES), X):
            complaints.append(f"ended with another model, {status_of(model)}")
        elif ended not in ("interrupted", "lost", "not reached"):
            complaints.append(ended)
            ended = "another error"
        if not is_whole(case.model().fit(X, y), number % len(CASES), X):
            complaints.append("the next fit gives another model")
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(given, (X, y), strict=True)):
            complaints.append("the rows or the labels were changed")
    about = {"about": f"{case_id(case)}, bytecode {at}, {'fitted' if fitted else 'new'}", "ended": ended}
    return about | ({"defect": "; ".join(complaints)} if complaints else {})


def interrupt(task, at):
    """Run a task and interrupt it; return how it ended."""
    try:
        with Bytecodes(at) as bytecodes:
            task()
    except KeyboardInterrupt:
        return "interrupted"
    except Exception as error:  # noqa: BLE001 - what became of the interrupt
        return f"the interrupt became {type(error).__name__}: {error}"
    # What is raised where a generator is closed is lost. The first fits of a process have some more bytecodes.
    return "lost" if bytecodes.n_codes >= at else "not reached"


def list_changed(before, model):
    """The attributes of a model that are other objects than before."""
    after = vars(model)
    return sorted(name for name in before.keys() | after.keys() if before.get(name) is not after.get(name))


@cache
def list_replaced(position, fitted):
    """The attributes that a fit replaces, of a fitted model or of a new one."""
    case = CASES[position]
    X, y = sample(case, n=24)
    model = case.model().fit(X, y) if fitted else case.model()
    before = dict(vars(model))
    return list_changed(before, model.fit(X, y))


def is_whole(model, position, X):
    """Whether a model is the one that an ordinary fit gives, or says that its search was stopped."""
    found, expected = outputs(model, X), expected_outputs(position)
    if status_of(model) is Status.SEARCH_STOPPED:
        return np.isfinite(found).all()
    return np.abs(found - expected).max() <= CLOSE * max(1e-300, np.abs(expected).max())


def status_of(model):
    """How a fit ended; calibration does not say so."""
    return getattr(model, "status_", None)


@cache
def expected_outputs(position):
    case = CASES[position]
    X, y = sample(case, n=24)
    return outputs(case.model().fit(X, y), X)


@cache
def count_bytecodes(position):
    """How many bytecodes of this package a fit has."""
    case = CASES[position]
    X, y = sample(case, n=24)
    for _ in range(2):  # which compile, import, and fill caches
        case.model().fit(X, y)
    with Bytecodes() as all_of_them:
        case.model().fit(X, y)
    return all_of_them.n_codes


class Bytecodes:
    """Counts bytecodes of functions of this package, and interrupts at one of them."""

    def __init__(self, at=None):
        self.n_codes, self.at = 0, at

    def __enter__(self):
        sys.settrace(self.enter)
        return self

    def __exit__(self, *given):
        sys.settrace(None)

    def enter(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame, event, argument):
        if event == "opcode":
            self.n_codes += 1
            if self.n_codes == self.at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.step
