import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks.kkt import assert_lp_optimal
from checks.rounding import assert_same_but_for_rounding
from oracles.reference import full_lp
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

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


@parametrize_with_checks(
    [SSMKClassifier(), SSMKClassifier([RBF(), Linear()], column_scale=None, class_weight="balanced")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


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
    model = SSMKClassifier([Linear(), RBF()], column_scale=column_scale, tol=1e-8).fit(X, y)
    bound = KernelLibrary([Linear(), RBF()]).bind(X, np.random.default_rng(0))
    K = bound.columns(np.arange(bound.n_columns), np.arange(20))
    scale = np.sqrt((K**2).mean(axis=0))
    if column_scale == "std":
        deviations = K.std(axis=0).reshape(2, -1)
        scale = np.maximum(deviations, 0.1 * np.sqrt((deviations**2).mean(axis=1))[:, None]).ravel()
    rows = classification_rows(2 * y[:20] - 1, np.full(20, 10.0))
    assert model.objective_ == pytest.approx(full_lp(K / scale, rows).objective, rel=1e-7)


def test_a_fully_labeled_y_fits_the_supervised_form():
    X, _, codes = partly_labeled(2)
    model = SSMKClassifier().fit(X, codes)
    assert model.score(X, codes) > 0.95
    np.testing.assert_array_equal(model.transduction_, codes)


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


def test_the_parts_by_kernel_sum_to_the_whole():
    X, y, _ = partly_labeled(5)
    model = SSMKClassifier([Linear(), RBF(), Polynomial()]).fit(X, y)
    parts = model.decision_function(X, split=True)
    assert parts.shape == (60, 3)
    np.testing.assert_allclose(parts.sum(axis=1), model.decision_function(X), atol=1e-10)
    X, y, _ = partly_labeled(5, n_classes=3)
    model.fit(X, y)
    parts = model.decision_function(X, split=True)
    assert parts.shape == (60, 3, 3)
    np.testing.assert_allclose(parts.sum(axis=1), model.decision_function(X), atol=1e-10)


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
    model = SSMKClassifier().fit(X, y)
    assert model.objective_.shape == (3,)
    assert model.decision_function(X).shape == (150, 3)
    assert model.certificate_.gap <= 1e-6 * model.objective_.sum()
    assert np.mean(model.transduction_ == truth) > 0.92
    assert {record["class"] for record in model.history_} == {0, 1, 2}
    alone = SSMKClassifier().fit(X, np.where(y == 2, "yes", np.where(y < 0, None, "no")))
    assert model.objective_[2] == pytest.approx(alone.objective_, rel=1e-6)


@pytest.mark.parametrize(
    "to_labels",
    [
        lambda codes, known: np.where(known, np.array(["no", "yes"])[codes], None),
        lambda codes, known: np.where(known, codes, -1) if known.any() else codes,
        lambda codes, known: np.where(known, codes.astype(float), np.nan),
        lambda codes, known: pd.Series(np.where(known, codes, 0)).astype("Int64").mask(~known),
        lambda codes, known: pl.Series([int(c) if k else None for c, k in zip(codes, known, strict=True)]),
        lambda codes, known: np.where(known, codes.astype(str), "?"),
    ],
    ids=["strings and None", "-1", "NaN", "pandas NA", "polars null", "a named marker"],
)
def test_every_way_to_write_labels_gives_the_same_model(to_labels):
    X, _, codes = partly_labeled(8)
    known = np.arange(60) < 20
    y = to_labels(codes, known)
    marker = "?" if isinstance(y, np.ndarray) and y.dtype.kind == "U" else "auto"
    model = SSMKClassifier(unlabeled=marker).fit(X, y)
    reference = SSMKClassifier().fit(X, np.where(known, codes.astype(float), np.nan))
    np.testing.assert_array_equal(model.decision_function(X), reference.decision_function(X))
    assert len(model.transduction_) == 60


def test_frames_sparse_and_dense_data_give_the_same_model():
    X, y, _ = partly_labeled(9)
    reference = SSMKClassifier().fit(X, y).decision_function(X)
    names = [f"f{i}" for i in range(4)]
    for container in (lambda X: pd.DataFrame(X, columns=names), lambda X: pl.DataFrame(X, schema=names)):
        model = SSMKClassifier().fit(container(X), y)
        np.testing.assert_allclose(model.decision_function(container(X)), reference, atol=1e-9)
        assert list(model.feature_names_in_) == names
    for container in (sparse.csr_matrix, sparse.csr_array, sparse.coo_array):
        model = SSMKClassifier().fit(container(X), y)
        np.testing.assert_allclose(model.decision_function(container(X)), reference, rtol=1e-6, atol=1e-6)


def test_single_precision_stays_and_agrees():
    X, y, _ = partly_labeled(10)
    model = SSMKClassifier().fit(X.astype(np.float32), y)
    assert model.expansion_.groups[0].bound.X.dtype == np.float32
    np.testing.assert_allclose(
        model.decision_function(X.astype(np.float32)), SSMKClassifier().fit(X, y).decision_function(X), atol=0.02
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


def test_zero_weight_rows_are_as_if_they_were_not_there():
    X, y, _ = partly_labeled(13)
    weight = np.ones(60)
    weight[[3, 7, 30, 31]] = 0
    weighted = SSMKClassifier().fit(X, y, sample_weight=weight)
    without = SSMKClassifier().fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(weighted.decision_function(X), without.decision_function(X), atol=1e-9)
    used = np.concatenate([group.centers for group in weighted.expansion_.groups])
    assert not np.isin([3, 7, 30, 31], used).any()
    assert len(weighted.transduction_) == 60


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


def test_column_budget_time_and_callback_stop_early_and_say_so():
    X, y, _ = partly_labeled(15, n=200, n_labeled=60)
    with pytest.warns(ConvergenceWarning, match=r"max_columns.*Certified relative gap: .*asked for: 1.00e-06"):
        small = SSMKClassifier(max_columns=5).fit(X, y)
    assert small.n_columns_ <= 5
    assert small.status_ is Status.MAX_COLUMNS
    best = SSMKClassifier().fit(X, y).objective_
    assert small.objective_ - small.certificate_.gap <= best <= small.objective_
    with pytest.warns(ConvergenceWarning, match="max_time"):
        assert SSMKClassifier(max_time=1e-9).fit(X, y).status_ is Status.MAX_TIME
    stopped = SSMKClassifier(callback=lambda state: state.relative_gap < 0.5).fit(X, y)
    assert stopped.status_ is Status.CALLBACK


@pytest.mark.parametrize("cache_size", [0.01, 500])
def test_the_cache_changes_no_bit(cache_size):
    X, y, _ = partly_labeled(16)
    expected = SSMKClassifier(cache_size=0).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(SSMKClassifier(cache_size=cache_size).fit(X, y).decision_function(X), expected)


def test_the_same_seed_gives_the_same_bits_for_any_number_of_jobs():
    images, digits = load_digits(return_X_y=True)
    y = np.where(np.arange(600) < 80, digits[:600], -1)
    models = [SSMKClassifier([RBF("median")], n_jobs=n, random_state=0).fit(images[:600], y) for n in (None, 2, 4)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.decision_function(images), models[0].decision_function(images))


def test_cross_validation_ignores_unlabeled_rows():
    X, y, _ = partly_labeled(17, n=150, n_labeled=60)
    scores = cross_val_score(SSMKClassifier(), X, y, cv=SemiSupervisedSplit(4, random_state=0))
    assert scores.shape == (4,)
    assert scores.mean() > 0.6
    model = SSMKClassifier().fit(X, y)
    assert model.score(X, y) == model.score(X[:60], y[:60])


def test_grid_search_over_recipes_has_readable_results():
    X, y, _ = partly_labeled(18, n_labeled=30)
    cv = SemiSupervisedSplit(3, random_state=0)
    search = GridSearchCV(SSMKClassifier(), {"kernels": [[Linear()], [RBF(), Linear()]], "C": [1.0, 10.0]}, cv=cv).fit(
        X, y
    )
    shown = [str(value) for value in search.cv_results_["param_kernels"]]
    assert set(shown) == {"[Linear()]", "[RBF(), Linear()]"}
    library = KernelLibrary({"bump": RBF(), "line": Linear()})
    grid = {"kernels__bump__multiple": [0.5, 4.0], "kernels__line": [Linear(), Polynomial()]}
    search = GridSearchCV(SSMKClassifier(library), grid, cv=cv).fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert library == KernelLibrary({"bump": RBF(), "line": Linear()})


def test_a_pipeline_with_a_kernel_parameter_in_the_grid():
    X, y, _ = partly_labeled(19, n_labeled=30)
    pipeline = make_pipeline(StandardScaler(), SSMKClassifier(RBF()))
    search = GridSearchCV(pipeline, {"ssmkclassifier__kernels__multiple": [0.5, 2.0]}, cv=SemiSupervisedSplit(3)).fit(
        X, y
    )
    assert search.best_estimator_[-1].kernels.multiple in (0.5, 2.0)


def test_clone_shares_a_precomputed_matrix():
    X, y, _ = partly_labeled(20)
    K = laplacian_kernel(X)
    model = SSMKClassifier([Precomputed(K), Linear()])
    assert clone(model).kernels[0].K is K
    index = np.arange(60)[:, None]
    single = SSMKClassifier(Precomputed(K)).fit(index, y)
    scores = cross_val_score(SSMKClassifier(Precomputed(K)), index, y, cv=SemiSupervisedSplit(3))
    assert scores.shape == (3,)
    np.testing.assert_allclose(
        single.decision_function(index), SSMKClassifier(FromCallable(laplacian_kernel)).fit(X, y).decision_function(X)
    )


def test_pickles_are_small_and_predict_the_same():
    X, y, _ = partly_labeled(21, n=2000, n_labeled=40, n_features=20)
    model = SSMKClassifier([RBF(), Preprocessed(StandardScaler(), Linear())]).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_same_but_for_rounding(again.decision_function(X), model.decision_function(X))
    assert len(pickle.dumps(model.expansion_)) < X.nbytes / 5


def test_huge_and_tiny_feature_scales_give_the_same_labels():
    X, y, _ = partly_labeled(22)
    expected = SSMKClassifier([RBF(), Normalized(Linear())]).fit(X, y).predict(X)
    for scale in (1e-120, 1e-8, 1e8, 1e120):
        model = SSMKClassifier([RBF(), Normalized(Linear())]).fit(X * scale, y)
        assert np.mean(model.predict(X * scale) == expected) > 0.95


def test_duplicated_rows_and_constant_features_are_fine():
    X, y, _ = partly_labeled(23)
    X = np.column_stack([np.vstack([X, X]), np.full(120, 3.0)])
    model = SSMKClassifier().fit(X, np.r_[y, np.full(60, np.nan)])
    assert model.status_.converged
    np.testing.assert_array_equal(model.transduction_[60 + 20 :], model.transduction_[20:60])


def nan_kernel(A, B):
    return np.full((len(A), len(B)), np.nan)


def wrong_shape(A, B):
    return np.zeros((len(A), 1))


X0, Y0, _ = partly_labeled(0)
FRAME = pd.DataFrame(X0, columns=["a", "b", "c", "d"])
BAD_INPUT = {
    "NaN in X": (SSMKClassifier(), np.where(X0 > 2, np.nan, X0), Y0, "contains NaN"),
    "inf in X": (SSMKClassifier(), np.where(X0 > 2, np.inf, X0), Y0, "infinity"),
    "strings in X": (SSMKClassifier(), np.full((60, 2), "x"), Y0, "could not convert string to float"),
    "X with one axis": (SSMKClassifier(), X0[:, 0], Y0, "Expected 2D array"),
    "no rows": (SSMKClassifier(), X0[:0], Y0[:0], "minimum of 1 is required"),
    "y is None": (SSMKClassifier(), X0, None, "requires y to be passed"),
    "y of another length": (SSMKClassifier(), X0, Y0[:-1], "X has 60 rows but y has 59"),
    "y with two columns": (SSMKClassifier(), X0, np.column_stack([Y0, Y0]), "1d|one column|shape"),
    "one class": (SSMKClassifier(), X0, np.where(np.isnan(Y0), np.nan, 1.0), "class"),
    "no labelled row": (SSMKClassifier(), X0, np.full(60, np.nan), "no labelled row|no row has|No labelled"),
    "continuous y": (SSMKClassifier(), X0, X0[:, 0], "Unknown label type"),
    "inf in y": (SSMKClassifier(), X0, np.where(np.isnan(Y0), np.inf, Y0), "inf"),
    "too few rows": (SSMKClassifier(), X0[:1], Y0[:1], "class"),
    "negative weight": (SSMKClassifier(), X0, Y0, "[Nn]egative", {"sample_weight": -np.ones(60)}),
    "all weights zero": (SSMKClassifier(), X0, Y0, "zero", {"sample_weight": np.zeros(60)}),
    "weights of another length": (SSMKClassifier(), X0, Y0, "sample_weight", {"sample_weight": np.ones(3)}),
    "weights that leave one class": (SSMKClassifier(), X0, Y0, "class", {"sample_weight": (Y0 == 1) * 1.0}),
    "unknown column": (
        SSMKClassifier([OnColumns(RBF(), "z")]),
        FRAME,
        Y0,
        r"\['z'\] which X does not have; it has 'a', 'b', ...",
    ),
    "names without a frame": (SSMKClassifier([OnColumns(RBF(), "a")]), X0, Y0, "columns without names"),
    "position out of range": (SSMKClassifier([OnColumns(RBF(), [9])]), X0, Y0, r"\[9\] which X does not have"),
    "empty library": (SSMKClassifier([]), X0, Y0, "library is empty"),
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
    "a word as n_jobs": (SSMKClassifier(n_jobs="a"), X0, Y0, "n_jobs='a'"),
    "C beyond any float": (SSMKClassifier(C=10**400), X0, Y0, "expected a positive finite number"),
    "negative max_time": (SSMKClassifier(max_time=-1), X0, Y0, "max_time=-1"),
    "callback is no function": (SSMKClassifier(callback=3), X0, Y0, "callback=3"),
    "class_weight of an unknown class": (SSMKClassifier(class_weight={7: 1.0}), X0, Y0, "names the class 7"),
    "unknown class_weight": (SSMKClassifier(class_weight="fair"), X0, Y0, "class_weight='fair'"),
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


def test_an_interrupted_fit_leaves_the_earlier_model():
    X, y, _ = partly_labeled(24)
    model = SSMKClassifier(random_state=0).fit(X, y)
    before = model.decision_function(X)

    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(callback=interrupt, kernels=[Linear()]).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_an_unknown_nested_parameter_is_named():
    with pytest.raises(ValueError, match="RBF has no parameter 'width'"):
        SSMKClassifier(RBF()).set_params(kernels__width=2.0)


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
