import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from kernelweave.solvers.machines import row_programs as module
from kernelweave.solvers.machines import smo
from kernelweave.solvers.machines.row_programs import solve_rows
from kernelweave.solvers.result import Status


class Blocks:
    """Blocks of a matrix in single precision, counted."""

    def __init__(self, K):
        self.K, self.sizes = np.asarray(K, dtype=np.float32), []

    def __call__(self, rows, columns):
        self.sizes.append(len(rows) * len(columns))
        return self.K[np.ix_(rows, columns)]


@pytest.fixture(autouse=True)
def small_first_round(monkeypatch):
    monkeypatch.setattr(module, "MIN_FIRST", 20)


def machine(seed, n=300, C=10.0, flipped=0.1):
    """A kernel, and the linear term and the box of a machine with noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where((X[:, 0] > 0.0) ^ (rng.random(n) < flipped), 1.0, -1.0)
    return rbf_kernel(X).astype(np.float32), -y, np.minimum(0.0, C * y), np.maximum(0.0, C * y)


def gap(K, linear, lower, upper, found):
    """The duality gap at the multiplier of a result."""
    excess = K.astype(float) @ found.x + linear - found.multiplier
    return float(np.maximum(excess * (found.x - lower), excess * (found.x - upper)).sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_rows_by_need_reach_the_optimum_of_the_whole_matrix(seed, C):
    K, *problem = machine(seed, C=C)
    expected = smo.solve(K, *problem, tol=1e-7)
    found = solve_rows(Blocks(K), *problem, tol=1e-6)
    assert found.status is Status.CONVERGED
    assert found.n_iter > 1
    assert found.objective == pytest.approx(expected.objective, rel=2e-6)
    assert found.x.sum() == pytest.approx(0.0, abs=1e-9 * np.abs(found.x).sum())
    assert np.all((found.x >= problem[1]) & (found.x <= problem[2]))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("max_rounds", [1, 2, 1000])
def test_the_certificate_is_the_gap_over_all_variables(seed, max_rounds):
    K, *problem = machine(seed)
    found = solve_rows(Blocks(K), *problem, tol=1e-4, max_rounds=max_rounds)
    assert found.certificate.kind == "duality gap"
    # Updates of the gradient round in double precision, once for each of up to n variables.
    assert found.certificate.gap == pytest.approx(gap(K, *problem, found), rel=1e-6, abs=1e-9)
    assert found.status is (Status.CONVERGED if max_rounds == 1000 else Status.MAX_ITER)


@pytest.mark.parametrize("max_entries", [50, 2_000, 20_000])
def test_blocks_are_bounded_and_little_memory_costs_rounds_alone(max_entries, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ENTRIES", 1000)
    K, *problem = machine(0)
    blocks = Blocks(K)
    found = solve_rows(blocks, *problem, tol=1e-3, max_entries=max_entries, max_rounds=100_000)
    assert found.status is Status.CONVERGED
    assert max(blocks.sizes) <= 1000
    search = module._Search(blocks, *problem, 0.0, max_entries)
    assert search.rows.kept.size <= max_entries // 2
    assert len(search.active()) <= max(3, np.sqrt(max_entries / 2))


def test_where_few_rows_support_the_machine_most_of_the_kernel_is_not_computed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += 2.0 * y
    blocks = Blocks(rbf_kernel(X, gamma=0.1))
    found = solve_rows(blocks, -y, np.minimum(0.0, y), np.maximum(0.0, y))
    assert found.status is Status.CONVERGED
    assert sum(blocks.sizes) < 0.5 * 1000**2


def test_the_sum_need_not_be_zero():
    K, *_ = machine(0)  # one class: no linear term, shares of at most 1 / (nu n)
    n = len(K)
    problem = np.zeros(n), np.zeros(n), np.full(n, 1.0 / (0.3 * n))
    expected = smo.solve(K, *problem, total=1.0, tol=1e-7)
    found = solve_rows(Blocks(K), *problem, total=1.0, tol=1e-6)
    assert found.x.sum() == pytest.approx(1.0)
    assert found.objective == pytest.approx(expected.objective, rel=2e-6)


def test_an_indefinite_kernel_is_noticed():
    K, *problem = machine(0, n=60)
    found = solve_rows(Blocks(K - 3.0 * np.eye(60)), *problem)
    assert found.certificate.kind == "stationarity"
    assert found.status is Status.CONVERGED


def test_equal_bounds_leave_nothing_to_do():
    K, linear, lower, _ = machine(0, n=20)
    found = solve_rows(Blocks(K), linear, lower, lower, total=float(lower.sum()))
    assert found.status is Status.CONVERGED
    assert np.array_equal(found.x, lower)
