"""Costs and weightings that folds choose, beside the slow way: a machine of its own for every fold and setting."""

from dataclasses import replace

import numpy as np
import pytest

from kernelweave import RBF, KernelLibrary, Linear, MKLClassifier, MKLRegressor, Precomputed
from kernelweave.estimators.shared.fold_choice import split_labeled, tabulate_losses
from kernelweave.estimators.shared.machine import MachineOptions, stack_labeled
from kernelweave.estimators.shared.machine_choice import (
    FOLD_TOL,
    MachineSetting,
    fit_one_kernel,
    held_out_losses,
    list_settings,
)
from kernelweave.estimators.shared.problems import class_problem, number_problem
from kernelweave.estimators.shared.sample import Rows, bind, read_as_given
from kernelweave.labels import partition, partition_targets

OPTIONS = MachineOptions("Test", scale=None, dtype="float64", tol=1e-9, max_iter=100)


def blobs(n_classes, n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, 3)) + 1.2 * np.eye(3)[y], y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighting", ["uniform", "learned"])
@pytest.mark.parametrize("squared", [False, True])
def test_losses_of_folds_are_those_of_machines_without_the_held_out_rows(monkeypatch, n_classes, weighting, squared):
    monkeypatch.setattr("kernelweave.estimators.shared.machine_choice.FOLD_TOL", 1e-9)
    X, y = blobs(n_classes)
    kernels = [RBF(0.3), Linear()]
    sample = read_as_given(Rows(X, dtypes=("float64",)), partition(y))
    bound, problem = bind(KernelLibrary(kernels), sample, np.random.default_rng(0)), class_problem(sample, None)
    folds = split_labeled(problem.codes, len(y), np.random.default_rng(1))
    settings = [MachineSetting(C, weighting) for C in (0.1, 10.0)]
    stacked = stack_labeled(bound, sample, OPTIONS)
    losses = held_out_losses(stacked, problem, settings, OPTIONS, folds, squared=squared)
    loss, start = "squared_hinge" if squared else "hinge", 0
    for kept, held in folds:
        for i, setting in enumerate(settings):
            model = MKLClassifier(kernels, C=setting.C, weighting=weighting, loss=loss, scale=None, tol=1e-9)
            wrong = model.fit(X[kept], y[kept]).predict(X[held]) != y[held]
            np.testing.assert_array_equal(losses[i, start : start + len(held)], wrong)
        start += len(held)
    table = tabulate_losses([{"C": each.C} for each in settings], losses, problem.weight, folds, problem.perfect_score)
    np.testing.assert_allclose(table["mean_test_score"], 1.0 - losses.mean(axis=1))


def test_losses_of_numbers_are_squared_errors_in_units_of_their_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = 100.0 * X[:, 0] + rng.normal(size=40)
    sample = read_as_given(Rows(X, dtypes=("float64",)), partition_targets(y))
    bound, problem = bind(KernelLibrary([Linear()]), sample, np.random.default_rng(0)), number_problem(sample, 1.0)
    folds = split_labeled(None, 40, np.random.default_rng(1))
    stacked = stack_labeled(bound, sample, OPTIONS)
    losses = held_out_losses(stacked, problem, [MachineSetting(1e3, "uniform")], OPTIONS, folds)
    assert losses.mean() < 1e-3  # the line explains all but the noise, a hundredth of the deviation


def test_settings_begin_with_the_default_and_one_kernel_has_one_weighting():
    assert list_settings("cv", 2.0, "auto", 3)[0] == MachineSetting(20.0, "uniform")
    assert len(list_settings("cv", 1.0, "auto", 3)) == 8
    assert {each.weighting for each in list_settings("cv", 1.0, "auto", 1)} == {"uniform"}
    assert list_settings(5.0, 1.0, "learned", 3) == [MachineSetting(5.0, "learned")]


def test_weights_are_learned_where_one_source_of_many_tells_the_classes_apart():
    X, y = blobs(2, n=80)
    noise = np.random.default_rng(5).normal(size=(80, 40))
    sources = {"signal": X, **{f"noise {i}": noise[:, 4 * i : 4 * i + 4] for i in range(10)}}
    library = KernelLibrary([(name, Precomputed(RBF(0.3)(rows))) for name, rows in sources.items()])
    rows = np.arange(80)[:, None]
    model = MKLClassifier(library, random_state=0).fit(rows, y)
    assert model.weighting_ == "learned"
    assert model.weights_.argmax() == 0


def test_equal_weights_are_kept_where_learned_ones_are_no_better():
    X, y = blobs(3, n=45)
    model = MKLClassifier([RBF(), RBF(multiple=2.0)], random_state=0).fit(X, y)
    assert model.weighting_ == "uniform"
    assert np.ptp(model.weights_) == 0
    assert set(model.cv_results_) >= {"param_C", "param_weighting", "mean_test_score", "rank_test_score"}


def test_noisy_labels_get_a_small_cost():
    X, y = blobs(2, n=200)
    y = np.where(np.random.default_rng(2).random(200) < 0.3, 1 - y, y)
    assert MKLClassifier([RBF(multiple=4.0)], random_state=0).fit(X, y).C_ < 10.0


def test_the_costs_of_numbers_follow_their_unit():
    X = np.linspace(0, 6, 60)[:, None]
    y = np.sin(X[:, 0])
    small = MKLRegressor(RBF(), epsilon=0.01, random_state=0).fit(X, y)
    large = MKLRegressor(RBF(), epsilon=10.0, random_state=0).fit(X, 1e3 * y)
    np.testing.assert_allclose(large.cv_results_["param_C"], 1e3 * np.array(small.cv_results_["param_C"], dtype=float))
    # Machines of folds are solved to a relative gap of FOLD_TOL: a near tie of two costs may fall either way.
    scores = [model.cv_results_["mean_test_score"] for model in (small, large)]
    np.testing.assert_allclose(scores[1], scores[0], rtol=10 * FOLD_TOL)
    large = MKLRegressor(RBF(), C=1e3 * small.C_, epsilon=10.0).fit(X, 1e3 * y)
    np.testing.assert_allclose(large.predict(X), 1e3 * small.predict(X), atol=5.0)  # both within the tolerance of 1e-3


def test_one_of_several_kernels_is_chosen_by_folds():
    X, y = blobs(2, n=100)
    rows = np.arange(100)[:, None]
    sample = read_as_given(Rows(rows, dtypes=("float64",)), partition(y))
    rng = np.random.default_rng(0)
    nonsense = RBF(0.3)(rng.normal(size=(100, 5)))
    bound = bind(KernelLibrary([("no", Precomputed(nonsense)), ("yes", Precomputed(RBF(0.3)(X)))]), sample, rng)
    named = [{"kernel": "no"}, {"kernel": "yes"}]
    fit = fit_one_kernel(bound, sample, class_problem(sample, None), replace(OPTIONS, scale="trace"), 10.0, named, rng)
    assert fit.place == 1
    assert fit.cv_results["param_kernel"].tolist() == ["no", "yes"]


def test_too_few_labels_for_folds_leave_the_default():
    X, _ = blobs(2, n=30)
    y = np.full(30, None, dtype=object)
    y[:2] = [0, 1]
    model = MKLClassifier(random_state=0).fit(X, y)
    assert (model.C_, model.weighting_, model.cv_results_) == (10.0, "uniform", {})
