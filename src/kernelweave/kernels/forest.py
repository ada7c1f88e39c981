r"""The forest kernel: how often random trees, grown without labels, leave two rows together.

A tree cuts the rows into cells. At each node it draws a column among those in which the node's rows differ, and a
threshold uniformly between their smallest and largest *rank*: the number of a value among the distinct values of its
column. Where one side would hold fewer than ``min_samples_leaf`` rows, the node is not cut and is a leaf [1]_. With
:math:`\phi_t(x)` the indicator of the leaf of tree :math:`t` that :math:`x` falls into,

.. math:: k_T(x, z) = \frac1T \sum_{t=1}^T \phi_t(x)^\top \phi_t(z)

is the share of trees in which :math:`x` and :math:`z` are in one leaf: an inner product, hence positive semi-definite,
with :math:`k_T(x, x) = 1`.

What it converges to. Given the rows, trees are drawn independently from one distribution. So :math:`k_T(x, z)` is a
mean of :math:`T` independent draws, and tends to the probability :math:`k(x, z)` that no cut separates :math:`x` and
:math:`z`, the kernel of an infinite forest [2]_; its standard deviation is :math:`\sqrt{k (1 - k) / T}`. Of :math:`d`
columns a cut takes each with probability :math:`1 / d`. It separates two rows of a cell :math:`c` whose ranks differ by
:math:`\Delta_j` with probability :math:`\Delta_j / R_j(c)`, where :math:`R_j(c)` is the range of the ranks in it. So

.. math:: k(x, z) = \mathrm{E} \prod_{c \ni x, z} \Big( 1 - \frac1d \sum_j \frac{\Delta_j}{R_j(c)} \Big)
   \approx \exp \Big( -\sum_j \frac{\Delta_j}{w_j} \Big), \qquad
   \frac1{w_j} = \frac1d \, \mathrm{E} \sum_c \frac1{R_j(c)},

over the cells on the way down: a Laplace kernel of ranks whose widths are those of a neighbourhood of a few times
``min_samples_leaf`` rows. (Where cuts come at rates that do not depend on the rows, it is a Laplace kernel [3]_.) With
one cut, ``max_depth=1``, it is :math:`1 - \frac1d \sum_j \Delta_j / R_j`.

Ranks make the kernel the same for every increasing transform of a column, hence for every scale, and leave room for
thresholds where some values are far larger than the others.

References
----------
.. [1] P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63, 2006.
.. [2] E. Scornet, "Random forests and kernel methods", IEEE Transactions on Information Theory 62, 2016.
.. [3] M. Balog, B. Lakshminarayanan, Z. Ghahramani, D. Roy and Y. W. Teh, "The Mondrian kernel", UAI 2016.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor

from ..loops.descent import count_common
from ..parameters import COUNT, NONE, check_parameters
from .base import ALL, BoundKernel, Kernel, Rows, batches
from .checks import as_floats, is_index, require_consistent
from .content_order import order_columns
from .sharing import is_shared, once
from .trees import Forest, convert_tree, join_trees

# Error in percent of SVC(C=10) with 50 and 100 labels, mean of seven tables: 16.5, 12.7 with 100 trees; 15.8, 12.2 with
# 200; 15.3, 11.6 with 500. To grow 500 for 2000 rows of 50 columns takes 0.3 s, to evaluate them 0.1 s.
N_TREES = 500
MIN_SAMPLES_LEAF = 5  # likewise, with 300 trees: 16.1, 11.9 with 3; 15.5, 11.8 with 5; 15.4, 12.1 with 8
WEIGHT_ROUNDING = 1e-9  # of a leaf's weight
# To count the pairs of rows that share a leaf takes 1.5 ns each in compiled code, 8 to 12 ns before it is there; to
# compare the leaves of all pairs takes 0.15 ns for each pair and tree. Both count whole numbers.
MIN_COMPARED_SHARE, MIN_COMPARED_PAIRS = 1 / 25, 2**17  # below, to number the leaves takes longer
COMPARED_VALUES = 2**18  # pairs that are compared at a time: they stay in the processor's cache
MAX_COMPARED_TREES = 255  # whose counts fit into a byte
MAX_KEPT_ROWS = 4000  # whose counts are kept where bindings are shared: 32 MB


@dataclass(frozen=True, eq=False, repr=False)
class ForestKernel(Kernel):
    r"""The share of random trees, grown without labels, in which two rows fall into one leaf.

    .. math:: k(x, z) = \frac1T \sum_{t=1}^T \phi_t(x)^\top \phi_t(z),

    with :math:`\phi_t(x)` the indicator of the leaf of tree :math:`t` that :math:`x` falls into. The rows of a node are
    split on a column drawn at random, at a threshold drawn uniformly between their smallest and largest rank. For many
    trees it converges to the probability that no split separates :math:`x` and :math:`z`, about
    :math:`\exp(-\sum_j |r_j(x) - r_j(z)| / w_j)` with :math:`r_j` the rank in column :math:`j` and widths :math:`w_j`
    that are small where there are many rows. Increasing transforms of columns do not change it: it suits
    columns on many scales, skewed and discrete ones.

    Parameters
    ----------
    n_trees : int, default=500
        A value is a mean over trees, with a standard deviation of up to ``0.5 / sqrt(n_trees)``.
    min_samples_leaf : int, default=5
        Smallest number of rows in a leaf. A larger number gives a wider kernel.
    max_depth : int or None, default=None
        Largest number of splits between root and leaf; None for no limit.

    See Also
    --------
    RBF : A kernel of distances; needs columns of comparable scale.
    table_library : A forest kernel beside linear and Gaussian ones.

    Notes
    -----
    With sample weights a leaf holds at least the weight of ``min_samples_leaf`` rows of mean weight; thresholds
    are drawn without weights. scikit-learn grows the trees; what is kept and saved are plain arrays.

    References
    ----------
    P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63, 2006.

    E. Scornet, "Random forests and kernel methods", IEEE Transactions on Information Theory 62, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import ForestKernel
    >>> X = np.array([[0.0], [0.1], [0.2], [1e6], [2e6], [3e6]])
    >>> ForestKernel(max_depth=1, min_samples_leaf=1, n_trees=2000)(X)[0].round(1)
    array([1. , 0.8, 0.6, 0.4, 0.2, 0. ])
    """

    own_cost = 150.0  # with 500 trees
    keeps_psd = True

    n_trees: int = N_TREES
    min_samples_leaf: int = MIN_SAMPLES_LEAF
    max_depth: int | None = None

    def __post_init__(self) -> None:
        constraints = {"n_trees": COUNT, "min_samples_leaf": COUNT, "max_depth": NONE | COUNT}
        check_parameters("ForestKernel", vars(self), constraints)

    def bind(self, X: Any, rng: np.random.Generator, sample_weight: np.ndarray | None = None) -> BoundKernel:
        X = as_floats(X, self)
        forest = _grow(X, self, rng, sample_weight)
        return BoundForest(forest, forest.leaves(X), X.dtype.name)


class BoundForest(BoundKernel):
    """A forest, and the leaves that the bound rows fall into.

    Parameters
    ----------
    forest : Forest
    leaf : ndarray of shape (n_rows, n_trees)
        Numbers of nodes.
    dtype : str
        Of the values.
    """

    def __init__(self, forest: Forest, leaf: np.ndarray, dtype: str):
        self.forest = forest
        self.leaf = leaf
        self.dtype = dtype
        self.n_rows = len(leaf)

    def check_loaded(self) -> None:
        """Refuse rows of a file that are in no leaf of the trees."""
        require_consistent(self, type(self.forest) is Forest, "has no trees")
        is_right = is_index(self.leaf, self.forest.n_nodes, 2) and self.leaf.shape == (self.n_rows, self.forest.n_trees)
        require_consistent(self, is_right and self.dtype in ("float32", "float64"), "has rows that are in no leaf")

    def block(self, rows: Rows, cols: Rows) -> np.ndarray:
        """Return the shares of trees in which bound rows fall into one leaf; exactly symmetric."""
        if is_shared() and self.n_rows <= MAX_KEPT_ROWS:
            counts = once("leaves in common", self, lambda _: self._count_all())
            return np.divide(counts[rows][:, cols], self.forest.n_trees, dtype=self.dtype)
        left = self.leaf[rows]
        same = rows is cols or np.array_equal(np.arange(self.n_rows)[rows], np.arange(self.n_rows)[cols])
        return self._count_shares(left, left if same else self.leaf[cols])

    def products(self, V: np.ndarray, rows: Rows = ALL) -> np.ndarray:
        """Sum the vectors over the rows of each leaf, then the leaves of each row."""
        used, out = np.flatnonzero(V.any(axis=1)), np.empty((len(self.leaf[rows]), V.shape[1]))
        members, places = self._make_indicators(self.leaf[used]).T, self._make_indicators(self.leaf[rows])
        for vectors in batches(V.shape[1], self.forest.n_nodes):
            out[:, vectors] = places @ (members @ V[used, vectors])
        return np.divide(out, self.forest.n_trees, out=out)

    def against(self, X_new: Any, cols: Rows = ALL) -> np.ndarray:
        """Send the new rows down the trees, then count."""
        return self._count_shares(self.forest.leaves(as_floats(X_new, ForestKernel())), self.leaf[cols])

    def products_against(self, X_new: Any, V: np.ndarray) -> np.ndarray:
        """Sum the vectors over the rows of each leaf, then the leaves of each new row."""
        X_new, out = as_floats(X_new, ForestKernel()), np.zeros((X_new.shape[0], V.shape[1]))
        used = np.flatnonzero(V.any(axis=1))
        members = self._make_indicators(self.leaf[used]).T
        for vectors in batches(V.shape[1], self.forest.n_nodes):
            sums = np.ascontiguousarray(members @ V[used, vectors])
            for rows in batches(X_new.shape[0], self.forest.n_trees + X_new.shape[1]):
                self.forest.add_leaves(sums, self.forest.leaves(X_new[rows]), out[rows, vectors])
        return np.divide(out, self.forest.n_trees, out=out)

    def diag(self) -> np.ndarray:
        """Return ones."""
        return np.ones(self.n_rows, dtype=self.dtype)

    def diag_against(self, X_new: Any) -> np.ndarray:
        """Return ones."""
        return np.ones(X_new.shape[0], dtype=self.dtype)

    @property
    def rank(self) -> int | None:
        """The number of leaves where it is at most half of that of the rows."""
        n_leaves = (self.forest.n_nodes + self.forest.n_trees) // 2  # one more than there are cuts, in each tree
        return n_leaves if 2 * n_leaves <= self.n_rows else None

    def factor(self) -> np.ndarray | None:
        """Return the indicators of leaves, scaled, where they are at most half as many as rows."""
        if self.rank is None:
            return None
        is_leaf = np.isinf(self.forest.threshold)
        Z = self._make_indicators(self.leaf)[:, np.flatnonzero(is_leaf)].toarray()
        return np.divide(Z, np.sqrt(self.forest.n_trees), out=Z)

    def restrict(self, rows: np.ndarray) -> BoundKernel:
        """Keep the leaves of some rows."""
        return BoundForest(self.forest, self.leaf[rows], self.dtype)

    def tied_to(self, X: Any) -> BoundKernel:
        """Send other rows down the trees."""
        return BoundForest(self.forest, self.forest.leaves(as_floats(X, ForestKernel())), self.dtype)

    def _count_shares(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        if len(left) < len(right):  # the few are the ones to be sorted by leaves
            return np.ascontiguousarray(self._count_shares(right, left).T)
        out = np.empty((len(left), len(right)), dtype=self.dtype)
        if not out.size:
            return out
        self._require_leaves(left, right)
        if out.size >= MIN_COMPARED_PAIRS and self._share_leaves(left, right) > MIN_COMPARED_SHARE:
            self._count_by_comparison(left, right, out)
        else:
            self._count_by_members(left, right, out)
        out /= self.forest.n_trees  # of whole numbers: no rounding before
        return out

    def _count_all(self) -> np.ndarray:
        counts = self._count_shares(self.leaf, self.leaf)
        counts *= self.forest.n_trees
        return np.rint(counts, out=counts).astype(np.min_scalar_type(self.forest.n_trees))

    def _share_leaves(self, left: np.ndarray, right: np.ndarray) -> float:
        """Return the mean share of trees in which rows are in one leaf."""
        members = [np.bincount(leaf.ravel(), minlength=self.forest.n_nodes) for leaf in (left, right)]
        return float(members[0] @ members[1]) / (len(left) * len(right) * self.forest.n_trees)

    def _count_by_members(self, left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
        members = self._make_indicators(right).T.tocsr()
        count_common(np.ascontiguousarray(left), members.indptr, members.indices, out)

    def _count_by_comparison(self, left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
        """Compare the leaves of all pairs, tree by tree; of a matrix of equal rows and columns one half."""
        symmetric = left is right
        few, many = self._number_leaves(right), self._number_leaves(left)
        height = max(1, COMPARED_VALUES // len(left))
        for start in range(0, len(right), height):
            cols, first = slice(start, min(start + height, len(right))), start if symmetric else 0
            counts = _compare(few[:, cols], many[:, first:])
            out[first:, cols] = counts.T
            if symmetric:
                out[cols, first:] = counts

    def _number_leaves(self, leaf: np.ndarray) -> np.ndarray:
        """Return the numbers of leaves within their tree, one tree after the other, in as few bytes as there are."""
        is_leaf = np.isinf(self.forest.threshold)
        before = np.cumsum(is_leaf) - 1
        first = np.append(0, before)[self.forest.roots]  # leaves of the trees before
        n_most = int(np.diff(np.append(first, is_leaf.sum())).max())
        numbers = np.empty(leaf.shape[::-1], dtype=np.min_scalar_type(n_most))
        for tree, nodes in enumerate(leaf.T):
            numbers[tree] = before[nodes] - first[tree]
        return numbers

    def _make_indicators(self, leaf: np.ndarray) -> sparse.csr_array:
        """Return the indicators of leaves, shape ``(n_rows, n_nodes)``, with one entry for each tree."""
        n_rows, n_trees = leaf.shape
        self._require_leaves(leaf)
        index = np.int32 if leaf.size <= np.iinfo(np.int32).max else np.int64
        starts = np.arange(0, leaf.size + 1, n_trees, dtype=index)
        ones = np.ones(leaf.size, dtype=self.dtype)
        return sparse.csr_array((ones, leaf.ravel(), starts), shape=(n_rows, self.forest.n_nodes))

    def _require_leaves(self, *leaves: np.ndarray) -> None:
        for leaf in leaves:  # scipy would follow them anywhere
            if leaf.size and not 0 <= leaf.min() <= leaf.max() < self.forest.n_nodes:
                raise ValueError(
                    "A ForestKernel has rows in leaves that its trees do not have: the model is damaged. Fit it again, "
                    "or copy its file again from its source."
                )


def _compare(few: np.ndarray, many: np.ndarray) -> np.ndarray:
    """Return in how many trees, which are the rows, each of a few columns is equal to each of many."""
    counts = np.zeros((few.shape[1], many.shape[1]), dtype=np.intp)
    equal, part = np.empty(counts.shape, dtype=bool), np.empty(counts.shape, dtype=np.uint8)
    for start in range(0, len(few), MAX_COMPARED_TREES):
        part[...] = 0
        for tree in range(start, min(start + MAX_COMPARED_TREES, len(few))):
            np.equal(few[tree, :, None], many[tree], out=equal)
            part += equal.view(np.uint8)
        counts += part
    return counts


def _grow(X: Any, recipe: ForestKernel, rng: np.random.Generator, sample_weight: np.ndarray | None) -> Forest:
    """Grow the trees on ranks, and turn them into arrays with thresholds in the units of the columns."""
    ranks, distinct = rank_values(X)
    order = order_columns(ranks)  # columns are drawn by what they hold, not by where they stand
    ranks = ranks[:, order]
    target = rng.random(X.shape[0])  # what a tree is fitted to: noise, so that every cut is as good as any other
    limits, weight = _limit_leaves(recipe, X.shape[0], sample_weight)
    state = np.random.RandomState(int(rng.integers(2**31)))
    tree = ExtraTreeRegressor(max_features=1, max_depth=recipe.max_depth, random_state=state, **limits)
    with config_context(skip_parameter_validation=True):  # of the same parameters, for every tree anew
        trees = [
            convert_tree(tree.fit(ranks, target, sample_weight=weight, check_input=False).tree_)
            for _ in range(recipe.n_trees)
        ]
    forest = join_trees(trees)
    forest.place_columns(order)
    forest.threshold = distinct.between(forest.column, forest.threshold)
    return forest


def _limit_leaves(
    recipe: ForestKernel, n_rows: int, sample_weight: np.ndarray | None
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Return what every leaf must hold, in scikit-learn's words, and the weights that are to be counted."""
    n_least = int(recipe.min_samples_leaf)
    if sample_weight is None or np.ptp(sample_weight) == 0 or 2 * n_least > n_rows:  # too few rows for a cut
        return {"min_samples_leaf": n_least}, None
    return {"min_weight_fraction_leaf": (1.0 - WEIGHT_ROUNDING) * n_least / n_rows}, sample_weight


@dataclass(frozen=True, eq=False)
class _Distinct:
    """The distinct values of every column, ascending, one column after the other; ``origin`` is the place of rank 0."""

    values: np.ndarray
    origin: np.ndarray

    def between(self, column: np.ndarray, rank: np.ndarray) -> np.ndarray:
        """Return thresholds in the units of the columns: as far between two values as they are between two ranks.

        The same values are above them, whatever the rounding. Infinite ones stay.
        """
        out = np.full(len(rank), np.inf)
        inner = np.flatnonzero(np.isfinite(rank))
        below = np.floor(rank[inner])
        place = self.origin[column[inner]] + below.astype(np.intp)
        low, high, share = self.values[place], self.values[place + 1], rank[inner] - below
        # The difference of two values may overflow, their mean does not.
        out[inner] = np.clip((1.0 - share) * low + share * high, low, np.nextafter(high, -np.inf))
        return out


def rank_values(X: Any) -> tuple[Any, _Distinct]:
    """Return the ranks of values among the distinct ones of their column, as scikit-learn's trees take them.

    Whole numbers up to 2**24 are exact in their single precision. In a sparse matrix zeros have rank 0.

    Thresholds between values are as good on the tables above, whose columns are roughly symmetric: 15.6 and 11.9 %
    against 15.5 and 11.8 %. On exp(2 x) of these columns, standardised, they give 30.9 and 25.4 %, and ranks the same.
    """
    if is_sparse := sparse.issparse(X):
        stored = sparse.csc_array(X, copy=True)
        stored.sum_duplicates()
        starts, places = stored.indptr.astype(np.int32), stored.indices.astype(np.int32)
        ranks = sparse.csc_array((np.empty(stored.nnz, dtype=np.float32), places, starts), shape=X.shape)
        columns, out = (np.split(part.data, starts[1:-1]) for part in (stored, ranks))
    else:
        ranks = np.empty(X.shape, dtype=np.float32)
        columns, out = list(X.T), list(ranks.T)
    origin, found, n_before = np.zeros(X.shape[1], dtype=np.intp), [], 0
    for j, values in enumerate(columns):
        distinct = np.unique(values if len(values) == X.shape[0] else np.append(values, 0.0))
        zero = int(np.searchsorted(distinct, 0.0)) if is_sparse else 0
        out[j][:] = np.searchsorted(distinct, values) - zero
        origin[j] = n_before + zero
        found.append(distinct)
        n_before += len(distinct)
    return ranks, _Distinct(np.concatenate(found).astype(np.float64, copy=False), origin)
