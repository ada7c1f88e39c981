"""The checks of scikit-learn, and all that are expected to fail, with the reason."""

import pytest
from common.estimators import ESTIMATORS
from sklearn.utils.estimator_checks import parametrize_with_checks

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
    LabelAwareKernelLearner,
    LapSVMClassifier,
    LearnedKernelClassifier,
    LearnedKernelRegressor,
    Linear,
    MKLClassifier,
    MKLRegressor,
    OrderedSpectralKernelLearner,
    RKDAClassifier,
    SSMKClassifier,
    SSMKRegressor,
    TSVMClassifier,
    TSVMMKLClassifier,
)

PAIR = [RBF(), Linear()]
VOTES = LabelAwareKernelLearner(n_eigenvectors=5)
DENSE, SPARSE = (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))


def weights(reason, checks=(DENSE, SPARSE)):
    return dict.fromkeys(checks, reason)


def stops(gap):
    return weights(f"stops at a relative gap of {gap}, at another point for repeated rows")


GIVEN = {"C": 10.0, "weighting": "learned"}
ROWS_ALIKE = "{} take all rows alike: a weight is not a number of rows"
# Estimators, and the checks that fail. Where a default is many fits, one or two of these.
CHECKED = [
    (CGBoostClassifier(C=10.0), {}),
    (CGBoostClassifier(RBF(), C=10.0, penalty="l2"), stops(0.1)),
    (CGBoostClassifier(PAIR, C=10.0, penalty="rkhs"), stops(0.01)),
    (
        CGBoostClassifier(RBF(), nu=0.2),
        {"check_class_weight_classifiers": "weights of 1000 to 1 leave no nu that a free offset allows"},
    ),
    (CGBoostRegressor(RBF()), {}),
    (CGBoostRegressor(RBF(), C=10.0, penalty="l2"), stops(0.1)),
    (CGBoostRegressor(PAIR, C=10.0, penalty="rkhs"), stops(0.01)),
    (CGBoostOneClass(), {}),
    (CGBoostOneClass(penalty="rkhs", positive=False), stops(0.01)),
    (CGBoostClassifierCV(RBF(), Cs=[0.1, 10.0], cv=2), {}),
    (SSMKClassifier(C=10.0), {}),
    (SSMKClassifier(PAIR, C=10.0, column_scale=None, class_weight="balanced"), {}),
    (SSMKRegressor(C=10.0), {}),
    (MKLClassifier(), {}),
    (MKLClassifier(PAIR, **GIVEN, tol=1e-9), {}),
    (MKLClassifier(PAIR, **GIVEN, loss="squared_hinge", tol=1e-9), {}),
    (MKLClassifier(PAIR, loss="squared_hinge", C="learned", tol=1e-9), {}),
    (MKLClassifier(PAIR, **GIVEN, norm=2, tol=1e-9), {}),
    (MKLClassifier(PAIR, C=10.0, weighting="uniform", tol=1e-9), {}),
    (MKLClassifier(PAIR, **GIVEN, share_weights=False, tol=1e-9), {}),
    (MKLRegressor(PAIR, **GIVEN, tol=1e-9), {}),
    (MKLRegressor(PAIR, **GIVEN, loss="squared_epsilon_insensitive", tol=1e-9), {}),
    (LapSVMClassifier(), weights(ROWS_ALIKE.format("neighbour graphs"))),
    (TSVMClassifier(), weights("stops at a relative gap of 1e-4, at another point for repeated rows", [SPARSE])),
    (TSVMMKLClassifier(), weights(ROWS_ALIKE.format("neighbour graphs"))),
    (RKDAClassifier(), {}),
    (RKDAClassifier(ridge=1e-3), {}),
    (RKDAClassifier(weighting="auto"), {}),
    (RKDAClassifier(weighting="uniform"), {}),
    (LearnedKernelClassifier(VOTES, C=10.0), weights(ROWS_ALIKE.format("eigenvectors"))),
    (LearnedKernelRegressor(VOTES, C=10.0), weights(ROWS_ALIKE.format("eigenvectors"))),
    (HarmonicClassifier(), {}),
    (HarmonicClassifier(kernel=RBF()), {}),
    (HarmonicRegressor(), {}),
    (LabelAwareKernelLearner(), weights(ROWS_ALIKE.format("eigenvectors"))),
    (AlignedKernelLearner(), weights(ROWS_ALIKE.format("eigenvectors"))),
    (OrderedSpectralKernelLearner(), weights(ROWS_ALIKE.format("eigenvectors"))),
    (AutoKernelClassifier(["RKDA", MKLClassifier(RBF(), C=10.0)]), weights(ROWS_ALIKE.format("folds"))),
    (AutoKernelRegressor(["harmonic", MKLRegressor(RBF(), C=10.0)]), weights(ROWS_ALIKE.format("folds"))),
]


def expected_failures(estimator):
    return next(failures for listed, failures in CHECKED if repr(listed) == repr(estimator))


def test_every_estimator_is_checked_and_a_failure_has_a_reason():
    assert {type(estimator).__name__ for estimator, _ in CHECKED} == {case.name for case in ESTIMATORS}
    assert all(len(reason.split()) > 5 for _, failures in CHECKED for reason in failures.values())


@parametrize_with_checks([estimator for estimator, _ in CHECKED], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([CGBoostClassifier(), SSMKClassifier(), SSMKRegressor()])
def test_scikit_learn_checks_with_a_cost_by_folds(estimator, check):
    check(estimator)
