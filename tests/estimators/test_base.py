import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.class_weight import compute_class_weight

from kernelweave import RBF, KernelLibrary, Linear, MKLClassifier, OnColumns, Polynomial, SSMKClassifier
from kernelweave.estimators.base import class_weights, is_count, is_positive, require
from kernelweave.labels import partition

Y = np.array([0, 0, 0, 1, -1, 2, 2])


def test_balanced_class_weights_make_classes_weigh_the_same():
    found = partition(Y)
    weight = np.array([1.0, 2.0, 1.0, 1.0, 3.0, 1.0])
    factors = class_weights("balanced", found, weight)
    totals = np.bincount(found.codes, weights=weight * factors)
    np.testing.assert_allclose(totals, weight.sum() / 3)


def test_class_weights_given_by_class_go_to_the_rows():
    np.testing.assert_array_equal(class_weights({0: 2.0, 2: 5.0}, partition(Y), np.ones(6)), [2, 2, 2, 1, 5, 5])
    np.testing.assert_array_equal(class_weights({"a": 3}, partition(["a", "b", None]), np.ones(2)), [3, 1])


@pytest.mark.parametrize("y", [np.array([0, 1, 1]), np.array([0.0, 1.0, 1.0])], ids=["int", "float"])
@pytest.mark.parametrize("given", [{0: 2, 1: 3, 7: 4}, {0: 2}, {0: 2, 7: 4}, {7: 4}, {}], ids=str)
def test_weights_of_classes_that_y_lacks_are_taken_and_refused_as_scikit_learn_does(given, y):
    try:
        expected = compute_class_weight(given, classes=np.unique(y), y=y)
    except ValueError:
        with pytest.raises(ValueError, match=r"class_weight names the class 7; y has .*, of which .* have no weight"):
            class_weights(given, partition(y), np.ones(3))
    else:
        np.testing.assert_array_equal(class_weights(given, partition(y), np.ones(3)), expected[y.astype(int)])


def test_a_class_that_a_training_part_lacks_may_have_a_weight():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.arange(30) % 2
    for model in (MKLClassifier(Linear()), SSMKClassifier(Linear())):
        plain, more = model.set_params(class_weight={0: 1.0, 1: 2.0}).fit(X, y).decision_function(X), {2: 3.0}
        model.set_params(class_weight={0: 1.0, 1: 2.0} | more)
        np.testing.assert_array_equal(model.fit(X, y).decision_function(X), plain)


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, "x"])
def test_a_class_weight_must_be_positive(value):
    with pytest.raises(ValueError, match=r"gives 7 the weight .* expected a positive number"):
        class_weights({0: 1, 1: 1, 2: 1, 7: value}, partition(Y), np.ones(6))
    with pytest.raises(ValueError, match="expected a positive number"):
        class_weights({0: value}, partition(Y), np.ones(6))


def test_a_refused_parameter_is_named_with_its_value():
    with pytest.raises(ValueError, match="Owner got C=-1; expected a positive number"):
        require("Owner", "C", -1, is_positive(-1), "a positive number")


@pytest.mark.parametrize("value, positive, countable", [(1, True, True), (0.5, True, False), (True, False, False)])
def test_numbers_are_told_apart(value, positive, countable):
    assert is_positive(value) is positive
    assert is_count(value) is countable


def test_setting_a_nested_parameter_leaves_shared_recipes_alone():
    recipe = RBF()
    first, second = SSMKClassifier(recipe), SSMKClassifier(recipe)
    first.set_params(kernels__multiple=3.0, C=2.0)
    assert first.kernels == RBF(multiple=3.0)
    assert first.C == 2.0
    assert second.kernels is recipe
    assert recipe == RBF()


def test_a_recipe_and_its_parameter_may_be_set_together():
    model = SSMKClassifier(RBF()).set_params(kernels__degree=4, kernels=Polynomial())
    assert model.kernels == Polynomial(degree=4)


def test_get_params_reaches_into_a_library():
    params = SSMKClassifier(KernelLibrary({"bump": RBF(), "line": Linear()})).get_params()
    assert params["kernels__bump__gamma"] == "mean"
    assert params["kernels__line"] == Linear()


def test_missing_values_are_allowed_only_where_a_kernel_gives_them_a_meaning():
    assert not SSMKClassifier().__sklearn_tags__().input_tags.allow_nan
    assert SSMKClassifier([OnColumns(RBF(), [0], missing="center")]).__sklearn_tags__().input_tags.allow_nan
    assert not SSMKClassifier(["nonsense"]).__sklearn_tags__().input_tags.allow_nan


def test_score_without_a_labeled_row_is_refused():
    X = np.random.default_rng(0).normal(size=(7, 2))
    model = SSMKClassifier().fit(X, Y)
    with pytest.raises(ValueError, match="at least one labelled row"):
        model.score(X, np.full(7, np.nan))
    assert model.score(X, Y) == 1.0


def test_a_first_fit_that_is_interrupted_leaves_no_model():
    def interrupt(state):
        raise KeyboardInterrupt

    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    model = MKLClassifier(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert model.set_params(callback=None).fit(X, y).predict(X).shape == (20,)
