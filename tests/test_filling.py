import math

import numpy as np
import pytest
from scipy.stats import binomtest, wilcoxon
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import SSMKClassifier, SSMKRegressor
from kernelweave.filling import (
    SIGNIFICANT,
    ClassModel,
    NumberModel,
    as_numbers,
    class_error,
    covering_radius,
    decimal_mark,
    guess_task,
    mcnemar,
    number_form,
    signed_rank,
    wilson_interval,
    with_thousands,
)
from kernelweave.model_selection import SigmoidCalibratedClassifier


@pytest.fixture(name="X")
def rows():
    return np.random.default_rng(0).normal(size=(60, 2))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_label_is_the_most_probable_class(X, n_classes):
    labels = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.3, 0.5][: n_classes - 1])]
    calibrated = SigmoidCalibratedClassifier(SSMKClassifier(), random_state=0).fit(X, labels)
    texts, beside = ClassModel(calibrated, True).cells(X, "y")
    probabilities = np.array(beside["y_probability"], dtype=float)
    np.testing.assert_allclose(probabilities, calibrated.predict_proba(X).max(axis=1), atol=1e-4)
    np.testing.assert_array_equal(texts, calibrated.predict(X))
    assert (np.array(beside["y_margin"], dtype=float) >= 0).all()


def test_without_probabilities_the_label_is_the_mixtures(X):
    calibrated = SigmoidCalibratedClassifier(SSMKClassifier(), random_state=0).fit(X, X[:, 0] > 0)
    texts, beside = ClassModel(calibrated, False).cells(X, "y")
    np.testing.assert_array_equal(texts, calibrated.estimator_.predict(X))
    assert set(beside["y_probability"]) == {""}


def test_numbers_are_written_as_the_given_ones_are(X):
    mixture = SSMKRegressor().fit(X, X[:, 0])
    texts, beside = NumberModel(mixture, 1e6, 1e4, 500.0, ".0f", ".").cells(X, "y")
    assert all(text.isdigit() for text in texts)
    assert float(beside["y_high"][0]) - float(beside["y_low"][0]) == pytest.approx(1000.0, abs=1.0)
    texts, _ = NumberModel(mixture, 0.0, 1.0, 1.0, ".2f", ",").cells(X, "y")
    assert all(len(text.partition(",")[2]) == 2 for text in texts)
    texts, beside = NumberModel(mixture, 2e-11, 1e-12, 1e-12, ".3e", ",").cells(X, "y")
    np.testing.assert_allclose(
        [float(text.replace(",", ".")) for text in texts], 2e-11 + 1e-12 * mixture.predict(X), 1e-3
    )
    assert all("," in text and "e-11" in text for text in beside["y_high"])
    assert set(NumberModel(mixture, 0.0, 1.0, np.nan, ".2f", ".").cells(X, "y")[1]["y_low"]) == {""}


def test_a_fitted_model_is_the_last_step_of_a_pipeline(X):
    model = NumberModel(SSMKRegressor().fit(X, X[:, 0]), 2.0, 3.0, 1.0, ".2f", ".")
    pipeline = Pipeline([("scale", StandardScaler(with_mean=False, with_std=False).fit(X)), ("model", model.fit(X))])
    np.testing.assert_allclose(pipeline.predict(X), 2.0 + 3.0 * model.mixture.predict(X))


@pytest.mark.parametrize(
    "labels, task",
    [
        (["a", "b"], "classification"),
        (["0", "1", "2"], "classification"),
        ([str(i) for i in range(30)], "regression"),
        ([f"{i / 7:.3f}" for i in range(15)], "regression"),
        (["1.5", "2.5"], "classification"),
        (["nan", "1"] * 20, "classification"),
        ([str(i) for i in range(30)] + ["x"], "classification"),
    ],
)
def test_the_task_is_guessed_from_the_target(labels, task):
    assert guess_task(np.array(labels, dtype=object)) == task


def test_numbers_are_read_from_texts():
    np.testing.assert_array_equal(as_numbers(np.array(["1", "-2.5", "1e3"], dtype=object)), [1, -2.5, 1000])
    assert as_numbers(np.array(["1", "inf"], dtype=object)) is None


@pytest.mark.parametrize("wrong, rows", [(0, 10), (3, 50), (50, 50)])
def test_the_interval_is_wilsons(wrong, rows):
    expected = binomtest(wrong, rows).proportion_ci(method="wilson")
    np.testing.assert_allclose(wilson_interval(wrong, rows), expected, atol=1e-6)


def test_the_radius_covers_the_wanted_share():
    assert covering_radius(np.arange(1.0, 100.0)) == 90.0
    assert np.isnan(covering_radius(np.ones(5)))


@pytest.mark.parametrize(
    "labels, numbers",
    [
        (["3,5", "12,75", "4"], [3.5, 12.75, 4.0]),
        (["3,5", "1,067"], [3.5, 1.067]),  # 3,5 cannot be thousands
        (["0,125", "2,250"], [0.125, 2.25]),
        (["1234,567", "2"], [1234.567, 2.0]),
        ([" 3.5", ".5", "5.", "+1E-3"], [3.5, 0.5, 5.0, 0.001]),
        (["999", "1,067"], None),
        (["1,234,567", "1,5"], None),
        (["999.50", "1,067.25"], None),
        (["3,5", "2.5"], None),
        (["26_0", "1_1"], None),
        (["1", ""], None),
        (["1e999"], None),
        (["0x10"], None),
    ],
)
def test_a_text_is_a_number_only_if_it_can_be_no_other(labels, numbers):
    found = as_numbers(labels)
    assert (found is None) if numbers is None else (found.tolist() == numbers)


@pytest.mark.parametrize(
    "labels, first",
    [
        (["999", "1,067", "2,001"], "1,067"),
        (["1,234,567", "1,5"], "1,234,567"),
        (["999.50", "1,067.25"], "1,067.25"),
        (["1.067,50", "12,75"], "1.067,50"),
        (["1 067", "999"], "1 067"),
        (["1'067", "999"], "1'067"),
        (["3,5", "1,067"], None),
        (["1.067", "999"], None),
        (["1,067", "red"], None),
        (["26_0"], None),
    ],
)
def test_marks_between_thousands_are_seen(labels, first):
    assert with_thousands(labels) == first


@pytest.mark.parametrize(
    "labels, form",
    [
        (["1", "22"], ".0f"),
        (["1,5", "22,75"], ".2f"),
        (["0.00000000003"], ".11f"),
        (["3e-11", "2e-11"], ".2e"),
        (["3.2e-11", "2.1234E-11"], ".4E"),
        (["0.00012", "3.25e-05"], ".3g"),
        (["1.2345678901234567890e5"], ".16e"),
    ],
)
def test_the_form_of_numbers_is_that_of_the_column(labels, form):
    assert number_form(labels) == form
    mark = decimal_mark(labels)
    value = as_numbers(labels)[0]
    assert as_numbers([format(value, form).replace(".", mark)])[0] == pytest.approx(value, rel=1e-2)


def test_the_balanced_error_is_the_mean_over_classes():
    error = class_error(np.array(["a", "a", "a", "b"]), np.array(["a", "a", "b", "a"]))
    assert error["error"] == 0.5
    assert error["balanced_error"] == pytest.approx((1 / 3 + 1) / 2)
    assert error["interval"] == list(wilson_interval(2, 4))


def test_mcnemar_counts_the_rows_on_which_two_disagree_and_no_others():
    ours, other = np.zeros((2, 40), dtype=bool)
    ours[:9], other[8:11] = True, True  # 8 rows are wrong for us alone, 2 for the other alone
    expected = 2 * sum(math.comb(10, k) for k in range(3)) / 2**10
    assert mcnemar(ours, other) == pytest.approx(expected)
    assert mcnemar(other, ours) == pytest.approx(expected)
    assert mcnemar(ours, ours) == 1.0


@pytest.mark.parametrize("n_rows, n_worse, significant", [(5, 5, False), (6, 6, True), (20, 14, False), (20, 15, True)])
def test_a_few_rows_are_not_clear(n_rows, n_worse, significant):
    ours = np.arange(n_rows) < n_worse
    assert (mcnemar(ours, ~ours) < 0.05) is significant


def test_signed_ranks_speak_for_the_other_method_only():
    rng = np.random.default_rng(0)
    large, small = rng.exponential(size=(2, 60)) * [[2.0], [1.0]]
    assert signed_rank(large, small) == pytest.approx(wilcoxon(large, small).pvalue)
    assert signed_rank(small, large) == 1.0
    assert signed_rank(small, small) == 1.0
    outlier = np.append(np.full(30, 1.0), 1e3)  # its mean is larger, its ranks are smaller
    assert signed_rank(outlier, np.append(np.full(30, 1.1), 1.0)) == 1.0


def test_equal_methods_are_told_apart_at_the_level_of_the_test():
    rng = np.random.default_rng(0)
    found = [mcnemar(*(rng.random((2, 60)) < 0.2)) < SIGNIFICANT for _ in range(400)]
    assert np.mean(found) < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)  # the test is exact: at most 5 %
