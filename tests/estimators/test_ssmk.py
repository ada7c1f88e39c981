import pickle

import numpy as np
import pandas as pd
import pytest
from checks.kkt import assert_lp_optimal
from checks.rounding import assert_same_but_for_rounding
from oracles.reference import full_lp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kernelweave import (
    RBF,
    FromCallable,
    KernelLibrary,
    Linear,
    Normalized,
    OnColumns,
    Polynomial,
    Precomputed,
    Preprocessed,
    SemiSupervisedSplit,
    Sigmoid,
    SSMKClassifier,
    rbf_family,
)
from kernelweave.estimators import ssmk
from kernelweave.kernels import defaults
from kernelweave.solvers.margin import classification_rows
from kernelweave.solvers.result import Status


def partly_labeled(seed=0, n=60, n_labeled=20, n_features=4, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    codes = np.digitize(
        X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n), np.linspace(0, 1.5, n_classes + 1)[1:-1]
    )
    codes[:n_classes] = np.arange(n_classes)
    y = codes.astype(float)
    y[n_labeled:] = np.nan
    return X, y, codes


def one_sided(A, B):
    """A kernel that is neither symmetric nor positive semi-definite."""
    return np.tanh(A @ B.T) + A[:, :1] - 0.5 * B[:, 1]


MIXED = [
    Linear(),
    Polynomial(degree=3),
    RBF(),
    Sigmoid(gamma=0.5, coef0=-0.2),
    FromCallable(one_sided),
    Normalized(Linear()),
]


@pytest.mark.parametrize("seed", range(20))
def test_the_objective_is_the_optimum_of_the_printed_problem(seed):
    rng = np.random.default_rng(seed)
    X, y, _ = partly_labeled(seed, n=int(rng.integers(30, 90)), n_labeled=int(rng.integers(8, 30)))
    kernels = [MIXED[p] for p in rng.choice(len(MIXED), size=int(rng.integers(2, 6)), replace=False)]
    C = 10.0 ** rng.uniform(-1, 2)
    model = SSMKClassifier(kernels, C=C, column_scale=None, tol=1e-8).fit(X, y)

    labeled = ~np.isnan(y)
    bound = KernelLibrary(kernels).bind(X, np.random.default_rng(0))
    K = bound.columns(np.arange(bound.n_columns), np.flatnonzero(labeled))
    signs = 2 * y[labeled] - 1
    cost = np.full(labeled.sum(), C)
    optimum = full_lp(K, classification_rows(signs, cost)).objective
    assert model.objective_ == pytest.approx(optimum, rel=1e-6)
    assert abs(model.objective_ - optimum) <= model.certificate_.gap + 1e-9 * optimum
    assert model.certificate_.relative <= 1e-8
    coef = np.zeros(bound.n_columns)
    for group in model.expansion_.groups:
        coef[group.kernel * len(X) + group.centers] = group.coef[:, 0]
    assert_lp_optimal(K, signs, cost, coef, model.intercept_[0], model.dual_coef_[labeled, 0])


@pytest.mark.parametrize("column_scale", ["norm", "std"])
def test_scaled_columns_solve_the_scaled_problem(column_scale):
    X, y, _ = partly_labeled(1)
    model = SSMKClassifier([Linear(), RBF()], C=10.0, column_scale=column_scale, tol=1e-8).fit(X, y)
    bound = KernelLibrary([Linear(), RBF()]).bind(X, np.random.default_rng(0))
    K = bound.columns(np.arange(bound.n_columns), np.arange(20))
    scale = np.sqrt((K**2).mean(axis=0))
    if column_scale == "std":
        deviations = K.std(axis=0).reshape(2, -1)
        scale = np.maximum(deviations, 0.1 * np.sqrt((deviations**2).mean(axis=1))[:, None]).ravel()
    rows = classification_rows(2 * y[:20] - 1, np.full(20, 10.0))
    assert model.objective_ == pytest.approx(full_lp(K / scale, rows).objective, rel=1e-7)


def test_unlabeled_rows_may_be_centers_and_change_the_model():
    X, y, _ = partly_labeled(3, n=200, n_labeled=12)
    with_them = SSMKClassifier([RBF()]).fit(X, y)
    without = SSMKClassifier([RBF()]).fit(X[:12], y[:12])
    assert any((group.centers >= 12).any() for group in with_them.expansion_.groups)
    assert all((group.centers < 12).all() for group in without.expansion_.groups)


def test_prediction_uses_the_active_centers_only():
    X, y, _ = partly_labeled(4, n=300)
    model = SSMKClassifier([Linear(), rbf_family()]).fit(X, y)
    assert model.n_evaluations_ == model.n_columns_ == sum(len(group.centers) for group in model.expansion_.groups)
    assert all(group.bound.n_rows == len(group.centers) for group in model.expansion_.groups)
    assert model.n_columns_ < 40


def test_kernel_usage_counts_columns_and_shares():
    X, y, _ = partly_labeled(6)
    model = SSMKClassifier([("line", Linear()), ("curve", OnColumns(RBF(), [0, 1], source="first two"))]).fit(X, y)
    assert [record["name"] for record in model.kernel_usage_] == ["line", "curve"]
    assert [record["source"] for record in model.kernel_usage_] == ["all columns", "first two"]
    assert sum(record["columns"] for record in model.kernel_usage_) == model.n_columns_
    assert sum(record["share"] for record in model.kernel_usage_) == pytest.approx(1.0)


def test_history_tells_each_round():
    X, y, _ = partly_labeled(7)
    model = SSMKClassifier(tol=1e-7).fit(X, y)
    assert len(model.history_) == model.n_iter_
    assert model.history_[-1]["objective"] == pytest.approx(model.objective_, rel=1e-9)
    assert {"iteration", "objective", "bound", "gap", "tau", "n_columns", "seconds"} <= set(model.history_[0])


def test_several_classes_are_separated_one_by_one():
    X, truth = load_iris(return_X_y=True)
    y = np.where(np.random.default_rng(0).random(150) < 0.3, truth, -1)
    model = SSMKClassifier(C=10.0, random_state=0).fit(X, y)
    assert model.objective_.shape == (3,)
    assert model.decision_function(X).shape == (150, 3)
    assert model.certificate_.gap <= 1e-6 * model.objective_.sum()
    assert np.mean(model.transduction_ == truth) > 0.92
    assert {record["class"] for record in model.history_} == {0, 1, 2}
    alone = SSMKClassifier(C=10.0, random_state=0).fit(X, np.where(y == 2, "yes", np.where(y < 0, None, "no")))
    assert model.objective_[2] == pytest.approx(alone.objective_, rel=1e-6)


def test_single_precision_stays_and_agrees():
    X, y, _ = partly_labeled(10)
    kernels = [Linear(), *rbf_family()]
    model = SSMKClassifier(kernels).fit(X.astype(np.float32), y)
    assert model.expansion_.groups[0].bound.X.dtype == np.float32
    np.testing.assert_allclose(
        model.decision_function(X.astype(np.float32)), SSMKClassifier(kernels).fit(X, y).decision_function(X), atol=0.02
    )


def test_sources_are_picked_by_name_and_strings_go_through_a_column_transformer():
    X, y, _ = partly_labeled(11)
    frame = pd.DataFrame(X, columns=["gene_a", "gene_b", "clinic_age", "clinic_dose"])
    frame["clinic_sex"] = np.where(X[:, 0] > 0.3, "f", "m")
    encode = ColumnTransformer(
        [("onehot", OneHotEncoder(sparse_output=False), ["clinic_sex"])],
        remainder=StandardScaler(),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    library = KernelLibrary({"genes": OnColumns(RBF(), "gene_*"), "clinic": OnColumns(Linear(), "clinic_*")})
    pipeline = make_pipeline(encode, SSMKClassifier(library)).fit(frame, y)
    assert {record["source"] for record in pipeline[-1].kernel_usage_} == {"gene_*", "clinic_*"}
    assert pipeline.predict(frame).shape == (60,)


def test_rows_that_lack_a_source_are_trained_on_and_predicted():
    X, y, _ = partly_labeled(12)
    X = X.copy()
    X[5:15, 2:] = np.nan
    X[40:50, 2:] = np.nan
    library = [OnColumns(RBF(), [0, 1]), OnColumns(RBF(), [2, 3], missing="center")]
    model = SSMKClassifier(library).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.status_.converged


def test_class_weights_multiply_the_costs():
    X, y, _ = partly_labeled(14)
    plain = SSMKClassifier([RBF(0.5)], C=0.3, column_scale=None)
    by_row = clone(plain).fit(X, y, sample_weight=np.where(y == 1, 3.0, 1.0))
    by_class = clone(plain).set_params(class_weight={1.0: 3.0}).fit(X, y)
    assert by_class.objective_ == pytest.approx(by_row.objective_, rel=1e-6)
    share = np.mean(y[:20] == 1)
    balanced = clone(plain).set_params(class_weight="balanced").fit(X, y)
    by_hand = clone(plain).set_params(class_weight={1.0: 0.5 / share, 0.0: 0.5 / (1 - share)}).fit(X, y)
    assert balanced.objective_ == pytest.approx(by_hand.objective_, rel=1e-6)


def test_a_column_budget_is_kept_and_the_gap_covers_what_it_costs():
    X, y, _ = partly_labeled(15, n=200, n_labeled=60)
    with pytest.warns(ConvergenceWarning):
        small = SSMKClassifier(C=10.0, max_columns=5).fit(X, y)
    assert small.n_columns_ <= 5
    assert small.status_ is Status.MAX_COLUMNS
    best = SSMKClassifier(C=10.0).fit(X, y).objective_
    assert small.objective_ - small.certificate_.gap <= best <= small.objective_


@pytest.mark.parametrize("cache_size", [0.01, 500])
def test_the_cache_changes_no_bit(cache_size):
    X, y, _ = partly_labeled(16)
    without, model = (SSMKClassifier(random_state=0, cache_size=size).fit(X, y) for size in (0, cache_size))
    np.testing.assert_array_equal(model.decision_function(X), without.decision_function(X))


def test_a_grid_may_put_another_kernel_in_the_place_of_one():
    X, y, _ = partly_labeled(18, n_labeled=30)
    cv = SemiSupervisedSplit(2, random_state=0)
    library = KernelLibrary({"bump": RBF(), "line": Linear()})
    grid = {"kernels__bump__multiple": [0.5, 4.0], "kernels__line": [Linear(), Polynomial()]}
    search = GridSearchCV(SSMKClassifier(library), grid, cv=cv).fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert library == KernelLibrary({"bump": RBF(), "line": Linear()})


def test_pickles_are_small_and_predict_the_same():
    X, y, _ = partly_labeled(21, n=2000, n_labeled=40, n_features=20)
    model = SSMKClassifier([RBF(), Preprocessed(StandardScaler(), Linear())]).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_same_but_for_rounding(again.decision_function(X), model.decision_function(X))
    assert len(pickle.dumps(model.expansion_)) < X.nbytes / 5


def nan_kernel(A, B):
    return np.full((len(A), len(B)), np.nan)


def wrong_shape(A, B):
    return np.zeros((len(A), 1))


X0, Y0, _ = partly_labeled(0)
FRAME = pd.DataFrame(X0, columns=["a", "b", "c", "d"])
BAD_INPUT = {
    "too few rows": (SSMKClassifier(), X0[:1], Y0[:1], "class"),
    "unknown column": (
        SSMKClassifier([OnColumns(RBF(), "z")]),
        FRAME,
        Y0,
        r"\['z'\] which X does not have; it has 'a', 'b', ...",
    ),
    "names without a frame": (SSMKClassifier([OnColumns(RBF(), "a")]), X0, Y0, "columns without names"),
    "position out of range": (SSMKClassifier([OnColumns(RBF(), [9])]), X0, Y0, r"\[9\] which X does not have"),
    "not a kernel": (SSMKClassifier(["rbf"]), X0, Y0, "A kernel library holds kernels"),
    "a function as kernel": (SSMKClassifier([laplacian_kernel]), X0, Y0, "Wrap a function as FromCallable"),
    "names twice": (SSMKClassifier([("a", RBF()), ("a", RBF())]), X0, Y0, "must be unique"),
    "kernel of NaN": (
        SSMKClassifier([FromCallable(nan_kernel)]),
        X0,
        Y0,
        r"FromCallable\(nan_kernel\) gave values that are not finite",
    ),
    "kernel of the wrong shape": (SSMKClassifier([FromCallable(wrong_shape)]), X0, Y0, r"returned shape \(\d+, 1\)"),
    "overflowing kernel": (SSMKClassifier([Polynomial(9)]), X0 * 1e60, Y0, "not finite"),
    "features for a precomputed kernel": (SSMKClassifier(Precomputed(np.eye(60))), X0, Y0, "one column of row numbers"),
    "row numbers out of range": (
        SSMKClassifier(Precomputed(np.eye(9))),
        np.arange(60)[:, None],
        Y0,
        "whole numbers from 0 to 8",
    ),
    "C of zero": (SSMKClassifier(C=0), X0, Y0, "C=0; expected a positive finite number"),
    "tol of zero": (SSMKClassifier(tol=0.0), X0, Y0, "tol=0.0"),
    "max_columns of zero": (SSMKClassifier(max_columns=0), X0, Y0, "max_columns=0"),
    "unknown column_scale": (
        SSMKClassifier(column_scale="max"),
        X0,
        Y0,
        'column_scale=.max.; expected "std", "norm" or None',
    ),
    "an array as column_scale": (SSMKClassifier(column_scale=np.ones(3)), X0, Y0, "column_scale="),
    "a word as verbose": (SSMKClassifier(verbose="a"), X0, Y0, "verbose='a'"),
    "C beyond any float": (SSMKClassifier(C=10**400), X0, Y0, "expected a positive finite number"),
    "negative max_time": (SSMKClassifier(max_time=-1), X0, Y0, "max_time=-1"),
    "callback is no function": (SSMKClassifier(callback=3), X0, Y0, "callback=3"),
}


@pytest.mark.parametrize("case", BAD_INPUT, ids=str)
def test_bad_input_gives_one_clear_sentence_and_fits_nothing(case):
    model, X, y, message, *options = BAD_INPUT[case]
    model = clone(model)
    with np.errstate(over="ignore"), pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y, **(options[0] if options else {}))
    assert not hasattr(model, "expansion_")


@pytest.mark.parametrize("name, most", [("digit1", 0.09), ("usps_ssl", 0.13), ("g241c", 0.30)])
def test_benchmark_data_are_learned_to_a_certificate(data_dir, name, most):
    data = np.load(data_dir / f"{name}.npz")
    y = np.full(len(data["y"]), np.nan)
    labeled = data["idxLabs_100"][0]
    y[labeled] = data["y"][labeled]
    model = SSMKClassifier().fit(data["X"], y)
    assert model.certificate_.relative <= 1e-6
    rest = np.isnan(y)
    assert np.mean(model.transduction_[rest] != data["y"][rest]) < most


def test_deformed_kernels_join_the_default_library_where_rows_are_unlabeled(monkeypatch):
    X, y, truth = partly_labeled(5, n=120)
    with_graph = SSMKClassifier(random_state=0).fit(X, y)
    plain = SSMKClassifier(random_state=0).fit(X, truth)
    assert sum("ManifoldKernel" in name for name in with_graph.library_.names) == 4
    assert not any("ManifoldKernel" in name for name in plain.library_.names)
    assert "deformed" not in with_graph.certificate_.scope
    monkeypatch.setattr(defaults, "MAX_MANIFOLD_ROWS", 100)
    monkeypatch.setattr(ssmk, "MAX_MANIFOLD_ROWS", 100)
    large = SSMKClassifier(random_state=0).fit(X, y)
    assert large.library_ == plain.library_
    assert "no deformed kernels, since there are more than 100 rows" in large.certificate_.scope
