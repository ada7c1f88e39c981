"""Generated samples against the theory of their recipes, and against the published samples where they are at hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from kernelweave import datasets
from kernelweave.datasets import make_g50c_like, make_g241c_like, make_g241n_like, make_waveform_like

GENERATORS = [make_g50c_like, make_g241c_like, make_g241n_like, make_waveform_like]
SIZES = {make_g50c_like: (550, 50), make_g241c_like: (1500, 241), make_g241n_like: (1500, 241)}
SIZES[make_waveform_like] = (5000, 21)


@pytest.mark.parametrize("make", GENERATORS)
def test_a_seed_decides_everything(make):
    first, again, other = make(random_state=[1, 2]), make(random_state=[1, 2]), make(random_state=[1, 3])
    assert_array_equal(first.data, again.data)
    assert_array_equal(first.target, again.target)
    assert not np.array_equal(first.data, other.data)


@pytest.mark.parametrize("make", GENERATORS)
def test_the_default_size_is_that_of_the_published_sample(make):
    sample = make(random_state=0)
    assert sample.data.shape == SIZES[make]
    assert sample.target.shape == SIZES[make][:1]
    assert len(sample.target_names) == len(np.unique(sample.target))


@pytest.mark.parametrize("make", GENERATORS)
def test_no_sample_pretends_to_be_the_published_one(make):
    assert make.__name__.endswith("_like")
    assert "not the published sample" in make(40, random_state=0).DESCR


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("n_samples", [0, 1.5, "10", True])
def test_a_bad_number_of_rows_is_refused(make, n_samples):
    with pytest.raises(ValueError, match=f"n_samples must be an integer .* got {n_samples!r}"):
        make(n_samples)


@pytest.mark.parametrize("make", GENERATORS[:3])
def test_classes_of_gaussians_have_equal_shares(make):
    counts = np.unique(make(102, random_state=0).target, return_counts=True)[1]
    assert abs(counts[0] - counts[1]) <= 1


@pytest.mark.parametrize("make", [make_g50c_like, make_g241c_like])
def test_two_gaussians_have_the_bayes_error_they_state(make):
    sample = make(40_000, random_state=0)
    train, test = slice(0, 30_000), slice(30_000, None)
    model = LinearDiscriminantAnalysis().fit(sample.data[train], sample.target[train])
    error = 1.0 - model.score(sample.data[test], sample.target[test])
    # the rule is the Bayes rule up to O(columns / rows); four standard deviations of 10000 Bernoulli draws
    assert_allclose(error, sample.bayes_error, atol=4 * np.sqrt(0.1 / 10_000) + 241 / 30_000 / 4)


def test_g241_samples_are_standardised():
    for make in (make_g241c_like, make_g241n_like):
        X = make(random_state=0).data
        assert_allclose(X.mean(axis=0), 0.0, atol=1e-12)
        assert_allclose(X.std(axis=0), 1.0, atol=1e-12)


def test_the_clusters_of_g241n_mislead():
    sample = make_g241n_like(20_000, random_state=0)
    X, y, pair = sample.data, sample.target, sample.pair
    # the pairs can be told apart almost surely (6 apart), and say nothing of the class
    direction = X[pair == 1].mean(axis=0) - X[pair == 0].mean(axis=0)
    side = X @ direction > 0
    assert np.mean(side == pair) > norm.cdf(2.5)
    assert abs(np.mean(y[pair == 0])) < 0.01
    assert abs(np.mean(y[pair == 1])) < 0.01
    # a linear rule can do better than chance, but not as well as the cluster of a row would
    error = 1.0 - LinearDiscriminantAnalysis().fit(X, y).score(X, y)
    assert norm.sf(1.5) < error < 0.25


def test_waves_are_mixtures_of_two_triangles_with_unit_noise():
    sample = make_waveform_like(30_000, random_state=0)
    h = [np.maximum(6.0 - np.abs(np.arange(1, 22) - peak), 0.0) for peak in (7, 11, 15)]
    for k, (a, b) in enumerate([(0, 2), (0, 1), (1, 2)]):
        X = sample.data[sample.target == k]
        # u has mean 1/2 and variance 1/12; 5 standard deviations of a mean of some 10000 rows
        assert_allclose(X.mean(axis=0), (h[a] + h[b]) / 2.0, atol=5 * 2.0 / 100.0)
        assert_allclose(X.var(axis=0), 1.0 + (h[a] - h[b]) ** 2 / 12.0, rtol=0.1)


@pytest.mark.data
def test_waves_are_distributed_as_the_published_ones():
    published, sample = datasets.load("waveform"), make_waveform_like(random_state=0)
    for k in range(3):
        ours, theirs = (set_.data[set_.target == k] for set_ in (sample, published))
        # each mean of some 1650 rows has a standard deviation below 2 / 40
        assert_allclose(ours.mean(axis=0), theirs.mean(axis=0), atol=5 * np.sqrt(2.0) * 2.0 / 40.0)


@pytest.mark.data
def test_the_pairs_of_g241n_are_as_far_apart_as_the_published_ones():
    published, sample = datasets.load("g241n"), make_g241n_like(random_state=0)
    distances = []
    for X, y in ((set_.data, set_.target) for set_ in (published, sample)):
        side = X @ np.linalg.svd(X, full_matrices=False)[2][0] > 0
        means = [[X[(side == k) & (y == sign)].mean(axis=0) for sign in (-1, 1)] for k in (False, True)]
        pair = np.linalg.norm(np.mean(means[0], axis=0) - np.mean(means[1], axis=0))
        distances.append([pair, *sorted(np.linalg.norm(np.subtract(*within)) for within in means)])
    # along the centers each mean of 375 rows has variance 1 / 375; five standard deviations of the difference
    assert_allclose(*distances, atol=5 * np.sqrt(4 / 375))


@pytest.mark.data
@pytest.mark.parametrize("name, make", [("g50c", make_g50c_like), ("g241c", make_g241c_like)])
def test_centers_of_gaussians_are_as_far_apart_as_the_published_ones(name, make):
    published, sample = datasets.load(name), make(random_state=0)
    distances = [
        np.linalg.norm(np.subtract(*(set_.data[set_.target == sign].mean(axis=0) for sign in (-1, 1))))
        for set_ in (published, sample)
    ]
    # along the centers each mean has variance 1 / 275 at most; five standard deviations of the difference
    assert_allclose(*distances, atol=5 * np.sqrt(4 / 275))
