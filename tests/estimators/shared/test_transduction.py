import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from kernelweave import (
    RBF,
    FromCallable,
    LapSVMClassifier,
    Linear,
    Precomputed,
    Sigmoid,
    TSVMClassifier,
    TSVMMKLClassifier,
)
from kernelweave.estimators.shared import transduction
from kernelweave.solvers.result import FitState, Status

PAIR = [RBF(), Linear()]
pytestmark = pytest.mark.filterwarnings("ignore:The class shares are")  # some small samples do
TSVMS = [TSVMClassifier(), TSVMMKLClassifier(PAIR)]
each_tsvm = pytest.mark.parametrize("model", TSVMS, ids=str)


def blobs(seed=0, n=80, n_labeled=16, n_classes=2, distance=2.0):
    """Overlapping clusters, the first rows labelled, -1 the others."""
    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(n_classes), np.arange(n_classes), rng.integers(0, n_classes, size=n - 2 * n_classes)]
    X = rng.normal(size=(n, 3)) + distance * np.eye(n_classes, 3)[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


# What goes in and what comes out


@pytest.mark.parametrize("make", [TSVMClassifier, TSVMMKLClassifier, LapSVMClassifier])
def test_sparse_rows_have_a_linear_kernel_by_default(make):
    X, y, truth = blobs(4, distance=4.0)
    X = np.where(X > 0.5, X, 0.0)
    model = make(tol=1e-6).fit(sparse.csr_array(X), y)
    assert "Linear" in str(model.library_)
    assert "RBF" not in str(model.library_)
    assert ("cosine" in str(model.library_)) == (make is not TSVMClassifier)
    assert np.mean(model.transduction_ == truth) > 0.7
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), model.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("make", [TSVMClassifier, TSVMMKLClassifier])
def test_a_precomputed_kernel_may_be_kept_in_single_precision(make):
    X, y, _ = blobs(6)
    model = make(Precomputed(X @ X.T), dtype="float32").fit(np.arange(80)[:, None], y)
    assert model.status_ is Status.CONVERGED


# Flat ramps, stages and restarts


@pytest.mark.parametrize("annealing", [True, False])
@pytest.mark.parametrize("kernel", [Linear(), RBF()], ids=str)
def test_flat_ramps_do_not_stop_the_descent(kernel, annealing):
    X, y, _ = blobs(14, distance=4.0)
    model = TSVMClassifier(kernel, C=1e-3, class_prior=0.5, annealing=annealing).fit(X, y)
    assert model.history_[0]["stretched"]
    assert np.isfinite(model.objective_)
    assert all(np.isfinite(path).all() for path in model.objective_path_)
    assert len(np.unique(model.transduction_[16:])) == 2


@each_tsvm
def test_restarts_never_give_a_worse_objective(model):
    for seed in range(3):
        X, y, _ = blobs(seed, n=50, distance=1.0)
        alone = clone(model).set_params(random_state=seed).fit(X, y)
        best = clone(model).set_params(n_restarts=3, random_state=seed).fit(X, y)
        assert best.objective_ <= alone.objective_
        assert best.n_solves_ > alone.n_solves_


@each_tsvm
def test_a_callback_stops_with_a_model_that_predicts(model):
    X, y, _ = blobs(0, distance=1.0)
    seen = []
    stopped = clone(model).set_params(callback=lambda state: seen.append(state) or True, annealing=False)
    stopped.set_params(class_prior=0.5).fit(X, y)
    assert stopped.status_ is Status.CALLBACK
    assert len(seen) == 1
    assert set(stopped.predict(X)) == {0, 1}
    assert isinstance(seen[0], FitState)
    assert (seen[0].iteration, seen[0].phase, seen[0].target) == (1, "annealing at 1", 1e-4)
    assert {"stage", "n_changed", "stretched", "n_solves"} == set(seen[0].details)


def always(state):
    return True


def test_the_objective_after_a_callback_is_that_of_the_problem():
    X, y, _ = blobs(0, distance=1.0)
    early = TSVMClassifier(callback=always, class_prior=0.5).fit(X, y)
    assert early.status_ is Status.CALLBACK
    # a descent from there ends lower
    assert early.objective_ >= TSVMClassifier(class_prior=0.5).fit(X, y).objective_


@pytest.mark.parametrize(
    "options", [{}, {"n_restarts": 2, "class_prior": 0.5}, {"safe": True}, {"ramp": "cv"}], ids=str
)
def test_a_callback_that_says_stop_is_asked_no_more(options):
    X, y, _ = blobs(0, distance=1.0)  # equally many of each class, so that their shares are looked at
    seen = []
    model = TSVMClassifier(callback=lambda state: seen.append(state) or True, random_state=0, **options)
    model.fit(X, y)
    assert len(seen) == 1


@each_tsvm
def test_progress_is_printed_step_by_step(model, capsys):
    X, y, _ = blobs(0)
    found = clone(model).set_params(verbose=2, safe=True, random_state=0).fit(X, y)  # folds are not reported
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(found.history_)
    pattern = r" *\d+%  TSVM\w*: annealing at [\d.]+, step \d+, objective [\d.e+]+, \d+ slopes changed, \d+\.\d s"
    assert all(re.match(pattern, line) for line in lines)
    assert [float(re.search(r"at ([\d.]+)", line)[1]) for line in lines] == [
        pytest.approx(record["stage"], rel=1e-2) for record in found.history_
    ]


# Bad input

X0, Y0, _ = blobs(20)
BAD = {
    "C": [0.0, -1.0, np.inf, np.nan, "CV", None, True],
    "C_unlabeled": [-1.0, np.inf, np.nan, "cv", True],
    "ramp": [1.0, -0.1, np.nan, "CV", None],
    "n_restarts": [-1, 1.5, "a", True],
    "annealing": [1, "yes", None],
    "safe": [0, "no"],
    "scale": ["max", 1.0],
    "tol": [0.0, np.nan],
    "max_iter": [0, 1.5],
    "dtype": ["float16"],
    "callback": [3],
    "verbose": ["yes"],
}
# Equal to zero, but no number that is asked for.
ALMOST = {"n_restarts": [0.0, False, np.zeros(2)], "C_unlabeled": [False, np.zeros(2)], "ramp": [False, np.zeros(2)]}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
@each_tsvm
def test_bad_parameters_give_one_clear_sentence_and_fit_nothing(model, name, value):
    model = clone(model).set_params(**{name: value})
    with pytest.raises(ValueError, match=f"{type(model).__name__} got {name}="):
        model.fit(X0, Y0)
    assert not hasattr(model, "expansion_")


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in ALMOST for value in ALMOST[name]], ids=str)
def test_what_equals_zero_but_is_no_number_gives_one_clear_sentence(name, value):
    with pytest.raises(ValueError, match=f"TSVMClassifier got {name}="):
        TSVMClassifier(**{name: value}).fit(X0, Y0)


@pytest.mark.parametrize("make", [TSVMClassifier, TSVMMKLClassifier])
def test_kernels_that_are_none_are_refused(make):
    with pytest.raises(ValueError, match=f"not positive semi-definite, as {make.__name__} requires"):
        make(Sigmoid(5.0, 5.0)).fit(X0, Y0)
    with pytest.raises(ValueError, match=f"is not symmetric, and {make.__name__} needs"):
        make(FromCallable(lambda A, B: A @ np.triu(np.ones((3, 3))) @ B.T)).fit(X0, Y0)
    with pytest.raises(TypeError, match="kernel"):
        make("rbf").fit(X0, Y0)


# Limits


def test_many_classes_without_time_are_refused_before_their_kernels_are_stacked(monkeypatch):
    X, y, _ = blobs(3, n_classes=3)
    models = [TSVMClassifier(max_time=1e-9), TSVMMKLClassifier(PAIR, max_time=1e-9)]
    own = TSVMMKLClassifier(PAIR, share_weights=False, class_prior=None, max_time=1e-9)
    with pytest.warns(match="max_time"):
        assert own.fit(X, y).status_ is Status.MAX_TIME  # of each machine alone the first is trained
    monkeypatch.setattr(transduction, "stack_kernels", None)
    for model in models:
        with pytest.raises(ValueError, match="before all of 3 machines were trained: nothing can be predicted yet"):
            model.fit(X, y)
