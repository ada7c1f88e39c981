"""Splits of partly labelled rows."""

import warnings

import numpy as np
import pytest
from checks.partly_labeled import MeanRegressor, NearestMean
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, KFold, StratifiedGroupKFold, cross_val_score, cross_validate

from kernelweave.labels import column, is_unlabeled, partition, partition_targets
from kernelweave.model_selection import SemiSupervisedSplit as Split
from kernelweave.model_selection import labeled_scorer


@given(
    counts=st.lists(st.integers(2, 12), min_size=2, max_size=4),
    n_unlabeled=st.integers(0, 9),
    n_splits=st.integers(2, 4),
    seed=st.integers(0, 9),
)
def test_labelled_rows_are_tested_once_and_unlabelled_rows_always_train(counts, n_unlabeled, n_splits, seed):
    y = np.random.default_rng(seed).permutation(np.repeat([-1, *range(len(counts))], [n_unlabeled, *counts]))
    tests = []
    for train, test in Split(n_splits, random_state=seed).split(y, y):
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
        assert set(y[train]) == set(y)
        tests.append(test)
    assert_array_equal(np.sort(np.concatenate(tests)), np.flatnonzero(y != -1))
    in_part = np.array([[len(test), *np.bincount(y[test], minlength=len(counts))] for test in tests])
    assert np.ptp(in_part, axis=0).max() <= 1


def split_with_warning(splitter, y, groups=None, match="trained on and not tested"):
    with pytest.warns(UserWarning, match=match) as caught:
        splits = list(splitter.split(y, y, groups))
    assert len(caught) == 1  # one for all test parts and repeats
    assert caught[0].filename == __file__
    return splits


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    n_splits=st.integers(2, 5),
    seed=st.integers(0, 9),
)
def test_a_class_with_one_label_is_always_trained_on_and_the_others_are_tested_once(counts, n_splits, seed):
    y = np.random.default_rng(seed).permutation(np.repeat([-1, *range(len(counts) + 2)], [3, 1, 5, *counts]))
    single = np.isin(y, np.flatnonzero(np.bincount(y[y >= 0]) == 1))
    splits = split_with_warning(Split(n_splits, n_repeats=2, random_state=seed), y)
    assert len(splits) == 2 * n_splits
    for train, test in splits:
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))
        assert set(y[train]) == set(y)
        assert len(test)
        assert not single[test].any()
    for repeat in (splits[:n_splits], splits[n_splits:]):
        tested = np.concatenate([test for _, test in repeat])
        assert_array_equal(np.sort(tested), np.flatnonzero((y != -1) & ~single))
        sizes = [[len(test), *np.bincount(y[test], minlength=y.max() + 1)] for _, test in repeat]
        assert np.ptp(sizes, axis=0).max() <= 1


def test_the_warning_names_the_classes_that_the_score_says_nothing_about():
    y = np.array(["a"] * 6 + ["b", "c", "d", "e", "f", "g", "h"])
    with pytest.warns(UserWarning, match="trained on and not tested") as caught:
        list(Split(2, random_state=0).split(y, y))
    assert str(caught[0].message).startswith(
        "7 labelled rows are trained on and not tested, as a training part without them would lack a class: those of "
        "the classes ['b', 'c', 'd', 'e', 'f'] and 2 others, of which the score says nothing. Label more rows"
    )


@given(st.integers(0, 50))
def test_without_strata_one_row_of_a_class_is_trained_on_where_chance_would_test_all(seed):
    y = np.array([0] * 30 + [1, 1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        splits = list(Split(2, stratify=False, random_state=seed).split(y, y))
    assert [set(y[train]) for train, _ in splits] == [{0, 1}] * 2
    tested = np.sort(np.concatenate([test for _, test in splits]))
    assert len(tested) == 32 - len(caught)
    assert_array_equal(tested[:30], np.arange(30))
    assert all("some of the classes [1]." in str(warning.message) for warning in caught)


@given(seed=st.integers(0, 200), n_groups=st.integers(4, 12), n_splits=st.integers(2, 4), stratify=st.booleans())
def test_with_groups_no_training_part_lacks_a_class_and_no_group_is_split(seed, n_groups, n_splits, stratify):
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, 30)])
    y = np.where(groups < n_splits, rng.integers(0, 2, len(groups)), rng.choice([-1, 0, 1, 2, 3, 4], len(groups)))
    y = np.concatenate([y, np.tile([0, 1], n_splits)])  # these groups can be tested, whatever the others hold
    groups = np.concatenate([groups, np.repeat(np.arange(n_splits), 2)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ labelled rows are trained on")
        splits = list(Split(n_splits, stratify=stratify, random_state=seed).split(y, y, groups))
    for train, test in splits:
        assert len(test)
        assert set(y[train]) == set(y)
        assert not np.isin(groups[train[y[train] != -1]], groups[test]).any()
    tested = np.concatenate([test for _, test in splits])
    assert len(np.unique(tested)) == len(tested)


def test_a_group_that_holds_all_labels_of_a_class_is_never_tested():
    y = np.array([0, 1, 0, 1, 0, 1, 2, 2, 0, -1])
    groups = np.array([0, 0, 1, 1, 2, 2, 3, 3, 3, 3])
    match = r"^3 labelled rows .* those of the classes \[2\], of which .*, and some of the classes \[0\]\. Label"
    splits = split_with_warning(Split(3, random_state=0), y, groups, match)
    assert sorted(test.tolist() for _, test in splits) == [[0, 1], [2, 3], [4, 5]]
    assert all({6, 7, 8, 9} <= set(train) for train, _ in splits)


def test_the_score_is_that_on_the_classes_that_are_tested(data):
    X, y, _ = data
    X, y = np.vstack([X, [[9.0, 9.0]]]), np.append(y, 2)
    cv = Split(3, random_state=0)
    with pytest.warns(UserWarning, match=r"^1 labelled rows .* classes \[2\]") as caught:
        scores = cross_val_score(NearestMean(), X, y, cv=cv, error_score="raise")
    assert [warning.filename for warning in caught] == [__file__]  # and not a line of scikit-learn
    splits = split_with_warning(cv, y)
    assert all(set(y[test]) == {0, 1} for _, test in splits)
    expected = [np.mean(NearestMean().fit(X[a], y[a]).predict(X[b]) == y[b]) for a, b in splits]
    assert_array_equal(scores, expected)


def test_every_coding_and_container_is_split_alike(data, coded):
    X, y = coded
    expected = Split(4, random_state=0).split(X, data[1])
    for pair, pair_too in zip(expected, Split(4, random_state=0).split(X, y), strict=True):
        assert [part.tolist() for part in pair] == [part.tolist() for part in pair_too]


@pytest.mark.filterwarnings("error")
def test_classes_smaller_than_n_splits_are_enough_without_a_warning():
    y = np.array([0, 0, 0, 1, 1, 1, 2, 2, -1])
    splits = list(Split(5, random_state=0).split(y, y))
    assert [set(y[train]) for train, _ in splits] == [{-1, 0, 1, 2}] * 5


def test_the_same_seed_gives_the_same_splits_and_repeats_differ(data):
    X, y, _ = data

    def test_parts(splitter):
        return [test.tolist() for _, test in splitter.split(X, y)]

    splitter = Split(3, n_repeats=2, random_state=1)
    first = test_parts(splitter)
    assert first == test_parts(splitter) != test_parts(Split(3, n_repeats=2, random_state=2))
    assert len(first) == splitter.get_n_splits() == 6
    assert first[:3] != first[3:]
    assert sorted(np.concatenate(first[:3])) == sorted(np.concatenate(first[3:])) == list(range(24))
    shared = Split(3, random_state=np.random.RandomState(0))
    assert test_parts(shared) != test_parts(shared)


def test_continuous_targets_are_split_without_strata_and_whole_numbers_can_be_said_to_be_such():
    y = np.array([0.5, 1.5, 2.0, np.nan, 4.0, 7.5, np.nan, 9.1])
    sizes = [(len(test), {3, 6} <= set(train)) for train, test in Split(3, random_state=0).split(y, y)]
    assert sizes == [(2, True)] * 3
    y = np.array([-1, 0, 3, 8, 13, 21])
    with pytest.raises(ValueError, match=r"but there are 0: .* and 1 others, .* pass target=\"numbers\""):
        list(Split(3, unlabeled=None, random_state=0).split(y, y))
    tests = [test for _, test in Split(3, target="numbers", random_state=0).split(y, y)]
    assert_array_equal(np.sort(np.concatenate(tests)), np.arange(6))


@pytest.mark.parametrize(
    ("y", "options", "advised"),
    [
        (np.append(np.arange(20).repeat(9), 20), {}, True),  # counts: many values, most of them frequent
        (np.append(np.arange(20).repeat(9), 20), {"target": "classes"}, False),
        (np.append(np.arange(3).repeat(9), 3), {}, False),
        ([*"aabbccdefghijklmnopq"], {}, False),
    ],
)
def test_single_values_among_many_numbers_name_the_way_to_say_that_they_are_numbers(y, options, advised):
    with pytest.warns(UserWarning, match="trained on and not tested") as caught:
        list(Split(2, random_state=0, **options).split(y, y))
    assert ('target="numbers"' in str(caught[0].message)) == advised


def test_groups_are_never_in_both_parts_and_unlabelled_rows_of_held_out_groups_follow_the_choice(data):
    X, y, _ = data
    groups = np.arange(60) // 2 % 6
    for choice in ("keep", "drop"):
        splitter = Split(3, group_unlabeled=choice, n_repeats=2, random_state=0)
        tests = []
        for train, test in splitter.split(X, y, groups):
            assert not np.isin(groups[train[y[train] != -1]], groups[test]).any()
            of_held_out = np.isin(groups, groups[test]) & (y == -1)
            assert set(np.isin(np.flatnonzero(of_held_out), train)) == {choice == "keep"}
            assert np.isin(np.flatnonzero(~of_held_out & (y == -1)), train).all()
            tests.append(test)
        assert_array_equal(np.sort(np.concatenate(tests[:3])), np.flatnonzero(y != -1))


@given(st.lists(st.integers(0, 7), min_size=12, max_size=60), st.integers(0, 5))
def test_no_test_part_of_groups_is_empty(groups, seed):
    y, groups = np.linspace(0.5, 1, len(groups)), np.array([*groups, 0, 1, 2])[3:]
    splits = list(Split(3, random_state=seed).split(y, y, groups))
    assert all(len(test) for _, test in splits)


def test_groups_spread_classes_about_as_evenly_as_scikit_learn():
    def unevenness(splitter, y, groups):
        shares = [np.bincount(y[test], minlength=3) / np.bincount(y) for _, test in splitter.split(y, y, groups)]
        return np.std(shares)

    ours, theirs = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        groups = rng.integers(0, 30, 200)
        y = (rng.integers(0, 3, 200) + groups) % 3
        ours.append(unevenness(Split(4, random_state=seed), y, groups))
        theirs.append(unevenness(StratifiedGroupKFold(4, shuffle=True, random_state=seed), y, groups))
    assert np.mean(ours) < 1.1 * np.mean(theirs)


def test_groups_may_be_strings_or_minus_one_and_regression_has_groups_too():
    y = np.array([0.1, 0.2, np.nan, 0.4, 0.5, 0.6])
    for groups in (["a", "a", "b", "b", "c", "c"], np.array([-1, -1, 0, 0, 1, 1])):
        for train, test in Split(3, group_unlabeled="drop", random_state=0).split(y, y, groups):
            assert not set(np.array(groups)[train]) & set(np.array(groups)[test])


def test_the_repr_of_a_splitter_can_be_evaluated():
    splitter = Split(4, n_repeats=2, stratify=False, unlabeled="?", group_unlabeled="drop")
    assert vars(eval(repr(splitter), {"SemiSupervisedSplit": Split})) == vars(splitter)


Y = np.array([0, 0, 1, 1, 2, -1])
BAD_SPLITS = {
    "one part": (lambda: Split(1), "SemiSupervisedSplit got n_splits=1; expected a whole number, 2 or more"),
    "half a part": (lambda: Split(2.5), "n_splits=2.5; expected a whole number, 2"),
    "no repeat": (lambda: Split(n_repeats=0), "n_repeats=0; expected a whole number, 1"),
    "target": (lambda: Split(target="y"), 'target=.*; expected "auto", "classes" or "numbers"'),
    "choice": (lambda: Split(group_unlabeled="x"), 'expected "keep" or "drop"'),
    "few rows": (lambda: list(Split(6).split(Y, Y)), "y has 5 labelled rows of 6"),
    "no label": (lambda: list(Split(2).split(Y, [None] * 6)), "y has 0 labelled rows of 6"),
    "single labels": (
        lambda: list(Split(4).split(Y, [0, 0, 1, 2, 3, -1])),
        r"are 2: .* rows of the classes \[1, 2, 3\]",
    ),
    "whole class": (
        lambda: list(Split(2).split(Y, Y, [0, 0, 1, 1, 1, 1])),
        r"need as many groups .* are 0: the others",
    ),
    "few groups": (lambda: list(Split(3).split(Y, Y, [0, 1, 0, 1, 2, 2])), r"are 2: .* rows of the classes \[2\]"),
    "two groups": (
        lambda: list(Split(3).split(Y, [0, 0, 1, 1, -1, -1], [0, 1, 0, 1, 2, 2])),
        "are 2. Use fewer n_splits",
    ),
    "no group": (lambda: list(Split(2).split(Y, Y, [0, 0, 1, 1, None, 2])), "no value in 1 of 6"),
    "mixed groups": (lambda: list(Split(2).split(Y, Y, [0, 0, "a", 1, 1, 2])), "groups mixes"),
    "no y": (lambda: list(Split(2).split(Y)), "target y is None"),
    "lengths": (lambda: list(Split(2).split(Y[1:], [0, 0, 1, 1, 1, -1])), "inconsistent numbers"),
    "continuous strings": (lambda: list(Split(2).split(Y, ["a", 1] * 3)), "types int, str"),
}


@pytest.mark.parametrize(("act", "message"), BAD_SPLITS.values(), ids=BAD_SPLITS)
def test_bad_splits_are_refused_with_a_sentence(act, message):
    with pytest.raises((ValueError, TypeError), match=message):
        act()


def test_cross_validation_and_grid_search_take_partly_labelled_y(coded):
    X, y = coded
    cv = Split(3, random_state=0)
    assert cross_val_score(NearestMean(), X, y, cv=cv, error_score="raise").min() > 0.5
    fits = cross_validate(NearestMean(), X, y, cv=cv, return_estimator=True, error_score="raise")
    assert [fit.n_rows_seen_ for fit in fits["estimator"]] == [60 - 8] * 3
    search = GridSearchCV(NearestMean(), {"power": [0.5, 1.0]}, cv=cv, error_score="raise").fit(X, y)
    assert search.best_estimator_.n_rows_seen_ == 60
    assert search.n_splits_ == 3


def test_groups_reach_the_splitter_with_and_without_metadata_routing(data):
    X, y, _ = data
    groups = np.arange(60) // 2 % 6
    cv = Split(3, random_state=0)
    expected = cross_val_score(NearestMean(), X, y, cv=cv, scoring="accuracy", groups=groups)
    search = GridSearchCV(NearestMean(), {"power": [2.0]}, cv=cv).fit(X, y, groups=groups)
    assert search.best_score_ == pytest.approx(expected.mean())
    with config_context(enable_metadata_routing=True):
        assert cv.get_metadata_routing().split.requests == {"groups": True}
        routed = cross_val_score(NearestMean(), X, y, cv=cv, scoring="accuracy", params={"groups": groups})
        cv.set_split_request(groups=False)
        assert cv.get_metadata_routing().split.requests == {"groups": False}
    assert_array_equal(routed, expected)


def test_regression_is_cross_validated_with_nan_targets():
    y = np.where(np.arange(20) % 3 == 0, np.nan, np.linspace(0.5, 3, 20))
    error = "neg_mean_absolute_error"
    for cv, scoring in [(Split(3, random_state=0), error), (KFold(3), labeled_scorer(error))]:
        scores = cross_val_score(MeanRegressor(), y[:, None], y, cv=cv, scoring=scoring, error_score="raise")
        assert np.isfinite(scores).all()


def test_hidden_labels_are_those_of_the_test_parts_and_nothing_else_changes(coded):
    _, y = coded
    given = column(y)
    known = set(Split(3, random_state=0)._read(y)[0])
    splits = list(Split(3, random_state=0).split(given, y))
    for (hidden, test), (train, expected) in zip(Split(3, random_state=0).hide_labels(y), splits, strict=True):
        assert_array_equal(test, expected)
        assert_array_equal(np.flatnonzero(is_unlabeled(hidden)), sorted(set(range(60)) - known | set(test)))
        labeled = np.setdiff1d(train, np.flatnonzero(is_unlabeled(hidden)))
        assert [hidden[row] for row in labeled] == [given[row] for row in labeled]
        assert partition(hidden).classes.tolist() == partition(y).classes.tolist()


@pytest.mark.parametrize("y, options", [
    (np.tile([-1, 0, 1], 5), {"unlabeled": None}),
    (np.tile([-1, 1], 8), {"unlabeled": None}),
    (np.tile([-1.0, 0.0, 7.0], 5), {"target": "numbers"}),
    (np.tile([-1, 0, 7], 5), {"target": "numbers"}),
    (np.linspace(-1, 1, 15), {}),
    (np.tile([True, False], 6), {}),
    (np.tile(["a", "b"], 6), {}),
    (np.tile(["a", "b", "?"], 6), {"unlabeled": "?"}),
])  # fmt: skip
def test_hiding_labels_does_not_change_the_meaning_of_the_others(y, options):
    numbers = y.dtype.kind == "f" or options.get("target") == "numbers"
    unlabeled = options.get("unlabeled", "auto")
    given = y.copy()
    for hidden, test in Split(3, random_state=0, **options).hide_labels(y):
        part = partition_targets(hidden) if numbers else partition(hidden, unlabeled=unlabeled)
        assert_array_equal(part.labels, y[part.labeled])
        before = np.flatnonzero(y == unlabeled) if unlabeled == "?" else []
        assert_array_equal(part.unlabeled, np.union1d(before, test))
    assert_array_equal(y, given)


def test_hidden_labels_keep_groups_together_and_refuse_to_drop_rows():
    y, groups = np.tile([0, 1, -1], 8), np.arange(24) // 3
    for _, test in Split(2, random_state=0).hide_labels(y, groups):
        assert not np.isin(groups[test], groups[np.setdiff1d(np.flatnonzero(y >= 0), test)]).any()
    with pytest.raises(ValueError, match="hide_labels keeps all rows"):
        next(Split(2, group_unlabeled="drop").hide_labels(y, groups))
