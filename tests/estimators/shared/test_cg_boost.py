import numpy as np
import pytest

from kernelweave import RBF, CGBoostClassifier, Linear
from kernelweave.estimators.shared.cg_boost import cg_boost_options, class_problems, fit_cg_boost, precisions
from kernelweave.estimators.shared.sample import Rows, read_sample
from kernelweave.labels import partition

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)


@pytest.fixture
def sample():
    return read_sample(Rows(X), partition(Y, unlabeled=None), np.linspace(0.5, 2.0, 60))


def test_costs_are_the_product_of_cost_and_weights(sample):
    (rows,) = class_problems(sample, 3.0, None, {0: 1.0, 1: 2.0}, "free")
    np.testing.assert_allclose(rows.cost, 3.0 * sample.weight * np.where(Y == 1, 2.0, 1.0))
    np.testing.assert_array_equal(rows.sign, 2.0 * Y - 1)
    np.testing.assert_array_equal(rows.target, 1.0)


def test_with_nu_costs_are_shares_and_the_margin_is_free(sample):
    (rows,) = class_problems(sample, 3.0, 0.25, None, "free")
    assert rows.cost.sum() == pytest.approx(1 / 0.25)
    np.testing.assert_array_equal(rows.target, 0.0)


def test_each_of_several_classes_is_separated_from_the_rest():
    labels = np.digitize(X[:, 0], [-0.5, 0.5])
    problems = class_problems(read_sample(Rows(X), partition(labels, unlabeled=None)), 1.0, None, None, "free")
    for k, rows in enumerate(problems):
        np.testing.assert_array_equal(rows.sign > 0, labels == k)
    assert len(problems) == 3


def test_rows_of_an_rkhs_are_read_in_double_precision():
    assert precisions("rkhs") == ("float64",)
    assert precisions("l1") == precisions("l2") == ("float64", "float32")


@pytest.mark.parametrize("penalty, tol", [("l1", 1e-6), ("l2", 0.1), ("rkhs", 0.01)])
def test_the_tolerance_that_is_not_given_depends_on_the_norm(penalty, tol):
    params = CGBoostClassifier(penalty=penalty).get_params(deep=False)
    assert cg_boost_options("test", params).tol == tol
    assert cg_boost_options("test", params | {"tol": 0.5}).tol == 0.5
    assert cg_boost_options("test", params, chooses_margin=True).formulation.chooses_margin


def test_fits_of_a_path_are_those_of_estimators_alone(sample):
    costs = [0.5, 5.0]
    params = CGBoostClassifier([RBF(0.5), Linear()]).get_params(deep=False)
    problems = [class_problems(sample, C, None, None, "free") for C in costs]
    library, fits = fit_cg_boost("test", params, sample, problems, np.random.default_rng(0))
    assert library.names == ("RBF(gamma=0.5)", "Linear()")
    for C, fit in zip(costs, fits, strict=True):
        alone = CGBoostClassifier([RBF(0.5), Linear()], C=C).fit(X, Y, sample.weight)
        assert fit.objective == pytest.approx(alone.objective_, rel=1e-6)


def test_quiet_fits_warn_of_nothing(sample, recwarn):
    params = CGBoostClassifier(max_columns=1).get_params(deep=False)
    problems = [class_problems(sample, 1.0, None, None, "free")]
    fit_cg_boost("test", params, sample, problems, np.random.default_rng(0), quiet=True)
    assert len(recwarn) == 0
    fit_cg_boost("test", params, sample, problems, np.random.default_rng(0))
    assert len(recwarn) == 1
