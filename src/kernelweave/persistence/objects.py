"""The objects of a model file, checked after they were built and before anything runs.

numpy checks shapes and indices when it computes; compiled code of scipy and scikit-learn does not always. So arrays
that such code would follow are compared with one another here. Objects of kernelweave with such arrays, or with values
that could cost any amount of memory, have a method ``check_loaded``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..kernels.checks import is_index, is_plain_array, require_consistent

MAX_JOBS = 64  # processes or threads that a model may ask for
MT19937_WORDS, PHILOX_WORDS = 624, 4  # of which a position is the next
METRICS = ("euclidean", "sqeuclidean", "manhattan", "cosine", "chebyshev", "minkowski")


def check_objects(root: Any) -> None:
    """Refuse objects whose arrays do not fit together.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    for item in walk_objects(root):
        if callable(check := getattr(type(item), "check_loaded", None)):
            check(item)
        for kind in type(item).__mro__:
            if (name := f"{kind.__module__}.{kind.__qualname__}") in CHECKS:
                CHECKS[name](item)
        _check_options(item)


def _check_options(item: Any) -> None:
    """Refuse options that would start any number of processes, or write to a folder that the file names."""
    options = vars(item) if hasattr(item, "__dict__") else {}
    jobs = options.get("n_jobs")
    if isinstance(item, dict) and isinstance(item.get("n_jobs"), int | float):  # of a function, or about one
        jobs = item["n_jobs"]
    require_consistent(item, jobs is None or (type(jobs) is int and abs(jobs) <= MAX_JOBS), "asks for too many jobs")
    require_consistent(item, options.get("memory") is None, "names a folder for its memory; set memory=None")


def walk_objects(root: Any) -> Iterator[Any]:
    """Yield every object that an object holds, itself first, each once."""
    waiting, seen = [root], set()
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, str | bytes | int | float | type):
            continue
        seen.add(id(item))
        yield item
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list | tuple | set):
            waiting.extend(item)
        elif isinstance(item, np.ndarray):
            data = np.asarray(item)  # of a masked array: also what it hides
            waiting.extend(data.ravel().tolist() if data.dtype == object else ())
        if hasattr(item, "__dict__"):  # lists, dicts and arrays may have attributes too
            waiting.extend(vars(item).values())


def _check_one_hot(encoder: Any) -> None:
    """Refuse numbers of columns that are smaller than the codes which the categories become."""
    if not hasattr(encoder, "categories_"):
        return
    n_columns, categories = encoder._n_features_outs, encoder.categories_
    is_list = type(n_columns) is list and all(type(n_out) is int for n_out in n_columns)  # arrays add up elsewise
    require_consistent(encoder, is_list, "has numbers of columns that are none")
    is_list = type(categories) is list and all(map(_are_categories, categories))
    require_consistent(encoder, is_list, "has categories that are not in order")
    mappings = [None] * len(categories)
    if encoder._infrequent_enabled:
        mappings = list(encoder._default_to_infrequent_mappings)
    dropped = [None] * len(categories)
    if encoder._drop_idx_after_grouping is not None:
        dropped = list(encoder._drop_idx_after_grouping)
    parts = (n_columns, categories, mappings, dropped)
    require_consistent(encoder, len({len(part) for part in parts}) == 1, "has more categories than columns, or fewer")
    for n_out, levels, mapping, drop in zip(*parts, strict=True):
        n_codes = len(levels)
        if mapping is not None:
            is_right = is_index(mapping, n_codes) and len(mapping) == n_codes
            require_consistent(encoder, is_right, "has categories in no group")
            n_codes = int(mapping.max(initial=-1)) + 1
        require_consistent(encoder, drop is None or 0 <= drop < n_codes, "drops a category that it does not have")
        require_consistent(encoder, n_out == n_codes - (drop is not None), "has more categories than columns, or fewer")


def _are_categories(levels: Any) -> bool:
    """Return whether codes of these categories are their places: scikit-learn bisects all but texts and objects.

    A value that is not a number is the last one.
    """
    if type(levels) is not np.ndarray or levels.ndim != 1:
        return False
    if levels.dtype.kind in "OUS":
        return True
    is_last = len(levels) > 0 and levels[-1] != levels[-1]
    in_order = levels[:-1] if is_last else levels
    return bool(np.all(in_order[:-1] < in_order[1:]))


def _check_neighbors(model: Any) -> None:
    """Refuse neighbours that are not the rows of a matrix, or whose classes are none of the model's."""
    if not hasattr(model, "_fit_X"):
        return
    rows, labels = model._fit_X, model._y
    is_matrix = (issparse(rows) or is_plain_array(rows)) and rows.ndim == 2 and rows.dtype.kind == "f"
    require_consistent(
        model, is_matrix and np.isfinite(rows.data if issparse(rows) else rows).all(), "has rows without numbers"
    )
    require_consistent(model, rows.shape == (model.n_samples_fit_, model.n_features_in_), "has rows of other columns")
    is_searched = model._fit_method == "brute" and model._tree is None and model.effective_metric_ in METRICS
    require_consistent(model, is_searched, "searches neighbours in a way that is not loaded from files")
    options = model.effective_metric_params_  # compiled code reads arrays among them as far as there are rows
    is_plain = isinstance(options, dict) and all(options[name] is None for name in options.keys() - {"p"})
    is_plain = is_plain and isinstance(options.get("p", 2), int | float)
    require_consistent(model, is_plain, "measures distances in a way that is not loaded from files")
    is_array = is_plain_array(labels) and labels.ndim in (1, 2) and len(labels) == rows.shape[0]
    require_consistent(model, is_array, "has other labels than rows")
    if hasattr(model, "classes_"):
        is_list = isinstance(model.classes_, list)
        n_classes = [len(part) for part in (model.classes_ if is_list else [model.classes_])]
        codes = labels.reshape(len(labels), -1)
        is_code = labels.dtype.kind in "iu" and codes.shape[1] == len(n_classes)
        is_code = is_code and bool(np.all((codes >= 0) & (codes < n_classes)))
        require_consistent(model, is_code, "has labels that are none of its classes")


def _check_vocabulary(vectorizer: Any) -> None:
    """Refuse words whose numbers are not those of the columns."""
    numbers = getattr(vectorizer, "vocabulary_", {})
    is_dict = isinstance(numbers, dict) and all(isinstance(number, int | np.integer) for number in numbers.values())
    require_consistent(
        vectorizer, is_dict and sorted(numbers.values()) == list(range(len(numbers))), "numbers its words wrongly"
    )


def _check_random_state(source: Any) -> None:
    """Refuse a position outside of the words that a generator of random numbers has drawn."""
    state = source.get_state(legacy=False) if isinstance(source, np.random.RandomState) else source.bit_generator.state
    limits = {"MT19937": (state["state"].get("pos"), MT19937_WORDS), "Philox": (state.get("buffer_pos"), PHILOX_WORDS)}
    position, n_words = limits.get(state["bit_generator"], (0, 0))
    require_consistent(source, 0 <= position <= n_words, "is at a position that it does not have")


CHECKS: dict[str, Callable[[Any], None]] = {
    "sklearn.preprocessing._encoders.OneHotEncoder": _check_one_hot,
    "sklearn.neighbors._base.KNeighborsMixin": _check_neighbors,
    "sklearn.feature_extraction.text.CountVectorizer": _check_vocabulary,
    "numpy.random.mtrand.RandomState": _check_random_state,
    "numpy.random._generator.Generator": _check_random_state,
}
