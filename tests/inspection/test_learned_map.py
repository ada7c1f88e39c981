from types import SimpleNamespace

import numpy as np
import pytest
from common.estimators import ESTIMATORS, case_id, fitted, sample
from sklearn.decomposition import PCA, KernelPCA

from kernelweave import RBF, KernelLibrary, Linear, MKLClassifier, SSMKClassifier
from kernelweave.inspection.learned_map import landmark_features, map_rows, mixture_features, principal_plane

X = np.random.default_rng(0).normal(size=(60, 3))
ROWS = np.arange(60)
FAMILIES = ["SSMKRegressor", "MKLClassifier", "LapSVMClassifier", "LearnedKernelRegressor", "HarmonicClassifier"]


def up_to_signs(points, expected):
    """Columns agree up to their signs."""
    signs = np.sign((points * expected).sum(axis=0))
    np.testing.assert_allclose(points, signs * expected, atol=1e-8 * np.abs(expected).max())


def test_the_plane_is_that_of_principal_components_with_fixed_signs():
    peer = PCA(2).fit(X)
    points, explained = principal_plane(X)
    up_to_signs(points, peer.transform(X))
    np.testing.assert_allclose(explained, peer.explained_variance_ratio_)
    assert (points[np.abs(points).argmax(axis=0), [0, 1]] > 0).all()
    np.testing.assert_allclose(principal_plane(-X)[0], points, atol=1e-12)


@pytest.mark.parametrize("n_columns", [0, 1])
def test_features_of_less_than_two_columns_lie_on_a_line(n_columns):
    points, explained = principal_plane(X[:, :n_columns])
    assert (points[:, 1] == 0).all()
    assert explained[1] == 0
    assert explained[0] == n_columns


def test_with_all_rows_as_landmarks_the_map_is_kernel_principal_components():
    kernels = [RBF(0.3), Linear()]
    bound = KernelLibrary(kernels).bind(X, np.random.default_rng(0))
    points, _ = principal_plane(landmark_features(bound, np.array([1.0, 0.2]), ROWS))
    peer = KernelPCA(2, kernel="precomputed").fit_transform(kernels[0](X) + 0.2 * kernels[1](X))
    up_to_signs(points, peer)


def test_features_of_landmarks_have_the_kernel_as_inner_products_with_them(monkeypatch):
    monkeypatch.setattr("kernelweave.inspection.learned_map.MAX_LANDMARKS", 20)
    bound = KernelLibrary([RBF(0.3)]).bind(X, np.random.default_rng(0))
    Z = landmark_features(bound, np.ones(1), ROWS)
    assert Z.shape[1] <= 20
    landmarks = np.unique(np.linspace(0, 59, 20).astype(int))
    np.testing.assert_allclose(Z @ Z[landmarks].T, RBF(0.3)(X)[:, landmarks], atol=1e-6)


def test_the_kernel_of_a_composite_model_is_its_weighted_sum():
    y = np.arange(60) % 2
    model = MKLClassifier([RBF(0.3), Linear()], C=1.0, weighting="uniform", scale=None).fit(X, y)
    peer = KernelPCA(2, kernel="precomputed").fit_transform(RBF(0.3)(X) + Linear()(X))
    points = map_rows(model, X, ROWS).points
    scale = np.linalg.norm(points) / np.linalg.norm(peer)  # weights are known up to a factor
    up_to_signs(points, scale * peer)


def test_features_of_a_mixture_are_its_columns_by_what_they_add():
    bound = KernelLibrary([RBF(0.3), Linear()]).bind(X, np.random.default_rng(0))
    groups = [
        SimpleNamespace(kernel=0, centers=np.array([3, 5]), coef=np.array([[2.0], [-1.0]])),
        SimpleNamespace(kernel=1, centers=np.array([7]), coef=np.array([[0.5]])),
    ]
    columns = np.column_stack([RBF(0.3)(X)[:, [3, 5]], Linear()(X)[:, [7]]])
    sizes = columns.std(axis=0) * [2.0, 1.0, 0.5]  # the deviation of what each adds to the model
    Z = mixture_features(bound, groups, ROWS)
    np.testing.assert_allclose(Z.std(axis=0) ** 2, sizes)
    np.testing.assert_allclose(np.abs([np.corrcoef(a, b)[0, 1] for a, b in zip(Z.T, columns.T, strict=True)]), 1.0)


@pytest.mark.parametrize("case", [case for case in ESTIMATORS if case.name in FAMILIES], ids=case_id)
def test_every_family_has_a_map_that_is_the_same_again(case):
    rows, _ = sample(case)
    numbers = np.arange(0, len(rows), 2)
    first, second = (map_rows(fitted(case), rows, numbers) for _ in range(2))
    assert first.points.shape == (len(numbers), 2)
    assert np.ptp(first.points[:, 0]) > 0
    np.testing.assert_array_equal(first.points, second.points)
    assert first.kernel == second.kernel


def test_without_a_learned_kernel_the_map_is_by_the_default_kernel_for_the_rows():
    by_unit = np.tile(X, (1, 4)) + np.arange(12)  # ten columns or more with one unit
    placed = map_rows(SimpleNamespace(), by_unit, ROWS)
    assert placed.kernel == "RBF()"
    up_to_signs(placed.points, KernelPCA(2, kernel="precomputed").fit_transform(RBF()(by_unit)))
    table = X * [1.0, 1e3, 1e-3]
    placed = map_rows(SimpleNamespace(), table, ROWS)
    assert placed.kernel == "the default kernel for tables"
    table[3, 1] = np.nan
    assert np.isfinite(map_rows(SimpleNamespace(), table, ROWS).points).all()


def test_a_mixture_without_columns_has_a_map_by_the_rows():
    model = SSMKClassifier(RBF(), C=1e-9).fit(X, np.arange(60) % 2)
    assert not model.expansion_.groups
    assert map_rows(model, X, ROWS).kernel == "the default kernel for tables"
