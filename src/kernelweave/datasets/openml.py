"""Sets from OpenML in the form of our archives, through scikit-learn's ``fetch_openml``; nothing it brings is trusted.

What is downloaded goes to a temporary folder, is bounded in bytes after decompression, and is converted: rows with a
missing value are dropped, classes are coded, values rounded to float32. Then rows are put in the order of the archive:
they are sorted, column by column, and dealt out by the ranks in ``row_order.json``. So the checksum of the archive must
come out, whatever the order on the server, and a seeded split means the same rows on every machine.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPMessage
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import _openml, fetch_openml

from .archives import Arrays

__all__ = ["OpenML", "fetch"]

TIMEOUT = 60.0  # seconds without a byte
ROW_ORDER = Path(__file__).with_name("row_order.json")
_lock = threading.Lock()


@dataclass(frozen=True)
class OpenML:
    """Where a set is on OpenML, and how it becomes ours.

    Attributes
    ----------
    data_id : int
        Number of the set, which stands for one version of it.
    labels : mapping from str to int
        Our code of each class.
    max_bytes : int
        Most that the server may send, decompressed, descriptions included.
    positions : callable or None
        Rows that are taken, by position, where it is a part; they are kept as ``train_index``. None: all rows
        without a missing value, in the order of ``row_order.json``.
    """

    data_id: int
    labels: Mapping[str, int]
    max_bytes: int = 1 << 22
    positions: Callable[[], NDArray[np.intp]] | None = None


def fetch(name: str, source: OpenML) -> Arrays:
    """The arrays of the set, converted; the caller compares their checksum.

    Whatever goes wrong, on the way or in what came, is an exception of some kind: a server may send anything.
    """
    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    with tempfile.TemporaryDirectory() as folder, _bound_reading(source.max_bytes), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns before it tries again, and raises in the end
        fetched = fetch_openml(
            data_id=source.data_id, data_home=folder, as_frame=False, parser=parser, n_retries=1, delay=0.5
        )
    return _convert(name, source, fetched.data, fetched.target)


def _convert(name: str, source: OpenML, data: Any, target: Any) -> Arrays:
    X = np.asarray(data)
    texts = [str(label).strip("'\"") for label in target]
    unknown = sorted(set(texts) - set(source.labels))
    if unknown:
        raise ValueError(f"it has the classes {unknown}, and only {sorted(source.labels)} are known")
    y = np.array([source.labels[text] for text in texts], dtype=np.int8)
    if source.positions is not None:
        positions = source.positions()
        if len(X) <= positions.max():
            raise ValueError(f"it has {len(X)} rows, and row {positions.max()} is needed")
        return {"X": X[positions].astype(np.float32), "y": y[positions], "train_index": positions}
    X = X.astype(np.float64)
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete].astype(np.float32), y[complete]
    ranks = np.array(json.loads(ROW_ORDER.read_text(encoding="utf-8"))[name])
    if len(X) != len(ranks):
        raise ValueError(f"it has {len(X)} rows without a missing value, and {len(ranks)} are expected")
    rows = np.lexsort((y, *X.T))[ranks]
    return {"X": X[rows], "y": y[rows]}


@contextmanager
def _bound_reading(max_bytes: int) -> Iterator[None]:
    """Let ``fetch_openml`` read at most so many bytes, from the web only.

    It has no such limit of its own. The function replaced is the one that scikit-learn's tests replace, too; a lock
    keeps threads from undoing each other's replacement.
    """
    left = max_bytes

    def count(n_bytes: int) -> None:
        nonlocal left
        left -= n_bytes
        if left < 0:
            raise ValueError(f"it is larger than the {max_bytes} bytes that are allowed")

    def opened(request: Request, *_: Any, **__: Any) -> _Counted:
        address = urlsplit(request.full_url)
        if address.scheme not in ("http", "https") or ".." in address.path.split("/"):
            raise ValueError(f"its address {request.full_url!r} is not one of the web")
        return _Counted(urlopen(request, timeout=TIMEOUT), count)

    with _lock:
        unbounded, _openml.urlopen = _openml.urlopen, opened
        try:
            yield
        finally:
            _openml.urlopen = unbounded


class _Counted:
    """A response that counts what is read of it, after decompression."""

    def __init__(self, response: Any, count: Callable[[int], None]) -> None:
        self._response, self._count = response, count
        packed = response.info().get("Content-Encoding", "") == "gzip"
        self._stream = gzip.GzipFile(fileobj=response) if packed else response

    def read(self, size: int) -> bytes:  # never all at once: what is too much must not be in memory
        piece: bytes = self._stream.read(size)
        self._count(len(piece))
        return piece

    def info(self) -> HTTPMessage:
        return HTTPMessage()  # what is read has no encoding left

    def close(self) -> None:
        self._response.close()
