r"""Transformers that bring the columns of a table to one scale, for kernels on :class:`Preprocessed` columns.

Columns may lie far from zero. A sum of n such numbers has lost what they differ by, while the difference of two nearby
doubles is exact; so mean and variance are those of the differences to the first row, which is within sqrt(n) standard
deviations of the mean. (scikit-learn's StandardScaler takes a deviation below n eps times the mean for zero, and leaves
that column as large as it is.)
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.stats import skew
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import PowerTransformer
from sklearn.utils.validation import check_is_fitted, validate_data

Floats = NDArray[np.float64]

MIN_FLAG_VARIANCE = (
    0.05  # of the squared range of a column of two values: a flag on 1 % of the rows is not 10 units away
)
MIN_SKEWNESS = 0.5  # below it a power does not change the ranks of distances enough to matter
MAX_STANDARD = 1e6  # standard deviations; a power of more may overflow
MAX_POWER = 4.0  # standard deviations from the mean after the power: what is left of outliers


class ColumnScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns of mean 0 and variance 1, wherever they lie.

    The variance of a column of two values is taken for at least a twentieth of its squared range, so that rare flags
    do not outweigh all else.

    Parameters
    ----------
    min_variance : float, default=0
        A smaller variance counts as this one.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels.scaling import ColumnScaler
    >>> ColumnScaler().fit_transform(np.array([[1e9, 0.0], [1e9 + 2, 0.0], [1e9 + 1, 1.0]])).round(2)
    array([[-1.22, -0.71],
           [ 1.22, -0.71],
           [ 0.  ,  1.41]])
    """

    def __init__(self, min_variance: float = 0.0) -> None:
        self.min_variance = min_variance

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the mean and the deviation of each column."""
        rows: Floats = validate_data(self, X, dtype=np.float64)
        self.origin_ = rows[0].copy()
        with np.errstate(over="ignore", invalid="ignore"):
            differences = rows - self.origin_
            self.mean_, variance = _measure_differences(differences)
        self.scale_ = np.sqrt(np.maximum(variance, self.min_variance))
        huge = np.flatnonzero(~np.isfinite(variance))
        if len(huge):
            largest = np.abs(differences[:, huge]).max(axis=0)
            _require_finite_differences(largest, huge, rows)
            mean, variance = _measure_differences(differences[:, huge] / largest)
            self.mean_[huge], self.scale_[huge] = mean * largest, np.sqrt(variance) * largest
        self.scale_[self.scale_ == 0] = 1.0
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the scaled columns."""
        rows = _read_new_rows(self, X)
        return (rows - self.origin_ - self.mean_) / self.scale_


def _measure_differences(differences: Floats) -> tuple[Floats, Floats]:
    """Return means and variances of columns; the latter is bounded below in columns of two values."""
    low, high = differences.min(axis=0), differences.max(axis=0)
    flags = ((differences == low) | (differences == high)).all(axis=0)
    least = np.where(flags, MIN_FLAG_VARIANCE * np.square(high - low), 0.0)
    return differences.mean(axis=0), np.maximum(differences.var(axis=0), least)


def _require_finite_differences(largest: Floats, columns: NDArray[np.intp], rows: Floats) -> None:
    """Refuse columns of whose values some differ by more than there are numbers."""
    if not np.isfinite(largest).all():
        column = columns[~np.isfinite(largest)][0]
        raise ValueError(
            f"Column {column} of X has values up to {np.abs(rows[:, column]).max():.1e} in size, whose differences are "
            "too large for floating point. Divide it by a power of ten."
        )


class BlockScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Columns of one unit, with one shift and one factor for all, so that what they differ by is kept.

    Parameters
    ----------
    variance : float, optional
        What the variances of all columns add up to; their number by default.
    min_variance : float, default=0
        A smaller sum of variances counts as this one, so that rare values do not become large.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels.scaling import BlockScaler
    >>> BlockScaler().fit_transform(np.array([[0.0, 10.0], [4.0, 12.0], [8.0, 14.0]])).var(axis=0).round(3)
    array([1.6, 0.4])
    """

    def __init__(self, variance: float | None = None, min_variance: float = 0.0) -> None:
        self.variance = variance
        self.min_variance = min_variance

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the mean of all values, and the sum of the variances."""
        rows: Floats = validate_data(self, X, dtype=np.float64)
        total = rows.shape[1] if self.variance is None else self.variance
        with np.errstate(over="ignore", invalid="ignore"):
            differences, self.mean_ = rows - rows[:1], float(rows.mean())
            spread, size = max(float(differences.var(axis=0).sum()), self.min_variance), 1.0
        if not np.isfinite(spread):
            _require_finite_differences(np.abs(differences).max(axis=0), np.arange(rows.shape[1]), rows)
            size = float(np.abs(rows).max())
            spread, self.mean_ = float((differences / size).var(axis=0).sum()), float((rows / size).mean()) * size
        self.scale_ = float(np.sqrt(spread / total)) * size if spread > 0 else 1.0
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the scaled columns."""
        return (_read_new_rows(self, X) - self.mean_) / self.scale_


class PowerScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Columns of mean 0 and variance 1, those that are skewed after the power of Yeo and Johnson.

    With :math:`x` a standardised value and :math:`\lambda` chosen by maximum likelihood for each column, the power is
    :math:`((1 + x)^\lambda - 1) / \lambda` for :math:`x \ge 0` and
    :math:`-((1 - x)^{2 - \lambda} - 1) / (2 - \lambda)` for :math:`x < 0`, logarithms where a divisor vanishes. It
    makes counts, concentrations and prices nearly symmetric. Columns of two values and symmetric ones are standardised
    only.

    Parameters
    ----------
    keep_scale : bool, default=False
        Whether columns have been scaled before: each then keeps its deviation, and those without a power stay as they
        are.

    References
    ----------
    I. Yeo, R. Johnson. A new family of power transformations to improve normality or symmetry. Biometrika 87, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import skew
    >>> from kernelweave.kernels.scaling import PowerScaler
    >>> prices = np.random.default_rng(0).lognormal(size=(200, 1))
    >>> bool(abs(skew(PowerScaler().fit_transform(prices))[0]) < 0.3 < abs(skew(prices)[0]))
    True
    """

    def __init__(self, keep_scale: bool = False) -> None:
        self.keep_scale = keep_scale

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the powers of the columns that are skewed, and mean and deviation after them."""
        rows: Floats = validate_data(self, X, dtype=np.float64)
        self.scaler_ = ColumnScaler().fit(rows)
        standard = np.asarray(self.scaler_.transform(rows))  # a frame where scikit-learn is set to give frames
        self.skewed_ = skewed_columns(standard)
        if len(self.skewed_):
            self.power_ = PowerTransformer(standardize=False).fit(_bounded(standard[:, self.skewed_]))
            self.power_scaler_ = ColumnScaler().fit(self._powers(standard))
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Return the columns after their powers, scaled, and outliers cut off."""
        rows = _read_new_rows(self, X)
        standard = np.require(self.scaler_.transform(rows), requirements="W")
        out = rows.copy() if self.keep_scale else standard
        if len(self.skewed_):
            powers = np.asarray(self.power_scaler_.transform(self._powers(standard)))
            powers = np.clip(powers, -MAX_POWER, MAX_POWER)
            out[:, self.skewed_] = powers * self.scaler_.scale_[self.skewed_] if self.keep_scale else powers
        return out

    def _powers(self, standard: Floats) -> Floats:
        return np.asarray(self.power_.transform(_bounded(standard[:, self.skewed_])), dtype=np.float64)


def _read_new_rows(scaler: BaseEstimator, X: ArrayLike) -> Floats:
    """Return new rows as an array; they may be sparse though those of the fit were not."""
    check_is_fitted(scaler)
    rows = validate_data(scaler, X, dtype=np.float64, reset=False, accept_sparse="csr")
    return np.asarray(rows.toarray() if issparse(rows) else rows)


def skewed_columns(standard: Floats) -> NDArray[np.intp]:
    """Return the standardised columns of more than two values whose skewness is above a half."""
    low, high = standard.min(axis=0), standard.max(axis=0)
    flags = ((standard == low) | (standard == high)).all(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.flatnonzero((np.abs(skew(_bounded(standard), axis=0)) > MIN_SKEWNESS) & ~flags)


def _bounded(standard: Floats) -> Floats:
    return np.clip(standard, -MAX_STANDARD, MAX_STANDARD)
