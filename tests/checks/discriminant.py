"""Problems of discriminant kernel learning, and their objectives by the shortest road."""

import numpy as np
from sklearn.metrics import euclidean_distances

from kernelweave.solvers.discriminant.matrix_fractional import class_indicator


def center(K):
    """The centred kernel."""
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return 0.5 * (K + K.T)


def unit(K):
    """The centred kernel of trace 1."""
    K = center(K)
    return K / np.trace(K)


def sample(seed, m, k, n_kernels):
    """Class codes, of uneven sizes, and raw kernels of several kinds."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(k), np.arange(k), rng.integers(0, rng.integers(1, k, endpoint=True), m - 2 * k)])
    X = rng.normal(size=(m, 4))
    X[np.arange(m), codes % 4] += 1.5
    D = euclidean_distances(X, squared=True)
    kernels = [np.exp(-D / (D.mean() * f)) for f in 10.0 ** rng.uniform(-1.5, 1.0, n_kernels - 1)]
    return codes, [X @ X.T, *kernels] if seed % 2 else [*kernels, (1.0 + X @ X.T) ** 2]


def problem(seed, m=20, k=3, n_kernels=4):
    """Centred kernels of trace 1, and the indicators of the classes."""
    codes, kernels = sample(seed, m, k, n_kernels)
    return [unit(K) for K in kernels], class_indicator(codes, k)


def drawn(seed, largest=40):
    """A problem of random size with a random ridge; every third is to learn it."""
    rng = np.random.default_rng([7, seed])
    m, k = int(rng.integers(15, largest, endpoint=True)), int(rng.integers(2, 5, endpoint=True))
    ridge = None if seed % 3 == 2 else float(10.0 ** rng.uniform(-3, 0))
    return *problem(seed, m, min(k, m // 4), int(rng.integers(2, 6, endpoint=True))), ridge


def scatter(kernels, H, ridge, weights):
    """H' M^-1 H, as in the SDPs divided by the ridge; where that is learned, I/m has the first weight."""
    m = len(H)
    if ridge is None:
        M = weights[0] * np.eye(m) / m + sum(w * K for w, K in zip(weights[1:], kernels, strict=True))
        M += np.full((m, m), 1 / m**2)
    else:
        M = ridge * np.eye(m) + sum(w * K for w, K in zip(weights, kernels, strict=True))
    return H.T @ np.linalg.solve(M, H)


def traces(kernels, ridge):
    """What the paper's weights theta are multiplied by to lie on the unit simplex."""
    return np.array(([len(kernels[0])] if ridge is None else []) + [np.trace(K) for K in kernels])
