import numpy as np
import pytest
from scipy import sparse

from kernelweave import (
    RBF,
    ForestKernel,
    KernelLibrary,
    Linear,
    ManifoldKernel,
    OnColumns,
    Polynomial,
    Precomputed,
    Preprocessed,
    rbf_family,
    table_library,
)
from kernelweave.kernels import defaults
from kernelweave.kernels.defaults import (
    allows_missing,
    as_library,
    deformed_kernels,
    design_kernels,
    discriminant_library,
    given_kernel,
    given_library,
    landmark_kernel,
    landmark_library,
    mixture_library,
    neighbor_metric,
    novelty_library,
    plain_library,
    single_kernel,
    transductive_library,
)
from kernelweave.kernels.tables import table_kernel

X = np.random.default_rng(0).uniform(1.0, 2.0, size=(20, 12))  # one unit, such as pixels
TABLE = X * 10.0 ** np.arange(12)


def test_the_default_library_is_linear_quadratic_and_a_family_of_rbf_kernels():
    kernels = [entry.kernel for entry in plain_library(X).entries]
    assert kernels == [Linear(), Polynomial(), *rbf_family()]
    assert as_library(None) == given_library(None, X) == plain_library(X) == plain_library(sparse.csr_array(X))


def test_the_default_library_of_a_table_holds_its_views():
    assert plain_library(TABLE) == given_library(None, TABLE) == table_library(TABLE)
    assert given_library([RBF()], TABLE) == KernelLibrary([RBF()])
    assert single_kernel(TABLE) == table_kernel(TABLE)
    assert all(isinstance(entry.kernel, Preprocessed) for entry in novelty_library(TABLE).entries)
    deformed = mixture_library(TABLE, 1).entries[len(table_library(TABLE)) :]
    assert {(entry.kernel.base, entry.kernel.metric) for entry in deformed} == {(table_kernel(TABLE), "kernel")}
    assert neighbor_metric("auto", None, TABLE) == "kernel"
    assert neighbor_metric("auto", RBF(), TABLE) == "euclidean"


def test_kernels_are_designed_from_scaled_ones_where_rows_are_a_table():
    plain, views = design_kernels(X), design_kernels(TABLE)
    assert plain.single == RBF()
    assert plain.wide == [Linear(), RBF(multiple=0.1)]
    assert views.single == table_kernel(TABLE)
    assert all(isinstance(kernel, Preprocessed | ForestKernel) for part in views[1:] for kernel in part)


def test_whatever_a_user_passes_becomes_a_library():
    library = KernelLibrary([RBF()])
    assert as_library(library) is library
    assert as_library(RBF()) == as_library([RBF()]) == library
    with pytest.raises(TypeError, match="A kernel library holds kernels such as"):
        as_library("rbf")


def test_none_is_the_default_that_is_asked_for():
    assert as_library(None, novelty_library(X)) == KernelLibrary(rbf_family())
    assert as_library(Linear(), novelty_library(X)) == KernelLibrary([Linear()])


def test_missing_values_are_allowed_by_given_recipes_only():
    assert allows_missing(None, OnColumns(RBF(), [0], missing="center"))
    assert not allows_missing(None)
    assert not allows_missing([Linear(), RBF()])


def test_deformed_kernels_join_where_rows_are_unlabeled_and_not_too_many(monkeypatch):
    assert mixture_library(X, 0) == plain_library(X)
    assert len(mixture_library(X, 1)) == len(plain_library(X)) + 4
    monkeypatch.setattr(defaults, "MAX_MANIFOLD_ROWS", 10)
    assert deformed_kernels(X) == []
    assert mixture_library(X, 1) == plain_library(X)


def test_transductive_machines_have_an_rbf_kernel_and_deformations_of_it_or_linear_ones_for_sparse_rows(monkeypatch):
    dense, thin = transductive_library(X), transductive_library(sparse.csr_array(X))
    assert dense.entries[0].kernel == single_kernel(X) == RBF()
    assert thin.entries[0].kernel == Linear()
    assert {entry.kernel.metric for entry in dense.entries[1:]} == {"euclidean"}
    assert {entry.kernel.metric for entry in thin.entries[1:]} == {"cosine"}
    monkeypatch.setattr(defaults, "MAX_TRANSDUCTIVE_ROWS", 10)
    assert landmark_kernel(X) == ManifoldKernel(RBF(), ratio=0.0)
    monkeypatch.setattr(defaults, "MAX_DEFORMED_TRANSDUCTIVE_ROWS", 19)
    assert transductive_library(X) == KernelLibrary([landmark_kernel(X)])


def test_the_library_of_landmarks_keeps_names_and_divides_the_features():
    library = landmark_library(KernelLibrary([("a", RBF()), ("b", Linear())]))
    assert library.names == ("a", "b")
    assert library.entries[1].kernel == ManifoldKernel(Linear(), ratio=0.0, n_landmarks=1000)
    assert landmark_library(KernelLibrary([RBF()]), 7).entries[0].kernel.n_landmarks == 7


def test_a_given_kernel_is_taken_and_what_is_none_is_refused():
    assert given_kernel("Owner", Linear(), X) == Linear()
    assert given_kernel("Owner", None, X) == RBF()
    with pytest.raises(TypeError, match="Owner takes a kernel such as"):
        given_kernel("Owner", "rbf", X)


def test_the_metric_follows_the_rows_unless_it_is_given_or_the_kernel_is_a_matrix():
    assert neighbor_metric("auto", None, X) == "euclidean"
    assert neighbor_metric("auto", None, sparse.csr_array(X)) == "cosine"
    assert neighbor_metric("auto", Precomputed(np.eye(20)), X) == "kernel"
    assert neighbor_metric("cosine", None, X) == "cosine"


@pytest.mark.parametrize("n_landmarks, n_rows, n_expected", [("auto", 5001, 1000), (7, 10, 7), ("auto", 5000, None)])
def test_discriminants_take_landmarks_where_rows_are_many_or_they_are_asked_for(n_landmarks, n_rows, n_expected):
    library = KernelLibrary([("a", Linear()), Polynomial()])
    found = discriminant_library(library, n_landmarks, n_rows)
    assert found.names == library.names
    if n_expected is None:
        assert found is library
    else:
        assert {entry.kernel.n_landmarks for entry in found.entries} == {n_expected}
    assert discriminant_library(library, None, n_rows) is library
