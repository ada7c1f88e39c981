import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.semi_supervised import LabelSpreading

from kernelweave import HarmonicClassifier, column_importance


def table(n=120, n_labeled=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[:, 3] = X[:, 0]  # the same as the column that decides
    return X, np.where(np.arange(n) < n_labeled, np.where(X[:, 0] > 0, "up", "down"), None)


GROUPS = {"both": [0, 3], "noise": [1, 2]}


@pytest.fixture(scope="module")
def found():
    X, y = table()
    return column_importance(HarmonicClassifier(), X, y, sources=GROUPS, random_state=0)


def by_name(found):
    return {record["name"]: record for record in found.records}


def test_the_source_that_decides_is_clearly_needed_and_noise_is_not(found):
    records = by_name(found)
    assert records["both"]["low"] > 0.1
    assert records["noise"]["low"] < 0.05
    assert records["both"]["importance"] > records["noise"]["importance"]
    assert records["both"]["columns"] == 2


def test_of_two_columns_that_say_the_same_each_alone_matters_less(found):
    records = by_name(found)
    assert max(records[name]["importance"] for name in ("x0", "x3")) < records["both"]["importance"]


def test_sources_come_first_and_each_kind_by_importance(found):
    assert [record["kind"] for record in found.records] == ["source"] * 2 + ["column"] * 4
    for kind in ("source", "column"):
        values = [record["importance"] for record in found.records if record["kind"] == kind]
        assert values == sorted(values, reverse=True)
    assert all(record["low"] <= record["importance"] <= record["high"] for record in found.records)
    assert found.to_frame()["name"].tolist() == [record["name"] for record in found.records]


def test_labelled_rows_alone_are_scored(found):
    assert found.error.n_rows == 60
    assert found.task == "classes"


def test_labels_of_unlabelled_rows_could_be_anything():
    """The error and the importances come from labelled rows: a fitted model says the same with fewer other rows."""
    X, y = table()
    model = LogisticRegression().fit(X[60:], X[60:, 0] > 0)
    y = np.where(np.arange(120) < 60, (X[:, 0] > 0).astype(float), np.nan)
    found = column_importance(model, X, y, cv="prefit", random_state=0)
    assert found.error.n_rows == 60
    assert {record["name"] for record in found.records[:2]} == {"x0", "x3"}


@pytest.mark.parametrize("kind", ["array", "frame", "polars", "sparse"])
def test_arrays_frames_and_sparse_rows_are_exchanged_alike(kind):
    X, _ = table(60)
    y = (X[:, 0] > 0).astype(int)
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    given = {"array": X, "frame": frame, "polars": pl.DataFrame(X, schema=names), "sparse": csr_array(X)}[kind]
    before = given.clone() if kind == "polars" else given.copy()
    columns = {"first": ["a" if kind in ("frame", "polars") else 0], "second": [1]}
    found = column_importance(LogisticRegression(), given, y, columns=columns, cv=3, random_state=0)
    assert [record["name"] for record in found.records] == ["first", "second"]
    assert found.records[0]["low"] > 0
    assert given.equals(before) if kind in ("frame", "polars") else (given != before).sum() == 0


def test_estimators_that_read_codes_are_scored_in_their_coding():
    X, y = table(60, 40)
    found = column_importance(LabelSpreading(gamma=1.0), X, y, sources=GROUPS, columns={"x0": [0]}, random_state=0)
    assert found.error.value < 0.3
    assert found.records[0]["name"] == "both"


def test_numbers_rise_in_their_own_unit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(np.arange(80) < 50, 100 * X[:, 1], np.nan)
    found = column_importance(Ridge(), X, y, random_state=0)
    assert found.task == "numbers"
    assert found.records[0]["name"] == "x1"
    assert 50 < found.records[0]["importance"] < 200  # of a column of deviation 100 that is drawn anew: about 141


def test_without_time_sources_are_tried_and_columns_are_named():
    X, y = table()
    found = column_importance(HarmonicClassifier(), X, y, sources=GROUPS, max_time=0.0, random_state=0)
    assert [record["kind"] for record in found.records] == ["source", "source"]
    assert found.not_tried == ["x0", "x1", "x2", "x3"]


def test_a_callback_is_told_folds_and_columns():
    X, y = table(60, 40)
    seen = []
    column_importance(
        LogisticRegression(),
        X,
        y,
        columns={"mine": [0]},
        cv=2,
        random_state=0,
        callback=lambda *told: seen.append(told),
    )
    assert [name for name, _ in seen] == ["fold 1 is fitted", "fold 2 is fitted", "mine"]
    assert all(0 <= share <= 1 for _, share in seen)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"columns": {"a": ["nope"]}}, "the column 'nope', which X does not have; it has 'x0', 'x1'"),
        ({"columns": {"a": [9]}}, "the column 9, which X does not have"),
        ({"sources": {"a": []}}, "a group without columns"),
        ({"n_repeats": 0}, "n_repeats"),
    ],
)
def test_wrong_options_are_refused_by_name(options, words):
    with pytest.raises(ValueError, match=words):
        column_importance(LogisticRegression(), *table(), **options)


def test_rows_of_one_dimension_are_refused():
    with pytest.raises(ValueError, match="two dimensions"):
        column_importance(LogisticRegression(), [1, 2, 3], [0, 1, 0])
