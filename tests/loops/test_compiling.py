import warnings

import numpy as np
import pytest
from checks.loop_forms import run_loops
from sklearn.metrics import euclidean_distances

from kernelweave.loops import compiling
from kernelweave.loops.compiling import compile_at_once, compiled, compiled_later
from kernelweave.solvers.machines import smo


@compiled_later
def total(values):
    result = 0.0
    for value in values:
        result += value
    return result


@total.in_numpy
def _total_in_numpy(values):
    return float(np.add.accumulate(values)[-1])


@compiled_later
def mean(values):
    return total(values) / len(values)


@compiled
def double(value):
    return 2.0 * value


@pytest.fixture
def limits(monkeypatch):
    """Set after how many seconds kept code is loaded, and other code compiled; nothing is spent before."""

    def set_limits(loading, compiling_seconds):
        monkeypatch.setattr(compiling._Plain, "seconds", 0.0)
        monkeypatch.setattr(compiling, "LOADING_SECONDS", loading)
        monkeypatch.setattr(compiling, "COMPILING_SECONDS", compiling_seconds)
        for loop in (total, mean):
            monkeypatch.setattr(loop, "_chosen", None)
            monkeypatch.delitem(loop.__dict__, "_max_plain_seconds", raising=False)

    return set_limits


def is_compiled(loop):
    return loop._chosen is not None


def test_a_loop_runs_in_its_plain_form_until_compiling_pays(limits):
    limits(0.0, np.inf)
    assert total(np.arange(4.0)) == 6.0
    assert not is_compiled(total)
    assert compiling._Plain.seconds > 0.0
    limits(-1.0, -1.0)
    assert total(np.arange(4.0)) == 6.0
    assert is_compiled(total)


def test_loops_are_compiled_at_once_if_asked(limits):
    limits(1.0, 1.0)
    compile_at_once()
    assert mean(np.arange(4.0)) == 1.5
    assert is_compiled(mean)


def test_code_that_is_kept_is_loaded_earlier(limits, monkeypatch):
    from kernelweave.loops import numba_cache

    limits(-1.0, np.inf)
    monkeypatch.setattr(numba_cache, "is_kept", lambda dispatcher: False)
    assert mean(np.arange(4.0)) == 1.5
    assert not is_compiled(mean)
    limits(-1.0, np.inf)
    monkeypatch.setattr(numba_cache, "is_kept", lambda dispatcher: True)
    assert mean(np.arange(4.0)) == 1.5
    assert is_compiled(mean)


def test_where_numba_does_not_compile_loops_stay_in_their_plain_form(limits, monkeypatch):
    from kernelweave.loops import numba_cache

    limits(-1.0, -1.0)
    monkeypatch.setattr(numba_cache, "is_jitted", lambda dispatcher: False)
    assert mean(np.arange(4.0)) == 1.5
    assert not is_compiled(mean)


def test_a_loop_calls_others_in_its_own_form(limits, monkeypatch):
    for loop in (total, mean):
        monkeypatch.delitem(loop.__dict__, "plain", raising=False)  # bound anew, and as before after the test
    monkeypatch.setattr(total, "_plain", lambda values: -4.0)
    limits(np.inf, np.inf)
    assert mean(np.ones(4)) == -1.0
    limits(-1.0, -1.0)
    assert mean(np.ones(4)) == 1.0


def test_without_plain_form_a_loop_is_compiled_at_once():
    assert double(3.0) == 6.0
    assert is_compiled(double)


def test_what_compiled_loops_do_silently_is_silent_in_the_plain_form_too(limits):
    limits(np.inf, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(total(np.array([np.inf, -np.inf])))


@pytest.mark.parametrize("variant", ["total", "no total", "groups", "index", "float32"])
def test_what_a_solver_returns_does_not_depend_on_the_form_of_its_loops(variant):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(150, 4))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=150) > 0.3, 1.0, -1.0)
    keywords = {
        "no total": {"total": None},
        "groups": {"groups": (y > 0).astype(int), "start": 3.0 * y},
        "index": {"index": rng.integers(150, size=150)},
    }.get(variant, {})
    K = np.exp(-0.2 * euclidean_distances(X, squared=True)).astype(np.float32 if variant == "float32" else float)
    results = []
    for form in ("plain", "compiled"):
        with run_loops(form):
            found = smo.solve(K, -y, np.minimum(0.0, 10.0 * y), np.maximum(0.0, 10.0 * y), tol=1e-6, **keywords)
            results.append(found)
    plain, compiled_ = results
    assert plain.n_iter == compiled_.n_iter
    np.testing.assert_allclose(plain.x, compiled_.x, atol=1e-9)
    assert plain.objective == pytest.approx(compiled_.objective, rel=1e-12)


def test_loops_keep_their_names_and_docstrings():
    from kernelweave.solvers.compiled_loops import mirror

    assert mirror.__name__ == "mirror"
    assert mirror.__doc__.startswith("Copy what is above")
