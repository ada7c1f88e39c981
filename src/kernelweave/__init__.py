"""Learn from few labels and many unlabelled samples with kernels that choose and mix themselves.

Public names are imported when first used, so that ``import kernelweave`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .estimators.auto.classifier import AutoKernelClassifier
    from .estimators.auto.regressor import AutoKernelRegressor
    from .estimators.cg_boost import CGBoostClassifier
    from .estimators.cg_boost_path import CGBoostClassifierCV, cg_boost_path
    from .estimators.cg_boost_regressor import CGBoostRegressor
    from .estimators.harmonic import HarmonicClassifier, HarmonicRegressor
    from .estimators.kernel_learners import (
        AlignedKernelLearner,
        LabelAwareKernelLearner,
        OrderedSpectralKernelLearner,
    )
    from .estimators.lapsvm import LapSVMClassifier
    from .estimators.learned_kernel_svm import LearnedKernelClassifier, LearnedKernelRegressor
    from .estimators.mkl import MKLClassifier, MKLRegressor
    from .estimators.one_class import CGBoostOneClass
    from .estimators.rkda import RKDAClassifier
    from .estimators.ssmk import SSMKClassifier, SSMKRegressor
    from .estimators.tsvm import TSVMClassifier, TSVMMKLClassifier
    from .inspection.certificate import CertificateDisplay
    from .inspection.comparison import compare_learners
    from .inspection.explain import explain
    from .inspection.importance import column_importance
    from .inspection.influence import InfluenceDisplay
    from .inspection.kernel_weights import KernelWeightsDisplay
    from .inspection.label_map import LabelMapDisplay
    from .inspection.leaderboard import LeaderboardDisplay
    from .inspection.model_report import write_report
    from .inspection.path import PathDisplay
    from .inspection.reliability import ReliabilityDisplay
    from .kernels.cluster import ClusterKernel, DiffusionKernel
    from .kernels.forest import ForestKernel
    from .kernels.groups import one_kernel_per_group
    from .kernels.library import KernelLibrary
    from .kernels.manifold import ManifoldKernel, manifold_family
    from .kernels.pointwise import RBF, FromCallable, Linear, Polynomial, Precomputed, Sigmoid, rbf_family
    from .kernels.wrappers import Normalized, OnColumns, Preprocessed
    from .model_selection import SemiSupervisedCalibration, SemiSupervisedSplit, labeled_scorer
    from .persistence import load, save
    from .solvers.result import FitState

    __version__: str

__all__ = [
    # kernels
    "Linear",
    "Polynomial",
    "RBF",
    "Sigmoid",
    "Normalized",
    "Preprocessed",
    "FromCallable",
    "OnColumns",
    "Precomputed",
    "ManifoldKernel",
    "ClusterKernel",
    "DiffusionKernel",
    "ForestKernel",
    "KernelLibrary",
    "rbf_family",
    "manifold_family",
    "one_kernel_per_group",
    "table_library",
    # models
    "CGBoostClassifier",
    "CGBoostRegressor",
    "CGBoostOneClass",
    "CGBoostClassifierCV",
    "cg_boost_path",
    "SSMKClassifier",
    "SSMKRegressor",
    "MKLClassifier",
    "MKLRegressor",
    "LapSVMClassifier",
    "TSVMClassifier",
    "TSVMMKLClassifier",
    "RKDAClassifier",
    "LearnedKernelClassifier",
    "LearnedKernelRegressor",
    "HarmonicClassifier",
    "HarmonicRegressor",
    "AutoKernelClassifier",
    "AutoKernelRegressor",
    # kernel learners
    "LabelAwareKernelLearner",
    "AlignedKernelLearner",
    "OrderedSpectralKernelLearner",
    # model selection
    "SemiSupervisedSplit",
    "SemiSupervisedCalibration",
    "labeled_scorer",
    # plots
    "KernelWeightsDisplay",
    "CertificateDisplay",
    "PathDisplay",
    "LeaderboardDisplay",
    "ReliabilityDisplay",
    "LabelMapDisplay",
    # what a fitted model can tell
    "explain",
    "InfluenceDisplay",
    # inspection
    "compare_learners",
    "column_importance",
    # what callbacks see
    "FitState",
    # files
    "write_report",
    "save",
    "load",
]

_HOME = {
    "Linear": "kernels.pointwise",
    "Polynomial": "kernels.pointwise",
    "RBF": "kernels.pointwise",
    "Sigmoid": "kernels.pointwise",
    "Normalized": "kernels.wrappers",
    "Preprocessed": "kernels.wrappers",
    "FromCallable": "kernels.pointwise",
    "OnColumns": "kernels.wrappers",
    "Precomputed": "kernels.pointwise",
    "ManifoldKernel": "kernels.manifold",
    "ClusterKernel": "kernels.cluster",
    "DiffusionKernel": "kernels.cluster",
    "ForestKernel": "kernels.forest",
    "KernelLibrary": "kernels.library",
    "rbf_family": "kernels.pointwise",
    "manifold_family": "kernels.manifold",
    "one_kernel_per_group": "kernels.groups",
    "table_library": "kernels.tables",
    "CGBoostClassifier": "estimators.cg_boost",
    "CGBoostRegressor": "estimators.cg_boost_regressor",
    "CGBoostOneClass": "estimators.one_class",
    "CGBoostClassifierCV": "estimators.cg_boost_path",
    "cg_boost_path": "estimators.cg_boost_path",
    "SSMKClassifier": "estimators.ssmk",
    "SSMKRegressor": "estimators.ssmk",
    "MKLClassifier": "estimators.mkl",
    "MKLRegressor": "estimators.mkl",
    "LapSVMClassifier": "estimators.lapsvm",
    "TSVMClassifier": "estimators.tsvm",
    "TSVMMKLClassifier": "estimators.tsvm",
    "RKDAClassifier": "estimators.rkda",
    "LearnedKernelClassifier": "estimators.learned_kernel_svm",
    "LearnedKernelRegressor": "estimators.learned_kernel_svm",
    "HarmonicClassifier": "estimators.harmonic",
    "HarmonicRegressor": "estimators.harmonic",
    "AutoKernelClassifier": "estimators.auto.classifier",
    "AutoKernelRegressor": "estimators.auto.regressor",
    "LabelAwareKernelLearner": "estimators.kernel_learners",
    "AlignedKernelLearner": "estimators.kernel_learners",
    "OrderedSpectralKernelLearner": "estimators.kernel_learners",
    "SemiSupervisedSplit": "model_selection",
    "SemiSupervisedCalibration": "model_selection",
    "labeled_scorer": "model_selection",
    "KernelWeightsDisplay": "inspection.kernel_weights",
    "CertificateDisplay": "inspection.certificate",
    "PathDisplay": "inspection.path",
    "LeaderboardDisplay": "inspection.leaderboard",
    "ReliabilityDisplay": "inspection.reliability",
    "LabelMapDisplay": "inspection.label_map",
    "explain": "inspection.explain",
    "InfluenceDisplay": "inspection.influence",
    "compare_learners": "inspection.comparison",
    "column_importance": "inspection.importance",
    "FitState": "solvers.result",
    "write_report": "inspection.model_report",
    "save": "persistence",
    "load": "persistence",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value = version(__name__)
    elif name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
