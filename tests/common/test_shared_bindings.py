"""Fits that share bindings: the same models, and nothing that does not see labels is computed twice."""

import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding
from scipy import linalg, sparse
from sklearn.base import clone, is_classifier
from sklearn.tree import ExtraTreeRegressor

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    HarmonicClassifier,
    HarmonicRegressor,
    LabelAwareKernelLearner,
    LapSVMClassifier,
    LearnedKernelClassifier,
    LearnedKernelRegressor,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    MKLRegressor,
    RKDAClassifier,
    SSMKClassifier,
    SSMKRegressor,
    TSVMClassifier,
    TSVMMKLClassifier,
)
from kernelweave.estimators.shared import harmonic
from kernelweave.kernels import manifold, nystroem, spectral
from kernelweave.kernels.sharing import shared_bindings
from kernelweave.model_selection.calibration import decision_values

N_ROWS = 80
DEFORMED = [RBF(), Linear(), ManifoldKernel(RBF(), 5, ratio=10.0)]
LEARNERS = [
    LabelAwareKernelLearner(RBF(), n_eigenvectors=8, extra_kernels=DEFORMED),
    AlignedKernelLearner(DEFORMED),
]
CLASSIFIERS = [
    HarmonicClassifier(n_neighbors=5),
    HarmonicClassifier(kernel=RBF()),
    LapSVMClassifier(RBF()),
    LearnedKernelClassifier(LEARNERS),
    MKLClassifier(DEFORMED),
    RKDAClassifier(DEFORMED),
    SSMKClassifier(DEFORMED),
    TSVMClassifier(RBF()),
    TSVMMKLClassifier(DEFORMED),
]
REGRESSORS = [
    HarmonicRegressor(n_neighbors=5),
    LearnedKernelRegressor(LEARNERS),
    MKLRegressor(DEFORMED),
    SSMKRegressor(DEFORMED),
]
DEFAULTS = [type(model)() for model in CLASSIFIERS if model is not CLASSIFIERS[1]]


@pytest.fixture(name="X", params=[np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def rows(request):
    return request.param(np.random.default_rng(0).normal(size=(N_ROWS, 3)) * [1.0, 5.0, 100.0])


def labels(X, seed, is_classes=True):
    """Labels of half of the rows, others for every seed."""
    values = np.asarray(X.toarray() if sparse.issparse(X) else X)[:, 0]
    values = np.where(values > 0, 1.0, 0.0) if is_classes else values
    return np.where(np.random.default_rng(seed).permutation(N_ROWS) % 2, values, np.nan)


def name(model):
    return type(model).__name__


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=name)
def test_a_model_is_the_same_whether_bindings_are_shared_or_not(model, X):
    y, others = (labels(X, seed, is_classifier(model)) for seed in (0, 1))
    apart, shared = (clone(model).set_params(random_state=0) for _ in range(2))
    apart.fit(X, y)
    with shared_bindings(0):
        shared.fit(X, others).fit(X, y)
    tolerance = 1e-3  # that of the solvers, which begin from kernels with other last digits
    clear = np.ones(N_ROWS, dtype=bool)
    if is_classifier(model):  # a gap of 1e-3 leaves decision values that differ by a hundredth of the largest
        sizes = np.abs(decision_values(apart, X))
        clear = sizes > 0.02 * sizes.max()
        assert clear.mean() > 0.8
    assert_same_but_for_rounding(shared.predict(X)[clear], apart.predict(X)[clear], tolerance)
    assert_same_but_for_rounding(shared.transduction_[clear], apart.transduction_[clear], tolerance)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", DEFAULTS, ids=name)
def test_a_fit_of_other_labels_binds_nothing_anew(model, X, monkeypatch):
    calls = []

    def count(owner, attribute):
        function = getattr(owner, attribute)
        monkeypatch.setattr(owner, attribute, lambda *a, **how: calls.append(attribute) or function(*a, **how))

    count(ExtraTreeRegressor, "fit")
    count(linalg, "cholesky")
    for module, attribute in [
        (manifold, "neighbor_graph"),
        (manifold, "kernel_neighbor_graph"),
        (nystroem, "dpstrf"),
        (spectral, "_find_leading"),
        (harmonic, "neighbor_graph"),
    ]:
        count(module, attribute)
    model = clone(model).set_params(random_state=0)
    with shared_bindings(0):
        model.fit(X, labels(X, 0))
        n_before = len(calls)
        model.fit(X, labels(X, 1))
    assert len(calls) == n_before, calls[n_before:]


def test_other_estimators_use_the_trees_that_one_has_grown(monkeypatch):
    X = np.random.default_rng(0).normal(size=(N_ROWS, 3)) * [1.0, 5.0, 100.0]
    grown, fit = [], ExtraTreeRegressor.fit
    monkeypatch.setattr(ExtraTreeRegressor, "fit", lambda self, *a, **how: grown.append(1) or fit(self, *a, **how))
    with shared_bindings(0):
        for model in (MKLClassifier(), LapSVMClassifier(), TSVMClassifier(), SSMKClassifier()):
            model.fit(X, labels(X, 0))
    assert len(grown) == 500
