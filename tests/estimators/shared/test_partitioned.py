"""The border of a fit with Dask collections: rows and labels are read as in memory, and bad ones refused."""

import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from checks.partitions import as_array, as_frame, problem
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from kernelweave import RBF, LearnedKernelClassifier, SSMKClassifier, SSMKRegressor
from kernelweave.estimators.shared import partitioned as module
from kernelweave.estimators.shared.partitioned import LabelRule, bring_to_memory, draw_to_memory, read_partitioned
from kernelweave.estimators.shared.sample import Rows, read_as_given
from kernelweave.labels import partition, partition_targets

X, y, numbers = problem(120, 20)
FLOATS = ("float64", "float32")


CLASSES = LabelRule()


def read(X, y, rule=CLASSES, X_unlabeled=None, dtypes=FLOATS):
    return read_partitioned("SSMKClassifier", X, y, None, X_unlabeled, rule, dtypes)


TEXTS = np.where(y < 0, None, np.where(y == 0, "no", "yes"))
LABELS = {
    "-1": y,
    "floats": np.where(y < 0, np.nan, y),
    "texts": TEXTS,
    "-1 a class": np.where(y < 0, np.nan, np.where(y == 0, -1, 1)),
    "object": np.array([None if label < 0 else int(label) for label in y], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("n_partitions", [1, 7, 64])
def test_labels_are_read_as_in_memory(name, n_partitions):
    labels, expected = LABELS[name], partition(LABELS[name])
    given = read(as_array(X, n_partitions), as_array(labels, n_partitions))
    assert given.n_rows == 120
    np.testing.assert_array_equal(given.labeled, expected.labeled)
    assert given.partition.classes.tolist() == expected.classes.tolist()
    np.testing.assert_array_equal(given.partition.codes, expected.codes)


@pytest.mark.parametrize("known", [True, False])
def test_frames_and_unknown_sizes_are_read(known):
    frame = as_frame(X, TEXTS, 7)
    features = frame[["x0", "x1", "x2", "x3"]]
    given = read(features, frame["y"])
    assert given.rows.feature_names.tolist() == ["x0", "x1", "x2", "x3"]
    np.testing.assert_allclose(given.rows.X[np.arange(120)], X)
    other = read(as_array(X, 7, known=known), as_array(y, 7, known=known))
    np.testing.assert_array_equal(other.labeled, given.labeled)


def test_names_of_columns_are_those_of_a_fit_in_memory():
    frame = as_frame(X, y, 7)
    labels, features = frame["y"], frame[["x0", "x1", "x2", "x3"]]
    model = SSMKClassifier(RBF(), C=1.0, random_state=0)
    numbered = features.rename(columns={"x0": 0, "x1": 1, "x2": 2, "x3": 3})
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert not hasattr(clone(model).fit(numbered, labels), "feature_names_in_")
        clone(model).fit(numbered, labels).predict(numbered).compute()
    with pytest.raises(TypeError, match="Feature names are only supported if all input features have string names"):
        model.fit(features.rename(columns={"x0": 0}), labels)


def test_names_of_labeled_rows_in_memory_are_kept():
    labeled, there = np.flatnonzero(y >= 0), as_frame(X, y, 7)[["x0", "x1", "x2", "x3"]]
    named = pd.DataFrame(X[labeled], columns=["x0", "x1", "x2", "x3"])
    for rows, others in ((named, as_array(X, 7)), (X[labeled], there), (named, there)):
        found = read(rows, y[labeled], X_unlabeled=others).rows.feature_names
        assert found.tolist() == ["x0", "x1", "x2", "x3"]


@pytest.mark.parametrize("known", [True, False])
def test_labels_may_be_in_other_chunks(known):
    for labels in (da.from_array(y, chunks=50), as_array(y, 3, known=known)):
        given = read(as_array(X, 7, known=known), labels)
        np.testing.assert_array_equal(given.labeled, partition(y).labeled)
        np.testing.assert_array_equal(given.partition.codes, partition(y).codes)


def test_columns_of_parquet_files_are_rows_and_labels(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, other=0.0)
    for k in range(4):
        frame.iloc[30 * k : 30 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet", index=False)
    there = dd.read_parquet(tmp_path)
    assert len(there["y"].to_delayed()) < len(there[list("abcd")].to_delayed())  # joined by Dask
    given = read(there[list("abcd")], there["y"])
    np.testing.assert_array_equal(given.labeled, partition(y).labeled)
    np.testing.assert_array_equal(given.partition.codes, partition(y).codes)
    np.testing.assert_array_equal(given.rows.X[np.arange(120)], X)


@pytest.mark.parametrize("labels", [y, TEXTS, numbers], ids=["-1", "texts", "numbers"])
def test_labels_in_one_column_are_read_with_a_warning_as_in_memory(labels):
    rule = LabelRule("numbers") if labels is numbers else CLASSES
    expected = read(as_array(X, 7), as_array(labels, 7), rule).partition
    labeled = partition_targets(labels).labeled if labels is numbers else partition(labels).labeled
    wide = labels[:, None]
    for call in (
        lambda: read(as_array(X, 7), as_array(wide, 7), rule),
        lambda: read(as_frame(X, y, 7)[["x0", "x1"]], as_frame(X, labels, 7)[["y"]], rule),
        lambda: read(X[labeled], wide[labeled], rule, X_unlabeled=as_array(X, 7)),
    ):
        with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
            found = call().partition
        np.testing.assert_array_equal(found.labels, expected.labels)


def test_numbers_are_read_where_they_are_meant():
    auto, wide = LabelRule("auto", several=True), np.column_stack([numbers, 2 * numbers])
    assert read(as_array(X, 7), as_array(numbers, 7), auto).partition.targets.ndim == 1
    assert read(as_array(X, 7), as_array(wide, 7), auto).partition.targets.shape == (20, 2)
    assert read(as_array(X, 7), as_array(y, 7), auto).partition.n_classes == 2
    one = read(as_array(X, 7), as_array(numbers, 7), LabelRule("numbers"))
    np.testing.assert_allclose(one.partition.targets, numbers[~np.isnan(numbers)])


def test_single_precision_stays_unless_doubles_are_asked_for():
    single = as_array(X.astype(np.float32), 7)
    assert read(single, as_array(y, 7)).rows.X.dtype == np.float32
    double = read(single, as_array(y, 7), dtypes=("float64",)).rows
    assert double.X[np.arange(3)].dtype == np.float64
    whole = read(as_array((10 * X).astype(int), 7), as_array(y, 7)).rows.X
    assert whole[np.arange(3)].dtype == np.float64


def test_labeled_rows_in_memory_come_before_the_others():
    labeled = np.flatnonzero(y >= 0)
    given = read(X[labeled], y[labeled], X_unlabeled=as_array(X, 7))
    assert given.n_rows == 140
    np.testing.assert_array_equal(given.labeled, np.arange(20))
    np.testing.assert_allclose(given.rows.X[np.arange(20)], X[labeled])


def test_sparse_labeled_rows_in_memory_are_joined():
    labeled = np.flatnonzero(y >= 0)
    given = read(sparse.csr_array(X[labeled]), y[labeled], X_unlabeled=as_array(X, 7))
    np.testing.assert_array_equal(given.rows.X[np.arange(20)], X[labeled])


def test_nullable_columns_are_numbers():
    frame = as_frame(X, y, 7)
    given = read(frame[["x0", "x1"]].astype("Float64"), frame["y"])
    np.testing.assert_array_equal(given.rows.X[np.arange(120)], X[:, :2])


def test_drawn_rows_are_unlabeled_and_do_not_depend_on_partitions(monkeypatch):
    monkeypatch.setattr(module, "MAX_BOUND_ROWS", 60)
    monkeypatch.setattr(module, "MAX_SEARCH_ROWS", 50)
    samples = [draw_to_memory(read(as_array(X, k), as_array(y, k))) for k in (1, 7)]
    np.testing.assert_array_equal(samples[0].kept, samples[1].kept)
    assert samples[0].n_rows == 50
    in_memory = draw_to_memory(read_as_given(Rows(X), partition(y)))
    np.testing.assert_array_equal(in_memory.kept, samples[0].kept)
    np.testing.assert_array_equal(in_memory.X, samples[0].X)
    assert in_memory.n_given == 120
    np.testing.assert_array_equal(samples[0].kept[samples[0].partition.labeled], partition(y).labeled)
    few, all_rows = bring_to_memory(read(as_array(X, 7), as_array(y, 7)))
    assert few.n_rows == 20
    assert all_rows.n_rows == 120


BAD = np.where(np.arange(120)[:, None] == 60, np.nan, X)
REFUSED = {
    "NaN": (lambda: read(as_array(BAD, 7), as_array(y, 7)), ValueError, "contains NaN or infinity in 4 values"),
    "infinity": (lambda: read(as_array(X / 0, 7), as_array(y, 7)), ValueError, "contains NaN or infinity"),
    "no rows": (lambda: read(as_array(X[:0], 1), as_array(y[:0], 1)), ValueError, "X has no rows"),
    "y in memory": (lambda: read(as_array(X, 7), y), TypeError, r"fit\(X_labeled, y, X_unlabeled=X\)"),
    "other length": (lambda: read(as_array(X, 7), as_array(y[:90], 7)), ValueError, "X has 120 rows but y has 90"),
    "other unknown length": (
        lambda: read(as_array(X, 7), as_array(y[:90], 3, known=False)),
        ValueError,
        "X has 120 rows but y has 90; they must have the same length. Take both from one frame or array",
    ),
    "one dimension": (lambda: read(as_array(y, 7), as_array(y, 7)), ValueError, "must have rows and columns"),
    "two columns": (
        lambda: read(as_array(X, 7), as_array(np.column_stack([y, y]), 7)),
        ValueError,
        r"y should be a 1d array, got an array of shape \(120, 2\)",
    ),
    "two columns in memory": (
        lambda: read(X, np.column_stack([y, y]), X_unlabeled=as_array(X, 7)),
        ValueError,
        r"y should be a 1d array, got an array of shape \(120, 2\)",
    ),
    "no label": (lambda: read(as_array(X, 7), as_array(np.full(120, np.nan), 7)), ValueError, "no labelled row"),
    "one class": (lambda: read(as_array(X, 7), as_array(np.where(y < 0, np.nan, 1), 7)), ValueError, "two classes"),
    "texts": (lambda: read(as_array(np.full((120, 2), "a"), 7), as_array(y, 7)), ValueError, "not numbers"),
    "both": (lambda: read(as_array(X, 7), y, X_unlabeled=as_array(X, 7)), TypeError, "labelled rows in memory"),
    "other columns": (
        lambda: read(
            pd.DataFrame(X[:, :4], columns=list("abcd")), y, X_unlabeled=as_frame(X, y, 3)[["x0", "x1", "x2", "x3"]]
        ),
        ValueError,
        "both need the same",
    ),
}


WITH_NA = as_frame(X, y, 7)[["x0", "x1"]].map_partitions(lambda part: part.astype("Float64").mask(part > 2))
REFUSED |= {
    "NA": (lambda: read(WITH_NA, as_frame(X, y, 7)["y"]), ValueError, "contains NaN or infinity in . values"),
    "NA in memory": (
        lambda: read(WITH_NA.compute(), y, X_unlabeled=as_array(X[:, :2], 7)),
        ValueError,
        "Input X contains NaN or infinity",
    ),
    "complex": (lambda: read(as_array(X + 1j, 7), as_array(y, 7)), ValueError, "X holds values of the type complex128"),
    "dates": (
        lambda: read(as_array((9 * X).astype("M8[s]"), 7), as_array(y, 7)),
        ValueError,
        "X holds values of the type datetime64",
    ),
    "sparse blocks": (
        lambda: read(as_array(X, 7).map_blocks(sparse.csr_array), as_array(y, 7)),
        TypeError,
        "X has partitions of sparse rows",
    ),
    "unlabeled rows in memory": (
        lambda: read(as_array(X, 7), as_array(y, 7), X_unlabeled=X),
        TypeError,
        "X and y are the labelled rows in memory; got Dask collections",
    ),
    "fewer columns": (
        lambda: read(X, y, X_unlabeled=as_array(X[:, :3], 7)),
        ValueError,
        "X has 4 columns and X_unlabeled 3; both need the same",
    ),
    "one dimension in memory": (
        lambda: read(X[:, 0], y, X_unlabeled=as_array(X, 7)),
        ValueError,
        "X must have rows and columns",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_bad_collections_get_one_clear_sentence(name):
    call, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        call()


def test_weights_are_refused_and_nothing_is_fitted():
    model = SSMKClassifier()
    with pytest.raises(ValueError, match="SSMKClassifier takes no sample_weight with rows in Dask collections"):
        model.fit(as_array(X, 7), as_array(y, 7), sample_weight=np.ones(120))
    assert not hasattr(model, "classes_")


def test_too_many_classes_or_labels_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_LABELED", 10)
    with pytest.raises(ValueError, match="20 rows are labelled"):
        read(as_array(X, 7), as_array(y, 7))
    monkeypatch.setattr(module, "MAX_DISTINCT", 5)
    with pytest.raises(ValueError, match="more than 5 distinct values"):
        read(as_array(X, 7), as_array(np.arange(120), 7))


@pytest.mark.parametrize("estimator", [SSMKClassifier, LearnedKernelClassifier])
def test_unlabeled_rows_in_memory_are_joined(estimator):
    labeled = np.flatnonzero(y >= 0)
    joined = estimator(random_state=0).fit(X[labeled], y[labeled], X_unlabeled=X)
    rows, labels = np.concatenate([X[labeled], X]), np.concatenate([y[labeled], np.full(120, -1)])
    expected = estimator(random_state=0).fit(rows, labels)
    np.testing.assert_array_equal(joined.transduction_, expected.transduction_)


def test_numbers_of_partitions_are_filled_in():
    model = SSMKRegressor(random_state=0).fit(as_array(X, 7), as_array(numbers, 7))
    expected = SSMKRegressor(random_state=0).fit(X, numbers)
    np.testing.assert_allclose(model.transduction_.compute(), expected.transduction_, rtol=1e-6)
    np.testing.assert_allclose(model.dual_coef_.compute(), expected.dual_coef_, rtol=1e-6, atol=1e-9)
