"""Every problem of the family against slow oracles, theorems and other packages."""

import warnings
from itertools import product

import numpy as np
import pytest
from oracles import reference
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.svm import SVC, SVR, NuSVC

from kernelweave import (
    RBF,
    CGBoostClassifier,
    CGBoostOneClass,
    CGBoostRegressor,
    FromCallable,
    KernelLibrary,
    Linear,
    Polynomial,
    Sigmoid,
    SSMKClassifier,
    rbf_family,
)
from kernelweave.solvers.margin import classification_rows, one_class_rows, regression_rows
from kernelweave.solvers.result import Status

N = 30
EPSILON, NU, NU_ONE_CLASS = 0.05, 0.4, 0.2
MIXED = [RBF(0.5), Linear(), Sigmoid(0.3, 0.1)]  # the last one is indefinite
DEFINITE = [RBF(0.5), Linear()]
TASKS = ["costs", "margin", "regression", "one class"]
FORMS = [
    {"positive": positive, "intercept": intercept}
    for positive, intercept in product([False, True], ["free", "penalized", None])
]
# With an offset the one-class problem has no solution.
CASES = [(task, form) for task, form in product(TASKS, FORMS) if task != "one class" or form["intercept"] is None]
every_case = pytest.mark.parametrize(
    "task, form", CASES, ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values()))
)


def sample(seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] + 0.2 * rng.normal(size=n) > 0).astype(int)
    return X, y, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def columns_of(kernels, X, weight):
    bound = KernelLibrary(kernels).bind(X, np.random.default_rng(0), weight)
    return bound.columns(np.arange(bound.n_columns))


def fitted(task, seed, kernels=MIXED, C=1.0, **options):
    """The model of a task, the rows of its problem, and all columns."""
    X, y, numbers, weight = sample(seed)
    options = {"column_scale": None} | options
    K = columns_of(kernels, X, weight)
    signs = 2.0 * y - 1
    if task == "costs":
        model = CGBoostClassifier(kernels, C=C, **options).fit(X, y, sample_weight=weight)
        return model, classification_rows(signs, C * weight), K
    if task == "margin":
        model = CGBoostClassifier(kernels, nu=NU, **options).fit(X, y, sample_weight=weight)
        return model, classification_rows(signs, weight / (NU * weight.sum())), K
    if task == "regression":
        model = CGBoostRegressor(kernels, C=C, epsilon=EPSILON, **options).fit(X, numbers, sample_weight=weight)
        return model, regression_rows(numbers, EPSILON, C * weight), K
    model = CGBoostOneClass(kernels, nu=NU_ONE_CLASS, **options).fit(X, sample_weight=weight)
    return model, one_class_rows(N, weight / (NU_ONE_CLASS * weight.sum())), K


def optimum(task, penalty, K, rows, form):
    chosen = task in ("margin", "one class")
    if penalty == "l1":
        return (reference.full_nu_lp if chosen else reference.full_lp)(K, rows, **form).objective
    pytest.importorskip("cvxpy")
    return (reference.full_nu_qp if chosen else reference.full_qp)(K, rows, **form).objective


# The full problem


@every_case
@pytest.mark.parametrize("pricing", ["stratified", "full"])
def test_the_1_norm_reaches_the_optimum_of_the_full_problem(task, form, pricing):
    for seed in range(2):
        model, rows, K = fitted(task, seed, penalty="l1", pricing=pricing, **form)
        best = optimum(task, "l1", K, rows, form)
        assert model.status_ is Status.CONVERGED
        assert model.objective_ == pytest.approx(best, rel=1e-6)
        assert model.objective_ - model.certificate_.gap <= best + 1e-9 * abs(best)


@every_case
def test_the_2_norm_is_within_its_certified_gap_of_the_optimum(task, form):
    model, rows, K = fitted(task, 5, penalty="l2", tol=0.1, **form)
    best = optimum(task, "l2", K, rows, form)
    assert model.certificate_.relative <= 0.1
    rounding = 1e-8 * abs(best)  # of the conic solver
    assert -rounding <= model.objective_ - best <= model.certificate_.gap + rounding


@every_case
def test_the_2_norm_with_a_tight_tolerance_reaches_the_optimum(task, form):
    model, rows, K = fitted(task, 3, penalty="l2", tol=1e-6, **form)
    assert model.objective_ == pytest.approx(optimum(task, "l2", K, rows, form), rel=1e-5)


@pytest.mark.parametrize("intercept", ["free", "penalized", None])
@pytest.mark.parametrize("task", ["costs", "regression"])
def test_the_rkhs_norm_reaches_the_optimum_of_the_full_problem(task, intercept):
    pytest.importorskip("cvxpy")
    model, rows, K = fitted(task, 4, DEFINITE, penalty="rkhs", tol=1e-6, intercept=intercept)
    grams = np.hsplit(K, 2)
    best = reference.full_rkhs(grams, grams, rows, intercept=intercept).objective
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.objective_ - model.certificate_.gap <= best * (1 + 1e-8)


@every_case
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_coefficients_and_offset_are_what_was_asked_for(task, form, penalty):
    model, _, _ = fitted(task, 4, penalty=penalty, **form)
    assert not form["positive"] or all((group.coef >= 0).all() for group in model.expansion_.groups)
    assert form["intercept"] is not None or model.intercept_[0] == 0.0


@every_case
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_objective_is_recomputed_from_coefficients_and_predictions(task, form, penalty):
    model, rows, _ = fitted(task, 4, penalty=penalty, **form)
    coef = np.concatenate([group.coef[:, 0] for group in model.expansion_.groups])
    f = model.expansion_(sample(4)[0])[:, 0]
    b = model.intercept_[0] if form["intercept"] == "penalized" else 0.0
    norm = np.abs(coef).sum() + abs(b) if penalty == "l1" else 0.5 * (coef @ coef + b**2)
    if task in ("costs", "regression"):
        value = norm + rows.loss(f)
    else:
        rhos = rows.margins(f)  # the best margin is one of these
        value = min(-rho + rows.cost @ np.maximum(0.0, rho - rhos) for rho in rhos) + norm * (penalty == "l2")
        assert penalty == "l2" or norm <= 1 + 1e-12
    assert model.objective_ == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_class_weights_are_factors_on_the_costs(penalty):
    X, y, _, weight = sample(7)
    model = CGBoostClassifier(MIXED, C=10.0, penalty=penalty, tol=1e-6, column_scale=None, class_weight={0: 3.0})
    same = CGBoostClassifier(MIXED, C=10.0, penalty=penalty, tol=1e-6, column_scale=None)
    heavy = same.fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0) * weight).objective_
    assert model.fit(X, y, sample_weight=weight).objective_ == pytest.approx(heavy, rel=3e-6)


# Certificates


@every_case
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("stop, status", [({"max_columns": 1}, "MAX_COLUMNS"), ({"max_time": 1e-9}, "MAX_TIME")])
def test_a_fit_that_stops_early_warns_and_has_an_honest_certificate(task, form, penalty, stop, status):
    with pytest.warns(
        ConvergenceWarning, match=r"Stopped at max_.* (relative gap: \S+|No useful bound .*), tolerance: 1.00e-07"
    ):
        model, rows, K = fitted(task, 5, penalty=penalty, tol=1e-7, **stop, **form)
    best = optimum(task, penalty, K, rows, form)
    assert model.status_ is Status[status]
    assert model.n_columns_ <= 1
    assert model.objective_ - model.certificate_.gap <= best + 1e-8 * abs(best)
    assert model.history_[-1]["full_scan"]


@pytest.mark.parametrize("C", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("task", ["costs", "regression"])
def test_tiny_and_huge_costs_are_certified_honestly(task, penalty, C):
    form = {"positive": False, "intercept": "free"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, rows, K = fitted(task, 9, C=C, penalty=penalty, **form)
    if penalty == "l1":  # Clarabel itself gives up at such costs
        best = optimum(task, penalty, K, rows, form)
        assert model.objective_ - model.certificate_.gap <= best * (1 + 1e-6)
        assert model.objective_ >= best * (1 - 1e-6)
    assert model.certificate_.relative <= (1e-3 if penalty == "l1" else 0.1)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("intercept", ["free", None])
@pytest.mark.parametrize("penalty, power", [("l1", 1), ("l2", 2)])
def test_kernels_of_any_magnitude_give_the_same_problem_at_another_scale(factor, intercept, penalty, power):
    # With columns f K: f^power times costs that are divided by it, and f^power times a chosen margin's value.
    X, y, _, _ = sample(5)
    scaled = [factor * kernel for kernel in MIXED]
    options = {"penalty": penalty, "intercept": intercept, "column_scale": None, "tol": 1e-6}
    one, other = (CGBoostClassifier(k, C=C, **options).fit(X, y) for k, C in [(MIXED, 1.0), (scaled, factor**-power)])
    assert other.objective_ * factor**power == pytest.approx(one.objective_, rel=1e-5)
    one, other = (CGBoostClassifier(kernels, nu=NU, **options).fit(X, y) for kernels in (MIXED, scaled))
    assert other.objective_ / factor**power == pytest.approx(one.objective_, rel=1e-5)
    if intercept is None:
        one, other = (CGBoostOneClass(kernels, **options).fit(X) for kernels in (MIXED, scaled))
        assert other.objective_ / factor**power == pytest.approx(one.objective_, rel=1e-5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_no_margin_can_be_had_the_empty_model_is_optimal():
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(20, 2)))
    y = np.where(np.arange(20) < 10, 0, 1)
    # Positive sums of a positive kernel are positive: class 0 is always wrong, and half of the rows are too many.
    model = CGBoostClassifier([Linear()], nu=0.4, positive=True, intercept=None, column_scale=None).fit(X, y)
    assert model.objective_ == 0.0
    assert model.certificate_.gap < 1e-12
    assert model.status_ is Status.CONVERGED


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("penalty", ["l1", "l2", "rkhs"])
def test_the_default_scale_makes_the_magnitude_of_kernels_irrelevant(factor, penalty):
    X, y, _, _ = sample(11)
    tol = 1e-8
    plain, scaled = (
        CGBoostClassifier(kernels, penalty=penalty, tol=tol).fit(X, y)
        for kernels in (DEFINITE, [factor * kernel for kernel in DEFINITE])
    )
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    np.testing.assert_allclose(scaled.decision_function(X), plain.decision_function(X), atol=1e-3)


def test_the_certificate_names_its_columns():
    X, y, _, _ = sample(12)
    assert CGBoostClassifier(MIXED).fit(X, y).certificate_.scope == "3 kernels x 30 centres"
    one = CGBoostClassifier(RBF(), centers=10, random_state=0).fit(X, y)
    assert one.certificate_.scope == "1 kernel x 10 centres of 30 rows"
    assert "over 1 kernel x 10 centres of 30 rows" in str(one.certificate_)
    assert one.certificate_.kind == "duality gap"


# Equivalences


def test_stratified_and_full_pricing_reach_the_same_optimum():
    X, y, numbers, weight = sample(13)
    for model, target in [(CGBoostClassifier(), y), (CGBoostRegressor(), numbers), (CGBoostOneClass(), None)]:
        values = [
            model.set_params(pricing=p, random_state=0).fit(X, target, weight).objective_
            for p in ("stratified", "full")
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_the_2_norm_is_an_svm_with_the_squared_kernels():
    X, y, numbers, _ = sample(14)
    Q = sum(K @ K.T for K in np.hsplit(columns_of(MIXED, X, None), 3))
    options = {"penalty": "l2", "column_scale": None, "tol": 1e-9, "C": 0.5}
    ours = CGBoostClassifier(MIXED, **options).fit(X, y).decision_function(X)
    svc = SVC(kernel="precomputed", C=0.5, tol=1e-9).fit(Q, y).decision_function(Q)
    np.testing.assert_allclose(ours, svc, atol=1e-3)  # the root of the gap
    ours = CGBoostRegressor(MIXED, epsilon=0.1, **options).fit(X, numbers).predict(X)
    svr = SVR(kernel="precomputed", C=0.5, epsilon=0.1, tol=1e-9).fit(Q, numbers).predict(Q)
    np.testing.assert_allclose(ours, svr, atol=1e-3)


def test_the_rkhs_norm_is_an_svm_with_the_summed_kernel():
    X, y, numbers, weight = sample(15)
    K = rbf_kernel(X, gamma=0.5) + linear_kernel(X)
    options = {"penalty": "rkhs", "column_scale": None, "tol": 1e-8, "C": 2.0}
    ours = CGBoostClassifier(DEFINITE, **options).fit(X, y, weight).decision_function(X)
    svc = SVC(kernel="precomputed", C=2.0, tol=1e-9).fit(K, y, sample_weight=weight).decision_function(K)
    np.testing.assert_allclose(ours, svc, atol=1e-3)
    ours = CGBoostRegressor(DEFINITE, epsilon=0.1, **options).fit(X, numbers, weight).predict(X)
    svr = SVR(kernel="precomputed", C=2.0, epsilon=0.1, tol=1e-9).fit(K, numbers, sample_weight=weight).predict(K)
    np.testing.assert_allclose(ours, svr, atol=1e-3)


def test_the_rkhs_norm_with_a_chosen_margin_is_a_nu_svm_up_to_scale():
    X, y, _, _ = sample(16)
    K = rbf_kernel(X, gamma=0.5) + linear_kernel(X)
    ours = CGBoostClassifier(DEFINITE, penalty="rkhs", nu=0.3, column_scale=None, tol=1e-8).fit(X, y)
    nu_svc = NuSVC(nu=0.3, kernel="precomputed", tol=1e-9).fit(K, y).decision_function(K)
    f = ours.decision_function(X)
    np.testing.assert_allclose(f * (nu_svc @ nu_svc) / (f @ nu_svc), nu_svc, atol=1e-3)


@pytest.mark.parametrize("column_scale", ["std", "norm", None])
def test_without_unlabeled_rows_ssmk_is_the_1_norm(column_scale):
    X, y, _, weight = sample(17)
    ssmk = SSMKClassifier(C=10.0, column_scale=column_scale, random_state=0).fit(X, y, sample_weight=weight)
    boost = CGBoostClassifier(C=10.0, column_scale=column_scale, pricing="full", random_state=0)
    boost.fit(X, y, sample_weight=weight)
    assert boost.objective_ == pytest.approx(ssmk.objective_, rel=1e-9)
    np.testing.assert_allclose(boost.decision_function(X), ssmk.decision_function(X), atol=1e-9)


def test_ssmk_with_labeled_centers_is_cg_boost_on_the_labeled_rows():
    X, y, _, _ = sample(18)
    partly = np.where(np.arange(N) < 20, y, np.nan)
    kernels = [RBF(0.5), Linear(), Polynomial()]  # bandwidths that do not look at unlabelled rows
    imk = SSMKClassifier(kernels, centers="labeled").fit(X, partly)
    boost = CGBoostClassifier(kernels).fit(X[:20], y[:20])
    assert imk.objective_ == pytest.approx(boost.objective_, rel=1e-6)
    np.testing.assert_allclose(imk.decision_function(X), boost.decision_function(X), atol=1e-5)
    assert imk.candidates_.tolist() == list(range(20))


def both(A, B):
    return linear_kernel(A, B) + polynomial_kernel(A, B, degree=2, gamma=1.0, coef0=1.0)


@pytest.mark.parametrize("penalty", ["l1", "l2", "rkhs"])
def test_a_composite_kernel_is_one_kernel(penalty):
    X, y, _, _ = sample(19)
    composite = CGBoostClassifier([Linear() + Polynomial(2)], penalty=penalty, tol=1e-6).fit(X, y)
    by_hand = CGBoostClassifier([FromCallable(both)], penalty=penalty, tol=1e-6).fit(X, y)
    assert len(composite.kernel_usage_) == 1
    assert composite.certificate_.scope.startswith("1 kernel x")
    assert composite.objective_ == pytest.approx(by_hand.objective_, rel=1e-5)


# The nu-property


@pytest.mark.parametrize("nu", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("penalty, tol", [("l1", 1e-8), ("l2", 1e-6), ("rkhs", 1e-8)])
@pytest.mark.parametrize("intercept", ["free", None])
def test_nu_is_the_share_of_margin_errors(nu, penalty, tol, intercept):
    X, y, _, _ = sample(20, n=60)
    kernels = DEFINITE if penalty == "rkhs" else MIXED
    model = CGBoostClassifier(kernels, nu=nu, penalty=penalty, tol=tol, intercept=intercept).fit(X, y)
    margins = (2 * y - 1) * model.decision_function(X)
    rho = np.sort(margins)[int(np.ceil(nu * 60 - 1e-9)) - 1]  # the best margin: (nu n)-th smallest
    slack = 1e-9 * np.abs(margins).max()
    assert np.sum(margins < rho - slack) <= nu * 60 + 1e-9
    assert np.sum(margins <= rho + slack) >= nu * 60 - 1e-9
    assert rho > 0
    u = np.abs(model.dual_coef_[:, 0])
    assert u.sum() == pytest.approx(1.0)
    assert u.max() <= 1 / (nu * 60) * (1 + 1e-9)
    assert np.all(u[margins > rho + 1e-2 * rho] < 1e-3 / (nu * 60))  # complementarity, up to the root of the gap


def test_a_nu_form_is_scaled_by_the_weights():
    X, y, _, _ = sample(21)
    twice = np.r_[np.arange(N), np.arange(10)]
    weight = np.bincount(twice).astype(float)
    repeated = CGBoostClassifier(MIXED, nu=0.5, column_scale=None).fit(X[twice], y[twice])
    weighted = CGBoostClassifier(MIXED, nu=0.5, column_scale=None).fit(X, y, sample_weight=weight)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)


@pytest.mark.parametrize("magnitude", [1e-8, 1e8, 1e12])
def test_targets_of_any_magnitude_are_learned_as_well(magnitude):
    X = np.linspace(0, 6, 40)[:, None]
    usual = CGBoostRegressor(epsilon=0.01, random_state=0).fit(X, np.sin(X[:, 0]) + 5.0)
    scaled = CGBoostRegressor(epsilon=0.01 * magnitude, random_state=0).fit(X, magnitude * (np.sin(X[:, 0]) + 5.0))
    assert scaled.status_.converged
    np.testing.assert_allclose(scaled.predict(X) / magnitude, usual.predict(X), atol=1e-6)


def test_a_limit_on_columns_is_filled_with_columns_that_are_used():
    X, y = make_moons(120, noise=0.25, random_state=0)
    kernels = [Linear(), Polynomial(), *rbf_family()]
    best = CGBoostClassifier(kernels, C=10.0).fit(X, y).objective_
    with pytest.warns(ConvergenceWarning):
        few = CGBoostClassifier(kernels, C=10.0, max_columns=10).fit(X, y)
    assert few.n_columns_ == 10
    assert few.objective_ < 1.2 * best  # the ten worst columns of the first scan alone reach 2.6 times the optimum
