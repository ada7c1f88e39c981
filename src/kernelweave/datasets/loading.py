"""The benchmark sets by name, from a folder, from scikit-learn, or from a cache that OpenML fills.

A stored set is looked for in this order, and the first place that has it decides:

1. the folder that the environment variable ``KERNELWEAVE_DATA`` names, as ``<name>.npz``;
2. scikit-learn itself, where it brings the set along (``wine``);
3. the cache: the folder that ``KERNELWEAVE_CACHE`` names, else ``kernelweave`` in scikit-learn's data folder
   (``SCIKIT_LEARN_DATA``, else ``~/scikit_learn_data``), as ``<name>.npz``;
4. OpenML, for the sets that it has in this very form; what comes is put into the cache.

Whatever its place, it is read as :mod:`kernelweave.datasets.archives` says and must have the checksum of the table: the
same name is the same numbers, in the same order, everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import csr_array
from sklearn.utils import Bunch

from . import openml
from .archives import Arrays, canonical, checksum, read_archive, write_archive
from .records import STORED, Dataset, Stored
from .variants import VARIANTS, Variant

__all__ = ["list_datasets", "load"]

SPARSE = ("X_data", "X_indices", "X_indptr", "X_shape")
PER_ROW = {"is_test": bool, "train_index": np.intp}


def list_datasets() -> list[Dataset]:
    """What :func:`load` knows, stored sets first: name, rows, columns, classes, task and origin of each.

    Returns
    -------
    list of Dataset
        One record for each set.

    See Also
    --------
    load : Loads one of them.

    Examples
    --------
    >>> {record.name: (record.n_rows, record.n_columns) for record in list_datasets()}["usps_3v8"]
    (1200, 256)
    """
    return [*STORED.values(), *VARIANTS.values()]


def load(name: str, *, dtype: DTypeLike = np.float64, download_if_missing: bool = True) -> Bunch:
    """A benchmark set by its name.

    Parameters
    ----------
    name : str
        One of the names in :func:`list_datasets`.
    dtype : dtype, default=float64
        Type of the data, and of the targets of regression; most sets were stored as float32.
    download_if_missing : bool, default=True
        Whether OpenML may be asked for a set that is at none of the places on this machine.

    Returns
    -------
    Bunch
        ``data``, an array or ``scipy.sparse.csr_array`` of shape (n_rows, n_columns); ``target``, integers of shape
        (n_rows,), -1 and +1 for two classes and 0, 1, ... for more, or in regression numbers of shape (n_rows,
        n_targets); ``target_names``; ``DESCR``, with what to mind.
        Where the data carry them: ``splits``, from the number of labels, as text, to the list of the original splits,
        each a pair of row numbers (labelled, unlabelled); ``is_test``, which rows were meant for the test;
        ``train_index``, the position of each row in the whole.

    Raises
    ------
    ValueError
        If no set has this name, or if the one found is not the set that the name means.
    FileNotFoundError
        If the set is nowhere on this machine and cannot be downloaded; the message lists the ways to get it.

    See Also
    --------
    list_datasets : The names, and what is known of each set.
    draw_labels : Chooses the rows that keep their labels.

    Notes
    -----
    Two classes are coded -1 and +1, as in the papers. To hide labels write None or NaN, not -1.

    Examples
    --------
    >>> from kernelweave.datasets import load
    >>> wine = load("wine")
    >>> wine.data.shape, wine.target_names.tolist()
    ((178, 13), ['0', '1', '2'])
    """
    record = {**STORED, **VARIANTS}.get(name)
    if record is None:
        names = [known.name for known in list_datasets()]
        near = get_close_matches(str(name), names, n=3, cutoff=0.3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"There is no set {name!r}.{hint} list_datasets() has all {len(names)}.")
    stored = STORED[record.of] if isinstance(record, Variant) else STORED[name]
    bunch = _make_bunch(_find_arrays(stored, download_if_missing), np.dtype(dtype))
    if isinstance(record, Variant):
        bunch = record.derive(bunch)
    bunch.update(target_names=np.array(record.target_names), DESCR=record.description)
    return bunch


def _find_arrays(record: Stored, download_if_missing: bool) -> Arrays:
    """The arrays of a stored set, from the first place that has them."""
    file = f"{record.name}.npz"
    folder = os.environ.get("KERNELWEAVE_DATA")
    if folder and (given := Path(folder).expanduser() / file).is_file():
        return _check_arrays(record, read_archive(given), f"'{given}'")
    if record.bundled is not None:
        return _check_arrays(record, record.bundled(), "what scikit-learn brings along")
    cached = _cache_folder() / file
    if cached.is_file():
        return _check_arrays(record, read_archive(cached), f"'{cached}'")
    if record.openml is not None and download_if_missing:
        return _download(record, record.openml, cached)
    raise FileNotFoundError(f"The set {record.name!r} is not on this machine. " + " ".join(_list_ways(record)))


def _cache_folder() -> Path:
    own = os.environ.get("KERNELWEAVE_CACHE")
    if own:
        return Path(own).expanduser()
    # as sklearn.datasets.get_data_home has it, which would create the folder
    return Path(os.environ.get("SCIKIT_LEARN_DATA") or "~/scikit_learn_data").expanduser() / "kernelweave"


def _download(record: Stored, source: openml.OpenML, cached: Path) -> Arrays:
    """The arrays from OpenML, once they are in the cache."""
    try:
        arrays = openml.fetch(record.name, source)
    except Exception as error:  # a server may send anything, and parsers have errors of their own
        raise FileNotFoundError(
            f"The set {record.name!r} is not on this machine, and OpenML did not give it: {error}. "
            + " ".join(_list_ways(record))
        ) from error
    checked = _check_arrays(record, arrays, f"set {source.data_id} of OpenML")
    try:
        write_archive(cached, arrays)
    except OSError as error:
        raise OSError(
            f"The set {record.name!r} came from OpenML, but cannot be kept as '{cached}': {error}. Let "
            "KERNELWEAVE_CACHE name a folder that can be written to."
        ) from error
    return checked


def _list_ways(record: Stored) -> Iterator[str]:
    """What the user can do, one sentence a way."""
    folder = os.environ.get("KERNELWEAVE_DATA")
    now = f"it is {folder!r}, without that file" if folder else "it is not set"
    yield f"Either set the environment variable KERNELWEAVE_DATA ({now}) to a folder that has {record.name}.npz;"
    if record.openml is None:
        yield "or use a generator or another set: OpenML does not have this one in the same form."
    else:
        yield (
            f"or let load fetch set {record.openml.data_id} from OpenML (download_if_missing=True, with a network) "
            f"into the cache '{_cache_folder()}', which KERNELWEAVE_CACHE names."
        )


def _check_arrays(record: Stored, arrays: Arrays, place: str) -> Arrays:
    """The arrays in their canonical form, if they are the set of that name."""
    arrays = canonical(arrays)
    missing = [] if "X" in arrays else [key for key in SPARSE if key not in arrays]
    if not ("y" in arrays or "Y" in arrays):
        missing.append("y")
    expected = f"{record.name} has {record.n_rows} rows and {record.n_columns} columns"
    advice = "Replace it by a sound copy; a file in the cache can be deleted, to be downloaded again."
    if missing:
        raise ValueError(f"The set {record.name!r} in {place} lacks {', '.join(missing)}: {expected}. {advice}")
    shape = arrays["X"].shape if "X" in arrays else tuple(arrays["X_shape"].ravel().tolist())
    if shape != (record.n_rows, record.n_columns):
        raise ValueError(f"The set {record.name!r} in {place} has the shape {shape}, but {expected}. {advice}")
    actual = checksum(arrays)
    if actual != record.checksum:
        raise ValueError(
            f"The set {record.name!r} in {place} is not the one that is meant by that name: its checksum is "
            f"{actual[:12]}..., expected {record.checksum[:12]}.... {advice}"
        )
    return arrays


def _make_bunch(arrays: Arrays, dtype: np.dtype[Any]) -> Bunch:
    """The arrays under the names that users see."""
    if "X" in arrays:
        data = arrays["X"].astype(dtype, copy=False)
    else:
        values, indices, indptr, shape = (arrays[key] for key in SPARSE)
        places = indices.astype(np.int32), indptr.astype(np.int32)  # not all of scikit-learn takes wider ones
        data = csr_array((values.astype(dtype), *places), shape=tuple(shape.tolist()))
    target = arrays["Y"].astype(dtype, copy=False) if "Y" in arrays else arrays["y"]
    splits = {}
    for key in arrays:
        if key.startswith("idxLabs"):
            labeled, unlabeled = (arrays[k].astype(np.intp) for k in (key, key.replace("Labs", "Unls")))
            splits[str(labeled.shape[1])] = list(zip(labeled, unlabeled, strict=True))
    more = {key: arrays[key].astype(kind) for key, kind in PER_ROW.items() if key in arrays}
    return Bunch(data=data, target=target, **({"splits": splits} if splits else {}), **more)
