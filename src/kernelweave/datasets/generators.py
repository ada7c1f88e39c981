r"""Samples from published recipes, for when the published samples are not at hand. None of them *is* such a sample.

Two Gaussians of unit covariance and equal shares whose centers are :math:`d` apart have the Bayes error
:math:`\Phi(-d/2)`, so that an error of 5 % needs :math:`d = 3.29`, and :math:`d = 2.5` gives 10.6 %.

References
----------
O. Chapelle, B. Schoelkopf, A. Zien (editors), "Semi-Supervised Learning", MIT Press, 2006, chapter 21.
O. Chapelle, A. Zien, "Semi-supervised classification by low density separation", AISTATS 2005.
L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and Regression Trees", Wadsworth, 1984, section 2.6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.utils import Bunch

__all__ = ["make_g241c_like", "make_g241n_like", "make_g50c_like", "make_waveform_like"]

Matrix = NDArray[np.float64]
Seed = Any  # whatever numpy.random.default_rng takes

G50C_COLUMNS, G50C_BAYES_ERROR = 50, 0.05
G241_COLUMNS, G241C_DISTANCE = 241, 2.5
G241N_DISTANCE, G241N_PAIR_DISTANCE = 3.0, 6.0  # as measured in the published sample
WAVEFORM_COLUMNS, WAVEFORM_PEAKS = 21, (7, 15, 11)  # positions from 1 on
WAVEFORM_MIXES = ((0, 1), (0, 2), (2, 1))  # the two waves of each class, numbered as in the UCI file


def make_g50c_like(n_samples: int = 550, *, random_state: Seed = None) -> Bunch:
    """Two Gaussians in 50 dimensions, with a Bayes error of 5 %: the recipe of G50C.

    Parameters
    ----------
    n_samples : int, default=550
        Number of rows, half of them (rounded) in each class.
    random_state : int, sequence of int, numpy Generator or None, default=None
        The seed. None draws differently each time.

    Returns
    -------
    Bunch
        ``data`` of shape (n_samples, 50), ``target`` in {-1, +1}, ``target_names``, ``bayes_error``, ``DESCR``.

    See Also
    --------
    make_g241c_like : Two Gaussians in 241 dimensions.
    load : The published sets.

    Examples
    --------
    >>> sample = make_g50c_like(random_state=0)
    >>> sample.data.shape, sample.bayes_error
    ((550, 50), 0.05)
    """
    rng = np.random.default_rng(random_state)
    distance = 2.0 * norm.isf(G50C_BAYES_ERROR)
    step = np.full(G50C_COLUMNS, distance / np.sqrt(G50C_COLUMNS))
    X, y = _draw_gaussians(n_samples, np.stack([-step / 2.0, step / 2.0]), np.array([-1, 1]), rng)
    return _make_bunch(X, y, "two Gaussians in 50 dimensions by the recipe of G50C", bayes_error=G50C_BAYES_ERROR)


def make_g241c_like(n_samples: int = 1500, *, random_state: Seed = None) -> Bunch:
    """Two Gaussians in 241 dimensions, 2.5 apart in a random direction, standardised: the recipe of g241c.

    The cluster assumption holds. The Bayes error is 10.6 %.

    Parameters
    ----------
    n_samples : int, default=1500
        Number of rows, half of them (rounded) in each class.
    random_state : int, sequence of int, numpy Generator or None, default=None
        The seed. None draws differently each time.

    Returns
    -------
    Bunch
        ``data`` of shape (n_samples, 241), ``target`` in {-1, +1}, ``target_names``, ``bayes_error``, ``DESCR``.

    See Also
    --------
    make_g241n_like : With misleading clusters.
    make_g50c_like : Two Gaussians in 50 dimensions.

    Examples
    --------
    >>> make_g241c_like(100, random_state=0).data.shape
    (100, 241)
    """
    rng = np.random.default_rng(random_state)
    (step,) = G241C_DISTANCE * _draw_directions(1, rng)
    X, y = _draw_gaussians(n_samples, np.stack([-step / 2.0, step / 2.0]), np.array([-1, 1]), rng)
    error = float(norm.sf(G241C_DISTANCE / 2.0))
    return _make_bunch(_standardize(X), y, "two Gaussians in 241 dimensions by the recipe of g241c", bayes_error=error)


def make_g241n_like(n_samples: int = 1500, *, random_state: Seed = None) -> Bunch:
    """Two far pairs of near Gaussians in 241 dimensions, with misleading clusters: the recipe of g241n (g241d).

    Two Gaussians of class +1 are 6 apart, and beside each there is one of class -1, 3 away in a random direction: who
    looks for two clusters finds the pairs, which say nothing of the class.

    Parameters
    ----------
    n_samples : int, default=1500
        Number of rows, a quarter of them (rounded) around each centre.
    random_state : int, sequence of int, numpy Generator or None, default=None
        The seed. None draws differently each time.

    Returns
    -------
    Bunch
        ``data`` of shape (n_samples, 241), ``target`` in {-1, +1}, ``pair`` (0 or 1 for each row), ``target_names``,
        ``DESCR``.

    See Also
    --------
    make_g241c_like : With clusters that are the classes.

    Examples
    --------
    >>> make_g241n_like(100, random_state=0).data.shape
    (100, 241)
    """
    rng = np.random.default_rng(random_state)
    between, first, second = _draw_directions(3, rng)
    origin, far = np.zeros(G241_COLUMNS), G241N_PAIR_DISTANCE * between
    centers = np.stack([origin, origin + G241N_DISTANCE * first, far, far + G241N_DISTANCE * second])
    X, number = _draw_gaussians(n_samples, centers, np.arange(4), rng)
    y = np.array([1, -1, 1, -1])[number]
    what = "two misleading pairs of Gaussians in 241 dimensions by the recipe of g241n"
    return _make_bunch(_standardize(X), y, what, pair=number // 2)


def make_waveform_like(n_samples: int = 5000, *, random_state: Seed = None) -> Bunch:
    r"""Three classes of noisy waves at 21 points: Breiman's recipe, version 1 of the UCI set Waveform.

    Each row is :math:`u h_a + (1 - u) h_b + \varepsilon` with u uniform on [0, 1], :math:`\varepsilon` standard normal,
    and two of three triangles :math:`h(i) = \max(6 - |i - c|, 0)`, c = 7, 15, 11: the first two in class 0, the first
    and the third in class 1, the third and the second in class 2, as in the UCI file. Each row draws its class, too.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of rows.
    random_state : int, sequence of int, numpy Generator or None, default=None
        The seed. None draws differently each time.

    Returns
    -------
    Bunch
        ``data`` of shape (n_samples, 21), ``target`` in {0, 1, 2}, ``target_names``, ``DESCR``.

    See Also
    --------
    make_g50c_like : Two Gaussians in 50 dimensions.

    Examples
    --------
    >>> make_waveform_like(random_state=0).data.shape
    (5000, 21)
    """
    _refuse_samples(n_samples, 1)
    rng = np.random.default_rng(random_state)
    points = np.arange(1, WAVEFORM_COLUMNS + 1)
    waves = np.maximum(6.0 - np.abs(points - np.array(WAVEFORM_PEAKS)[:, None]), 0.0)
    y = rng.integers(len(WAVEFORM_MIXES), size=n_samples)
    a, b = np.array(WAVEFORM_MIXES)[y].T
    u = rng.random((n_samples, 1))
    X = u * waves[a] + (1.0 - u) * waves[b] + rng.standard_normal((n_samples, WAVEFORM_COLUMNS))
    return _make_bunch(X, y, "noisy waves at 21 points by Breiman's recipe")


def _draw_gaussians(
    n_samples: int, centers: Matrix, labels: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Matrix, NDArray[np.int64]]:
    """Rows around the centers, in equal shares up to one and in random order, and the label of each one's center."""
    _refuse_samples(n_samples, len(centers))
    number = rng.permutation(np.arange(n_samples) % len(centers))
    return centers[number] + rng.standard_normal((n_samples, centers.shape[1])), labels[number]


def _draw_directions(n_directions: int, rng: np.random.Generator) -> Matrix:
    """Random directions of length 1."""
    steps = rng.standard_normal((n_directions, G241_COLUMNS))
    return steps / np.linalg.norm(steps, axis=1, keepdims=True)


def _standardize(X: Matrix) -> Matrix:
    return (X - X.mean(axis=0)) / X.std(axis=0)


def _make_bunch(X: Matrix, y: NDArray[np.int64], what: str, **more: Any) -> Bunch:
    names = np.unique(y).astype(str)
    text = f"A generated sample: {what}, {len(y)} rows. It is not the published sample, whose numbers it cannot give."
    return Bunch(data=X, target=y, target_names=names, DESCR=text, **more)


def _refuse_samples(n_samples: Any, least: int) -> None:
    if not isinstance(n_samples, int | np.integer) or isinstance(n_samples, bool) or n_samples < least:
        raise ValueError(f"n_samples must be an integer of at least {least}, one a center, got {n_samples!r}.")
