import numpy as np
import pytest
from checks.discriminant import drawn, problem, sample, scatter, traces, unit
from oracles.reference import discriminant_sdp
from scipy.linalg import null_space

from kernelweave.solvers.discriminant.matrix_fractional import RidgedStack, class_indicator, solve_matrix_fractional
from kernelweave.solvers.machines.kernel_stack import Factor, KernelStack
from kernelweave.solvers.result import Status

EPS = np.finfo(float).eps
RIDGES = [None, 0.03]
TIGHT = 1e-10


def objective(kernels, H, ridge, weights):
    return np.trace(scatter(kernels, H, ridge, weights))


def on_simplex(weights):
    return weights.min() >= 0.0 and weights.sum() == pytest.approx(1.0, abs=1e-12)


# The semidefinite programs of the paper

QUICK = [0, 1, 2, 3, 5]


def check_against_the_sdp(kernels, H, ridge, *, divided=False):
    pytest.importorskip("cvxpy")
    oracle = discriminant_sdp(kernels, H, ridge, divided=divided)
    optimum = oracle.objective / (1.0 if ridge is None or divided else ridge)
    found = solve_matrix_fractional(kernels, H, ridge=ridge)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(optimum, rel=1e-6)
    # Clarabel's constraints hold up to 1e-7 where the ridge is tiny, and by as much its optimum may be too low: what
    # counts for the certificate is the value of its weights.
    both = found.x, oracle.weights * traces(kernels, ridge)
    own, theirs = (objective(kernels, H, ridge, weights / weights.sum()) for weights in both)
    assert own == pytest.approx(optimum, rel=1e-6)
    assert theirs == pytest.approx(optimum, rel=1e-6)
    assert found.objective == pytest.approx(own, rel=1e-8)
    assert found.objective - found.certificate.gap <= theirs * (1 + 1e-8)


@pytest.mark.parametrize("seed", QUICK)
def test_the_optimum_is_that_of_the_sdp(seed):
    check_against_the_sdp(*drawn(seed, largest=25))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 35))
def test_the_optimum_is_that_of_the_sdp_on_more_problems(seed):
    check_against_the_sdp(*drawn(seed))


@pytest.mark.parametrize("k", [2, 4])
def test_the_optimum_at_a_tiny_ridge_is_that_of_the_sdp_divided_by_it(k):
    check_against_the_sdp(*problem(k, m=18, k=k), 1e-8, divided=True)


@pytest.mark.parametrize("ridge", RIDGES)
def test_two_classes_have_the_weights_of_the_binary_problem_and_its_optimum_times_the_class_sizes(ridge):
    pytest.importorskip("cvxpy")
    codes, raw = sample(6, 20, 2, 4)
    kernels, positive = [unit(K) for K in raw], codes == 1
    a = np.where(positive, 1.0 / positive.sum(), -1.0 / (~positive).sum())[:, None]  # (8)
    several = solve_matrix_fractional(kernels, class_indicator(codes, 2), ridge=ridge, tol=TIGHT)
    one = solve_matrix_fractional(kernels, a, ridge=ridge, tol=TIGHT)
    product = positive.sum() * (~positive).sum()
    assert several.objective == pytest.approx(product * one.objective, rel=1e-9)
    np.testing.assert_allclose(several.x, one.x, atol=1e-5)
    binary = discriminant_sdp(kernels, a, ridge)  # (16) or (40)
    assert several.objective * (ridge or 1.0) == pytest.approx(product * binary.objective, rel=1e-6)


# Derivatives


@pytest.mark.parametrize("ridge", RIDGES)
def test_gradient_and_hessian_are_those_of_finite_differences(ridge):
    kernels, H = problem(1)
    stack, h = RidgedStack(kernels, H, ridge), 1e-5
    w = np.random.default_rng(0).dirichlet(np.ones(stack.n_weights))

    def at(weights):
        value = stack.value(weights)
        return value, stack.derivatives()

    value, here = at(w)
    assert value == pytest.approx(objective(kernels, H, ridge, w), rel=1e-9)
    assert here.objective == pytest.approx(value, rel=1e-12)
    for i, unit_vector in enumerate(np.eye(len(w))):
        above, below = at(w + h * unit_vector), at(w - h * unit_vector)
        assert -here.forms[i] == pytest.approx((above[0] - below[0]) / (2 * h), rel=1e-5)
        change = (below[1].forms - above[1].forms) / (2 * h)
        np.testing.assert_allclose(here.hessian[i], change, rtol=1e-4, atol=1e-6 * np.abs(here.hessian).max())


# Properties of the optimum


@pytest.mark.parametrize("ridge", RIDGES)
def test_no_other_weights_are_better(ridge):
    kernels, H = problem(2, m=30)
    found = solve_matrix_fractional(kernels, H, ridge=ridge)
    rng = np.random.default_rng(1)
    others = rng.dirichlet(np.full(len(found.x), 0.5), size=200)
    assert min(objective(kernels, H, ridge, w) for w in others) >= found.objective - found.certificate.gap
    assert on_simplex(found.x)


@pytest.mark.parametrize("ridge", [*RIDGES, 1e-8])
def test_the_certificate_bounds_the_error_at_every_step(ridge):
    kernels, H = problem(3, m=40, k=4, n_kernels=6)
    best = solve_matrix_fractional(kernels, H, ridge=ridge, tol=1e-11).objective
    for n_steps in range(6):
        found = solve_matrix_fractional(kernels, H, ridge=ridge, max_iter=n_steps)
        assert found.certificate.kind == "duality gap"
        assert found.objective - best <= found.certificate.gap + 1e-9 * best
        assert found.objective == pytest.approx(objective(kernels, H, ridge, found.x), rel=1e-7)


@pytest.mark.parametrize("ridge", RIDGES)
def test_the_dual_solves_its_system_for_every_column(ridge):
    kernels, H = problem(4, k=4)
    found = solve_matrix_fractional(kernels, H, ridge=ridge)
    weights, m = found.x, len(H)
    M = (ridge or weights[0] / m) * np.eye(m) + sum(
        w * K for w, K in zip(weights[ridge is None :], kernels, strict=True)
    )
    assert found.dual.shape == H.shape
    np.testing.assert_allclose(M @ found.dual, H, atol=1e-9)
    forms = [np.vdot(found.dual, K @ found.dual) for K in kernels]
    np.testing.assert_allclose(found.forms[ridge is None :], forms, rtol=1e-9)


def test_a_learned_ridge_is_reproduced_by_a_fixed_one():
    kernels, H = problem(5, m=30)
    kernels = kernels[-2:]
    learned = solve_matrix_fractional(kernels, H, ridge=None, tol=TIGHT)
    w_0 = learned.x[0]
    assert 0.01 < w_0 < 0.99
    fixed = solve_matrix_fractional(kernels, H, ridge=w_0 / (len(H) * (1 - w_0)), tol=TIGHT)
    np.testing.assert_allclose(fixed.x, learned.x[1:] / (1 - w_0), atol=1e-4)
    assert fixed.objective == pytest.approx(learned.objective * (1 - w_0), rel=1e-8)


@pytest.mark.parametrize("ridge", RIDGES)
def test_the_order_of_kernels_points_and_classes_does_not_matter(ridge):
    kernels, H = problem(6, m=24, n_kernels=5)
    rng = np.random.default_rng(2)
    rows, order = rng.permutation(24), rng.permutation(5)
    found = solve_matrix_fractional(kernels, H, ridge=ridge, tol=TIGHT)
    shuffled = [kernels[i][np.ix_(rows, rows)] for i in order]
    again = solve_matrix_fractional(shuffled, H[rows][:, ::-1], ridge=ridge, tol=TIGHT)
    assert again.objective == pytest.approx(found.objective, rel=1e-9)
    np.testing.assert_allclose(again.x[ridge is None :], found.x[ridge is None :][order], atol=1e-4)


@pytest.mark.parametrize("ridge", RIDGES)
def test_scales_of_the_stack_and_of_the_indicators(ridge):
    kernels, H = problem(7)
    found = solve_matrix_fractional(kernels, H, ridge=ridge, tol=TIGHT)
    scales = np.array([3.0, 0.1, 1e4, 1.0])
    stack = KernelStack([s * K for s, K in zip(scales, kernels, strict=True)], scales)
    scaled = solve_matrix_fractional(stack, 100.0 * H, ridge=ridge, tol=TIGHT)
    assert scaled.objective == pytest.approx(1e4 * found.objective, rel=1e-9)
    np.testing.assert_allclose(scaled.x, found.x, atol=1e-5)


@pytest.mark.parametrize("ridge", RIDGES)
def test_duplicated_kernels_share_a_weight_and_change_no_optimum(ridge):
    kernels, H = problem(8)
    found = solve_matrix_fractional(kernels, H, ridge=ridge, tol=TIGHT)
    doubled = solve_matrix_fractional([*kernels, *kernels, kernels[0]], H, ridge=ridge, tol=TIGHT)
    assert doubled.status is Status.CONVERGED
    assert doubled.objective == pytest.approx(found.objective, rel=1e-9)
    first = int(ridge is None)
    sums = doubled.x[first : first + 4] + doubled.x[first + 4 : first + 8]
    sums[0] += doubled.x[-1]
    np.testing.assert_allclose(sums, found.x[first:], atol=1e-4)


# Kernels given by factors


def factors(seed, m=60, k=3, ranks=(3, 5, 2)):
    rng = np.random.default_rng(seed)
    codes = np.arange(m) % k
    parts = [rng.normal(size=(m, rank)) for rank in ranks]
    parts[0][:, 0] += codes == 1
    parts = [Z - Z.mean(axis=0) for Z in parts]
    return [Z / np.linalg.norm(Z) for Z in parts], class_indicator(codes, k)


@pytest.mark.parametrize("ridge", [*RIDGES, 1e-8, 10.0])
@pytest.mark.parametrize("m, rotated", [(60, True), (16, False)])
def test_factors_are_the_kernels_they_stand_for(ridge, m, rotated):
    parts, H = factors(0, m=m)
    stack = RidgedStack([Factor(Z) for Z in parts], H, ridge)
    assert (stack.rotation is not None) == rotated
    dense_stack = RidgedStack([Z @ Z.T for Z in parts], H, ridge)
    low = solve_matrix_fractional([Factor(Z) for Z in parts], H, ridge=ridge, tol=1e-8)
    dense = solve_matrix_fractional([Z @ Z.T for Z in parts], H, ridge=ridge, tol=1e-8)
    assert low.objective == pytest.approx(dense.objective, rel=1e-8)
    for at in (stack, dense_stack):
        at.value(low.x)
    expected, found = dense_stack.derivatives(), stack.derivatives()
    # Solving with M loses as many digits as its condition number has. Beside a ridge of 1e-8 most of H, which the
    # kernels do not reach, is in Z with a factor of 1e8: Z'BZ then feels the last digits of the entries of B.
    Z = expected.solution
    M = dense_stack.stack.combine(low.x, dense_stack.ridge) + dense_stack.shift
    assert np.linalg.norm(low.dual - Z @ dense_stack.mixing) <= m * EPS * np.linalg.cond(M) * np.linalg.norm(Z)
    np.testing.assert_allclose(found.forms, expected.forms, rtol=m * EPS, atol=EPS * np.vdot(Z, Z))
    # F is at most its gap above the minimum, so that the weights are no farther apart than its curvature allows.
    along = null_space(np.ones((1, len(low.x))))
    curvature = np.linalg.eigvalsh(along.T @ found.hessian @ along)[0]
    apart = sum(np.sqrt(2.0 * (result.certificate.gap + expected.noise) / curvature) for result in (low, dense))
    assert np.linalg.norm(low.x - dense.x) <= apart
    if ridge != 1e-8:  # with which the weights of classes that kernels tell apart are no longer determined
        np.testing.assert_allclose(low.x, dense.x, atol=1e-5)
        np.testing.assert_allclose(low.dual, Z @ dense_stack.mixing, rtol=1e-6, atol=1e-6)


def test_factors_form_no_matrix_of_all_points():
    parts, H = factors(1, m=200_000, ranks=(2, 2))  # such a matrix would take 320 GB
    found = solve_matrix_fractional([Factor(Z) for Z in parts], H, ridge=None)
    assert found.status is Status.CONVERGED
    assert found.dual.shape == H.shape


def test_factors_of_single_precision_and_dependent_columns():
    parts, H = factors(2)
    parts = [np.hstack([Z, Z]) / np.sqrt(2.0) for Z in parts]
    double = solve_matrix_fractional([Factor(Z) for Z in parts], H, ridge=0.01)
    single = solve_matrix_fractional([Factor(Z.astype(np.float32)) for Z in parts], H, ridge=0.01)
    assert single.objective == pytest.approx(double.objective, rel=1e-5)
    assert double.objective == pytest.approx(
        solve_matrix_fractional([Z @ Z.T for Z in parts], H, ridge=0.01).objective, rel=2e-6
    )


def test_factors_and_dense_kernels_mix():
    parts, H = factors(3)
    mixed = solve_matrix_fractional([Factor(parts[0]), *(Z @ Z.T for Z in parts[1:])], H, ridge=None)
    assert mixed.objective == pytest.approx(
        solve_matrix_fractional([Factor(Z) for Z in parts], H, ridge=None).objective, rel=2e-6
    )


# Edges


@pytest.mark.parametrize("ridge", RIDGES)
def test_one_kernel(ridge):
    kernels, H = problem(9)
    found = solve_matrix_fractional(kernels[:1], H, ridge=ridge, tol=1e-9)
    assert found.status is Status.CONVERGED
    if ridge is None:
        grid = [objective(kernels[:1], H, None, np.array([w, 1 - w])) for w in np.linspace(1e-3, 1, 500)]
        assert found.objective <= min(grid) * (1 + 1e-9)
    else:
        assert found.x == pytest.approx([1.0])
        assert found.n_iter == 0


def test_a_zero_kernel_gets_no_weight_unless_it_is_alone():
    kernels, H = problem(10)
    zero = np.zeros_like(kernels[0])
    found = solve_matrix_fractional([zero, *kernels], H, ridge=0.01, tol=1e-8)
    assert found.x[0] == pytest.approx(0.0, abs=1e-7)
    assert found.objective == pytest.approx(
        solve_matrix_fractional(kernels, H, ridge=0.01, tol=1e-8).objective, rel=1e-7
    )
    alone = solve_matrix_fractional([zero], H, ridge=None)
    assert alone.x == pytest.approx([1.0, 0.0])
    assert alone.objective == pytest.approx(len(H) * np.vdot(H, H))


@pytest.mark.parametrize("given", [np.outer, lambda a, b: Factor(a[:, None])])
def test_indicators_in_the_range_of_a_singular_kernel_drive_the_learned_ridge_to_zero(given):
    a = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0, -1.0]) / np.sqrt(8.0)
    found = solve_matrix_fractional([given(a, a)], a[:, None], ridge=None, tol=1e-6)
    assert found.status is Status.CONVERGED
    assert found.x[0] < 1e-5
    assert found.objective == pytest.approx(1.0, rel=2e-6)


@pytest.mark.parametrize("ridge", [1e-13, 1e-11, 1e3, 1e8])
def test_tiny_and_huge_ridges(ridge):
    kernels, H = problem(12, m=30)
    found = solve_matrix_fractional(kernels, H, ridge=ridge)
    assert on_simplex(found.x)
    assert found.status in (Status.CONVERGED, Status.PRECISION)
    assert found.certificate.relative <= (1e-6 if ridge > 1e-12 else 1e-3)
    if ridge > 1.0:
        assert found.objective == pytest.approx(np.vdot(H, H) / ridge, rel=1.0 / ridge)


def test_a_kernel_of_low_rank_at_a_tiny_ridge_converges():
    parts, H = factors(4, m=40)
    found = solve_matrix_fractional([Z @ Z.T for Z in parts], H, ridge=1e-9, tol=1e-8)
    assert found.status is Status.CONVERGED
    assert found.objective == pytest.approx(objective([Z @ Z.T for Z in parts], H, 1e-9, found.x), rel=1e-6)


def test_float32_kernels_of_fortran_order_are_taken_as_they_are():
    kernels, H = problem(13)
    found = solve_matrix_fractional(kernels, H, ridge=0.01)
    single = [np.asfortranarray(K.astype(np.float32)) for K in kernels]
    copies = [K.copy() for K in single]
    assert solve_matrix_fractional(single, H, ridge=0.01).objective == pytest.approx(found.objective, rel=1e-5)
    assert all(np.array_equal(K, copy) for K, copy in zip(single, copies, strict=True))


# Inputs


def test_a_ridge_below_rounding_beside_singular_kernels_is_refused():
    parts, H = factors(5, m=40)
    with pytest.raises(ValueError, match="not positive definite in double precision"):
        solve_matrix_fractional([Z @ Z.T for Z in parts], H, ridge=1e-25)
    with pytest.raises(ValueError, match="or they hold NaN"):
        solve_matrix_fractional([np.full((40, 40), np.nan)], H, ridge=1.0)


@pytest.mark.parametrize("ridge", [1e-17, 1e-100, 1e-300, 5e-324])
def test_factors_are_refused_a_ridge_that_their_kernels_are(ridge):
    parts, H = factors(5, m=40)
    for kernels in ([Factor(Z) for Z in parts], [Z @ Z.T for Z in parts]):
        with pytest.raises(ValueError, match="the ridge is too small beside them"):
            solve_matrix_fractional(kernels, H, ridge=ridge)


def test_numbers_that_would_overflow_are_refused_and_smaller_ones_are_finite():
    _, H = factors(5, m=40)
    nothing = [Factor(np.zeros((40, 2)))]  # but the ridge
    found = solve_matrix_fractional(nothing, H, ridge=1e-100)
    assert (found.status, found.objective) == (Status.CONVERGED, pytest.approx(1e100 * np.vdot(H, H)))
    with pytest.raises(ValueError, match="Pass a larger ridge"):
        solve_matrix_fractional(nothing, H, ridge=1e-300)


@pytest.mark.parametrize("ridge", [1e-20, 1e-300])
def test_kernels_that_need_no_ridge_take_any(ridge):
    kernels, H = [np.eye(20) - 1 / 20], problem(12)[1]
    assert solve_matrix_fractional(kernels, H, ridge=ridge).objective == pytest.approx(np.vdot(H, H))


def test_class_indicators_have_the_entries_of_the_paper():
    codes = np.array([0, 1, 2, 2, 1, 2])
    H = class_indicator(codes, 3)
    m, sizes = 6, np.array([1, 2, 3])
    expected = np.array([[np.sqrt(m / n) * (c == j) - np.sqrt(n / m) for j, n in enumerate(sizes)] for c in codes])
    np.testing.assert_allclose(H, expected)
    np.testing.assert_allclose(H.sum(axis=0), 0.0, atol=1e-12)
    assert np.linalg.matrix_rank(H) == 2
    np.testing.assert_allclose(H @ np.sqrt(sizes), 0.0, atol=1e-12)


def test_a_class_without_points_is_refused():
    with pytest.raises(ValueError, match=r"each class from 0 to 2; the classes occur \[2 1 0\] times"):
        class_indicator(np.array([0, 0, 1]), 3)
    with pytest.raises(ValueError, match="each class from 0 to 1"):
        class_indicator(np.array([0, 1, 2]), 2)


@pytest.mark.parametrize("ridge", [0.0, -1.0, np.inf, np.nan])
def test_a_ridge_that_is_not_positive_is_refused(ridge):
    kernels, H = problem(14)
    with pytest.raises(ValueError, match="ridge must be a positive number, or None"):
        solve_matrix_fractional(kernels, H, ridge=ridge)


def test_indicators_that_do_not_fit_are_refused():
    kernels, H = problem(15)
    with pytest.raises(ValueError, match=r"a row for each of the 20 points; got the shape \(19, 3\)"):
        solve_matrix_fractional(kernels, H[1:], ridge=1.0)
    with pytest.raises(ValueError, match="must sum to zero"):
        solve_matrix_fractional(kernels, H + 1.0, ridge=1.0)
