"""The problem that the solvers of this benchmark share: data, kernels, and the objective that judges them."""

import numpy as np

from kernelweave import KernelLibrary, Linear, Polynomial, rbf_family
from kernelweave.solvers.margin import classification_rows

N_FEATURES = 20


def library(n_kernels):
    """Linear, quadratic, and RBF kernels from four times as wide as the mean distance to a fourth of it."""
    widths = np.geomspace(1 / 16, 16, n_kernels - 2).round(12) if n_kernels > 3 else (1.0,)
    return KernelLibrary([Linear(), Polynomial(gamma=1 / N_FEATURES), *rbf_family(widths)])


def sample(n_labeled, n_unlabeled, seed):
    """Return rows of a Gaussian, and noisy labels of a linear, a wavy and a bilinear part for the first of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_labeled + n_unlabeled, N_FEATURES))
    signal = X @ rng.standard_normal(N_FEATURES) / np.sqrt(N_FEATURES) + 0.7 * np.sin(2 * X[:, 0])
    signal += 0.5 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(len(X))
    return X, np.where(signal[:n_labeled] > 0, 1.0, -1.0)


def kernel_values(X, n_labeled, n_kernels, seed):
    """Return all columns at the labelled rows, divided by their deviation as SSMKClassifier does by default."""
    bound = library(n_kernels).bind(X, np.random.default_rng(seed))
    K = bound.columns(np.arange(bound.n_columns), np.arange(n_labeled))
    deviations = K.std(axis=0).reshape(n_kernels, -1)
    usual = np.sqrt((deviations**2).mean(axis=1, keepdims=True))
    return np.asfortranarray(K / np.maximum(deviations, 0.1 * usual).ravel())


def objective(K, y, C, columns, coef, intercept):
    """Return the value of problem (9), whatever the solver said about it."""
    f = K[:, columns] @ coef + intercept
    return np.abs(coef).sum() + classification_rows(y, np.full(len(y), C)).loss(f)
