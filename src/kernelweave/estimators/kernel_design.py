r"""Kernels learned from few labels and the shape of all rows: label-aware, aligned and ordered spectral ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels.base import require_kernel
from ..kernels.defaults import as_library
from ..kernels.features import FeatureMap
from ..kernels.library import Entry, KernelLibrary
from ..kernels.pointwise import RBF
from ..kernels.spectral import count_vectors, eigenbasis
from ..kernels.votes import VoteFeatures
from ..solvers import alignment
from ..solvers.alignment import AlignmentResult
from .base import Sample, is_nonnegative, require
from .kernel_learner import (
    WEIGHTINGS,
    KernelLearner,
    Prepared,
    Target,
    Vectors,
    n_landmarks_for,
    require_exact_memory,
    whole_kernels,
)


class SpectralLearner(KernelLearner):
    """What learners that start from the eigenvectors of one kernel share."""

    def _base(self) -> KernelLibrary:
        kernel = RBF() if self.kernel is None else self.kernel
        require_kernel(type(self).__name__, kernel)
        return KernelLibrary([kernel])

    def _library(self) -> KernelLibrary:
        return self._base()

    def _basis(
        self, kind: str, library: KernelLibrary, sample: Sample, rng: np.random.Generator, known: dict[Any, Any]
    ) -> list[Vectors]:
        """Return the eigenvectors of the first kernel, or of its graph."""
        n_rows, recipe = sample.X.shape[0], library.entries[0].kernel
        n_landmarks = n_landmarks_for(self.n_landmarks, n_rows)
        n_vectors = count_vectors(self.n_eigenvectors, n_landmarks or n_rows)
        if n_vectors == 0:
            return []
        if n_landmarks is None:
            require_exact_memory(type(self).__name__, n_rows)
        wanted = (recipe, kind, n_vectors, n_landmarks, self.landmarks)
        if wanted not in known:
            known[wanted] = eigenbasis(
                known[recipe],
                sample.X,
                n_vectors,
                kind=kind,
                n_landmarks=n_landmarks,
                landmarks=self.landmarks,
                rng=rng,
                recipe=recipe,
            )
        basis, V = known[wanted]
        names = [f"eigenvector {k}" for k in range(V.shape[1])]
        return [Vectors(Entry("eigenvectors", recipe), basis, V, names)]


class LabelAwareKernelLearner(SpectralLearner):
    r"""Learn a kernel from label-aware and unsupervised eigenvectors, by its alignment with the labels.

    .. math:: \tilde K = \sum_k \alpha_k u_k u_k^\top + \sum_j \beta_j v_j v_j^\top, \qquad
        u_k(x) = \sum_{i \in L} k(x, x_i) Y_{ik} \Big/ \sum_{i \in L} k(x, x_i) ,

    Algorithm 1 and (6) of the paper. The label-aware :math:`u_k` extrapolate the eigenvectors of the ideal kernel,
    which are the indicators :math:`Y` of the classes, to all rows; the :math:`v_j` are eigenvectors of the kernel or of
    its graph. Weights are non-negative and maximise the centred alignment with :math:`Y Y^\top` at the labelled rows.
    All of these are functions of a row, so that the kernel is given by explicit features and predicts new rows.

    Parameters
    ----------
    kernel : Kernel, optional
        The base kernel, without negative values. None: ``RBF()``.
    n_eigenvectors : int or float, default=0.1
        Unsupervised eigenvectors; a float is a share of the rows, or of the landmarks where there are any.
    basis : {"kernel", "laplacian"}, default="kernel"
        Whether they are those of largest eigenvalue of the kernel matrix, or of smallest of its normalised Laplacian.
    weighting : {"alignf", "align", "uniform"}, default="alignf"
        Weights that maximise the alignment together; each by its own alignment; or equal ones.
    ridge : float, default=0.0
        Of ``"alignf"``, relative to the squared sizes of the base kernels. With few labels its weights are noisy; a
        ridge draws them to those of ``"align"``.
    leave_one_out : bool, default=False
        Whether a labelled row's own label is left out of its label-aware values. These otherwise know what they are
        weighed by, and are rated too high. Votes are then means over classes, since without that the row's own class
        would be one vote short, and wide kernels predict the other one.
    normalization : {"degree", "class"}, default="degree"
        As above and in Algorithm 1; or (5): the mean of the kernel over the rows of a class, not divided by degrees.
    extra_kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        Whole kernels that join the mixture: the base kernel itself, deformed kernels.
    n_landmarks : None, "auto" or int, default=None
        Rows that eigenvectors are computed from. None: all, which takes memory for a matrix of all rows. ``"auto"``:
        all of up to 2000 rows, else 1000.
    landmarks : {"kmeans", "uniform"}, default="kmeans"
        How they are chosen: the rows nearest to the centres of k-means, or at random.
    target : {"auto", "classes", "numbers"}, default="auto"
        What ``y`` holds; ``"auto"``: numbers where it is continuous or has several columns.
    unlabeled : "auto" or marker, default="auto"
        What marks an unlabelled row in ``y``. ``"auto"``: NaN, None, NA, or -1 beside at least two other classes.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    kernel_ : BoundKernel
        The learned kernel, tied to the training rows.
    weights_ : ndarray of shape (n_base_kernels,)
        Of the label-aware vectors, the eigenvectors and the extra kernels, each of unit size; they sum to one.
    base_kernels_ : list of dict
        Name and weight of each base kernel.
    alignment_ : dict
        With the labels, at the labelled rows: ``"before"`` that of the base kernel (at 5000 of them, if there are
        more), ``"after"`` of the learned one.
    n_features_out_ : int
        Columns of :meth:`transform`.
    objective_, certificate_, status_, n_iter_
        The alignment, the residual of its optimality conditions, and how they were reached.
    n_features_in_, feature_names_in_

    Notes
    -----
    Of two classes the label-aware vectors sum to one (``normalization="degree"``): about its centre each gives the same
    kernel, and only the sum of their weights is determined.

    With ``leave_one_out=True`` the kernel of labelled training rows (``kernel_``) is that of their values without their
    own labels, while ``transform`` treats any row as new; as with scikit-learn's ``TargetEncoder``, the two differ.

    References
    ----------
    Q. Wang, K. Zhang, G. Jiang, I. Marsic. Improving semi-supervised target alignment via label-aware base kernels.
    AAAI 2014.
    C. Cortes, M. Mohri, A. Rostamizadeh. Two-stage learning kernel algorithms. ICML 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from kernelweave import RBF, LabelAwareKernelLearner
    >>> X, digits = load_digits(n_class=2, return_X_y=True)
    >>> y = np.where(np.arange(len(X)) < 20, digits, -1)  # 20 labels
    >>> learner = LabelAwareKernelLearner(RBF(multiple=5.0), n_eigenvectors=20).fit(X, y)
    >>> learner.alignment_["before"] < learner.alignment_["after"]
    True
    >>> learner.transform(X).shape == (len(X), learner.n_features_out_)
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_eigenvectors: float = 0.1,
        basis: str = "kernel",
        weighting: str = "alignf",
        ridge: float = 0.0,
        leave_one_out: bool = False,
        normalization: str = "degree",
        extra_kernels: Any = None,
        n_landmarks: int | str | None = None,
        landmarks: str = "kmeans",
        target: str = "auto",
        unlabeled: Any = "auto",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_eigenvectors = n_eigenvectors
        self.basis = basis
        self.weighting = weighting
        self.ridge = ridge
        self.leave_one_out = leave_one_out
        self.normalization = normalization
        self.extra_kernels = extra_kernels
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.target = target
        self.unlabeled = unlabeled
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        self._require_basis()
        self._require_choice("basis", "kernel", "laplacian")
        self._require_choice("weighting", *WEIGHTINGS)
        self._require_choice("normalization", "degree", "class")
        require(type(self).__name__, "ridge", self.ridge, is_nonnegative(self.ridge), "a number, 0 or more")
        is_bool = isinstance(self.leave_one_out, bool | np.bool_)
        require(type(self).__name__, "leave_one_out", self.leave_one_out, is_bool, "True or False")

    def _prepare(self, sample: Sample, rng: np.random.Generator, known: dict[Any, Any]) -> Prepared:
        library = self._base()
        base = whole_kernels(library, self._bound(library, sample, rng, known))[0]
        wholes = []
        if self.extra_kernels is not None:
            extra = as_library(self.extra_kernels)
            wholes = whole_kernels(extra, self._bound(extra, sample, rng, known))
        return Prepared(sample.X, base, self._basis(self.basis, library, sample, rng, known), wholes)

    def _library(self) -> KernelLibrary:
        extra = () if self.extra_kernels is None else as_library(self.extra_kernels)
        return KernelLibrary([self._base(), extra]) if extra else self._base()

    def _label_aware(self, prepared: Prepared, target: Target) -> list[Vectors]:
        features, own = self._votes(prepared, target)
        Z = features.of(prepared.X)
        if own is not None:
            Z[target.rows] = own
        names = [f"label-aware: {name}" for name in target.names]
        return [Vectors(Entry("label-aware", prepared.base.entry.kernel), features, Z, names)]

    def _votes(self, prepared: Prepared, target: Target) -> tuple[FeatureMap, np.ndarray | None]:
        """Return the label-aware functions, and their values at labelled rows without their own labels."""
        Y, weight = target.values, target.weight
        by_class = target.is_classes and (self.leave_one_out or self.normalization == "class")
        # Of class means each class has one total; otherwise all rows share it.
        totals = weight @ Y if by_class else np.full(Y.shape[1], weight.sum())
        values = weight[:, None] * Y / totals
        divided = self.normalization == "degree"
        shares = values.sum(axis=1) if by_class else weight / weight.sum()
        features = VoteFeatures(prepared.base.kernel.restrict(target.rows), values, shares if divided else None)
        if not self.leave_one_out:
            return features, None
        left = totals - weight[:, None] * (Y if by_class else np.ones_like(Y))
        if target.fewest < 2:
            single = target.names[int(np.count_nonzero(Y, axis=0).argmin())]
            raise ValueError(
                f"leave_one_out=True needs two labelled rows of each class at least, but class {single} has one. Label "
                "more rows of it, or pass leave_one_out=False."
            )
        K = features.shares(prepared.X[target.rows], without_own=True)
        sums = K @ (weight[:, None] * Y) / left
        if not divided:
            return features, sums
        counts = sums.sum(axis=1) if by_class else K @ weight / left[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            own = sums / counts[:, None]
        return features, np.where(counts[:, None] == 0, values.sum(axis=0) / shares.sum(), own)

    def _weigh(self, M: np.ndarray, a: np.ndarray, t: float) -> AlignmentResult:
        return weigh(self.weighting, float(self.ridge), M, a, t)


class AlignedKernelLearner(SpectralLearner):
    r"""Learn the non-negative weights with which kernels, or the eigenvectors of one, are most aligned with the labels.

    .. math:: \max_{w \ge 0}\; \frac{\langle K_c(w), (Y Y^\top)_c \rangle}{\|K_c(w)\|_F \|(Y Y^\top)_c\|_F}, \qquad
        K(w) = \sum_p w_p K_p ,

    over any library (``basis=None``), or over :math:`K_p = v_p v_p^\top` with the eigenvectors of one kernel: the
    kernel of maximal alignment on a spectral basis. It is non-negative least squares, solved to a certified residual.

    Parameters
    ----------
    kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        The library; one kernel where ``basis`` is given.
    basis : {None, "kernel", "laplacian"}, default=None
        None: the kernels themselves. Else eigenvectors, as in :class:`LabelAwareKernelLearner`.
    n_eigenvectors : int or float, default=0.1
        Where ``basis`` is given; a float is a share of the rows, or of the landmarks where there are any.
    weighting : {"alignf", "align", "uniform"}, default="alignf"
        ``"align"`` on eigenvectors is the maximal alignment kernel of Cristianini et al.
    ridge : float, default=0.0
        As in :class:`LabelAwareKernelLearner`.
    n_landmarks, landmarks, target, unlabeled, random_state
        As in :class:`LabelAwareKernelLearner`.

    Attributes
    ----------
    kernel_, weights_, base_kernels_, alignment_, n_features_out_, objective_, certificate_, status_, n_iter_
        As in :class:`LabelAwareKernelLearner`; ``alignment_["before"]`` is that of the first kernel.
    n_features_in_, feature_names_in_

    References
    ----------
    N. Cristianini, J. Shawe-Taylor, A. Elisseeff, J. Kandola. On kernel-target alignment. NIPS 2001.
    C. Cortes, M. Mohri, A. Rostamizadeh. Two-stage learning kernel algorithms. ICML 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kernelweave import AlignedKernelLearner
    >>> X, y = load_wine(return_X_y=True)
    >>> learner = AlignedKernelLearner().fit(StandardScaler().fit_transform(X), y)
    >>> [record["name"] for record in learner.base_kernels_ if record["weight"] > 0]
    ['RBF()', 'RBF(multiple=2.0)']
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        basis: str | None = None,
        n_eigenvectors: float = 0.1,
        weighting: str = "alignf",
        ridge: float = 0.0,
        n_landmarks: int | str | None = None,
        landmarks: str = "kmeans",
        target: str = "auto",
        unlabeled: Any = "auto",
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.basis = basis
        self.n_eigenvectors = n_eigenvectors
        self.weighting = weighting
        self.ridge = ridge
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.target = target
        self.unlabeled = unlabeled
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        self._require_basis()
        self._require_choice("basis", None, "kernel", "laplacian")
        self._require_choice("weighting", *WEIGHTINGS)
        require(type(self).__name__, "ridge", self.ridge, is_nonnegative(self.ridge), "a number, 0 or more")
        some = self.basis is None or bool(self.n_eigenvectors)
        require(type(self).__name__, "n_eigenvectors", self.n_eigenvectors, some, "1 or more, since basis is given")
        one = self.basis is None or self.kernels is None or len(as_library(self.kernels)) == 1
        require(type(self).__name__, "basis", self.basis, one, "None, since several kernels were given")

    def _library(self) -> KernelLibrary:
        return KernelLibrary([RBF()]) if self.basis is not None and self.kernels is None else as_library(self.kernels)

    def _prepare(self, sample: Sample, rng: np.random.Generator, known: dict[Any, Any]) -> Prepared:
        library = self._library()
        wholes = whole_kernels(library, self._bound(library, sample, rng, known))
        if self.basis is None:
            return Prepared(sample.X, wholes[0], [], wholes)
        return Prepared(sample.X, wholes[0], self._basis(self.basis, library, sample, rng, known), [])

    def _weigh(self, M: np.ndarray, a: np.ndarray, t: float) -> AlignmentResult:
        return weigh(self.weighting, float(self.ridge), M, a, t)


class OrderedSpectralKernelLearner(SpectralLearner):
    r"""Learn a transform of a graph's spectrum that gives smoother eigenvectors more weight.

    .. math:: \max_w\; \rho\Big(\sum_j w_j v_j v_j^\top, Y Y^\top\Big)
        \quad \text{s.t.} \quad w_1 \ge 0, \; w_2 \ge w_3 \ge \dots \ge 0 ,

    with :math:`v_j` the eigenvectors of the normalised Laplacian of the kernel's graph, from the smoothest on; the
    first is nearly constant and exempt from the order. The paper solves a quadratically constrained program; the cone
    of ordered weights is that of sums :math:`\nu \ge 0` of leading eigenvectors, so this is non-negative least squares.

    Parameters
    ----------
    kernel, n_eigenvectors, n_landmarks, landmarks, target, unlabeled, random_state
        As in :class:`LabelAwareKernelLearner`.

    Attributes
    ----------
    kernel_, weights_, base_kernels_, alignment_, n_features_out_, objective_, certificate_, status_, n_iter_
        As in :class:`LabelAwareKernelLearner`. Weights are of eigenvectors of unit length over all rows, so that their
        order is the one above.
    n_features_in_, feature_names_in_

    References
    ----------
    X. Zhu, J. Kandola, Z. Ghahramani, J. Lafferty. Nonparametric transforms of graph kernels for semi-supervised
    learning. NIPS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import RBF, OrderedSpectralKernelLearner
    >>> X, classes = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.where(np.arange(200) < 20, classes, -1)
    >>> learner = OrderedSpectralKernelLearner(RBF(multiple=30.0), n_eigenvectors=10).fit(X, y)
    >>> bool(np.all(np.diff(learner.weights_[1:]) <= 0)), round(learner.alignment_["after"], 1)
    (True, 1.0)
    """

    _by_size = False  # the order is that of weights of eigenvectors of unit length

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_eigenvectors: float = 0.1,
        n_landmarks: int | str | None = None,
        landmarks: str = "kmeans",
        target: str = "auto",
        unlabeled: Any = "auto",
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_eigenvectors = n_eigenvectors
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.target = target
        self.unlabeled = unlabeled
        self.random_state = random_state

    def _check_params(self) -> None:
        super()._check_params()
        self._require_basis()
        require(type(self).__name__, "n_eigenvectors", self.n_eigenvectors, bool(self.n_eigenvectors), "1 or more")

    def _prepare(self, sample: Sample, rng: np.random.Generator, known: dict[Any, Any]) -> Prepared:
        library = self._base()
        base = whole_kernels(library, self._bound(library, sample, rng, known))[0]
        return Prepared(sample.X, base, self._basis("laplacian", library, sample, rng, known), [])

    def _weigh(self, M: np.ndarray, a: np.ndarray, t: float) -> AlignmentResult:
        return alignment.ordered(M, a, t)


def weigh(weighting: str, ridge: float | np.ndarray, M: np.ndarray, a: np.ndarray, t: float) -> AlignmentResult:
    """Return the weights of base kernels by one of the rules."""
    if weighting == "alignf":
        return alignment.alignf(M, a, t, ridge=ridge)
    return alignment.align(M, a, t) if weighting == "align" else alignment.uniform(M, a, t)
