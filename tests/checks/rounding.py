"""Comparison of two ways to compute the same numbers."""

import numpy as np


def assert_same_but_for_rounding(found, expected, tolerance=1e-10):
    """Two arrays agree up to a share of the largest entry.

    The order in which a product sums depends on shapes, strides, memory order and the processor, and copies from a
    pickle or a file may have other strides and order than the arrays they were made of. The same call on the same
    arrays has the same bits, and tests of that compare bits.
    """
    expected = np.asarray(expected)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance * np.abs(expected).max(initial=0.0))
