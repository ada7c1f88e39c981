"""Seeded draws: disjoint, of the sizes asked for, the same whatever runs beside them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal

from kernelweave.datasets import draw_labels, split

PARTS = ("labeled", "unlabeled", "validation", "test")
labels = st.lists(st.integers(0, 3), min_size=4, max_size=80).map(lambda rest: np.array([0, 1, 2, *rest]))
seeds = st.integers(0, 2**32)


@given(labels, seeds, st.data())
def test_labels_are_drawn_from_every_class_and_the_others_are_the_rest(y, seed, data):
    n_labeled = data.draw(st.integers(len(np.unique(y)), len(y)))
    labeled, unlabeled = draw_labels(y, n_labeled, random_state=seed)
    assert len(labeled) == n_labeled
    assert_array_equal(np.sort(np.r_[labeled, unlabeled]), np.arange(len(y)))
    assert set(y[labeled]) == set(y)
    assert (np.diff(labeled) > 0).all()
    assert (np.diff(unlabeled) > 0).all()


@given(labels, seeds, st.data())
def test_labels_by_class_have_the_counts_asked_for(y, seed, data):
    classes, sizes = np.unique(y, return_counts=True)
    counts = {int(c): data.draw(st.integers(0, int(size))) for c, size in zip(classes, sizes, strict=True)}
    labeled, unlabeled = draw_labels(y, per_class=counts, random_state=seed)
    assert {c: int(np.sum(y[labeled] == c)) for c in counts} == counts
    assert_array_equal(np.sort(np.r_[labeled, unlabeled]), np.arange(len(y)))


def test_one_number_is_for_each_class_and_classes_may_be_texts():
    y = np.array(["a", "b"] * 10)
    labeled, _ = draw_labels(y, per_class=3, random_state=0)
    assert sorted(y[labeled]) == ["a"] * 3 + ["b"] * 3


def test_every_row_is_drawn_equally_often():
    y = np.array([0] * 6 + [1] * 6)
    n_draws = 2000
    times = np.bincount(np.concatenate([draw_labels(y, 4, random_state=k)[0] for k in range(n_draws)]))
    # binomial with mean n/3; five standard deviations
    assert np.abs(times - n_draws / 3).max() < 5 * np.sqrt(n_draws * 2 / 9)


@given(labels, seeds, st.booleans(), st.data())
def test_the_parts_of_a_split_are_disjoint_and_of_the_sizes_asked_for(y, seed, stratify, data):
    left, sizes = len(y), {}
    for name in PARTS:
        sizes[f"n_{name}"] = data.draw(st.integers(0, left))
        left -= sizes[f"n_{name}"]
    parts = split(y, **sizes, stratify=stratify, random_state=seed)
    assert tuple(parts) == PARTS
    assert {f"n_{name}": len(rows) for name, rows in parts.items()} == sizes
    together = np.concatenate(list(parts.values()))
    assert len(np.unique(together)) == len(together)
    assert np.isin(together, np.arange(len(y))).all()


@given(labels, seeds, st.data())
def test_the_rest_is_unlabeled_unless_a_number_is_given(y, seed, data):
    n_labeled = data.draw(st.integers(0, len(y)))
    n_test = data.draw(st.integers(0, len(y) - n_labeled))
    parts = split(y, n_labeled=n_labeled, n_test=n_test, random_state=seed)
    assert_array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(len(y)))


@given(labels, seeds, st.booleans(), st.data())
def test_fewer_labels_are_a_part_of_more_and_the_test_rows_stay(y, seed, stratify, data):
    n_test = data.draw(st.integers(0, len(y)))
    more = data.draw(st.integers(0, len(y) - n_test))
    fewer = data.draw(st.integers(0, more))
    few, many = (split(y, n_labeled=n, n_test=n_test, stratify=stratify, random_state=seed) for n in (fewer, more))
    assert set(few.labeled) <= set(many.labeled)
    assert_array_equal(few.test, many.test)


@given(labels, seeds, st.data())
def test_the_first_rows_of_a_stratified_order_have_the_classes_in_their_shares(y, seed, data):
    n_test = data.draw(st.integers(0, len(y)))
    test = split(y, n_labeled=0, n_test=n_test, stratify=True, random_state=seed).test
    classes, sizes = np.unique(y, return_counts=True)
    for c, size in zip(classes, sizes, strict=True):
        assert abs(int(np.sum(y[test] == c)) - Fraction(n_test * int(size), len(y))) < len(classes)


def test_a_stratified_split_into_whole_shares_is_exact():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    parts = split(y, n_labeled=10, n_unlabeled=40, n_validation=20, n_test=30, stratify=True, random_state=3)
    for rows in parts.values():
        assert_array_equal(np.bincount(y[rows]) * 10, np.array([5, 3, 2]) * len(rows))


def test_the_same_seed_gives_the_same_rows_whatever_the_number_of_jobs():
    y = np.arange(300) % 3

    def trial(number):
        parts = split(y, n_labeled=20, n_test=100, stratify=True, random_state=[7, number])
        return [rows.tolist() for rows in [*parts.values(), *draw_labels(y, 12, random_state=[7, number])]]

    alone = [trial(number) for number in range(6)]
    assert len({str(rows) for rows in alone}) == 6
    for jobs in (1, 3):
        assert (
            Parallel(n_jobs=jobs, prefer="threads")(delayed(trial)(number) for number in reversed(range(6)))[::-1]
            == alone
        )
    np.random.seed(1)  # noqa: NPY002 - it must not matter
    assert trial(0) == alone[0]


def test_targets_of_regression_are_split_but_not_by_class():
    Y = np.random.default_rng(0).random((10, 2))
    assert len(split(Y, n_labeled=4, random_state=0).unlabeled) == 6
    with pytest.raises(ValueError, match=r"one class a row.*shape \(10, 2\).*stratify=False"):
        split(Y, n_labeled=4, stratify=True)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "needs n_labeled or per_class, and not both"),
        ({"n_labeled": 2, "per_class": 1}, "and not both"),
        ({"n_labeled": 1}, r"n_labeled must be an integer from 2 to 4 .*got 1\."),
        ({"n_labeled": 5}, "got 5"),
        ({"n_labeled": 2.0}, "got 2.0"),
        ({"per_class": 3}, "per_class for 0 must be an integer from 0 to 2"),
        ({"per_class": True}, "got True"),
        ({"per_class": {0: 1}}, r"names the classes \[0\], and y has \[0, 1\]"),
        ({"per_class": {0: 1, 1: 1, 2: 0}}, "for no other"),
    ],
)
def test_bad_numbers_of_labels_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        draw_labels([0, 0, 1, 1], **arguments)


@pytest.mark.parametrize("y", [[0.5, 1.0], [0, None], [[0, 1]], np.array(["a", None])])
def test_rows_without_a_class_cannot_be_drawn_by_class(y):
    with pytest.raises(ValueError, match="one class a row"):
        draw_labels(y, 1)


def test_parts_that_need_too_many_rows_are_refused():
    with pytest.raises(ValueError, match=r"need 12 rows \(n_test=3, n_validation=0, n_labeled=9\), and y has 10"):
        split(np.zeros(10), n_labeled=9, n_test=3)
    with pytest.raises(ValueError, match="n_validation must be an integer from 0 to 10"):
        split(np.zeros(10), n_labeled=1, n_validation=-1)
