import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

from kernelweave import RBF, CGBoostOneClass, FromCallable, KernelLibrary, Linear, Preprocessed, Sigmoid, rbf_family
from kernelweave.kernels.scaling import ColumnScaler
from kernelweave.solvers.result import Status


@pytest.fixture(scope="module", name="X")
def made_sample():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X.setflags(write=False)
    return X


FORMS = [
    {"penalty": "l1"},
    {"penalty": "l1", "positive": False},
    {"penalty": "l2"},
    {"penalty": "l2", "positive": False},
    {"penalty": "rkhs", "positive": False},
]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form.values())))


@every_form
@pytest.mark.parametrize("nu", [0.05, 0.2, 0.5])
def test_at_most_nu_of_the_rows_lie_outside_and_at_least_nu_outside_or_on_the_border(form, nu, X):
    model = CGBoostOneClass([RBF(0.5)], nu=nu, tol=1e-6, **form).fit(X)
    f = model.decision_function(X)
    rounding = 2e-9 * np.abs(model.score_samples(X)).max()  # the border is drawn 1e-9 of that outside
    assert np.mean(model.predict(X) == -1) <= nu + 1e-9
    assert np.sum(f <= rounding) >= nu * 60 - 1e-9


@pytest.mark.parametrize("nu", [0.1, 0.4])
def test_the_rkhs_norm_is_the_one_class_svm_up_to_scale(nu, X):
    ours = CGBoostOneClass([RBF(0.5)], nu=nu, penalty="rkhs", positive=False, tol=1e-8).fit(X)
    svm = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-10).fit(rbf_kernel(X, gamma=0.5))
    new = np.random.default_rng(1).normal(scale=2.0, size=(40, 2))
    # Its multipliers sum to nu n, ours to one.
    expected = svm.decision_function(rbf_kernel(new, X, gamma=0.5)) / (nu * 60)
    np.testing.assert_allclose(ours.decision_function(new), expected, atol=2e-5)  # the root of the gap


def test_several_kernels_are_the_one_class_svm_of_their_sum(X):
    ours = CGBoostOneClass([RBF(0.5), RBF(2.0)], nu=0.2, penalty="rkhs", positive=False, tol=1e-8).fit(X)
    K = rbf_kernel(X, gamma=0.5) + rbf_kernel(X, gamma=2.0)
    svm = OneClassSVM(kernel="precomputed", nu=0.2, tol=1e-10).fit(K)
    np.testing.assert_allclose(ours.decision_function(X), svm.decision_function(K) / 12, atol=5e-5)


def test_the_1_norm_mixes_densities_with_weights_that_sum_to_one(X):
    model = CGBoostOneClass(nu=0.1).fit(X)
    coef = np.concatenate([group.coef[:, 0] for group in model.expansion_.groups])
    assert np.all(coef >= 0)
    assert coef.sum() == pytest.approx(1.0)
    assert model.intercept_[0] == 0.0
    assert model.library_ == KernelLibrary([Preprocessed(ColumnScaler(), kernel) for kernel in rbf_family()])


def test_the_decision_is_the_score_minus_the_offset(X):
    model = CGBoostOneClass(nu=0.2).fit(X)
    np.testing.assert_array_equal(model.decision_function(X), model.score_samples(X) - model.offset_)
    np.testing.assert_array_equal(model.predict(X), np.where(model.decision_function(X) >= 0, 1, -1))
    assert model.predict([[30.0, 30.0]]).tolist() == [-1]
    np.testing.assert_array_equal(CGBoostOneClass(nu=0.2).fit_predict(X), model.predict(X))


def test_the_duals_sum_to_one_within_their_box(X):
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 60)
    for form in FORMS:
        u = CGBoostOneClass([RBF(0.5)], nu=0.2, **form).fit(X, sample_weight=weight).dual_coef_[:, 0]
        assert u.sum() == pytest.approx(1.0, rel=1e-9)
        assert np.all((u >= 0) & (u <= weight / (0.2 * weight.sum()) * (1 + 1e-9)))


@every_form
def test_a_weight_of_two_is_a_row_twice(form, X):
    twice = np.r_[np.arange(60), np.arange(20)]
    weighted = CGBoostOneClass([RBF(0.5)], tol=1e-6, **form).fit(X, sample_weight=np.bincount(twice))
    repeated = CGBoostOneClass([RBF(0.5)], tol=1e-6, **form).fit(X[twice])
    if form["penalty"] == "l2":  # a centre twice is two columns: another problem
        assert repeated.objective_ < weighted.objective_
    else:
        assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)


def test_y_is_ignored(X):
    plain = CGBoostOneClass([RBF(0.5)]).fit(X).decision_function(X)
    for y in (np.full(60, np.nan), np.full(60, "a"), np.arange(60)):
        np.testing.assert_array_equal(CGBoostOneClass([RBF(0.5)]).fit(X, y).decision_function(X), plain)


def test_stratified_and_full_pricing_agree(X):
    models = [CGBoostOneClass(pricing=pricing, nu=0.2).fit(X) for pricing in ("stratified", "full")]
    assert models[0].objective_ == pytest.approx(models[1].objective_, rel=1e-6)
    assert all(model.status_ is Status.CONVERGED for model in models)


def lopsided(A, B):
    return rbf_kernel(A, B) * (1 + A[:, :1])


BAD = {
    "free offset": ({"intercept": "free"}, "intercept='free'; the margin rho is its only offset"),
    "penalized offset": ({"intercept": "penalized"}, "the margin rho is its only offset"),
    "rkhs with positive": ({"penalty": "rkhs"}, 'penalty="rkhs" with positive=True'),
    "rkhs, indefinite": (
        {"penalty": "rkhs", "positive": False, "kernels": [Linear(), Sigmoid(1.0, -1.0)]},
        r"The kernel Sigmoid\(coef0=-1.0\) is not symmetric and positive semi-definite",
    ),
    "rkhs, not symmetric": (
        {"penalty": "rkhs", "positive": False, "kernels": [FromCallable(lopsided)]},
        r"The kernel FromCallable\(lopsided\) is not symmetric",
    ),
    "nu of zero": ({"nu": 0.0}, "nu=0.0; expected a number above 0 and at most 1"),
    "nu above one": ({"nu": 1.1}, "nu=1.1; expected a number above 0 and at most 1"),
    "nu is None": ({"nu": None}, "nu=None; expected"),
    "unknown penalty": ({"penalty": "l3"}, 'penalty=.l3.; expected "l1", "l2" or "rkhs"'),
    "unknown centers": ({"centers": "some"}, "centers='some'; expected"),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_what_makes_no_sense_is_refused_with_a_sentence(case, X):
    options, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        CGBoostOneClass(**options).fit(X)


def test_nu_of_one_is_the_mean_of_all_rows(X):
    # All multipliers are at their bound 1/n: the model is the kernel density estimate, up to its norm.
    model = CGBoostOneClass([RBF(0.5)], nu=1.0, penalty="rkhs", positive=False, tol=1e-8).fit(X)
    density = rbf_kernel(X, gamma=0.5).mean(axis=1)
    np.testing.assert_allclose(model.score_samples(X), density, atol=1e-4)


def test_one_row_is_its_own_model():
    model = CGBoostOneClass([RBF(0.5)]).fit([[1.0, 2.0]])
    assert model.predict([[1.0, 2.0], [9.0, 9.0]]).tolist() == [1, -1]
