import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    CGBoostClassifier,
    CGBoostClassifierCV,
    CGBoostRegressor,
    HarmonicRegressor,
    KernelLibrary,
    Linear,
    MKLClassifier,
    MKLRegressor,
    Polynomial,
    RKDAClassifier,
    SemiSupervisedSplit,
    SSMKClassifier,
    SSMKRegressor,
)
from kernelweave.estimators.shared.outputs import KernelClassifier, KernelRegressor, choose_classes


def test_one_output_decides_by_its_sign_and_zero_is_the_first_class():
    np.testing.assert_array_equal(choose_classes(np.array([[-1.0], [0.0], [1e-300]])), [0, 0, 1])


def test_of_several_outputs_the_largest_wins_and_of_equals_the_first():
    np.testing.assert_array_equal(choose_classes(np.array([[1.0, 2.0, 0.0], [-3.0, -1.0, -1.0]])), [1, 1])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X.setflags(write=False)
    return X[::3], y[::3]


KERNELS = KernelLibrary({"line": Linear(), "curve": RBF(), "square": Polynomial()})


@pytest.mark.parametrize("penalty", ["l1", "l2", "rkhs"])
def test_what_each_kernel_adds_sums_to_the_decision(penalty, iris):
    X, y = iris
    model = CGBoostClassifier(KERNELS, penalty=penalty).fit(X, y)
    parts = model.decision_function(X, split=True)
    assert parts.shape == (50, 3, 3)
    np.testing.assert_allclose(parts.sum(axis=1), model.decision_function(X), atol=1e-10)
    two = CGBoostClassifier(KERNELS, penalty=penalty).fit(X, y == 1)
    parts = two.decision_function(X, split=True)
    assert parts.shape == (50, 3)
    np.testing.assert_allclose(parts.sum(axis=1), two.decision_function(X), atol=1e-10)


def test_numbers_are_split_by_kernel_too(iris):
    X, _ = iris
    model = CGBoostRegressor(KERNELS).fit(X, X[:, 0] * X[:, 1])
    parts = model.predict(X, split=True)
    assert parts.shape == (50, 3)
    np.testing.assert_allclose(parts.sum(axis=1), model.predict(X), atol=1e-9)


def test_predictions_are_labels_as_they_were_given(iris):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    model = CGBoostClassifier(KERNELS).fit(X, names[y])
    np.testing.assert_array_equal(model.classes_, names)
    np.testing.assert_array_equal(model.predict(X), names[model.decision_function(X).argmax(axis=1)])
    two = CGBoostClassifier(KERNELS).fit(X, y == 0)
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)
    assert two.predict(X).dtype == bool


@pytest.mark.parametrize("epsilon", [-1e-9, np.inf, np.nan, "0.1", None])
def test_epsilon_is_a_number_and_not_negative(epsilon, iris):
    X, _ = iris
    with pytest.raises(ValueError, match=r"CGBoostRegressor got epsilon=.*; expected a number, 0 or more"):
        CGBoostRegressor(epsilon=epsilon).fit(X, X[:, 0])


@pytest.mark.parametrize("Model", [CGBoostClassifier, MKLClassifier, SSMKClassifier, RKDAClassifier])
def test_a_column_of_classes_is_named_once_and_at_the_line_that_passed_it(Model, iris):
    X, y = iris
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        column = Model(Linear()).fit(X, y[:, None])
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(column.predict(X), Model(Linear()).fit(X, y).predict(X))


@pytest.mark.parametrize("Model", [CGBoostRegressor, MKLRegressor, SSMKRegressor, HarmonicRegressor])
def test_a_column_of_numbers_is_named_once_and_at_the_line_that_passed_it(Model, iris):
    X, _ = iris
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        column = Model().fit(X, X[:, :1])
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(column.predict(X), Model().fit(X, X[:, 0]).predict(X))


@pytest.mark.parametrize(
    "use",
    [
        lambda X, y: SSMKClassifier(Linear()).fit(X, y),
        lambda X, y: RKDAClassifier(Linear()).fit(X, y),
        lambda X, y: AlignedKernelLearner([Linear(), RBF()]).fit(X, y),
        lambda X, y: list(SemiSupervisedSplit(2).split(X, y)),
    ],
    ids=["mixture", "discriminant", "learner", "split"],
)
def test_the_doubt_about_minus_one_is_at_the_line_that_passed_it(use, iris):
    X, y = iris
    with pytest.warns(UserWarning, match="y holds just -1 and 1") as caught:
        use(X, np.where(y == 0, -1, 1))
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("Model", [CGBoostClassifier, MKLClassifier, CGBoostClassifierCV])
def test_minus_one_among_the_classes_is_named_at_the_line_that_passed_it(Model, iris):
    X, y = iris
    with pytest.warns(UserWarning, match="y holds -1 beside 2 other classes") as caught:
        Model(Linear()).fit(X, y - 1)
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("Model", [CGBoostClassifier, CGBoostRegressor])
@pytest.mark.parametrize("form", [list, np.asarray, pd.Series, lambda y: np.array(y, dtype=object)[:, None]])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_rows_without_a_label_are_refused_with_the_estimator_that_takes_them(Model, form, iris):
    X, _ = iris
    for y, n_unlabeled in (([1.0, None] * 25, 25), ([None] * 50, 50)):
        with pytest.raises(ValueError, match=rf"Input y contains NaN: {n_unlabeled} rows .* use SSMK"):
            Model().fit(X, form(y) if form is not np.asarray else form(y, dtype=float))


def test_estimators_know_what_they_give_out():
    assert issubclass(CGBoostClassifier, KernelClassifier)
    assert issubclass(CGBoostRegressor, KernelRegressor)
