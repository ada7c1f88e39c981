"""Save a fitted model to one file and load it again, without running code from the file.

The file is skops': it holds data and the names of types, never pickled code. Loading builds objects of numpy,
scipy, scikit-learn and kernelweave only; a file that names any other type is refused. Of scikit-learn these are classes
written in Python and the functions of its metrics and feature selection; its trees and neighbor trees are not, since
their compiled code follows indices out of the file unchecked. What could not be loaded again is not saved either.
"""

from __future__ import annotations

import importlib
import os
from importlib.metadata import version
from typing import Any

from .tables import atomic_write

FORMAT = 3
HARMLESS = {"numpy.dtype"}  # data that skops asks about
UNCHECKED = {"sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"}  # Python around compiled code
NUMERIC = ("sklearn.metrics.", "sklearn.feature_selection.")  # whose functions do nothing but compute
HEAP_TYPE = 1 << 9  # flag of CPython for classes that are not compiled in


def save(model: Any, path: str | os.PathLike[str], **about: Any) -> None:
    """Write a fitted model, and plain data about it, to one file; refuse what :func:`load` would refuse.

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
    atomic_write(path, packed(model, **about))


def packed(model: Any, **about: Any) -> bytes:
    """Return the content of the file that :func:`save` writes, after it has been loaded once from memory."""
    content = {
        "format": FORMAT,
        "versions": {name: version(name) for name in ("kernelweave", "scikit-learn", "numpy")},
        "about": about,
        "model": model,
    }
    skops = require_skops()
    try:
        data = skops.dumps(content)
        types = skops.get_untrusted_types(data=data)
        foreign = _foreign(types)
        if not foreign:
            skops.loads(data, trusted=types)
    except Exception as error:  # whatever skops and the objects in the model raise
        raise ValueError(f"This {type(model).__name__} cannot be saved: {error}") from error
    if foreign:
        raise ValueError(
            f"This {type(model).__name__} holds objects that could not be loaded again: {', '.join(foreign)}. Set "
            "callback=None, use kernels of kernelweave in place of functions, name classes by strings or numbers; or "
            "keep the model with pickle."
        )
    return data


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote."""
    return load_with_about(path)[0]


def load_with_about(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Read a model and the plain data that were saved with it."""
    skops = require_skops()
    try:
        types = skops.get_untrusted_types(file=path)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - zipfile, json and skops each have errors of their own
        raise ValueError(f"{os.fspath(path)} is not a model file of kernelweave ({error}).") from None
    if foreign := _foreign(types):
        raise ValueError(
            f"{os.fspath(path)} holds objects that kernelweave does not load from files: {', '.join(foreign)}. If you "
            "trust the file, load it with skops.io.load(path, trusted=[...])."
        )
    content = skops.load(path, trusted=types)
    if not isinstance(content, dict) or "model" not in content or content.get("format") != FORMAT:
        raise ValueError(f"{os.fspath(path)} was not written by kernelweave.save, or by another version of its format.")
    return content["model"], content["about"]


def require_skops() -> Any:
    """Return the package that reads and writes the files; without it, say how to install it."""
    try:
        import skops.io
    except ImportError:
        raise ImportError("Saving and loading models needs skops: pip install 'kernelweave[io]'") from None
    return skops.io


def _foreign(types: list[str]) -> list[str]:
    """Return those of the types that are not loaded from files."""
    ours = [name for name in types if name.startswith("kernelweave.") or name in HARMLESS]
    return [name for name in types if name not in ours and not _is_of_sklearn(name)]


def _is_of_sklearn(name: str) -> bool:
    """Return whether scikit-learn itself defines this class or numeric function, in Python."""
    module, _, attribute = name.rpartition(".")
    if not module.startswith("sklearn.") or name in UNCHECKED:
        return False
    try:
        thing = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        return False
    if getattr(thing, "__module__", None) != module:  # imported there from elsewhere
        return False
    if isinstance(thing, type):
        return all(base.__flags__ & HEAP_TYPE for base in thing.__mro__ if base.__module__.startswith("sklearn."))
    return callable(thing) and module.startswith(NUMERIC)
