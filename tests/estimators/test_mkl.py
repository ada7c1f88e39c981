import numpy as np
import pandas as pd
import pytest
from checks.learned_weights import learned_classifier, learned_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from kernelweave import (
    RBF,
    FromCallable,
    KernelLibrary,
    Linear,
    MKLClassifier,
    MKLRegressor,
    OnColumns,
    Sigmoid,
    one_kernel_per_group,
)
from kernelweave.estimators.shared import machine
from kernelweave.kernels import defaults
from kernelweave.solvers.machines import kernel_stack, weighted_svm
from kernelweave.solvers.machines.kernel_stack import KernelStack
from kernelweave.solvers.result import Status

PAIR = [RBF(), Linear()]
SQUARED = {"loss": "squared_hinge"}


def sample(seed=0, n=60, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noisy = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    y = np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1]))
    return X, y


def numbers(seed=0, n=60):
    X, _ = sample(seed, n)
    return X, X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.1 * np.random.default_rng(seed).normal(size=n)


def scaled(K, share=None):
    """The kernel divided by the mean diagonal of its centred form."""
    share = np.full(len(K), 1 / len(K)) if share is None else share / share.sum()
    return K / (share @ K.diagonal() - share @ K @ share)


# Equality with single machines


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_one_kernel_without_scale_is_the_svm_of_scikit_learn(C):
    X, y = sample(1)
    model = learned_classifier(RBF(0.3), C=C, scale=None, tol=1e-9).fit(X, y)
    svm = SVC(C=C, gamma=0.3, tol=1e-9).fit(X, y)
    # The gap is quadratic in the distance of the duals: its root, times 1 to 10.
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.weights_, [1.0])
    np.testing.assert_array_equal(np.sign(model.dual_coef_[svm.support_, 0]), np.sign(svm.dual_coef_[0]))


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
def test_one_kernel_without_scale_is_the_regression_of_scikit_learn(epsilon):
    X, y = numbers(1)
    model = learned_regressor(RBF(0.3), C=5.0, epsilon=epsilon, scale=None, tol=1e-9).fit(X, y)
    svm = SVR(C=5.0, gamma=0.3, epsilon=epsilon, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.predict(X), svm.predict(X), atol=1e-4)


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_the_squared_losses_add_a_ridge_to_the_kernel(C):
    # Without a box and with I / C added to the kernel; new rows do not see the ridge.
    X, y = sample(2)
    K = rbf_kernel(X, gamma=0.3)
    model = learned_classifier(RBF(0.3), C=C, loss="squared_hinge", scale=None, tol=1e-12).fit(X, y)
    svm = SVC(C=1e6, kernel="precomputed", tol=1e-9).fit(K + np.eye(60) / C, y)
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(K), atol=1e-5)
    X, y = numbers(2)
    K = rbf_kernel(X, gamma=0.3)
    options = {"loss": "squared_epsilon_insensitive", "epsilon": 0.1, "scale": None, "tol": 1e-12}
    model = learned_regressor(RBF(0.3), C=C, **options).fit(X, y)
    svm = SVR(C=1e6, kernel="precomputed", tol=1e-9).fit(K + np.eye(60) / C, y)
    np.testing.assert_allclose(model.predict(X), svm.predict(K), atol=1e-5)


def test_uniform_weights_are_the_svm_with_the_mean_of_the_scaled_kernels():
    X, y = sample(3)
    K = (scaled(rbf_kernel(X, gamma=0.3)) + scaled(linear_kernel(X))) / 2
    model = learned_classifier([RBF(0.3), Linear()], C=2.0, weighting="uniform", tol=1e-9).fit(X, y)
    svm = SVC(C=2.0, kernel="precomputed", tol=1e-9).fit(K, y)
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(K), atol=1e-4)
    np.testing.assert_array_equal(model.weights_, [0.5, 0.5])
    assert model.n_solves_ == 1


@pytest.mark.parametrize("options", [{}, SQUARED, {"norm": 2}], ids=str)
def test_at_the_learned_weights_the_machine_is_that_of_scikit_learn(options):
    X, y = sample(4)
    model = learned_classifier([RBF(0.3), RBF(1.0), Linear()], C=2.0, tol=1e-10, **options).fit(X, y)
    kernels = [rbf_kernel(X, gamma=0.3), rbf_kernel(X, gamma=1.0), linear_kernel(X)]
    K = sum(weight * scaled(kernel) for weight, kernel in zip(model.weights_, kernels, strict=True))
    squared = options == SQUARED
    svm = SVC(C=1e6 if squared else 2.0, kernel="precomputed", tol=1e-9).fit(K + squared * np.eye(60) / 2, y)
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(K), atol=1e-4)


# A cost that is learned


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_learned_cost_is_the_one_with_which_a_fit_finds_the_same_model(n_classes, weighted):
    X, y = sample(5, n_classes=n_classes)
    weight = np.random.default_rng(5).integers(1, 8, size=60) if weighted else None
    learned = learned_classifier([RBF(0.2), RBF(1.0), Linear()], C="learned", loss="squared_hinge", tol=1e-10)
    learned.fit(X, y, sample_weight=weight)
    again = learned_classifier(learned.kernels, C=learned.C_, loss="squared_hinge", tol=1e-10).fit(X, y, weight)
    np.testing.assert_allclose(learned.weights_, again.weights_, atol=1e-4)
    np.testing.assert_allclose(learned.decision_function(X), again.decision_function(X), atol=1e-4)
    assert learned.weights_.sum() == pytest.approx(1.0)
    # With the identity the weights sum to one: dividing K + I / C by 1 + 1 / C multiplies J by as much.
    assert learned.objective_ == pytest.approx(again.objective_ * (1 + 1 / learned.C_), rel=1e-6)


def test_a_learned_cost_is_the_best_of_its_kind():
    X, y = sample(6)
    learned = learned_classifier(PAIR, C="learned", loss="squared_hinge", tol=1e-9).fit(X, y)
    for factor in (0.5, 0.9, 1.1, 2.0):
        C = factor * learned.C_
        other = learned_classifier(PAIR, C=C, loss="squared_hinge", tol=1e-9).fit(X, y)
        assert other.objective_ * (1 + 1 / C) > learned.objective_


def test_each_class_learns_its_own_cost_where_it_has_its_own_weights():
    X, y = sample(7, n_classes=3)
    model = learned_classifier(PAIR, C="learned", loss="squared_hinge", share_weights=False, tol=1e-9).fit(X, y)
    for k in range(3):
        alone = learned_classifier(PAIR, C="learned", loss="squared_hinge", tol=1e-9).fit(X, y == k)
        assert model.C_[k] == pytest.approx(alone.C_, rel=1e-3)
        np.testing.assert_allclose(model.weights_[k], alone.weights_, atol=1e-3)


def test_a_cost_that_is_given_is_kept():
    X, y = sample(8)
    assert learned_classifier(PAIR, C=3).fit(X, y).C_ == 3
    assert learned_regressor(PAIR, C=3).fit(X, X[:, 0]).C_ == 3


# Several classes


def test_classes_may_share_weights_or_have_their_own():
    X, y = load_iris(return_X_y=True)
    shared = learned_classifier([*PAIR, RBF(multiple=8.0)], tol=1e-6).fit(X, y)
    own = learned_classifier([*PAIR, RBF(multiple=8.0)], share_weights=False, tol=1e-6).fit(X, y)
    assert shared.weights_.shape == (3,)
    assert isinstance(shared.objective_, float)
    assert own.weights_.shape == (3, 3)
    assert own.objective_.shape == (3,)
    np.testing.assert_allclose(own.weights_.sum(axis=1), 1.0)
    for model in (shared, own):
        assert model.decision_function(X).shape == model.dual_coef_.shape == (150, 3)
        assert model.intercept_.shape == (3,)
        assert model.score(X, y) > 0.95
        assert model.certificate_.relative <= 1e-6
    assert own.objective_.sum() <= shared.objective_ * (1 + 1e-6)  # the sum of the minima, the minimum of the sum
    for k in range(3):
        alone = learned_classifier([*PAIR, RBF(multiple=8.0)], tol=1e-6).fit(X, y == k)
        assert alone.objective_ == pytest.approx(own.objective_[k], rel=1e-5)


def test_equal_weights_are_the_same_for_all_classes_whether_shared_or_not():
    X, y = sample(3, 150, n_classes=3)
    model = learned_classifier(PAIR, weighting="uniform", share_weights=False).fit(X, y)
    np.testing.assert_array_equal(model.weights_, [0.5, 0.5])


def test_two_classes_are_one_machine_whoever_has_the_weights():
    X, y = sample(9)
    shared, own = (learned_classifier(PAIR, share_weights=shared).fit(X, y) for shared in (True, False))
    assert own.weights_.shape == (2,)
    assert own.decision_function(X).shape == (60,)
    np.testing.assert_array_equal(own.decision_function(X), shared.decision_function(X))


# Weights of classes and rows


def test_class_weights_are_those_of_scikit_learn():
    X, y = sample(12)
    model = learned_classifier(RBF(0.3), C=1.0, scale=None, class_weight={1: 5.0}, tol=1e-9).fit(X, y)
    svm = SVC(C=1.0, gamma=0.3, class_weight={1: 5.0}, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    "model",
    [
        learned_classifier(PAIR),
        learned_classifier(PAIR, scale="variance"),
        learned_classifier(PAIR, loss="squared_hinge"),
        learned_classifier(PAIR, loss="squared_hinge", C="learned"),
        learned_regressor(PAIR),
        learned_regressor(PAIR, loss="squared_epsilon_insensitive"),
    ],
    ids=str,
)
def test_a_weight_is_a_number_of_rows(model):
    X, y = sample(13, n=40) if isinstance(model, MKLClassifier) else numbers(13, n=40)
    weight = np.arange(40) % 3
    model.set_params(tol=1e-10)
    weighted = model.fit(X, y, sample_weight=weight)
    values, objective, dual = model.predict(X), model.objective_, model.dual_coef_
    assert not dual[weight == 0].any()
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert repeated.objective_ == pytest.approx(objective, rel=1e-7)
    np.testing.assert_allclose(repeated.predict(X), values, atol=1e-3)
    assert weighted is model


# What goes in and what comes out


def test_probabilities_come_from_calibration():
    X, y = sample(14, n_classes=3)
    calibrated = CalibratedClassifierCV(learned_classifier(PAIR), ensemble=False, cv=3).fit(X, y)
    proba = calibrated.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.mean(proba.argmax(axis=1) == y) > 0.7


def test_numbers_far_from_zero_are_predicted_as_well_as_those_near():
    X, y = numbers(15)
    near = learned_regressor(PAIR, tol=1e-8).fit(X, y)
    far = learned_regressor(PAIR, tol=1e-8).fit(X, y + 1000.0)
    np.testing.assert_allclose(far.predict(X) - 1000.0, near.predict(X), atol=1e-2)
    assert near.score(X, y) > 0.9


def test_numbers_within_epsilon_of_a_constant_cost_nothing():
    X, y = numbers(16)
    model = learned_regressor(PAIR, epsilon=100.0).fit(X, y)
    assert model.objective_ == 0
    assert model.status_ is Status.CONVERGED
    assert len(model.support_) == 0
    assert len(set(model.predict(X))) == 1


# The grammar of scikit-learn


def test_column_groups_of_a_frame_and_costs_are_chosen_by_a_grid():
    X, y = sample(23)
    frame = pd.DataFrame(X, columns=["gene_1", "gene_2", "clinic_1", "clinic_2"])
    libraries = [one_kernel_per_group(frame), one_kernel_per_group({"genes": "gene_*"}, PAIR)]
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), learned_classifier(libraries[0]))
    grid = {"mklclassifier__C": [0.1, 1.0, 10.0], "mklclassifier__kernels": libraries}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(frame, np.array(["no", "yes"])[y])
    assert len(search.cv_results_["params"]) == 6
    assert search.best_score_ > 0.6
    assert set(search.predict(frame)) == {"no", "yes"}
    nested = learned_classifier(KernelLibrary({"bump": RBF(), "line": Linear()}))
    search = GridSearchCV(nested, {"kernels__bump__multiple": [0.1, 1.0]}, cv=2, error_score="raise").fit(frame, y)
    best = search.best_params_["kernels__bump__multiple"]
    assert search.best_estimator_.library_ == KernelLibrary({"bump": RBF(multiple=best), "line": Linear()})


# Bad input

X0, Y0 = sample(17)


def skewed(A, B):
    return A @ np.triu(np.ones((4, 4))) @ B.T


def endless(A, B):
    return np.full((len(A), len(B)), np.inf)


LEARNS = "learns C with loss=\"squared_hinge\", norm=1 and learned weights only; got loss='{}', norm={}, weighting='{}'"
BAD_INPUT = {
    "C": ({"C": -1.0}, X0, Y0, 'MKLClassifier got C=-1.0; expected a positive finite number, "cv" or "learned"'),
    "C of infinity": ({"C": np.inf}, X0, Y0, "C=inf; expected a positive finite number"),
    "C in words": ({"C": "best"}, X0, Y0, 'C=\'best\'; expected a positive finite number, "cv" or "learned"'),
    "learned with hinge": ({"C": "learned"}, X0, Y0, LEARNS.format("hinge", 1, "learned")),
    "learned with norm": (
        {**SQUARED, "C": "learned", "norm": 2},
        X0,
        Y0,
        LEARNS.format("squared_hinge", 2, "learned"),
    ),
    "learned with uniform": (
        {**SQUARED, "C": "learned", "weighting": "uniform"},
        X0,
        Y0,
        LEARNS.format("squared_hinge", 1, "uniform"),
    ),
    "loss": ({"loss": "log"}, X0, Y0, 'loss=\'log\'; expected "hinge" or "squared_hinge"'),
    "norm below one": ({"norm": 0.5}, X0, Y0, "norm=0.5; expected a number, 1 or more"),
    "norm in words": ({"norm": "l1"}, X0, Y0, "norm='l1'; expected a number, 1 or more"),
    "norm of NaN": ({"norm": np.nan}, X0, Y0, "norm=nan; expected a number, 1 or more"),
    "scale": ({"scale": "max"}, X0, Y0, 'scale=.max.; expected "trace", "variance" or None'),
    "scale of a wrong type": ({"scale": np.ones(2)}, X0, Y0, 'expected "trace", "variance" or None'),
    "weighting": ({"weighting": "equal"}, X0, Y0, 'weighting=.equal.; expected "auto", "learned" or "uniform"'),
    "share_weights": ({"share_weights": "no"}, X0, Y0, "share_weights=.no.; expected True or False"),
    "solver": ({"solver": "sdp"}, X0, Y0, 'solver=.sdp.; expected "newton", "projected_gradient"'),
    "reduced gradient, norm 2": ({"solver": "reduced_gradient", "norm": 2}, X0, Y0, "norm=2; it is for norm=1 only"),
    "tol": ({"tol": 0.0}, X0, Y0, "tol=0.0; expected a positive finite number"),
    "max_iter": ({"max_iter": 0}, X0, Y0, "max_iter=0; expected a whole number, 1 or more"),
    "dtype": ({"dtype": "float16"}, X0, Y0, 'dtype=.float16.; expected "float64" or "float32"'),
    "callback": ({"callback": 3}, X0, Y0, "callback=3; expected None or a function of the state of the solver"),
    "verbose": ({"verbose": "yes"}, X0, Y0, "verbose='yes'; expected a whole number: 0"),
    "not symmetric": ({"kernels": FromCallable(skewed)}, X0, Y0, "skewed.* is not symmetric, and MKLClassifier needs"),
    "not finite": ({"kernels": [RBF(), FromCallable(endless)]}, X0, Y0, "endless.* gave values that are not finite"),
    "too large": ({"kernels": Linear()}, 1e200 * X0, Y0, r"Linear\(\) gave values that are not finite"),
    "indefinite": ({"kernels": Sigmoid(1.0, -1.0)}, X0, Y0, "combined kernel is not positive semi-definite, as MKLCl"),
}


@pytest.mark.parametrize("case", BAD_INPUT, ids=str)
def test_bad_input_gives_one_clear_sentence_and_fits_nothing(case):
    options, X, y, message = BAD_INPUT[case]
    model = learned_classifier(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "expansion_")


BAD_NUMBERS = {
    "epsilon": ({"epsilon": -0.1}, X0[:, 0], "epsilon=-0.1; expected a number, 0 or more"),
    "loss": ({"loss": "hinge"}, X0[:, 0], 'loss=\'hinge\'; expected "epsilon_insensitive" or "squared_epsilon_'),
    "C": ({"C": "learned"}, X0[:, 0], "MKLRegressor got C='learned'; expected a positive finite number or \"cv\"[.]$"),
}


@pytest.mark.parametrize("case", BAD_NUMBERS, ids=str)
def test_bad_input_to_a_regression_gives_one_clear_sentence(case):
    options, y, message = BAD_NUMBERS[case]
    with pytest.raises(ValueError, match=message):
        learned_regressor(**options).fit(X0, y)


def test_unlabelled_rows_tell_kernels_their_widths_and_nothing_else():
    X, truth = sample(40)
    y = np.where(np.arange(60) < 30, truth, None)
    model = learned_classifier(PAIR, scale=None, tol=1e-9).fit(X, y)
    gamma = 1.0 / np.mean(np.square(X[:, None] - X).sum(axis=2))
    alone = learned_classifier([RBF(gamma), Linear()], scale=None, tol=1e-9).fit(X[:30], truth[:30])
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.transduction_[:30], truth[:30])
    assert set(model.support_) <= set(range(30))


def test_missing_numbers_are_filled_in():
    X, truth = numbers(41)
    y = np.where(np.arange(60) < 40, truth, np.nan)
    model = learned_regressor(PAIR).fit(X, y)
    np.testing.assert_array_equal(model.transduction_[:40], truth[:40])
    np.testing.assert_allclose(model.transduction_[40:], model.predict(X[40:]))


# Landmarks


def test_landmarks_that_span_a_kernel_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 0, "b", "a")
    kernels = [OnColumns(Linear(), [0]), OnColumns(Linear(), [1, 2])]
    exact = MKLClassifier(kernels, C=1.0, weighting="learned", tol=1e-6).fit(X, y)
    for module in (kernel_stack, weighted_svm):
        monkeypatch.setattr(module, "MAX_DENSE_POINTS", 100)
    monkeypatch.setattr(KernelStack, "combine", None)  # no matrix of all rows is formed
    found = MKLClassifier(kernels, C=1.0, weighting="learned", n_landmarks=20, tol=1e-6, random_state=0).fit(X, y)
    assert found.certificate_.scope == "the features of 20 landmarks of each kernel"
    assert found.certificate_.relative <= 1e-6
    assert found.objective_ == pytest.approx(exact.objective_, rel=2e-6)  # the gaps of both
    np.testing.assert_allclose(found.decision_function(X), exact.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_rows_take_landmarks_by_themselves(dtype, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4))
    y = (np.abs(X[:, 0]) > 0.7).astype(int)
    kernels = [("first", OnColumns(RBF(), [0, 1])), ("other", OnColumns(RBF(), [2, 3]))]
    settings = {"C": 10.0, "weighting": "learned", "dtype": dtype, "random_state": 0}
    plain = MKLClassifier(kernels, **settings).fit(X, y)
    assert plain.library_.entries[0].kernel == kernels[0][1]
    assert plain.certificate_.scope == ""
    monkeypatch.setattr(machine, "MAX_DENSE_POINTS", 100)
    monkeypatch.setattr(machine, "MAX_DIRECT_ROWS", 399)
    monkeypatch.setattr(defaults, "N_FEATURES", 60)
    found = MKLClassifier(kernels, **settings).fit(X, y)
    assert [entry.kernel.n_landmarks for entry in found.library_.entries] == [30, 30]
    assert found.library_.names == ("first", "other")
    assert found.certificate_.kind == "duality gap"
    assert found.weights_[0] > 0.9
    assert np.mean(found.predict(X) == y) > 0.97
    asked = MKLClassifier(kernels, n_landmarks=None, **settings).fit(X, y)
    assert asked.objective_ == pytest.approx(plain.objective_)
    monkeypatch.setattr(machine, "MAX_DIRECT_ROWS", 400)
    monkeypatch.setattr(machine, "fits_machine", lambda n_bytes: False)  # kernels larger than the memory, too
    assert MKLClassifier(kernels, **settings).fit(X, y).objective_ == pytest.approx(found.objective_)


def test_a_regression_takes_landmarks_too():
    X = np.random.default_rng(2).uniform(0, 6, size=(300, 1))
    model = MKLRegressor([RBF(4.0), RBF(0.5)], C=10.0, epsilon=0.05, n_landmarks=30, random_state=0)
    assert model.fit(X, np.sin(X[:, 0])).score(X, np.sin(X[:, 0])) > 0.98
