"""Candidates that choose columns by name: in pandas and polars frames, in fits, folds and predictions."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import (
    RBF,
    AutoKernelClassifier,
    AutoKernelRegressor,
    KernelLibrary,
    LabelAwareKernelLearner,
    LapSVMClassifier,
    LearnedKernelClassifier,
    Linear,
    MKLClassifier,
    Normalized,
    OnColumns,
    load,
    save,
)
from kernelweave.estimators.auto.frames import Columns, name_rows, place_columns, place_library, read_columns
from kernelweave.estimators.shared.sample import Rows

NAMES = ["alpha", "beta", "gamma"]
FRAMES = {"pandas": lambda X: pd.DataFrame(X, columns=NAMES), "polars": lambda X: pl.DataFrame(X, schema=NAMES)}
frames = pytest.mark.parametrize("library", FRAMES)


def rows_and_labels():
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    X = rng.normal(size=(60, 3))
    X[:, 1] += 4.0 * truth
    return X, truth, np.where(np.arange(60) < 24, truth, np.nan)


def by_name(model):
    chosen = ColumnTransformer([("chosen", StandardScaler(), ["beta", "gamma"])])
    return make_pipeline(chosen, model)


@pytest.fixture(scope="module", params=FRAMES)
def fitted(request):
    X, _, y = rows_and_labels()
    candidates = [
        ("pipeline", by_name(LogisticRegression())),
        ("kernel", MKLClassifier([OnColumns(RBF(), "beta")], C=1.0)),
        "RKDA",
    ]
    frame = FRAMES[request.param](X)
    return AutoKernelClassifier(candidates, kernels=[Linear()], random_state=0).fit(frame, y), frame


def test_candidates_may_name_columns_of_a_frame(fitted):
    model, frame = fitted
    _, truth, _ = rows_and_labels()
    assert {each["candidate"]: each["status"] for each in model.leaderboard_} == dict.fromkeys(
        ["pipeline", "kernel", "RKDA"], "tested"
    )
    assert np.mean(model.predict(frame) == truth) > 0.9
    members = {member.name: member for member in model.members_}
    columns = {name: member.columns for name, member in members.items()}
    assert columns.pop("pipeline").names == tuple(NAMES)
    assert set(columns.values()) <= {None}  # of ours: they share what is computed from one array


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_without_names_are_predicted_too_with_the_usual_warning(container, fitted):
    model, frame = fitted
    X, _, _ = rows_and_labels()
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        probabilities = model.predict_proba(container(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(frame), atol=1e-12)


def test_the_best_single_model_takes_frames_and_forgets_their_names_when_it_is_fitted_anew(fitted):
    model, frame = fitted
    X, truth, _ = rows_and_labels()
    single = model.refit_single()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.mean(single.predict(frame) == truth) > 0.8
        with pytest.raises(ValueError, match="feature names"):
            single.predict(frame[["gamma", "beta", "alpha"]])
        single.fit(X, truth).predict(X)


def test_a_model_from_a_file_predicts_frames(fitted, tmp_path):
    model, frame = fitted
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(frame), model.predict_proba(frame), rtol=1e-10)


@frames
def test_numbers_are_predicted_from_columns_by_name(library):
    X, _, _ = rows_and_labels()
    frame = FRAMES[library](X)
    candidates = [("pipeline", by_name(Ridge())), "harmonic"]
    y = np.where(np.arange(60) < 30, X[:, 1], np.nan)
    model = AutoKernelRegressor(candidates, random_state=0).fit(frame, y)
    assert {each["status"] for each in model.leaderboard_} == {"tested"}
    assert model.score(frame, X[:, 1]) > 0.9


@frames
def test_columns_are_read_from_a_frame_and_make_one_of_the_same_kind(library):
    X, _, _ = rows_and_labels()
    frame = FRAMES[library](X)
    columns = read_columns(frame, Rows(X, np.array(NAMES, dtype=object)))
    assert columns == Columns(tuple(NAMES), library)
    named = name_rows(X[:4], columns)
    assert type(named) is type(frame)
    assert list(named.columns) == NAMES
    np.testing.assert_array_equal(named.to_numpy(), X[:4])
    assert name_rows(X, None) is X


def test_arrays_sparse_rows_and_columns_without_names_stay_arrays():
    X, _, _ = rows_and_labels()
    names = np.array(NAMES, dtype=object)
    assert read_columns(X, Rows(X)) is None
    assert read_columns(pd.DataFrame(X), Rows(X)) is None
    assert read_columns(FRAMES["pandas"](X), Rows(sparse.csr_array(X), names)) is None


def test_kernels_have_positions_in_the_place_of_names_wherever_they_are():
    columns = Columns(tuple(NAMES), "pandas")
    single = place_columns(LapSVMClassifier(Normalized(OnColumns(RBF(), "gamma"))), columns)
    assert single.kernel == Normalized(OnColumns(RBF(), [2], source="gamma"))
    nested = place_columns(LearnedKernelClassifier(LabelAwareKernelLearner(OnColumns(RBF(), "beta"))), columns)
    assert nested.learner.kernel == OnColumns(RBF(), [1], source="beta")
    given = MKLClassifier([OnColumns(RBF(), "alpha"), Normalized(OnColumns(Linear(), ["beta", "gamma"]))])
    placed = place_columns(given, columns)
    assert [entry.kernel for entry in placed.kernels.entries] == [
        OnColumns(RBF(), "alpha").resolve(NAMES, 3),
        Normalized(OnColumns(Linear(), ["beta", "gamma"])).resolve(NAMES, 3),
    ]
    assert [entry.name for entry in placed.kernels.entries] == [
        entry.name for entry in KernelLibrary(given.kernels).entries
    ]
    assert place_columns(MKLClassifier(), columns).kernels is None
    with pytest.raises(ValueError, match="delta"):
        place_library([OnColumns(RBF(), "delta")], NAMES, 3)
