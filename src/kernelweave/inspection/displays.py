"""What all Displays share: packages that may be missing, frames of numbers, and the model inside a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

HALF_WIDTH = float(norm.ppf(0.975))  # of a 95 % interval, in standard errors
INNER = ("best_estimator_", "estimator_")  # attributes that hold the model: of a search, of a calibration


@contextmanager
def needs_matplotlib(owner: str) -> Iterator[None]:
    """Turn a failed import of what draws into a sentence that says what to install."""
    try:
        yield
    except ImportError as missing:
        raise ImportError(
            f"{owner}.plot needs {missing.name or 'matplotlib'}: pip install 'kernelweave[report]'"
        ) from missing


def as_frame(owner: str, columns: Mapping[str, Any]) -> Any:
    """Return the numbers of a Display as a pandas frame.

    Parameters
    ----------
    owner : str
        Whose they are, for the error without pandas.
    columns : mapping of str to sequence
        Those that are None are left out.
    """
    try:
        import pandas as pd
    except ImportError as missing:
        raise ImportError(f"{owner}.data_ needs pandas: pip install 'kernelweave[cli]'") from missing
    return pd.DataFrame({name: values for name, values in columns.items() if values is not None})


def find_model(estimator: Any, attributes: tuple[str, ...], owner: str) -> Any:
    """Return the fitted model that has one of some attributes: the estimator, or the one inside it.

    Looks into pipelines (their last step), searches and combinations (``best_estimator_``) and calibrations.

    Parameters
    ----------
    estimator : fitted estimator
    attributes : tuple of str
        Of which the model must have one.
    owner : str
        Who asks, for errors.
    """
    check_is_fitted(estimator)
    model = estimator
    while not any(hasattr(model, name) for name in attributes):
        inner = [getattr(model, name) for name in INNER if getattr(model, name, None) is not None]
        if hasattr(model, "steps"):
            inner = [model.steps[-1][1]]
        if not inner:
            raise TypeError(
                f"{owner}.from_estimator got {type(estimator).__name__}, which has none of "
                f"{', '.join(attributes)}. Pass a fitted estimator that has one, or the numbers to {owner} itself."
            )
        model = inner[0]
    return model


def title_of(estimator: Any, model: Any) -> str:
    """Return how a drawing is titled: the model's class, and whose best model it is if it is inside another."""
    name = type(model).__name__
    return name if model is estimator else f"{name} (in {type(estimator).__name__})"


def wilson_interval(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of Wilson's 95 % interval for a share of n rows; NaN where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = wilson_interval(np.array([0.0, 0.5]), np.array([10, 10]))
    >>> low.round(3), high.round(3)
    (array([0.   , 0.237]), array([0.278, 0.763]))
    """
    z = HALF_WIDTH
    with np.errstate(invalid="ignore", divide="ignore"):
        middle, unit = share + z**2 / (2 * n), 1 + z**2 / n
        half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
        low, high = (middle - half) / unit, (middle + half) / unit
    return np.where(share == 0, 0.0, low), np.where(share == 1, 1.0, high)
