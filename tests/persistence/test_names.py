import importlib
import pkgutil
from types import FunctionType

import pytest
import sklearn.feature_selection
import sklearn.metrics

from kernelweave.persistence.names import MEASURES, is_loaded


@pytest.mark.parametrize(
    "name",
    [
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.preprocessing._data.StandardScaler",
        "sklearn.svm._classes.LinearSVC",
        "kernelweave.kernels.pointwise.RBF",
        "kernelweave.solvers.result.Status",
    ],
)
def test_classes_written_in_python_are_loaded(name):
    assert is_loaded("ObjectNode", name)


@pytest.mark.parametrize(
    "name",
    [
        "sklearn.svm._classes.SVC",  # libsvm follows its arrays unchecked
        "sklearn.svm._classes.NuSVC",
        "sklearn.svm._classes.SVR",
        "sklearn.svm._classes.OneClassSVM",
        "sklearn.cluster._kmeans.KMeans",
        "sklearn.neighbors._unsupervised.NearestNeighbors",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.tree._tree.Tree",
        "sklearn.tree._classes.DecisionTreeClassifier",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_extraction._hash.FeatureHasher",
        "sklearn.linear_model._sgd_fast.Hinge",
        "sklearn.model_selection.tests.test_search.FailingClassifier",
        "sklearn.callback._scoring_monitor.ScoringMonitor",  # opens sockets
        "sklearn.pipeline.clone",
        "sklearn.no_such_module.Thing",
        "sklearn.preprocessing._data.NoSuchScaler",
        "sklearn_other.Thing",
        "kernelweave.persistence.model_file.os",
        "kernelweave.files.atomic_write",
        "kernelweave.cli.streams.Output",
        "kernelweave.kernels.graph.import_module",
        "kernelweave.kernels.graph.NearestNeighbors",
        "os.system",
        "builtins.eval",
    ],
)
@pytest.mark.parametrize("loader", ["ObjectNode", "FunctionNode", "TypeNode", "ListNode", "DictNode"])
def test_others_are_not(name, loader):
    assert not is_loaded(loader, name)


@pytest.mark.parametrize(
    "name, expected",
    [
        ("sklearn.metrics._classification.f1_score", True),
        ("sklearn.feature_selection._univariate_selection.f_classif", True),
        ("numpy.log1p", True),
        ("scipy.special.expit", True),
        ("sklearn.metrics.pairwise.laplacian_kernel", True),
        ("sklearn.feature_selection._mutual_info.mutual_info_classif", True),
        ("sklearn.metrics.pairwise.pairwise_distances", False),  # scipy does not check the shape of VI
        ("sklearn.metrics.pairwise._chi2_kernel_fast", False),
        ("sklearn.metrics._pairwise_fast._chi2_kernel_fast", False),  # compiled: writes where it is told
        ("sklearn.metrics._dist_metrics.newObj", False),
        ("sklearn.metrics.tests.test_pairwise.test_pairwise_distances", False),
        ("numpy.save", False),
        ("numpy.load", False),
        ("sklearn.metrics.pairwise.partial", False),  # imported there, from elsewhere
        ("sklearn.utils._testing._delete_folder", False),  # does more than compute
        ("kernelweave.files.atomic_write", False),
    ],
)
def test_functions_that_only_compute_are_loaded(name, expected):
    assert is_loaded("FunctionNode", name) is expected


@pytest.mark.parametrize(
    "name",
    [
        "kernelweave.estimators.shared.records.NamedNumbers",
        "kernelweave.estimators.shared.records.Records",
        "kernelweave.kernels.defaults.DesignKernels",
        "sklearn.utils._bunch.Bunch",
    ],
)
def test_lists_and_dicts_are_not_built_from_attributes(name):
    assert not is_loaded("ObjectNode", name)


def test_every_listed_measure_is_there():
    for module, names in MEASURES.items():
        for name in names:
            assert is_loaded("FunctionNode", f"{module}.{name}"), name


def test_no_compiled_function_is_loaded():
    for package in (sklearn.metrics, sklearn.feature_selection):
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if ".tests" in found.name:
                continue
            for name, thing in vars(importlib.import_module(found.name)).items():
                if is_loaded("FunctionNode", f"{found.name}.{name}"):
                    assert isinstance(thing, FunctionType), f"{found.name}.{name}"


@pytest.mark.parametrize(
    "loader", ["MethodNode", "PartialNode", "OperatorFuncNode", "ConstructorFromReduceNode", "ReduceNode", "NoSuchNode"]
)
def test_nothing_is_called_with_values_of_a_file(loader):
    assert not is_loaded(loader, "kernelweave.kernels.pointwise.RBF")
    assert not is_loaded(loader, "sklearn.metrics._classification.f1_score")


def test_arrays_have_plain_types():
    assert is_loaded("NdArrayNode", "numpy.ndarray")
    assert is_loaded("NdArrayNode", "numpy.float64")
    assert is_loaded("TypeNode", "numpy.str_")
    assert not is_loaded("NdArrayNode", "numpy.void")
    assert not is_loaded("NdArrayNode", "numpy.object_")
    assert not is_loaded("NdArrayNode", "numpy.memmap")
    assert not is_loaded("TypeNode", "builtins.eval")
