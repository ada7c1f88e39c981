"""Every public estimator, once: what is listed here is tested by all of tests/common.

`ESTIMATORS` has one case a class, with settings of which a fit takes milliseconds. `VARIANTS` are settings that take
another way through the code, for tests that ask what a model gives out. A case says what of a test applies to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.utils.validation import has_fit_parameter

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    AutoKernelClassifier,
    AutoKernelRegressor,
    CGBoostClassifier,
    CGBoostClassifierCV,
    CGBoostOneClass,
    CGBoostRegressor,
    HarmonicClassifier,
    HarmonicRegressor,
    KernelLibrary,
    LabelAwareKernelLearner,
    LapSVMClassifier,
    LearnedKernelClassifier,
    LearnedKernelRegressor,
    Linear,
    ManifoldKernel,
    MKLClassifier,
    MKLRegressor,
    OrderedSpectralKernelLearner,
    Polynomial,
    RKDAClassifier,
    SSMKClassifier,
    SSMKRegressor,
    TSVMClassifier,
    TSVMMKLClassifier,
)
from kernelweave.solvers.result import Status

PAIR = [RBF(), Linear()]
SHARE, LEFT = r"( *\d+%  )?", r"(, \d+:\d\d:\d\d left)?"
FIGURES = r"objective [-\d.e+]+, relative gap \d\.\d+e[-+]\d+, \d+\.\d s" + LEFT
ROUND = rf"{SHARE}{{name}}: round \d+, \d+ columns, {FIGURES}"
PASS = rf"{SHARE}{{name}}\S*: \d+ kernels? x \d+ centres.*; one pass over all columns takes about .*"
BINDING = r"{name}: \d+ kernels? on \d+ rows|{name}: folds of \d+ labelled rows choose .*"
STEP = rf"{BINDING}|{SHARE}{{name}}: step \d+, (\d+ kernels, )?{FIGURES}"
COST = r"{name}: C=[\d.]+ by \d+ folds of \d+ labelled rows"
CHOICE = r"{name}: (equal|learned) weights; squared error at held-out rows: .*"
ANNEALING = rf"{SHARE}{{name}}: annealing at [\d.]+, step \d+, objective [\d.e+]+, \d+ slopes changed, \d+\.\d s{LEFT}"
FOLD = r"{name}: (\d+ folds compare .*|learner \d+ of \d+, (\d+ base kernels? on .*|fold \d+ of \d+|C=[\d.e+-]+))"
GRAPH_STEPS = r"{name}: \d+ steps of conjugate gradients, largest error \d\.\de[-+]\d+"
ALIGNED = r"{name}: \d+ of \d+ base kernels have a weight, alignment [\d.e-]+"
SEARCH = rf" *\d+%  {{name}}: (trying|cross-validating) [\w -]+{LEFT}| *100%  {{name}}: \d+ candidates tried"


@dataclass(frozen=True, eq=False)
class Case:
    """An estimator, and what of the common tests applies to it.

    Attributes
    ----------
    estimator : estimator
        Not fitted.
    exact : mapping
        Parameters with which two ways of computing the same model agree up to `close`.
    close : float
        A share of the largest output. Machines stop at a gap, which is quadratic in the distance from the optimum.
    kernel : str, optional
        The parameter that holds the kernel or the kernels; None where it is inside another estimator.
    needs_labels : bool
        Whether every row must have a label.
    draws : mapping
        Parameters with which something is drawn at random.
    limits : mapping of str to (parameters, status)
        What stops a fit early, and the status that says so.
    line : str
        What verbose=2 prints, a regular expression.
    """

    estimator: BaseEstimator
    exact: Mapping[str, Any] = field(default_factory=dict)
    close: float = 1e-6
    kernel: str | None = "kernels"
    needs_labels: bool = False
    draws: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, tuple[Mapping[str, Any], Status]] = field(default_factory=dict)
    line: str = ""

    @property
    def name(self) -> str:
        return type(self.estimator).__name__

    @property
    def task(self) -> str:
        """What is learned: "classes", "numbers", "one class" or "features"."""
        kinds = {"classes": is_classifier, "numbers": is_regressor, "one class": is_outlier_detector}
        return next((task for task, is_one in kinds.items() if is_one(self.estimator)), "features")

    @property
    def max_classes(self) -> int:
        """As many classes as tests of several take: three, or two where there can be no more."""
        return 2 if getattr(self.estimator, "scatter", "") == "within" else 3

    @property
    def parameters(self) -> set[str]:
        return set(self.estimator.get_params(deep=False))

    @property
    def refuses_unlabeled(self) -> bool:
        return self.needs_labels and not isinstance(self.estimator, MKLClassifier | MKLRegressor)

    @property
    def takes_weights(self) -> bool:
        return has_fit_parameter(self.estimator, "sample_weight")

    @property
    def has_expansion(self) -> bool:
        """Whether an output is a sum over the kernels."""
        return (
            self.task != "features"
            and not self.combines_models
            and not isinstance(self.estimator, HarmonicClassifier | HarmonicRegressor | RKDAClassifier)
        )

    @property
    def combines_models(self) -> bool:
        """Whether it is made of other models: kernels, costs and iterations are theirs, and so are their limits.

        It is certified for its weights alone, and an interrupt ends the search with what was tried so far.
        """
        return isinstance(self.estimator, AutoKernelClassifier | AutoKernelRegressor)

    def model(self, **options: Any) -> Any:
        """A copy of the estimator, with a seed, and other parameters if given."""
        return clone(self.estimator).set_params(random_state=0, **options)

    def exact_model(self, **options: Any) -> Any:
        return self.model(**{**self.exact, **options})

    def with_kernel(self, kernel: Any, **options: Any) -> Any:
        """A copy that is exact, with `kernel` as its only one."""
        name = self.kernel or "learner__kernel"
        return self.model(**{**self.exact, name: kernel, **options})


MIXTURE = {
    "exact": {"tol": 1e-8},
    "draws": {"centers": 15},
    "limits": {"columns": ({"max_columns": 1}, Status.MAX_COLUMNS), "time": ({"max_time": 1e-9}, Status.MAX_TIME)},
    "line": f"{ROUND}|{PASS}|{COST}",
}
BOOST = {**MIXTURE, "needs_labels": True}
EVERY_ROW = {"close": 1e-3, "draws": {}}  # must be a centre with the RKHS norm
MACHINE = {"exact": {"tol": 1e-10}, "close": 1e-4}
STEPS = {"steps": ({"max_iter": 1, "tol": 1e-12}, Status.MAX_ITER)}
WEIGHTED = {**MACHINE, "needs_labels": True, "limits": STEPS, "line": STEP}
GIVEN = {"C": 10.0, "weighting": "learned"}  # so that folds choose nothing
RAMPS = {
    **MACHINE,
    "close": 1e-3,
    "draws": {"n_restarts": 1, "safe": True},
    "limits": {"steps": ({"max_iter": 1, "annealing": False, "tol": 1e-12}, Status.MAX_ITER)},
    "line": ANNEALING,
}
LEARNED = {**MACHINE, "kernel": None, "draws": {"C": "cv"}, "line": FOLD}
GRAPH = {"exact": {"metric": "euclidean"}, "kernel": "kernel", "line": GRAPH_STEPS}
LEARNER = {"kernel": "kernel", "draws": {"n_landmarks": 15}, "line": ALIGNED}
VOTES = LabelAwareKernelLearner(n_eigenvectors=5)
ONCE = {"kernels": PAIR, "n_repeats": 1}
# Graphs have other neighbours by default, and one view is another kernel, where rows are sparse or row numbers.
CLASSIFIERS = [("SVM", MKLClassifier(**GIVEN, tol=1e-10)), ("RKDA", RKDAClassifier(tol=1e-10))]
REGRESSORS = [("SVM", MKLRegressor(**GIVEN, tol=1e-10)), ("mean", MKLRegressor(C=1.0, weighting="uniform", tol=1e-10))]
COMBINATION = {"close": 1e-3, "line": SEARCH}

ESTIMATORS = [
    Case(CGBoostClassifier(PAIR, C=10.0), **BOOST),
    Case(CGBoostRegressor(PAIR, C=10.0), **BOOST),
    Case(CGBoostOneClass(RBF(), nu=0.2), **MIXTURE),
    Case(CGBoostClassifierCV(PAIR, Cs=[0.1, 10.0], cv=2), **BOOST),
    Case(SSMKClassifier(PAIR, C=10.0), **MIXTURE),
    Case(SSMKRegressor(PAIR, C=10.0), **MIXTURE),
    Case(MKLClassifier(PAIR, **GIVEN), **WEIGHTED),
    Case(MKLRegressor(PAIR, **GIVEN), **WEIGHTED),
    Case(
        LapSVMClassifier(RBF()),
        **{**MACHINE, "exact": {"tol": 1e-10, "metric": "euclidean"}, "kernel": "kernel", "line": STEP},
    ),
    Case(TSVMClassifier(RBF()), **RAMPS, kernel="kernel"),
    Case(TSVMMKLClassifier(PAIR), **RAMPS),
    Case(RKDAClassifier(PAIR), **{**WEIGHTED, "needs_labels": False}, draws={"n_landmarks": 15}),
    Case(LearnedKernelClassifier(VOTES, C=10.0), **LEARNED),
    Case(LearnedKernelRegressor(VOTES, C=10.0), **LEARNED),
    Case(HarmonicClassifier(), **GRAPH),
    Case(HarmonicRegressor(), **GRAPH),
    Case(LabelAwareKernelLearner(), **LEARNER),
    Case(AlignedKernelLearner(PAIR), **{**LEARNER, "kernel": "kernels"}),
    Case(OrderedSpectralKernelLearner(), **LEARNER),
    Case(
        AutoKernelClassifier(["RKDA", "harmonic", MKLClassifier(RBF(), **GIVEN)], **ONCE),
        exact={"candidates": CLASSIFIERS},
        **COMBINATION,
    ),
    Case(
        AutoKernelRegressor(["harmonic", MKLRegressor(**GIVEN)], **ONCE),
        exact={"candidates": REGRESSORS},
        **COMBINATION,
    ),
]
VARIANTS = [
    Case(CGBoostClassifier(KernelLibrary(PAIR, priority=["Linear()"]), penalty="l2"), **{**BOOST, "close": 1e-2}),
    Case(CGBoostClassifier(PAIR, penalty="rkhs"), **{**BOOST, **EVERY_ROW}),
    Case(CGBoostClassifier(PAIR, nu=0.2), **BOOST),
    Case(CGBoostRegressor([Linear() + Polynomial(2), RBF()], epsilon=0.2, penalty="rkhs"), **{**BOOST, **EVERY_ROW}),
    Case(CGBoostOneClass(RBF(), penalty="rkhs", positive=False), **{**MIXTURE, **EVERY_ROW}),
    Case(CGBoostRegressor(PAIR), **BOOST),
    Case(SSMKClassifier(), **MIXTURE),
    Case(MKLClassifier(PAIR, loss="squared_hinge", C="learned"), **WEIGHTED),
    Case(
        MKLClassifier(PAIR, **GIVEN, norm=2, share_weights=False, dtype="float32"),
        **{**WEIGHTED, "exact": {}, "close": 0.1},
    ),
    Case(MKLClassifier(PAIR), **{**WEIGHTED, "limits": {}}),
    Case(MKLRegressor(PAIR, **GIVEN, scale="variance", loss="squared_epsilon_insensitive"), **WEIGHTED),
    Case(TSVMMKLClassifier([RBF(), ManifoldKernel(RBF(), 5, metric="euclidean")], norm=1), **RAMPS),
    Case(RKDAClassifier(PAIR, n_landmarks=20), **{**WEIGHTED, "needs_labels": False}),
    Case(RKDAClassifier(PAIR, scatter="within", ridge=0.1), **{**WEIGHTED, "needs_labels": False}),
    Case(RKDAClassifier(PAIR, ridge=0.1, formulation="joint"), **{**WEIGHTED, "needs_labels": False}),
    Case(RKDAClassifier(PAIR, unlabeled_scatter=True), **{**WEIGHTED, "needs_labels": False}),
    Case(RKDAClassifier(PAIR, weighting="auto"), **{**WEIGHTED, "needs_labels": False, "line": f"{STEP}|{CHOICE}"}),
    Case(LearnedKernelClassifier([VOTES, AlignedKernelLearner(PAIR)]), **LEARNED),
    Case(HarmonicClassifier(kernel=RBF()), **GRAPH),
    Case(LabelAwareKernelLearner(basis="laplacian", leave_one_out=True, extra_kernels=[Linear()]), **LEARNER),
]


def cases(*tasks: str, variants: bool = False, where: Any = None) -> Any:
    """Parametrise over the estimators of some tasks (all, if none is named) for which `where` holds."""
    listed = [case for case in ESTIMATORS + VARIANTS * variants if not tasks or case.task in tasks]
    return pytest.mark.parametrize("case", [case for case in listed if where is None or where(case)], ids=case_id)


def case_id(case: Case) -> str:
    if case in ESTIMATORS:
        return case.name
    return " ".join(repr(case.estimator).split()).replace("[RBF(), Linear()]", "PAIR")


def having(*parameters: str) -> Any:
    return lambda case: case.parameters.issuperset(parameters)


# Samples: small, read-only, of the kind that the task asks for


def sample(case: Case, seed: int = 0, n: int = 40, n_labeled: int = 24, n_classes: int = 2) -> tuple[Any, Any]:
    """Rows, and classes or numbers; NaN for rows without a label, where the estimator takes these."""
    X, y = labeled_sample(case, seed, n, n_classes)
    if case.needs_labels or case.task == "one class":
        return X, y
    return X, np.where(np.arange(n) < n_labeled, y, np.nan)


def labeled_sample(case: Case, seed: int = 0, n: int = 40, n_classes: int = 2) -> tuple[Any, Any]:
    """Rows, and a class (0, 1, ...) or number for each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    value = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.2 * rng.normal(size=n)
    X.setflags(write=False)
    if case.task == "numbers":
        return X, value
    y = np.digitize(value, np.quantile(value, np.linspace(0, 1, n_classes + 1)[1:-1]))
    y[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)  # every class among the first rows
    return X, y


@cache
def fitted(case: Case, n_classes: int = 2) -> Any:
    """The model of the sample, fitted once; it must not be changed."""
    X, y = sample(case, n_classes=n_classes)
    return case.model().fit(X, y)


@cache
def fitted_exact(case: Case) -> Any:
    return case.exact_model().fit(*sample(case))


@cache
def fitted_fully(case: Case) -> Any:
    """The model of the sample in which every row has a label."""
    return case.model().fit(*labeled_sample(case))


# What a model gives out


def outputs(model: Any, X: Any) -> np.ndarray:
    """The numbers that predictions are made of; of features, the products about their mean.

    No change of basis moves these. Kernels that differ in constants alone are equally aligned with the labels.
    """
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)(X))
    features = np.asarray(model.transform(X))
    features = features - features.mean(axis=0)
    return features @ features.T


def assert_close(found: np.ndarray, expected: np.ndarray, share: float) -> None:
    """Arrays agree up to a share of the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=share * max(np.abs(expected).max(), 1e-300))
