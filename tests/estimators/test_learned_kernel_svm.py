import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.svm import SVC, SVR

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    ClusterKernel,
    DiffusionKernel,
    FromCallable,
    KernelLibrary,
    LabelAwareKernelLearner,
    LearnedKernelClassifier,
    LearnedKernelRegressor,
    Linear,
    ManifoldKernel,
    OnColumns,
    OrderedSpectralKernelLearner,
    Sigmoid,
)
from kernelweave.estimators.learned_kernel_svm import default_learners
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.estimators.shared.target import read_target
from kernelweave.labels import partition_targets
from kernelweave.solvers.result import Status

WHOLE = slice(None)
# Stops at a gap of 1e-9, which is quadratic in the distance of the duals: its root, times 1 to 3.
CLOSE = {"atol": 1e-4}
LEARNERS = [
    LabelAwareKernelLearner(RBF(1.0)),
    LabelAwareKernelLearner(RBF(1.0), leave_one_out=True, weighting="align", extra_kernels=[Linear()]),
    LabelAwareKernelLearner(RBF(1.0), basis="laplacian", n_eigenvectors=10, n_landmarks=30, random_state=0),
    AlignedKernelLearner([RBF(1.0), ManifoldKernel(RBF(1.0), 5)]),
    OrderedSpectralKernelLearner(RBF(5.0)),
    AlignedKernelLearner([ClusterKernel(RBF(1.0), n_eigenvectors=4), DiffusionKernel(RBF(1.0), n_eigenvectors=4)]),
    AlignedKernelLearner([ClusterKernel(RBF(1.0), n_eigenvectors=4), RBF(1.0)], weighting="align"),
]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: repr(learner)[:45])


def moons(seed=0, n=60, n_labeled=24):
    X, classes = make_moons(n, noise=0.1, random_state=seed)
    return X, np.where(np.arange(n) < n_labeled, classes, -1), classes


def flowers(seed=0, n=75, n_labeled=30):
    X, classes = load_iris(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(150)[:n]
    return X[rows], np.where(np.arange(n) < n_labeled, classes[rows], -1), classes[rows]


def curve(seed=0, n=60, n_labeled=25):
    X = np.random.default_rng(seed).uniform(-2, 2, size=(n, 2))
    truth = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2])
    return X, np.where(np.arange(n)[:, None] < n_labeled, truth, np.nan), truth


def unit_blocks(model, labeled, new):
    """The learned kernel of unit trace at the labelled rows, and of new rows against them."""
    kernel = model.learner_.kernel_
    K = kernel.block(labeled, labeled)
    size = K.diagonal().mean() - K.mean()
    return K / size, kernel.against(new)[:, labeled] / size


# Equality with other machines


@every_learner
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_it_is_the_svm_of_scikit_learn_on_the_learned_kernel(learner, C):
    X, y, _ = moons(1)
    model = LearnedKernelClassifier(learner, C=C, tol=1e-9).fit(X, y)
    new = X + 0.05
    K, K_new = unit_blocks(model, np.arange(24), new)
    svm = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, y[:24])
    np.testing.assert_allclose(model.decision_function(new), svm.decision_function(K_new), **CLOSE)
    assert model.certificate_.kind == "duality gap"
    assert model.certificate_.relative <= 1e-9
    assert model.status_ is Status.CONVERGED
    assert model.C_ == C
    assert model.cv_results_ == {}
    np.testing.assert_array_equal(model.weights_, model.learner_.weights_)
    alone = clone(learner).fit(X, y)
    labeled = np.arange(24)
    np.testing.assert_allclose(
        alone.kernel_.block(labeled, labeled), model.learner_.kernel_.block(WHOLE, WHOLE), atol=1e-7
    )


@pytest.mark.parametrize("class_weight", ["balanced", {1: 5.0}], ids=str)
def test_class_weights_are_those_of_scikit_learn(class_weight):
    X, y, _ = moons(2)
    model = LearnedKernelClassifier(LEARNERS[0], C=1.0, tol=1e-9, class_weight=class_weight).fit(X, y)
    K, K_new = unit_blocks(model, np.arange(24), X)
    svm = SVC(kernel="precomputed", tol=1e-9, class_weight=class_weight).fit(K, y[:24])
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(K_new), **CLOSE)


@every_learner
def test_of_numbers_it_is_the_svr_of_scikit_learn_for_each_output(learner):
    X, y, truth = curve(3)
    model = LearnedKernelRegressor(learner, C=3.0, epsilon=0.05, tol=1e-8).fit(X, y)
    K, K_new = unit_blocks(model, np.arange(25), X)
    found = model.predict(X)
    assert found.shape == (60, 2)
    for k in range(2):
        svr = SVR(kernel="precomputed", C=3.0, epsilon=0.05, tol=1e-9).fit(K, y[:25, k])
        np.testing.assert_allclose(found[:, k], svr.predict(K_new), atol=1e-3)
    np.testing.assert_allclose(model.transduction_[25:], found[25:], rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.transduction_[:25], y[:25])
    assert model.score(X, truth) == pytest.approx(r2_score(truth, found))
    assert model.score(X, y) == pytest.approx(r2_score(y[:25], found[:25]))
    np.testing.assert_allclose(model.predict(X, split=True).sum(axis=1), found)


def test_one_output_has_one_dimension():
    X, y, truth = curve(4)
    model = LearnedKernelRegressor(epsilon=0.01).fit(X, y[:, 0])
    assert model.predict(X).shape == model.transduction_.shape == (60,)
    assert model.predict(X, split=True).shape[0] == 60
    assert model.score(X, truth[:, 0]) > 0.5
    assert isinstance(model.C_, float)


def test_several_classes_are_each_against_the_rest_on_one_kernel():
    X, y, classes = flowers(5)
    model = LearnedKernelClassifier(LEARNERS[1], C=5.0, tol=1e-9).fit(X, y)
    K, K_new = unit_blocks(model, np.arange(30), X)
    for k in range(3):
        svm = SVC(C=5.0, kernel="precomputed", tol=1e-9).fit(K, y[:30] == k)
        np.testing.assert_allclose(model.decision_function(X)[:, k], svm.decision_function(K_new), **CLOSE)
    assert model.dual_coef_.shape == (75, 3)
    assert set(model.support_) <= set(range(30))
    assert model.score(X, classes) > 0.85


# What is kept


@every_learner
def test_parts_of_the_value_sum_to_the_whole(learner):
    X, y, _ = moons(13)
    model = LearnedKernelClassifier(learner, C=1.0).fit(X, y)
    parts = model.decision_function(X, split=True)
    assert parts.shape[1] == model.expansion_.n_kernels
    np.testing.assert_allclose(parts.sum(axis=1), model.decision_function(X), atol=1e-10)


@every_learner
def test_transduction_is_the_prediction_of_unlabelled_rows(learner):
    X, y, _ = flowers(14)
    words = np.where(y < 0, None, np.array(["a", "b", "c"])[y])
    model = LearnedKernelClassifier(learner, random_state=0).fit(X, words)
    np.testing.assert_array_equal(model.transduction_[30:], model.predict(X)[30:])
    np.testing.assert_array_equal(model.transduction_[:30], words[:30])
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_evaluations_are_counted():
    X, y, _ = moons(15)
    votes = LearnedKernelClassifier(LabelAwareKernelLearner(RBF(1.0), n_eigenvectors=0), C=1.0).fit(X, y)
    assert votes.n_evaluations_ == 24
    spectral = LearnedKernelClassifier(OrderedSpectralKernelLearner(RBF(5.0), n_landmarks=30), C=1.0).fit(X, y)
    assert spectral.n_evaluations_ == 30
    whole = LearnedKernelClassifier(AlignedKernelLearner([RBF(1.0)]), C=1.0).fit(X, y)
    assert whole.n_evaluations_ == len(whole.support_) < 24
    useless = FromCallable(lambda A, B: np.zeros((A.shape[0], B.shape[0])))  # votes and eigenvectors have no weight
    learner = LabelAwareKernelLearner(useless, extra_kernels=RBF(1.0))
    assert LearnedKernelClassifier(learner, C=1.0).fit(X, y).n_evaluations_ == len(whole.support_)


def test_a_weight_is_a_number_of_rows_where_nothing_is_unsupervised():
    X, y, _ = moons(16)
    weight = np.where(np.arange(60) % 4 == 0, 2.0, 1.0) * (np.arange(60) % 7 != 3)
    rows = np.repeat(np.arange(60), weight.astype(int))
    learner = LabelAwareKernelLearner(RBF(1.0), n_eigenvectors=0, extra_kernels=[Linear(), RBF(4.0)])
    weighted = LearnedKernelClassifier(learner, C=1.0, tol=1e-9).fit(X, y, sample_weight=weight)
    repeated = LearnedKernelClassifier(learner, C=1.0, tol=1e-9).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), **CLOSE)
    assert len(weighted.transduction_) == 60  # rows without weight are predicted too
    assert not weighted.dual_coef_[weight == 0].any()


def test_parameters_reach_into_the_learner():
    X, y, _ = moons(18)
    model = LearnedKernelClassifier(LabelAwareKernelLearner(RBF(), n_eigenvectors=5), C=10.0)
    model.set_params(learner__weighting="align", learner__extra_kernels=KernelLibrary([("plain", Linear())]))
    model.set_params(learner__extra_kernels__plain=RBF(2.0))
    assert model.fit(X, y).learner_.base_kernels_[-1]["name"] == "plain"


# Data of every kind


def test_sparse_rows_have_learners_by_default():
    X, y, _ = moons(19)
    X[np.abs(X) < 0.2] = 0.0
    assert LearnedKernelClassifier(random_state=0).fit(sparse.csr_array(X), y).score(X, y) > 0.8


def test_missing_values_are_allowed_where_all_learners_say_what_they_mean():
    X, y, _ = flowers(22)
    X[::7, 0] = np.nan
    kernel = OnColumns(RBF(1.0), [0], missing="center")
    says = LabelAwareKernelLearner(kernel, normalization="class", extra_kernels=OnColumns(Linear(), [1, 2]))
    assert np.isfinite(LearnedKernelClassifier(says, C=1.0).fit(X, y).decision_function(X)).all()
    with pytest.raises(ValueError, match="Input X contains NaN"):
        LearnedKernelClassifier([says, LabelAwareKernelLearner()], C=1.0).fit(X, y)


# Bad input

X0, Y0, _ = moons(26)
BAD_INPUT = {
    "C": ({"C": 0.0}, ValueError, 'C=0.0; expected a positive finite number or "cv"'),
    "C in words": ({"C": "learn"}, ValueError, "C='learn'; expected a positive finite number or \"cv\""),
    "tol": ({"tol": 0}, ValueError, "tol=0; expected a positive finite number"),
    "no learner": ({"learner": []}, ValueError, "expected at least one kernel learner"),
    "a kernel": (
        {"learner": RBF()},
        TypeError,
        r"takes a kernel learner such as LabelAwareKernelLearner\(\), or a list",
    ),
    "a class": ({"learner": LabelAwareKernelLearner}, TypeError, "takes a kernel learner such as"),
    "of a list": ({"learner": [LEARNERS[0], SVC()]}, TypeError, r"got SVC\(\) of type SVC"),
    "a learner's parameter": (
        {"learner": LabelAwareKernelLearner(weighting="best")},
        ValueError,
        "LabelAwareKernelLearner got weighting='best'",
    ),
    "indefinite": (
        {"learner": LabelAwareKernelLearner(extra_kernels=[RBF(), Sigmoid(1.0, -1.0)])},
        ValueError,
        "Sigmoid.* is not positive semi-definite, as LabelAwareKernelLearner requires",
    ),
    "class_weight": ({"class_weight": "even", "C": 1.0}, ValueError, "class_weight='even'; expected None"),
}


@pytest.mark.parametrize("case", BAD_INPUT, ids=str)
def test_bad_parameters_give_one_clear_sentence_and_fit_nothing(case):
    options, kind, message = BAD_INPUT[case]
    model = LearnedKernelClassifier(**options)
    with pytest.raises(kind, match=message):
        model.fit(X0, Y0)
    assert not hasattr(model, "expansion_")


def test_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="epsilon=-1; expected a number, 0 or more"):
        LearnedKernelRegressor(epsilon=-1).fit(X0, X0[:, 0])
    with pytest.raises(ValueError, match="All labelled rows have the same target"):
        LearnedKernelRegressor().fit(X0, np.full(60, 0.1))
    with pytest.raises(ValueError, match="at least two classes"):
        LearnedKernelClassifier().fit(X0, np.ones(60))
    y = np.where((Y0 == 1) & (np.cumsum(Y0 == 1) > 1), -1, Y0)
    with pytest.raises(ValueError, match="two labelled rows of each class at least, but class 1 has one"):
        LearnedKernelClassifier(LabelAwareKernelLearner(leave_one_out=True)).fit(X0, y)


def test_numbers_that_follow_rows_closely_get_narrow_kernels(monkeypatch):
    monkeypatch.setattr("kernelweave.kernels.defaults.is_table", lambda X: False)  # trees follow rows closely, too
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    truth = np.sin(25 * X[:, 0]) + np.cos(25 * X[:, 1])
    y = np.where(np.arange(300) < 150, truth, np.nan)
    target = read_target(read_as_given(Rows(X), partition_targets(y)))
    wide = LearnedKernelRegressor(default_learners(X, target)[:3], epsilon=0.01, random_state=0).fit(X, y)
    model = LearnedKernelRegressor(epsilon=0.01, random_state=0).fit(X, y)
    assert len(model.cv_results_["params"]) > len(wide.cv_results_["params"])
    errors = [np.square(each.transduction_ - truth)[150:].mean() for each in (model, wide)]
    assert errors[0] < 0.7 * errors[1]


@pytest.mark.filterwarnings("ignore:No base kernel is aligned")
@pytest.mark.parametrize("learner", [None, LabelAwareKernelLearner(), AlignedKernelLearner()], ids=str)
@pytest.mark.parametrize("value", [1.0, 0.1])
def test_rows_that_are_all_equal_leave_the_larger_class(value, learner):
    model = LearnedKernelClassifier(learner, C=2.0, random_state=0)
    model.fit(np.full((50, 3), value), np.repeat([0, 1], [30, 20]))
    assert model.certificate_.gap == 0.0
    assert model.objective_ == pytest.approx(2 * 20 * 2.0)
    np.testing.assert_allclose(model.decision_function(np.full((6, 3), value)), -1.0)


def test_a_gap_that_is_not_reached_gives_a_warning_at_the_callers_line():
    X, y, _ = moons(29)  # of 20 such samples two end with a gap of exactly zero
    with pytest.warns(ConvergenceWarning, match="Certified relative gap") as seen:
        model = LearnedKernelClassifier(LEARNERS[0], C=1e6, tol=1e-16).fit(X, y)
    assert model.status_ is Status.PRECISION
    assert [w.filename for w in seen] == [__file__]


def test_the_learner_is_kept_as_if_it_were_fitted_alone():
    X, y, _ = moons(29)
    given = LabelAwareKernelLearner(RBF(1.0), n_eigenvectors=5, extra_kernels=Linear())
    model, alone = LearnedKernelClassifier(given, C=1.0).fit(X, y), clone(given).fit(X, y)
    assert vars(model.learner_).keys() == vars(alone).keys()
    np.testing.assert_allclose(model.learner_.transform(X), alone.transform(X), rtol=0, atol=1e-9)
    assert model.learner_.alignment_ == pytest.approx(alone.alignment_, rel=1e-9)
    assert model.library_ == model.learner_.library_ == alone.library_
    assert not hasattr(given, "kernel_")


def test_a_seed_of_a_learner_that_is_a_generator_is_not_used_up():
    X, y, _ = moons(30)
    seed = np.random.RandomState(0)
    learner = LabelAwareKernelLearner(RBF(1.0), n_landmarks=20, random_state=seed)
    values = [LearnedKernelClassifier(learner, C=1.0).fit(X, y).decision_function(X) for _ in range(2)]
    np.testing.assert_array_equal(values[0], values[1])
