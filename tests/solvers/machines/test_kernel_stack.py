import numpy as np
import pytest

from kernelweave.solvers.machines import kernel_stack
from kernelweave.solvers.machines.kernel_stack import BLOCK_ROWS, MAX_ROWWISE_VECTORS, Diagonal, Factor, KernelStack

N = 2 * BLOCK_ROWS + 9  # blocks, and a rest


def kernels(n=N, n_dense=6, seed=0):
    """Members of every kind, and the same as dense scaled matrices."""
    rng = np.random.default_rng(seed)
    dense = [A @ A.T for A in rng.normal(size=(n_dense, n, 8))]
    Z, values = rng.normal(size=(n, 3)), rng.uniform(size=n)
    members = [*dense, Factor(Z), Diagonal(values)]
    scales = rng.uniform(1.0, 3.0, size=len(members))
    matrices = [*dense, Z @ Z.T, np.diag(values)]
    return members, scales, np.array([K / s for K, s in zip(matrices, scales, strict=True)])


@pytest.mark.parametrize("n", [1, 5, BLOCK_ROWS, N])
@pytest.mark.parametrize("n_dense", [1, 4, 6])
def test_the_weighted_sum_is_that_of_dense_matrices(n, n_dense):
    members, scales, matrices = kernels(n, n_dense)
    weights = np.random.default_rng(1).uniform(size=len(members))
    weights[0] = 0.0
    found = KernelStack(members, scales).combine(weights, ridge=0.5)
    assert found == pytest.approx(np.tensordot(weights, matrices, 1) + 0.5 * np.eye(n), rel=1e-12)
    assert found.dtype == np.float64


@pytest.mark.parametrize("rows", [np.array([0, 3, 4, 70]), np.array([2])])
def test_the_stack_at_some_rows_holds_the_same_kernels(rows):
    members, scales, matrices = kernels()
    few = KernelStack(members, scales).at(rows)
    weights = np.random.default_rng(2).uniform(size=len(members))
    assert few.combine(weights) == pytest.approx(np.tensordot(weights, matrices, 1)[np.ix_(rows, rows)], rel=1e-12)


def test_a_ridge_may_differ_from_point_to_point():
    stack = KernelStack([np.eye(3)])
    assert stack.combine(np.array([2.0]), np.arange(3.0)) == pytest.approx(np.diag([2.0, 3.0, 4.0]))


def test_the_sum_is_formed_in_the_same_memory_again():
    members, scales, matrices = kernels()
    stack, weights = KernelStack(members, scales), np.ones(len(members))
    first = stack.combine(weights)
    second = stack.combine(2.0 * weights)
    assert second is first
    assert second == pytest.approx(2.0 * matrices.sum(axis=0))


def test_the_sum_is_formed_once_for_the_same_weights_and_ridge(monkeypatch):
    members, scales, matrices = kernels()
    stack, weights, formed = KernelStack(members, scales), np.ones(len(members)), []
    mirror = kernel_stack.mirror
    monkeypatch.setattr(kernel_stack, "mirror", lambda out: formed.append(1) or mirror(out))
    stack.combine(weights)
    assert stack.combine(weights.copy(), np.zeros(N)) == pytest.approx(matrices.sum(axis=0))
    assert len(formed) == 1
    stack.combine(weights, 1.0)
    assert stack.combine(weights) == pytest.approx(matrices.sum(axis=0))
    assert len(formed) == 3


@pytest.mark.parametrize("n_vectors", [1, 2, MAX_ROWWISE_VECTORS + 2])
@pytest.mark.parametrize("n_zero", [0, N - 6, N])
def test_products_are_those_of_dense_matrices(n_vectors, n_zero):
    members, scales, matrices = kernels()
    X = np.random.default_rng(2).normal(size=(N, n_vectors))
    X[:n_zero] = 0.0
    stack = KernelStack(members, scales)
    assert stack.products(X) == pytest.approx(matrices @ X, rel=1e-10, abs=1e-10)
    at = np.arange(max(0, n_zero - 2), N)
    assert stack.products(X, at=at)[:, at] == pytest.approx((matrices @ X)[:, at], rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("n_vectors", [1, MAX_ROWWISE_VECTORS + 2])
def test_single_precision_kernels_are_summed_in_double_precision(n_vectors):
    members, scales, _ = kernels()
    rounded = [K.astype(np.float32) if isinstance(K, np.ndarray) else K for K in members]
    widened = [K.astype(np.float64) if isinstance(K, np.ndarray) else K for K in rounded]
    weights, X = np.ones(len(members)), np.random.default_rng(3).normal(size=(N, n_vectors))
    narrow, wide = KernelStack(rounded, scales), KernelStack(widened, scales)
    assert narrow.combine(weights) == pytest.approx(wide.combine(weights), rel=1e-12)
    assert narrow.products(X) == pytest.approx(wide.products(X), rel=1e-10, abs=1e-10)
    assert narrow.products(X).dtype == np.float64
    all_rows = np.arange(N)
    assert narrow.products(X, at=all_rows) == pytest.approx(wide.products(X), rel=1e-10, abs=1e-10)


def test_kernels_of_all_kinds_of_memory_are_used_as_they_are():
    members, scales, matrices = kernels()
    spread = np.zeros((2 * N, 2 * N))
    spread[::2, ::2] = members[2]
    locked = members[3].copy()
    locked.flags.writeable = False
    members[1:4] = [np.asfortranarray(members[1]), spread[::2, ::2], locked]
    stack = KernelStack(members, scales)
    assert all(kept is given for kept, given in zip(stack.members, members, strict=True))
    assert stack.combine(np.ones(len(members))) == pytest.approx(matrices.sum(axis=0))
    x = np.random.default_rng(4).normal(size=(N, 1))
    assert stack.products(x) == pytest.approx(matrices @ x, rel=1e-10, abs=1e-10)


def test_diagonals_and_bytes_are_those_of_the_members():
    members, scales, matrices = kernels()
    stack = KernelStack(members, scales)
    assert stack.diagonals() == pytest.approx(np.diagonal(matrices, axis1=1, axis2=2))
    assert stack.nbytes == 8 * (6 * N**2 + 3 * N + N + N**2)  # dense, factor, diagonal, sum
    assert len(stack) == 8


def test_what_is_no_kernel_is_refused():
    with pytest.raises(ValueError, match="at least one kernel"):
        KernelStack([])
    with pytest.raises(ValueError, match=r"Kernel 1 has shape \(4, 2\), but the stack is over 4 points; wrap a low"):
        KernelStack([np.eye(4), np.ones((4, 2))])
    with pytest.raises(ValueError, match="a positive number for each of the 2 kernels"):
        KernelStack([np.eye(4), np.eye(4)], [1.0, 0.0])


def test_features_and_products_of_the_sum_need_no_matrix(monkeypatch):
    rng = np.random.default_rng(3)
    factors, scales, weights = [rng.normal(size=(N, k)) for k in (2, 4, 1)], [1.0, 2.0, 0.5], np.array([0.3, 0.7, 0.0])
    K = sum(w / s * Z @ Z.T for Z, s, w in zip(factors, scales, weights, strict=True))
    X = rng.normal(size=(N, 3))
    stack = KernelStack([Factor(Z) for Z in factors], scales)
    assert not stack.is_low_rank  # a matrix of so few points does no harm
    assert stack.combined_product(weights, X) == pytest.approx(K @ X)
    monkeypatch.setattr(kernel_stack, "MAX_DENSE_POINTS", N - 1)
    assert stack.is_low_rank
    F = stack.features(weights)
    assert F.shape == (N, 6)  # a kernel without weight has none
    assert pytest.approx(K) == F @ F.T
    assert stack.features(weights.copy()) is F
    made = stack.made_of_features(F, np.square)
    np.testing.assert_array_equal(made, F**2)
    assert stack.made_of_features(stack.features(weights), np.square) is made
    others = stack.features(weights[::-1].copy())
    assert others.shape == (N, 5)
    np.testing.assert_array_equal(stack.made_of_features(others, np.square), others**2)
    assert stack.combined_product(weights, X) == pytest.approx(K @ X)
    assert not KernelStack([Factor(factors[0]), K]).is_low_rank
