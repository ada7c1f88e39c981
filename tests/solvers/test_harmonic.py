import numpy as np
import pytest
from scipy import sparse

from kernelweave.solvers import harmonic
from kernelweave.solvers.harmonic import solve_harmonic
from kernelweave.solvers.result import Status

FORMS = ["elimination", "dense", "conjugate gradients"]


@pytest.fixture(params=FORMS)
def run(request, monkeypatch):
    """The solver, made to take one of its ways."""

    def solve_by(W, labeled, Y, **options):
        W = W if request.param == "dense" else sparse.csr_array(W)
        options = {"fallback": np.zeros(Y.shape[1]), **options}
        return solve_harmonic(W, labeled, Y, **options)

    monkeypatch.setattr(harmonic, "MAX_DENSE_ROWS", 0 if request.param == "conjugate gradients" else 10**6)
    solve_by.form = request.param
    return solve_by


def graph(seed, n=60, density=0.1):
    """A connected graph with weights of several sizes."""
    rng = np.random.default_rng(seed)
    W = np.where(rng.uniform(size=(n, n)) < density, 10.0 ** rng.uniform(-3, 0, size=(n, n)), 0.0)
    W[np.arange(n - 1), np.arange(1, n)] = 0.1
    W = np.triu(W, 1)
    return W + W.T


def sample(seed, n=60, n_labeled=8, n_columns=3):
    rng = np.random.default_rng(seed)
    labeled = np.sort(rng.choice(n, n_labeled, replace=False))
    return graph(seed, n), labeled, rng.normal(size=(n_labeled, n_columns)) + 5.0


def oracle(W, labeled, Y):
    """The linear system as printed."""
    free = np.setdiff1d(np.arange(len(W)), labeled)
    L = np.diag(W.sum(axis=1)) - W
    f = np.empty((len(W), Y.shape[1]))
    f[labeled] = Y
    f[free] = np.linalg.solve(L[np.ix_(free, free)], W[np.ix_(free, labeled)] @ Y)
    return f


@pytest.mark.parametrize("seed", range(4))
def test_the_values_are_those_of_the_linear_system(run, seed):
    W, labeled, Y = sample(seed)
    found = run(W, labeled, Y, tol=1e-10)
    expected = oracle(W, labeled, Y)
    np.testing.assert_allclose(found.x, expected, atol=1e-9 * np.ptp(Y))
    np.testing.assert_array_equal(found.x[labeled], Y)
    assert found.status is Status.CONVERGED
    assert found.certificate.kind == "KKT residual"
    assert found.certificate.relative <= 1e-10
    assert (found.n_iter > 0) == (run.form == "conjugate gradients")
    energy = 0.5 * sum((W * np.subtract.outer(f, f) ** 2).sum() for f in expected.T)
    assert found.objective == pytest.approx(energy, rel=1e-8)


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-9])
def test_the_bound_holds(run, tol):
    W, labeled, Y = sample(5, n_labeled=2)
    found = run(W, labeled, Y, tol=tol)
    error = np.abs(found.x - oracle(W, labeled, Y)) / np.ptp(Y, axis=0)
    assert error.max() <= found.error + 1e-12
    assert found.error <= tol


def test_the_certificate_is_the_distance_from_the_mean_of_the_neighbours(run):
    W, labeled, Y = sample(6)
    found = run(W, labeled, Y, tol=1e-3)
    free = np.setdiff1d(np.arange(len(W)), labeled)
    distance = np.abs(found.x - W @ found.x / W.sum(axis=1)[:, None])[free]
    relative = (distance / np.ptp(Y, axis=0)).max()
    assert found.certificate.relative == pytest.approx(relative, rel=1e-6, abs=1e-15)
    assert found.certificate.objective == np.ptp(Y, axis=0).max()


@pytest.mark.parametrize("seed", range(3))
def test_no_value_leaves_the_range_of_those_given(run, seed):
    W, labeled, Y = sample(seed, n_labeled=3)
    found = run(W, labeled, Y, tol=0.1)
    assert np.all(found.x <= Y.max(axis=0) + 1e-12)
    assert np.all(found.x >= Y.min(axis=0) - 1e-12)


def test_indicators_of_classes_become_shares(run):
    W, labeled, _ = sample(7)
    found = run(W, labeled, np.eye(3)[np.arange(8) % 3], tol=1e-9)
    np.testing.assert_allclose(found.x.sum(axis=1), 1.0, atol=1e-8)


def test_on_a_path_values_are_linear(run):
    n = 40
    path = np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    found = run(path, np.array([0, n - 1]), np.array([[1.0], [3.0]]), tol=1e-10)
    np.testing.assert_allclose(found.x[:, 0], np.linspace(1.0, 3.0, n), atol=1e-9)


def test_units_of_weights_and_values_and_loops_do_not_matter(run):
    W, labeled, Y = sample(8)
    plain = run(W, labeled, Y, tol=1e-9).x
    changed = run(1e-150 * (W + np.diag(np.arange(60.0))), labeled, 1e80 * Y, tol=1e-9).x
    np.testing.assert_allclose(changed, 1e80 * plain, rtol=1e-7)


def test_equal_values_are_everywhere(run):
    W, labeled, Y = sample(9)
    found = run(W, labeled, np.full_like(Y, 0.3))
    np.testing.assert_allclose(found.x, 0.3, rtol=1e-15)
    assert found.certificate.gap == found.certificate.relative == found.objective == 0.0


def test_rows_that_no_path_joins_to_a_label_have_the_fallback(run):
    W = np.zeros((75, 75))
    W[:60, :60] = graph(10)
    W[60:70, 60:70] = graph(11, n=10)  # rows 70 to 74 have no edge
    _, labeled, Y = sample(10)
    found = run(W, labeled, Y, tol=1e-9, fallback=np.array([1.0, 2.0, 3.0]))
    assert found.unreached.tolist() == list(range(60, 75))
    np.testing.assert_array_equal(found.x[60:], np.tile([1.0, 2.0, 3.0], (15, 1)))
    np.testing.assert_allclose(found.x[:60], oracle(W[:60, :60], labeled, Y), atol=1e-7)
    assert found.status is Status.CONVERGED


def test_all_rows_may_be_labelled(run):
    W, _, _ = sample(11)
    Y = np.arange(60.0)[:, None]
    found = run(W, np.arange(60), Y)
    np.testing.assert_array_equal(found.x, Y)
    assert found.status is Status.CONVERGED
    assert len(found.unreached) == 0


def test_stored_zeros_are_no_edges():
    W = sparse.csr_array(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    W.data[W.data == 2.0] = 0.0
    found = solve_harmonic(W, np.array([0]), np.ones((1, 1)), fallback=np.array([7.0]))
    assert found.x[:, 0].tolist() == [1.0, 1.0, 7.0]


def weakly_joined(link):
    """Twenty rows close to each other, which one edge joins to a row between two labels."""
    W = np.zeros((23, 23))
    W[:20, :20] = 1.0 - np.eye(20)
    W[0, 20] = W[20, 0] = link
    W[20, 21] = W[21, 20] = 3.0
    W[20, 22] = W[22, 20] = 1.0
    return W, np.array([21, 22]), np.array([[0.0], [1.0]])


@pytest.mark.parametrize("link", [1e-3, 1e-30, 1e-200])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_elimination_is_exact_behind_the_weakest_edge(link, form):
    W, labeled, Y = weakly_joined(link)
    found = solve_harmonic(form(W), labeled, Y, fallback=np.zeros(1))
    np.testing.assert_allclose(found.x[:21], 0.25, rtol=1e-14)


def test_what_is_too_weak_for_a_number_is_not_reached():
    W, labeled, Y = weakly_joined(np.nextafter(0.0, 1.0))
    found = solve_harmonic(W, labeled, Y, fallback=np.array([9.0]))
    assert found.unreached.tolist() == list(range(20))
    np.testing.assert_array_equal(found.x[:20], 9.0)
    assert found.x[20, 0] == pytest.approx(0.25)


def test_conjugate_gradients_do_not_mistake_a_small_residual_for_a_solution(monkeypatch):
    monkeypatch.setattr(harmonic, "MAX_DENSE_ROWS", 0)
    monkeypatch.setattr(harmonic, "MAX_ISLAND_ROWS", 0)
    for link, reachable in ((1e-3, True), (1e-5, True), (1e-8, False), (1e-30, False)):
        W, labeled, Y = weakly_joined(link)
        found = solve_harmonic(sparse.csr_array(W), labeled, Y, fallback=np.zeros(1), tol=1e-6, max_iter=500)
        assert (found.status is Status.CONVERGED) == reachable
        assert (found.error <= 1e-6) == reachable
        assert np.abs(found.x[:21] - 0.25).max() <= found.error


@pytest.mark.parametrize("link", [1e-7, 1e-30, 1e-200])
def test_islands_are_eliminated_before_the_iteration(monkeypatch, link):
    W, labeled, Y = sample(15, n=100)
    for island in (range(20), range(20, 25)):  # which hang on each other too
        outside = np.setdiff1d(np.arange(100), island)
        W[np.ix_(island, outside)] *= link
        W[np.ix_(outside, island)] *= link
        W[np.ix_(island, island)] += 0.1 * (1.0 - np.eye(len(island)))
    labeled = labeled + 25 * (labeled < 25)
    labeled, first = np.unique(labeled, return_index=True)
    expected = solve_harmonic(W, labeled, Y[first], fallback=np.zeros(3)).x
    monkeypatch.setattr(harmonic, "MAX_DENSE_ROWS", 0)
    found = solve_harmonic(sparse.csr_array(W), labeled, Y[first], fallback=np.zeros(3), tol=1e-9)
    assert found.status is Status.CONVERGED
    assert 0 < found.n_iter < 200
    np.testing.assert_allclose(found.x, expected, atol=1e-8)


def test_an_island_that_hangs_on_less_than_a_number_is_said(monkeypatch):
    monkeypatch.setattr(harmonic, "MAX_DENSE_ROWS", 0)
    W, labeled, Y = weakly_joined(np.nextafter(0.0, 1.0))
    found = solve_harmonic(sparse.csr_array(W), labeled, Y, fallback=np.zeros(1))
    assert found.status is Status.PRECISION
    assert found.error == 1.0
    assert found.x[20, 0] == pytest.approx(0.25)


def test_too_few_steps_are_said(monkeypatch):
    monkeypatch.setattr(harmonic, "MAX_DENSE_ROWS", 0)
    W, labeled, Y = sample(12, n_labeled=2)
    found = solve_harmonic(sparse.csr_array(W), labeled, Y, fallback=np.zeros(3), max_iter=3)
    assert found.status is Status.MAX_ITER
    assert found.n_iter == 3
    assert found.error > 1e-6
    assert np.abs(found.x - oracle(W, labeled, Y)).max() <= found.error * np.ptp(Y, axis=0).max()


def test_a_tolerance_out_of_reach_is_said(monkeypatch):
    monkeypatch.setattr(harmonic, "MAX_DENSE_ROWS", 0)
    W, labeled, Y = sample(13)
    found = solve_harmonic(sparse.csr_array(W), labeled, Y, fallback=np.zeros(3), tol=1e-18)
    assert found.status is Status.PRECISION
    np.testing.assert_allclose(found.x, oracle(W, labeled, Y), atol=1e-10)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_inputs_are_left_alone(form):
    W, labeled, Y = sample(14)
    W = form(W + np.eye(60))
    before = W.copy()
    for array in (labeled, Y, *([W] if form is np.array else [])):
        array.setflags(write=False)
    solve_harmonic(W, labeled, Y, fallback=np.zeros(3))
    assert abs(W - before).max() == 0.0
