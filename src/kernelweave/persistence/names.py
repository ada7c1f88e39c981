"""Which objects a model file may name: data, classes of kernelweave, and classes of scikit-learn written in Python.

Of scikit-learn these are classes that predict by numpy alone, or whose arrays `objects` checks. Others hand arrays to
compiled code that follows indices unchecked: support vector machines of libsvm, trees, clusterings, hashed features.
The same holds of functions: a file may name those that check what they are called with, and say with what else, such
as ``gamma``. Methods, partial functions and constructors called with values of the file are not loaded at all.
"""

from __future__ import annotations

import importlib
from types import FunctionType

import numpy as np

PLAIN_NODES = {  # of skops, with the types that they build
    "JsonNode": {"builtins.str"},
    "ListNode": {"builtins.list", "kernelweave.estimators.shared.records.Records"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "DictNode": {"builtins.dict", "collections.OrderedDict", "kernelweave.estimators.shared.records.NamedNumbers"},
    "SliceNode": {"builtins.slice"},
    "BytesNode": {"builtins.bytes"},
    "BytearrayNode": {"builtins.bytearray"},
    "MaskedArrayNode": {"numpy.ma.MaskedArray"},
    "DTypeNode": {"numpy.dtype"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "SparseMatrixNode": {
        f"scipy.sparse._{form}.{form}_{kind}" for form in ("csr", "csc") for kind in ("array", "matrix")
    },
}
KEY_TYPES = {f"builtins.{name}" for name in ("str", "int", "float", "bool", "tuple", "NoneType", "bytes")}
ROOMS = tuple(f"kernelweave.{room}." for room in ("kernels", "estimators", "labeling", "model_selection", "solvers"))
PYTHON_MODULES = (
    "sklearn.calibration",
    "sklearn.compose._column_transformer",
    "sklearn.compose._target",
    "sklearn.covariance._empirical_covariance",
    "sklearn.cross_decomposition.",
    "sklearn.decomposition._incremental_pca",
    "sklearn.decomposition._kernel_pca",
    "sklearn.decomposition._pca",
    "sklearn.decomposition._truncated_svd",
    "sklearn.discriminant_analysis",
    "sklearn.dummy",
    "sklearn.ensemble._bagging",
    "sklearn.ensemble._stacking",
    "sklearn.ensemble._voting",
    "sklearn.feature_selection._base",
    "sklearn.feature_selection._from_model",
    "sklearn.feature_selection._rfe",
    "sklearn.feature_selection._sequential",
    "sklearn.feature_selection._univariate_selection",
    "sklearn.feature_selection._variance_threshold",
    "sklearn.frozen.",
    "sklearn.gaussian_process.",
    "sklearn.impute._base",
    "sklearn.isotonic",
    "sklearn.kernel_approximation",
    "sklearn.kernel_ridge",
    "sklearn.linear_model.",
    "sklearn.metrics._scorer",
    "sklearn.model_selection.",
    "sklearn.multiclass",
    "sklearn.multioutput",
    "sklearn.naive_bayes",
    "sklearn.neural_network.",
    "sklearn.pipeline",
    "sklearn.preprocessing.",
    "sklearn.random_projection",
    "sklearn.semi_supervised._self_training",
    "sklearn.utils._metadata_requests",
)
PYTHON_CLASSES = {  # beside compiled ones
    "sklearn.feature_extraction.text.CountVectorizer",
    "sklearn.feature_extraction.text.TfidfTransformer",
    "sklearn.feature_extraction.text.TfidfVectorizer",
    "sklearn.neighbors._classification.KNeighborsClassifier",
    "sklearn.neighbors._nearest_centroid.NearestCentroid",
    "sklearn.neighbors._regression.KNeighborsRegressor",
    "sklearn.svm._classes.LinearSVC",
    "sklearn.svm._classes.LinearSVR",
}
# Modules whose public functions compare true with predicted values by numpy alone.
SCORES = ("sklearn.metrics._classification", "sklearn.metrics._ranking", "sklearn.metrics._regression")
# Measures that check all of their arguments. Not pairwise_distances: scipy does not look at the shape of ``VI``.
MEASURES = {
    "sklearn.metrics.pairwise": (
        *("additive_chi2_kernel", "chi2_kernel", "cosine_distances", "cosine_similarity", "euclidean_distances"),
        *("laplacian_kernel", "linear_kernel", "manhattan_distances", "nan_euclidean_distances", "polynomial_kernel"),
        *("rbf_kernel", "sigmoid_kernel"),
    ),
    "sklearn.feature_selection._mutual_info": ("mutual_info_classif", "mutual_info_regression"),
    "sklearn.feature_selection._univariate_selection": (
        *("chi2", "f_classif", "f_oneway", "f_regression", "r_regression"),
    ),
}
# What a class that is built from its attributes is not: these have loaders of their own, or are no part of a model.
ITEM_TYPES = (dict, list, tuple, set, frozenset, str, bytes, bytearray, np.ndarray, np.generic, BaseException)
HEAP_TYPE = 1 << 9  # flag of CPython for classes that are not compiled in


def is_loaded(loader: str, name: str) -> bool:
    """Return whether an object is loaded from files.

    Parameters
    ----------
    loader : str
        Of skops: how the object is built.
    name : str
        Of its type, or of the function.
    """
    if loader in PLAIN_NODES:
        return name in PLAIN_NODES[loader]
    if loader == "NdArrayNode":
        return name == "numpy.ndarray" or is_scalar_type(name)
    if loader == "TypeNode":
        return name in KEY_TYPES or is_scalar_type(name)
    if loader == "FunctionNode":
        return is_numeric_function(name)
    return loader == "ObjectNode" and is_python_class(name)


def is_scalar_type(name: str) -> bool:
    """Return whether this is a type of numpy for single values."""
    module, _, attribute = name.rpartition(".")
    thing = getattr(np, attribute, None) if module == "numpy" else None
    return isinstance(thing, type) and issubclass(thing, np.generic) and not issubclass(thing, np.object_ | np.void)


def is_python_class(name: str) -> bool:
    """Return whether kernelweave or scikit-learn defines this class, in Python, and files may hold it."""
    module, _, _ = name.rpartition(".")
    is_listed = name in PYTHON_CLASSES or any(
        module == each or (each.endswith(".") and module.startswith(each)) for each in PYTHON_MODULES
    )
    is_test = ".tests." in name
    thing = _find(name) if (is_listed and not is_test) or module.startswith(ROOMS) else None
    if not isinstance(thing, type) or issubclass(thing, ITEM_TYPES):
        return False
    return all(base.__flags__ & HEAP_TYPE for base in thing.__mro__ if base.__module__.startswith("sklearn."))


def is_numeric_function(name: str) -> bool:
    """Return whether this is a ufunc, or a function of scikit-learn that computes from checked arguments.

    Functions of kernelweave are none of a model's parts, and some write files: a file could have them called.
    """
    module, _, attribute = name.rpartition(".")
    if module in ("numpy", "scipy.special"):
        return isinstance(getattr(importlib.import_module(module), attribute, None), np.ufunc)
    is_score = module in SCORES and not attribute.startswith("_")
    is_listed = is_score or attribute in MEASURES.get(module, ())
    return is_listed and isinstance(_find(name), FunctionType)


def _find(name: str) -> object:
    """Return what a module defines under a name; None where there is none, or where it was imported from elsewhere."""
    module, _, attribute = name.rpartition(".")
    try:
        thing = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):
        return None
    return thing if getattr(thing, "__module__", None) == module else None
