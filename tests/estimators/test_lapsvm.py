import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from kernelweave import (
    RBF,
    FromCallable,
    LapSVMClassifier,
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
    model = LapSVMClassifier(RBF(0.5), **{"C": 5.0, "scale": None, "tol": 1e-9, "ratio": 100.0} | options).fit(X, y)
    K = deformed(X, **options)
    svm = SVC(C=5.0, kernel="precomputed", tol=1e-9).fit(K[:16, :16], y[:16])
    np.testing.assert_allclose(model.decision_function(X), svm.decision_function(K[:, :16]), **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_scale_is_that_of_all_rows(weighted):
    X, y, _ = moons(3)
    K = deformed(X)
    model = LapSVMClassifier(RBF(0.5), C=5.0, ratio=100.0, tol=1e-9)
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
    model = LapSVMClassifier(RBF(0.5), ratio=100.0, tol=1e-9).fit(X, truth)
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
    model = LapSVMClassifier(RBF(), ratio=100.0, tol=1e-8).fit(X, y)
    for k in range(3):
        alone = LapSVMClassifier(RBF(), ratio=100.0, tol=1e-8).fit(X, np.where(y < 0, -1, y == k))
        np.testing.assert_allclose(model.decision_function(X)[:, k], alone.decision_function(X), atol=1e-3)
    assert model.dual_coef_.shape == (80, 3)
    assert set(model.support_) <= set(range(24))


def test_folds_choose_the_undeformed_kernel_where_neighbours_say_nothing_of_labels():
    X = np.random.default_rng(0).uniform(size=(200, 1))
    truth = np.floor(12 * X[:, 0]).astype(int) % 2  # neighbours are of both classes
    model = LapSVMClassifier(RBF(2000.0), n_neighbors=30, random_state=0)
    model.fit(X, np.where(np.arange(200) < 120, truth, -1))
    assert model.ratio_ < 100.0
    assert model.cv_results_["param_ratio"].tolist() == [100.0, 10.0, 0.0]
    assert model.library_.entries[0].kernel.ratio == model.ratio_


def test_folds_keep_the_deformed_kernel_where_labels_follow_the_manifold():
    X, y, truth = moons(8, n=200, n_labeled=20)
    model = LapSVMClassifier(random_state=0).fit(X, y)
    assert model.ratio_ == 100.0
    assert np.mean(model.transduction_ == truth) > 0.95


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


# Bad input

X0, Y0, _ = moons(12)
BAD_INPUT = {
    "C": ({"C": 0.0}, 'LapSVMClassifier got C=0.0; expected a positive finite number or "cv"[.]$'),
    "C in words": ({"C": "best"}, "C='best'; expected a positive finite number or \"cv\"[.]$"),
    "ratio in words": ({"ratio": "best"}, "ratio='best'; expected a number, 0 or more, or \"cv\""),
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
