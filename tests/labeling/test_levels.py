import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernelweave.labeling.levels import sample_levels

RNG = np.random.default_rng(0)
LEVELS = [f"{letter}{k}" for letter in "abc" for k in range(100)]


@pytest.mark.parametrize("n_cells", [1, 7, 50, 10_000])
def test_a_sample_has_the_shares_of_the_column_in_any_order(n_cells):
    counts = RNG.integers(1, 9, len(LEVELS))
    texts, weights = sample_levels(LEVELS, counts, n_cells)
    assert weights.sum() == min(n_cells, counts.sum())
    for letter in "abc":
        share = counts[[level[0] == letter for level in LEVELS]].sum() / counts.sum()
        n_of_letter = weights[[text[0] == letter for text in texts]].sum()
        assert abs(n_of_letter - share * weights.sum()) <= 1  # an interval of sorted cells, cut at even distances
    shuffled = RNG.permutation(len(LEVELS))
    again, same = sample_levels([LEVELS[k] for k in shuffled], counts[shuffled], n_cells)
    assert again == texts
    assert_array_equal(same, weights)


def test_small_columns_are_returned_whole():
    texts, weights = sample_levels(["b", "a"], np.array([2, 3]), 5)
    assert (texts, weights.tolist()) == (["a", "b"], [3, 2])
    texts, weights = sample_levels([], np.array([], dtype=np.intp), 5)
    assert (texts, weights.tolist()) == ([], [])
