import numpy as np
import pytest

from kernelweave.solvers.alignment import RankOnes, align, alignf, alignment, alignment_value, gram, ordered, uniform
from kernelweave.solvers.machines.kernel_stack import Factor
from kernelweave.solvers.result import Status

WEIGHTINGS = [uniform, align, alignf, ordered]


def sample(seed, n=15, p=8, c=2):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(n, c))
    return rng.normal(size=(n, p)) + target @ rng.normal(size=(c, p)), target


def mixed(seed, n=15):
    """Two full kernels, a factor, five vectors, one more kernel; the kernels as matrices; the target."""
    B, target = sample(seed, n)
    rng = np.random.default_rng(seed + 100)
    Z, full = rng.normal(size=(n, 3)), [F @ F.T for F in rng.normal(size=(3, n, n))]
    full[0] += target @ target.T
    blocks = [full[0], full[1], Factor(Z), RankOnes(B[:, :5]), full[2]]
    return blocks, [full[0], full[1], Z @ Z.T, *(np.outer(b, b) for b in B[:, :5].T), full[2]], target


def centered(K):
    H = np.eye(len(K)) - 1.0 / len(K)
    return H @ K @ H


def conic_optimum(M, a, t, constraints=lambda w: []):
    """Weights, up to length, and alignment: max a.w over sqrt(w'Mw) <= 1, w >= 0."""
    cp = pytest.importorskip("cvxpy")
    lengths = np.sqrt(M.diagonal())
    values, vectors = np.linalg.eigh(M / lengths[:, None] / lengths)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    v = cp.Variable(len(a), nonneg=True)
    w = cp.multiply(v, 1.0 / lengths)
    problem = cp.Problem(cp.Maximize(a / lengths / np.sqrt(t) @ v), [cp.norm(root @ v) <= 1.0, *constraints(w)])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return w.value / w.value.sum(), problem.value


# The Gram matrix


def test_the_gram_matrix_is_that_of_centred_kernels():
    blocks, kernels, target = mixed(0)
    M, a, t = gram(blocks, target)
    dense, goal = [centered(K) for K in kernels], centered(target @ target.T)
    np.testing.assert_allclose(M, [[np.vdot(K, L) for L in dense] for K in dense], rtol=1e-11)
    np.testing.assert_allclose(a, [np.vdot(K, goal) for K in dense], rtol=1e-11)
    assert t == pytest.approx(np.vdot(goal, goal), rel=1e-12)
    np.testing.assert_array_equal(M, M.T)


def test_a_weight_is_a_repeated_row():
    blocks, _, target = mixed(1)
    weight = np.random.default_rng(0).integers(0, 4, len(target))
    rows = np.repeat(np.arange(len(target)), weight)
    repeated = [K[np.ix_(rows, rows)] for K in blocks[:2]]
    repeated += [Factor(blocks[2].Z[rows]), RankOnes(blocks[3].B[rows]), blocks[4][np.ix_(rows, rows)]]
    for found, expected in zip(gram(blocks, target, weight), gram(repeated, target[rows]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_one_column_of_a_factor_is_a_rank_one_kernel():
    B, target = sample(2)
    one = gram([RankOnes(B)], target)
    for found, expected in zip(gram([Factor(b[:, None]) for b in B.T], target), one, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_inputs_are_left_alone():
    blocks, _, target = mixed(3)
    for array in (*blocks[:2], blocks[2].Z, blocks[3].B, blocks[4], target):
        array.setflags(write=False)
    M, a, t = gram(blocks, target, np.ones(len(target)))
    M.setflags(write=False)
    a.setflags(write=False)
    for weigh in WEIGHTINGS:
        weigh(M, a, t)


def test_a_block_of_another_size_is_named():
    B, target = sample(0)
    for block in (B[:-1, :-1], B, RankOnes(B[:-1]), Factor(B[:-1]), RankOnes(B[:, 0])):
        with pytest.raises(ValueError, match=r"Block 1 has shape .* the target has 15 rows"):
            gram([RankOnes(B), block], target)


def test_a_constant_target_is_refused():
    B, _ = sample(0)
    with pytest.raises(ValueError, match="the same in all rows"):
        gram([RankOnes(B)], np.full((len(B), 2), 0.3))


# Values of the alignment


@pytest.mark.parametrize("weigh", WEIGHTINGS)
def test_the_objective_is_the_alignment_of_the_sum_of_kernels(weigh):
    blocks, kernels, target = mixed(4)
    found = weigh(*gram(blocks, target))
    K = sum(w * kernel for w, kernel in zip(found.x, kernels, strict=True))
    assert found.objective == pytest.approx(alignment(K, target @ target.T), rel=1e-10)
    assert found.objective == alignment_value(found.x, *gram(blocks, target)) == found.certificate.objective


def test_the_alignment_is_the_cosine_of_the_definition():
    rng = np.random.default_rng(5)
    K, T = (F @ F.T for F in rng.normal(size=(2, 6, 4)))

    def cosine(A, B):
        return (A * B).sum() / np.sqrt((A * A).sum() * (B * B).sum())

    assert alignment(K, T, centered=False) == pytest.approx(cosine(K, T), rel=1e-12)
    assert alignment(K, T) == pytest.approx(cosine(centered(K), centered(T)), rel=1e-12)
    assert alignment(K, K) == pytest.approx(1.0, rel=1e-12)
    assert alignment(K, np.ones((6, 6))) == 0.0


# Weights


@pytest.mark.parametrize("weigh", WEIGHTINGS)
@pytest.mark.parametrize("seed", range(5))
def test_weights_are_not_negative_and_sum_to_one(weigh, seed):
    B, target = sample(seed, n=6, p=12)
    found = weigh(*gram([RankOnes(B)], target))
    assert found.x.min() >= 0.0
    assert found.x.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.status is Status.CONVERGED
    assert found.certificate.kind == "KKT residual"
    assert found.certificate.relative <= 1e-10


def test_weights_of_align_are_alignments_of_kernels_of_unit_length():
    blocks, kernels, target = mixed(6)
    found = align(*gram(blocks, target))
    own = [alignment(K, target @ target.T) / np.linalg.norm(centered(K)) for K in kernels]
    np.testing.assert_allclose(found.x, np.divide(own, np.sum(own)), rtol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_alignf_is_the_optimum_of_the_conic_program(seed):
    blocks, kernels, target = mixed(seed) if seed else ([RankOnes(sample(7)[0])], None, sample(7)[1])
    M, a, t = gram(blocks, target)
    weights, optimum = conic_optimum(M, a, t)
    found = alignf(M, a, t)
    assert found.objective == pytest.approx(optimum, abs=1e-8)
    np.testing.assert_allclose(found.x, weights, atol=1e-5 * weights.max())
    if kernels is not None:  # the definition, over dense matrices
        dense = np.array([[np.vdot(centered(K), centered(L)) for L in kernels] for K in kernels])
        goal = np.array([np.vdot(centered(K), target @ target.T) for K in kernels])
        np.testing.assert_allclose(alignf(dense, goal, t).x, found.x, atol=1e-8)


@pytest.mark.parametrize("exempt", [0, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_ordered_weights_are_the_optimum_of_the_program_of_zhu(seed, exempt):
    B, target = sample(seed, p=10)
    M, a, t = gram([RankOnes(B)], target)
    weights, optimum = conic_optimum(M, a, t, lambda w: [w[exempt:-1] >= w[exempt + 1 :]])
    found = ordered(M, a, t, exempt=exempt)
    assert found.objective == pytest.approx(optimum, abs=1e-8)
    np.testing.assert_allclose(found.x, weights, atol=1e-5)
    assert np.all(np.diff(found.x[exempt:]) <= 0.0)
    assert found.objective <= alignf(M, a, t).objective + 1e-12


def test_more_freedom_aligns_better():
    M, a, t = gram([RankOnes(sample(8)[0])], sample(8)[1])
    values = [ordered(M, a, t, exempt=exempt).objective for exempt in (0, 2, 5, 8)] + [alignf(M, a, t).objective]
    assert np.all(np.diff(values) >= -1e-12)
    assert values[0] >= uniform(M, a, t).objective - 1e-12
    assert values[-1] >= max(align(M, a, t).objective, *(a / np.sqrt(M.diagonal() * t))) - 1e-12


def test_everything_exempt_is_alignf():
    M, a, t = gram([RankOnes(sample(9)[0])], sample(9)[1])
    np.testing.assert_allclose(ordered(M, a, t, exempt=len(a)).x, alignf(M, a, t).x, atol=1e-12)


def test_the_ridge_leads_from_alignf_to_align():
    M, a, t = gram([RankOnes(sample(10)[0])], sample(10)[1])
    np.testing.assert_allclose(alignf(M, a, t, ridge=1e9).x, align(M, a, t).x, rtol=1e-7)
    ridged = alignf(M, a, t, ridge=0.1)
    expected = alignf(M + 0.1 * np.diag(M.diagonal()), a, t)
    np.testing.assert_allclose(ridged.x, expected.x, rtol=1e-12)
    assert ridged.objective == pytest.approx(alignment_value(ridged.x, M, a, t), rel=1e-12)


@pytest.mark.parametrize("weigh", [align, alignf, ordered])
@pytest.mark.parametrize("scale", [1e-40, 1e40])
def test_the_scale_of_a_vector_changes_its_weight_alone(weigh, scale):
    B, target = sample(11)
    scales = np.full(B.shape[1], scale)
    if weigh is not ordered:  # whose constraint compares weights
        scales[::2] = 1.0
    plain, scaled = weigh(*gram([RankOnes(B)], target)), weigh(*gram([RankOnes(B * scales)], 1e-20 * target))
    assert scaled.objective == pytest.approx(plain.objective, rel=1e-10)
    back = scaled.x * scales**2
    np.testing.assert_allclose(back / back.sum(), plain.x, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("weigh", [uniform, align, alignf])
def test_the_order_of_kernels_does_not_matter(weigh):
    B, target = sample(12)
    order = np.random.default_rng(0).permutation(B.shape[1])
    plain, permuted = weigh(*gram([RankOnes(B)], target)), weigh(*gram([RankOnes(B[:, order])], target))
    np.testing.assert_allclose(permuted.x, plain.x[order], atol=1e-11)


@pytest.mark.parametrize("weigh", [align, alignf])
def test_zero_and_constant_kernels_have_no_weight(weigh):
    B, target = sample(13)
    constant, n = np.full((len(B), 1), 1e6 / 3.0), len(B)
    blocks = [RankOnes(np.hstack([B, 0.0 * constant, constant])), Factor(constant), 7.7 * np.ones((n, n))]
    found, plain = weigh(*gram(blocks, target)), weigh(*gram([RankOnes(B)], target))
    np.testing.assert_array_equal(found.x[B.shape[1] :], 0.0)
    np.testing.assert_allclose(found.x[: B.shape[1]], plain.x, rtol=1e-12)


def test_copies_share_the_weight_of_one():
    B, target = sample(14)
    M, a, t = gram([RankOnes(B)], target)
    for copied in ([RankOnes(B), RankOnes(B)], [RankOnes(B), *(np.outer(b, b) for b in B.T)]):
        M2, a2, _ = gram(copied, target)
        for weigh in (align, alignf):
            found, plain = weigh(M2, a2, t), weigh(M, a, t)
            np.testing.assert_allclose(found.x.reshape(2, -1).sum(axis=0), plain.x, atol=1e-9)
            assert found.objective == pytest.approx(plain.objective, abs=1e-12)


def test_kernels_that_nearly_depend_on_each_other_are_solved_to_the_tolerance():
    X = np.random.default_rng(15).normal(size=(40, 3))
    distances = ((X[:, None] - X) ** 2).sum(axis=-1)
    kernels = [np.exp(-g * distances) for g in np.geomspace(1e-5, 1e5, 120)]
    M, a, t = gram(kernels, np.sign(X[:, :1]))
    assert np.linalg.cond(M) > 1e15
    for weigh in (alignf, ordered):
        assert weigh(M, a, t).certificate.relative <= 1e-10


@pytest.mark.parametrize("n, p", [(10, 400), (150, 400)])
def test_many_vectors_are_solved_to_the_tolerance(n, p):
    B, target = sample(16, n, p)
    for weigh in (alignf, ordered):
        found = weigh(*gram([RankOnes(B)], target))
        assert found.status is Status.CONVERGED
        assert found.n_iter < 30


def test_without_any_alignment_weights_are_equal():
    B = np.array([[1.0, 1.0, 0.0], [-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]])
    target = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    for weigh in WEIGHTINGS:
        found = weigh(*gram([RankOnes(B)], target))
        np.testing.assert_allclose(found.x, 1.0 / 3.0)
        assert found.objective == 0.0
        assert not found.aligned


@pytest.mark.parametrize("weigh", [align, alignf])
def test_a_kernel_that_opposes_the_target_has_no_weight(weigh):
    B, target = sample(17)
    goal = target @ target.T
    found = weigh(*gram([-goal, RankOnes(B)], target))
    assert found.x[0] == 0.0
    assert found.aligned
    alone = weigh(*gram([-goal], target))
    assert alone.x.tolist() == [1.0]
    assert alone.objective == pytest.approx(-1.0, rel=1e-12)
    assert not alone.aligned


def test_a_tolerance_out_of_reach_is_said():
    M, a, t = gram([RankOnes(sample(18, n=6, p=30)[0])], sample(18, n=6)[1])
    found = alignf(M, a, t, tol=0.0)
    assert found.status is Status.PRECISION or found.certificate.gap == 0.0
