"""Save a fitted model to one file and load it again, without running code from the file.

The file is skops': it holds data and the names of types, never pickled code. Loading builds objects of numpy,
scipy, scikit-learn and kernelweave only; a file that names any other type is refused.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import Any

from .tables import atomic_write

FORMAT = 1
HARMLESS = {"numpy.dtype"}  # data that skops asks about


def save(model: Any, path: str | os.PathLike[str], **about: Any) -> None:
    """Write a fitted model, and plain data about it, to one file.

    Parameters
    ----------
    model : estimator
        Of kernelweave or scikit-learn, or a pipeline of them.
    path : path-like
    **about
        Numbers, strings, lists and dicts that :func:`load_with_about` gives back.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from kernelweave import SSMKClassifier, load, save
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = SSMKClassifier().fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, os.path.join(folder, "model.skops"))
    ...     again = load(os.path.join(folder, "model.skops"))
    >>> bool(np.all(again.predict(X) == model.predict(X)))
    True
    """
    content = {
        "format": FORMAT,
        "versions": {name: version(name) for name in ("kernelweave", "scikit-learn", "numpy")},
        "about": about,
        "model": model,
    }
    atomic_write(path, _skops().dumps(content))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote."""
    return load_with_about(path)[0]


def load_with_about(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Read a model and the plain data that were saved with it."""
    skops = _skops()
    try:
        types = skops.get_untrusted_types(file=path)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - zipfile, json and skops each have errors of their own
        raise ValueError(f"{os.fspath(path)} is not a model file of kernelweave ({error}).") from None
    foreign = [name for name in types if not name.startswith("kernelweave.") and name not in HARMLESS]
    if foreign:
        raise ValueError(
            f"{os.fspath(path)} holds objects that kernelweave does not load from files: {', '.join(foreign)}. If you "
            "trust the file, load it with skops.io.load(path, trusted=[...])."
        )
    content = skops.load(path, trusted=types)
    if not isinstance(content, dict) or "model" not in content or content.get("format") != FORMAT:
        raise ValueError(f"{os.fspath(path)} was not written by kernelweave.save, or by another version of its format.")
    return content["model"], content["about"]


def _skops() -> Any:
    try:
        import skops.io
    except ImportError:
        raise ImportError("Saving and loading models needs skops: pip install 'kernelweave[io]'") from None
    return skops.io
