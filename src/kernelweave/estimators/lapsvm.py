r"""The support vector machine on a kernel that follows the manifold of labelled and unlabelled rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from ..kernels.defaults import given_kernel, neighbor_metric
from ..kernels.library import KernelLibrary
from ..kernels.manifold import ManifoldKernel
from ..labels import partition
from ..parameters import COUNT, LANDMARKS, NON_NEGATIVE, POSITIVE, READ_LATER, one_of, read_options
from ..solvers.deadline import Deadline
from .shared.in_sample import outputs_at_given
from .shared.machine import MACHINE_CONSTRAINTS, PRECISION, MachineOptions, announce_folds
from .shared.machine_choice import fit_one_kernel
from .shared.memory import require_machine_memory
from .shared.outputs import KernelClassifier, transduce_classes
from .shared.problems import class_problem, naming_large_numbers
from .shared.progress import LIMIT_CONSTRAINTS
from .shared.sample import bind, read_sample

MEMORY_ADVICE = "one of HarmonicClassifier, RKDAClassifier and SSMKClassifier"
RATIOS = (100.0, 10.0, 0.0)  # that folds choose from; the first unless another one is clearly better


class LapSVMClassifier(KernelClassifier):
    r"""Classify with a support vector machine whose kernel is deformed by a graph of labelled and unlabelled rows.

    .. math::
        \min_{f, b}\; \tfrac12 \Big(\|f\|_K^2 + r\, \mathbf f^\top L^p\, \mathbf f\Big)
        + \sum_{i \in L} C_i \max(0, 1 - y_i (f(x_i) + b)) ,

    where :math:`\mathbf f` are the values at all rows, labelled or not, and :math:`L` is the Laplacian of their
    nearest-neighbour graph: functions that change along the manifold of the data cost more. This is a support vector
    machine with the deformed kernel of :class:`ManifoldKernel`, hence convex, and predicts new rows.

    Parameters
    ----------
    kernel : Kernel, optional
        The base kernel. None: linear where ``X`` is sparse; the sum of RBF kernels on standardised columns and on
        columns after a power, and of a forest kernel, where ``X`` looks like a table; else RBF.
    C : float or "cv", default=10.0
        Cost of a margin violation. ``"cv"``: 0.1, 1, 10 or 100, as in :class:`MKLClassifier`.
    n_neighbors : int, default=10
        Neighbours of each row in the graph.
    degree : int, default=2
        The power p of its Laplacian.
    ratio : float or "cv", default="cv"
        The factor r, relative to the mean diagonal of the base kernel; 0 leaves the kernel as it is. ``"cv"``: 100,
        unless 10 or 0 predicts held-out labelled rows better by more than a standard error. With noisy features,
        neighbours say little about labels, and the undeformed kernel is better.
    metric : {"auto", "euclidean", "cosine", "kernel"}, default="auto"
        Distance between rows. ``"auto"``: that of the kernel if it is precomputed or the default of a table, cosine
        where ``X`` is sparse, else Euclidean.
    n_landmarks : "auto", int or None, default="auto"
        Rows that the kernel's functions are spanned by, as in :class:`ManifoldKernel`.
    scale : {"trace", "variance"} or None, default="trace"
        What the deformed kernel is divided by, over all rows, as in :class:`MKLClassifier`.
    tol : float, default=1e-3
        Relative duality gap to reach.
    max_iter : int, default=1000
        Largest number of steps, as in :class:`MKLClassifier`; one kernel takes one or two.
    class_weight : None, "balanced" or dict, default=None
        Factors on ``C`` by class.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``, as in :class:`SSMKClassifier`.
    dtype : {"float64", "float32"}, default="float64"
        Precision in which the kernel at the labelled rows is kept.
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Machines of classes that are trained at the same time; -1: as many as there are cores. Has no influence on the
        result.
    verbose : int, default=0
        1 shows a progress bar on a terminal and a few lines elsewhere, 2 a line for each step.
    random_state : int, RandomState or None, default=None
        Seed of folds, and of the kernels' random draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    C_, ratio_ : float
        The cost and the ratio used.
    cv_results_ : dict
        Results of the cross-validation, as in scikit-learn's ``GridSearchCV``; empty if nothing was chosen.
    transduction_ : ndarray of shape (n_samples,)
        The given label on labelled rows, the predicted one on the others.
    expansion_, intercept_, support_, dual_coef_, n_evaluations_, objective_, certificate_, status_, history_, n_iter_
        As in :class:`MKLClassifier`.
    library_, weights_, kernel_weights_, source_weights_, n_solves_, n_features_in_, feature_names_in_
        As in :class:`MKLClassifier`; the library holds the one deformed kernel.

    See Also
    --------
    ManifoldKernel : The deformed kernel.
    TSVMMKLClassifier : Several deformed kernels, with boundaries that avoid unlabelled rows.
    HarmonicClassifier : Spreads labels along the graph itself.

    Notes
    -----
    With ``ratio=0`` and ``scale=None`` it is scikit-learn's ``SVC``. More than two classes: each against the rest.

    ``SemiSupervisedCalibration(LapSVMClassifier())`` has ``predict_proba``, calibrated on held-out rows.

    References
    ----------
    V. Sindhwani, P. Niyogi, M. Belkin. Beyond the point cloud: from transductive to semi-supervised learning. ICML
    2005.

    M. Belkin, P. Niyogi, V. Sindhwani. Manifold regularization. JMLR 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import LapSVMClassifier
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> y = np.where(np.arange(200) < 20, truth, -1)  # 20 labels, 180 unlabelled rows
    >>> model = LapSVMClassifier().fit(X, y)
    >>> bool(np.mean(model.transduction_ == truth) > 0.95), model.certificate_.kind
    (True, 'duality gap')
    """

    _constraints = (
        MACHINE_CONSTRAINTS
        | LIMIT_CONSTRAINTS
        | {
            "C": POSITIVE | one_of("cv"),
            "n_neighbors": COUNT,
            "degree": COUNT,
            "ratio": NON_NEGATIVE | one_of("cv"),
            "metric": one_of("auto", "euclidean", "cosine", "kernel"),
            "n_landmarks": LANDMARKS,
            **dict.fromkeys(("kernel", "class_weight", "unlabeled"), READ_LATER),
        }
    )

    def __init__(
        self,
        kernel: Any = None,
        *,
        C: float | str = 10.0,
        n_neighbors: int = 10,
        degree: int = 2,
        ratio: float | str = "cv",
        metric: str = "auto",
        n_landmarks: int | str | None = "auto",
        scale: str | None = "trace",
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: Any = None,
        unlabeled: Any = "auto",
        dtype: str = "float64",
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.C = C
        self.n_neighbors = n_neighbors
        self.degree = degree
        self.ratio = ratio
        self.metric = metric
        self.n_landmarks = n_landmarks
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.dtype = dtype
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            Labelled and unlabelled rows.
        y : array-like of shape (n_samples,)
            Labels; NaN, None and NA mark unlabelled rows, as does what ``unlabeled`` says.
        sample_weight : array-like of shape (n_samples,), optional
            Rows of weight zero are ignored altogether; neighbour graphs do not know other weights.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        options = read_options(
            MachineOptions,
            self._parameters(),
            owner=type(self).__name__,
            deadline=Deadline(self.max_time),
            memory_advice=MEMORY_ADVICE,
        )
        sample = read_sample(self._read_rows(X, PRECISION), partition(y, unlabeled=self.unlabeled), sample_weight)
        library, rng = self._make_library(sample.X), self._rng()
        ratios = [{"ratio": entry.kernel.get_params()["ratio"]} for entry in library.entries]
        require_machine_memory(
            options.owner,
            library,
            sample,
            sample.partition.n_labeled,
            options.dtype,
            MEMORY_ADVICE,
            by_features=True,
            smaller=smaller_libraries(library),
        )
        problem, bound = class_problem(sample, self.class_weight), bind(library, sample, rng)
        announce_folds(options, self.C, 1, sample.partition.n_labeled, self.ratio)
        with naming_large_numbers(options.owner, sample):
            fit = fit_one_kernel(bound, sample, problem, options, self.C, ratios, rng)
        chosen = bound.select([fit.place])
        return self._keep(
            sample,
            KernelLibrary([library.entries[fit.place].kernel]),
            fit,
            fit.machine,
            classes_=sample.partition.classes.copy(),
            ratio_=ratios[fit.place]["ratio"],
            transduction_=transduce_classes(outputs_at_given(fit.machine.expansion, chosen, sample), sample),
        )

    def _make_library(self, X: Any) -> KernelLibrary:
        """Return the deformed kernels to choose from, for such rows."""
        recipe = ManifoldKernel(
            given_kernel(type(self).__name__, self.kernel, X),
            n_neighbors=self.n_neighbors,
            degree=self.degree,
            ratio=1.0,
            metric=neighbor_metric(self.metric, self.kernel, X),
            n_landmarks=self.n_landmarks,
        )
        ratios = RATIOS if isinstance(self.ratio, str) else (self.ratio,)
        return KernelLibrary([recipe.replace(ratio=ratio) for ratio in ratios])

    def _allows_missing(self) -> bool:
        # the neighbour graph may need what the kernel does without
        return self.kernel is not None and self._make_library(None).allows_missing


def smaller_libraries(library: KernelLibrary) -> Iterator[tuple[str, KernelLibrary]]:
    """Give libraries that take less memory, each with the parameters that name it."""
    recipes = [entry.kernel for entry in library.entries]
    fewer = [recipe.replace(n_landmarks=100) for recipe in recipes]
    yield "n_landmarks=100", KernelLibrary(fewer)
    if len(recipes) > 1:
        yield "ratio=100", KernelLibrary(recipes[:1])
        yield "ratio=100 with n_landmarks=100", KernelLibrary(fewer[:1])
