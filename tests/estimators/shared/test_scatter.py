import numpy as np
import pytest
from checks.fit_order import in_order

from kernelweave import RBF, KernelLibrary, Linear, ManifoldKernel, RKDAClassifier
from kernelweave.estimators.shared.discriminant import MIN_CENTROID_SCALE
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.estimators.shared.scatter import Scatter
from kernelweave.estimators.shared.stacked_kernels import stack_kernels
from kernelweave.labels import partition
from kernelweave.solvers.discriminant.matrix_fractional import class_indicator
from kernelweave.solvers.machines import kernel_stack


def scatter(weight=None, y=None):
    """The scatter of 20 rows, with its sample and the raw kernels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = np.arange(20) % 3 if y is None else y
    weight = np.ones(20) if weight is None else weight
    found = partition(y)
    sample = read_as_given(Rows(X), found, weight)
    bound = KernelLibrary([RBF(0.5), Linear()]).bind(X, rng)
    raw = [kernel.block(slice(None), slice(None)) for kernel in bound.kernels]
    stacked = stack_kernels(bound, weight / weight.sum(), owner="Me", scale="trace", dtype="float64")
    return Scatter(stacked, sample), sample, raw


def test_kernels_are_centred_and_of_unit_trace_and_indicators_those_of_the_paper():
    found, sample, raw = scatter()
    P = np.eye(20) - 1 / 20
    for k, K in enumerate(raw):
        expected = P @ K @ P / np.trace(P @ K @ P)
        np.testing.assert_allclose(found.stack.combine(np.eye(2)[k]), expected, atol=1e-12)
    np.testing.assert_allclose(found.H, class_indicator(sample.partition.codes, 3), atol=1e-12)


@pytest.mark.parametrize("weight", [np.full(20, 2.0), np.arange(1.0, 21.0)], ids=["equal", "unequal"])
def test_weighted_rows_have_the_inner_products_of_repeated_ones(weight):
    found, sample, raw = scatter(weight)
    share = weight / weight.sum()
    center = np.eye(20) - np.outer(np.ones(20), share)
    for k, K in enumerate(raw):
        weighted = np.sqrt(weight)[:, None] * (center @ K @ center.T) * np.sqrt(weight)
        values = np.linalg.eigvalsh(weighted / np.trace(weighted))  # a reflection leaves them
        mine = found.stack.combine(np.eye(2)[k]) / found.stretch
        np.testing.assert_allclose(np.linalg.eigvalsh(mine), values, atol=1e-12)
        np.testing.assert_allclose(mine.sum(axis=0), 0.0, atol=1e-12)  # the constant vector is their null vector
    np.testing.assert_allclose(found.H.sum(axis=0), 0.0, atol=1e-12)
    counts = np.bincount(sample.partition.codes, weights=weight)
    H = found.H / np.sqrt(found.stretch)
    expected = weight.sum() * np.eye(3) - np.sqrt(np.outer(counts, counts))
    np.testing.assert_allclose(H.T @ H, expected, atol=1e-9)


def test_unlabelled_rows_have_no_indicator_and_no_sign():
    y = np.where(np.arange(20) < 12, np.arange(20) % 2, -1)
    found = scatter(y=y)[0]
    assert not found.H[12:].any()
    assert found.signs()[12:].tolist() == [0.0] * 8
    assert set(found.signs()[:12]) == {-1.0, 1.0}


def test_coefficients_of_rows_are_those_of_weighted_rows():
    weight = np.arange(1.0, 21.0)
    found, _, raw = scatter(weight)
    Z = np.random.default_rng(1).normal(size=(20, 2))
    Z -= Z.mean(axis=0)  # duals have no part in the constant direction
    center = np.eye(20) - np.outer(np.ones(20), weight / weight.sum())
    direct = (center @ raw[0] @ center.T) @ found.rows_of(Z) / found.scales[0]
    through = found.rows_of(found.stack.combine(np.array([1.0, 0.0])) @ Z) / weight[:, None] / found.stretch
    np.testing.assert_allclose(direct, through, atol=1e-10)


def test_rows_projected_by_the_others_tell_that_a_kernel_interpolates():
    found, sample, raw = scatter()
    weights, ridge = np.array([1.0, 0.0]), 1e-10
    dual = np.linalg.solve(found.stack.combine(weights) + 1 / 400 + ridge * np.eye(20), found.H)
    projected = found.stack.combine(weights) @ dual
    np.testing.assert_allclose(projected, found.H, atol=1e-6)
    others = found.left_out(projected, found.rows_of(dual), weights, ridge)
    for i in range(20):
        rest = np.delete(np.arange(20), i)
        system = np.block([[raw[0][np.ix_(rest, rest)], np.ones((19, 1))], [np.ones((1, 19)), np.zeros((1, 1))]])
        solved = np.linalg.solve(system, np.vstack([found.H[rest], np.zeros(3)]))
        np.testing.assert_allclose(others[i], np.append(raw[0][i, rest], 1.0) @ solved, atol=1e-5)
    assert sample.weight.sum() == 20


def labelled(seed, n=40, n_classes=2):
    """Overlapping classes that are not linear."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noisy = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=n)
    return X, np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1]) + 0.2)


def by_the_others(K, targets, weight, ridge):
    """Kernel ridge regression with a free offset: at all rows, and at each with one row less of its weight."""

    def fitted(weight):
        rows = np.flatnonzero(weight)
        system = np.ones((len(rows) + 1,) * 2)
        system[:-1, :-1] = K[np.ix_(rows, rows)] + np.diag(ridge / weight[rows])
        system[-1, -1] = 0.0
        right = np.vstack([targets[rows], np.zeros(targets.shape[1])])
        return np.c_[K[:, rows], np.ones(len(K))] @ np.linalg.solve(system, right)

    less = [np.where(np.arange(len(K)) == i, np.maximum(0.0, weight - 1.0), weight) for i in range(len(K))]
    return fitted(weight), np.array([fitted(others)[i] for i, others in enumerate(less)])


def projections_by_the_others(model, X, y, weight):
    """The projections of all rows by the one kernel of a model, and of each by the others; targets are not learned."""
    bound, total = model.library_.bind(X, model._rng()).kernels[0], weight.sum()
    K = bound.block(slice(None), slice(None))
    K /= weight @ K.diagonal() - weight @ K @ weight / total  # of trace 1 about the mean
    if model.scatter == "within":
        rows = np.flatnonzero(y >= 0)
        K, y, weight = K[np.ix_(rows, rows)], y[rows], weight[rows]
        targets = (y == 1.0)[:, None] - weight @ (y == 1) / weight.sum()
        ridge = weight.sum() * model.ridge_
    else:
        rows, ridge = np.arange(len(y)), model.ridge_
        targets = model.transform(X) + ridge * model.scalings_ / weight[:, None]
        labeled = y >= 0
        np.testing.assert_allclose(targets[~labeled], 0.0, atol=1e-9 * np.abs(targets).max())
    inside, outside = by_the_others(K, targets, weight, ridge)
    projected = model.transform(X)[rows]
    slope = np.sum(projected * (inside - inside.mean(axis=0)), axis=0) / np.square(inside - inside.mean(axis=0)).sum(
        axis=0
    )
    shift = projected.mean(axis=0) - slope * inside.mean(axis=0)
    np.testing.assert_allclose(slope * inside + shift, projected, atol=1e-6 * np.abs(projected).max())
    return projected, slope * outside + shift, y, weight


FORMS = {
    "plain": (RBF(0.3), {"ridge": 1e-2}, None, 3),
    "weights": (RBF(0.3), {"ridge": 1e-2}, "numbers", 2),
    "learned": (RBF(0.3), {}, "numbers", 3),
    "next to no ridge": (RBF(3.0), {"ridge": 1e-8}, None, 2),
    "unlabelled": (RBF(0.3), {"ridge": 1e-3, "unlabeled_scatter": True}, None, -2),
    "features": (Linear(), {"ridge": 1e-3}, "numbers", 2),
    "within": (RBF(0.3), {"ridge": 1e-3, "scatter": "within"}, None, 2),
    "within, unlabelled": (RBF(0.3), {"ridge": 1e-3, "scatter": "within", "unlabeled_scatter": True}, None, -2),
    "within, twice": (Linear(), {"ridge": 1e-2, "scatter": "within"}, "twice", 2),
}


@pytest.mark.parametrize("prior", [None, "labeled"])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_the_variance_is_that_of_rows_projected_by_the_others(form, large, prior, monkeypatch):
    kernel, options, kind, n_classes = FORMS[form]
    if large:  # kernels of features are used through these alone
        monkeypatch.setattr(kernel_stack, "MAX_DENSE_POINTS", 10)
        kernel = ManifoldKernel(kernel, ratio=0.0, n_landmarks=15)
    X, y = in_order(*labelled(9, n_classes=abs(n_classes)))  # landmarks are drawn among rows in this order
    y = np.where(np.arange(40) % 4 == 0, -1, y) if n_classes < 0 else y
    weight = {"numbers": np.random.default_rng(9).uniform(0.2, 3.0, 40), "twice": np.full(40, 2.0), None: np.ones(40)}
    labels = np.where(y < 0, None, y) if n_classes < 0 else y
    model = RKDAClassifier(kernel, class_prior=prior, tol=1e-9, random_state=0, **options).fit(X, labels, weight[kind])
    inside, outside, y, weight = projections_by_the_others(model, X, y, weight[kind])
    inside, outside, y, weight = (array[y >= 0] for array in (inside, outside, y, weight))
    centroids, reached = (
        np.array([np.average(rows[y == k], axis=0, weights=weight[y == k]) for k in range(abs(n_classes))])
        for rows in (inside, outside)
    )
    if prior is not None:  # the way to each is that of all rows, and its length that of rows by the others
        lengths = np.linalg.norm(centroids, axis=1)[:, None]
        ways = centroids / lengths
        centroids = ways * np.maximum(np.sum(ways * reached, axis=1)[:, None], MIN_CENTROID_SCALE * lengths)
    elif n_classes < 0:  # all rows without a class are drawn to the mean: one factor for the ways of all classes
        ways = centroids[y]
        centroids = centroids * np.sum(outside * ways) / np.sum(ways**2)
    np.testing.assert_allclose(model.centroids_, centroids, rtol=1e-5, atol=1e-6 * np.abs(centroids).max())
    variance = np.average(np.square(outside - centroids[y]).mean(axis=1), weights=weight)
    projected = model.transform(X)
    log = -0.5 * np.square(projected[:, None] - centroids).sum(axis=2) / variance + np.log(model.class_prior_)
    expected, found = log[:, 1:] - log[:, :1], model.decision_function(X)
    found = found[:, None] if n_classes in (2, -2) else found[:, 1:] - found[:, :1]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.filterwarnings("ignore:The learned ridge")
def test_priors_matter_where_narrow_kernels_stand_in_for_the_ridge():
    X, y = labelled(9, n=120)
    train, test = np.arange(120) < 60, np.arange(120) >= 60
    shares = []
    for prior in (0.02, 0.5, 0.98):
        model = RKDAClassifier([RBF(100.0), RBF(0.3), Linear()], class_prior=[1 - prior, prior]).fit(X[train], y[train])
        np.testing.assert_allclose(model.transform(X[train])[y[train] == 1].std(), 0.0, atol=1e-9)  # they interpolate
        shares.append(np.mean(model.predict(X[test])))
    assert shares[0] < shares[1] < shares[2]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("large", [False, True])
def test_a_calibrated_threshold_makes_the_fewest_errors_when_each_row_is_left_out(weighted, large, monkeypatch):
    kernel = RBF(0.3)
    if large:
        monkeypatch.setattr(kernel_stack, "MAX_DENSE_POINTS", 10)
        kernel = ManifoldKernel(kernel, ratio=0.0, n_landmarks=15)
    found, fewest = [], []
    for seed, ridge in enumerate([0.1, 0.01, 1e-3, 1e-4]):
        X, y = in_order(*labelled(seed))
        weight = np.random.default_rng(seed).uniform(0.2, 3.0, 40) if weighted else np.ones(40)
        model = RKDAClassifier(kernel, ridge=ridge, threshold="calibrated", random_state=0).fit(X, y, weight)
        inside, outside, *_ = projections_by_the_others(model, X, y, weight)
        slope, shift = np.polyfit(inside[:, 0], model.decision_function(X), 1)
        values = slope * outside[:, 0] + shift
        fewest.append(min(weight @ ((values > cut) != y) for cut in [-np.inf, *values]))
        found.append(weight @ ((values > 0.0) != y))
    np.testing.assert_allclose(found, fewest)


def test_classes_do_not_change_places_where_kernels_are_of_no_use():
    X, y = labelled(9)  # without its own, the mean of the labels is on the other side
    for share in (0.1, 0.5, 0.9):
        model = RKDAClassifier(RBF(1e4), ridge=1e-6, class_prior=[1.0 - share, share]).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), y)
        if share != 0.5:
            np.testing.assert_array_equal(model.predict(X + 10.0), np.full(40, share > 0.5))
