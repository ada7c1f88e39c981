"""Texts as numbers, against a dense computation of the same axes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from kernelweave.labeling import text_features
from kernelweave.labeling.text_features import MAX_FITTED, TextEncoder, _count_pieces, _weigh

WORDS = ["red apple", "green apple", "red car", "blue car", "old blue house", "new house", "green garden"]


def frame(texts):
    return pd.DataFrame({"remark": pd.Series(texts, dtype=object)})


def repeated(n=70, seed=0):
    rng = np.random.default_rng(seed)
    return [f"{WORDS[i % len(WORDS)]} {rng.integers(0, 9)}" for i in range(n)]


def test_coordinates_are_those_of_a_dense_decomposition_of_all_rows():
    texts = repeated()
    encoder = TextEncoder(n_axes=5, n_buckets=64).fit(frame(texts))
    rows = _weigh(_count_pieces(texts, 64), encoder.idf_).toarray()
    left, sizes, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    expected = left[:, :5] * sizes[:5]
    found = encoder.transform(frame(texts))
    assert_allclose(np.abs(found), np.abs(expected), atol=1e-8)  # each axis has two directions
    assert_allclose(found @ found.T, expected @ expected.T, atol=1e-8)


def test_words_that_no_fitted_text_has_are_found():
    encoder = TextEncoder().fit(frame([*repeated(), ""]))
    assert encoder.find_unseen(["Red xylophone", "", "apple wvy wvy"]) == (["xylophone", "wvy", "wvy"], 5)
    assert encoder.find_unseen(repeated()) == ([], sum(len(text.split()) for text in repeated()))


def test_alike_texts_are_near_and_empty_ones_are_the_mean():
    encoder = TextEncoder().fit(frame([*repeated(), ""]))
    red, green, car, empty = encoder.transform(frame(["red apple", "red apples", "blue car", ""]))
    assert np.linalg.norm(red - green) < 0.5 * np.linalg.norm(red - car)
    assert not empty.any()
    assert_allclose(encoder.transform(frame(repeated())).mean(axis=0), 0, atol=1e-10)


@pytest.mark.parametrize("max_fitted", [MAX_FITTED, 30])
def test_the_order_of_rows_changes_nothing_and_copies_of_them_change_distances_little(max_fitted, monkeypatch):
    monkeypatch.setattr(text_features, "MAX_FITTED", max_fitted)
    texts = repeated()
    expected = TextEncoder().fit(frame(texts)).transform(frame(texts))
    for seed in range(3):  # forests see directions, not only distances
        other = np.random.default_rng(seed).permutation(texts)
        assert_allclose(TextEncoder().fit(frame(other)).transform(frame(texts)), expected, atol=1e-8)
    twice = TextEncoder().fit(frame(texts * 2)).transform(frame(texts))
    assert_allclose(twice @ twice.T, expected @ expected.T, atol=0.05)


@pytest.mark.parametrize("texts", [["!"] * 30, ["", "a"], ["word"] * 5, [""] * 3])
def test_texts_that_say_nothing_are_columns_without_variance(texts):
    found = TextEncoder().fit(frame(texts)).transform(frame(texts))
    assert found.shape[1] >= 1
    assert np.isfinite(found).all()


def test_a_long_text_and_many_of_them_are_read_in_part():
    long = "x" * 10**6
    assert TextEncoder().fit(frame([long, "a b", "c d"])).transform(frame([long])).shape[0] == 1
    many = TextEncoder(n_axes=2, n_buckets=16).fit(frame([f"w{i}" for i in range(2 * MAX_FITTED)]))
    assert many.axes_.shape == (32, 2)


def test_the_encoder_is_cloned_and_names_its_coordinates():
    encoder = clone(TextEncoder(n_axes=3)).fit(frame(repeated()))
    assert list(encoder.get_feature_names_out(["remark"])) == ["remark_0", "remark_1", "remark_2"]
