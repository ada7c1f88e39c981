"""Bounded decision values, temperature and vector scaling, and the choice between them."""

import numpy as np
import pytest
from checks.partly_labeled import NearestMean
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss

from kernelweave.model_selection.scaling import (
    MIN_SLOPE,
    Scaling,
    bound_values,
    choose_scaling,
    fit_temperature_scaling,
    fit_vector_scaling,
    log_probabilities,
    most_probable,
    scale_held_out,
)

FITS = {"temperature": fit_temperature_scaling, "vector": fit_vector_scaling}


def sample(seed, n_classes, n_rows=60, informed=2.0, wild=0.0):
    """Decision values that know something of the class, of which a share is up to 600 times as large."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % n_classes
    decision = rng.normal(size=(n_rows, n_classes)) + informed * (np.eye(n_classes)[codes] - 0.5)
    hit = rng.random(n_rows) < wild
    decision[hit, 1] *= rng.uniform(100, 600, hit.sum()) * rng.choice([-1, 1], hit.sum())
    return (decision[:, 1] if n_classes == 2 else decision), codes


def quartile_range(values, members, weights):
    """Middle and distance of the balanced quartiles, from a sample in which rows are repeated."""
    n_in, n_out = weights[members].sum(), weights[~members].sum()
    repeats = (weights * np.where(members, n_out, n_in)).astype(int)
    lower, upper = (sign * np.quantile(sign * values.repeat(repeats), 0.25, method="inverted_cdf") for sign in (1, -1))
    return (lower + upper) / 2, upper - lower


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2))
def test_bounded_values_keep_their_order_and_are_at_most_two(values):
    result = bound_values(np.sort(values))
    assert (np.diff(result) >= 0).all()
    assert np.abs(result).max() <= 2
    assert_array_equal(bound_values(-np.sort(values)), -result)


def test_bounded_values_are_unchanged_near_zero_and_have_a_continuous_derivative():
    near, far = np.linspace(-1.5, 1.5, 31), np.array([1.6, 2.0, 5.0, 605.0])
    assert_array_equal(bound_values(near), near)
    assert_allclose(bound_values(far), 1.5 + (far - 1.5) / 2 / (far - 1))
    steps = np.diff(bound_values(np.array([1.5 - 1e-6, 1.5, 1.5 + 1e-6]))) / 1e-6
    assert_allclose(steps, 1, atol=1e-5)


def vector_objective(scaling, decision, codes, weights):
    """Log loss to soft targets and priors, written out anew; a function of slopes and offsets."""
    columns = decision.reshape(len(codes), -1)
    n_classes, two = max(2, columns.shape[1]), columns.shape[1] == 1
    counts = np.bincount(codes, weights, minlength=n_classes)
    shares = np.log(counts + 1)
    shares = shares[1:] - shares[0] if two else shares - shares.mean()
    u = bound_values((columns - scaling.center) / scaling.unit)
    soft = 1 / (weights.sum() + 2)
    target = np.where(np.eye(n_classes)[codes] > 0, 1 - soft, soft / (n_classes - 1))

    def objective(theta):
        slope, offset = np.split(theta, 2)
        z = u * slope + offset
        z = np.column_stack([np.zeros(len(z)), z]) if two else z
        loss = -weights @ np.sum(target * log_softmax(z, axis=1), axis=1)
        return loss + np.sum((slope - slope.mean()) ** 2) / 2 + np.sum((offset - shares) ** 2) / 2

    return objective


@settings(max_examples=40)
@given(st.integers(0, 1000), st.integers(2, 6), st.sampled_from([-1.0, 0.0, 2.0, 30.0]), st.sampled_from([0.0, 0.1]))
def test_vector_scaling_is_the_minimum_of_its_convex_problem(seed, n_classes, informed, wild):
    decision, codes = sample(seed, n_classes, informed=informed, wild=wild)
    weights = np.random.default_rng(seed).integers(1, 4, len(codes)).astype(float)
    scaling = fit_vector_scaling(decision, codes, weights)
    columns = decision.reshape(len(codes), -1)
    for k, column in enumerate(columns.T, start=n_classes == 2):
        center, unit = quartile_range(column, codes == k, weights)
        assert_allclose(scaling.center[k - (n_classes == 2)], center)
        assert_allclose(scaling.unit[k - (n_classes == 2)], unit)
    objective = vector_objective(scaling, decision, codes, weights)
    theta = np.append(scaling.slope, scaling.offset)
    slopes = np.arange(len(theta)) < len(scaling.slope)
    step = 1e-5
    for i, direction in enumerate(np.eye(len(theta))):
        up, down = (objective(theta + sign * step * direction) for sign in (1, -1))
        derivative = (up - down) / (2 * step)
        # central differences of a sum over rows are right up to about step^2 and rounding / step
        if slopes[i] and theta[i] <= 1e-9:
            assert derivative > -1e-4 * weights.sum()
        else:
            assert abs(derivative) < 1e-4 * weights.sum()
    assert (scaling.slope >= 0).all()


@settings(max_examples=40)
@given(st.integers(0, 1000), st.integers(2, 6), st.sampled_from([-1.0, 0.0, 2.0, 30.0]))
def test_temperature_scaling_is_the_minimum_over_one_slope_and_keeps_the_classes(seed, n_classes, informed):
    decision, codes = sample(seed, n_classes, informed=informed, wild=0.1)
    scaling = fit_temperature_scaling(decision, codes, np.ones(len(codes)))
    soft = 1 / (len(codes) + 2)
    target = np.where(np.eye(n_classes)[codes] > 0, 1 - soft, soft / (n_classes - 1))

    def loss(slope):
        other = Scaling(scaling.center, scaling.unit, slope, scaling.offset / scaling.slope * slope)
        return -np.sum(target * log_probabilities(other(decision)))

    least = loss(scaling.slope)
    assert least <= loss(1.001 * scaling.slope) + 1e-9 * least
    assert scaling.slope[0] == MIN_SLOPE or least <= loss(0.999 * scaling.slope) + 1e-9 * least
    for values in (decision, 100 * decision):  # new rows may be further out
        assert_array_equal(most_probable(scaling(values)), most_probable(values))
    assert np.ptp(scaling.slope) == np.ptp(scaling.center) == np.ptp(scaling.unit) == 0


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_a_weight_counts_as_so_many_rows(fit, n_classes):
    decision, codes = sample(0, n_classes)
    repeats = np.random.default_rng(0).integers(1, 4, len(codes))
    weighted = fit(decision, codes, repeats.astype(float))
    again = fit(decision.repeat(repeats, axis=0), codes.repeat(repeats), np.ones(repeats.sum()))
    assert_allclose(weighted(decision), again(decision), rtol=1e-5, atol=1e-6)
    parts = np.arange(len(codes)) // n_classes % 5
    choice = choose_scaling(decision, codes, repeats.astype(float), parts)
    other = choose_scaling(
        decision.repeat(repeats, axis=0), codes.repeat(repeats), np.ones(repeats.sum()), parts.repeat(repeats)
    )
    assert choice.keeps_classes == other.keeps_classes
    assert_array_equal(choice.held_out.repeat(repeats), other.held_out)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.sampled_from([2, 3, 5]), st.sampled_from([0.0, 0.1]))
def test_logits_never_reorder_the_rows_of_a_column(seed, n_classes, wild):
    decision, codes = sample(seed, n_classes, wild=wild)
    for fit in FITS.values():
        logits = fit(decision, codes, np.ones(len(codes)))(np.sort(decision, axis=0))
        assert (np.diff(logits, axis=0) >= 0).all()
        assert np.isfinite(logits).all()


@settings(max_examples=30)
@given(st.integers(0, 1000), st.sampled_from([2, 3, 5]))
def test_vector_scaling_does_not_depend_on_unit_and_origin_of_any_column(seed, n_classes):
    decision, codes = sample(seed, n_classes, wild=0.05)
    rng = np.random.default_rng(seed)
    n_columns = decision.reshape(len(codes), -1).shape[1]
    scale, shift = 10 ** rng.uniform(-3, 3, n_columns), rng.normal(size=n_columns)
    other = decision * scale + shift * scale
    ones = np.ones(len(codes))
    expected = fit_vector_scaling(decision, codes, ones)(decision)
    # the problems are equal up to rounding; the solver stops at a gradient of 1e-10
    assert_allclose(fit_vector_scaling(other, codes, ones)(other), expected, rtol=1e-4, atol=1e-5)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([2, 4]), st.floats(-6, 6))
def test_the_choice_does_not_depend_on_the_unit_of_decision_values(seed, n_classes, exponent):
    decision, codes = sample(seed, n_classes, informed=1.0)
    parts, ones = np.arange(len(codes)) // n_classes % 5, np.ones(len(codes))
    scale = 2.0 ** np.round(exponent)  # exact, so that no tie is decided by rounding
    choice, other = (choose_scaling(each, codes, ones, parts) for each in (decision, scale * decision))
    assert choice.keeps_classes == other.keeps_classes
    assert_allclose(other.scaling(scale * decision), choice.scaling(decision), rtol=1e-6, atol=1e-9)


def test_with_many_rows_the_true_logistic_is_reached():
    rng = np.random.default_rng(0)
    f = rng.normal(size=20000)
    codes = (rng.random(20000) < expit(2 * f - 1)).astype(int)
    choice = choose_scaling(f, codes, np.ones(20000), np.arange(20000) % 5)
    assert not choice.keeps_classes
    grid = np.linspace(-2, 2, 41)  # beyond, values are compressed
    found = np.exp(log_probabilities(choice.scaling(grid)))[:, 1]
    # asymptotic standard errors of probabilities are below 0.005; the compressed 4 % of the rows add as much
    assert_allclose(found, expit(2 * grid - 1), atol=0.025)


def test_with_many_rows_the_true_slopes_and_offsets_of_many_classes_are_reached():
    rng = np.random.default_rng(1)
    f, slope, offset = rng.normal(size=(12000, 4)), np.array([1.0, 2.0, 3.0, 2.0]), np.array([0.0, 1.0, -1.0, 0.5])
    known = softmax(slope * f + offset, axis=1)
    codes = (known.cumsum(axis=1) > rng.random((12000, 1))).argmax(axis=1)
    choice = choose_scaling(f, codes, np.ones(12000), np.arange(12000) % 5)
    assert not choice.keeps_classes
    found = np.exp(log_probabilities(choice.scaling(f)))
    inside = (np.abs(f) < 2).all(axis=1)
    assert np.abs(found - known)[inside].mean() < 0.015
    assert np.abs(found - known)[inside].max() < 0.08  # four columns next to the compressed ends
    kept = fit_temperature_scaling(f, codes, np.ones(12000))
    assert log_loss(codes, found) < log_loss(codes, np.exp(log_probabilities(kept(f)))) - 0.05


class Given(NearestMean):
    """The decision values are given, as X."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0] if len(self.classes_) == 2 else np.asarray(X)


def platt(decision, codes, test):
    """Probabilities by Platt's sigmoid for each class, divided by their sum, as scikit-learn has them."""
    X, X_test = (each.reshape(len(each), -1) for each in (decision, test))
    model = CalibratedClassifierCV(FrozenEstimator(Given().fit(X, codes)), method="sigmoid", ensemble=False)
    return model.fit(X, codes).predict_proba(X_test)


def ours(decision, codes, test):
    n_classes = codes.max() + 1
    choice = choose_scaling(decision, codes, np.ones(len(codes)), np.arange(len(codes)) // n_classes % 5)
    return np.exp(log_probabilities(choice.scaling(test)))


def test_a_few_wild_values_do_not_spoil_a_class():
    decision, codes = sample(0, 4, n_rows=120)
    decision[[5, 10, 15], 0] = [605.0, 300.0, 411.0]  # of the class 0, in rows of others
    test, truth = sample(1, 4, n_rows=2000)
    sigmoids, found = platt(decision, codes, test), ours(decision, codes, test)
    plain = np.mean(test.argmax(axis=1) != truth)
    assert np.mean(sigmoids.argmax(axis=1) != truth) > plain + 0.05
    assert np.mean(found.argmax(axis=1) != truth) < plain + 0.01
    assert 0.2 < np.mean(found.argmax(axis=1) == 0) < 0.3
    assert log_loss(truth, found) < log_loss(truth, sigmoids) - 0.2


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n_rows", [60, 240])
@pytest.mark.parametrize("wild", [0.0, 0.04])
def test_log_loss_and_error_on_new_rows_are_no_worse_than_those_of_platts_sigmoids(n_classes, n_rows, wild):
    differences = []
    for seed in range(8):
        decision, codes = sample(seed, n_classes, n_rows, wild=wild)
        test, truth = sample(100 + seed, n_classes, 1000, wild=wild)
        found, sigmoids = ours(decision, codes, test), platt(decision, codes, test)
        errors = [np.mean(each.argmax(axis=1) != truth) for each in (found, sigmoids)]
        differences.append([log_loss(truth, found) - log_loss(truth, sigmoids), errors[0] - errors[1]])
    mean, error = np.mean(differences, axis=0), np.std(differences, axis=0) / np.sqrt(8)
    # no worse up to two standard errors of the paired difference, and 0.002 for targets that are softer or harder
    assert (mean < 2 * error + 0.002).all()
    if wild:
        assert mean[0] < -0.02


def test_thresholds_that_are_wrong_are_moved_and_right_ones_are_kept():
    decision, codes = sample(3, 2, n_rows=100, informed=3.0)
    parts, ones = np.arange(100) // 2 % 5, np.ones(100)
    assert choose_scaling(decision, codes, ones, parts).keeps_classes
    moved = choose_scaling(decision + 5, codes, ones, parts)
    assert not moved.keeps_classes
    errors = np.mean(most_probable(decision) != codes)
    assert np.mean(most_probable(decision + 5) != codes) > 0.4
    assert np.mean(moved.held_out != codes) < errors + 0.05
    assert_array_equal(choose_scaling(decision, codes, ones, parts).held_out, most_probable(decision))


def test_held_out_classes_come_from_scalings_that_have_not_seen_the_row():
    decision, codes = sample(3, 3, n_rows=90, informed=2.0)
    decision = decision * [1, 10, 100]
    parts = np.arange(90) // 3 % 5
    choice = choose_scaling(decision, codes, np.ones(90), parts)
    assert not choice.keeps_classes
    for part in range(5):
        kept = parts != part
        scaling = fit_vector_scaling(decision[kept], codes[kept], np.ones(kept.sum()))
        assert_array_equal(choice.held_out[~kept], most_probable(scaling(decision[~kept])))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_probabilities_come_from_scalings_that_have_not_seen_the_row(n_classes):
    decision, codes = sample(0, n_classes)
    weights, parts = np.ones(len(codes)), np.arange(len(codes)) // 3 % 3
    choice = choose_scaling(decision, codes, weights, parts)
    found = scale_held_out(choice, decision, codes, weights, parts)
    assert_allclose(found.sum(axis=1), 1.0)
    fit = fit_temperature_scaling if choice.keeps_classes else fit_vector_scaling
    test = parts == 1
    expected = np.exp(log_probabilities(fit(decision[~test], codes[~test], weights[~test])(decision[test])))
    assert_allclose(found[test], expected)
    alone = np.where(codes == 0, 0, 1 + parts)  # one part holds a whole class
    all_rows = np.exp(log_probabilities(choice.scaling(decision)))
    assert_allclose(scale_held_out(choice, decision, codes, weights, alone)[codes == 0], all_rows[codes == 0])


def test_where_one_part_holds_a_whole_class_nothing_is_compared_and_classes_are_kept():
    decision, codes = sample(3, 2, n_rows=40)
    for parts in (np.zeros(40, dtype=int), codes):
        choice = choose_scaling(decision + 5, codes, np.ones(40), parts)
        assert choice.keeps_classes
        assert_array_equal(choice.held_out, most_probable(decision + 5))


def test_the_slope_of_a_class_with_few_rows_is_drawn_to_those_of_the_others():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [60, 60, 2])
    decision = rng.normal(size=(122, 3)) + 4 * np.eye(3)[codes]
    decision[:, 2] = rng.normal(size=122)  # says nothing
    few = fit_vector_scaling(decision, codes, np.ones(122)).slope
    many = fit_vector_scaling(decision, codes, np.where(codes == 2, 30.0, 1.0)).slope
    assert many[2] < 0.3 * many[:2].min()
    assert few[2] / few[:2].min() > many[2] / many[:2].min()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_and_almost_constant_decision_values_are_scaled_without_a_fault(n_classes):
    shape = 30 if n_classes == 2 else (30, n_classes)
    codes, ones = np.arange(30) % n_classes, np.ones(30)
    for value in (0.0, 7.0):
        vector = fit_vector_scaling(np.full(shape, value), codes, ones)
        assert_array_equal(vector.slope, 0)
        assert_allclose(np.exp(log_probabilities(vector(np.full(shape, value)))), 1 / n_classes, atol=1e-6)
        assert (fit_temperature_scaling(np.full(shape, value), codes, ones).slope == MIN_SLOPE).all()
    spike = np.zeros(shape)
    spike[codes == 1] = np.eye(n_classes)[1] if n_classes > 2 else 1.0
    spike[:20] = 0.0  # more than half of each class is one value
    for fit in FITS.values():
        scaling = fit(spike, codes, ones)
        assert np.isfinite(scaling(spike)).all()
        assert (scaling.unit > 0).all()
