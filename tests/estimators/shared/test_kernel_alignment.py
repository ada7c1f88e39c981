from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    ClusterKernel,
    DiffusionKernel,
    FromCallable,
    KernelLibrary,
    LabelAwareKernelLearner,
    Linear,
    ManifoldKernel,
    OrderedSpectralKernelLearner,
    Polynomial,
    Precomputed,
)
from kernelweave.estimators.shared import base_kernels, kernel_alignment, memory
from kernelweave.estimators.shared.base_kernels import bind_base_kernels
from kernelweave.estimators.shared.kernel_alignment import fit_kernel, learn_kernel, weigh
from kernelweave.estimators.shared.sample import Rows, read_as_given, read_sample
from kernelweave.estimators.shared.target import read_target
from kernelweave.labels import partition
from kernelweave.solvers.result import Status

WHOLE = slice(None)
LEARNERS = [LabelAwareKernelLearner, AlignedKernelLearner, OrderedSpectralKernelLearner]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)


def moons(seed=0, n=60, n_labeled=20):
    X, classes = make_moons(n, noise=0.1, random_state=seed)
    return X, np.where(np.arange(n) < n_labeled, classes, -1), classes


# Labels that say nothing


@every_learner
def test_numbers_that_are_all_the_same_are_refused(learner):
    with pytest.raises(ValueError, match="All labelled rows have the same target"):
        learner().fit(moons()[0], np.where(np.arange(60) < 9, 0.25, np.nan))


def test_y_may_be_a_list_of_lists():
    X, _, _ = moons(4)
    y = np.column_stack([X[:, 0], X[:, 0] ** 2])
    given = LabelAwareKernelLearner().fit(X, y.tolist())
    np.testing.assert_array_equal(given.weights_, LabelAwareKernelLearner().fit(X, y).weights_)


# Base kernels that are of no use


@pytest.mark.parametrize(
    "learner",
    [
        LabelAwareKernelLearner(),
        LabelAwareKernelLearner(leave_one_out=True, weighting="align"),
        LabelAwareKernelLearner(weighting="uniform", extra_kernels=[Linear(), RBF()]),
        AlignedKernelLearner(),
        OrderedSpectralKernelLearner(),
    ],
    ids=str,
)
def test_where_all_rows_are_equal_no_kernel_is_aligned(learner):
    _, y, _ = moons(5)
    with pytest.warns(UserWarning, match="No base kernel is aligned with the labels") as seen:
        learner.fit(np.ones((60, 2)), y)
    assert [w.filename for w in seen] == [__file__]
    assert np.isfinite(learner.transform(np.ones((3, 2)))).all()
    assert learner.weights_.sum() == pytest.approx(1.0)
    assert learner.alignment_ == {"before": 0.0, "after": pytest.approx(0.0, abs=1e-9)}


@pytest.mark.parametrize(
    "learner", [AlignedKernelLearner(Linear(), basis="kernel"), OrderedSpectralKernelLearner(Linear())], ids=str
)
def test_a_kernel_that_is_zero_has_no_eigenvectors(learner):
    with pytest.raises(ValueError, match=r"The kernel Linear\(\) has no eigenvectors: it is zero at all rows"):
        learner.fit(np.zeros((60, 2)), moons()[1])


def test_features_whose_squares_overflow_are_refused():
    X, y = make_moons(30, noise=0.1, random_state=0)
    learner = LabelAwareKernelLearner(Polynomial(degree=1), normalization="class")
    with pytest.raises(ValueError, match=r"squares of a learned kernel's features are beyond .* Scale the features"):
        learner.fit(1e106 * X, y)


def test_base_kernels_without_weight_cost_nothing():
    X, y, _ = moons(6)
    other = FromCallable(lambda A, B: np.ones((A.shape[0], B.shape[0])))
    learner = AlignedKernelLearner([other, RBF(1.0)]).fit(X, y)
    assert learner.weights_.tolist() == [0.0, 1.0]
    assert len(learner.kernel_.terms) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_of_whole_kernels_are_exact_in_each_precision(dtype):
    X, _, classes = moons(7, n=200)
    X = X.astype(dtype)
    library = [Linear(), RBF(multiple=0.1), ManifoldKernel(RBF(), 5)]
    learner = AlignedKernelLearner(library, weighting="uniform").fit(X, classes)
    Z, K = learner.transform(X).astype(float), learner.kernel_.block(WHOLE, WHOLE)
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(Z @ Z.T, K, atol=tolerance * np.abs(K).max())


def test_transform_refuses_values_that_are_not_finite():
    X, y, _ = moons(8)
    broken = FromCallable(lambda A, B: np.where(A[:, :1] > 1e3, np.nan, rbf_kernel(A, B)))
    learner = LabelAwareKernelLearner(broken, n_eigenvectors=0).fit(X, y)
    with pytest.raises(ValueError, match="not finite"):
        learner.transform(1e6 + X)


# An estimator like others


def test_nested_parameters_are_reached():
    learner = LabelAwareKernelLearner(RBF(), extra_kernels=KernelLibrary([("wide", RBF(multiple=0.1)), Linear()]))
    learner.set_params(kernel__multiple=5.0, extra_kernels__wide__multiple=0.2, weighting="align")
    assert learner.kernel == RBF(multiple=5.0)
    assert learner.extra_kernels.names == ("wide", "Linear()")
    assert learner.extra_kernels.entries[0].kernel == RBF(multiple=0.2)
    with pytest.raises(ValueError, match="kernels__gamma cannot be set, since kernels is None"):
        AlignedKernelLearner().set_params(kernels__gamma=1.0)


def test_a_learned_kernel_can_be_learned_from_again():
    X, y, _ = moons(13)
    learner = LabelAwareKernelLearner(leave_one_out=True).fit(X, y)
    K = learner.kernel_.block(WHOLE, WHOLE)
    again = AlignedKernelLearner([Precomputed(K), Precomputed(X @ X.T)]).fit(np.arange(60)[:, None], y)
    assert again.alignment_["after"] >= learner.alignment_["after"] - 1e-9


def test_a_residual_that_is_too_large_gives_a_warning(monkeypatch):
    X, y, _ = moons(14)
    monkeypatch.setattr(kernel_alignment.alignment.alignf, "__kwdefaults__", {"ridge": 0.0, "tol": -1.0})
    with pytest.warns(ConvergenceWarning, match="rounding keeps the certificate above the tolerance. Residual") as seen:
        learner = AlignedKernelLearner(basis="kernel").fit(X, y)
    assert learner.status_ is Status.PRECISION
    assert [w.filename for w in seen] == [__file__]


@pytest.mark.parametrize("second", [DiffusionKernel(RBF(1.0), n_eigenvectors=4), RBF(1.0)], ids=repr)
def test_kernels_given_by_features_keep_their_weights(second):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(np.arange(60) < 30, (X[:, 0] > 0).astype(int), -1)
    learner = AlignedKernelLearner([ClusterKernel(RBF(1.0), n_eigenvectors=4), second], weighting="align").fit(X, y)
    features, labeled = learner.transform(X), np.arange(30)
    np.testing.assert_allclose(
        features @ features[labeled].T, learner.kernel_.block(slice(None), labeled), rtol=1e-8, atol=1e-10
    )


def test_the_alignment_of_the_base_is_computed_from_a_part_of_many_labelled_rows(monkeypatch):
    X = np.random.default_rng(0).normal(size=(400, 2))
    y = np.arange(400) % 2  # every other row is of the same class
    X[:, 0] += 3.0 * y
    whole = AlignedKernelLearner([RBF(1.0)]).fit(X, y).alignment_["before"]
    monkeypatch.setattr(kernel_alignment, "MAX_ALIGNMENT_ROWS", 100)
    assert AlignedKernelLearner([RBF(1.0)]).fit(X, y).alignment_["before"] == pytest.approx(whole, rel=0.2)


@every_learner
def test_the_library_is_kept_and_says_whether_values_may_be_missing(learner):
    X, y, _ = moons(16)
    model = learner().fit(X, y)
    assert model.library_ == model.design().library
    assert not get_tags(model).input_tags.allow_nan
    assert not hasattr(learner(), "library_")


def test_a_kernel_that_was_learned_elsewhere_is_kept_as_by_fit():
    X, y, _ = moons(17)
    fitted, other = (LabelAwareKernelLearner(RBF(1.0), extra_kernels=Linear()) for _ in range(2))
    fitted.fit(X, y)
    sample = read_sample(Rows(X), partition(y))
    other.keep_kernel(sample, fit_kernel(other.design(), sample, np.random.default_rng(0)))
    assert vars(other).keys() == vars(fitted).keys()
    np.testing.assert_array_equal(other.transform(X), fitted.transform(X))


def test_a_kernel_learned_from_some_rows_is_that_of_a_fit_without_the_other_labels():
    X, y, _ = moons(18)
    design = LabelAwareKernelLearner(RBF(1.0), leave_one_out=True, extra_kernels=Linear()).design()
    sample, masked = (read_as_given(Rows(X), partition(labels)) for labels in (y, np.where(np.arange(60) < 5, -1, y)))
    bound = bind_base_kernels(design, sample, np.random.default_rng(0), {})
    part = learn_kernel(design, bound, read_target(sample).restrict(np.arange(5, 20)))
    whole = learn_kernel(design, bound, read_target(masked))
    np.testing.assert_array_equal(part.result.x, whole.result.x)
    np.testing.assert_array_equal(part.kernel.block(WHOLE, WHOLE), whole.kernel.block(WHOLE, WHOLE))


@pytest.mark.parametrize("weighting", ["alignf", "align", "uniform", "ordered"])
def test_without_unit_size_the_ridge_is_added_as_it_is(weighting):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 6))
    M, a = root @ root.T, rng.uniform(1.0, 2.0, size=4)
    design = replace(LabelAwareKernelLearner(ridge=0.3).design(), weighting=weighting, unit_size=False)
    found = weigh(design, M, a, 10.0).x
    expected = weigh(replace(design, ridge=0.0), M + 0.3 * np.eye(4) * (weighting == "alignf"), a, 10.0).x
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_stack_of_labelled_rows_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    X, y, _ = moons(19)
    monkeypatch.setattr(base_kernels, "require_vector_memory", lambda *given: None)  # what comes before it fits
    monkeypatch.setattr(memory, "MEMORY_SHARE", 1e-12)
    with pytest.raises(MemoryError, match=r"keeps 2 kernels of 20 labelled rows.*Use fewer kernels, or labels"):
        AlignedKernelLearner([RBF(), Linear()]).fit(X, y)
