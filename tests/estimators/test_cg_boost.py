import numpy as np
import pytest
from sklearn.datasets import load_iris

from kernelweave import (
    RBF,
    CGBoostClassifier,
    FromCallable,
    KernelLibrary,
    Linear,
    Polynomial,
    Sigmoid,
)
from kernelweave.kernels.defaults import homogeneous_library


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
        pricing: CGBoostClassifier(homogeneous_library(), C=10.0, pricing=pricing, penalty=penalty).fit(X, y).history_
        for pricing in ("stratified", "full")
    }
    n_columns = 150 * len(homogeneous_library())
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


@every_penalty
@pytest.mark.parametrize("pricing", ["stratified", "full"])
def test_the_cache_changes_no_bit(penalty, pricing):
    X, y = sample(3, n=40, n_classes=3)
    with_cache, without = (
        CGBoostClassifier(C=10.0, penalty=penalty, pricing=pricing, cache_size=size, random_state=0).fit(X, y)
        for size in (500, 0)
    )
    np.testing.assert_array_equal(with_cache.decision_function(X), without.decision_function(X))
    np.testing.assert_array_equal(with_cache.dual_coef_, without.dual_coef_)
    for left, right in zip(with_cache.history_, without.history_, strict=True):
        assert {**left, "seconds": 0} == {**right, "seconds": 0}


def test_several_classes_share_kernel_blocks():
    X, y = load_iris(return_X_y=True)
    n_calls = []

    def counted(A, B):
        n_calls.append(1)
        return A @ B.T

    CGBoostClassifier([FromCallable(counted)], C=10.0, pricing="full", cache_size=500).fit(X, y)
    together = len(n_calls)
    n_calls.clear()
    for k in range(3):
        CGBoostClassifier([FromCallable(counted)], C=10.0, pricing="full", cache_size=500).fit(X, y == k)
    assert together < len(n_calls)


def test_several_classes_are_separated_one_by_one():
    X, y = load_iris(return_X_y=True)
    model = CGBoostClassifier(C=10.0, random_state=0).fit(X, y)
    assert model.objective_.shape == (3,)
    assert model.decision_function(X).shape == (150, 3)
    assert {record["class"] for record in model.history_} == {0, 1, 2}
    assert model.certificate_.gap <= 1e-6 * model.objective_.sum()
    for k in range(3):
        alone = CGBoostClassifier(C=10.0, random_state=0).fit(X, y == k)
        assert alone.objective_ == pytest.approx(model.objective_[k], rel=1e-6)


# Bad input

X0, Y0 = sample(13)


def skewed(A, B):
    return A @ np.triu(np.ones((4, 4))) @ B.T


BAD_INPUT = {
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
