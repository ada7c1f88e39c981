import numpy as np

from kernelweave.solvers.margin import MarginRows, classification_rows, regression_rows


def test_classification_loss_is_the_weighted_hinge_loss():
    y, f, cost = np.array([1.0, -1.0, 1.0]), np.array([2.0, 0.5, 0.25]), np.array([1.0, 2.0, 4.0])
    assert classification_rows(y, cost).loss(f) == 0.0 + 2.0 * 1.5 + 4.0 * 0.75


def test_signed_duals_are_summed_by_point():
    two_rows_a_point = MarginRows(
        sign=np.array([1.0, 1.0, -1.0, -1.0]),
        point=np.array([0, 1, 0, 1]),
        target=np.zeros(4),
        cost=np.ones(4),
        n_points=2,
    )
    np.testing.assert_array_equal(two_rows_a_point.signed(np.array([3.0, 0.0, 1.0, 2.0])), [2.0, -2.0])


def test_regression_loss_is_the_insensitive_loss():
    targets, f = np.array([1.0, 2.0, 3.0]), np.array([1.05, 1.5, 4.0])
    rows = regression_rows(targets, 0.1, np.array([1.0, 2.0, 3.0]))
    assert np.isclose(rows.loss(f), 2.0 * 0.4 + 3.0 * 0.9)
