r"""Free text, and columns with many levels, as a few numbers for each row; labels are not read.

Pieces of a text are its words and the runs of 3 and 4 letters within them, with blanks at their ends. They are counted
in ``n_buckets`` places, which a hash of the piece chooses, so that no list of words is kept. A count c becomes
:math:`1 + \log c`, times the inverse document frequency :math:`1 + \log((1 + n)/(1 + n_j))` of its place; the rows are
divided by their norms and centred, and the first right singular vectors of all rows, labelled or not, are the axes. An
empty text is the mean.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array, vstack
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize

from ..kernels.checks import require_consistent

__all__ = ["TextEncoder"]

Floats = NDArray[np.float64]
MAX_CHARACTERS = 2000  # of a text that are read
WORD = re.compile(r"\w+")
RUNS = (3, 4)  # letters
BLANK, LINE_END = np.uint64(ord(" ")), np.uint64(ord("\n"))
HASH_FACTOR = np.uint64(0x100000001B3)  # the prime of the FNV hash
BLOCK_TEXTS = 5000  # at a time, at most ten million letters
MAX_BUCKETS = 1 << 16
MAX_FITTED = 20_000  # distinct texts that axes are found from
MIN_VARIANCE_SHARE = 1e-3  # of an axis: what is less is rounding, or a single row of very many


class TextEncoder(TransformerMixin, BaseEstimator):
    """Texts as coordinates along the main axes of their hashed pieces.

    Parameters
    ----------
    n_axes : int
        At most so many coordinates.
    n_buckets : int
        Places for words, and as many for runs of letters.
    """

    def __init__(self, n_axes: int = 20, n_buckets: int = 1024) -> None:
        self.n_axes = n_axes
        self.n_buckets = n_buckets

    def check_loaded(self) -> None:
        """Refuse arrays of a file that do not fit together."""
        if not hasattr(self, "axes_"):  # a recipe that was not fitted
            return
        n_places = 2 * self.n_buckets if isinstance(self.n_buckets, int) and 0 < self.n_buckets <= MAX_BUCKETS else -1
        arrays = (self.idf_, self.mean_, self.axes_)
        is_right = self.idf_.shape == self.mean_.shape == (n_places,) and self.axes_.shape[:1] == (n_places,)
        is_right = is_right and self.axes_.ndim == 2 and all(np.isfinite(array).all() for array in arrays)
        require_consistent(self, is_right, "has axes of another number of places")

    def fit(self, frame: Any, y: Any = None) -> TextEncoder:
        texts, codes = _find_distinct(frame)
        counts = np.bincount(codes, minlength=len(texts)) * np.array([bool(text) for text in texts])
        step = -(-len(texts) // MAX_FITTED)
        chosen = sorted(range(len(texts)), key=texts.__getitem__)[::step]  # whatever the order of the rows
        present = counts[chosen]
        pieces = _count_pieces([texts[k] for k in chosen], self.n_buckets)
        n = present.sum()
        found = np.asarray((pieces > 0).T @ present).ravel()
        idf = 1.0 + np.log((1.0 + n) / (1.0 + found))
        rows = _weigh(pieces, idf)
        mean = np.asarray(rows.T @ present).ravel() / max(n, 1)
        self.idf_, self.mean_ = idf, mean
        self.axes_ = _find_axes(rows, mean, present, self.n_axes)
        return self

    def transform(self, frame: Any) -> Floats:
        texts, codes = _find_distinct(frame)
        rows = _weigh(_count_pieces(texts, self.n_buckets), self.idf_)
        coordinates = np.asarray(rows @ self.axes_) - self.mean_ @ self.axes_
        coordinates[[not text for text in texts]] = 0.0
        return coordinates[codes]

    def find_unseen(self, texts: Sequence[str]) -> tuple[list[str], int]:
        """Return the words of texts whose place was empty in all fitted texts, and the number of all their words."""
        words = [word for text in texts for word in _list_words(text[:MAX_CHARACTERS])]
        return [word for word in words if not self.mean_[_find_place(word, self.n_buckets)]], len(words)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        return np.array([f"{input_features[0]}_{k}" for k in range(self.axes_.shape[1])], dtype=object)


def _find_distinct(frame: Any) -> tuple[list[str], NDArray[np.intp]]:
    """Return the distinct texts of a column, and for each row the number of its text."""
    distinct: dict[str, int] = {}
    cells = (str(cell)[:MAX_CHARACTERS] for cell in np.asarray(frame, dtype=object).ravel())
    codes = [distinct.setdefault(cell, len(distinct)) for cell in cells]
    return list(distinct), np.array(codes, dtype=np.intp)


def _count_pieces(texts: Sequence[str], n_buckets: int) -> csr_array:
    """Return how often the pieces of each place occur in each text; shape (n_texts, 2 * n_buckets)."""
    parts = [_count_block(texts[start : start + BLOCK_TEXTS], n_buckets) for start in range(0, len(texts), BLOCK_TEXTS)]
    return csr_array(vstack(parts, format="csr"))


def _count_block(texts: Sequence[str], n_buckets: int) -> csr_array:
    words = list(map(_list_words, texts))
    places = {word: _find_place(word, n_buckets) for word in {word for line in words for word in line}}
    rows = [np.repeat(np.arange(len(texts)), [len(line) for line in words])]
    columns = [np.array([places[word] for line in words for word in line], dtype=np.int64)]
    lines = [f" {' '.join(line)} \n" for line in words]
    letters = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    row_of = np.repeat(np.arange(len(texts)), [len(line) for line in lines])
    for n in RUNS:
        windows = [letters[k : len(letters) - n + 1 + k] for k in range(n)]
        # No run goes beyond a text, and a blank is at its first or last place: runs lie within words.
        inside = (windows[0] != LINE_END) & (windows[-1] != LINE_END)
        for window in windows[1:-1]:
            inside &= (window != LINE_END) & (window != BLANK)
        number = np.zeros(int(inside.sum()), dtype=np.uint64)
        for window in windows:
            number = (number ^ window[inside]) * HASH_FACTOR  # modulo 2^64; FNV-1a
        rows.append(row_of[: len(inside)][inside])
        columns.append(n_buckets + ((number >> np.uint64(32)) % np.uint64(n_buckets)).astype(np.int64))
    where = np.concatenate(rows), np.concatenate(columns)
    counts = coo_array((np.ones(len(where[0])), where), shape=(len(texts), 2 * n_buckets))
    return csr_array(counts)  # pieces of the same place are added


def _list_words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def _find_place(word: str, n_buckets: int) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % n_buckets


def _weigh(pieces: csr_array, idf: Floats) -> csr_array:
    weighted = csr_array(pieces, copy=True)
    weighted.data = 1.0 + np.log(weighted.data)
    return normalize(weighted @ diags_array(idf))


def _find_axes(rows: csr_array, mean: Floats, counts: Any, n_axes: int) -> Floats:
    """Return the first right singular vectors of the centred rows, each as often as it occurs."""
    root = np.sqrt(np.asarray(counts, dtype=np.float64))
    scaled = csr_array(diags_array(root) @ rows)
    n_texts, n_places = scaled.shape
    k = min(n_axes, n_texts - 1, n_places - 1)
    variance = float(scaled.multiply(scaled).sum() - np.sum(root**2) * (mean @ mean))
    if k < 1 or variance <= 1e-12 * np.sum(root**2):  # the texts do not differ: coordinates are 0
        return np.zeros((n_places, 1))
    centered = LinearOperator(
        scaled.shape,
        matvec=lambda v: scaled @ v.ravel() - root * (mean @ v.ravel()),
        rmatvec=lambda u: scaled.T @ u.ravel() - mean * (root @ u.ravel()),
        dtype=np.float64,
    )
    start = np.random.default_rng(0).normal(size=min(scaled.shape))
    _, sizes, axes = svds(centered, k=k, v0=start, solver="arpack")
    order = np.argsort(-sizes)
    kept = order[sizes[order] ** 2 > MIN_VARIANCE_SHARE * np.sum(sizes**2)]
    return axes[kept].T
