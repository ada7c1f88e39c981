from itertools import product

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave import RBF, KernelLibrary, Linear, SSMKClassifier
from kernelweave.estimators.shared.formulation import MAX_INNER_TOL, MIN_DEVIATION, TOLERANCES, Formulation, diagonals
from kernelweave.solvers.columns.lp_masters import LPMaster, NuLPMaster
from kernelweave.solvers.columns.qp_masters import NuQPMaster, QPMaster
from kernelweave.solvers.columns.rkhs_master import RKHSMaster
from kernelweave.solvers.margin import classification_rows

N = 20
ROWS = np.arange(12)


@pytest.fixture(scope="module", name="X")
def made_sample():
    X = np.random.default_rng(0).normal(size=(N, 3))
    X.setflags(write=False)
    return X


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(1).uniform(0.5, 2.0, N)


@pytest.fixture(scope="module")
def bound(X):
    return KernelLibrary([RBF(0.5), Linear()]).bind(X, np.random.default_rng(0))


@pytest.fixture(scope="module", name="K")
def all_columns(bound):
    return bound.columns(np.arange(2 * N), ROWS)


MASTERS = {
    ("l1", False): LPMaster,
    ("l1", True): NuLPMaster,
    ("l2", False): QPMaster,
    ("l2", True): NuQPMaster,
    ("rkhs", False): RKHSMaster,
    ("rkhs", True): RKHSMaster,
}


@pytest.mark.parametrize("penalty, chooses_margin", MASTERS)
def test_each_problem_has_its_master(penalty, chooses_margin):
    rows = classification_rows(np.where(np.arange(12) % 2, 1.0, -1.0), np.full(12, 0.2))
    made = Formulation(penalty, chooses_margin=chooses_margin).master(rows, 0.1, np.ones((2, 12)))
    assert type(made) is MASTERS[penalty, chooses_margin]
    assert made.rows is rows


def test_restricted_programs_are_solved_more_accurately_than_the_whole():
    assert all(0.1 * tol <= tol for tol in TOLERANCES.values())
    assert MAX_INNER_TOL < TOLERANCES["rkhs"] < TOLERANCES["l2"]


@pytest.mark.parametrize("penalty, intercept", list(product(["l1", "l2", "rkhs"], ["free", "penalized", None])))
def test_columns_are_centered_where_a_free_offset_absorbs_their_means(penalty, intercept):
    assert Formulation(penalty, intercept=intercept).centered == (intercept == "free" and penalty != "rkhs")


@pytest.mark.parametrize("penalty", ["l1", "l2", "rkhs"])
def test_without_a_scale_the_problem_is_as_printed(penalty, bound, weight):
    np.testing.assert_array_equal(Formulation(penalty).scales(bound, ROWS, weight, None), 1.0)


@pytest.mark.parametrize("penalty, intercept", list(product(["l1", "l2"], ["free", "penalized", None])))
def test_norm_is_the_weighted_rms_of_a_column(penalty, intercept, bound, K, weight):
    found = Formulation(penalty, intercept=intercept).scales(bound, ROWS, weight, "norm")
    np.testing.assert_allclose(found, np.sqrt(np.average(K**2, axis=0, weights=weight[ROWS])))


@pytest.mark.parametrize("intercept", ["free", "penalized", None])
def test_std_is_the_deviation_at_least_a_tenth_of_what_is_usual(intercept, bound, K, weight):
    moved = K - np.average(K, axis=0, weights=weight[ROWS]) if intercept == "free" else K
    sizes = np.sqrt(np.average(moved**2, axis=0, weights=weight[ROWS])).reshape(2, N)
    usual = np.sqrt(np.average(sizes**2, axis=1, weights=weight))[:, None]
    expected = np.maximum(sizes, MIN_DEVIATION * usual).ravel()
    found = Formulation("l1", intercept=intercept).scales(bound, ROWS, weight, "std")
    np.testing.assert_allclose(found, expected)
    for_2_norm = Formulation("l2", intercept=intercept).scales(bound, ROWS, weight, "std")
    share = np.tile(weight, 2)  # a row of weight two counts as two columns
    np.testing.assert_allclose(for_2_norm, expected * np.sqrt(share.sum() / share))


@pytest.mark.parametrize("size", [1e-140, 1e150])
@pytest.mark.filterwarnings("error")
def test_std_is_in_the_unit_of_the_columns_however_large(size, bound, X, weight):
    large = KernelLibrary([RBF(0.5 / size**2), Linear()]).bind(size * X, np.random.default_rng(0))
    found, plain = (Formulation("l1").scales(each, ROWS, weight, "std").reshape(2, N) for each in (large, bound))
    np.testing.assert_allclose(found / [[1.0], [size**2]], plain)


def test_columns_that_say_nothing_are_no_candidates(weight):
    X = np.zeros((N, 3))
    X[15:] = 1.0  # a linear kernel is zero on the labelled rows, whatever the centre
    bound = KernelLibrary([Linear()]).bind(X, np.random.default_rng(0))
    for scale in ("std", "norm"):
        assert np.isinf(Formulation("l1").scales(bound, ROWS, weight, scale)).all()


@pytest.mark.parametrize("column_scale, intercept", list(product(["std", "norm"], ["free", "penalized", None])))
def test_the_rkhs_norm_scales_whole_kernels_by_the_size_of_their_features(column_scale, intercept, X, weight):
    bound = KernelLibrary([RBF(0.5), Linear()]).bind(X[:12], np.random.default_rng(0))
    found = Formulation("rkhs", intercept=intercept).scales(bound, ROWS, weight[:12], column_scale).reshape(2, 12)
    share = weight[:12] / weight[:12].sum()
    for scale, G in zip(found, (rbf_kernel(X[:12], gamma=0.5), linear_kernel(X[:12])), strict=True):
        size = share @ np.diag(G)
        if column_scale == "std" and intercept == "free":
            size -= share @ G @ share  # the trace of the covariance in feature space
        np.testing.assert_allclose(scale, size)


def test_the_size_of_linear_features_is_the_trace_of_their_covariance(X, weight):
    bound = KernelLibrary([Linear()]).bind(X, np.random.default_rng(0))
    found = Formulation("rkhs").scales(bound, np.arange(N), weight, "std")
    covariance = np.cov(X.T, aweights=weight, ddof=0)
    np.testing.assert_allclose(found, np.trace(covariance))


@pytest.mark.parametrize("penalty", ["l1", "l2", "rkhs"])
def test_norms_are_added_up_by_kernel(penalty, bound, X):
    columns = np.array([0, 3, 21, 25, 30])
    coef = np.random.default_rng(2).normal(size=(5, 2))
    scale = np.repeat([2.0, 3.0], [2, 3])
    found = Formulation(penalty).penalties(bound, columns, coef, scale)
    for p, here, G in [(0, slice(0, 2), rbf_kernel(X, gamma=0.5)), (1, slice(2, 5), linear_kernel(X))]:
        a = coef[here]
        center = columns[here] % N
        gram = G[np.ix_(center, center)] / scale[here][0]
        expected = {
            "l1": np.abs(a).sum(axis=0),
            "l2": 0.5 * (a**2).sum(axis=0),
            "rkhs": 0.5 * np.diag(a.T @ gram @ a),
        }[penalty]
        np.testing.assert_allclose(found[p], expected)


def test_the_value_of_the_problem_is_norm_offset_and_loss():
    rows = classification_rows(np.array([1.0, -1.0]), np.array([2.0, 3.0]))
    f = np.array([0.5, 0.5])  # margins 0.5 and -0.5: losses 0.5 * 2 and 1.5 * 3
    assert Formulation("l1").objective(7.0, 4.0, rows, f) == (7.0 + 5.5, 0.0)
    assert Formulation("l1", intercept="penalized").objective(7.0, -4.0, rows, f) == (11.0 + 5.5, 0.0)
    assert Formulation("l2", intercept="penalized").objective(7.0, -4.0, rows, f) == (15.0 + 5.5, 0.0)


def test_a_chosen_margin_is_the_best_one():
    rows = classification_rows(np.ones(4), np.full(4, 0.5))  # nu = 1/2: the margin is the second smallest
    f = np.array([3.0, 1.0, 2.0, 4.0])
    value, rho = Formulation("l2", chooses_margin=True).objective(7.0, 0.0, rows, f)
    assert rho == 2.0
    assert value == pytest.approx(7.0 - 2.0 + 0.5)
    value, _ = Formulation("l1", chooses_margin=True).objective(1.0, 0.0, rows, f)
    assert value == pytest.approx(-2.0 + 0.5)  # the norm is a constraint there


def test_diagonals_are_those_of_the_kernels_at_the_rows(bound, X):
    np.testing.assert_allclose(diagonals(bound, ROWS), [np.ones(12), (X[:12] ** 2).sum(axis=1)])


@pytest.mark.parametrize("seed", range(6))
def test_labelled_rows_that_are_all_equal_leave_a_constant(seed):
    X = np.r_[np.full((20, 2), 0.3), np.random.default_rng(seed).normal(size=(40, 2))]
    model = SSMKClassifier(C=10.0).fit(X, np.r_[[0] * 12, [1] * 8, [np.nan] * 40])
    assert model.objective_ == pytest.approx(2 * 8 * model.C)
    assert np.ptp(model.decision_function(X)) == 0.0
