import numpy as np
import pytest

from kernelweave.estimators.shared import fold_choice
from kernelweave.estimators.shared.fold_choice import choose_candidate, split_labeled


def test_every_row_is_held_out_once_in_each_repeat():
    codes = np.repeat([0, 1, 2], [20, 7, 2])
    folds = split_labeled(codes, len(codes), np.random.default_rng(0), 3)
    held = np.concatenate([held for _, held in folds])
    assert (np.bincount(held, minlength=29) == 3).all()
    for kept, held in folds:
        assert len(np.intersect1d(kept, held)) == 0
        assert set(codes[kept]) == {0, 1, 2}


def test_the_only_row_of_a_class_is_never_held_out():
    codes = np.array([0, 0, 0, 1, 1, 1, 2])
    folds = split_labeled(codes, 7, np.random.default_rng(0))
    assert folds
    assert all(6 in kept and 6 not in held for kept, held in folds)


def test_classes_without_a_second_row_have_no_folds():
    assert split_labeled(np.array([0, 1]), 2, np.random.default_rng(0)) == []


def test_numbers_are_dealt_evenly():
    folds = split_labeled(None, 12, np.random.default_rng(0))
    assert sorted(len(held) for _, held in folds) == [2, 2, 2, 3, 3]


def test_of_many_rows_some_take_part(monkeypatch):
    monkeypatch.setattr(fold_choice, "MAX_CHOICE_ROWS", 50)
    folds = split_labeled(None, 1000, np.random.default_rng(0))
    assert {len(kept) + len(held) for kept, held in folds} == {50}


@pytest.mark.parametrize("n_better, chosen", [(0, 0), (1, 0), (2, 1), (10, 1)])
def test_another_candidate_must_be_better_by_more_than_a_standard_error(n_better, chosen):
    losses = np.ones((2, 20))
    losses[1, :n_better] = 0.0  # n errors less: the difference is n, its standard error the root of n
    assert choose_candidate(losses) == chosen
