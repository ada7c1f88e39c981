r"""Discriminant analysis whose kernel and ridge are learned together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..kernels.defaults import as_library, discriminant_library, landmark_library, smooth_library
from ..labels import Partition, partition
from ..parameters import (
    BOOLEAN,
    CALLBACK,
    COUNT,
    LANDMARKS,
    POSITIVE,
    READ_LATER,
    is_positive,
    one_of,
    read_options,
    require,
)
from ..solvers.deadline import Deadline
from ..solvers.result import FitState
from .shared.base import lazy_transformer
from .shared.discriminant import MEMORY_ADVICE, DiscriminantOptions, NearestCentroid, fit_discriminant
from .shared.in_sample import outputs_at_given
from .shared.memory import fewer_kernels, require_machine_memory
from .shared.outputs import KernelClassifier, transduce_classes
from .shared.problems import naming_large_numbers
from .shared.progress import LIMIT_CONSTRAINTS
from .shared.sample import bind, read_sample


@lazy_transformer
class RKDAClassifier(TransformerMixin, KernelClassifier):
    r"""Classify, and project, by regularised kernel discriminant analysis with learned kernel weights and ridge.

    With centred kernels of unit trace :math:`B_i`, centred class indicators :math:`H` and
    :math:`M(w) = \lambda I + \sum_i w_i B_i`,

    .. math:: \min_w\; F(w) = \operatorname{tr} H^\top M(w)^{-1} H \quad \text{s.t.} \quad w \ge 0,\; \sum_i w_i = 1

    maximises the largest ratio of between-class scatter to regularised total scatter: (34) of the paper divided by
    :math:`\lambda`. Where the ridge is learned, :math:`I/m` is one of the :math:`B_i` and there is no :math:`\lambda`:
    (41). The paper solves semidefinite programs; this is the same problem, smooth and convex, solved by Newton's method
    to a certified gap. Projections are :math:`\sum_i w_i b_i(x)^\top M^{-1} H U`, with :math:`U` the eigenvectors of
    :math:`H^\top (I - \lambda M^{-1}) H`; a row belongs to the class whose centroid is nearest.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library, of positive semi-definite kernels. None: linear and RBF kernels of standardised columns, and of
        columns after a power, where ``X`` looks like a table, with a different unit in each column; else linear,
        quadratic, and a family of RBF kernels no narrower than half the mean distance: narrower ones are nearly the
        identity, and act as a ridge.
    ridge : float or "learned", default="learned"
        The factor :math:`\lambda` on the identity, for kernels of unit trace.
    weighting : {"learned", "uniform", "auto"}, default="learned"
        ``"uniform"``: equal weights; a ridge that is learned is the best with :math:`w_i = s, w_0 + s = 1`, and with
        ``unlabeled_scatter`` the best with :math:`w_0 + \sum_i w_i = 1`.
        ``"auto"``: learned, unless equal ones predict held-out labelled rows better, by more than a standard error of
        the squared errors; for many columns or classes, see the notes.
    formulation : {"exact", "joint"}, default="exact"
        ``"joint"``: one matrix inequality for all classes, (37), an upper bound whose optimum differs; to reproduce the
        paper.
    scatter : {"total", "within"}, default="total"
        ``"within"``: the form of Kim et al., (3)-(10), for two classes and a given ridge; its objective is maximised.
    class_prior : None, "labeled", dict or array-like, default=None
        Prior shares of the classes, modelled as normal distributions of equal variance around centroids; variance and
        centroids are estimated from held-out projections of labelled rows. ``"labeled"``: the shares of the labelled
        rows. None: the nearest centroid of the projected training rows, whatever the shares.
    threshold : {"midpoint", "calibrated"}, default="midpoint"
        For two classes: between the centroids (moved by ``class_prior``), or where held-out predictions of labelled
        rows make the fewest errors.
    n_landmarks : "auto", int or None, default="auto"
        Rows that each kernel's functions are spanned by. ``"auto"``: all up to 5000 rows; above, as many as give all
        kernels together 2000 features. None: all. They save time where all kernels together have fewer features than
        rows.
    tol : float, default=1e-6
        Relative duality gap to reach.
    max_iter : int, default=100
        Largest number of steps over the weights.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``, as in :class:`SSMKClassifier`. Kernels use all rows (for widths,
        landmarks, graphs); weights and ridge are learned from labelled rows.
    unlabeled_scatter : bool, default=False
        Whether the mean and the total scatter include unlabelled rows, as rows of no class: their indicators are zero,
        so that directions in which they vary count less, including those between the classes. It takes as long as a fit
        with all rows labelled, and rarely reduces the error.
    dtype : {"float64", "float32"}, default="float64"
        Precision in which the kernel matrices are kept.
    callback : callable, optional
        ``callback(state)`` after each step, with a :class:`FitState`; a true return value stops the fit.
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Has no influence: there is one problem.
    verbose : int, default=0
        1 shows a progress bar on a terminal and a few lines elsewhere, 2 a line for each step.
    random_state : int, RandomState or None, default=None
        Seed of the kernels' random draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    weights_ : ndarray of shape (n_kernels,)
        Of the kernels, in library order; they sum to one.
    ridge_ : float
        The ridge; a fit with it as ``ridge`` has the same optimum.
    scalings_ : ndarray of shape (n_samples, n_components)
        Coefficients of the discriminant directions, of unit regularised variance; zero for ignored rows.
    centroids_ : ndarray of shape (n_classes, n_components)
        Of the labelled rows' projections; where ``class_prior`` is given, shrunk towards the overall mean to match
        held-out projections. With ``unlabeled_scatter`` and no prior they are shrunk by one factor for all.
    class_prior_ : ndarray of shape (n_classes,)
        The shares of the classes used; equal ones where ``class_prior`` is None.
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
    n_solves_ : int
        Cholesky factorisations.
    intercept_ : ndarray of shape (n_components,)
        Added to the projections, so that their mean over the training rows is zero.

    See Also
    --------
    MKLClassifier : A support vector machine with a learned sum of kernels.
    LabelMapDisplay : Draws rows in the plane by the learned kernel.
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : Without kernels.

    Notes
    -----
    Columns should be on one scale: standardise them, or bring them to [0, 1]. There is a warning where they are not.
    Learned weights tend to favour the narrowest kernel, and with many columns or classes too large a ridge. On 13 data
    sets of 30 to 784 columns, with 200 training rows or fewer, ``weighting="auto"`` was 1.7 points more accurate than
    ``"learned"`` (13 on BCI, 3 on COIL20), and 0.2 points less on the paper's nine sets. The paper's (19)-(23) lose the
    1/m of (14); the ridge here is that of :math:`M` above.

    ``SemiSupervisedCalibration(RKDAClassifier())`` has ``predict_proba``, calibrated on held-out rows.

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

    _constraints = {
        "kernels": READ_LATER,
        "ridge": POSITIVE | one_of("learned"),
        "weighting": one_of("learned", "uniform", "auto"),
        "formulation": one_of("exact", "joint"),
        "scatter": one_of("total", "within"),
        "class_prior": READ_LATER,
        "threshold": one_of("midpoint", "calibrated"),
        "n_landmarks": LANDMARKS,
        "tol": POSITIVE,
        "max_iter": COUNT,
        "unlabeled": READ_LATER,
        "unlabeled_scatter": BOOLEAN,
        "dtype": one_of("float64", "float32"),
        "callback": CALLBACK,
        "random_state": READ_LATER,
    } | LIMIT_CONSTRAINTS

    def __init__(
        self,
        kernels: Any = None,
        *,
        ridge: float | str = "learned",
        weighting: str = "learned",
        formulation: str = "exact",
        scatter: str = "total",
        class_prior: Any = None,
        threshold: str = "midpoint",
        n_landmarks: int | str | None = "auto",
        tol: float = 1e-6,
        max_iter: int = 100,
        unlabeled: Any = "auto",
        unlabeled_scatter: bool = False,
        dtype: str = "float64",
        callback: Callable[[FitState], object] | None = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.ridge = ridge
        self.weighting = weighting
        self.formulation = formulation
        self.scatter = scatter
        self.class_prior = class_prior
        self.threshold = threshold
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.unlabeled = unlabeled
        self.unlabeled_scatter = unlabeled_scatter
        self.dtype = dtype
        self.callback = callback
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn weights, ridge and directions, from labelled rows or (``unlabeled_scatter``) from all.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            A weight is a number of rows: the sum of all is what a learned ridge is relative to. Rows of weight zero are
            ignored altogether.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        self._refuse_within_scatter()
        deadline = Deadline(self.max_time)
        sample = read_sample(self._read_rows(X, ("float64",)), partition(y, unlabeled=self.unlabeled), sample_weight)
        options = self._options(sample.partition, sample.labeled_weight, deadline)
        n_rows = sample.n_rows if self.unlabeled_scatter else sample.partition.n_labeled
        given = smooth_library(sample.X) if self.kernels is None else as_library(self.kernels)
        library = discriminant_library(given, self.n_landmarks, n_rows)
        require_machine_memory(
            options.owner,
            library,
            sample,
            n_rows,
            options.dtype,
            MEMORY_ADVICE,
            by_features=True,
            smaller=[*fewer_kernels(library), ("n_landmarks=200", landmark_library(given, 200))],
        )
        bound = bind(library, sample, self._rng())
        with naming_large_numbers(options.owner, sample):
            fit = fit_discriminant(bound, sample, options)
        values = fit.centers.decide(outputs_at_given(fit.expansion, bound, sample))
        return self._keep(
            sample,
            library,
            fit,
            fit.by_kernel,
            fit.centers,
            fit.outcome,
            classes_=sample.partition.classes.copy(),
            transduction_=transduce_classes(values, sample),
            _spread=fit.centers.spread,
        )

    def transform(self, X: Any) -> np.ndarray:
        """Return the projections of the rows of ``X`` on the discriminant directions.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to project.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            One column for each direction; fewer than there are classes.
        """
        return self._outputs(X, split=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the projections: ``rkda0``, ``rkda1`` and so on.

        Parameters
        ----------
        input_features : array-like of str, optional
            Not used; part of the interface of scikit-learn.

        Returns
        -------
        ndarray of str
            One name for each column of :meth:`transform`.
        """
        check_is_fitted(self)
        return np.array([f"rkda{i}" for i in range(self.scalings_.shape[1])], dtype=object)

    def decision_function(self, X: Any, split: bool = False) -> np.ndarray:
        """Return the logarithm of how likely classes are, up to a constant.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Rows to predict.
        split : bool, default=False
            Distances do not sum over kernels: must be False.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, that of ``classes_[1]`` against ``classes_[0]``.
        """
        if split:
            raise ValueError("RKDAClassifier compares distances, which are not sums over kernels; split must be False.")
        projected = self._outputs(X)
        centers = NearestCentroid(self.centroids_, self.class_prior_, self.threshold_, self._spread)
        values = centers.decide(projected)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> np.ndarray:
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)]

    def _refuse_within_scatter(self) -> None:
        """Refuse the scatter within classes where other parameters do not fit it."""
        fits = not isinstance(self.ridge, str) and self.weighting in ("learned", "uniform")
        if self.scatter == "within" and not (fits and self.formulation == "exact" and self.threshold == "midpoint"):
            raise ValueError(
                f'{type(self).__name__} got scatter="within" with ridge={self.ridge!r}, weighting={self.weighting!r}, '
                f"formulation={self.formulation!r} and threshold={self.threshold!r}; it requires a number as "
                'ridge, weighting="learned" or "uniform", formulation="exact" and threshold="midpoint".'
            )

    def _options(self, labels: Partition, weight: np.ndarray, deadline: Deadline) -> DiscriminantOptions:
        return read_options(
            DiscriminantOptions,
            self._parameters(),
            owner=type(self).__name__,
            ridge=None if isinstance(self.ridge, str) else float(self.ridge),
            class_prior=prior_shares(type(self).__name__, self.class_prior, labels, weight),
            shrinks=self.class_prior is not None,
            calibrated=self.threshold == "calibrated",
            deadline=deadline,
        )


def prior_shares(owner: str, class_prior: Any, labels: Partition, weight: np.ndarray) -> np.ndarray:
    """Return the shares of the classes that ``class_prior`` asks for."""
    expected = '"labeled", None, or a positive share for each of the classes'
    if class_prior is None:
        return np.full(labels.n_classes, 1.0 / labels.n_classes)
    classes = labels.classes.tolist()
    if isinstance(class_prior, str):
        require(owner, "class_prior", class_prior, class_prior == "labeled", f"{expected} {classes}")
        given = np.bincount(labels.codes, weights=weight).tolist()
    elif isinstance(class_prior, Mapping):
        given = [class_prior[label] for label in classes] if set(class_prior) == set(classes) else []
    else:
        given = list(class_prior) if np.ndim(class_prior) == 1 else []
    holds = len(given) == len(classes) and all(is_positive(share) for share in given)
    require(owner, "class_prior", class_prior, holds, f"{expected} {classes}")
    shares = np.array(given, dtype=float)
    return shares / shares.sum()
