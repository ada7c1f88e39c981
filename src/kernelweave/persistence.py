"""Save a fitted model to one file and load it again, without running code from the file.

The file is skops': it holds data and the names of types, never pickled code. Loading builds objects of numpy,
scipy, scikit-learn and kernelweave only; a file that names any other type is refused. Of scikit-learn these are classes
written in Python and the functions of its metrics and feature selection; its trees and neighbor trees are not, since
their compiled code follows indices out of the file unchecked. So does that of sparse matrices, hence theirs are checked
before anything is built. What could not be loaded again is not saved either.
"""

from __future__ import annotations

import importlib
import io
import json
import os
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any
from zipfile import ZipFile

import numpy as np
from scipy.sparse import load_npz

from .files import atomic_write

FORMAT = 5
HARMLESS = {"numpy.dtype"}  # data that skops asks about
LISTENING = "sklearn.callback."  # its objects open sockets when they are built
UNCHECKED = {"sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"}  # Python around compiled code
NUMERIC = ("sklearn.metrics.", "sklearn.feature_selection.")  # whose functions do nothing but compute
SPARSE = {f"scipy.sparse._{form}.{form}_{kind}" for form in ("csr", "csc") for kind in ("array", "matrix")}
SPARSE_LOADER = "SparseMatrixNode"  # of skops: the one that reads arrays which scipy has written
HEAP_TYPE = 1 << 9  # flag of CPython for classes that are not compiled in


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
        data = skops.dumps(content)
        types = skops.get_untrusted_types(data=data)
        foreign = _find_foreign(types, io.BytesIO(data))
        if not foreign:
            skops.loads(data, trusted=types)
    except Exception as error:  # whatever skops and the objects in the model raise
        raise ValueError(f"This {type(model).__name__} cannot be saved: {error}") from error
    if foreign:
        raise ValueError(
            f"This {type(model).__name__} holds objects that load would refuse: {', '.join(foreign)}. Set "
            "callback=None, call set_callbacks(), use kernels of kernelweave instead of functions, name classes by "
            "strings or numbers; or save the model with pickle."
        )
    return data


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
    skops = require_skops()
    try:
        with ZipFile(path) as archive:
            written = _format_of(archive)
        types = skops.get_untrusted_types(file=path)
        foreign = _find_foreign(types, path)
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - zipfile, json and skops each have errors of their own
        raise ValueError(f"{os.fspath(path)} is not a model file of kernelweave ({error}).") from None
    if written not in (None, FORMAT):
        raise ValueError(
            f"{os.fspath(path)} is a model file of format {written}, and this version of kernelweave reads format "
            f"{FORMAT} only: fit the model again, or load it with the version that wrote it."
        )
    if foreign:
        raise ValueError(
            f"{os.fspath(path)} holds objects that kernelweave does not load from files: {', '.join(foreign)}. If you "
            "trust the file, load it with skops.io.load(path, trusted=[...])."
        )
    if written is None:
        raise ValueError(f"{os.fspath(path)} was not written by kernelweave.save.")
    content = skops.load(path, trusted=types)
    return content["model"], content["about"]


def require_skops() -> Any:
    """Return skops, which reads and writes the files; if it is missing, say how to install it."""
    try:
        import skops.io
    except ImportError:
        raise ImportError("Saving and loading models needs skops: pip install 'kernelweave[io]'") from None
    return skops.io


def _format_of(archive: ZipFile) -> Any:
    """Return the number of the format that a file says it has; None where it is none of kernelweave's."""
    schema = json.loads(archive.read("schema.json"))
    content = schema.get("content")
    if not isinstance(content, dict) or not {"format", "model", "about"} <= content.keys():
        return None
    return json.loads(content["format"]["content"])


def _find_foreign(types: list[str], file: Any) -> list[str]:
    """Return the types in a file that are not loaded from files; refuse one whose sparse matrices are damaged."""
    foreign = {name for name in types if name not in HARMLESS | SPARSE and not _is_known(name)}
    with ZipFile(file) as archive:
        for node in _walk_nodes(archive):
            name, is_read = f"{node['__module__']}.{node['__class__']}", node["__loader__"] == SPARSE_LOADER
            if is_read and name in SPARSE:
                _check_sparse(name, archive.read(node["file"]))
            elif is_read or name in SPARSE:  # of these nothing is checked
                foreign.add(name)
    return sorted(foreign)


def _walk_nodes(archive: ZipFile) -> Iterator[dict[str, Any]]:
    """Yield the description of each object in a file of skops."""
    waiting = [json.loads(archive.read("schema.json"))]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting.extend(item.values())
            if isinstance(item.get("__loader__"), str):  # a dict of the model may have such a key, not such a value
                yield item
        elif isinstance(item, list):
            waiting.extend(item)


def _check_sparse(name: str, content: bytes) -> None:
    """Refuse a sparse matrix that is not of the named type, or whose indices point outside of it."""
    remedy = "the file is damaged or was changed; copy it again from its source"
    try:
        matrix = load_npz(io.BytesIO(content))
    except Exception as error:  # whatever numpy, scipy and zipfile raise
        raise ValueError(f"it holds a {name} that cannot be read, {error}: {remedy}") from error
    if f"{type(matrix).__module__}.{type(matrix).__name__}" != name or not _is_sound(matrix):
        raise ValueError(f"it holds a {name} whose indices point outside of it: {remedy}")


def _is_sound(matrix: Any) -> bool:
    """Return whether all indices point into the matrix.

    ``matrix.check_format()`` does not say so: where the last pointer, which is the number of entries, is not positive,
    it looks at no other.
    """
    arrays = pointers, indices, data = matrix.indptr, matrix.indices, matrix.data
    if matrix.ndim != 2 or any(array.ndim != 1 for array in arrays) or data.dtype.kind not in "biuf":
        return False
    n_lines, n_places = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    if len(pointers) != n_lines + 1 or pointers[0] != 0 or not pointers[-1] == len(indices) == len(data):
        return False
    return bool(np.all(pointers[:-1] <= pointers[1:]) and np.all((indices >= 0) & (indices < n_places)))


def _is_known(name: str) -> bool:
    """Return whether kernelweave or scikit-learn itself defines this class or numeric function, in Python.

    Functions of kernelweave are none of a model's parts, and some write files: a file could have them called.
    """
    module, _, attribute = name.rpartition(".")
    if not module.startswith(("kernelweave.", "sklearn.")) or module.startswith(LISTENING) or name in UNCHECKED:
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
