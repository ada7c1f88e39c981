"""A fit that is interrupted, wherever it is, leaves the estimator as it was."""

import inspect
import sys
from pathlib import Path

import pytest
from common.estimators import cases, having, labeled_sample
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import kernelweave
from kernelweave.loops import compiling
from kernelweave.solvers.result import Status

PACKAGE = str(Path(kernelweave.__file__).parent)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def same_calls_in_every_fit(monkeypatch):
    monkeypatch.setattr(compiling._Plain, "seconds", float("inf"))  # loops are compiled, and not only after a while


class Interruption:
    """Counts the calls of functions of this package, and interrupts one of them."""

    def __init__(self, at=None):
        self.n_calls, self.at = 0, at

    def __enter__(self):
        sys.setprofile(self)
        return self

    def __exit__(self, *given):
        sys.setprofile(None)

    def __call__(self, frame, event, argument):
        # What is raised where a generator is closed is lost, in this test as at any other time.
        is_generator = frame.f_code.co_flags & inspect.CO_GENERATOR
        if event == "call" and not is_generator and frame.f_code.co_filename.startswith(PACKAGE):
            self.n_calls += 1
            if self.n_calls == self.at:
                raise KeyboardInterrupt


@cases(where=lambda case: not case.combines_models)
def test_a_fit_that_is_interrupted_anywhere_leaves_the_estimator_as_it_was(case):
    X, y = labeled_sample(case, n=30)
    model, fitted = case.model(**case.draws), case.model(**case.draws).fit(X, y)
    with Interruption() as whole:  # the first fit may have compiled and imported
        fitted.fit(X, y)
    for share in (0.02, 0.3, 0.7, 0.9, 0.99):
        with pytest.raises(KeyboardInterrupt), Interruption(at=max(1, int(share * whole.n_calls))):
            model.fit(X, y)
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        assert vars(model).keys() == model.get_params(deep=False).keys()
        before = {name: id(value) for name, value in vars(fitted).items()}
        with pytest.raises(KeyboardInterrupt), Interruption(at=max(1, int(share * whole.n_calls))):
            fitted.fit(X, y)
        assert {name: id(value) for name, value in vars(fitted).items()} == before


@cases(where=lambda case: case.combines_models)
def test_a_search_that_is_interrupted_anywhere_leaves_the_estimator_as_it_was_or_says_so(case):
    X, y = labeled_sample(case, n=30)
    case.model().fit(X, y)  # the first fit may compile and import
    with Interruption() as whole:
        case.model().fit(X, y)
    raised = []
    for share in (0.002, 0.3, 0.5, 0.7, 0.9, 0.98):
        model = case.model()
        try:
            with Interruption(at=max(1, int(share * whole.n_calls))):
                model.fit(X, y)
        except KeyboardInterrupt:
            raised.append(True)
            assert vars(model).keys() == model.get_params(deep=False).keys()
        else:
            raised.append(False)
            assert model.status_ is Status.SEARCH_STOPPED
            assert len(model.predict(X)) == 30
    assert raised[0]  # no candidate was finished
    assert not all(raised)


def interrupt(state):
    raise KeyboardInterrupt


@cases(where=having("callback"))
def test_a_fit_that_its_callback_interrupts_leaves_the_estimator_as_it_was(case):
    X, y = labeled_sample(case, n=30)
    model = case.model(callback=interrupt)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model) == before
    fitted = dict(vars(model.set_params(callback=None).fit(X, y)))
    with pytest.raises(KeyboardInterrupt):
        model.set_params(callback=interrupt).fit(X[:, :2], y)
    assert all(vars(model)[name] is value for name, value in fitted.items() if name != "callback")
    assert clone(model).get_params()["callback"] is interrupt
