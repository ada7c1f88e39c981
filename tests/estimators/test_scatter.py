import numpy as np
import pytest

from kernelweave import RBF, KernelLibrary, Linear
from kernelweave.estimators.base import Sample
from kernelweave.estimators.scatter import Scatter
from kernelweave.estimators.stacking import stack_kernels
from kernelweave.labels import partition
from kernelweave.solvers.matrix_fractional import class_indicator


def scatter(weight=None, y=None):
    """The scatter of 20 rows, with its sample and the raw kernels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = np.arange(20) % 3 if y is None else y
    weight = np.ones(20) if weight is None else weight
    found = partition(y)
    sample = Sample(X, weight, np.arange(20), 20, found, found)
    bound = KernelLibrary([RBF(0.5), Linear()]).bind(X, rng)
    raw = [kernel.block(slice(None), slice(None)) for kernel in bound.kernels]
    stacked = stack_kernels(bound, weight / weight.sum(), owner="Me", scale="trace", dtype="float64")
    return Scatter(stacked, sample), sample, raw


def test_kernels_are_centred_and_of_unit_trace_and_indicators_those_of_the_paper():
    found, sample, raw = scatter()
    P = np.eye(20) - 1 / 20
    for k, K in enumerate(raw):
        expected = P @ K @ P / np.trace(P @ K @ P)
        np.testing.assert_allclose(found.stack.combine(np.eye(2)[k]), expected, atol=1e-12)
    np.testing.assert_allclose(found.H, class_indicator(sample.partition.codes, 3), atol=1e-12)


@pytest.mark.parametrize("weight", [np.full(20, 2.0), np.arange(1.0, 21.0)], ids=["equal", "unequal"])
def test_weighted_rows_have_the_inner_products_of_repeated_ones(weight):
    found, sample, raw = scatter(weight)
    share = weight / weight.sum()
    center = np.eye(20) - np.outer(np.ones(20), share)
    for k, K in enumerate(raw):
        weighted = np.sqrt(weight)[:, None] * (center @ K @ center.T) * np.sqrt(weight)
        values = np.linalg.eigvalsh(weighted / np.trace(weighted))  # a reflection leaves them
        mine = found.stack.combine(np.eye(2)[k]) / found.stretch
        np.testing.assert_allclose(np.linalg.eigvalsh(mine), values, atol=1e-12)
        np.testing.assert_allclose(mine.sum(axis=0), 0.0, atol=1e-12)  # the constant vector is their null vector
    np.testing.assert_allclose(found.H.sum(axis=0), 0.0, atol=1e-12)
    counts = np.bincount(sample.partition.codes, weights=weight)
    H = found.H / np.sqrt(found.stretch)
    expected = weight.sum() * np.eye(3) - np.sqrt(np.outer(counts, counts))
    np.testing.assert_allclose(H.T @ H, expected, atol=1e-9)


def test_unlabelled_rows_have_no_indicator_and_no_sign():
    y = np.where(np.arange(20) < 12, np.arange(20) % 2, -1)
    found = scatter(y=y)[0]
    assert not found.H[12:].any()
    assert found.signs()[12:].tolist() == [0.0] * 8
    assert set(found.signs()[:12]) == {-1.0, 1.0}


def test_coefficients_of_rows_are_those_of_weighted_rows():
    weight = np.arange(1.0, 21.0)
    found, _, raw = scatter(weight)
    Z = np.random.default_rng(1).normal(size=(20, 2))
    Z -= Z.mean(axis=0)  # duals have no part in the constant direction
    center = np.eye(20) - np.outer(np.ones(20), weight / weight.sum())
    direct = (center @ raw[0] @ center.T) @ found.rows_of(Z) / found.scales[0]
    through = found.rows_of(found.stack.combine(np.array([1.0, 0.0])) @ Z) / weight[:, None] / found.stretch
    np.testing.assert_allclose(direct, through, atol=1e-10)
