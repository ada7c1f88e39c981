import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity

from kernelweave import (
    RBF,
    FromCallable,
    KernelLibrary,
    Linear,
    Normalized,
    OnColumns,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from kernelweave.kernels import diagnosis

N_ROWS = 300


@pytest.fixture(name="X")
def sample():
    return np.random.default_rng(0).normal(size=(N_ROWS, 2))


def skewed(A, B):
    return A @ np.array([[1.0, 2.0], [0.0, 1.0]]) @ B.T


def distance(A, B):
    return np.abs(A[:, None] - B[None]).sum(axis=2)


def zero(A, B):
    return np.zeros((A.shape[0], B.shape[0]))


def matrix(kernel, X):
    return kernel.bind(X, np.random.default_rng(0)).block(slice(None), slice(None))


PSD = [Linear(), Polynomial(), Polynomial(5, coef0=0.0), RBF(), RBF(multiple=64.0), RBF(1e-6), Normalized(Linear())]
INDEFINITE = [Sigmoid(), Sigmoid(0.1, coef0=-1.0), Polynomial(2, coef0=-1.0), FromCallable(distance)]


@pytest.fixture(params=[1000, 40], ids=["dense", "Lanczos"])
def steps(request, monkeypatch):
    """Both ways to find eigenvalues: the sample is small for the first and large for the second."""
    monkeypatch.setattr(diagnosis, "LANCZOS_STEPS", request.param)


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("kernel", [*PSD, FromCallable(zero)], ids=repr)
def test_a_positive_semi_definite_kernel_is_called_so(kernel, X):
    (report,) = KernelLibrary([kernel]).diagnose(X)
    assert report.is_symmetric
    assert report.is_psd


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("kernel", INDEFINITE, ids=repr)
def test_an_indefinite_kernel_is_called_so(kernel, X):
    (report,) = KernelLibrary([kernel]).diagnose(X)
    assert report.is_symmetric
    assert not report.is_psd
    assert report.smallest_eigenvalue < 0


def test_an_unsymmetric_kernel_is_called_so(X):
    (report,) = KernelLibrary([FromCallable(skewed)]).diagnose(X)
    assert not report.is_symmetric
    assert not report.is_psd
    K = skewed(X, X)
    assert report.largest_eigenvalue == pytest.approx(np.linalg.eigvalsh((K + K.T) / 2)[-1], rel=1e-10)


@pytest.mark.parametrize("kernel", [*PSD, *INDEFINITE], ids=repr)
@pytest.mark.parametrize("n_steps", [1000, 100])
def test_extreme_eigenvalues_agree_with_a_full_decomposition(kernel, n_steps, X, monkeypatch):
    monkeypatch.setattr(diagnosis, "LANCZOS_STEPS", n_steps)
    (report,) = KernelLibrary([kernel]).diagnose(X)
    values = np.linalg.eigvalsh(matrix(kernel, X))
    largest = np.abs(values).max()
    # 100 steps on 300 rows are a third of the spectrum; RBF(multiple=64) has no gap at its lower end.
    assert report.smallest_eigenvalue == pytest.approx(values[0], abs=(1e-6 if n_steps == 1000 else 1e-4) * largest)
    assert report.largest_eigenvalue == pytest.approx(values[-1], abs=1e-6 * largest)
    assert report.smallest_eigenvalue >= values[0] - 1e-12 * largest  # an estimate from inside the spectrum


def test_lanczos_agrees_with_a_full_decomposition_on_many_rows():
    X = np.random.default_rng(1).normal(size=(800, 5))
    assert len(X) > 2 * diagnosis.LANCZOS_STEPS
    kernels = [Linear(), Polynomial(), RBF(), Sigmoid()]
    for report, kernel in zip(KernelLibrary(kernels).diagnose(X), kernels, strict=True):
        values = np.linalg.eigvalsh(matrix(kernel, X))
        assert report.smallest_eigenvalue == pytest.approx(values[0], abs=1e-6 * np.abs(values).max())
        assert report.largest_eigenvalue == pytest.approx(values[-1], abs=1e-6 * np.abs(values).max())


def test_the_mean_diagonal_is_the_mean_of_the_diagonal(X):
    reports = KernelLibrary([Linear(), RBF(), 3.0 * RBF(), Sigmoid()]).diagnose(X)
    found = [report.mean_diagonal for report in reports]
    squared = (X**2).sum(axis=1)
    assert found == pytest.approx([squared.mean(), 1.0, 3.0, np.tanh(squared).mean()], rel=1e-10)


def test_redundancy_is_the_largest_alignment_with_another_kernel(X):
    kernels = {"a": Linear(), "b": RBF(), "copy": 5.0 * RBF(), "c": Polynomial()}
    reports = KernelLibrary(kernels).diagnose(X)
    alignment = np.abs(cosine_similarity([matrix(kernel, X).ravel() for kernel in kernels.values()]))
    np.fill_diagonal(alignment, 0.0)
    assert [report.redundancy for report in reports] == pytest.approx(alignment.max(axis=1).tolist(), rel=1e-10)
    assert (reports[1].most_like, reports[2].most_like) == ("copy", "b")
    assert reports[1].redundancy == pytest.approx(1.0, rel=1e-12)


def test_a_kernel_alone_and_a_kernel_that_vanishes_are_like_no_other(X):
    (alone,) = KernelLibrary([RBF()]).diagnose(X)
    assert (alone.redundancy, alone.most_like) == (0.0, "")
    assert KernelLibrary([RBF(), FromCallable(zero)]).diagnose(X)[1].redundancy == 0.0


def test_many_rows_are_represented_by_a_seeded_subsample(X):
    sizes = []

    def watched(A, B):
        sizes.append(A.shape[0])
        return A @ B.T

    library = KernelLibrary([FromCallable(watched), RBF()])
    first, again, other = (library.diagnose(X, max_rows=50, random_state=seed) for seed in (1, 1, 2))
    assert max(sizes) == 50
    assert first == again != other


@pytest.mark.parametrize(
    "container", [np.asfortranarray, sparse.csr_matrix, sparse.coo_array, np.ndarray.tolist, pd.DataFrame, pl.DataFrame]
)
def test_every_container_gives_the_same_report(container, X):
    library = KernelLibrary([Linear(), RBF(), Sigmoid()])
    for report, expected in zip(library.diagnose(container(X)), library.diagnose(X), strict=True):
        assert report.is_psd == expected.is_psd
        assert report.largest_eigenvalue == pytest.approx(expected.largest_eigenvalue, rel=1e-8)
        assert report.redundancy == pytest.approx(expected.redundancy, rel=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_single_precision_and_whole_numbers_are_no_obstacle(dtype, X):
    reports = KernelLibrary(PSD[:5]).diagnose((3 * X).astype(dtype))
    assert all(report.is_symmetric and report.is_psd for report in reports)


def test_a_matrix_in_single_precision_is_judged_by_its_rounding(X):
    rows = np.arange(N_ROWS)[:, None]
    psd, indefinite = (Precomputed(matrix(kernel, X.astype(np.float32))) for kernel in (Polynomial(), Sigmoid()))
    assert [report.is_psd for report in KernelLibrary([psd, indefinite]).diagnose(rows)] == [True, False]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_known_by_name(frame, X):
    table = frame({"gene_1": X[:, 0], "age": np.arange(N_ROWS), "gene_2": X[:, 1]})
    library = KernelLibrary([OnColumns(Linear(), "gene_*"), ("old", OnColumns(Linear(), ["age"], source="clinic"))])
    genes, age = library.diagnose(table)
    assert (genes.name, genes.source) == ("OnColumns(Linear(), 'gene_*')", "gene_*")
    assert (age.name, age.source) == ("old", "clinic")
    assert genes.mean_diagonal == pytest.approx((X**2).sum(axis=1).mean(), rel=1e-10)
    assert age.mean_diagonal == pytest.approx((np.arange(N_ROWS) ** 2.0).mean(), rel=1e-10)


def test_missing_rows_are_allowed_where_a_kernel_gives_them_a_meaning(X):
    X[::7] = np.nan
    (report,) = KernelLibrary([OnColumns(RBF(), slice(None), missing="center")]).diagnose(X)
    assert report.is_psd
    with pytest.raises(ValueError, match="contains NaN"):
        KernelLibrary([RBF()]).diagnose(X)


def test_values_that_are_not_finite_are_refused_by_name(X):
    library = KernelLibrary([RBF(), FromCallable(lambda A, B: zero(A, B) + np.inf)])
    with pytest.raises(ValueError, match=r"The kernel FromCallable\(<lambda>\) gave values that are not finite"):
        library.diagnose(X)


def test_one_row_can_be_diagnosed(X):
    (report,) = KernelLibrary([Polynomial()]).diagnose(X[:1])
    assert report.is_psd
    assert report.smallest_eigenvalue == report.largest_eigenvalue == report.mean_diagonal
