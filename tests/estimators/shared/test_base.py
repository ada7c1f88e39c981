from contextlib import nullcontext

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from checks.partitions import as_array, problem
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from kernelweave import (
    RBF,
    AlignedKernelLearner,
    CGBoostClassifier,
    KernelLibrary,
    LapSVMClassifier,
    Linear,
    MKLClassifier,
    OnColumns,
    Polynomial,
    RKDAClassifier,
    Sigmoid,
    SSMKClassifier,
)


def test_a_recipe_and_its_parameter_may_be_set_together():
    model = SSMKClassifier(RBF()).set_params(kernels__degree=4, kernels=Polynomial())
    assert model.kernels == Polynomial(degree=4)


def test_get_params_reaches_into_a_library():
    params = SSMKClassifier(KernelLibrary({"bump": RBF(), "line": Linear()})).get_params()
    assert params["kernels__bump__gamma"] == "mean"
    assert params["kernels__line"] == Linear()


LISTS = [[RBF(), Linear(), ("cubic", Polynomial(3))], {"RBF()": RBF(), "Linear()": Linear(), "cubic": Polynomial(3)}]


@pytest.mark.parametrize("kernels", [*LISTS, tuple(LISTS[0])], ids=["list", "dict", "tuple"])
@pytest.mark.parametrize("estimator", [SSMKClassifier, MKLClassifier, CGBoostClassifier])
def test_the_kernels_of_a_list_have_the_names_that_a_library_gives_them(estimator, kernels):
    model, library = estimator(kernels), KernelLibrary(kernels)
    assert model.get_params() == estimator(library).get_params() | {"kernels": kernels}
    assert model.get_params(deep=False)["kernels"] is kernels
    changed = clone(model).set_params(**{"kernels__RBF()__multiple": 3.0, "kernels__cubic": Sigmoid()})
    assert changed.kernels == library.replace(**{"RBF()__multiple": 3.0, "cubic": Sigmoid()})
    assert clone(changed).kernels is changed.kernels
    assert model.kernels is kernels


def test_a_list_and_a_parameter_of_it_may_be_set_together():
    model = SSMKClassifier().set_params(kernels=[Linear(), RBF()], **{"kernels__RBF()__multiple": 2.0})
    assert model.kernels == KernelLibrary([Linear(), RBF(multiple=2.0)])


def test_setting_what_was_got_changes_nothing():
    model = SSMKClassifier([RBF(), RBF(), Linear()])
    again = clone(model).set_params(**model.get_params())
    assert again.kernels == KernelLibrary([RBF(), RBF(), Linear()])


def test_a_grid_reaches_into_a_list():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    grid = {"kernels__bump__gamma": [1e-6, 1.0], "kernels__Linear()": [Linear(), 2.0 * Linear()]}
    search = GridSearchCV(SSMKClassifier([("bump", RBF()), Linear()]), grid, cv=3).fit(X, y)
    assert search.best_params_["kernels__bump__gamma"] == 1.0
    assert search.best_estimator_.library_.names[0] == "bump"


@pytest.mark.parametrize(
    "model, params, message",
    [
        (SSMKClassifier([RBF()]), {"kernels__gamma": 1.0}, r"The library has no kernel 'gamma'; it has 'RBF\(\)'"),
        (SSMKClassifier(["rbf"]), {"kernels__rbf__gamma": 1.0}, "kernels is .'rbf'.. Give kernels as a kernel, a list"),
        (LapSVMClassifier([RBF()]), {"kernel__gamma": 1.0}, r"since kernel is \[RBF\(\)\]. Give kernel as a kernel\."),
    ],
)
def test_a_name_that_there_is_not_is_refused(model, params, message):
    with pytest.raises(ValueError, match=message):
        model.set_params(**params)
    model.get_params()


def test_missing_values_are_allowed_only_where_a_kernel_gives_them_a_meaning():
    assert not SSMKClassifier().__sklearn_tags__().input_tags.allow_nan
    assert SSMKClassifier([OnColumns(RBF(), [0], missing="center")]).__sklearn_tags__().input_tags.allow_nan
    assert not SSMKClassifier(["nonsense"]).__sklearn_tags__().input_tags.allow_nan


def test_validation_rows_must_have_the_columns_of_the_fit_at_hand_and_not_of_an_earlier_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    model = CGBoostClassifier([RBF()]).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    frame = pd.DataFrame(X[:, :2], columns=["d", "e"])
    model.fit(frame, y, X_val=frame[:10], y_val=y[:10])
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(frame, y, X_val=frame[["e", "d"]], y_val=y)
    model.fit(X, y, X_val=X[:10], y_val=y[:10])
    with pytest.raises(ValueError, match="X has 2 features, but CGBoostClassifier is expecting 3"):
        model.fit(X, y, X_val=X[:, :2], y_val=y)


def test_rows_with_missing_values_are_predicted_where_the_fit_took_them():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    X[3, 1] = np.nan
    model = SSMKClassifier([OnColumns(RBF(), [0]), OnColumns(RBF(), [1], missing="center")]).fit(X, y)
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert model.predict(X).shape == (40,)
    model.kernels = None
    assert model.predict(X).shape == (40,)  # the model is as it was fitted
    model.fit(np.nan_to_num(X), y)
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(X)


# Subclasses


def test_a_subclass_may_fix_parameters_and_keep_attributes_of_its_own():
    class Fixed(MKLClassifier):
        def __init__(self, random_state=None):
            super().__init__([RBF(), Linear()], C=1.0, norm=2, weighting="learned", random_state=random_state)

        def fit(self, X, y):
            self.means_ = X.mean(axis=0)
            return super().fit(X, y)

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    model = Fixed().fit(X, y)
    np.testing.assert_array_equal(model.means_, X.mean(axis=0))
    plain = MKLClassifier([RBF(), Linear()], C=1.0, norm=2, weighting="learned").fit(X, y)
    np.testing.assert_array_equal(model.weights_, plain.weights_)


@pytest.mark.parametrize("container", ["default", "pandas"])
@pytest.mark.parametrize("estimator", [AlignedKernelLearner, RKDAClassifier])
def test_features_of_partitions_stay_lazy_in_every_container(estimator, container):
    X, y, _ = problem(60, 30)
    fit_to = (X[y >= 0], y[y >= 0])
    expected = estimator(random_state=0).fit(*fit_to).transform(X)
    for model, context in (
        (estimator(random_state=0).fit(*fit_to).set_output(transform=container), nullcontext()),
        (estimator(random_state=0).fit(*fit_to), config_context(transform_output=container)),
    ):
        with context:
            assert isinstance(model.transform(X), pd.DataFrame if container == "pandas" else np.ndarray)
            lazy = model.transform(as_array(X, 3))
            assert isinstance(lazy, da.Array)
            np.testing.assert_allclose(lazy.compute(), expected)


def test_fitted_features_of_partitions_stay_lazy_in_every_container():
    X, y, _ = problem(60, 30)
    learner = AlignedKernelLearner(random_state=0).set_output(transform="pandas")
    lazy = learner.fit_transform(as_array(X, 3), as_array(y, 3))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), learner.fit_transform(X, y).to_numpy(), rtol=1e-6, atol=1e-9)
