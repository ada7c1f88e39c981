r"""Discriminant analysis whose kernel and ridge are learned together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..kernels.library import KernelLibrary
from ..kernels.manifold import ManifoldKernel
from ..labels import Partition
from ..solvers.discriminant.joint_lmi import solve_joint_lmi
from ..solvers.discriminant.matrix_fractional import FLOOR, solve_matrix_fractional
from ..solvers.discriminant.simplex_newton import SimplexState
from ..solvers.discriminant.within_scatter import solve_within_scatter
from ..solvers.machines.kernel_stack import KernelStack
from ..solvers.result import SolverResult, Status
from .base import Sample, is_count, is_positive, require
from .composite import CompositeModel
from .outputs import SemiSupervisedClasses
from .scatter import Scatter, pooled
from .shared.progress import announce
from .stacking import require_memory

DIRECT_ROWS = 5000  # "auto": above, kernels are replaced by landmark features
N_FEATURES = 2000  # of all kernels together
NO_RIDGE = 1e-3  # a weight of the identity below this is as good as none
UNLIKE = 20.0  # ratio of the deviation of a column to that of most, above which they are hardly on one scale
NO_SPREAD = 1e-6  # of the variance of all rows: classes are not taken for narrower
LEAST = 1e-3  # of the way to a centroid, which is left where rows by the others get nowhere
TIE = 1e-9  # of the largest eigenvalue: eigenvalues that differ by less are equal
NOTHING = 1e-12  # of the largest eigenvalue: directions below are rounding


class RKDAClassifier(TransformerMixin, SemiSupervisedClasses, CompositeModel):
    r"""Classify, and project, by regularised kernel discriminant analysis with learned kernel weights and ridge.

    With centred kernels of unit trace :math:`B_i`, centred class indicators :math:`H` and
    :math:`M(w) = \lambda I + \sum_i w_i B_i`,

    .. math:: \min_w\; F(w) = \operatorname{tr} H^\top M(w)^{-1} H \quad \text{s.t.} \quad w \ge 0,\; \sum_i w_i = 1

    makes the largest ratio of scatter between classes to regularised total scatter as large as can be: (34) of the
    paper divided by :math:`\lambda`. Where the ridge is learned, :math:`I/m` is one of the :math:`B_i` and there is no
    :math:`\lambda`: (41). The paper solves semidefinite programs; this is the same problem, smooth and convex, solved
    by Newton's method to a certified gap. Projections are :math:`\sum_i w_i b_i(x)^\top M^{-1} H U`, with :math:`U` the
    eigenvectors of :math:`H^\top (I - \lambda M^{-1}) H`; a row belongs to the class whose centroid is nearest.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library, of positive semi-definite kernels. None: linear, quadratic, and a family of RBF kernels no narrower
        than half the mean distance: narrower ones are nearly the identity, and stand in for the ridge.
    ridge : float or "learn", default="learn"
        :math:`\lambda`, for kernels of unit trace.
    weights : {"learn", "uniform", "auto"}, default="learn"
        ``"uniform"``: equal weights; a ridge that is learned is the best with :math:`w_i = s, w_0 + s = 1`.
        ``"auto"``: learned, unless equal ones predict labelled rows by the others better, by more than a standard error
        of the squared errors; for rows of many columns or classes, see the notes.
    formulation : {"exact", "joint"}, default="exact"
        ``"joint"``: one matrix inequality for all classes, (37), an upper bound whose optimum differs; for fidelity.
    scatter : {"total", "within"}, default="total"
        ``"within"``: the form of Kim et al., (3)-(10), for two classes and a given ridge; its objective is maximised.
    priors : None, "labeled", dict or array-like, default=None
        Shares of the classes, with which they compete as normal distributions of equal variance about centroids; both
        are measured at labelled rows that are projected by the others. ``"labeled"``: the shares of the labelled
        rows. None: the nearest centroid of the rows as they are projected by all, whatever the shares.
    threshold : {"midpoint", "calibrated"}, default="midpoint"
        For two classes: between the centroids (moved by ``priors``), or where labelled rows make the fewest errors when
        each is predicted by the others.
    n_landmarks : "auto", int or None, default="auto"
        Rows that each kernel's functions are spanned by. ``"auto"``: all up to 5000 rows, above so many that all
        kernels together have 2000 features. None: all. They save time where all kernels together have fewer than rows.
    tol : float, default=1e-6
        Relative duality gap to reach.
    max_iter : int, default=100
    unlabeled : "auto" or marker, default="auto"
        What marks an unlabelled row in ``y``. Unlabelled rows enter the total scatter.
    dtype : {"float64", "float32"}, default="float64"
        Precision in which the kernel matrices are kept.
    callback : callable, optional
        ``callback(state)`` after each step; a true answer stops the fit.
    verbose : int, default=0
        1 prints a line for each step.
    random_state : int, RandomState or None, default=None
        Seed of what kernels draw at random.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    weights_ : ndarray of shape (n_kernels,)
        Of the kernels, in library order; they sum to one.
    ridge_ : float
        The ridge with which a fit with a given ridge has the same optimum.
    scalings_ : ndarray of shape (n_samples, n_components)
        Coefficients of the discriminant directions, of unit regularised variance; zero for ignored rows.
    centroids_ : ndarray of shape (n_classes, n_components)
        Of the labelled rows' projections; where ``priors`` are given, as far from the mean of all as rows get that are
        projected by the others.
    priors_ : ndarray of shape (n_classes,)
    threshold_ : float
        What the decision value is compared with, for two classes; it is part of :meth:`decision_function`.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    objective_ : float
        F at the weights, with one column of H for each class; the ratio itself where ``scatter="within"``.
    certificate_, status_, history_, n_iter_, kernel_weights_, source_weights_, expansion_, n_evaluations_, library_
        As in :class:`MKLClassifier`.
    n_features_in_, feature_names_in_
        As in :class:`MKLClassifier`.

    Notes
    -----
    Columns should be on one scale: standardise them, or bring them to [0, 1]. There is a warning where they are not.
    Learned weights tend to the narrowest kernel, and with many columns or classes to too large a ridge. On 13 sets of
    30 to 784 columns, with 200 training rows or fewer, ``weights="auto"`` was right on 1.7 % of the rows more than
    ``"learn"`` (13 % on BCI, 3 % on COIL20); on the paper's nine sets on 0.2 % less.
    The paper's (19)-(23) lose the 1/m of (14); the ridge here is that of :math:`M` above.

    References
    ----------
    J. Ye, J. Chen, S. Ji. Discriminant kernel and regularization parameter learning via semidefinite programming. ICML
    2007.
    S.-J. Kim, A. Magnani, S. Boyd. Optimal kernel selection in kernel Fisher discriminant analysis. ICML 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelweave import RKDAClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> model = RKDAClassifier().fit(X, y)
    >>> model.score(X, y) > 0.98, model.transform(X).shape, bool(model.certificate_.relative <= 1e-6)
    (True, (178, 2), True)
    """

    norm, scale = 1, "trace"  # weights sum to one, kernels have unit trace
    _weightings = ("learn", "uniform", "auto")
    _remedies = {
        Status.MAX_ITER: "Raise max_iter or tol, or accept the certified gap.",
        Status.PRECISION: "Raise the ridge or tol, or accept the certified gap.",
    }

    def __init__(
        self,
        kernels: Any = None,
        *,
        ridge: float | str = "learn",
        weights: str = "learn",
        formulation: str = "exact",
        scatter: str = "total",
        priors: Any = None,
        threshold: str = "midpoint",
        n_landmarks: int | str | None = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
        unlabeled: Any = "auto",
        dtype: str = "float64",
        callback: Callable[[SimplexState], object] | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.ridge = ridge
        self.weights = weights
        self.formulation = formulation
        self.scatter = scatter
        self.priors = priors
        self.threshold = threshold
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.dtype = dtype
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn weights, ridge and directions from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows.
        sample_weight : array-like of shape (n_samples,), optional
            A weight is a number of rows: the sum of all is what a learned ridge is relative to. Rows of weight zero are
            ignored altogether.

        Returns
        -------
        self
        """
        self._check_params()
        sample = self._check_fit(X, y, sample_weight, self._library())
        priors = self._class_priors(sample)
        self._warn_of_unlike_columns(sample.X)
        library = self._library_for(sample)
        bound = self._bind(library, sample, self._rng())
        require_memory(type(self).__name__, bound, len(sample.kept), self.dtype, "n_landmarks=200", by_features=True)
        stacked = self._stacked(bound, sample)
        scatter = Scatter(stacked, sample)
        self._require_definite(np.eye(len(library)), scatter.stack, bound, stacked.rounding, proven=True)
        result = self._solve(scatter)
        kernel_weights, self.ridge_, coef = self._directions(result, scatter)
        self._keep_labels(sample)
        used = kernel_weights / scatter.scales
        self._keep_expansion(used[None], coef, np.zeros(coef.shape[1]), bound, sample)
        share = sample.weight / sample.weight.sum()
        values = self.expansion_(sample.X)
        self.intercept_ -= share @ values  # in place: the expansion has it too
        values = values - share @ values
        self.scalings_ = np.zeros((sample.n_given, coef.shape[1]))
        self.scalings_[sample.kept] = coef
        self._keep_weights(kernel_weights[None], bound)
        self._keep_course([replace(result, extra={**result.extra, "n_solves": result.extra["n_cholesky"]})])
        self.priors_ = priors
        left_out = scatter.left_out if self.scatter == "total" else scatter.left_out_within
        self._keep_centroids(values, left_out(values, coef, self.weights_, self.ridge_), sample)
        self.library_ = library
        self._warn_of_extremes(result, sample)
        self._keep_transduction(X, sample)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the projections of the rows of ``X``, shape (n_samples, n_components)."""
        return self._outputs(X, split=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the projections: ``rkda0``, ``rkda1``, …"""
        check_is_fitted(self)
        return np.array([f"rkda{i}" for i in range(self.scalings_.shape[1])], dtype=object)

    def decision_function(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the logarithm of how likely classes are, up to a constant.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
        split : bool, default=False
            Distances do not sum over kernels: must be False.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, that of ``classes_[1]`` against ``classes_[0]``.
        """
        if split:
            raise ValueError("RKDAClassifier compares distances, which are no sum over kernels; split must be False.")
        values = self._log_ratios(self._outputs(X, split=False))
        return values[:, 0] - self.threshold_ if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted class of each row."""
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)]

    def _log_ratios(self, projected: np.ndarray) -> np.ndarray:
        """Return how likely classes are at projections, in logarithms; for two, that of the second to the first."""
        squares = np.square(projected[:, None] - self.centroids_).sum(axis=2)
        if len(self.classes_) == 2:  # equal priors add nothing, not even rounding
            squares, shares = squares[:, 1:] - squares[:, :1], self.priors_[1:] / self.priors_[0]
        else:
            shares = self.priors_ / self.priors_.max()
        return np.asarray(-0.5 * squares / self._spread + np.log(shares))

    def _check_params(self) -> None:
        super()._check_params()
        owner = type(self).__name__
        learn = isinstance(self.ridge, str) and self.ridge == "learn"
        require(owner, "ridge", self.ridge, learn or is_positive(self.ridge), 'a positive finite number or "learn"')
        for name, known in (
            ("formulation", ("exact", "joint")),
            ("scatter", ("total", "within")),
            ("threshold", ("midpoint", "calibrated")),
        ):
            value = getattr(self, name)
            require(owner, name, value, isinstance(value, str) and value in known, " or ".join(map(repr, known)))
        landmarks = self.n_landmarks is None or is_count(self.n_landmarks)
        auto = isinstance(self.n_landmarks, str) and self.n_landmarks == "auto"
        require(owner, "n_landmarks", self.n_landmarks, landmarks or auto, 'None, "auto" or a whole number >= 1')
        taken = {"weights": ("learn", "uniform"), "formulation": ("exact",), "threshold": ("midpoint",)}
        if self.scatter == "within" and (learn or any(getattr(self, name) not in taken[name] for name in taken)):
            raise ValueError(
                f'{owner} got scatter="within" with ridge={self.ridge!r}, weights={self.weights!r}, '
                f"formulation={self.formulation!r} and threshold={self.threshold!r}; that form takes a number as "
                'ridge, weights="learn" or "uniform", formulation="exact" and threshold="midpoint".'
            )

    def _library_for(self, sample: Sample) -> KernelLibrary:
        library, n_rows = self._library(), sample.X.shape[0]
        if self.n_landmarks is None or (isinstance(self.n_landmarks, str) and n_rows <= DIRECT_ROWS):
            return library
        n = max(1, N_FEATURES // len(library)) if isinstance(self.n_landmarks, str) else int(self.n_landmarks)
        return KernelLibrary(
            [(entry.name, ManifoldKernel(entry.kernel, ratio=0.0, n_landmarks=n)) for entry in library.entries]
        )

    def _solve(self, scatter: Scatter) -> SolverResult:
        """Return the solution with learned weights or that with equal ones, as ``weights`` asks."""
        stack = scatter.plain_stack if self.scatter == "within" else scatter.stack
        if self.weights == "uniform":
            return self._solve_uniform(stack, scatter)
        learned = self._solve_for(stack, scatter)
        if self.weights == "learn" or learned.status is Status.CALLBACK:
            return learned
        uniform = self._solve_uniform(stack, scatter)
        by_learned, by_uniform = (
            scatter.left_out_errors(*self._machine(found, scatter)) for found in (learned, uniform)
        )
        rows = scatter.sample.weight[scatter.sample.partition.labeled]
        better = by_learned - by_uniform
        total = float(rows @ better)
        deviation = float(np.sqrt(rows @ np.square(better - total / rows.sum())))  # of the total
        chosen = uniform if total > deviation else learned
        if self.verbose:
            announce(
                f"{type(self).__name__}: {'equal' if chosen is uniform else 'learned'} weights; squared error at rows "
                f"that are left out: {rows @ by_uniform:.4g} with equal, {rows @ by_learned:.4g} with learned ones"
            )
        n_cholesky = learned.extra["n_cholesky"] + uniform.extra["n_cholesky"]
        return replace(chosen, extra={**chosen.extra, "n_cholesky": n_cholesky})

    def _solve_uniform(self, stack: KernelStack, scatter: Scatter) -> SolverResult:
        """Return the solution with equal weights, as if they had been learned."""
        n_kernels, learned = len(stack), isinstance(self.ridge, str)
        found = self._solve_for(pooled(stack, 1.0 if learned else n_kernels), scatter)
        equal = [found.x[0], *np.repeat(found.x[1], n_kernels)] if learned else np.full(n_kernels, 1.0 / n_kernels)
        return replace(found, x=np.array(equal), extra={**found.extra, "uniform": True})

    def _solve_for(self, stack: KernelStack, scatter: Scatter) -> SolverResult:
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "callback": self._told}
        if self.scatter == "within":
            return solve_within_scatter(stack, scatter.signs(), ridge=float(self.ridge), **options)
        solve = solve_matrix_fractional if self.formulation == "exact" else solve_joint_lmi
        ridge = None if isinstance(self.ridge, str) else scatter.stretch * float(self.ridge)
        return solve(stack, scatter.H, ridge=ridge, **options)

    def _told(self, state: SimplexState) -> bool:
        if self.verbose:
            announce(
                f"{type(self).__name__}: step {state.iteration}, objective {state.objective:.6g}, relative gap "
                f"{state.relative_gap:.2e}, {state.seconds:.1f} s"
            )
        return bool(self.callback(state)) if self.callback is not None else False

    def _directions(self, result: SolverResult, scatter: Scatter) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the kernels' weights, the ridge, and coefficients of the directions for each row."""
        if self.scatter == "within":
            coef = result.extra["dual"].reshape(-1, 1)
            says_something = scatter.stack.combined_product(result.x, coef).any()
            return result.x, float(self.ridge), coef if says_something else np.zeros_like(coef)
        Z, weights, ridge = self._machine(result, scatter)
        between = scatter.H.T @ scatter.stack.combined_product(weights, Z)  # H'(I - ridge M^-1)H without cancellation
        values, U = _axes(0.5 * (between + between.T) / scatter.stretch)
        positive = values > NOTHING * max(float(values[0]), np.finfo(float).tiny)
        scaled = np.where(positive, U / np.sqrt(np.where(positive, values, 1.0)), 0.0)
        return weights, ridge, scatter.rows_of(Z @ scaled)

    def _machine(self, result: SolverResult, scatter: Scatter) -> tuple[np.ndarray, np.ndarray, float]:
        """Return Z, the inverse of ridge I + sum of weights B, times H; weights that sum to one; and the ridge."""
        weights, ridge, kept = result.x, self.ridge, 1.0
        if isinstance(ridge, str):
            kept = max(float(weights[1:].sum()), np.finfo(float).eps)  # kernels of no use leave all to the identity
            ridge = (float(weights[0]) / scatter.total + FLOOR / scatter.stretch) / kept
            weights = weights[1:] / kept if weights[1:].any() else np.full(len(weights) - 1, 1.0 / (len(weights) - 1))
        return kept * result.extra["dual"], weights, float(ridge)

    def _keep_centroids(self, projected: np.ndarray, left_out: np.ndarray, sample: Sample) -> None:
        """Keep what classification needs: the centroids, the variance about them, and the threshold.

        A flexible kernel puts the rows it has learned from where they should be; how far new rows get, and scatter, is
        seen at rows that are projected by the others. That shortens the way from the mean of all to a centroid; it does
        not turn it round, as the mean of the others, which lack a row of the class, would for kernels of no use.
        """
        found: Partition = sample.partition
        weight = sample.weight[found.labeled]
        inside, outside = projected[found.labeled], left_out[found.labeled]
        totals = np.bincount(found.codes, weights=weight, minlength=found.n_classes)
        means = (found.indicator().T * weight) / totals[:, None]
        self.centroids_ = means @ inside
        if self.priors is not None:
            squares = np.maximum(np.square(self.centroids_).sum(axis=1), np.finfo(float).tiny)
            reached = np.einsum("kc,kc->k", self.centroids_, means @ outside) / squares
            self.centroids_ = self.centroids_ * np.maximum(reached, LEAST)[:, None]
        within = weight @ np.square(outside - self.centroids_[found.codes]).mean(axis=1) / weight.sum()
        size = weight @ np.square(inside).mean(axis=1) / weight.sum()
        self._spread = max(float(within), NO_SPREAD * float(size), float(np.finfo(float).tiny) ** 0.5)
        calibrated = self.threshold == "calibrated" and found.n_classes == 2
        self.threshold_ = _best_cut(self._log_ratios(outside)[:, 0], found.codes, weight) if calibrated else 0.0

    def _class_priors(self, sample: Sample) -> np.ndarray:
        """Return the shares of the classes that ``priors`` asks for."""
        priors, owner, found = self.priors, type(self).__name__, sample.partition
        expected = 'None, "labeled", or a positive share for each of the classes'
        if priors is None:
            return np.full(found.n_classes, 1.0 / found.n_classes)
        classes = found.classes.tolist()
        if isinstance(priors, str):
            require(owner, "priors", priors, priors == "labeled", f"{expected} {classes}")
            given = np.bincount(found.codes, weights=sample.weight[found.labeled]).tolist()
        elif isinstance(priors, Mapping):
            given = [priors[label] for label in classes] if set(priors) == set(classes) else []
        else:
            given = list(priors) if np.ndim(priors) == 1 else []
        holds = len(given) == len(classes) and all(is_positive(share) for share in given)
        require(owner, "priors", priors, holds, f"{expected} {classes}")
        shares = np.array(given, dtype=float)
        return shares / shares.sum()

    def _warn_of_unlike_columns(self, X: Any) -> None:
        if issparse(X) or self.kernels is not None:
            return
        deviations = np.nanstd(X, axis=0)
        deviations = deviations[deviations > 0]
        if len(deviations) and deviations.max() > UNLIKE * np.median(deviations):
            warnings.warn(
                f"The columns of X are on different scales: deviations from {deviations.min():.2g} to "
                f"{deviations.max():.2g}. Kernels see the large ones only; use StandardScaler or MinMaxScaler first.",
                UserWarning,
                stacklevel=3,
            )

    def _warn_of_extremes(self, result: SolverResult, sample: Sample) -> None:
        """Warn where the identity has none of the weight, or all of it."""
        if not isinstance(self.ridge, str):
            return
        if float(result.x[1:].sum()) < NO_RIDGE:
            warnings.warn(
                f"The learned ridge leaves next to nothing to the kernels (their weights sum to "
                f"{result.x[1:].sum():.1e}): they do not tell the classes apart, or the rows count for too little; the "
                f"sample weights, each a number of rows, sum to {sample.weight.sum():.3g}. Scale them to a mean of 1, "
                "or give a ridge.",
                UserWarning,
                stacklevel=3,
            )
        elif float(result.x[0]) < NO_RIDGE and "uniform" not in result.extra:
            heaviest = max(self.kernel_weights_, key=lambda record: float(record["weight"]))
            advice = "Leave out kernels narrower than half the median distance, or give"
            warnings.warn(
                f"The learned ridge is next to nothing (its weight is {result.x[0]:.1e}): narrow kernels stand in for "
                f"it, above all {heaviest['name']} with the weight {heaviest['weight']:.2f}. "
                f"{'Give' if self.kernels is None else advice} a ridge.",
                UserWarning,
                stacklevel=3,
            )


def _axes(between: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all but the smallest eigenvalue, falling, and eigenvectors that rounding and LAPACK have no part in.

    Where a kernel interpolates, eigenvalues are equal and any rotation of their eigenvectors would do as well: they are
    turned to the axes of the order of the classes in their space.
    """
    values, U = np.linalg.eigh(between)
    values, U = values[:0:-1], U[:, :0:-1]
    ends = np.flatnonzero(-np.diff(values) > TIE * abs(values[0])) + 1
    turned = [V @ np.linalg.eigh(V.T @ (np.arange(len(U))[:, None] * V))[1] for V in np.split(U, ends, axis=1)]
    U = np.hstack(turned)
    largest = np.abs(U) >= (1.0 - TIE) * np.abs(U).max(axis=0)
    last = len(U) - 1 - largest[::-1].argmax(axis=0)  # of equal entries, which are usual with two classes
    return values, U * np.sign(U[last, np.arange(U.shape[1])])


def _best_cut(values: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> float:
    """Return a value above which rows of class 1, and below which rows of class 0, are told apart best."""
    order = np.argsort(values)
    ranked, classes, weight = values[order], codes[order], weight[order]
    cuts = np.array([ranked[0] - 1.0, *(0.5 * (ranked[1:] + ranked[:-1])), ranked[-1] + 1.0])
    missed = np.concatenate([[0.0], np.cumsum(np.where(classes == 1, weight, 0.0))])
    mistaken = weight[classes == 0].sum() - np.concatenate([[0.0], np.cumsum(np.where(classes == 0, weight, 0.0))])
    apart = np.concatenate([[True], ranked[1:] > ranked[:-1], [True]])  # nothing lies between equal values
    cuts, errors = cuts[apart], (missed + mistaken)[apart]
    cuts = cuts[errors <= errors.min() + NOTHING * weight.sum()]
    return float(cuts[np.argmin(np.abs(cuts))])
