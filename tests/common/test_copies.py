"""Clones, pickles and files of a model are that model; a second fit leaves nothing of the first."""

import pickle

import numpy as np
import pandas as pd
import pytest
from checks.rounding import assert_same_but_for_rounding
from common.estimators import cases, fitted, outputs, sample
from sklearn.base import clone

from kernelweave import Linear, Precomputed, load, save


def assert_same_model(copy, model, X):
    assert_same_but_for_rounding(outputs(copy, X), outputs(model, X))
    assert copy.status_ is model.status_
    assert copy.certificate_ == model.certificate_
    assert getattr(copy, "library_", None) == getattr(model, "library_", None)
    assert sorted(vars(copy)) == sorted(vars(model))


@cases(variants=True)
def test_a_clone_has_the_parameters_and_nothing_else(case):
    model = fitted(case)
    copy = clone(model)
    assert repr(copy) == repr(case.model())
    assert sorted(vars(copy)) == sorted(copy.get_params(deep=False))


@cases(variants=True)
def test_a_pickle_is_the_same_model(case):
    model = fitted(case)
    assert_same_model(pickle.loads(pickle.dumps(model)), model, sample(case)[0])


@cases(variants=True)
def test_a_model_from_a_file_is_the_same_model(case, tmp_path):
    pytest.importorskip("skops")
    model = fitted(case)
    save(model, tmp_path / "m.skops")
    assert_same_model(load(tmp_path / "m.skops"), model, sample(case)[0])


@cases("classes")
def test_a_model_of_three_named_classes_is_the_same_from_a_file(case, tmp_path):
    pytest.importorskip("skops")
    X, y = sample(case, n_classes=3)
    names = np.where(np.isnan(y), None, np.array(["a", "b", "c"])[np.nan_to_num(y).astype(int)])
    model = case.model().fit(X, names)
    save(model, tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    assert_same_model(again, model, X)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@cases(where=lambda case: case.kernel is not None)
def test_a_clone_shares_a_precomputed_matrix(case):
    K = np.eye(4)
    given = Precomputed(K) if case.kernel == "kernel" else [Precomputed(K), Linear()]
    copy = clone(case.model(**{case.kernel: given})).get_params()[case.kernel]
    assert (copy if case.kernel == "kernel" else copy[0]).K is K


@cases()
def test_a_second_fit_leaves_nothing_of_the_first(case):
    X, y = sample(case)
    model = case.model().fit(pd.DataFrame(X, columns=list("abc")), y)
    model.note_ = "mine"
    model.fit(X[:, :2], y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 2
    assert model.note_ == "mine"
    assert sorted(vars(model)) == sorted([*vars(case.model().fit(X[:, :2], y)), "note_"])
