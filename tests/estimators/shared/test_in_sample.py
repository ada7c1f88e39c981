import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding

from kernelweave import (
    RBF,
    ForestKernel,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    RKDAClassifier,
    SSMKClassifier,
    TSVMMKLClassifier,
)
from kernelweave.estimators.shared.in_sample import outputs_at_given, outputs_at_rows
from kernelweave.estimators.shared.sample import Rows, bind, read_as_given
from kernelweave.kernels.expansion import KernelExpansion
from kernelweave.labels import partition

N = 40
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.where(np.arange(N) % 4 == 0, np.sign(X[:, 0]), np.nan)
LIBRARY = KernelLibrary([RBF(), Linear(), ForestKernel(20), ManifoldKernel(RBF(), 5), ManifoldKernel(RBF(), 7)])
WEIGHT = np.where(np.arange(N) < 5, 0.0, np.arange(N) + 1.0)


def sample_of(weight=None):
    return read_as_given(Rows(X), partition(Y), weight)


def bind_all(sample):
    return bind(LIBRARY, sample, np.random.default_rng(0))


def expansion_of(bound, sample):
    rng = np.random.default_rng(1)
    columns = np.sort(rng.choice(bound.n_columns, 40, replace=False))
    return KernelExpansion.from_columns(bound, columns, rng.normal(size=(40, 2)), rng.normal(size=2), sample.kept)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["all rows", "some rows"])
def test_values_at_the_rows_of_a_fit_are_those_of_the_expansion(weight):
    sample = sample_of(weight)
    bound = bind_all(sample)
    expansion = expansion_of(bound, sample)
    assert_same_but_for_rounding(outputs_at_given(expansion, bound, sample), expansion(X))
    assert_same_but_for_rounding(outputs_at_rows(expansion, bound, sample), expansion(sample.X))
    rows = np.array([7, 0, 3])
    assert_same_but_for_rounding(outputs_at_rows(expansion, bound, sample, rows), expansion(sample.X[rows]))


def test_no_kernel_is_evaluated_at_new_rows_where_all_take_part(monkeypatch):
    sample = sample_of()
    bound = bind_all(sample)
    expansion = expansion_of(bound, sample)
    monkeypatch.setattr(KernelExpansion, "__call__", None)
    assert outputs_at_given(expansion, bound, sample).shape == (N, 2)


def test_kernels_that_are_tied_to_fewer_rows_are_evaluated():
    sample = sample_of()
    few = bind_all(sample).restrict(np.arange(9))
    expansion = expansion_of(few, sample.restrict(np.arange(N) < 9))
    np.testing.assert_array_equal(outputs_at_given(expansion, few, sample), expansion(X))


def test_values_that_are_not_finite_are_refused():
    sample = sample_of()
    bound = bind_all(sample)
    expansion = expansion_of(bound, sample)
    expansion.groups[0].coef[0] = np.inf
    with pytest.raises(ValueError, match="gave values that are not finite"), np.errstate(invalid="ignore"):
        outputs_at_given(expansion, bound, sample)


@pytest.mark.parametrize(
    "model",
    [MKLClassifier(LIBRARY), SSMKClassifier(LIBRARY), TSVMMKLClassifier(LIBRARY), RKDAClassifier(LIBRARY)],
    ids=lambda model: type(model).__name__,
)
def test_unlabelled_rows_have_the_class_that_is_predicted_for_them(model):
    model = model.set_params(random_state=0).fit(X, Y)
    clear = np.isnan(Y) & (np.abs(model.decision_function(X)) > 1e-9)
    assert clear.sum() > N / 2
    np.testing.assert_array_equal(model.transduction_[clear], model.predict(X)[clear])
