"""scikit-learn's callbacks (from version 1.9 on) on every estimator, beside its own ``callback``."""

import pickle

import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding
from common.estimators import cases, having, outputs, sample
from sklearn.base import clone

from kernelweave.solvers.result import Status

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")

pytestmark = pytest.mark.filterwarnings("ignore:The labelled rows have equally many")


class Recorder:
    """Keeps what it is told, and stops where `stops_at` says so."""

    def __init__(self, stops_at=lambda context: False):
        self.calls, self.stops_at = [], stops_at

    def setup(self, estimator, context):
        self.calls.append(("setup", context, {}))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context, {}))

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.calls.append(("begin", context, {"X": X, "y": y}))

    def on_fit_task_end(self, estimator, context, *, metadata=None, fitted_estimator=None):
        self.calls.append(("end", context, {"metadata": metadata, "fitted": fitted_estimator}))
        return self.stops_at(context)

    def tasks(self, hook="end"):
        return [(context, given) for name, context, given in self.calls if name == hook]

    def states(self):
        return [given["metadata"]["state"] for _, given in self.tasks() if "state" in (given["metadata"] or {})]


@cases()
def test_a_fit_is_a_tree_of_tasks_that_all_begin_and_end(case):
    X, y = sample(case, n_classes=3)
    recorder = Recorder()
    model = case.model().set_callbacks(recorder)
    private = {name for name in vars(model) if name.startswith("_")}
    assert model.fit(X, y) is model
    assert_same_but_for_rounding(outputs(model, X), outputs(case.model().fit(X, y), X))
    hooks = [hook for hook, _, _ in recorder.calls]
    assert hooks[:2] == ["setup", "begin"]
    assert hooks[-2:] == ["end", "teardown"]
    opened = []
    for hook, context, _ in recorder.calls[1:-1]:
        if hook == "begin":
            assert context.parent is (opened[-1] if opened else None)
            opened.append(context)
        else:
            assert opened.pop() is context
    assert not opened
    root, given = recorder.tasks("begin")[0]
    assert given == {"X": X, "y": y}
    assert (root.task_name, root.max_subtasks) == ("fit", 2 if "callback" in case.parameters else 0)
    fitted = recorder.tasks()[-1][1]["fitted"]
    assert_same_but_for_rounding(outputs(fitted, X), outputs(model, X))
    assert private < {name for name in vars(model) if name.startswith("_")} - {"_fit_tasks", "_callback_fit_ctx"}


@cases(where=lambda case: "callback" in case.parameters and not case.combines_models)
def test_steps_carry_the_states_that_the_own_callback_sees(case):
    X, y = sample(case, n_classes=3)
    recorder, seen = Recorder(), []
    model = case.model(callback=seen.append).set_callbacks(recorder).fit(X, y)
    n_steps = len(recorder.states())
    assert n_steps >= model.n_iter_
    assert recorder.states() == seen[-n_steps:]  # folds that choose C are fits of their own
    steps = [context for context, _ in recorder.tasks() if context.task_name == "step"]
    for context in {id(step.parent): step.parent for step in steps}.values():
        assert context.task_name in ("solve", "problem")
        limit = recorder.states()[0].max_steps
        assert context.max_subtasks == (None if limit is None else limit + 1)
    assert (limit is None) == ("max_iter" not in case.parameters)


@cases(where=having("callback"))
def test_a_task_whose_end_says_stop_stops_the_fit(case):
    X, y = sample(case, n_classes=3)
    recorder = Recorder(lambda context: context.parent is not None and context.task_name != "prepare")
    model = case.model().set_callbacks(recorder).fit(X, y)
    assert model.status_ is (Status.SEARCH_STOPPED if case.combines_models else Status.CALLBACK)
    assert np.isfinite(outputs(model, X)).all()


class StopError(Exception):
    """Nothing of the package catches it."""


@cases(where=having("callback"))
def test_a_callback_that_raises_ends_the_fit_and_is_torn_down(case):
    def refuse(context):
        raise StopError

    X, y = sample(case)
    recorder = Recorder(refuse)
    model = case.model().set_callbacks(recorder)
    before = set(vars(model))
    with pytest.raises(StopError):
        model.fit(X, y)
    assert recorder.calls[-1][0] == "teardown"
    assert set(vars(model)) == before


@cases()
def test_copies_keep_the_callbacks(case):
    recorder = Recorder()
    model = case.model().set_callbacks(recorder)
    assert clone(model)._skl_callbacks == [recorder]
    assert len(pickle.loads(pickle.dumps(case.model().set_callbacks(Silent())))._skl_callbacks) == 1
    assert not hasattr(model.set_callbacks(), "_skl_callbacks")


class Silent:
    """A callback that can be pickled, and is handed on to the estimators inside of one."""

    max_propagation_depth = None

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        pass
