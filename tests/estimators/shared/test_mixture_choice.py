import time

import numpy as np
import pytest
from checks.fit_order import labeled_rows
from sklearn.datasets import make_moons

from kernelweave import RBF, CGBoostClassifier, CGBoostRegressor, Linear, SSMKClassifier, SSMKRegressor
from kernelweave.estimators.shared import fold_choice, mixture_choice
from kernelweave.estimators.shared.fold_choice import split_labeled
from kernelweave.estimators.shared.mixture import MixtureOptions
from kernelweave.kernels.library import KernelLibrary
from kernelweave.solvers.deadline import Deadline

KERNELS = [RBF(0.5), Linear()]
NUMBERS = (SSMKRegressor, CGBoostRegressor)


def noisy(seed=0, n=120, n_labeled=60, share=0.3):
    """Rows of which one feature in six tells the class, and a share of the labels is wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    classes = (X[:, 0] > 0).astype(int)
    given = np.where(rng.random(n) < share, 1 - classes, classes)
    return X, np.where(np.arange(n) < n_labeled, given, -1), classes


def numbers(seed=0, n=120, n_labeled=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    truth = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.where(np.arange(n) < n_labeled, truth, np.nan), truth


def folds_of(X, y, n_labeled, is_classes=True):
    """Numbers of the rows that are kept and held out, of which the first have labels."""
    rows = labeled_rows(X, np.arange(len(X)) < n_labeled)
    folds = split_labeled(y[rows] if is_classes else None, n_labeled, np.random.default_rng(mixture_choice.SEED))
    return [(rows[kept], rows[held]) for kept, held in folds]


# What is compared


def test_the_scores_of_folds_are_those_of_fits_without_the_held_out_labels(monkeypatch):
    monkeypatch.setattr(mixture_choice, "FOLD_TOL", 1e-8)
    X, y, _ = noisy(1, n_labeled=50)
    options = {"column_scale": None, "tol": 1e-8}  # the deviation of columns is that over all labelled rows
    table = SSMKClassifier(KERNELS, **options).fit(X, y).cv_results_
    folds = folds_of(X, y, 50)
    for C, score in zip(table["param_C"], table["mean_test_score"], strict=True):
        errors = 0
        for _, held in folds:
            masked = np.where(np.isin(np.arange(120), held), -1, y)
            errors += np.sum(SSMKClassifier(KERNELS, C=C, **options).fit(X, masked).predict(X[held]) != y[held])
        assert score == pytest.approx(1 - errors / 50)


def test_the_scores_of_numbers_are_squared_errors_in_units_of_the_variance(monkeypatch):
    monkeypatch.setattr(mixture_choice, "FOLD_TOL", 1e-8)
    X, y, _ = numbers(2, n_labeled=45)
    options = {"column_scale": None, "tol": 1e-8, "epsilon": 0.05, "centers": "all"}
    table = SSMKRegressor(KERNELS, **options).fit(X, y).cv_results_
    for k, (_, held) in enumerate(folds_of(X, y, 45, False)):
        masked = np.where(np.isin(np.arange(120), held), np.nan, y)
        for C, score in zip(table["param_C"], table[f"split{k}_test_score"], strict=True):
            found = SSMKRegressor(KERNELS, C=C, **options).fit(X, masked).predict(X[held])
            assert -score == pytest.approx(np.mean((found - y[held]) ** 2) / y[:45].var(), rel=1e-3)


def test_in_an_rkhs_held_out_rows_change_nothing(monkeypatch):
    monkeypatch.setattr(mixture_choice, "FOLD_TOL", 1e-6)
    X, y, _ = numbers(3, n=45, n_labeled=45)
    options = {"penalty": "rkhs", "column_scale": None, "tol": 1e-6, "epsilon": 0.05}
    table = CGBoostRegressor(KERNELS, **options).fit(X, y).cv_results_
    kept, held = folds_of(X, y, 45, False)[0]
    for C, score in zip(table["param_C"], table["split0_test_score"], strict=True):
        found = CGBoostRegressor(KERNELS, C=C, **options).fit(X[kept], y[kept]).predict(X[held])
        assert -score == pytest.approx(np.mean((found - y[held]) ** 2) / y.var(), rel=1e-2)


def test_all_folds_share_one_binding(monkeypatch):
    calls, original = [], KernelLibrary.bind
    monkeypatch.setattr(
        KernelLibrary, "bind", lambda self, *args, **kw: calls.append(self) or original(self, *args, **kw)
    )
    X, y, _ = noisy(4)
    assert SSMKClassifier(KERNELS).fit(X, y).cv_results_
    assert len(calls) == 1


# What is chosen


@pytest.mark.parametrize("estimator", [SSMKClassifier, CGBoostClassifier])
def test_noisy_labels_are_predicted_better_than_with_a_large_cost(estimator):
    scores, costs = [], []
    for seed in range(4):
        X, y, classes = noisy(seed, n=300, n_labeled=200)
        train = slice(0, 200) if estimator is CGBoostClassifier else slice(None)
        models = [estimator(KERNELS, C=C).fit(X[train], y[train]) for C in ("cv", 10.0)]
        scores.append([model.score(X[200:], classes[200:]) for model in models])
        costs.append(models[0].C_)
    chosen, fixed = np.mean(scores, axis=0)
    assert chosen > fixed
    assert min(costs) < 1.0 / np.sqrt(2.0)  # the default: 10 over the root of 200


@pytest.mark.parametrize("estimator", [SSMKClassifier, CGBoostClassifier])
def test_clean_labels_get_the_default_cost(estimator):
    X, y = make_moons(80, noise=0.05, random_state=0)
    model = estimator(KERNELS).fit(X, y)
    assert pytest.approx(10.0 / np.sqrt(80)) == model.C_
    assert len(model.cv_results_["params"]) >= 5


def test_the_cost_is_among_those_compared_and_the_model_is_that_of_the_cost():
    X, y, _ = numbers(6)
    model = SSMKRegressor(KERNELS, tol=1e-8).fit(X, y)
    compared = model.cv_results_["param_C"]  # ascending, the largest may be left out
    np.testing.assert_allclose(compared * np.sqrt(60), mixture_choice.SPARSE_COSTS[: len(compared)])
    assert model.C_ in compared
    fixed = SSMKRegressor(KERNELS, C=model.C_, tol=1e-8).fit(X, y)
    assert fixed.objective_ == pytest.approx(model.objective_, rel=1e-7)
    assert fixed.C_ == model.C_
    assert fixed.cv_results_ == {}


def test_costs_above_one_that_is_clearly_worse_are_left_out():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(150, 6))
    model = SSMKRegressor(KERNELS, column_scale="std").fit(X, X[:, 0] + rng.normal(size=150))
    means = model.cv_results_["mean_test_score"]
    assert len(means) < len(mixture_choice.SPARSE_COSTS)
    assert means[-1] < means.max()
    assert model.cv_results_["param_C"][-1] > model.C_


@pytest.mark.parametrize(
    "model, cost",
    [
        (SSMKClassifier(KERNELS), 10.0 / np.sqrt(39)),
        (SSMKRegressor(KERNELS), 1.0 / np.sqrt(39)),
        (CGBoostClassifier(KERNELS), 10.0 / np.sqrt(39)),
        (CGBoostClassifier(KERNELS, penalty="l2"), 10.0),
        (CGBoostRegressor(KERNELS), 1.0 / np.sqrt(39)),
        (CGBoostRegressor(KERNELS, penalty="rkhs"), 10.0 * np.arange(39).std()),
    ],
)
def test_few_labels_get_the_default_cost(model, cost):
    X = np.random.default_rng(8).normal(size=(39, 2))
    model.fit(X, np.arange(39.0) if isinstance(model, NUMBERS) else X[:, 0] > 0)
    assert pytest.approx(cost) == model.C_
    assert model.cv_results_ == {}


def test_a_class_with_one_label_is_learned_and_never_tested():
    X, y, _ = noisy(9)
    y[0] = 2
    model = SSMKClassifier(KERNELS).fit(X, y)
    assert model.cv_results_
    assert model.classes_.tolist() == [0, 1, 2]


def test_weights_count_in_the_loss():
    X, y, _ = noisy(10)
    weight = np.where(np.arange(120) < 30, 3.0, 1.0)
    table = CGBoostClassifier(KERNELS).fit(X[:60], y[:60], weight[:60]).cv_results_
    folds = folds_of(X[:60], y, 60)
    splits = np.column_stack([table[f"split{k}_test_score"] for k in range(5)])
    shares = [weight[held].sum() for _, held in folds]
    np.testing.assert_allclose(table["mean_test_score"], np.average(splits, axis=1, weights=shares))


@pytest.mark.parametrize("factor", [1e-3, 1000.0])
@pytest.mark.parametrize(
    "model, power",
    [
        (SSMKRegressor(KERNELS, tol=1e-9), 0),
        (CGBoostRegressor(KERNELS, tol=1e-9), 0),
        (CGBoostRegressor(KERNELS, penalty="rkhs", tol=1e-6), 1),
    ],
)
def test_predictions_have_the_unit_of_the_target(model, power, factor):
    """The 1-norm problem is homogeneous; with a squared norm the cost must have the unit, too."""
    X, _, truth = numbers(11, n=60)
    usual, usual_cost = model.fit(X, truth).predict(X), model.C_
    scaled = model.fit(X, factor * truth).predict(X) / factor
    assert pytest.approx(factor**power * usual_cost) == model.C_
    np.testing.assert_allclose(scaled, usual, atol=1e-5 if power == 0 else 1e-2)


# Many rows, little time


def test_of_many_rows_some_take_part(monkeypatch):
    seen, original = [], mixture_choice._held_out_losses
    monkeypatch.setattr(fold_choice, "MAX_CHOICE_ROWS", 45)
    monkeypatch.setattr(mixture_choice, "MAX_CHOICE_CENTERS", 70)
    monkeypatch.setattr(mixture_choice, "_held_out_losses", lambda *args: seen.append(args) or original(*args))
    X, y, _ = noisy(12)
    model = SSMKClassifier(random_state=0).fit(X, y)  # deformed kernels among them
    columns, problem = seen[0][:2]
    assert columns.bound.n_rows == columns.centers.sample.n_rows == 70
    assert len(problem.weight) == columns.centers.sample.partition.n_labeled == 45
    labeled = columns.centers.sample.partition.labeled
    np.testing.assert_array_equal(y[columns.centers.sample.kept[labeled]], problem.codes)
    assert len(model.candidates_) == 120  # in the fit itself all do
    boost = CGBoostClassifier(KERNELS, penalty="rkhs").fit(X[:60], y[:60])
    assert seen[1][0].bound.n_rows == 45
    assert boost.C_ in mixture_choice.SMOOTH_COSTS


def test_the_choice_takes_a_share_of_the_time(monkeypatch):
    seen, original = [], mixture_choice.MixturePath
    monkeypatch.setattr(mixture_choice, "MixturePath", lambda *args: seen.append(args[-1]) or original(*args))
    X, y, _ = noisy(13)
    SSMKClassifier(KERNELS, max_time=600.0, verbose=0, callback=lambda state: False).fit(X, y)
    n_fits = 5 * len(mixture_choice.SPARSE_COSTS)
    assert seen[0].max_time == pytest.approx(mixture_choice.TIME_SHARE * 600.0 / n_fits)
    assert seen[0].callback is None


@pytest.mark.parametrize("Model", [SSMKClassifier, CGBoostClassifier])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_costs_are_compared_when_the_time_is_over(Model):
    X, y, classes = noisy(15)
    model = Model(KERNELS, max_time=1e-9).fit(X, y if Model is SSMKClassifier else classes)
    free = Model(KERNELS).fit(X, y if Model is SSMKClassifier else classes)
    assert model.cv_results_ == {}
    assert model.C_ in free.cv_results_["param_C"]


def test_the_fit_after_the_choice_takes_what_is_left_of_the_time():
    options = MixtureOptions("Owner", 1e-6, max_time=600.0, deadline=Deadline(600.0, time.perf_counter() - 400.0))
    assert 100.0 < options.rest.max_time <= 200.0
    assert 0.0 < MixtureOptions("Owner", 1e-6, max_time=1e-9, deadline=Deadline(1e-9)).rest.max_time <= 1e-9
    assert MixtureOptions("Owner", 1e-6).rest.max_time is None


def test_the_choice_is_told(capsys):
    X, y, _ = noisy(14)
    model = SSMKClassifier(KERNELS, verbose=2).fit(X, y)
    assert f"SSMKClassifier: C={model.C_:.3g} by 5 folds of 60 labelled rows" in capsys.readouterr().err
