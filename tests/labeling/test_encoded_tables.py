"""The whole way from a table to a matrix, judged by what can be learned from it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelweave.labeling.columns import plan_columns
from kernelweave.labeling.encoder import make_encoder


def texts(values):
    return [str(value) for value in values]


def svc_error(X, y, n_labeled=80, draws=3):
    """Mean error of a default SVC on the rows that `n_labeled` labels leave over, in per cent."""
    errors = []
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(y))
        labeled, rest = order[:n_labeled], order[n_labeled:]
        errors.append(np.mean(SVC(C=10).fit(X[labeled], y[labeled]).predict(X[rest]) != y[rest]))
    return 100 * np.mean(errors)


def as_table(X, y, name):
    return pd.DataFrame({name.format(j): texts(X[:, j]) for j in range(X.shape[1])}).assign(y=texts(y))


def encoded(X, y, name):
    frame = as_table(X, y, name)
    return make_encoder(plan_columns(frame, target="y")).fit_transform(frame)


def test_digits_lose_nothing_against_pixels_over_16():
    X, y = load_digits(return_X_y=True)
    assert svc_error(encoded(X, y, "p{}"), y) <= svc_error(X / 16, y) + 0.5


@pytest.mark.parametrize("name", ["V{}", "{}"])
def test_raw_wine_is_no_worse_than_standardised_wine(name):
    X, y = load_wine(return_X_y=True)
    assert_allclose(encoded(X, y, name), StandardScaler().fit_transform(X), atol=1e-9)


def test_numbers_of_sim_cards_change_nothing_and_a_far_clock_drowns_nothing():
    X, y = load_wine(return_X_y=True)
    rng, frame = np.random.default_rng(0), as_table(X, y, "V{}")
    expected = make_encoder(plan_columns(frame, target="y")).fit_transform(frame)
    for base in (10**20, 89490200000000000000, 2**60):
        marked = frame.assign(card=texts(base + int(v) for v in rng.integers(0, 10**6, len(y))))
        assert_array_equal(make_encoder(plan_columns(marked, target="y")).fit_transform(marked), expected)
    for clock in (
        5e14 + rng.integers(0, 10, len(y)),
        1e9 + 1e-5 * rng.normal(size=len(y)),
        1e20 + 1e6 * rng.random(len(y)),
    ):
        timed = frame.assign(clock=texts(clock))
        X_timed = make_encoder(plan_columns(timed, target="y")).fit_transform(timed)
        assert_allclose(X_timed.std(axis=0), 1)
        assert X_timed.shape[1] == X.shape[1] + 1
