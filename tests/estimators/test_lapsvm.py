import pickle
import warnings

import numpy as np
import pytest
from checks.rounding import assert_same_but_for_rounding
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import (
    RBF,
    FromCallable,
    LapSVMClassifier,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    Normalized,
    OnColumns,
    Precomputed,
    Sigmoid,
)
from kernelweave.solvers.result import Status

# Stops at a gap of 1e-9, which is quadratic in the distance of the duals: its root, times 1 to 10.
CLOSE = {"atol": 3e-4}


def expected_failures(estimator):
    """Checks that fail, and why."""
    weights = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    return dict.fromkeys(weights, "the neighbour graph takes all rows alike: a weight is not a number of rows")


@parametrize_with_checks([LapSVMClassifier()], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def moons(seed=0, n=80, n_labeled=16):
    X, truth = make_moons(n, noise=0.1, random_state=seed)
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def deformed(X, base=None, **options):
    """The deformed kernel at all rows."""
    options = {"n_neighbors": 10, "degree": 2, "ratio": 100.0, **options}
    kernel = ManifoldKernel(base or RBF(0.5), **options).bind(X, np.random.default_rng(0))
    return kernel.block(slice(None), slice(None))


# Equality with other machines


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_without_deformation_and_scale_it_is_the_svm_of_scikit_learn(C):
    X, y, _ = moons(1)
    model = LapSVMClassifier(RBF(0.5), C=C, ratio=0.0, scale=None, tol=1e-9).fit(X, y)
    svm = SVC(C=C, gamma=0.5, tol=1e-9).fit(X[:16], y[:16])
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(X), **CLOSE)
    assert model.certificate_.kind == "duality gap"
    assert model.certificate_.relative <= 1e-9


@pytest.mark.parametrize(
    "options",
    [{}, {"degree": 1, "n_neighbors": 5}, {"ratio": 1.0}, {"metric": "cosine"}, {"metric": "kernel"}],
    ids=str,
)
def test_it_is_the_svm_on_the_deformed_kernel(options):
    X, y, _ = moons(2)
    model = LapSVMClassifier(RBF(0.5), C=5.0, scale=None, tol=1e-9, **options).fit(X, y)
    K = deformed(X, **options)
    svm = SVC(C=5.0, kernel="precomputed", tol=1e-9).fit(K[:16, :16], y[:16])
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(K[:, :16]), **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_scale_is_that_of_all_rows(weighted):
    X, y, _ = moons(3)
    K = deformed(X)
    model = LapSVMClassifier(RBF(0.5), C=5.0, tol=1e-9)
    scale = K.diagonal().mean() - K.mean()
    weight = np.ones(16)
    if weighted:
        weight = np.random.default_rng(3).uniform(0.5, 2.0, size=80)
        share = weight / weight.sum()
        scale = share @ K.diagonal() - share @ K @ share
    model.fit(X, y, sample_weight=weight if weighted else None)
    svm = SVC(C=5.0, kernel="precomputed", tol=1e-9).fit(K[:16, :16] / scale, y[:16], sample_weight=weight[:16])
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(K[:, :16] / scale), **CLOSE)


def test_unlabelled_rows_bend_the_boundary():
    X, y, truth = moons(4, n=200, n_labeled=10)
    bent = LapSVMClassifier(RBF(4.0)).fit(X, y)
    plain = LapSVMClassifier(RBF(4.0), ratio=0).fit(X, y)
    assert np.mean(bent.transduction_ == truth) > np.mean(plain.transduction_ == truth)
    assert np.mean(bent.transduction_ == truth) > 0.95


def test_fully_labelled_it_is_the_machine_of_one_deformed_kernel():
    X, _, truth = moons(5)
    model = LapSVMClassifier(RBF(0.5), tol=1e-9).fit(X, truth)
    kernel = ManifoldKernel(RBF(0.5), n_neighbors=10, degree=2, ratio=100.0)
    supervised = MKLClassifier(kernel, C=10.0, tol=1e-9).fit(X, truth)
    np.testing.assert_allclose(model.decision_function(X), supervised.decision_function(X), **CLOSE)
    np.testing.assert_array_equal(model.transduction_, truth)


def test_class_weights_are_those_of_scikit_learn():
    X, y, _ = moons(6)
    options = {"class_weight": {1: 5.0}}
    model = LapSVMClassifier(RBF(0.5), C=1.0, ratio=0.0, scale=None, tol=1e-9, **options).fit(X, y)
    svm = SVC(C=1.0, gamma=0.5, tol=1e-9, **options).fit(X[:16], y[:16])
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(X), **CLOSE)


def test_several_classes_are_each_against_the_rest():
    X, _, truth = moons(7)
    truth = truth + (X[:, 0] > 1.2)
    y = np.where(np.arange(80) < 24, truth, -1)
    model = LapSVMClassifier(tol=1e-8).fit(X, y)
    for k in range(3):
        alone = LapSVMClassifier(tol=1e-8).fit(X, np.where(y < 0, -1, y == k))
        np.testing.assert_allclose(model.decision_function(X)[:, k], alone.decision_function(X), atol=1e-3)
    assert model.dual_coef_.shape == (80, 3)
    assert set(model.support_) <= set(range(24))


# Kernels and metrics


def test_a_precomputed_kernel_has_its_own_distances():
    X, y, _ = moons(8)
    rows = np.arange(80)[:, None]
    given = LapSVMClassifier(Precomputed(rbf_kernel(X, gamma=0.5)), tol=1e-8).fit(rows, y)
    computed = LapSVMClassifier(RBF(0.5), metric="kernel", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(given.decision_function(rows), computed.decision_function(X), **CLOSE)
    with pytest.raises(ValueError, match='Pass metric="kernel"'):
        LapSVMClassifier(Precomputed(rbf_kernel(X)), metric="euclidean").fit(rows, y)


@pytest.mark.parametrize("wrap", [Normalized, lambda kernel: OnColumns(kernel, [0])], ids=["Normalized", "OnColumns"])
def test_so_has_one_inside_another_kernel(wrap):
    X, y, _ = moons(8)
    rows = np.arange(80)[:, None]
    model = LapSVMClassifier(wrap(Precomputed(rbf_kernel(X, gamma=0.5)))).fit(rows, y)
    assert model.status_ is Status.CONVERGED


def test_few_landmarks_are_an_approximation():
    X, y, truth = moons(9, n=200, n_labeled=20)
    model = LapSVMClassifier(RBF(2.0), n_landmarks=60, random_state=0).fit(X, y)
    assert np.mean(model.transduction_ == truth) > 0.9
    again = LapSVMClassifier(RBF(2.0), n_landmarks=60, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), again.decision_function(X))


def test_a_model_of_one_row_a_class_and_of_no_more_rows_is_learned():
    X = np.array([[0.0, 1.0], [3.0, 0.0]])
    assert LapSVMClassifier().fit(X, ["a", "b"]).predict(X).tolist() == ["a", "b"]


def test_a_pickle_predicts_the_same():
    X, y, _ = moons(10)
    model = LapSVMClassifier().fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    assert_same_but_for_rounding(model.decision_function(X), loaded.decision_function(X))


def test_the_status_tells_how_it_ended():
    X, y, _ = moons(11)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = LapSVMClassifier().fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.C_ == 10.0
    assert model.weights_.tolist() == [1.0]


# Bad input

X0, Y0, _ = moons(12)
BAD_INPUT = {
    "C": ({"C": 0.0}, "LapSVMClassifier got C=0.0; expected a positive finite number[.]$"),
    "C in words": ({"C": "cv"}, "C='cv'; expected a positive finite number[.]$"),
    "C of True": ({"C": True}, "C=True; expected a positive finite number"),
    "n_neighbors": ({"n_neighbors": 0}, "n_neighbors=0; expected a whole number, 1 or more"),
    "degree": ({"degree": 1.5}, "degree=1.5; expected a whole number"),
    "ratio": ({"ratio": -1.0}, "ratio=-1.0; expected a number, 0 or more"),
    "ratio of NaN": ({"ratio": np.nan}, "ratio=nan; expected a number, 0 or more"),
    "metric": ({"metric": "manhattan"}, 'metric=\'manhattan\'; expected "auto", "euclidean", "cosine"'),
    "metric of a wrong type": ({"metric": 3}, 'metric=3; expected "auto"'),
    "n_landmarks": ({"n_landmarks": "all"}, "n_landmarks='all'; expected \"auto\", None"),
    "scale": ({"scale": "max"}, 'scale=.max.; expected "trace", "variance" or None'),
    "tol": ({"tol": -1.0}, "tol=-1.0; expected a positive finite number"),
    "max_iter": ({"max_iter": 0}, "max_iter=0; expected a whole number, 1 or more"),
    "dtype": ({"dtype": "float16"}, 'dtype=.float16.; expected "float64" or "float32"'),
    "class_weight": ({"class_weight": "even"}, "class_weight='even'; expected None, \"balanced\" or a dict"),
    "indefinite": ({"kernel": Sigmoid(5.0, 5.0)}, "is not symmetric positive semi-definite"),
    "indefinite as it is": ({"kernel": Sigmoid(1.0, -1.0), "ratio": 0}, "not positive semi-definite, as LapSVMClassi"),
    "not symmetric": ({"kernel": FromCallable(lambda A, B: A @ np.triu(np.ones((2, 2))) @ B.T)}, "symmetric"),
}


@pytest.mark.parametrize("case", BAD_INPUT, ids=str)
def test_bad_parameters_give_one_clear_sentence_and_fit_nothing(case):
    options, message = BAD_INPUT[case]
    model = LapSVMClassifier(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X0, Y0)
    assert not hasattr(model, "expansion_")


@pytest.mark.parametrize("kernel", ["rbf", [RBF()], 3.0], ids=str)
def test_what_is_no_kernel_is_refused(kernel):
    with pytest.raises(TypeError, match="LapSVMClassifier takes a kernel such as RBF"):
        LapSVMClassifier(kernel).fit(X0, Y0)


@pytest.mark.parametrize("size", [1e-100, 1e100])
@pytest.mark.parametrize("kernel", [RBF(), Linear()], ids=str)
def test_the_scale_of_features_does_not_matter(kernel, size):
    plain = LapSVMClassifier(kernel, tol=1e-8).fit(X0, Y0)
    model = LapSVMClassifier(kernel, tol=1e-8).fit(size * X0, Y0)
    np.testing.assert_allclose(model.decision_function(size * X0), plain.decision_function(X0), **CLOSE)
