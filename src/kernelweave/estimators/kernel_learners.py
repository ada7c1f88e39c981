r"""Kernels learned from few labels and the shape of all rows: label-aware, aligned and ordered spectral ones."""

from __future__ import annotations

from typing import Any

from ..kernels.base import require_kernel
from ..kernels.defaults import as_library
from ..kernels.library import KernelLibrary
from ..kernels.pointwise import RBF
from ..parameters import BOOLEAN, COUNT, LANDMARKS, NON_NEGATIVE, READ_LATER, SHARE_OF_ROWS, WHOLE, one_of, require
from .shared.base_kernels import KernelDesign
from .shared.kernel_alignment import KernelTransformer
from .shared.progress import LIMIT_CONSTRAINTS

LEARNER_CONSTRAINTS = {
    "n_eigenvectors": WHOLE | SHARE_OF_ROWS,
    "n_landmarks": LANDMARKS,
    "landmarks": one_of("kmeans", "uniform"),
    "target": one_of("auto", "classes", "numbers"),
    "unlabeled": READ_LATER,
    "random_state": READ_LATER,
} | LIMIT_CONSTRAINTS
WEIGHTING_CONSTRAINTS = {"weighting": one_of("alignf", "align", "uniform"), "ridge": NON_NEGATIVE}


class LabelAwareKernelLearner(KernelTransformer):
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
        The ridge of ``"alignf"``, relative to the squared sizes of the base kernels. With few labels its weights are
        noisy; a ridge shrinks them towards those of ``"align"``.
    leave_one_out : bool, default=False
        Whether a labelled row's own label is left out of its label-aware values. Otherwise these already contain the
        label they are compared with, and get too much weight. Votes are then means over classes, since otherwise the
        row's own class would be one vote short, and wide kernels would predict the other one.
    normalization : {"degree", "class"}, default="degree"
        As above and in Algorithm 1; or (5): the mean of the kernel over the rows of a class, not divided by degrees.
    extra_kernels : None, Kernel, list of Kernel or KernelLibrary, default=None
        Whole kernels added to the mixture: the base kernel itself, deformed kernels.
    n_landmarks : None, "auto" or int, default=None
        Rows that eigenvectors are computed from. None: all, which takes memory for a matrix of all rows. ``"auto"``:
        all of up to 2000 rows, else 1000.
    landmarks : {"kmeans", "uniform"}, default="kmeans"
        How they are chosen: the rows nearest to the centres of k-means, or at random.
    target : {"auto", "classes", "numbers"}, default="auto"
        What ``y`` holds; ``"auto"``: numbers where it is continuous or has several columns.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``, as in :class:`SSMKClassifier`.
    max_time : float, optional
        Seconds that the fit may take. The best of what was reached by then is kept, with a warning; where nothing can
        be predicted yet, that is an error. Kernels at the rows are computed in any case.
    n_jobs : int, optional
        Has no influence: there is one problem.
    verbose : int, default=0
        1 and 2 print a line about what was found.
    random_state : int, RandomState or None, default=None
        Seed of landmarks, and of what kernels draw at random.

    Attributes
    ----------
    kernel_ : BoundKernel
        The learned kernel, tied to the training rows.
    weights_ : ndarray of shape (n_base_kernels,)
        Of the label-aware vectors, the eigenvectors and the extra kernels, each of unit size; they sum to one.
    base_kernels_ : list of dict, with a method ``to_frame``
        Name and weight of each base kernel.
    alignment_ : dict
        With the labels, at the labelled rows: ``"before"`` that of the base kernel (at 5000 of them, if there are
        more), ``"after"`` of the learned one.
    n_features_out_ : int
        Columns of :meth:`transform`.
    objective_, certificate_, status_, n_iter_
        The alignment, the residual of its optimality conditions, and how they were reached.
    library_ : KernelLibrary
        The kernels it was learned from.
    n_features_in_, feature_names_in_
        Number of columns of ``X``, and their names if it had any.

    See Also
    --------
    LearnedKernelClassifier : A support vector machine on the learned kernel.
    AlignedKernelLearner : Weights of given kernels, without label-aware vectors.
    OrderedSpectralKernelLearner : Weights of eigenvectors that decrease with their roughness.

    Notes
    -----
    For two classes the label-aware vectors sum to one (``normalization="degree"``): centred, each gives the same
    kernel, and only the sum of their weights is determined.

    With ``leave_one_out=True`` the kernel of labelled training rows (``kernel_``) uses their values without their own
    labels, while ``transform`` treats any row as new; as with scikit-learn's ``TargetEncoder``, the two differ.

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

    _constraints = (
        LEARNER_CONSTRAINTS
        | WEIGHTING_CONSTRAINTS
        | {
            "kernel": READ_LATER,
            "basis": one_of("kernel", "laplacian"),
            "leave_one_out": BOOLEAN,
            "normalization": one_of("degree", "class"),
            "extra_kernels": READ_LATER,
        }
    )

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
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
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
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def design(self) -> KernelDesign:
        """Return what is learned from, and how, as plain options; refuse parameters that are not allowed.

        Returns
        -------
        KernelDesign
            The options.
        """
        self._check_parameters()
        base = one_kernel(type(self).__name__, self.kernel)
        extra = () if self.extra_kernels is None else as_library(self.extra_kernels)
        return KernelDesign(
            owner=type(self).__name__,
            library=KernelLibrary([base, extra]) if extra else base,
            base=base.entries[0],
            wholes=tuple(extra.entries) if extra else (),
            basis=self.basis,
            n_eigenvectors=self.n_eigenvectors,
            n_landmarks=self.n_landmarks,
            landmarks=self.landmarks,
            label_aware=True,
            leave_one_out=bool(self.leave_one_out),
            normalization=self.normalization,
            weighting=self.weighting,
            ridge=float(self.ridge),
            random_state=self.random_state,
        )


class AlignedKernelLearner(KernelTransformer):
    r"""Learn non-negative weights of kernels, or of one kernel's eigenvectors, by maximal alignment with the labels.

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
        How many, where ``basis`` is given; a float is a share of the rows, or of the landmarks where there are any.
    weighting : {"alignf", "align", "uniform"}, default="alignf"
        How weights are found. ``"align"`` on eigenvectors is the maximal alignment kernel of Cristianini et al.
    ridge : float, default=0.0
        The ridge of ``"alignf"``; this and what follows as in :class:`LabelAwareKernelLearner`.
    n_landmarks : None, "auto" or int, default=None
        Rows that eigenvectors are computed from.
    landmarks : {"kmeans", "uniform"}, default="kmeans"
        How they are chosen.
    target : {"auto", "classes", "numbers"}, default="auto"
        What ``y`` holds.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``.
    max_time : float, optional
        Seconds that the fit may take, as in :class:`LabelAwareKernelLearner`.
    n_jobs : int, optional
        Has no influence: there is one problem.
    verbose : int, default=0
        1 and 2 print a line about what was found.
    random_state : int, RandomState or None, default=None
        Seed of landmarks, and of what kernels draw at random.

    Attributes
    ----------
    kernel_, weights_, base_kernels_, alignment_, n_features_out_, objective_, certificate_, status_, n_iter_
        As in :class:`LabelAwareKernelLearner`; ``alignment_["before"]`` is that of the first kernel.
    library_, n_features_in_, feature_names_in_
        As in :class:`LabelAwareKernelLearner`.

    See Also
    --------
    LabelAwareKernelLearner : Adds vectors made of the labels.
    LearnedKernelClassifier : A support vector machine on the learned kernel.

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

    _constraints = (
        LEARNER_CONSTRAINTS
        | WEIGHTING_CONSTRAINTS
        | {"kernels": READ_LATER, "basis": one_of(None, "kernel", "laplacian")}
    )

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
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
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
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def design(self) -> KernelDesign:
        """Return what is learned from, and how, as plain options; refuse parameters that are not allowed.

        Returns
        -------
        KernelDesign
            The options.
        """
        self._check_parameters()
        owner, is_spectral = type(self).__name__, self.basis is not None
        library = as_library(self.kernels, KernelLibrary([RBF()]) if is_spectral else None)
        some = not is_spectral or self.n_eigenvectors > 0
        require(owner, "n_eigenvectors", self.n_eigenvectors, some, "1 or more, since basis is given")
        one = not is_spectral or len(library) == 1
        require(owner, "basis", self.basis, one, "None, since several kernels were given")
        return KernelDesign(
            owner=owner,
            library=library,
            base=library.entries[0],
            wholes=() if is_spectral else tuple(library.entries),
            basis=self.basis or "kernel",
            n_eigenvectors=self.n_eigenvectors if is_spectral else 0,
            n_landmarks=self.n_landmarks,
            landmarks=self.landmarks,
            weighting=self.weighting,
            ridge=float(self.ridge),
            random_state=self.random_state,
        )


class OrderedSpectralKernelLearner(KernelTransformer):
    r"""Learn a transform of a graph's spectrum that gives smoother eigenvectors more weight.

    .. math:: \max_w\; \rho\Big(\sum_j w_j v_j v_j^\top, Y Y^\top\Big)
        \quad \text{s.t.} \quad w_1 \ge 0, \; w_2 \ge w_3 \ge \dots \ge 0 ,

    with :math:`v_j` the eigenvectors of the normalised Laplacian of the kernel's graph, from the smoothest on; the
    first is nearly constant and exempt from the order. The paper solves a quadratically constrained program; the cone
    of ordered weights is that of sums :math:`\nu \ge 0` of leading eigenvectors, so this is non-negative least squares.

    Parameters
    ----------
    kernel : Kernel, optional
        The base kernel; None: ``RBF()``. This and what follows as in :class:`LabelAwareKernelLearner`.
    n_eigenvectors : int or float, default=0.1
        How many, at least 1; a float is a share of the rows, or of the landmarks where there are any.
    n_landmarks : None, "auto" or int, default=None
        Rows that eigenvectors are computed from.
    landmarks : {"kmeans", "uniform"}, default="kmeans"
        How they are chosen.
    target : {"auto", "classes", "numbers"}, default="auto"
        What ``y`` holds.
    unlabeled : "auto", None or marker, default="auto"
        What marks an unlabelled row in ``y``.
    max_time : float, optional
        Seconds that the fit may take, as in :class:`LabelAwareKernelLearner`.
    n_jobs : int, optional
        Has no influence: there is one problem.
    verbose : int, default=0
        1 and 2 print a line about what was found.
    random_state : int, RandomState or None, default=None
        Seed of landmarks, and of what kernels draw at random.

    Attributes
    ----------
    kernel_, weights_, base_kernels_, alignment_, n_features_out_, objective_, certificate_, status_, n_iter_
        As in :class:`LabelAwareKernelLearner`. Weights are of eigenvectors of unit length over all rows, so that their
        order is the one above.
    library_, n_features_in_, feature_names_in_
        As in :class:`LabelAwareKernelLearner`.

    See Also
    --------
    AlignedKernelLearner : Weights in any order.
    ClusterKernel : The same eigenvectors with given weights, without labels.

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

    _constraints = LEARNER_CONSTRAINTS | {"kernel": READ_LATER, "n_eigenvectors": COUNT | SHARE_OF_ROWS}

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_eigenvectors: float = 0.1,
        n_landmarks: int | str | None = None,
        landmarks: str = "kmeans",
        target: str = "auto",
        unlabeled: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.n_eigenvectors = n_eigenvectors
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.target = target
        self.unlabeled = unlabeled
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def design(self) -> KernelDesign:
        """Return what is learned from, and how, as plain options; refuse parameters that are not allowed.

        Returns
        -------
        KernelDesign
            The options.
        """
        self._check_parameters()
        library = one_kernel(type(self).__name__, self.kernel)
        return KernelDesign(
            owner=type(self).__name__,
            library=library,
            base=library.entries[0],
            basis="laplacian",
            n_eigenvectors=self.n_eigenvectors,
            n_landmarks=self.n_landmarks,
            landmarks=self.landmarks,
            weighting="ordered",
            unit_size=False,  # the order is that of weights of eigenvectors of unit length
            random_state=self.random_state,
        )


Learner = LabelAwareKernelLearner | AlignedKernelLearner | OrderedSpectralKernelLearner


def one_kernel(owner: str, kernel: Any) -> KernelLibrary:
    """Return the library of one kernel that a learner starts from; None is the Gaussian one."""
    kernel = RBF() if kernel is None else kernel
    require_kernel(owner, kernel)
    return KernelLibrary([kernel])
