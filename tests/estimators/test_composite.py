import numpy as np

from kernelweave.estimators.composite import regression_dual, train_uniform
from kernelweave.estimators.shared.machine import train_with_equal_weights


def test_the_parts_of_machines_go_by_their_former_names():
    assert train_uniform is train_with_equal_weights
    dual = regression_dual(np.array([5.0, 7.0]), np.array([1.0, 2.0]), 0.5)
    assert dual.linear.tolist() == [-4.5, -6.5, -5.5, -7.5]
    assert dual.rows.tolist() == [0, 1, 0, 1]
