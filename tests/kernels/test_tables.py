import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from kernelweave import RBF, ForestKernel, KernelLibrary, Linear, OnColumns, Preprocessed, table_library
from kernelweave.kernels.scaling import ColumnScaler, PowerScaler
from kernelweave.kernels.tables import is_table, table_kernel


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_iris])
def test_measurements_are_a_table_scaled_or_not_and_few_of_their_rows_too(load):
    X = load().data
    for rows in (X, StandardScaler().fit_transform(X), MinMaxScaler().fit_transform(X)):
        assert is_table(rows)
    few = np.random.default_rng(0).permutation(len(X))[:20]
    assert is_table(X[few])
    assert is_table(StandardScaler().fit_transform(X)[few])


def test_pixels_spectra_and_flags_are_not_a_table():
    rng = np.random.default_rng(0)
    spectra = np.cumsum(rng.normal(size=(100, 200)), axis=1) + 50
    assert not is_table(load_digits().data)
    assert not is_table(load_digits().data[:50])
    assert not is_table(spectra)
    assert not is_table((rng.random((100, 50)) < 0.2).astype(float))
    assert not is_table(sparse.csr_array(spectra))


def test_few_columns_are_a_table_whatever_their_ranges():
    assert is_table(np.random.default_rng(0).random((50, 9)))
    assert not is_table(np.random.default_rng(0).random((50, 10)) + 1.0)
    assert is_table(np.zeros((5, 2)))


def test_a_few_measurements_beside_many_flags_are_a_table():
    rng = np.random.default_rng(0)
    assert is_table(np.column_stack([rng.random((60, 40)) < 0.3, rng.lognormal(size=(60, 3))]).astype(float))


def test_views_are_scaled_and_powers_join_where_columns_are_skewed():
    rng = np.random.default_rng(0)
    symmetric, skewed = rng.normal(size=(200, 3)), rng.lognormal(size=(200, 3))
    plain = [Preprocessed(ColumnScaler(), Linear()), Preprocessed(ColumnScaler(), RBF())]
    powers = [Preprocessed(PowerScaler(), Linear()), Preprocessed(PowerScaler(), RBF())]
    kernels = [entry.kernel for entry in table_library(symmetric).entries]
    assert kernels == [*plain, ForestKernel()]
    assert [entry.kernel for entry in table_library(skewed).entries] == [*plain, *powers, ForestKernel()]


def test_each_source_has_its_own_views():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 4)), columns=["gene_1", "gene_2", "age", "income"])
    frame["income"] = np.exp(2 * frame["income"])
    library = table_library(frame, sources={"genes": "gene_*", "clinic": ["age", "income"]})
    assert library.names == (
        "genes: linear",
        "genes: RBF",
        "genes: forest",
        "clinic: linear",
        "clinic: RBF",
        "clinic: power linear",
        "clinic: power RBF",
        "clinic: forest",
    )
    assert {entry.source for entry in library.entries} == {"genes", "clinic"}
    assert all(isinstance(entry.kernel, OnColumns) for entry in library.entries)


def test_the_kernel_of_a_table_has_the_same_diagonal_everywhere_and_does_not_know_units():
    X = load_wine().data
    K = table_kernel(X).bind(X, np.random.default_rng(0)).block(slice(None), slice(None))
    scaled = 1e3 * X - 5
    other = table_kernel(scaled).bind(scaled, np.random.default_rng(0)).block(slice(None), slice(None))
    np.testing.assert_allclose(K.diagonal(), 3.0)
    np.testing.assert_allclose(other, K, atol=1e-6)


def test_kernels_that_share_a_transformer_fit_it_once():
    fits = []

    class Counting(StandardScaler):
        def fit(self, X, y=None):
            fits.append(1)
            return super().fit(X, y)

    X = np.random.default_rng(0).normal(size=(20, 3))
    library = KernelLibrary([Preprocessed(Counting(), RBF()), Preprocessed(Counting(), Linear())])
    bound = library.bind(X, np.random.default_rng(0))
    assert len(fits) == 1
    for kernel, recipe in zip(bound.kernels, (RBF(), Linear()), strict=True):
        alone = Preprocessed(StandardScaler(), recipe).bind(X, np.random.default_rng(0))
        np.testing.assert_allclose(kernel.against(X[:5]), alone.against(X[:5]), rtol=1e-12)
