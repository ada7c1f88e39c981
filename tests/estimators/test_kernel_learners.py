import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    FromCallable,
    KernelLibrary,
    LabelAwareKernelLearner,
    Linear,
    ManifoldKernel,
    OnColumns,
    OrderedSpectralKernelLearner,
    Polynomial,
    Precomputed,
    Sigmoid,
    rbf_family,
)
from kernelweave.solvers.alignment import alignment
from kernelweave.solvers.result import Status

WHOLE = slice(None)
GAMMA = 0.8
LEARNERS = [LabelAwareKernelLearner, AlignedKernelLearner, OrderedSpectralKernelLearner]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)


def flowers(seed=0, n=60, n_labeled=24):
    """Rows of three classes; the classes of some, -1 for the others; all classes."""
    X, classes = load_iris(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(150)[:n]
    X, classes = X[rows] - X.mean(axis=0), classes[rows]
    return X, np.where(np.arange(n) < n_labeled, classes, -1), classes


def curve(seed=0, n=50, n_labeled=20):
    """Rows, and two numbers for each; NaN for some rows."""
    X = np.random.default_rng(seed).uniform(-2, 2, size=(n, 2))
    truth = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2])
    return X, np.where(np.arange(n)[:, None] < n_labeled, truth, np.nan), truth


def moons(seed=0, n=60, n_labeled=20):
    X, classes = make_moons(n, noise=0.1, random_state=seed)
    return X, np.where(np.arange(n) < n_labeled, classes, -1), classes


def centering(weight):
    return np.eye(len(weight)) - np.outer(np.ones(len(weight)), weight / weight.sum())


def dense_kernel(matrices, Y, labeled, weight=None):
    """Alignf by Frobenius products of kernel matrices at the labelled rows and non-negative least squares, as a kernel.

    max a'w / sqrt(w'Mw) over w >= 0 has the direction of argmin ||L'w - L^-1 a|| with M = L L'.
    """
    weight = np.ones(len(labeled)) if weight is None else weight
    H, root = centering(weight), np.sqrt(weight)
    parts = [root[:, None] * (H @ K[np.ix_(labeled, labeled)] @ H.T) * root for K in matrices]
    sizes = np.array([np.trace(part) for part in parts]) / weight.sum()
    flat = np.array([(part / size).ravel() for part, size in zip(parts, sizes, strict=True)])
    goal = (root[:, None] * (H @ Y @ Y.T @ H.T) * root).ravel()
    w, _ = nnls(flat.T, goal, maxiter=10_000)
    w /= w.sum()
    return sum(x * K / size for x, K, size in zip(w, matrices, sizes, strict=True)), w


def rank_ones(*groups):
    return [np.outer(b, b) for B in groups for b in B.T]


def gram_of(learner):
    return learner.kernel_.block(WHOLE, WHOLE)


def votes(K_nl, Y):
    return K_nl @ Y / K_nl.sum(axis=1, keepdims=True)


# Algorithm 1


@pytest.mark.parametrize("basis", ["kernel", "laplacian"])
@pytest.mark.parametrize("n_eigenvectors", [0, 3, 0.2])
def test_the_kernel_is_that_of_algorithm_1_computed_densely(basis, n_eigenvectors):
    X, y, _ = flowers(1)
    learner = LabelAwareKernelLearner(RBF(GAMMA), n_eigenvectors=n_eigenvectors, basis=basis).fit(X, y)
    K, labeled = rbf_kernel(X, gamma=GAMMA), np.flatnonzero(y >= 0)
    Y = np.eye(3)[y[labeled]]
    S = K if basis == "kernel" else K / np.sqrt(np.outer(K.sum(axis=1), K.sum(axis=1)))
    n_vectors = 12 if n_eigenvectors == 0.2 else n_eigenvectors
    V = np.linalg.eigh(S)[1][:, ::-1][:, :n_vectors]
    expected, w = dense_kernel(rank_ones(votes(K[:, labeled], Y), V), Y, labeled)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(gram_of(learner), expected, rtol=0, atol=1e-8 * scale)
    Z = learner.transform(X)
    np.testing.assert_allclose(Z @ Z.T, expected, rtol=0, atol=1e-8 * scale)
    np.testing.assert_allclose(learner.weights_, w, atol=1e-8)
    assert learner.n_features_out_ == Z.shape[1] == np.count_nonzero(w > 1e-12)
    assert [record["name"] for record in learner.base_kernels_][:4] == [
        "label-aware: 0", "label-aware: 1", "label-aware: 2", *["eigenvector 0"] * (n_vectors > 0)
    ]  # fmt: skip


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_normalization_by_class_is_the_mean_over_its_rows(leave_one_out):
    X, y, _ = flowers(2)
    learner = LabelAwareKernelLearner(
        Polynomial(), n_eigenvectors=0, normalization="class", leave_one_out=leave_one_out
    ).fit(X, y)
    K = (X @ X.T + 1) ** 2
    labeled = np.flatnonzero(y >= 0)
    U = np.column_stack([K[:, y == k].mean(axis=1) for k in range(3)])  # (5)
    if leave_one_out:
        for i in labeled:
            U[i, y[i]] = K[i, (y == y[i]) & (np.arange(60) != i)].mean()
    expected, _ = dense_kernel(rank_ones(U), np.eye(3)[y[labeled]], labeled)
    np.testing.assert_allclose(gram_of(learner), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("gamma", [0.05, 0.8, 50.0])
def test_leave_one_out_is_a_fit_without_the_label_of_each_row(gamma):
    X, y, _ = flowers(3)
    learner = LabelAwareKernelLearner(RBF(gamma), n_eigenvectors=0, leave_one_out=True).fit(X, y)
    K, labeled = rbf_kernel(X, gamma=gamma), np.flatnonzero(y >= 0)

    def class_means(i, y):
        means = np.array([K[i, y == k].mean() for k in range(3)])
        return means / means.sum()

    U = np.array([class_means(i, y) for i in range(60)])
    for i in labeled:
        U[i] = class_means(i, np.where(np.arange(60) == i, -1, y))
    expected, _ = dense_kernel(rank_ones(U), np.eye(3)[y[labeled]], labeled)
    np.testing.assert_allclose(gram_of(learner), expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    new = np.random.default_rng(0).normal(size=(5, 4))  # any row is new for transform
    means = np.array([rbf_kernel(new, X[y == k], gamma=gamma).mean(axis=1) for k in range(3)]).T
    U_new = means / means.sum(axis=1, keepdims=True)
    K_new = learner.transform(new) @ learner.transform(new).T
    sizes = [np.var(U[labeled, k]) for k in range(3)]
    np.testing.assert_allclose(K_new, U_new * (learner.weights_ / sizes) @ U_new.T, rtol=1e-8)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("leave_one_out", [False, True])
def test_of_numbers_the_votes_are_estimates_of_nadaraya_and_watson(several, leave_one_out):
    X, y, _ = curve(4)
    y = y if several else y[:, 0]
    learner = LabelAwareKernelLearner(RBF(2.0), n_eigenvectors=4, leave_one_out=leave_one_out).fit(X, y)
    labeled = np.arange(20)
    Y = y[labeled].reshape(20, -1)
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    K = rbf_kernel(X, gamma=2.0)
    V = np.linalg.eigh(K)[1][:, -4:]
    K_nl = K[:, labeled].copy()
    if leave_one_out:
        np.fill_diagonal(K_nl, 0.0)
    expected, _ = dense_kernel(rank_ones(votes(K_nl, Y), V), Y, labeled)
    np.testing.assert_allclose(gram_of(learner), expected, rtol=0, atol=1e-8 * np.abs(expected).max())


def test_the_target_is_read_from_y_or_named():
    X, _, truth = curve(5)
    whole = 3.0 + np.rint(truth[:, 0] * 3)
    assert len(LabelAwareKernelLearner().fit(X, truth).base_kernels_) == 2 + 5
    as_classes = LabelAwareKernelLearner(n_eigenvectors=0).fit(X, whole)
    assert len(as_classes.weights_) == len(np.unique(whole))
    assert len(LabelAwareKernelLearner(n_eigenvectors=0, target="numbers").fit(X, whole).weights_) == 1


def test_extra_kernels_join_the_mixture_and_are_exact_against_labelled_rows():
    X, y, _ = flowers(6)
    extra = [Linear(), ("deformed", ManifoldKernel(RBF(GAMMA), 5))]
    learner = LabelAwareKernelLearner(RBF(GAMMA), n_eigenvectors=2, weighting="align", extra_kernels=extra).fit(X, y)
    assert [record["name"] for record in learner.base_kernels_][-2:] == ["Linear()", "deformed"]
    assert (learner.weights_[-2:] > 0).all()
    Z, labeled, K = learner.transform(X), np.flatnonzero(y >= 0), gram_of(learner)
    np.testing.assert_allclose(Z @ Z[labeled].T, K[:, labeled], rtol=1e-8, atol=1e-7 * np.abs(K).max())
    new = X + 0.01
    Z_new = learner.transform(new)
    against = learner.kernel_.against(new)
    np.testing.assert_allclose(Z_new @ Z[labeled].T, against[:, labeled], rtol=1e-8, atol=1e-7 * np.abs(K).max())


# Alignment


@pytest.mark.parametrize("weighting", ["alignf", "align", "uniform"])
def test_the_alignment_is_its_definition_before_and_after(weighting):
    X, y, _ = flowers(7)
    learner = LabelAwareKernelLearner(RBF(GAMMA), weighting=weighting, extra_kernels=Linear()).fit(X, y)
    labeled = np.flatnonzero(y >= 0)
    target = np.eye(3)[y[labeled]] @ np.eye(3)[y[labeled]].T
    before = alignment(rbf_kernel(X[labeled], gamma=GAMMA), target)
    after = alignment(gram_of(learner)[np.ix_(labeled, labeled)], target)
    np.testing.assert_allclose(list(learner.alignment_.values()), [before, after], rtol=1e-9)
    assert learner.objective_ == learner.alignment_["after"]
    assert (learner.weights_ >= 0).all()
    assert learner.weights_.sum() == pytest.approx(1.0)
    eigenvalues = np.linalg.eigvalsh(gram_of(learner))
    assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]
    assert learner.status_ is Status.CONVERGED
    assert learner.certificate_.kind == "KKT residual"
    if weighting == "uniform":
        np.testing.assert_allclose(learner.weights_, 1 / len(learner.weights_))


def test_no_member_alone_is_better_aligned_than_alignf():
    X, y, _ = moons(8)
    kernels = KernelLibrary([Linear(), *rbf_family()])
    learner = AlignedKernelLearner(kernels).fit(X, y)
    alone = [AlignedKernelLearner(entry.kernel).fit(X, y).alignment_["after"] for entry in kernels.entries]
    assert learner.alignment_["after"] >= max(alone) - 1e-12
    assert learner.alignment_["before"] == pytest.approx(alone[0])
    for weighting in ("align", "uniform"):
        other = AlignedKernelLearner(kernels, weighting=weighting).fit(X, y)
        assert learner.alignment_["after"] >= other.alignment_["after"] - 1e-12


def test_the_kernel_of_a_library_is_that_of_dense_alignf():
    X, y, _ = moons(9)
    learner = AlignedKernelLearner([Linear(), RBF(0.5), RBF(5.0)]).fit(X, y)
    labeled = np.flatnonzero(y >= 0)
    matrices = [X @ X.T, rbf_kernel(X, gamma=0.5), rbf_kernel(X, gamma=5.0)]
    expected, w = dense_kernel(matrices, np.eye(2)[y[labeled]], labeled)
    np.testing.assert_allclose(gram_of(learner), expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(learner.weights_, w, atol=1e-8)


@pytest.mark.parametrize("basis", ["kernel", "laplacian"])
def test_a_ridge_draws_the_weights_to_those_of_align(basis):
    X, y, _ = moons(10)
    options = {"basis": basis, "n_eigenvectors": 8}
    goal = AlignedKernelLearner(RBF(4.0), weighting="align", **options).fit(X, y).weights_
    far, near = (
        np.abs(AlignedKernelLearner(RBF(4.0), ridge=ridge, **options).fit(X, y).weights_ - goal).max()
        for ridge in (0.0, 1e6)
    )
    assert near < 1e-5 < far


def test_ordered_weights_do_not_increase_beyond_the_first():
    X, y, _ = moons(11, n=100)
    learner = OrderedSpectralKernelLearner(RBF(20.0), n_eigenvectors=12).fit(X, y)
    assert (np.diff(learner.weights_[1:]) <= 1e-15).all()
    K = rbf_kernel(X, gamma=20.0)
    V = np.linalg.eigh(K / np.sqrt(np.outer(K.sum(axis=1), K.sum(axis=1))))[1][:, ::-1][:, :12]
    np.testing.assert_allclose(gram_of(learner), V * learner.weights_ @ V.T, atol=1e-9)
    free = AlignedKernelLearner(RBF(20.0), basis="laplacian", n_eigenvectors=12).fit(X, y)
    assert learner.alignment_["after"] <= free.alignment_["after"] + 1e-9


# Rows that are new, far away, many


@every_learner
def test_transform_gives_training_rows_the_features_they_were_learned_with(learner):
    X, y, _ = flowers(12)
    model = learner().fit(X, y)
    Z = model.transform(X)
    labeled = np.flatnonzero(y >= 0)
    np.testing.assert_allclose(Z @ Z[labeled].T, gram_of(model)[:, labeled], rtol=1e-7, atol=1e-7)
    new = X[::3] + 0.1
    Z_new = model.transform(new)
    np.testing.assert_allclose(Z_new @ Z[labeled].T, model.kernel_.against(new)[:, labeled], rtol=1e-6, atol=1e-6)
    assert list(model.get_feature_names_out()) == [f"{learner.__name__.lower()}{k}" for k in range(Z.shape[1])]


@pytest.mark.parametrize("basis", ["kernel", "laplacian"])
@pytest.mark.parametrize("landmarks", ["kmeans", "uniform"])
def test_all_rows_as_landmarks_are_exact_and_few_are_near(basis, landmarks):
    X, y, _ = flowers(13)
    options = {"n_eigenvectors": 4, "basis": basis, "landmarks": landmarks, "random_state": 0}
    exact = LabelAwareKernelLearner(RBF(0.1), **options).fit(X, y)
    same = LabelAwareKernelLearner(RBF(0.1), n_landmarks=60, **options).fit(X, y)
    np.testing.assert_allclose(gram_of(same), gram_of(exact), rtol=1e-8, atol=1e-8)
    # few landmarks: one fewer than rows already takes the other way through the code
    many = LabelAwareKernelLearner(RBF(0.1), n_landmarks=59, **options).fit(X, y)
    np.testing.assert_allclose(gram_of(many), gram_of(exact), atol=1e-3 * np.abs(gram_of(exact)).max())


@pytest.mark.parametrize("multiple", [1.0, 1e4])
def test_far_rows_have_the_values_of_the_nearest_labelled_one(multiple):
    X, y, _ = moons(14)
    learner = LabelAwareKernelLearner(RBF(multiple=multiple), n_eigenvectors=0, weighting="uniform").fit(X, y)
    far = 1e6 * np.array([[1.0, 0.3], [-1.0, 0.2], [0.1, -1.0]])
    Z = learner.transform(far)
    labeled = np.flatnonzero(y >= 0)
    nearest = labeled[euclidean_distances(far, X[labeled]).argmin(axis=1)]
    scale = Z.max()
    np.testing.assert_allclose(Z / scale, np.eye(2)[y[nearest]], atol=1e-9)
    with_vectors = LabelAwareKernelLearner(RBF(multiple=multiple), n_eigenvectors=5, basis="laplacian").fit(X, y)
    assert np.isfinite(with_vectors.transform(far)).all()


# Data of every kind


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_columns_of_a_frame_are_named(package):
    frames = pytest.importorskip(package)
    X, y, _ = flowers(20)
    frame = frames.DataFrame({name: X[:, k] for k, name in enumerate("abcd")})
    named = LabelAwareKernelLearner(OnColumns(RBF(1.0), ["a", "c"]), extra_kernels=OnColumns(Linear(), ["d"]))
    numbered = LabelAwareKernelLearner(OnColumns(RBF(1.0), [0, 2]), extra_kernels=OnColumns(Linear(), [3]))
    found = named.fit(frame, y).transform(frame)
    np.testing.assert_allclose(found, numbered.fit(X, y).transform(X), rtol=1e-10, atol=1e-12)
    assert named.feature_names_in_.tolist() == list("abcd")


def test_a_precomputed_kernel_is_a_base_like_any_other():
    X, y, _ = flowers(21)
    K, rows = rbf_kernel(X, gamma=GAMMA), np.arange(60)[:, None]
    given = LabelAwareKernelLearner(Precomputed(K), n_eigenvectors=5, extra_kernels=Precomputed(X @ X.T)).fit(rows, y)
    computed = LabelAwareKernelLearner(RBF(GAMMA), n_eigenvectors=5, extra_kernels=Linear()).fit(X, y)
    np.testing.assert_allclose(gram_of(given), gram_of(computed), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("normalization", ["degree", "class"])
def test_a_weight_is_a_number_of_rows_where_no_eigenvectors_are(normalization):
    X, y, _ = flowers(23)
    weight = np.where(np.arange(60) % 4 == 0, 2.0, 1.0) * (np.arange(60) % 7 != 3)
    options = {"n_eigenvectors": 0, "normalization": normalization, "extra_kernels": Linear()}
    weighted = LabelAwareKernelLearner(RBF(GAMMA), **options).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(60), weight.astype(int))
    repeated = LabelAwareKernelLearner(RBF(GAMMA), **options).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-9)
    np.testing.assert_allclose(weighted.kernel_.against(X)[:, 0], repeated.kernel_.against(X)[:, 0], rtol=1e-8)
    assert weighted.alignment_["after"] == pytest.approx(repeated.alignment_["after"])


def test_of_two_classes_the_votes_are_one_kernel_but_for_constants():
    X, y, _ = moons(25)
    learner = LabelAwareKernelLearner(n_eigenvectors=0).fit(X, y)
    alone = votes(rbf_kernel(X, X[:20], gamma=1 / euclidean_distances(X, squared=True).mean()), np.eye(2)[y[:20]])[:, 0]
    H = np.eye(60) - 1 / 60
    expected = np.outer(H @ alone, H @ alone) / np.var(alone[:20])
    np.testing.assert_allclose(H @ gram_of(learner) @ H, expected, atol=1e-9)


# Bad input

X0, Y0, _ = moons(26)
NAN = FromCallable(lambda A, B: np.full((A.shape[0], B.shape[0]), np.nan))
BAD_PARAMETERS = {
    "n_eigenvectors": ({"n_eigenvectors": -1}, "n_eigenvectors=-1; expected a whole number, 0 or more, or a share"),
    "a share above 1": ({"n_eigenvectors": 1.5}, "n_eigenvectors=1.5; expected a whole number"),
    "n_eigenvectors in words": ({"n_eigenvectors": "all"}, "n_eigenvectors='all'; expected a whole number"),
    "basis": ({"basis": "fourier"}, 'basis=\'fourier\'; expected "kernel" or "laplacian"'),
    "weighting": ({"weighting": "best"}, 'weighting=\'best\'; expected "alignf", "align" or "uniform"'),
    "weighting of a wrong type": ({"weighting": [1, 2]}, r'weighting=\[1, 2\]; expected "alignf"'),
    "ridge": ({"ridge": -0.1}, "ridge=-0.1; expected a number, 0 or more"),
    "leave_one_out": ({"leave_one_out": "yes"}, "leave_one_out='yes'; expected True or False"),
    "normalization": ({"normalization": None}, 'normalization=None; expected "degree" or "class"'),
    "n_landmarks": ({"n_landmarks": 0}, 'n_landmarks=0; expected "auto", None or'),
    "landmarks": ({"landmarks": "grid"}, 'landmarks=\'grid\'; expected "kmeans" or "uniform"'),
    "target": ({"target": "ranks"}, 'target=\'ranks\'; expected "auto", "classes" or "numbers"'),
    "negative votes": (
        {"kernel": Linear()},
        'this one has values down to -.*normalization="class"',
    ),
    "indefinite": (
        {"extra_kernels": [RBF(), Sigmoid(1.0, -1.0)]},
        "Sigmoid.* is not positive semi-definite, as LabelAwareKernelLearner requires",
    ),
    "not symmetric": (
        {"extra_kernels": [("askew", FromCallable(lambda A, B: A @ np.triu(np.ones((2, 2))) @ B.T))]},
        "The kernel askew is not symmetric, and LabelAwareKernelLearner needs symmetric, positive",
    ),
    "extra kernel of NaN": ({"extra_kernels": NAN}, "gave values that are not finite"),
    "base of NaN": ({"kernel": NAN, "n_eigenvectors": 0}, "gave values that are not finite"),
}


@pytest.mark.parametrize("case", BAD_PARAMETERS, ids=str)
def test_bad_parameters_give_one_clear_sentence_and_fit_nothing(case):
    options, message = BAD_PARAMETERS[case]
    learner = LabelAwareKernelLearner(**options)
    with pytest.raises(ValueError, match=message):
        learner.fit(X0, Y0)
    assert not hasattr(learner, "kernel_")


def test_eigenvectors_are_those_of_one_kernel():
    with pytest.raises(ValueError, match="basis='kernel'; expected None, since several kernels were given"):
        AlignedKernelLearner([RBF(), Linear()], basis="kernel").fit(X0, Y0)
    with pytest.raises(ValueError, match="n_eigenvectors=0; expected 1 or more, since basis is given"):
        AlignedKernelLearner(RBF(), basis="kernel", n_eigenvectors=0).fit(X0, Y0)
    with pytest.raises(ValueError, match="n_eigenvectors=0; expected a whole number, 1 or more"):
        OrderedSpectralKernelLearner(n_eigenvectors=0).fit(X0, Y0)
    with pytest.raises(TypeError, match="LabelAwareKernelLearner takes a kernel such as RBF"):
        LabelAwareKernelLearner("rbf").fit(X0, Y0)


def test_a_class_of_one_row_cannot_be_left_out():
    y = np.where((Y0 == 1) & (np.cumsum(Y0 == 1) > 1), -1, Y0)
    assert LabelAwareKernelLearner().fit(X0, y).status_ is Status.CONVERGED
    with pytest.raises(ValueError, match="two labelled rows of each class at least, but class 1 has one"):
        LabelAwareKernelLearner(leave_one_out=True).fit(X0, y)


@every_learner
def test_columns_of_different_scales_are_warned_of_where_the_kernel_is_the_default(learner):
    X, y, _ = flowers()
    unlike = X * [1, 1, 1e-3, 200]
    with pytest.warns(UserWarning, match=r"scales: standard deviations from 0.0\d+ to .* use StandardS") as caught:
        learner().fit(unlike, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_of_the_fit_are_transformed_as_other_rows_are(dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)).astype(dtype)
    y = np.where(np.arange(80) < 20, X[:, 0] > 0, -1)
    learner = LabelAwareKernelLearner(n_eigenvectors=10, n_landmarks=30, random_state=0).fit(X, y)
    again, others = learner.transform(X), learner.transform(np.vstack([X, X[:1]]))[:-1]
    np.testing.assert_allclose(again, others, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-9)
    assert again.dtype == dtype
    changed = X.copy()
    changed[5] += 1.0
    assert np.abs(learner.transform(changed)[5] - again[5]).max() > 1e-3  # other rows of the same shape
    alone = LabelAwareKernelLearner(n_eigenvectors=5, leave_one_out=True).fit(X, y)
    np.testing.assert_allclose(alone.transform(X), alone.transform(np.vstack([X, X[:1]]))[:-1], rtol=0, atol=1e-4)
