import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_wine

from kernelweave import KernelLibrary, Linear, RKDAClassifier, rbf_family
from kernelweave.estimators.shared.discriminant import DiscriminantOptions, NearestCentroid, fit_discriminant
from kernelweave.estimators.shared.sample import Rows, bind, read_as_given
from kernelweave.labels import partition

OPTIONS = DiscriminantOptions(
    owner="Me",
    ridge=None,
    weighting="learned",
    formulation="exact",
    scatter="total",
    class_prior=np.full(3, 1 / 3),
    shrinks=False,
    calibrated=False,
    unlabeled_scatter=False,
    tol=1e-8,
    max_iter=100,
    dtype="float64",
    callback=None,
    verbose=0,
)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_compete_as_normal_distributions_of_equal_variance(n_classes):
    rng = np.random.default_rng(0)
    centroids, shares = rng.normal(size=(n_classes, 2)), rng.dirichlet(np.ones(n_classes))
    rows = rng.normal(size=(20, 2))
    centers = NearestCentroid(centroids, shares, threshold=0.25, spread=0.7)
    densities = np.array([multivariate_normal(mean, 0.7).logpdf(rows) for mean in centroids]) + np.log(shares)[:, None]
    values = centers.decide(rows)
    if n_classes == 2:
        np.testing.assert_allclose(values[:, 0], densities[1] - densities[0] - 0.25, rtol=1e-10)
    else:
        np.testing.assert_allclose(values - values[:, :1], (densities - densities[0]).T, atol=1e-10)


def test_one_binding_serves_fits_with_other_ridges_weights_and_labels():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    library = KernelLibrary([Linear(), *rbf_family()])
    sample = read_as_given(Rows(X), partition(y))
    bound = bind(library, sample, np.random.default_rng(0))
    hidden = read_as_given(Rows(X), partition(np.where(np.arange(len(y)) % 3 == 0, y, -1)))
    cases = [
        (sample, {"ridge": None}, {"ridge": "learned"}),
        (sample, {"ridge": 0.01}, {"ridge": 0.01}),
        (sample, {"ridge": 0.01, "weighting": "uniform"}, {"ridge": 0.01, "weighting": "uniform"}),
        (hidden, {"ridge": 0.01, "formulation": "joint"}, {"ridge": 0.01, "formulation": "joint"}),
    ]
    for given, options, parameters in cases:
        fit = fit_discriminant(bound, given, replace(OPTIONS, **options))
        labels = np.full(len(y), -1)
        labels[given.partition.labeled] = given.partition.labels
        model = RKDAClassifier(library, tol=1e-8, **parameters).fit(X, labels)
        assert fit.outcome.objective == pytest.approx(model.objective_, rel=1e-7)
        np.testing.assert_allclose(fit.by_kernel.weights, model.weights_, atol=1e-5)
        np.testing.assert_allclose(fit.expansion(X), model.transform(X), atol=1e-4)


def test_many_classes_need_no_array_of_all_differences():
    rng = np.random.default_rng(0)
    centroids, projected = rng.normal(size=(200, 199)), rng.normal(size=(500, 199))
    centers = NearestCentroid(centroids, np.full(200, 1 / 200), 0.0, 2.0)
    tracemalloc.start()
    found = centers.log_ratios(projected)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * found.nbytes  # all differences are 199 times as many
    expected = [-0.25 * np.square(projected[7] - centroid).sum() for centroid in centroids]
    np.testing.assert_allclose(found[7], expected)
