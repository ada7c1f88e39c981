"""scikit-learn's callbacks (``set_callbacks``, from version 1.9 on): the steps of a fit as a tree of tasks.

===========  ======================================================================================================
``prepare``  everything before the first step: kernels, and folds that choose parameters
``solve``    its tasks are ``step``, one for each :class:`~kernelweave.solvers.result.FitState`; where several problems
             are solved one after the other, its tasks are ``problem``, with steps of their own
``search``   instead of ``solve`` in a search: its tasks are fits of candidates, to all labels and in folds, and the
             tasks of a candidate hang below
===========  ======================================================================================================

A hook that asks for ``metadata`` finds the state of a finished step there, under ``"state"``. Fits without steps are
one task. A solver does not know beforehand which step is its last, so the last one of a problem has no state, as in
scikit-learn's ``LogisticRegression``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ...solvers.result import FitState

try:
    from sklearn import callback as sklearn_callback
except ImportError:
    sklearn_callback = None
# Before scikit-learn 1.9 estimators have no set_callbacks, so that no fit has tasks.
CallbackSupport: Any = object if sklearn_callback is None else sklearn_callback.CallbackSupportMixin
with_callbacks: Any = None if sklearn_callback is None else sklearn_callback.with_callbacks

Around = Callable[[Any], AbstractContextManager[Any]]  # what surrounds the fit of an estimator
OpenTask = Callable[[str], Around]  # makes that of the fit of this name


def with_tasks(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method ``fit`` that reports its tasks where the estimator has callbacks, or is part of a tree."""
    if with_callbacks is None:
        return fit
    run = with_callbacks(functools.partial(_fit_with_tasks, fit))

    @functools.wraps(fit)
    def reporting_fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        is_followed = "_skl_callbacks" in vars(self) or "_parent_callback_ctx" in vars(self)
        if not is_followed or "_fit_tasks" in vars(self):  # the latter in a subclass whose fit calls this one
            return fit(self, *args, **kwargs)
        return run(self, *args, **kwargs)

    return reporting_fit


def _fit_with_tasks(fit: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """Run the method ``fit`` of an estimator as a tree of tasks."""
    given = inspect.signature(fit).bind(self, *args, **kwargs).arguments
    is_iterative = "callback" in self._constraints
    root = self._init_callback_context(max_subtasks=2 if is_iterative else 0)
    tasks = FitTasks(self, root, given, has_steps=is_iterative and "_skl_callbacks" in vars(self))
    try:
        self._fit_tasks = tasks
        tasks.start()
        fit(self, *args, **kwargs)
        tasks.finish()
    finally:
        vars(self).pop("_fit_tasks", None)
    return self


class FitTasks:
    """The tasks of a running fit; called with a state after each step, as the user's own ``callback``.

    Parameters
    ----------
    estimator : estimator
        Whose fit it is; its ``callback``, if it has one, is called as well.
    root : sklearn.callback.CallbackContext
        Of the fit; without subtasks where the estimator has no steps to report.
    given : mapping
        The arguments of ``fit``, by name.
    has_steps : bool
        Whether steps are tasks; contexts of steps that nobody follows would only fill the memory.
    """

    def __init__(self, estimator: Any, root: Any, given: Any, *, has_steps: bool):
        self.estimator, self.callback = estimator, getattr(estimator, "callback", None)
        self._root, self._has_steps = root, has_steps
        weight = given.get("sample_weight")
        self._metadata = None if weight is None else {"sample_weight": weight}
        self._data = {"X": given.get("X"), "y": given.get("y")}
        self._open: list[Any] = []  # contexts of the tasks that are not finished, the outermost first
        self._sub_fits: list[SubFit] = []
        self._problem: int | None = None
        self._is_stopped = False

    def __getstate__(self) -> dict[str, Any]:
        return {}  # an estimator that is sent to another process reports nothing from there

    def start(self) -> None:
        """Begin the fit."""
        self._call_begin(self._root)
        if self._root.max_subtasks:
            self._begin("prepare")

    def finish(self) -> None:
        """End the fit, and what is left open."""
        self._end_down_to(1)
        self._end(reconstruction_attributes={})

    def __call__(self, state: FitState) -> bool:
        """End a step and begin the next one; return whether a callback stops the problem."""
        stops = self.ask(state)
        if not self._has_steps:
            return stops
        n_steps = None if state.max_steps is None else state.max_steps + 1  # and one without a state
        has_problems = state.n_problems > 1
        if self._problem is None:
            self._end_down_to(1)
            self._begin("solve", state.n_problems if has_problems else n_steps)
        if has_problems and state.problem != self._problem:
            self._end_down_to(2)
            self._begin("problem", n_steps)
        self._problem = state.problem
        depth = 3 + has_problems
        if len(self._open) < depth:
            self._begin("step")
        asked = self._end(state)
        stops = stops or asked or self._is_stopped
        if not stops:
            self._begin("step")
        return stops

    def as_parameter(self) -> dict[str, Any]:
        """Return itself as the parameter ``callback`` of an estimator that has one.

        One of the user's that is no function is left to the check of the parameters.
        """
        is_usable = self._root.max_subtasks and (self.callback is None or callable(self.callback))
        return {"callback": self} if is_usable else {}

    def ask(self, state: FitState) -> bool:
        """Return whether the user's ``callback``, or one that was asked after the fit of a candidate, says stop."""
        asked = self.callback is not None and bool(self.callback(state))
        return asked or any(fit.is_stopped for fit in self._sub_fits)

    def start_search(self, n_fits: int) -> None:
        """Begin a search of at most so many fits of candidates."""
        self._end_down_to(1)
        self._begin("search", n_fits)

    def open_fit(self, name: str) -> SubFit:
        """Return the task in which a candidate is fitted."""
        self._sub_fits.append(SubFit(self._open[-1].subcontext(task_name=name), self.estimator))
        return self._sub_fits[-1]

    def _begin(self, name: str, max_subtasks: int | None = 0) -> None:
        self._call_begin(self._open[-1].subcontext(task_name=name, max_subtasks=max_subtasks))

    def _call_begin(self, context: Any) -> None:
        context.call_on_fit_task_begin(estimator=self.estimator, **self._data, metadata=self._metadata)
        self._open.append(context)

    def _end(self, state: FitState | None = None, **more: Any) -> bool:
        """End the innermost task; return whether a callback stops the tasks beside it."""
        metadata = self._metadata if state is None else {**(self._metadata or {}), "state": state}
        context = self._open.pop()
        return bool(context.call_on_fit_task_end(estimator=self.estimator, **self._data, metadata=metadata, **more))

    def _end_down_to(self, depth: int) -> None:
        """End tasks until so many are open; who stops the problems is obeyed at the first step of the next."""
        while len(self._open) > depth:
            stops, is_problem = self._end(), len(self._open) == 2
            self._is_stopped = self._is_stopped or (stops and is_problem)


class SubFit:
    """The fit of a candidate as a task of a search; it can be sent to another process.

    Parameters
    ----------
    context : sklearn.callback.CallbackContext
    owner : estimator
        Whose task it is.

    Attributes
    ----------
    is_stopped : bool
        Whether a callback stops the search; one that was called in another process is not heard.
    """

    def __init__(self, context: Any, owner: Any):
        self.context, self.owner, self.is_stopped = context, owner, False

    @contextmanager
    def __call__(self, estimator: Any) -> Iterator[None]:
        """Surround the fit of an estimator, whose tasks become part of the tree."""
        with self.context.propagate_callback_context(estimator):
            self.context.call_on_fit_task_begin(estimator=self.owner)
            yield
        self.is_stopped = bool(self.context.call_on_fit_task_end(estimator=self.owner))


def open_search(callback: Any, n_fits: int) -> tuple[Callable[[FitState], object] | None, OpenTask]:
    """Return what a search calls before its steps, and what makes the tasks of its fits.

    Parameters
    ----------
    callback : callable or None
        The option ``callback`` of the search.
    n_fits : int
        The largest number of fits.
    """
    if not isinstance(callback, FitTasks):
        return callback, no_task
    callback.start_search(n_fits)
    return callback.ask, callback.open_fit


def no_task(name: str) -> Around:
    """Return what surrounds a fit that nobody follows."""
    return nullcontext
