import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks.rounding import assert_same_but_for_rounding
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelweave
from kernelweave import (
    RBF,
    CGBoostClassifier,
    CGBoostClassifierCV,
    CGBoostOneClass,
    CGBoostRegressor,
    FromCallable,
    KernelLibrary,
    Linear,
    OnColumns,
    Polynomial,
    Sigmoid,
)
from kernelweave.kernels.defaults import plain_library
from kernelweave.solvers.result import Status


def expected_failures(estimator):
    """Checks that fail, and why."""
    weights = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    if getattr(estimator, "nu", None) is not None:
        return {"check_class_weight_classifiers": "weights of 1000 to 1 leave no nu that a free offset allows"}
    if estimator.penalty == "l2":
        return dict.fromkeys(weights, "stops at a relative gap of 0.1, at another point for repeated rows")
    if estimator.penalty == "rkhs":
        return dict.fromkeys(weights, "stops at a relative gap of 0.01, at another point for repeated rows")
    return {}


@parametrize_with_checks(
    [
        CGBoostClassifier(),
        CGBoostClassifier(RBF(), penalty="l2"),
        CGBoostClassifier([RBF(), Linear()], penalty="rkhs"),
        CGBoostClassifier(RBF(), nu=0.2),
        CGBoostRegressor(RBF()),
        CGBoostRegressor(RBF(), penalty="l2"),
        CGBoostRegressor([RBF(), Linear()], penalty="rkhs"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def sample(seed=0, n=60, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noisy = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=n)
    y = np.digitize(noisy, np.quantile(noisy, np.linspace(0, 1, n_classes + 1)[1:-1]))
    return X, y


PENALTIES = ["l1", "l2", "rkhs"]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)

# Column generation


def test_history_tells_each_round():
    X, y = sample(0)
    model = CGBoostClassifier().fit(X, y)
    assert len(model.history_) == model.n_iter_
    for record in model.history_:
        assert {"iteration", "objective", "bound", "gap", "tau", "n_columns", "n_evaluated"} <= set(record)
        assert {"full_scan", "n_added", "n_dropped", "seconds"} <= set(record)
        assert "validation_score" not in record
    assert model.history_[-1]["objective"] == pytest.approx(model.objective_, rel=1e-9)
    assert model.history_[-1]["full_scan"]


@pytest.mark.parametrize("penalty", ["l2", "rkhs"])  # with l1 most scans of so small a library are full ones
def test_strata_evaluate_fewer_columns_a_round_and_end_with_a_full_scan(penalty):
    X, y = sample(1, n=150)
    runs = {
        pricing: CGBoostClassifier(pricing=pricing, penalty=penalty).fit(X, y).history_
        for pricing in ("stratified", "full")
    }
    n_columns = 150 * len(plain_library())
    assert {record["n_evaluated"] for record in runs["full"]} == {n_columns}
    evaluated = [record["n_evaluated"] for record in runs["stratified"]]
    assert np.mean(evaluated) < 0.8 * n_columns
    assert runs["stratified"][-1]["full_scan"]
    assert evaluated[-1] >= n_columns


def walks(library):
    """The kernels that a stratified fit prices, in order of its calls."""
    X, y = sample(2)
    seen = []

    def spy(name):
        def kernel(A, B):
            seen.append(name)
            return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2) * {"a": 0.2, "b": 0.5, "c": 1.0}[name])

        return FromCallable(kernel)

    kernels = KernelLibrary({name: spy(name) for name in "abc"}, priority=library)
    CGBoostClassifier(kernels, column_scale=None, cache_size=0).fit(X, y)
    return seen


def test_the_priority_of_the_library_decides_the_order_of_pricing():
    assert list(dict.fromkeys(walks(None))) == ["a", "b", "c"]
    assert list(dict.fromkeys(walks(["c"]))) == ["c", "a", "b"]
    assert list(dict.fromkeys(walks(["b", "c"]))) == ["b", "c", "a"]


def test_cheap_kernels_are_priced_first():
    assert KernelLibrary([RBF(), Sigmoid(), Linear(), Polynomial()]).order == (2, 3, 0, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_penalty
def test_single_precision_is_learned_from_as_well(penalty, dtype):
    # Kernels of single-precision rows are symmetric and positive semi-definite up to rounding only.
    X, y = sample(3)
    model = CGBoostClassifier(penalty=penalty).fit(X.astype(dtype), y)
    assert model.status_.converged
    assert model.score(X, y) > 0.9


@every_penalty
@pytest.mark.parametrize("pricing", ["stratified", "full"])
def test_the_cache_changes_no_bit(penalty, pricing):
    X, y = sample(3, n_classes=3)
    with_cache, without = (
        CGBoostClassifier(penalty=penalty, pricing=pricing, cache_size=size).fit(X, y) for size in (500, 0)
    )
    np.testing.assert_array_equal(with_cache.decision_function(X), without.decision_function(X))
    np.testing.assert_array_equal(with_cache.dual_coef_, without.dual_coef_)
    for left, right in zip(with_cache.history_, without.history_, strict=True):
        assert {**left, "seconds": 0} == {**right, "seconds": 0}


@every_penalty
def test_the_number_of_jobs_changes_no_bit_and_the_same_seed_gives_the_same_bits(penalty):
    X, y = sample(4, n_classes=4)
    models = [CGBoostClassifier(penalty=penalty, n_jobs=n, random_state=0, centers="all").fit(X, y) for n in (1, 2, 1)]
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].decision_function(X), other.decision_function(X))


def test_several_classes_share_kernel_blocks():
    X, y = load_iris(return_X_y=True)
    n_calls = []

    def counted(A, B):
        n_calls.append(1)
        return A @ B.T

    CGBoostClassifier([FromCallable(counted)], pricing="full", cache_size=500).fit(X, y)
    together = len(n_calls)
    n_calls.clear()
    for k in range(3):
        CGBoostClassifier([FromCallable(counted)], pricing="full", cache_size=500).fit(X, y == k)
    assert together < len(n_calls)


def test_several_classes_are_separated_one_by_one():
    X, y = load_iris(return_X_y=True)
    model = CGBoostClassifier().fit(X, y)
    assert model.objective_.shape == (3,)
    assert model.decision_function(X).shape == (150, 3)
    assert {record["class"] for record in model.history_} == {0, 1, 2}
    assert model.certificate_.gap <= 1e-6 * model.objective_.sum()
    for k in range(3):
        assert CGBoostClassifier().fit(X, y == k).objective_ == pytest.approx(model.objective_[k], rel=1e-6)


# The grammar of scikit-learn

MODELS = [
    CGBoostClassifier(KernelLibrary([RBF(), Linear()], priority=["Linear()"]), penalty="l2", random_state=0),
    CGBoostRegressor([Linear() + Polynomial(2), RBF()], epsilon=0.2, penalty="rkhs"),
    CGBoostOneClass(nu=0.2),
    CGBoostClassifierCV(RBF(), Cs=[0.1, 1.0], cv=2),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


@every_model
def test_clones_and_pickles_are_the_same_model(model, tmp_path):
    X, y = sample(5)
    fitted = clone(model).fit(X, y)
    assert clone(fitted).get_params() == model.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    assert_same_but_for_rounding(again.predict(X), fitted.predict(X))
    assert again.status_ is fitted.status_


@every_model
def test_saved_and_loaded_models_predict_the_same(model, tmp_path):
    pytest.importorskip("skops")
    X, y = sample(6)
    fitted = clone(model).fit(X, y)
    kernelweave.save(fitted, tmp_path / "m.skops")
    again = kernelweave.load(tmp_path / "m.skops")
    assert_same_but_for_rounding(again.predict(X), fitted.predict(X))
    assert again.certificate_ == fitted.certificate_
    assert again.status_ is fitted.status_
    assert again.library_ == fitted.library_


def test_penalties_and_kernel_parameters_are_chosen_by_a_grid_in_a_pipeline():
    X, y = sample(7)
    pipeline = make_pipeline(StandardScaler(), CGBoostClassifier(KernelLibrary({"bump": RBF(), "line": Linear()})))
    grid = {
        "cgboostclassifier__penalty": PENALTIES,
        "cgboostclassifier__kernels__bump__multiple": [0.5, 2.0],
    }
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.5
    assert len(search.cv_results_["params"]) == 6
    assert cross_val_score(CGBoostRegressor(), X, X[:, 0], cv=3).min() > 0.8


def test_frames_and_sparse_and_dense_data_give_the_same_model():
    X, y = sample(8)
    X[np.abs(X) < 0.3] = 0.0
    frame = pd.DataFrame(X, columns=list("abcd"))
    kernels = [RBF(0.5), Linear()]
    expected = CGBoostClassifier(kernels).fit(X, y).decision_function(X)
    for container in (sparse.csr_matrix(X), sparse.csc_array(X), frame, pl.DataFrame(frame.to_dict("list"))):
        found = CGBoostClassifier(kernels).fit(container, y).decision_function(container)
        np.testing.assert_allclose(found, expected, atol=1e-6)
    named = CGBoostClassifier([OnColumns(RBF(0.5), ["a", "c"])]).fit(frame, y)
    assert named.feature_names_in_.tolist() == list("abcd")
    by_place = CGBoostClassifier([OnColumns(RBF(0.5), [0, 2])]).fit(X, y)
    np.testing.assert_allclose(named.decision_function(frame), by_place.decision_function(X), atol=1e-9)


def test_labels_of_any_kind_give_the_same_model():
    X, y = sample(9)
    expected = CGBoostClassifier().fit(X, y).decision_function(X)
    for labels in (np.array(["no", "yes"])[y], y == 1, pd.Series(y), np.array(["a", "b"], dtype=object)[y], 2 * y - 1):
        model = CGBoostClassifier().fit(X, labels)
        np.testing.assert_array_equal(model.decision_function(X), expected)
        assert model.score(X, labels) > 0.9
    assert set(CGBoostClassifier().fit(X, 2 * y - 1).classes_) == {-1, 1}  # a class like any other


@every_penalty
def test_balanced_classes_weigh_the_same(penalty):
    X, y = sample(10)
    rare = np.flatnonzero((y == 0) | (np.arange(60) % 4 == 0))
    X, y = X[rare], y[rare]
    factors = len(y) / (2 * np.bincount(y))
    balanced = CGBoostClassifier(penalty=penalty, class_weight="balanced", tol=1e-7).fit(X, y)
    by_hand = CGBoostClassifier(penalty=penalty, class_weight=dict(enumerate(factors)), tol=1e-7).fit(X, y)
    assert balanced.objective_ == pytest.approx(by_hand.objective_, rel=1e-6)


def test_a_callback_sees_rounds_and_may_stop():
    X, y = sample(11)
    rounds = []
    model = CGBoostClassifier(penalty="l2", callback=lambda state: rounds.append(state) or len(rounds) == 3).fit(X, y)
    assert model.status_ is Status.CALLBACK
    assert [state.iteration for state in rounds] == [1, 2, 3]
    assert model.n_iter_ == 3


def test_progress_is_printed_and_names_the_columns(capsys):
    X, y = sample(12)
    model = CGBoostClassifier([RBF(), Linear()], verbose=2).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if "round" in line]
    assert len(lines) == model.n_iter_
    assert "2 kernels x 60 centres" in err
    assert err.startswith("CGBoostClassifier")
    assert "relative gap" in lines[-1]


# Bad input

X0, Y0 = sample(13)


def skewed(A, B):
    return A @ np.triu(np.ones((4, 4))) @ B.T


BAD_INPUT = {
    "NaN in y": ({}, X0, np.r_[np.nan, Y0[1:]], r"Input y contains NaN: \d+ rows .* use SSMKClassifier"),
    "None in y": ({}, X0, np.r_[[None], Y0[1:].astype(object)], "use SSMKClassifier, which makes use of them"),
    "one class": ({}, X0, np.zeros(60), "class"),
    "NaN in X": ({}, np.where(X0 > 2, np.nan, X0), Y0, "contains NaN"),
    "y is None": ({}, X0, None, "requires y to be passed"),
    "another length": ({}, X0, Y0[:-1], "X has 60 rows but y has 59"),
    "continuous y": ({}, X0, X0[:, 0], "Unknown label type"),
    "penalty": ({"penalty": "l3"}, X0, Y0, 'penalty=\'l3\'; expected "l1", "l2" or "rkhs"'),
    "penalty of a wrong type": ({"penalty": 2}, X0, Y0, 'penalty=2; expected "l1"'),
    "positive": ({"positive": "yes"}, X0, Y0, "positive='yes'; expected True or False"),
    "intercept": ({"intercept": True}, X0, Y0, 'intercept=True; expected "free", "penalized" or None'),
    "pricing": ({"pricing": "cheap"}, X0, Y0, 'pricing=\'cheap\'; expected "stratified" or "full"'),
    "nu of zero": ({"nu": 0}, X0, Y0, "nu=0; expected None or a number above 0 and at most 1"),
    "nu above one": ({"nu": 1.5}, X0, Y0, "nu=1.5; expected None or a number above 0"),
    "nu too large": ({"nu": 0.9}, X0[:45], np.sort(Y0)[:45], r"nu=0.9 is too large .* it can be at most 0\.\d+"),
    "rkhs and positive": ({"penalty": "rkhs", "positive": True}, X0, Y0, 'penalty="rkhs" with positive=True'),
    "rkhs, indefinite": (
        {"penalty": "rkhs", "kernels": [RBF(), Sigmoid(1.0, -1.0)]},
        X0,
        Y0,
        r"The kernel Sigmoid\(coef0=-1.0\) is not symmetric and positive semi-definite, as penalty=\"rkhs\" requires",
    ),
    "rkhs, not symmetric": ({"penalty": "rkhs", "kernels": FromCallable(skewed)}, X0, Y0, "skewed.* is not symmetric"),
    "tol": ({"tol": 0.0}, X0, Y0, "tol=0.0; expected None or a positive finite number"),
    "C": ({"C": -1.0}, X0, Y0, "C=-1.0; expected a positive finite number"),
    "column_scale": ({"column_scale": "max"}, X0, Y0, 'column_scale=.max.; expected "std", "norm" or None'),
    "n_iter_no_change": ({"n_iter_no_change": 0}, X0, Y0, "n_iter_no_change=0; expected a whole number, 1 or more"),
    "validation_fraction": ({"validation_fraction": 1.0}, X0, Y0, "validation_fraction=1.0; expected None or"),
}


@pytest.mark.parametrize("case", BAD_INPUT, ids=str)
def test_bad_input_gives_one_clear_sentence_and_fits_nothing(case):
    options, X, y, message = BAD_INPUT[case]
    model = CGBoostClassifier(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "expansion_")


def test_a_nu_that_one_class_in_three_cannot_have_is_allowed_otherwise():
    X, y = X0[:45], np.sort(Y0)[:45]  # 30 and 15 rows: with a free offset nu is at most 2/3
    CGBoostClassifier(nu=0.66).fit(X, y)
    for way_out in ({"intercept": None}, {"intercept": "penalized"}, {"class_weight": "balanced"}):
        assert CGBoostClassifier(nu=0.9, **way_out).fit(X, y).certificate_.gap < 1e-5


def test_unknown_numbers_are_refused_by_the_regressor():
    with pytest.raises(ValueError, match=r"Input y contains NaN: 1 rows .* use SSMKRegressor"):
        CGBoostRegressor().fit(X0, np.r_[np.nan, X0[1:, 0]])


def test_minus_one_beside_two_classes_is_a_class_and_warns():
    y = np.where(np.arange(60) < 10, -1, Y0)
    with pytest.warns(UserWarning, match="y holds -1 beside 2 other classes; .* use SSMKClassifier"):
        model = CGBoostClassifier().fit(X0, y)
    assert model.classes_.tolist() == [-1, 0, 1]


@every_penalty
def test_constant_features_and_duplicated_rows_are_fine(penalty):
    X = np.column_stack([np.vstack([X0, X0]), np.full(120, 3.0)])
    model = CGBoostClassifier(penalty=penalty).fit(X, np.r_[Y0, Y0])
    assert model.status_.converged
    np.testing.assert_array_equal(model.predict(X)[:60], model.predict(X)[60:])


@every_penalty
def test_nothing_to_learn_from_gives_the_larger_class(penalty):
    y = (np.arange(60) < 20).astype(int)
    model = CGBoostClassifier(penalty=penalty, kernels=[RBF(1.0), Linear()]).fit(np.ones((60, 3)), y)
    assert set(model.predict(np.ones((2, 3)))) == {0}


@every_penalty
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_row_a_class_is_learned(penalty, n_classes):
    X = np.eye(n_classes) * 3
    model = CGBoostClassifier(penalty=penalty).fit(X, np.arange(n_classes))
    np.testing.assert_array_equal(model.predict(X), np.arange(n_classes))
