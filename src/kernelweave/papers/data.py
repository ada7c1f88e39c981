"""The rows that the papers' cells see: the original data where they are, generated ones of the same shape elsewhere.

A fast run must work without data and network; its records then say ``"data": "generated"``, and the report compares
nothing. A whole run never falls back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..datasets import load

Generator = Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Rows:
    """Rows, their targets, and where they come from: ``"original"`` or ``"generated"``."""

    X: Any
    y: np.ndarray
    source: str


def rows(name: str, fast: bool, instead: Generator) -> Rows:
    """Return the data set ``name``, or what ``instead(rng)`` makes if a fast run does not find it."""
    loaded = _try_loading(name, not fast)
    if isinstance(loaded, OSError):
        if not fast:
            raise loaded
        return Rows(*instead(np.random.default_rng(0)), "generated")
    return Rows(loaded.data, np.asarray(loaded.target), "original")


@lru_cache(maxsize=2)  # the cells of a process mostly ask for the same set
def _try_loading(name: str, download: bool) -> Any:
    """Return the set, or the error that it met."""
    try:
        return load(name, download_if_missing=download)
    except OSError as error:
        return error


def mnist_odd_even(fast: bool) -> Rows:
    """Return MNIST's digits with pixels in [0, 1]; the class is whether the digit is odd."""
    loaded = rows("mnist14k", fast, generated_digits)
    scale = 255.0 if loaded.source == "original" else 1.0
    return Rows(np.asarray(loaded.X, dtype=float) / scale, np.asarray(loaded.y).astype(int) % 2, loaded.source)


def generated_digits(rng: np.random.Generator, n_rows: int = 2500) -> tuple[np.ndarray, np.ndarray]:
    """Return rows like images of ten digits, 784 pixels in [0, 1]: blots at random places, bent by a few factors."""
    classes = rng.integers(10, size=n_rows)
    raw = np.empty((n_rows, 784))
    for digit in range(10):
        prototype, *bends = _smooth(rng.normal(size=(13, 28, 28))).reshape(13, 784)
        factors = rng.normal(scale=0.6, size=(int(np.sum(classes == digit)), 12))
        raw[classes == digit] = 1.5 * prototype + factors @ np.array(bends)
    raw += rng.normal(scale=0.3, size=raw.shape)
    return np.clip(raw, 0.0, 2.0) / 2.0, classes


def _smooth(images: np.ndarray) -> np.ndarray:
    """Average over neighbouring pixels, then scale each image to a standard deviation of one."""
    for _ in range(6):
        images = (images + sum(np.roll(images, step, axis) for axis in (1, 2) for step in (-1, 1))) / 5.0
    scaled: np.ndarray = images / images.std(axis=(1, 2), keepdims=True)
    return scaled
