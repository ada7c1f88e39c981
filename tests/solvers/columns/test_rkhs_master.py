import numpy as np
import pytest
from oracles.reference import full_rkhs
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel
from sklearn.svm import SVC

from kernelweave.solvers.columns.loop import generate_columns
from kernelweave.solvers.columns.qp_masters import NuQPMaster, QPMaster
from kernelweave.solvers.columns.rkhs_master import NotPSDError, RKHSMaster
from kernelweave.solvers.margin import classification_rows, one_class_rows, regression_rows

N = 24
INTERCEPTS = ["free", "penalized", None]


def sample(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    signs = np.where(X[:, 0] + 0.5 * rng.normal(size=N) > 0, 1.0, -1.0)
    return rng, X, signs


def grams_of(X):
    return [rbf_kernel(X, gamma=0.5), linear_kernel(X)]


def master_for(grams, rows, intercept="free", tol=1e-9, make=QPMaster):
    return RKHSMaster(make(rows, intercept=intercept, tol=tol), np.array([np.diag(G) for G in grams]))


def solved(master, grams, columns):
    master.add_columns(columns, np.hstack(grams)[:, columns])
    return master.solve()


def scanned(master, grams, solution):
    K = np.hstack(grams)
    master.start_scan()
    violations = np.concatenate(
        [master.examine(part, K[:, part].T @ solution.signed_dual) for part in np.array_split(np.arange(K.shape[1]), 5)]
    )
    return master.bound(), violations


def norm(grams, columns, coef):
    full = np.zeros(len(grams) * N)
    full[columns] = coef
    return 0.5 * sum(a @ G @ a for a, G in zip(full.reshape(len(grams), N), grams, strict=True))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_with_all_columns_the_optimum_is_that_of_the_full_problem(kind, intercept):
    pytest.importorskip("cvxpy")
    rng, X, signs = sample(0)
    cost = rng.uniform(0.5, 2.0, N)
    rows = classification_rows(signs, cost) if kind == "classification" else regression_rows(X[:, 0], 0.1, cost)
    grams = grams_of(X)
    found = solved(master_for(grams, rows, intercept), grams, np.arange(2 * N))
    assert found.objective == pytest.approx(full_rkhs(grams, grams, rows, intercept=intercept).objective, rel=1e-7)


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_on_a_working_set_the_optimum_is_that_of_the_problem_on_its_columns(intercept):
    pytest.importorskip("cvxpy")
    rng, X, signs = sample(1)
    rows = classification_rows(signs, rng.uniform(0.5, 2.0, N))
    grams = grams_of(X)
    working = np.array([3, 30, 9, 0, 47, 25])
    found = solved(master_for(grams, rows, intercept), grams, working)
    parts = [working[working < N], working[working >= N] - N]
    small = [G[np.ix_(part, part)] for G, part in zip(grams, parts, strict=True)]
    seen = [G[:, part] for G, part in zip(grams, parts, strict=True)]
    assert found.objective == pytest.approx(full_rkhs(small, seen, rows, intercept=intercept).objective, rel=1e-7)


def test_value_and_objective_are_those_of_the_kernels_coefficients():
    rng, X, signs = sample(2)
    rows = classification_rows(signs, rng.uniform(0.5, 2.0, N))
    grams = grams_of(X)
    working = np.array([0, 5, 7, 25, 26, 40])
    found = solved(master_for(grams, rows), grams, working)
    f = np.hstack(grams)[:, working] @ found.coef + found.intercept
    np.testing.assert_allclose(found.values, f, atol=1e-10)
    assert found.objective == pytest.approx(norm(grams, working, found.coef) + rows.loss(f), rel=1e-10)


def test_columns_that_others_span_get_no_coefficient():
    _, X, signs = sample(3)
    grams = [linear_kernel(X)]  # of rank three
    rows = classification_rows(signs, np.ones(N))
    found = solved(master_for(grams, rows), grams, np.arange(10))
    assert np.count_nonzero(found.coef) == 3
    assert found.objective == pytest.approx(solved(master_for(grams, rows), grams, np.arange(N)).objective, rel=1e-8)


def test_duplicated_points_do_no_harm():
    _, X, signs = sample(4)
    X[12:] = X[:12]
    grams = [rbf_kernel(X)]
    rows = classification_rows(signs, np.ones(N))
    found = solved(master_for(grams, rows), grams, np.arange(N))
    half = solved(master_for(grams, rows), grams, np.arange(12))
    assert found.objective == pytest.approx(half.objective, rel=1e-8)


@pytest.mark.parametrize("n_working", [0, 1, 6, 40])
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_the_bound_lies_below_the_optimum_over_all_columns(n_working, intercept):
    pytest.importorskip("cvxpy")
    _, X, signs = sample(5)
    grams = grams_of(X)
    rows = classification_rows(signs, np.ones(N))
    master = master_for(grams, rows, intercept, tol=1e-6)
    found = solved(master, grams, np.arange(n_working))
    optimum = full_rkhs(grams, grams, rows, intercept=intercept).objective
    bound, _ = scanned(master, grams, found)
    assert bound <= optimum * (1 + 1e-8)
    assert optimum <= found.objective * (1 + 1e-8)


def test_with_all_columns_the_gap_closes():
    _, X, signs = sample(6)
    grams = grams_of(X)
    rows = classification_rows(signs, np.ones(N))
    master = master_for(grams, rows)
    found = solved(master, grams, np.arange(2 * N))
    bound, violations = scanned(master, grams, found)
    assert bound == pytest.approx(found.objective, rel=1e-7)
    # What is left are remainders of columns that are spanned up to rounding: the root of 1e-9 times their size.
    assert violations.max() < 1e-3


def test_a_violation_is_the_score_of_the_column_that_the_factor_would_gain():
    _, X, signs = sample(7)
    G = rbf_kernel(X, gamma=0.5)
    rows = classification_rows(signs, np.ones(N))
    working = np.array([2, 11, 17])
    master = master_for([G], rows)
    found = solved(master, [G], working)
    _, violations = scanned(master, [G], found)
    for i in (0, 5, 20):
        grown = np.linalg.cholesky(G[np.ix_([*working, i], [*working, i])])
        z = np.linalg.solve(grown, G[[*working, i]])[-1]  # the last column of the factor, at all points
        assert violations[i] == pytest.approx(abs(z @ found.signed_dual), rel=1e-6)
    np.testing.assert_array_equal(violations[working], 0.0)


def test_the_svm_of_the_summed_kernel_is_reached_by_columns():
    _, X, signs = sample(8)
    grams = grams_of(X)
    rows = classification_rows(signs, np.full(N, 2.0))
    K = np.hstack(grams)
    (result,) = generate_columns(
        [master_for(grams, rows)], lambda V, stratum: [(slice(0, 2 * N), K.T @ V)], lambda J: K[:, J], tol=1e-8
    )
    svm = SVC(C=2.0, kernel="precomputed", tol=1e-10).fit(sum(grams), signs)
    f = K[:, result.columns] @ result.x + result.intercept
    np.testing.assert_allclose(f, svm.decision_function(sum(grams)), atol=1e-4)
    assert result.status.converged


def test_a_chosen_margin_is_served_as_well():
    _, X, _ = sample(9)
    G = rbf_kernel(X, gamma=0.5)
    rows = one_class_rows(N, np.full(N, 1 / (0.3 * N)))
    master = master_for([G], rows, None, make=NuQPMaster)
    found = solved(master, [G], np.arange(N))
    bound, _ = scanned(master, [G], found)
    assert bound == pytest.approx(found.objective, rel=1e-6)
    u = found.signed_dual
    assert found.objective == pytest.approx(-0.5 * u @ G @ u, rel=1e-6)


def test_new_costs_keep_the_factors():
    rng, X, signs = sample(10)
    grams = grams_of(X)
    cost = rng.uniform(1.0, 3.0, N)
    warm = master_for(grams, classification_rows(signs, np.ones(N)))
    solved(warm, grams, np.arange(2 * N))
    warm.set_cost(cost)
    cold = solved(master_for(grams, classification_rows(signs, cost)), grams, np.arange(2 * N))
    assert warm.solve().objective == pytest.approx(cold.objective, rel=1e-7)
    np.testing.assert_array_equal(warm.rows.cost, cost)


NOT_PSD = {
    "indefinite": lambda X: sigmoid_kernel(X, gamma=1.0, coef0=-1.0),
    "negative definite": lambda X: -rbf_kernel(X),
    "far from symmetric": lambda X: np.triu(rbf_kernel(X, gamma=0.05)) * 2 - np.diag(np.ones(N)),
    "less a constant": lambda X: rbf_kernel(X) - 0.5,
}


@pytest.mark.parametrize("kind", NOT_PSD)
def test_a_kernel_that_is_not_positive_semi_definite_is_named_by_number(kind):
    _, X, signs = sample(11)
    grams = [rbf_kernel(X), NOT_PSD[kind](X)]
    K = np.hstack(grams)
    rows = classification_rows(signs, np.ones(N))
    with pytest.raises(NotPSDError, match="Kernel 1 is not symmetric and positive semi-definite") as caught:
        generate_columns(
            [master_for(grams, rows, None)],
            lambda V, stratum: [(slice(0, 2 * N), K.T @ V)],
            lambda J: K[:, J],
            tol=1e-8,
        )
    assert caught.value.kernel == 1


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rounding_of_a_positive_semi_definite_kernel_is_no_reason_to_refuse(scale):
    rng = np.random.default_rng(12)
    X = np.repeat(rng.normal(size=(8, 2)), 3, axis=0)  # singular
    for gram in (rbf_kernel(X, gamma=1e-3), polynomial_kernel(X, degree=3), linear_kernel(X)):
        rows = classification_rows(np.where(X[:, 0] > 0, 1.0, -1.0), np.ones(N) / scale)
        found = solved(master_for([scale * gram], rows, tol=1e-6), [scale * gram], np.arange(N))
        assert np.isfinite(found.objective)


@pytest.mark.parametrize("seed", range(20))
def test_the_rounding_of_columns_that_are_nearly_alike_is_no_reason_to_refuse(seed):
    # Powers of numbers near zero: what they predict for numbers far away are large sums of terms that cancel.
    t = np.random.default_rng(seed).uniform(-1.0, 1.0, N)
    t[:12] *= 0.05
    gram = linear_kernel(t[:, None] ** np.arange(4))
    gram *= 1e3 / np.linalg.norm(gram, 2)
    assert np.linalg.eigvalsh(gram)[0] > -1e-12
    rows = classification_rows(np.where(t > 0.5, 1.0, -1.0), np.ones(N))
    master = master_for([gram], rows, tol=1e-6)
    master.add_columns(np.arange(N), gram)
    found = master.solve()
    assert np.isfinite(found.objective)


@pytest.mark.parametrize("share", [1e-3, 1e-5])
def test_an_eigenvalue_that_is_negative_beside_the_largest_is_found_among_columns_that_are_nearly_alike(share):
    t = np.linspace(-1.0, 1.0, N)
    gram = linear_kernel(t[:, None] ** np.arange(4))
    v = np.linalg.eigh(gram)[1][:, 0]
    gram -= share * np.linalg.norm(gram, 2) * np.outer(v, v)
    rows = classification_rows(np.where(t > 0.5, 1.0, -1.0), np.ones(N))
    with pytest.raises(NotPSDError):
        master_for([gram], rows).add_columns(np.arange(N), gram)
