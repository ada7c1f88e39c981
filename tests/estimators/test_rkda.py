import warnings

import numpy as np
import pytest
from scipy import linalg, optimize
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from kernelweave import RBF, FromCallable, Linear, OnColumns, Precomputed, RKDAClassifier, Sigmoid
from kernelweave.solvers.discriminant import matrix_fractional
from kernelweave.solvers.result import Status

TRIO = [RBF(0.3), RBF(1.0), Linear()]
RIDGE = 0.01  # of kernels of trace 1, whose mean eigenvalue is 1/60 for the 60 rows here


def sample(seed=0, n=60, n_classes=2, n_labeled=None):
    """Overlapping classes that are not linear; codes, and None for rows without a label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noisy = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    y = np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1]) + 0.2)
    return X, y if n_labeled is None else np.where(np.arange(n) < n_labeled, y, None)


def trio(X):
    """The kernel matrices of TRIO, centred, of trace 1."""
    return [unit(rbf_kernel(X, gamma=0.3)), unit(rbf_kernel(X, gamma=1.0)), unit(linear_kernel(X))]


def unit(K):
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return K / np.trace(K)


def indicators(y):
    """H of (25)."""
    shares = np.bincount(y) / len(y)
    return (np.eye(len(shares))[y] - shares) / np.sqrt(shares)


def objective(weights, kernels, H, ridge):
    """F; where the ridge is to be learned, the first weight is that of I/m."""
    terms = [np.eye(len(H)) / len(H), *kernels] if ridge == "learned" else [np.eye(len(H)), *kernels]
    weights = weights if ridge == "learned" else np.append(ridge, weights)
    return np.trace(H.T @ np.linalg.lstsq(sum(w * K for w, K in zip(weights, terms, strict=True)), H)[0])


def all_weights(model):
    """The weights, before them that of the identity where the ridge is learned."""
    share = len(model.scalings_) * model.ridge_
    return np.append(share, model.weights_) / (1.0 + share) if model.ridge == "learned" else model.weights_


@pytest.mark.parametrize("ridge", ["learned", RIDGE, 1e-4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_objective_is_that_of_the_paper_at_the_weights_and_the_best(n_classes, ridge):
    X, y = sample(1, n_classes=n_classes)
    problem = trio(X), indicators(y), ridge
    model = RKDAClassifier(TRIO, ridge=ridge).fit(X, y)
    weights = all_weights(model)
    assert model.objective_ == pytest.approx(objective(weights, *problem), rel=1e-9)
    assert model.certificate_.relative <= 1e-6
    assert model.weights_.sum() == pytest.approx(1.0, abs=1e-12)
    assert model.weights_.min() >= 0
    simplex = {"bounds": [(1e-9, 1)] * len(weights), "constraints": {"type": "eq", "fun": lambda w: w.sum() - 1}}
    other = optimize.minimize(objective, weights * 0 + 0.25, problem, options={"ftol": 1e-12}, **simplex).x  # SLSQP
    best = objective(other / other.sum(), *problem)
    assert model.objective_ - model.certificate_.gap <= best * (1 + 1e-12)
    assert model.objective_ <= best * (1 + 1e-6)
    if n_classes == 2:  # m+ m- times (16), (40)
        sizes = np.bincount(y)
        a = np.where(y == 1, 1 / sizes[1], -1 / sizes[0])[:, None]  # (8)
        assert model.objective_ == pytest.approx(sizes.prod() * objective(weights, trio(X), a, ridge), rel=1e-9)


@pytest.mark.filterwarnings("ignore:The learned ridge")
def test_a_learned_ridge_of_nothing_is_given_as_the_floor_that_the_solver_puts_in_its_place():
    X, y = sample(3, n_classes=3)
    learned = RKDAClassifier([RBF(100.0), RBF(0.3)]).fit(X, y)
    assert learned.ridge_ == matrix_fractional.MIN_RIDGE
    again = RKDAClassifier([RBF(100.0), RBF(0.3)], ridge=learned.ridge_).fit(X, y)
    np.testing.assert_allclose(again.transform(X), learned.transform(X), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_classes", "n_labeled"), [(2, None), (3, None), (2, 30)])
def test_a_learned_ridge_is_the_one_with_which_a_fit_finds_the_same_model(n_classes, n_labeled, weighted):
    X, y = sample(3, n_classes=n_classes, n_labeled=n_labeled)
    weight = np.random.default_rng(3).uniform(0.5, 3.0, size=60) if weighted else None
    learned = RKDAClassifier(TRIO, tol=1e-12).fit(X, y, weight)
    again = RKDAClassifier(TRIO, ridge=learned.ridge_, tol=1e-12).fit(X, y, weight)
    np.testing.assert_allclose(again.weights_, learned.weights_, atol=1e-5)
    np.testing.assert_allclose(again.decision_function(X), learned.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("ridge", ["learned", RIDGE])
def test_the_joint_form_is_an_upper_bound_of_the_exact_one(ridge):
    X, y = sample(4, n_classes=3)
    joint, exact = (RKDAClassifier(TRIO, ridge=ridge, formulation=f).fit(X, y) for f in ("joint", "exact"))
    at_joint = objective(all_weights(joint), trio(X), indicators(y), ridge)
    assert exact.objective_ * (1 - 1e-6) <= at_joint <= joint.objective_
    assert joint.certificate_.relative <= 1e-6


@pytest.mark.parametrize("ridge", [1e-6, 1e-2])
def test_the_scatter_within_the_classes_gives_the_direction_of_kim(ridge):
    X, y = sample(5)
    A = (X - X.mean(axis=0)) / np.sqrt(np.square(X - X.mean(axis=0)).sum())
    difference = A[y == 1].mean(axis=0) - A[y == 0].mean(axis=0)
    S = sum(np.mean(y == k) * np.cov(A[y == k].T, bias=True) for k in (0, 1))
    direction = np.linalg.solve(S + ridge * np.eye(4), difference)  # (4)
    model = RKDAClassifier(Linear(), scatter="within", ridge=ridge).fit(X, y)
    assert model.objective_ == pytest.approx(difference @ direction, rel=1e-8)
    projected = A @ direction
    np.testing.assert_allclose(model.transform(X)[:, 0], projected, rtol=1e-6, atol=1e-8 * np.abs(projected).max())
    several, *single = (clone(model).set_params(kernels=kernels).fit(X, y) for kernels in (TRIO, *TRIO))
    assert several.certificate_.relative <= 1e-6
    assert several.objective_ * 1.000001 >= max(one.objective_ for one in single)  # it is maximised


@pytest.mark.parametrize("n_classes", [2, 3])
def test_directions_are_those_of_linear_discriminant_analysis(n_classes):
    X, y = sample(6, n_classes=n_classes)
    model = RKDAClassifier(Linear(), ridge=RIDGE).fit(X, y)
    A = X - X.mean(axis=0)
    size = np.sqrt(np.square(A).sum())
    total = A.T @ A / size**2 + RIDGE * np.eye(4)
    between = A.T @ indicators(y) / size
    V = linalg.eigh(between @ between.T, total)[1][:, ::-1][:, : n_classes - 1]  # of unit regularised variance
    for rows in (X, np.random.default_rng(6).normal(size=(7, 4))):
        expected = (rows - X.mean(axis=0)) @ V / size
        projected = model.transform(rows)
        expected *= np.sign(np.sum(expected * projected, axis=0))
        np.testing.assert_allclose(projected, expected, atol=1e-10)


def test_new_rows_are_projected_by_the_formula():
    X, y = sample(7, n_classes=3)
    new = np.random.default_rng(7).normal(size=(9, 4))
    model = RKDAClassifier(TRIO).fit(X, y)
    raw = [lambda A: rbf_kernel(A, X, gamma=0.3), lambda A: rbf_kernel(A, X, gamma=1.0), lambda A: A @ X.T]
    traces = [np.trace(K(X)) - K(X).sum() / 60 for K in raw]

    def values(A):
        return sum(w * K(A) / r for w, K, r in zip(model.weights_, raw, traces, strict=True)) @ model.scalings_

    np.testing.assert_allclose(model.transform(new), values(new) - values(X).mean(axis=0), atol=1e-10)
    kernel, W = sum(w * K for w, K in zip(model.weights_, trio(X), strict=True)), model.scalings_
    # of unit regularised variance, and not correlated
    np.testing.assert_allclose(W.T @ (kernel @ kernel + model.ridge_ * kernel) @ W, np.eye(2), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.filterwarnings("ignore:The learned ridge")
def test_directions_do_not_turn_with_rounding_where_the_kernel_interpolates(n_classes):
    X, _ = sample(7)
    y = np.arange(60) % n_classes  # of equal sizes: eigenvalues are equal, and entries of eigenvectors
    turn = np.random.default_rng(7).permutation(60)
    model, turned = (RKDAClassifier([RBF(100.0), RBF(0.3)]).fit(X[rows], y[rows]) for rows in (np.arange(60), turn))
    np.testing.assert_allclose(turned.transform(X), model.transform(X), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_row_belongs_to_the_nearest_centroid(n_classes):
    X, y = sample(8, n_classes=n_classes, n_labeled=45)
    model = RKDAClassifier(TRIO).fit(X, y)
    projected = model.transform(X)
    labels = y[:45].astype(int)
    centroids = [projected[:45][labels == k].mean(axis=0) for k in range(n_classes)]
    np.testing.assert_allclose(model.centroids_, centroids, atol=1e-12)
    nearest = np.square(projected[:, None] - centroids).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(model.predict(X), nearest)
    np.testing.assert_array_equal(model.transduction_, np.r_[labels, nearest[45:]])
    assert model.decision_function(X).shape == ((60,) if n_classes == 2 else (60, n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["labeled", "dict", "list"])
def test_priors_move_the_boundary_as_normal_densities_do(n_classes, kind):
    X, y = sample(9, n_classes=n_classes)
    shares = np.bincount(y) / 60 if kind == "labeled" else np.arange(1, n_classes + 1) / sum(range(n_classes + 1))
    names = np.array(["a", "b", "c"])
    given = {"labeled": "labeled", "dict": dict(zip(names, 7 * shares, strict=False)), "list": list(7 * shares)}[kind]
    model, equal = (RKDAClassifier(TRIO, class_prior=p).fit(X, names[y]) for p in (given, [1.0] * n_classes))
    np.testing.assert_allclose(model.class_prior_, shares)
    np.testing.assert_allclose(equal.centroids_, model.centroids_)
    moved = model.decision_function(X) - equal.decision_function(X)
    moved = moved[:, None] if n_classes == 2 else moved[:, 1:] - moved[:, :1]
    np.testing.assert_allclose(moved, np.log(shares[1:] / shares[0]) + np.zeros((60, 1)), rtol=1e-8, atol=1e-8)
    values = model.decision_function(X)
    np.testing.assert_array_equal(
        model.predict(X), names[(values > 0).astype(int) if n_classes == 2 else values.argmax(axis=1)]
    )


COUNTED = [{}, {"ridge": RIDGE}, {"formulation": "joint", "tol": 1e-8}]
COUNTED += [{"ridge": RIDGE, "class_prior": "labeled", "threshold": "calibrated"}]


@pytest.mark.parametrize("options", COUNTED, ids=str)
@pytest.mark.parametrize(("n_classes", "n_labeled"), [(2, None), (3, 40)])
def test_a_weight_is_a_number_of_rows(n_classes, n_labeled, options):
    X, y = sample(12, n_classes=n_classes, n_labeled=n_labeled)
    weight = np.arange(60) % 4
    model = RKDAClassifier(TRIO, unlabeled_scatter=True, tol=1e-11).set_params(**options)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=2 * model.tol + 1e-10)
    near = 10 * np.sqrt(model.tol)  # the gap is quadratic in the distance
    np.testing.assert_allclose([weighted.ridge_, *weighted.weights_], [repeated.ridge_, *repeated.weights_], atol=near)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=near, atol=10 * near)
    assert not weighted.scalings_[weight == 0].any()
    kept = RKDAClassifier(TRIO, **options).fit(X, y, sample_weight=weight > 0)
    alone = RKDAClassifier(TRIO, **options).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(kept.decision_function(X), alone.decision_function(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"ridge": RIDGE}, {"ridge": RIDGE, "scatter": "within"}], ids=str)
def test_equal_weights_are_repeated_rows(options):
    X, y = sample(13)
    model = RKDAClassifier(TRIO, tol=1e-11, **options)
    weighted, repeated = clone(model).fit(X, y, np.full(60, 2.0)), clone(model).fit(np.r_[X, X], np.r_[y, y])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-4)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-3, atol=1e-3)


NOTHING = np.linspace(-1, 1, 60)[:, None], np.arange(60) % 2  # of which a linear kernel says nothing
LIGHT = *sample(13), np.arange(1, 61) / 1e4


@pytest.mark.parametrize("data", [NOTHING, LIGHT], ids=["noise", "small weights"])
def test_kernels_that_are_of_no_use_still_make_a_model(data):
    model = RKDAClassifier(Linear()).fit(*data)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert set(model.predict(data[0])) == {0, 1}


@pytest.mark.parametrize("ridge", ["learned", RIDGE])
def test_order_scale_and_copies_do_not_matter(ridge):
    X, y = sample(14, n_classes=3)
    model = RKDAClassifier(TRIO, ridge=ridge, tol=1e-11).fit(X, y)
    values = model.decision_function(X)
    turn = np.argsort(X[:, 0])
    turned = clone(model).fit(X[turn], y[turn])
    np.testing.assert_allclose(turned.decision_function(X), values, rtol=1e-4, atol=1e-4)
    back = clone(model).set_params(kernels=TRIO[::-1]).fit(X, y)
    np.testing.assert_allclose(back.weights_[::-1], model.weights_, atol=1e-5)
    rows, matrices = np.arange(60)[:, None], [c * K for c, K in zip([2.0, 1e-3, 1e5], trio(X), strict=True)]
    before = np.copy(matrices)
    given = clone(model).set_params(kernels=[Precomputed(K) for K in matrices]).fit(rows, y)
    np.testing.assert_array_equal(matrices, before)
    np.testing.assert_allclose(given.weights_, model.weights_, atol=1e-5)
    np.testing.assert_allclose(given.decision_function(rows), values, rtol=1e-4, atol=1e-4)
    twice = clone(model).set_params(kernels=TRIO + TRIO).fit(X, y)
    np.testing.assert_allclose(twice.weights_[:3] + twice.weights_[3:], model.weights_, atol=1e-5)
    assert twice.objective_ == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("ridge", ["learned", RIDGE])
def test_landmarks_at_all_rows_change_nothing(ridge):
    X, y = sample(15, n_classes=3)
    exact = RKDAClassifier(TRIO, ridge=ridge, tol=1e-11).fit(X, y)
    found = clone(exact).set_params(n_landmarks=100).fit(X, y)
    assert found.objective_ == pytest.approx(exact.objective_, rel=1e-8)
    np.testing.assert_allclose(found.decision_function(X), exact.decision_function(X), rtol=1e-3, atol=1e-3)
    assert clone(exact).set_params(n_landmarks=6).fit(X, y).n_evaluations_ < exact.n_evaluations_


@pytest.mark.parametrize("options", [{}, {"formulation": "joint"}, {"scatter": "within", "ridge": RIDGE}], ids=str)
@pytest.mark.parametrize("size", [1e-145, 1e-100, 1e-3, 1e100, 1e150])  # up to where squares are no normal numbers
def test_the_scale_of_features_does_not_matter(size, options):
    X, y = sample(16)
    expected, found = (RKDAClassifier([RBF(), Linear()], **options).fit(factor * X, y) for factor in (1.0, size))
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)


@pytest.mark.parametrize("size", [1e-285, 1e300])
def test_the_scale_of_kernels_does_not_matter(size):
    X, y = sample(16)
    rows, kernels = np.arange(60)[:, None], trio(X)
    expected, found = (RKDAClassifier([Precomputed(f * K) for K in kernels]).fit(rows, y) for f in (1.0, size))
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)


MATRIX = Precomputed(rbf_kernel(sample(21)[0])), np.arange(60)[:, None]
HOLES = np.where(np.arange(60)[:, None] == [3, 3, 60, 60], np.nan, sample(21)[0])
AWKWARD = [MATRIX, (OnColumns(RBF(), [0, 1], missing="center"), HOLES)]


@pytest.mark.parametrize(("kernel", "X"), AWKWARD, ids=["Precomputed", "missing"])
def test_landmarks_go_with_every_kernel(kernel, X):
    assert RKDAClassifier(kernel, n_landmarks=20).fit(X, sample(21)[1]).predict(X).shape == (60,)


def test_the_units_of_columns_do_not_matter():
    X, y = sample(25)
    plain, unlike = RKDAClassifier().fit(X, y), RKDAClassifier().fit(X * [1, 1, 1e-3, 200], y)
    np.testing.assert_allclose(unlike.decision_function(X * [1, 1, 1e-3, 200]), plain.decision_function(X), atol=1e-4)


# Warnings and bad input


def test_kernels_in_place_of_a_ridge_are_warned_of():
    X, y = sample(25)
    narrow = [RBF(100.0), Linear()]
    with pytest.warns(UserWarning, match=r"almost zero .* mostly RBF\(gamma=100.0\) with .* set the ridge"):
        RKDAClassifier(narrow).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RKDAClassifier().fit(np.c_[X * [1, 1, 0.1, 5], np.ones(60)], y)
        RKDAClassifier(narrow, ridge=1e-3).fit(X, y)
        RKDAClassifier(TRIO).fit(X, y)


X0, Y0 = sample(27)
BAD = {
    "ridge": [0.0, -1.0, np.inf, np.nan, "cv", None, True],
    "formulation": ["approx", None],
    "scatter": ["between", 1],
    "threshold": ["best", 0.5],
    "class_prior": ["equal", [0.5], [0.5, -0.5], [1.0, np.nan], {0: 0.5}, {0: 0.5, 1: 0.5, 2: 0.1}, 0.5],
    "n_landmarks": [0, 1.5, "all", True],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_bad_parameters_give_one_clear_sentence_and_fit_nothing(name, value):
    model = RKDAClassifier(**{name: value})
    with pytest.raises(ValueError, match=f"RKDAClassifier got {name}=.*; expected"):
        model.fit(X0, Y0)
    assert not hasattr(model, "expansion_")


LATE = {"got class_prior": {"class_prior": "equal"}, "not positive semi-definite": {"kernels": Sigmoid(5.0, 5.0)}}


@pytest.mark.parametrize("message", LATE)
def test_what_is_refused_late_is_refused_as_elsewhere(message):
    model = RKDAClassifier(**LATE[message])
    with pytest.raises(ValueError, match=message):
        model.fit(X0, Y0)
    assert not hasattr(model, "expansion_")


WITHIN = {"scatter": "within", "ridge": 0.1}
WEIGHTS = np.linspace(0.5, 1.0, 60)
SKEWED = FromCallable(lambda A, B: A @ np.triu(np.ones((4, 4))) @ B.T)
BAD_DATA = {
    "learned and within": ({"scatter": "within"}, (X0, Y0), "it requires a number as ridge"),
    "within, three": (WITHIN, sample(28, n_classes=3), "for two classes and rows of equal weight; got 3 classes"),
    "within, weights": (WITHIN, (X0, Y0, WEIGHTS), "got 2 classes and different sample weights"),
    "indefinite": ({"kernels": Sigmoid(5.0, 5.0), "ridge": 1.0}, (X0, Y0), "semi-definite, as RKDAClassifier requires"),
    "not symmetric": ({"kernels": SKEWED}, (X0, Y0), "is not symmetric, and RKDAClassifier needs"),
    "too large": ({"kernels": Linear()}, (1e200 * X0, Y0), r"Linear\(\) gave values that are not finite"),
    "too large to square": ({"kernels": Linear() * Linear()}, (1e100 * X0, Y0), "gave values that are not finite"),
    "ridge, exact": ({"kernels": Linear(), "ridge": 1e-300}, (X0, Y0), "ridge is too small beside them"),
    "ridge, joint": ({"kernels": Linear(), "ridge": 1e-20, "formulation": "joint"}, (X0, Y0), "Pass a larger ridge"),
    "ridge, within": ({"kernels": Linear(), "ridge": 1e-20, "scatter": "within"}, (X0, Y0), "Pass a larger ridge"),
    "ridge, alone": ({"ridge": 1e-300}, (np.ones((60, 4)), Y0), "Pass a larger ridge"),
    "too small": (
        {"kernels": Linear()},
        (1e-150 * X0, Y0),
        r"their products are too small",
    ),
}


@pytest.mark.parametrize("case", BAD_DATA, ids=str)
def test_bad_data_give_one_clear_sentence_and_fit_nothing(case):
    options, data, message = BAD_DATA[case]
    model = RKDAClassifier(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(*data)
    assert not hasattr(model, "expansion_")


@pytest.mark.filterwarnings("ignore")
def test_a_row_that_repeats_is_no_obstacle_where_narrow_kernels_stand_in_for_the_ridge():
    data = [(X[[0, *range(60)]], y[[0, *range(60)]]) for X, y in map(sample, range(5))]
    assert all(RKDAClassifier([RBF(100.0), *TRIO]).fit(*rows).status_ is Status.CONVERGED for rows in data)


@pytest.mark.parametrize("options", [{}, {"ridge": 1e-8}, {"formulation": "joint"}, WITHIN], ids=str)
@pytest.mark.filterwarnings("ignore:The learned ridge")
def test_rows_that_say_nothing_and_rows_that_repeat_are_taken(options):
    assert np.ptp(RKDAClassifier(**options).fit(np.ones((60, 4)), Y0).decision_function(np.ones((7, 4)))) == 0.0
    repeated = RKDAClassifier(**options).fit(np.repeat(X0[:20], 3, axis=0), np.repeat(Y0[:20], 3))
    assert repeated.score(X0[:20], Y0[:20]) > 0.7
    pair = RKDAClassifier(**options).fit(X0[:2], [0, 1])
    np.testing.assert_array_equal(pair.predict(X0[:2]), [0, 1])
    with pytest.raises(ValueError, match="not sums over kernels; split must be False"):
        pair.decision_function(X0, split=True)
