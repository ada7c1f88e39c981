"""Save a fitted model to one file and load it again, without running code from the file.

The file is skops': it holds data and the names of types, never pickled code. Before anything is built, `seal` refuses
altered bytes, `archive` sizes, names and arrays that do not fit; before anything runs, `objects` compares the arrays of
what was built. What could not be loaded again is not saved either.
"""

from __future__ import annotations

import io
import os
import warnings
from importlib.metadata import version
from typing import Any
from zipfile import ZipFile

from sklearn.exceptions import InconsistentVersionWarning

from ..files import atomic_write, reason
from ..warn import warn_caller
from .archive import list_types, make_compact, read_format, read_schema
from .objects import check_objects
from .seal import FORMAT, add_seal, read_sealed

MAX_REASON = 300  # characters of what another library says


def save(model: Any, path: str | os.PathLike[str], **about: Any) -> None:
    """Write a fitted model, and plain data about it, to one file; refuse what :func:`load` would refuse.

    Parameters
    ----------
    model : estimator
        Of kernelweave or scikit-learn, or a pipeline of them.
    path : path-like
        The file; it is written whole or not at all.
    **about : dict
        Numbers, strings, lists and dicts that ``kernelweave.persistence.load_with_about`` returns with the model.

    See Also
    --------
    load : Reads it again.

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
    atomic_write(path, pack(model, **about))


def pack(model: Any, **about: Any) -> bytes:
    """Return the content of the file that :func:`save` writes, after it has been loaded once from memory."""
    content = {
        "format": FORMAT,
        "versions": {name: version(name) for name in ("kernelweave", "scikit-learn", "numpy")},
        "about": about,
        "model": model,
    }
    skops = require_skops()
    try:
        data = make_compact(skops.dumps(content))
        types, foreign = list_types(data)
        if not foreign:
            _build(data, types)
    except Exception as error:  # whatever skops and the objects in the model raise
        raise ValueError(f"This {type(model).__name__} cannot be saved: {_shorten(error)}") from error
    if foreign:
        raise ValueError(
            f"This {type(model).__name__} holds objects that load would refuse: {', '.join(foreign)}. Set "
            "callback=None, call set_callbacks(), use kernels of kernelweave instead of functions, name classes by "
            "strings or numbers; or save the model with pickle."
        )
    return add_seal(data)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that :func:`save` wrote.

    Only objects of NumPy, SciPy, scikit-learn and kernelweave are built, and no code from the file is run.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        The fitted model.

    Raises
    ------
    ValueError
        If the file is none of kernelweave's, has another format, or holds other objects.

    See Also
    --------
    save : Writes it.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import RKDAClassifier, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.skops")
    ...     save(RKDAClassifier().fit(X, y), path)
    ...     load(path).predict(X[:3])
    array([0, 0, 0])
    """
    return load_with_about(path)[0]


def load_with_about(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Read a model and the plain data that were saved with it."""
    require_skops()
    name = os.fspath(path)
    try:
        data, number = read_sealed(path)
    except ValueError as error:
        raise ValueError(f"{name} {error}.") from None
    if number != FORMAT:
        raise ValueError(f"{name} {_describe_other(data, number)}")
    try:
        types, foreign = list_types(data)
        content = {} if foreign else _build(data, types)
    except Exception as error:  # noqa: BLE001 - zipfile, json, numpy, skops and objects each have errors of their own
        raise ValueError(f"{name} is not a model file of kernelweave ({_shorten(error)}).") from None
    if foreign:
        raise ValueError(
            f"{name} holds objects that kernelweave does not load from files: {', '.join(foreign)}. If you trust the "
            "file, load it with skops.io.load(path, trusted=[...])."
        )
    _warn_of_version(name, content["versions"])
    return content["model"], content["about"]


def _build(data: bytes, types: list[str]) -> dict[str, Any]:
    """Return the objects of an archive whose names and arrays were checked; refuse those that do not fit together."""
    skops = require_skops()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # one for each object
        content = skops.loads(data, trusted=types)
    if not all(isinstance(part, dict) for part in (content, content["about"], content["versions"])):
        raise ValueError("it holds no model")
    if not isinstance(content["versions"].get("scikit-learn"), str):  # the text of other objects may have any length
        raise ValueError("it does not say which scikit-learn wrote it")
    check_objects(content)
    return content


def _warn_of_version(name: str, versions: dict[str, str]) -> None:
    """Warn of a model whose objects another version of scikit-learn wrote."""
    written, ours = versions["scikit-learn"], version("scikit-learn")
    if written != ours:
        warn_caller(
            f"{name} was saved with scikit-learn {written:.20}, and this is {ours}: predictions may differ. Learn the "
            "model again if they matter."
        )


def _describe_other(data: bytes, number: int | None) -> str:
    """Return why a file of another format, or without a seal, is not loaded."""
    if number is None:
        try:
            with ZipFile(io.BytesIO(data)) as archive:
                number = read_format(read_schema(archive))
        except Exception as error:  # noqa: BLE001 - zipfile, its compressions and json each have errors of their own
            return f"is not a model file of kernelweave ({_shorten(error)})."
        if number is None:
            return "was not written by kernelweave.save."
        if number == FORMAT:
            return "is damaged or was changed after it was saved: it has no digest. Copy it again from its source."
    return (
        f"is a model file of format {number!r:.20}, and this version of kernelweave reads format {FORMAT} only: "
        "fit the model again, or load it with the version that wrote it."
    )


def _shorten(error: Exception) -> str:
    """Return the first line of what an error says; where it says nothing, its name."""
    return reason(error)[:MAX_REASON] or type(error).__name__


def require_skops() -> Any:
    """Return skops, which reads and writes the files; if it is missing, say how to install it."""
    try:
        import skops.io
    except ImportError:
        raise ImportError("Saving and loading models needs skops: pip install 'kernelweave[io]'") from None
    return skops.io
