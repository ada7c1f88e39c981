import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import kernelweave
from kernelweave import RBF, KernelWeightsDisplay, Linear, RKDAClassifier
from kernelweave.inspection.displays import as_frame, find_model, search_model, title_of, wilson_interval

DISPLAYS = [name for name in kernelweave.__all__ if name.endswith("Display")]
PAIR = [RBF(), Linear()]


@pytest.fixture(scope="module")
def model(flowers):
    X, names, _ = flowers
    return RKDAClassifier(PAIR).fit(X, names)


def test_a_frame_leaves_out_what_is_not_known():
    frame = as_frame("Display", {"a": [1, 2], "b": None})
    pd.testing.assert_frame_equal(frame, pd.DataFrame({"a": [1, 2]}))


def test_without_pandas_a_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"KernelWeightsDisplay.data_ needs pandas: pip install 'kernelweave\[cli\]'"):
        KernelWeightsDisplay(["RBF()"], [1.0]).data_  # noqa: B018


@pytest.mark.parametrize("module", ["matplotlib", "kernelweave.report.bars"])
def test_without_matplotlib_a_sentence_names_the_extra(monkeypatch, module):
    for name in [name for name in sys.modules if name.startswith("kernelweave.report")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(sys.modules["kernelweave"], "report", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        ImportError, match=rf"KernelWeightsDisplay.plot needs {module}: pip install 'kernelweave\[report\]'"
    ):
        KernelWeightsDisplay(["RBF()"], [1.0]).plot()


def test_what_draws_is_imported_when_something_is_drawn():
    room = Path(kernelweave.__file__).parent / "inspection"
    assert not [
        file.name
        for file in room.glob("*.py")
        if re.search(r"(?m)^(from|import) .*report\.(?!content)", file.read_text())
    ]


@pytest.mark.parametrize("name", DISPLAYS)
def test_every_display_has_the_methods_of_scikit_learn(name):
    display = getattr(kernelweave, name)
    assert callable(display.plot)
    assert callable(display.from_estimator)
    assert isinstance(display.data_, property)


def test_the_model_is_found_inside_pipelines_and_searches(model, flowers):
    X, names, _ = flowers
    pipeline = make_pipeline(StandardScaler(), RKDAClassifier(PAIR)).fit(X, names)
    assert find_model(pipeline, ("kernel_weights_",), "D") is pipeline[-1]
    search = GridSearchCV(RKDAClassifier(PAIR), {"tol": [1e-3, 1e-4]}, cv=2).fit(X, names)
    assert find_model(search, ("kernel_weights_",), "D") is search.best_estimator_
    assert find_model(model, ("kernel_weights_",), "D") is model
    assert title_of(search, search.best_estimator_) == "RKDAClassifier (in GridSearchCV)"
    assert title_of(model, model) == "RKDAClassifier"


def test_of_a_combination_the_heaviest_member_with_the_attribute_is_found(auto):
    with_history = [member for member in auto.members_ if hasattr(member.model, "history_")]
    heaviest = max(with_history, key=lambda member: member.weight).model
    found = search_model(SimpleNamespace(best_estimator_=None, members_=auto.members_), ("history_",))
    assert found is heaviest
    assert search_model(auto, ("history_",)) in [member.model for member in with_history]
    assert search_model(auto, ("nothing_",)) is None


def test_an_estimator_without_the_attribute_is_refused_in_a_sentence(flowers):
    X, names, _ = flowers
    with pytest.raises(TypeError, match=r"D.from_estimator got SVC, which has none of kernel_usage_, weights_\. Pass"):
        find_model(SVC().fit(X, names), ("kernel_usage_", "weights_"), "D")


def test_wilson_intervals_are_those_of_scipy():
    n = 17
    low, high = wilson_interval(np.arange(n + 1) / n, np.full(n + 1, n))
    for k in range(n + 1):
        expected = binomtest(k, n).proportion_ci(method="wilson")
        np.testing.assert_allclose([low[k], high[k]], [expected.low, expected.high], atol=1e-12)
    assert np.isnan(wilson_interval(np.array([np.nan]), np.array([0]))).all()
