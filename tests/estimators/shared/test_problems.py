import numpy as np
import pytest

from kernelweave.estimators.shared.problems import class_problem, number_problem
from kernelweave.estimators.shared.sample import Rows, read_sample
from kernelweave.labels import partition, partition_targets

X = np.arange(8.0)[:, None]


def test_margins_are_those_of_the_rows_that_are_kept_and_losses_those_of_the_others():
    y = np.array([0, 1, 2, 0, 1, 2, None, None], dtype=object)
    sample = read_sample(Rows(X), partition(y), np.arange(1.0, 9.0))
    problem = class_problem(sample, {0: 2.0})
    kept, held = np.array([0, 1, 2]), np.array([3, 4, 5])
    margins = problem.margins(10.0, kept)
    assert len(margins) == 3
    np.testing.assert_allclose(margins[0].cost, [20.0, 20.0, 30.0])
    values = np.eye(3)
    values[2] = [0.0, 1.0, 0.0]
    assert problem.losses(values, held).tolist() == [0.0, 0.0, 1.0]


def test_costs_of_numbers_are_multiples_of_their_weighted_deviation():
    y = np.array([0.0, 10.0, 10.0, np.nan, np.nan, np.nan, np.nan, np.nan])
    weight = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    problem = number_problem(read_sample(Rows(X), partition_targets(y), weight), 0.5)
    assert problem.cost_unit == pytest.approx(5.0)
    assert problem.losses(np.array([[5.0]]), np.array([0])).tolist() == [1.0]
    assert problem.constant(np.array([1, 2])) == 10.0


def test_equal_numbers_have_a_unit_too():
    sample = read_sample(Rows(X), partition_targets(np.full(8, 3.0)))
    assert number_problem(sample, 0.1).cost_unit == 1.0
