import numpy as np
import pytest
from sklearn.datasets import make_moons

from kernelweave import RBF, AlignedKernelLearner, KernelLibrary, LabelAwareKernelLearner, Linear, ManifoldKernel
from kernelweave.estimators.shared import base_kernels, memory
from kernelweave.estimators.shared.base_kernels import bind_base_kernels
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition

WHOLE = slice(None)


def moons(n=60):
    X, classes = make_moons(n, noise=0.1, random_state=0)
    return read_as_given(Rows(X), partition(np.where(np.arange(n) < 20, classes, -1)))


def bound(learner, sample, known=None):
    return bind_base_kernels(learner.design(), sample, np.random.default_rng(0), {} if known is None else known)


def test_what_learners_share_is_bound_once():
    known, sample = {}, moons()
    first = bound(
        LabelAwareKernelLearner(RBF(1.0), n_eigenvectors=5, extra_kernels=[Linear(), RBF(1.0)]), sample, known
    )
    second = bound(AlignedKernelLearner([RBF(1.0), RBF(2.0)]), sample, known)
    third = bound(AlignedKernelLearner(RBF(1.0), basis="kernel", n_eigenvectors=5), sample, known)
    assert first.base is first.wholes[1] is second.base is second.wholes[0] is third.base
    assert first.vectors[0].Z is third.vectors[0].Z
    assert third.wholes == second.vectors == []


def test_restricted_kernels_are_those_of_the_rows():
    sample, rows = moons(), np.array([3, 17, 40])
    whole = bound(LabelAwareKernelLearner(RBF(1.0), n_eigenvectors=5, extra_kernels=ManifoldKernel(RBF(), 5)), sample)
    part = whole.restrict(rows)
    np.testing.assert_array_equal(part.X, sample.X[rows])
    np.testing.assert_array_equal(part.vectors[0].Z, whole.vectors[0].Z[rows])
    for one, all_ in ((part.base, whole.base), (part.wholes[0], whole.wholes[0])):
        np.testing.assert_allclose(one.block(WHOLE, WHOLE), all_.block(rows, rows), rtol=1e-12)


@pytest.mark.parametrize("n_landmarks, n_rows, n_vectors", [(None, 60, 6), (30, 60, 3), ("auto", 60, 6), (90, 60, 6)])
def test_shares_of_vectors_are_of_rows_or_landmarks(n_landmarks, n_rows, n_vectors):
    learner = LabelAwareKernelLearner(RBF(5.0), n_landmarks=n_landmarks)
    vectors = bound(learner, moons(n_rows)).vectors[0]
    assert vectors.Z.shape == (n_rows, n_vectors)
    assert list(vectors.names) == [f"eigenvector {k}" for k in range(n_vectors)]


def test_landmarks_are_chosen_of_many_rows_only(monkeypatch):
    asked = []
    monkeypatch.setattr(
        base_kernels, "eigenbasis", lambda *args, n_landmarks, **options: asked.append(n_landmarks) or (None, args[1])
    )
    for n_rows in (2000, 2001):
        bound(LabelAwareKernelLearner(n_landmarks="auto"), moons(n_rows))
    assert asked == [None, 1000]


def test_a_matrix_that_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(memory, "MEMORY_SHARE", 1e-12)
    with pytest.raises(MemoryError, match=r'keeps the kernel of all 60 rows.*Pass n_landmarks="auto"'):
        bound(LabelAwareKernelLearner(), moons())
    monkeypatch.setattr(base_kernels, "require_vector_memory", lambda *given: None)  # what all learners ask for fits
    assert bound(LabelAwareKernelLearner(n_landmarks=20), moons()).vectors[0].Z.shape == (60, 2)


def test_a_design_names_the_kernels_of_a_library():
    design = AlignedKernelLearner(KernelLibrary([("first", RBF()), ("second", Linear())])).design()
    assert design.base.name == "first"
    assert [entry.name for entry in design.wholes] == ["first", "second"]
