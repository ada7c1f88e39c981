import warnings

import numpy as np
import pandas as pd
import pytest
from checks.learned_weights import learned_classifier, learned_regressor
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.preprocessing import FunctionTransformer

from kernelweave import (
    RBF,
    FromCallable,
    KernelLibrary,
    LapSVMClassifier,
    Linear,
    MKLClassifier,
    Polynomial,
    Preprocessed,
    Sigmoid,
    one_kernel_per_group,
)
from kernelweave.estimators.shared import memory
from kernelweave.estimators.shared.machine import (
    MachineOptions,
    fit_machine,
    stack_labeled,
    train_with_equal_weights,
)
from kernelweave.estimators.shared.problems import class_problem
from kernelweave.estimators.shared.sample import Rows, bind, read_sample
from kernelweave.labels import partition
from kernelweave.solvers.machines.kernel_stack import KernelStack
from kernelweave.solvers.machines.kernel_weights import METHODS
from kernelweave.solvers.margin import classification_rows
from kernelweave.solvers.result import Status

PAIR = [RBF(), Linear()]


def sample(seed=0, n=60, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noisy = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    y = np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1]))
    return X, y


def scaled_kernels(X, kernels, scale="trace"):
    """The kernels of a library, centred and divided by their scales; the offset does not see the centring."""
    found = []
    H = np.eye(len(X)) - 1 / len(X)
    for bound in KernelLibrary(kernels).bind(X, np.random.default_rng(0)).kernels:
        K = H @ bound.block(slice(None), slice(None)) @ H
        found.append(K / {"trace": K.diagonal().mean(), "variance": np.sqrt(np.mean(K**2)), None: 1.0}[scale])
    return np.array(found)


# From margins to machines


def test_one_binding_serves_many_fits():
    X, y = sample(0)
    rows = read_sample(Rows(X, dtypes=("float64",)), partition(y))
    bound = bind(KernelLibrary(PAIR), rows, np.random.default_rng(0))
    options = MachineOptions("Test", scale="trace", dtype="float64", tol=1e-3, max_iter=100)
    for C in (0.1, 10.0, 0.1):
        fit = fit_machine(bound, rows, stack_labeled(bound, rows, options), class_problem(rows, None), options, C)
        model = learned_classifier(PAIR, C=C).fit(X, y)
        np.testing.assert_allclose(fit.expansion(X)[:, 0], model.decision_function(X), atol=1e-9)
        assert fit.objective == pytest.approx(model.objective_, rel=1e-9)
        assert fit.C == C


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_equal_weights_have_norm_one(norm):
    X, y = sample(0)
    stack = KernelStack([rbf_kernel(X), linear_kernel(X), np.eye(60)])
    rows = classification_rows(2.0 * y - 1, np.ones(60))
    found = train_with_equal_weights(stack, [rows.dual()], 0.0, norm, 1e-6)
    assert np.linalg.norm(found.x, norm) == pytest.approx(1.0)
    assert np.ptp(found.x) == 0
    assert found.certificate.relative <= 1e-6


# The problem, recomputed

MIX = [RBF(0.1), RBF(0.4), RBF(2.0), Linear(), Polynomial(2)]
PROBLEMS = [
    {},
    {"norm": 2},
    {"loss": "squared_hinge"},
    {"scale": "variance"},
    {"scale": None},
    {"weighting": "uniform"},
]
every_problem = pytest.mark.parametrize("options", PROBLEMS, ids=str)


@every_problem
def test_objective_and_certificate_are_those_recomputed_by_hand(options):
    X, y = sample(1)
    signs = 2 * y - 1
    model = learned_classifier(MIX, C=2.0, **options).fit(X, y)
    kernels = scaled_kernels(X, MIX, model.scale)
    x = model.dual_coef_[:, 0]
    forms = np.einsum("i,pij,j->p", x, kernels, x)
    violation = np.maximum(0.0, 1.0 - signs * model.decision_function(X))
    ridge, loss = (1 / 2, violation**2 / 2) if model.loss == "squared_hinge" else (0.0, violation)
    assert abs(x.sum()) < 1e-10
    assert np.all(signs * x >= 0)
    quadratic = model.weights_ @ forms
    primal = quadratic / 2 + 2.0 * loss.sum()
    dual = signs @ x - quadratic / 2 - ridge * x @ x / 2
    assert model.objective_ == pytest.approx(primal, rel=1e-6)
    assert primal >= dual * (1 - 1e-12)
    conjugate = np.inf if model.norm == 1 else 2
    bound = signs @ x - ridge * x @ x / 2 - np.linalg.norm(forms, conjugate) / 2
    gap = model.objective_ - (dual if model.weighting == "uniform" else bound)
    assert model.certificate_.gap == pytest.approx(gap, rel=1e-6, abs=1e-8 * primal)
    assert model.certificate_.relative <= model.tol


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
@every_problem
def test_the_certificate_covers_the_distance_to_the_optimum(options, tol):
    X, y = sample(2)
    tight = learned_classifier(MIX, tol=1e-10, **options).fit(X, y)
    loose = learned_classifier(MIX, tol=tol, **options).fit(X, y)
    assert loose.objective_ - tight.objective_ <= loose.certificate_.gap + 1e-9 * tight.objective_
    assert tight.objective_ - loose.objective_ <= tight.certificate_.gap + 1e-9 * tight.objective_


@pytest.mark.parametrize(
    "estimator", [learned_classifier(MIX), learned_regressor(MIX), learned_classifier(MIX, loss="squared_hinge")]
)
@pytest.mark.parametrize("norm", [1, 2])
def test_all_solvers_reach_the_same_optimum(estimator, norm):
    X, y = sample(3, n=40)
    names = [name for name in METHODS if norm == 1 or name != "reduced_gradient"]
    y = y if isinstance(estimator, MKLClassifier) else X[:, 0] + np.cos(2 * X[:, 1])
    models = [clone(estimator).set_params(solver=name, norm=norm, tol=5e-5).fit(X, y) for name in names]
    for model in models:
        assert model.status_ is Status.CONVERGED
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-4)
    assert len(models) == (4 if norm == 1 else 3)


def test_the_norm_of_the_weights_leads_from_one_kernel_to_equal_weights():
    X, y = sample(4)
    sparse_ = learned_classifier(MIX, norm=1, tol=1e-9).fit(X, y)
    near = learned_classifier(MIX, norm=1.0001, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(near.weights_, sparse_.weights_, atol=1e-2)
    assert near.objective_ == pytest.approx(sparse_.objective_, rel=1e-3)
    objectives = []
    for norm in (1, 1.2, 2, 5, 100, np.inf):
        model = learned_classifier(MIX, norm=norm, tol=1e-7).fit(X, y)
        assert np.linalg.norm(model.weights_, norm) == pytest.approx(1.0)
        objectives.append(model.objective_)
    assert np.all(np.diff(objectives) < 0)  # the sets of weights grow
    equal = learned_classifier(MIX, norm=100, tol=1e-7).fit(X, y)
    assert equal.weights_.min() > 0.9 * equal.weights_.max()
    np.testing.assert_allclose(model.weights_, 1.0)


@every_problem
def test_weights_are_not_negative_and_the_combined_kernel_is_positive_semi_definite(options):
    for seed in range(4):
        X, y = sample(seed, n=30, n_classes=2 + seed % 2)
        model = learned_classifier(MIX, **options).fit(X, y)
        assert np.all(model.weights_ >= 0)
        combined = np.tensordot(model.weights_, scaled_kernels(X, MIX, model.scale), 1)
        eigenvalues = np.linalg.eigvalsh(combined)
        assert eigenvalues[0] > -1e-12 * eigenvalues[-1]
        if model.norm == 1:
            assert model.weights_.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("scale", ["trace", "variance"])
@pytest.mark.parametrize("factor", [1e-4, 2.0, 1000.0])
def test_scaled_kernels_have_the_same_weights(scale, factor):
    X, y = sample(5)
    kernels = [RBF(2.0), RBF(0.05), Linear()]
    for norm in (1, 2):
        plain = learned_classifier(kernels, scale=scale, norm=norm, C=1.0, tol=1e-9).fit(X, y)
        scaled = learned_classifier([factor * kernels[0], *kernels[1:]], scale=scale, norm=norm, C=1.0, tol=1e-9).fit(
            X, y
        )
        np.testing.assert_allclose(scaled.weights_, plain.weights_, atol=1e-4)
        np.testing.assert_allclose(scaled.decision_function(X), plain.decision_function(X), atol=1e-4)
        assert np.count_nonzero(plain.weights_) > 1


def test_without_scale_a_larger_kernel_has_the_advantage():
    X, y = sample(5)
    weights = [
        learned_classifier([k * RBF(), Linear()], scale=None, tol=1e-6).fit(X, y).weights_[0] for k in (0.001, 100.0)
    ]
    assert weights[0] < 0.1
    assert weights[1] > 0.99


# What is kept


def test_weights_sum_by_source():
    rng = np.random.default_rng(6)
    X, y = sample(6)
    frame = pd.DataFrame(np.column_stack([X, rng.normal(size=(60, 3))]))
    frame.columns = ["gene_1", "gene_2", "gene_3", "gene_4", "noise_1", "noise_2", "age"]
    library = one_kernel_per_group(frame, [Linear(), RBF(), RBF(multiple=4.0)])
    for options in ({}, {"share_weights": False}, {"weighting": "uniform"}):
        labels = y + (X[:, 2] > 1)  # two or three classes
        model = learned_classifier(library, **options).fit(frame, labels)
        assert list(model.source_weights_) == ["gene", "noise", "other"]
        assert sum(model.source_weights_.values()) == pytest.approx(1.0)
        assert [record["name"] for record in model.kernel_weights_] == list(library.names)
        mean = np.atleast_2d(model.weights_).mean(axis=0)
        np.testing.assert_allclose([record["weight"] for record in model.kernel_weights_], mean)
        np.testing.assert_allclose(list(model.source_weights_.values()), mean.reshape(3, 3).sum(axis=1))
    assert learned_classifier(library).fit(frame, y).source_weights_["gene"] > 0.5


@pytest.mark.parametrize("options", [{}, {"share_weights": False}, {"norm": 2}], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_the_kernels_add_sums_to_the_whole(options, n_classes):
    X, y = sample(7, n_classes=n_classes)
    model = learned_classifier(MIX, **options).fit(X, y)
    X_new = sample(8, n=20)[0]
    parts = model.decision_function(X_new, split=True)
    assert parts.shape == ((20, 5) if n_classes == 2 else (20, 5, 3))
    np.testing.assert_allclose(parts.sum(axis=1), model.decision_function(X_new), atol=1e-9)
    unused = ~np.atleast_2d(model.weights_).any(axis=0)
    assert not parts[:, unused].any()
    regression = learned_regressor(MIX, norm=options.get("norm", 1)).fit(X, X[:, 0] ** 2)
    assert regression.predict(X_new, split=True).shape == (20, 5)
    np.testing.assert_allclose(regression.predict(X_new, split=True).sum(axis=1), regression.predict(X_new), atol=1e-9)


def test_the_expansion_holds_support_vectors_of_kernels_in_use():
    X, y = sample(9)
    model = learned_classifier(MIX).fit(X, y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.dual_coef_[:, 0]))
    assert len(model.support_) < 60
    assert [group.kernel for group in model.expansion_.groups] == np.flatnonzero(model.weights_).tolist()
    assert model.n_evaluations_ == len(model.support_) * np.count_nonzero(model.weights_)


@pytest.mark.parametrize("solver", METHODS)
def test_history_tells_each_step(solver):
    X, y = sample(10)
    model = learned_classifier(MIX, solver=solver, C=100.0).fit(X, y)
    assert [record["iteration"] for record in model.history_] == list(range(model.n_iter_ + 1))
    assert model.history_[-1]["relative_gap"] == pytest.approx(model.certificate_.relative)
    assert model.history_[-1]["n_solves"] == model.n_solves_
    assert {"objective", "gap", "seconds", "n_active", "step"} <= set(model.history_[0])


# How it ends


def test_too_few_steps_give_a_warning_with_the_certified_gap():
    X, y = sample(11)
    model = learned_classifier(C=1000.0, tol=1e-6, max_iter=1)
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter .* Certified relative gap: \d.*, tolerance: 1.00e-06. Raise"
    ) as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == 1
    best = learned_classifier(C=1000.0, tol=1e-6).fit(X, y)
    assert 0 <= model.objective_ - best.objective_ <= model.certificate_.gap


def test_a_callback_sees_steps_and_may_stop():
    X, y = sample(12)
    states = []
    model = learned_classifier(MIX, C=1000.0, tol=1e-9, callback=lambda state: states.append(state) or len(states) == 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who stops a fit knows it
        model.fit(X, y)
    assert model.status_ is Status.CALLBACK
    assert [state.iteration for state in states] == [0, 1]
    assert all(state.details["weights"].shape == (len(MIX),) and state.target == 1e-9 for state in states)
    assert model.certificate_.gap == min(state.gap for state in states)


def test_a_callback_is_told_which_class_has_the_weights():
    X, y = sample(8)
    labels, states = y + (X[:, 2] > 1), []
    learned_classifier(share_weights=False, callback=states.append).fit(X, labels)
    n_classes = len(np.unique(labels))
    assert {(state.problem, state.n_problems) for state in states} == {(k, n_classes) for k in range(n_classes)}


def test_what_does_not_fit_into_memory_is_refused_before_it_is_computed(monkeypatch):
    X, y = sample(14)
    seen = []
    kernel = FromCallable(lambda A, B: seen.append(1) or A @ B.T)
    monkeypatch.setattr(memory, "MEMORY_SHARE", 1e-9)
    message = r"needs 1 kernel of 60 rows, 60 of them in its machines, about .* free\. Use fewer rows\.$"
    with pytest.raises(MemoryError, match=message):
        learned_classifier(kernel).fit(X, y)
    assert not seen
    monkeypatch.setattr(memory, "free_memory", lambda: np.inf)
    learned_classifier(PAIR).fit(X, y)  # where the memory is not known, nothing is refused


def test_single_precision_is_close_and_needs_half_the_memory(monkeypatch):
    X, y = sample(15)
    double, single = (learned_classifier(MIX, dtype=dtype, tol=1e-6).fit(X, y) for dtype in ("float64", "float32"))
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-4)
    np.testing.assert_allclose(single.decision_function(X), double.decision_function(X), atol=1e-2)
    kernels = [RBF(multiple=1.0 + k) for k in range(20)]
    rest = memory.binding_bytes(kernels, 60, X.shape[1]) + memory.block_bytes(60, 60)
    needed = 60**2 * (20 * 4 + 24) + rest + memory.FLOAT * memory.ROW_VECTORS * 60
    monkeypatch.setattr(memory, "free_memory", lambda: 1.01 * needed / memory.MEMORY_SHARE)
    learned_classifier(kernels, dtype="float32").fit(X, y)
    with pytest.raises(MemoryError):
        learned_classifier(kernels, dtype="float64").fit(X, y)


# Kernels of all kinds


def constant(A, B):
    return np.full((A.shape[0], B.shape[0]), 7.0)


@pytest.mark.parametrize("options", PROBLEMS[:-1], ids=str)
def test_a_constant_kernel_does_no_harm(options):
    X, y = sample(16)
    with_it = learned_classifier([*PAIR, FromCallable(constant)], tol=1e-9, **options).fit(X, y)
    without = learned_classifier(PAIR, tol=1e-9, **options).fit(X, y)
    assert with_it.objective_ == pytest.approx(without.objective_, rel=1e-8)
    np.testing.assert_allclose(with_it.decision_function(X), without.decision_function(X), atol=1e-3)


def test_a_kernel_twice_shares_its_weight():
    X, y = sample(17)
    twice = learned_classifier(KernelLibrary({"a": RBF(), "line": Linear(), "b": RBF()}), tol=1e-8).fit(X, y)
    once = learned_classifier(PAIR, tol=1e-8).fit(X, y)
    assert twice.objective_ == pytest.approx(once.objective_, rel=1e-6)
    assert twice.weights_[0] + twice.weights_[2] == pytest.approx(once.weights_[0], abs=1e-3)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_factor_that_is_not_finite_is_refused_with_the_name_of_its_kernel():
    X, y = sample(18)
    kernel = Preprocessed(FunctionTransformer(np.log), Linear())
    with pytest.raises(ValueError, match=r"The kernel Preprocessed.* gave values that are not finite"):
        learned_classifier([RBF(), kernel]).fit(np.maximum(X, 0.0), y)


def test_the_linear_kernel_is_the_same_with_and_without_its_factor():
    X, y = sample(19)
    by_factor = learned_classifier([RBF(), Linear()], tol=1e-9).fit(X, y)
    dense = learned_classifier([RBF(), FromCallable(linear_kernel)], tol=1e-9).fit(X, y)
    from_sparse = learned_classifier([RBF(), Linear()], tol=1e-9).fit(sparse.csr_array(X), y)
    for other in (dense, from_sparse):
        np.testing.assert_allclose(other.weights_, by_factor.weights_, atol=1e-6)
        np.testing.assert_allclose(other.decision_function(X), by_factor.decision_function(X), atol=1e-5)


def test_a_row_that_lacks_a_source_sits_at_its_centre():
    X, y = sample(20)
    X[:12, :2] = np.nan
    X[50:, 2:] = np.nan
    library = one_kernel_per_group({"left": [0, 1], "right": [2, 3]}, [Linear(), RBF(0.5)], missing="center")
    kernels = scaled_kernels(X, library)
    assert min(np.linalg.eigvalsh(K)[0] for K in kernels) > -1e-10
    model = learned_classifier(library, norm=2, tol=1e-6).fit(X, y)
    assert model.status_.converged
    # Functions of a kernel's space are linear in it: at the centre they have the mean of their values.
    parts = model.decision_function(X, split=True)
    lost = model.decision_function(np.full((1, 4), np.nan), split=True)[0]
    np.testing.assert_allclose(lost[:2], parts[12:, :2].mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(lost[2:], parts[:50, 2:].mean(axis=0), atol=1e-9)


@pytest.mark.parametrize(
    "kernels, parameters",
    [([RBF(), Sigmoid(1.0, -1.0)], {"weighting": "uniform"}), ([RBF(), Sigmoid(1.0, -1.0)], {"norm": 2})],
)
def test_a_combination_that_is_indefinite_is_refused_though_no_step_met_it(kernels, parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    value = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=60)
    with pytest.raises(ValueError, match="The combined kernel is not positive semi-definite"):
        learned_classifier(kernels, **parameters).fit(X, value > np.median(value))


def test_what_takes_long_before_the_first_step_is_announced(capsys):
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    MKLClassifier([RBF(), Linear()], verbose=1).fit(X, y)
    LapSVMClassifier(RBF(), ratio=1.0, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == [
        "MKLClassifier: 2 kernels on 40 rows",
        "MKLClassifier: folds of 40 labelled rows choose C and the weighting of the kernels",
    ]
    assert not any("LapSVMClassifier: folds" in line for line in lines)
