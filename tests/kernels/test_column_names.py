import pandas as pd
import pytest
from checks.rounding import assert_same_but_for_rounding

from kernelweave import RBF, OnColumns, SSMKClassifier
from kernelweave.kernels.column_names import find_positions, name_columns, read_rows

NAMES = ["gene_1", "gene_2", "age", "gene_10", "size"]
SLICES = [
    slice("gene_2", "gene_10"),
    slice("age", None),
    slice(None, "age"),
    slice("gene_1", "size", 2),
    slice("age", "age"),
    slice(None, None),
]


@pytest.mark.parametrize("columns", SLICES, ids=str)
def test_a_slice_of_names_means_what_it_means_to_pandas(columns):
    frame = pd.DataFrame([range(5)], columns=NAMES)
    assert list(find_positions(columns, NAMES, 5)) == frame.loc[:, columns].iloc[0].tolist()


@pytest.mark.parametrize("start, stop, step", [(1, 3, None), (-2, None, None), (None, None, 2), (None, None, -1)])
def test_a_slice_of_positions_means_what_it_means_to_python(start, stop, step):
    assert find_positions(slice(start, stop, step), NAMES, 5) == tuple(range(5))[start:stop:step]


def test_names_patterns_and_positions_may_be_mixed_and_count_once():
    assert find_positions(["gene_1*", "gene_1", -1, 2], NAMES, 5) == (0, 3, 4, 2)
    assert find_positions("gene_*", NAMES, 5) == (0, 1, 3)


@pytest.mark.parametrize(
    "columns, names, message",
    [
        (slice("gene_2", "gene_77"), NAMES, r"names the columns \['gene_77'\] which X does not have; it has 'gene_1'"),
        (slice("age", "size"), None, r"names the columns \['age', 'size'\] .* 5 columns without names. Pass a frame"),
        (slice(0.5, 2.0), NAMES, r"names the columns \[0.5, 2.0\] which X does not have"),
        (slice("age", 4), NAMES, r"got slice\('age', 4, None\) as columns; expected a slice from name to name or from"),
        (slice("size", "age", -1), NAMES, "expected a slice from name to name"),
        (slice(0, 4, 0), NAMES, "with a whole number of columns as its step"),
        (slice(0, 4, "age"), NAMES, "with a whole number of columns as its step"),
        (slice("size", "age"), NAMES, r"names no column of X: got slice\('size', 'age', None\)"),
        ([4, 99], None, r"names the columns \[99\] .* 5 columns without names. Positions go from 0 to 4"),
        (["age", "weight"], NAMES, r"names the columns \['weight'\] which X does not have"),
        ([], NAMES, r"names no column of X: got \[\], X has 5 columns"),
    ],
)
def test_what_names_no_column_is_refused_with_a_sentence(columns, names, message):
    with pytest.raises(ValueError, match=message):
        find_positions(columns, names, 5)


def test_sources_are_called_after_their_columns():
    assert name_columns(slice("age", "size")) == "columns age:size"
    assert name_columns(slice(1, None, 2)) == "columns 1::2"
    assert name_columns("gene_*") == "gene_*"
    assert name_columns((1, 2, 3, 4)) == "1, 2, 3, … (4)"


def test_a_kernel_on_a_slice_of_names_is_that_on_the_names():
    frame = pd.DataFrame({name: [0.0, 1.0, 3.0, 4.0, 2.0, 5.0] for name in NAMES})
    y = [0, 0, 1, 1, 0, 1]
    by_slice = SSMKClassifier([OnColumns(RBF(), slice("gene_2", "gene_10"))]).fit(frame, y)
    by_names = SSMKClassifier([OnColumns(RBF(), ["gene_2", "age", "gene_10"])]).fit(frame, y)
    assert_same_but_for_rounding(by_slice.decision_function(frame), by_names.decision_function(frame))


def test_rows_are_read_with_the_names_of_their_columns():
    frame = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "b"], dtype="float32")
    X, names = read_rows(frame, allows_missing=False, dtypes=["float64", "float32"])
    assert (X.dtype, names) == ("float32", ["a", "b"])
    assert read_rows(X, allows_missing=False, dtypes=["float64"])[1] is None
    frame.loc[0, "a"] = float("nan")
    assert read_rows(frame, allows_missing=True, dtypes=["float64"])[0].shape == (2, 2)
    with pytest.raises(ValueError, match="contains NaN"):
        read_rows(frame, allows_missing=False, dtypes=["float64"])
