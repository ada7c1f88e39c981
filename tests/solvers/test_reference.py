import numpy as np
import pytest

from kernelweave.solvers.margin import classification_rows
from kernelweave.solvers.reference import full_lp


def test_two_points_on_a_line_are_separated_with_slope_one():
    K = np.array([[1.0], [-1.0]])
    solution = full_lp(K, classification_rows(np.array([1.0, -1.0]), np.array([10.0, 10.0])))
    assert solution.objective == pytest.approx(1.0)
    assert solution.coef == pytest.approx([1.0])
    assert solution.intercept == pytest.approx(0.0)


def test_a_small_cost_buys_no_coefficient():
    K = np.array([[1.0], [-1.0]])
    solution = full_lp(K, classification_rows(np.array([1.0, -1.0]), np.array([0.1, 0.1])))
    assert solution.objective == pytest.approx(0.2)
    assert solution.coef == pytest.approx([0.0])
