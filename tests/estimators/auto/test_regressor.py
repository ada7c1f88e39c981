"""The regressor: what it gives out, what it says of its error, and numbers of every awkward kind."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from checks.auto_fits import protect, statuses
from scipy import sparse
from scipy.stats import t
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from kernelweave import RBF, AutoKernelRegressor, Linear, MKLRegressor, OnColumns, load, save
from kernelweave.estimators.auto.leaderboard import widen_for_folds
from kernelweave.solvers.result import Status

MACHINE = ("machine", MKLRegressor(C=10.0, weighting="uniform"))  # takes the library, and chooses nothing
CHEAP = ["harmonic", "SVM", MACHINE]


def make(candidates=CHEAP, **options):
    return AutoKernelRegressor(
        candidates, **{"kernels": [RBF(), Linear()], "n_repeats": 1, "random_state": 0, **options}
    )


@cache
def waves(n=90, n_labeled=45, noise=0.05):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n, 2))
    truth = np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)
    y = np.where(np.arange(n) < n_labeled, truth, np.nan)
    return protect(X, truth, y)


@cache
def fitted():
    X, _, y = waves()
    return make().fit(X, y)


def test_numbers_are_learned_and_the_error_is_said():
    X, truth, y = waves()
    model = fitted()
    assert model.score(X, truth) > 0.9
    np.testing.assert_array_equal(model.transduction_[:45], y[:45])
    np.testing.assert_allclose(model.transduction_[45:], model.predict(X)[45:])
    residuals = model.oof_predictions_ - truth[model.oof_rows_]
    assert model.error_.value == pytest.approx(np.sqrt(np.mean(residuals**2)))
    assert model.error_.low <= model.error_.value <= model.error_.high
    assert sum(member.weight for member in model.members_) == pytest.approx(1.0)
    assert set(statuses(model)) == {"harmonic", "SVM", "machine"}


def test_a_prediction_is_the_weighted_mean_of_the_members():
    X, _, _ = waves()
    expected = sum(member.weight * member.model.predict(X) for member in fitted().members_)
    np.testing.assert_allclose(fitted().predict(X), expected)


def test_the_table_has_roots_of_mean_squares_and_their_units():
    _, truth, _ = waves()
    model = make(["SVM"]).fit(*waves()[::2])
    record = model.leaderboard_[0]
    assert record["error"] == pytest.approx(model.error_.value)
    assert record["log_loss"] == pytest.approx(record["error"] ** 2 / np.var(truth[:45]))
    # The interval is that of the logarithm, wider since folds share rows.
    deviation = record["standard_error"] / record["error"] * np.sqrt(widen_for_folds(45, len(truth) - 45))
    assert np.log(model.error_.high / model.error_.value) == pytest.approx(t.ppf(0.975, 2 * 45 / 14) * deviation)


def test_what_each_candidate_predicts_of_held_out_rows_is_kept():
    _, truth, _ = waves()
    model = fitted()
    for record in model.leaderboard_:
        rows, predicted = model.candidate_predictions_[record["candidate"]]
        assert record["error"] == pytest.approx(np.sqrt(np.mean(np.square(predicted - truth[rows]))))


def test_what_was_not_tested_has_no_error_in_the_table():
    X, _, y = waves()
    model = make(max_time=1e-9).fit(X, y)
    assert model.status_ is Status.SEARCH_TIME
    assert np.isnan([record["error"] for record in model.leaderboard_]).all()
    assert np.isnan([record["standard_error"] for record in model.leaderboard_]).all()
    assert model.error_ is None


def test_the_best_alone_is_the_model_that_predicts():
    X, _, y = waves()
    model = make(combine="best").fit(X, y)
    assert len(model.members_) == 1
    np.testing.assert_array_equal(model.predict(X), model.members_[0].model.predict(X))
    best = min(model.leaderboard_, key=lambda record: record["error"])
    assert model.members_[0].name == best["candidate"]


def test_intervals_hold_the_truth_and_grow_with_the_coverage():
    X, truth, _ = waves()
    model = fitted()
    narrow, wide = (model.predict_interval(X, coverage) for coverage in (0.5, 0.9))
    assert narrow.shape == (90, 2)
    np.testing.assert_allclose(narrow.mean(axis=1), model.predict(X))
    assert (wide[:, 1] - wide[:, 0] >= narrow[:, 1] - narrow[:, 0]).all()
    inside = (wide[:, 0] <= truth) & (truth <= wide[:, 1])
    assert inside[45:].mean() >= 0.75  # 45 unlabelled rows: three deviations below 0.9
    assert np.isinf(model.predict_interval(X, 0.999)).all()


def test_a_wrong_number_is_the_first_suspect():
    X, truth, y = waves()
    wrong = y.copy()
    wrong[11] += 6.0
    suspects = make().fit(X, wrong).suspect_labels(2)
    assert suspects[0]["row"] == 11
    assert suspects[0]["given"] == wrong[11]
    assert abs(suspects[0]["suggested"] - truth[11]) < 3.0
    assert len(suspects) == 2


def test_noise_is_predicted_no_better_than_by_its_deviation():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    model = make().fit(X, y)
    assert model.error_.high >= np.std(y)
    assert np.std(model.predict(rng.normal(size=(60, 3)))) < np.std(y)


def test_the_best_single_model_has_a_certificate_and_is_a_copy():
    X, truth, _ = waves()
    single = fitted().refit_single()
    assert single is not fitted().best_estimator_
    assert single.certificate_.gap >= 0.0
    assert single.score(X, truth) > 0.8
    assert make([LinearRegression()]).fit(X, truth).refit_single() is None


def test_where_numbers_are_too_few_nothing_is_said_of_the_error():
    X, truth, _ = waves()
    model = make().fit(X, np.where(np.arange(90) < 5, truth, np.nan))
    assert model.error_ is None
    assert model.suspect_labels() == []
    assert np.isinf(model.predict_interval(X)).all()
    np.testing.assert_allclose([member.weight for member in model.members_], 1 / 3)
    assert model.explain().startswith("There are too few labels")


def test_equal_numbers_are_learned():
    X, _, _ = waves()
    model = make().fit(X, np.full(90, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0, atol=1e-6)


def test_groups_are_held_out_together():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 5)
    X = rng.normal(size=(10, 2))[groups] + 0.01 * rng.normal(size=(50, 2))
    y = rng.normal(size=10)[groups]
    apart, together = make(["SVM"]).fit(X, y), make(["SVM"]).fit(X, y, groups=groups)
    assert together.error_.value > 1.5 * apart.error_.value


def test_rows_of_weight_zero_are_ignored_but_answered():
    X, truth, y = waves()
    weight = np.where(np.arange(90) % 5 == 0, 0.0, 1.0)
    strange = np.where(weight == 0, 1e6, y)
    model = make().fit(X, strange, sample_weight=weight)
    expected = make().fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-9)
    assert len(model.transduction_) == 90
    assert not np.isin(np.flatnonzero(weight == 0), model.oof_rows_).any()
    assert np.abs(model.predict(X)).max() < 10 * np.abs(truth).max()


def test_frames_and_sparse_rows_are_taken():
    X, truth, y = waves()
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = make([MACHINE], kernels=[OnColumns(RBF(), ["a"]), OnColumns(Linear(), ["b"])]).fit(frame, y)
    assert model.score(frame, truth) > 0.9
    assert model.feature_names_in_.tolist() == ["a", "b"]
    thin = make(["harmonic", MACHINE, "ridge regression"]).fit(sparse.csr_array(X), y)
    assert thin.score(sparse.csr_array(X), truth) > 0.8
    assert not any(status.startswith("failed") for status in statuses(thin).values())


def test_a_model_from_a_file_says_the_same(tmp_path):
    pytest.importorskip("skops")
    X, _, y = waves()
    model = make([MACHINE, "ridge regression", "gradient boosting"]).fit(X, y)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-12)
    assert again.explain() == model.explain()
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))


def test_the_explanation_names_error_and_members():
    lines = fitted().explain().splitlines()
    assert lines[0].startswith("Root mean squared error of held-out rows: ")
    assert all(member.name in lines[1] for member in fitted().members_)


def test_the_explanation_of_standardised_numbers_is_in_their_unit():
    assert fitted().explain(unit=1000.0).splitlines()[0].endswith(f": {fitted().error_.times(1000.0)}.")
    with pytest.raises(ValueError, match=r"explain got unit=-1; expected a positive finite number\."):
        fitted().explain(unit=-1)


class Stop(RegressorMixin, BaseEstimator):
    """Interrupts a fit."""

    def fit(self, X, y):
        raise KeyboardInterrupt


def test_an_interrupt_keeps_what_is_finished_and_says_so():
    X, _, y = waves()
    model = make(["SVM", Stop(), "harmonic"]).fit(X, y)
    assert model.status_ is Status.SEARCH_STOPPED
    assert set(statuses(model)) == {"SVM"}
    other = make([Stop()])
    with pytest.raises(KeyboardInterrupt):
        other.fit(X, y)
    with pytest.raises(NotFittedError):
        other.explain()


def test_the_same_seed_gives_the_same_bits():
    X, _, y = waves()
    np.testing.assert_array_equal(make().fit(X, y).predict(X), fitted().predict(X))
