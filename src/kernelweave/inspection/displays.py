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
    """Return the fitted model that has one of some attributes: the estimator, or one inside it.

    Parameters
    ----------
    estimator : fitted estimator
    attributes : tuple of str
        Of which the model must have one.
    owner : str
        Who asks, for errors.
    """
    check_is_fitted(estimator)
    model = search_model(estimator, attributes)
    if model is None:
        raise TypeError(
            f"{owner}.from_estimator got {type(estimator).__name__}, which has none of {', '.join(attributes)}. Pass a "
            f"fitted estimator that has one, or the numbers to {owner} itself."
        )
    return model


def search_model(estimator: Any, attributes: tuple[str, ...]) -> Any:
    """Return the first model with one of some attributes, from the outside to the inside; None where there is none."""
    if any(hasattr(estimator, name) for name in attributes):
        return estimator
    found = (search_model(inner, attributes) for inner in inner_models(estimator))
    return next((model for model in found if model is not None), None)


def inner_models(estimator: Any) -> list[Any]:
    """Return the models that an estimator is made of, the most important first.

    The last step of a pipeline, the model of a search or of a calibration, the members of a combination by weight.
    """
    last = [estimator.steps[-1][1]] if hasattr(estimator, "steps") else []
    inner = [getattr(estimator, name) for name in INNER if getattr(estimator, name, None) is not None]
    members = sorted(getattr(estimator, "members_", ()), key=lambda member: -member.weight)
    return last + inner + [member.model for member in members]


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
