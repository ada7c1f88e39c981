r"""Kernels made by changing the eigenvalues of another: what the unlabelled rows say about clusters.

With :math:`K` a kernel at :math:`n` rows, :math:`D` the diagonal matrix of its row sums, and the eigenvectors

.. math:: D^{-1/2} K D^{-1/2} = \sum_k \lambda_k v_k v_k^\top, \qquad 1 = \lambda_1 \ge \lambda_2 \ge \dots,

of which those with large :math:`\lambda_k` vary little within clusters, a :class:`ClusterKernel` [1]_ or a
:class:`DiffusionKernel` [2]_ is

.. math:: \tilde k(x, z) = s \sum_{k=1}^q r(\lambda_k) \, v_k(x) \, v_k(z), \qquad r \ge 0 \text{ and increasing},

with :math:`v_k(x)` the extension of an eigenvector to any row (``spectral.py``). Eigenvectors have length 1, hence
entries that shrink with the number of rows: :math:`s` makes the mean of :math:`\tilde k(x, x)` over the bound rows 1.

References
----------
.. [1] O. Chapelle, J. Weston and B. Schoelkopf, "Cluster kernels for semi-supervised learning", NIPS 2003.
.. [2] R. Kondor and J. Lafferty, "Diffusion kernels on graphs and other discrete structures", ICML 2002.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..parameters import COUNT, LANDMARKS, NON_NEGATIVE, SHARE_OF_ROWS, check_parameters, one_of
from .base import BoundKernel, Kernel, require_kernel
from .features import BoundFeatures
from .manifold import count_landmarks
from .sharing import bind_once
from .spectral import count_vectors, eigenbasis

TRANSFORMS = ("linear", "step", "polynomial")


class SpectralKernel(Kernel):
    r"""A recipe that keeps the leading eigenvectors of a base kernel and changes their eigenvalues.

    .. math:: \tilde k(x, z) = s \sum_{k=1}^q r(\lambda_k) \, v_k(x) \, v_k(z), \qquad
       D^{-1/2} K D^{-1/2} = \sum_k \lambda_k v_k v_k^\top.

    Subclasses say what :math:`r` is.
    """

    own_cost = 10.0  # with a hundred eigenvectors

    base: Kernel
    n_eigenvectors: int | float
    n_landmarks: int | str | None

    def __post_init__(self) -> None:
        owner = type(self).__name__
        require_kernel(owner, self.base)
        check_parameters(owner, vars(self), {"n_landmarks": LANDMARKS, "n_eigenvectors": COUNT | SHARE_OF_ROWS})

    @abstractmethod
    def response(self, eigenvalues: np.ndarray) -> np.ndarray:
        """Return the weights of the eigenvectors, up to a common factor.

        Parameters
        ----------
        eigenvalues : ndarray of shape (n_eigenvectors,)
            Positive, largest first. The first is 1, or near it where the degrees are those of landmarks; relative to
            it no power underflows.

        Returns
        -------
        ndarray of shape (n_eigenvectors,)
            Weights, not negative.
        """

    @property
    def is_psd(self) -> bool:
        return True  # no weight is negative

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        return self.bind_together([self], X, [rng], sample_weight)[0]

    @classmethod
    def bind_together(
        cls,
        kernels: Sequence[Any],
        X: Any,
        rngs: Sequence[np.random.Generator],
        sample_weight: np.ndarray | None = None,
    ) -> list[BoundKernel]:
        # One eigenbasis for each base; what is shared draws from the first one's generator.
        bound: dict[int, BoundKernel] = {}
        families: dict[tuple[Kernel, int], list[int]] = {}
        for p, kernel in enumerate(kernels):
            families.setdefault((kernel.base, count_landmarks(kernel.n_landmarks, X.shape[0])), []).append(p)
        for (recipe, n_landmarks), places in families.items():
            rng = rngs[places[0]]
            base = bind_once(recipe, X, rng, sample_weight)
            counts = [kernels[p].n_vectors(n_landmarks) for p in places]
            basis, V = eigenbasis(
                base, X, max(counts), kind="laplacian", n_landmarks=n_landmarks, rng=rng, recipe=recipe
            )
            share = np.full(len(V), 1.0 / len(V)) if sample_weight is None else sample_weight / sample_weight.sum()
            squares = np.einsum("i,ij,ij->j", share, V, V)
            for p, n_vectors in zip(places, counts, strict=True):
                weights = np.zeros(basis.n_features)
                weights[:n_vectors] = kernels[p].response(basis.eigenvalues[:n_vectors])
                bound[p] = BoundFeatures(basis, V, weights / (float(weights @ squares) or 1.0))
        return [bound[p] for p in range(len(kernels))]

    def n_vectors(self, n_landmarks: int) -> int:
        """Return how many eigenvectors are kept.

        Parameters
        ----------
        n_landmarks : int
            Rows that the eigenvectors are computed from.

        Returns
        -------
        int
            At most ``n_landmarks``.
        """
        return count_vectors(self.n_eigenvectors, n_landmarks)


@dataclass(frozen=True, eq=False, repr=False)
class ClusterKernel(SpectralKernel):
    r"""A kernel in which rows of one cluster are similar: the base's leading eigenvectors, with changed eigenvalues.

    .. math:: \tilde k(x, z) = s \sum_{k=1}^q r(\lambda_k) \, v_k(x) \, v_k(z), \qquad
       D^{-1/2} K D^{-1/2} = \sum_k \lambda_k v_k v_k^\top,

    with :math:`K` the base kernel at the rows it is bound to, :math:`D` its row sums, :math:`v_k(x)` the extension of
    an eigenvector to any :math:`x`, and :math:`s` such that the mean diagonal is 1.

    Parameters
    ----------
    base : Kernel
        Symmetric, with positive row sums. A narrow RBF resolves the clusters: try multiples of 10 and more.
    transform : {"linear", "step", "polynomial"}, default="linear"
        :math:`r(\lambda) = \lambda`, 1, or :math:`\lambda^p`, of the eigenvectors that are kept. The last is what
        :math:`p` steps of a random walk along the data reach.
    n_eigenvectors : int or float, default=0.1
        How many are kept: a number, or a share of the rows (of the landmarks, where there are any).
    degree : int, default=2
        The power :math:`p` of the polynomial.
    n_landmarks : "auto", int or None, default="auto"
        Rows that the base's eigenvectors are computed from. None: all, which is exact and takes memory for an
        ``n_rows x n_rows`` matrix. Fewer: the base is replaced by its Nystroem approximation from the rows nearest to
        the centres of k-means. ``"auto"``: all of up to 2000 rows, else 1000. A prediction costs as many values of the
        base.

    See Also
    --------
    DiffusionKernel : Exponential weights of the same eigenvectors.
    ManifoldKernel : Deforms the base along a graph of neighbours.
    OrderedSpectralKernelLearner : Learns the weights of the eigenvectors from labels.

    Notes
    -----
    With all eigenvectors the paper calls the first and the last transform linear and polynomial, with fewer the first
    two linear step and step. It ends by dividing rows and columns so that the diagonal is 1, which is
    ``Normalized(ClusterKernel(...))``. New rows are extended as in kernel PCA, so that a bound row passed again keeps
    its values. Sample weights affect the base and the mean diagonal; the degrees count all rows equally. Kernels of one
    library that share a base compute its eigenvectors once, and a model evaluates them once.

    References
    ----------
    O. Chapelle, J. Weston and B. Schoelkopf, "Cluster kernels for semi-supervised learning", NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from kernelweave import RBF, ClusterKernel, SSMKClassifier
    >>> X, classes = make_moons(200, noise=0.05, random_state=0)
    >>> y = np.full(200, -1)
    >>> y[:6] = classes[:6]
    >>> for kernel in (RBF(multiple=50.0), ClusterKernel(RBF(multiple=50.0), "step", n_eigenvectors=4)):
    ...     print(float(np.mean(SSMKClassifier(kernel).fit(X, y).predict(X) == classes)))
    0.6
    1.0
    """

    base: Kernel
    transform: str = "linear"
    n_eigenvectors: int | float = 0.1
    degree: int = 2
    n_landmarks: int | str | None = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters("ClusterKernel", vars(self), {"degree": COUNT, "transform": one_of(*TRANSFORMS)})

    def response(self, eigenvalues: np.ndarray) -> np.ndarray:
        power = {"step": 0, "linear": 1, "polynomial": int(self.degree)}[self.transform]
        return (eigenvalues / eigenvalues[:1]) ** power


@dataclass(frozen=True, eq=False, repr=False)
class DiffusionKernel(SpectralKernel):
    r"""The heat kernel: similarity that diffuses along the data for some time.

    .. math:: \tilde k(x, z) = s \sum_{k=1}^q e^{-t \mu_k} \, v_k(x) \, v_k(z), \qquad
       I - D^{-1/2} K D^{-1/2} = \sum_k \mu_k v_k v_k^\top,

    with :math:`\mu_1 \le \mu_2 \le \dots` the smallest eigenvalues of the normalised Laplacian of the base kernel
    :math:`K` at the rows it is bound to, :math:`v_k(x)` the extension of an eigenvector to any :math:`x`, and :math:`s`
    such that the mean diagonal is 1.

    Parameters
    ----------
    base : Kernel
        Symmetric, with positive row sums. A narrow RBF resolves the clusters: try multiples of 10 and more.
    time : float, default=1.0
        :math:`t`: how far similarity spreads. Eigenvalues lie between 0 and 1, so that times below 1 change little, and
        for large times only differences between separate clusters remain.
    n_eigenvectors : int or float, default=0.1
        How many are kept, as in :class:`ClusterKernel`.
    n_landmarks : "auto", int or None, default="auto"
        Rows that the eigenvectors are computed from, as in :class:`ClusterKernel`.

    See Also
    --------
    ClusterKernel : Linear, polynomial or equal weights of the same eigenvectors.
    ManifoldKernel : Deforms the base along a graph of neighbours.

    References
    ----------
    R. Kondor and J. Lafferty, "Diffusion kernels on graphs and other discrete structures", ICML 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import RBF, DiffusionKernel
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> kernel = DiffusionKernel(RBF(1.0), time=100.0).bind(X, np.random.default_rng(0))
    >>> kernel.block(slice(None), slice(None)).round(2)
    array([[1., 1., 0., 0.],
           [1., 1., 0., 0.],
           [0., 0., 1., 1.],
           [0., 0., 1., 1.]])
    """

    base: Kernel
    time: float = 1.0
    n_eigenvectors: int | float = 0.1
    n_landmarks: int | str | None = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters("DiffusionKernel", vars(self), {"time": NON_NEGATIVE})

    def response(self, eigenvalues: np.ndarray) -> np.ndarray:
        return np.exp(-self.time * (eigenvalues[:1] - eigenvalues))
