import numpy as np
import pytest

from kernelweave import RBF, CGBoostClassifier, Linear
from kernelweave.estimators.shared.cg_boost import (
    bind_columns,
    cg_boost_options,
    fit_columns,
    follow_path,
    nu_problems,
    precisions,
)
from kernelweave.estimators.shared.problems import class_problem
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition
from kernelweave.solvers.result import Status

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)


@pytest.fixture
def sample():
    return read_as_given(Rows(X), partition(Y, unlabeled=None), np.linspace(0.5, 2.0, 60))


def test_with_nu_costs_are_shares_and_the_margin_is_free(sample):
    (rows,) = nu_problems(class_problem(sample, None), 0.25, "free")
    assert rows.cost.sum() == pytest.approx(1 / 0.25)
    np.testing.assert_array_equal(rows.target, 0.0)


def test_rows_of_an_rkhs_are_read_in_double_precision():
    assert precisions("rkhs") == ("float64",)
    assert precisions("l1") == precisions("l2") == ("float64", "float32")


@pytest.mark.parametrize("penalty, tol", [("l1", 1e-6), ("l2", 0.1), ("rkhs", 0.01)])
def test_the_tolerance_that_is_not_given_depends_on_the_norm(penalty, tol):
    params = CGBoostClassifier(penalty=penalty).get_params(deep=False)
    assert cg_boost_options("test", params).tol == tol
    assert cg_boost_options("test", params | {"tol": 0.5}).tol == 0.5
    assert cg_boost_options("test", params, chooses_margin=True).formulation.chooses_margin


def columns_of(params, sample):
    return bind_columns("Me", params, sample, np.random.default_rng(0))


def test_fits_of_a_path_are_those_of_estimators_alone(sample):
    costs, problem = [0.5, 5.0], class_problem(sample, None)
    params = CGBoostClassifier([RBF(0.5), Linear()]).get_params(deep=False)
    columns, options = columns_of(params, sample), cg_boost_options("test", params)
    assert columns.library.names == ("RBF(gamma=0.5)", "Linear()")
    fits = fit_columns(columns, [problem.margins(C, slice(None)) for C in costs], options)
    for C, fit in zip(costs, fits, strict=True):
        alone = CGBoostClassifier([RBF(0.5), Linear()], C=C).fit(X, Y, sample.weight)
        assert fit.objective == pytest.approx(alone.objective_, rel=1e-6)


def test_paths_warn_of_nothing_and_fits_of_several_costs_do(sample, recwarn):
    params = CGBoostClassifier(max_columns=1).get_params(deep=False)
    columns, options = columns_of(params, sample), cg_boost_options("test", params)
    problem = class_problem(sample, None)
    assert list(follow_path(columns, problem, np.array([1.0]), options)) == [0]
    assert len(recwarn) == 0
    fit_columns(columns, [problem.margins(1.0, slice(None))], options)
    assert len(recwarn) == 1


def test_when_the_time_is_over_a_path_has_the_cost_that_it_needs_or_none(sample):
    params = CGBoostClassifier([RBF(0.5), Linear()], max_time=1e-9).get_params(deep=False)
    columns, options = columns_of(params, sample), cg_boost_options("test", params)
    problem, Cs = class_problem(sample, None), np.array([0.5, 5.0])
    assert follow_path(columns, problem, Cs, options) == {}
    fits = follow_path(columns, problem, Cs, options, needs_last=True)
    assert list(fits) == [1]
    assert fits[1].status is Status.MAX_TIME
