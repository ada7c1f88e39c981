import io
import zipfile

import numpy as np
import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.table import is_empty, read_table, write_filled

X = np.array([[1.5, 2.0], [3.0, 4.0], [5.0, 6.5]])


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def test_numbers_are_features_and_nan_in_y_is_an_empty_cell(tmp_path):
    table = read_table(save(tmp_path / "in.npz", X=X, y=np.array([0.0, 1.0, np.nan])))
    assert (table.names, table.n_rows, table.format) == (["x0", "x1", "y"], 3, "npz")
    assert table.column("y").tolist() == ["0", "1", ""]
    assert table.column("x0").tolist() == ["1.5", "3.0", "5.0"]
    assert is_empty(table, "y").tolist() == [False, False, True]
    assert table.frame()["x1"].tolist() == [2.0, 4.0, 6.5]
    assert list(table.frame(["x0"])) == ["x0"]


def test_the_copy_has_the_same_arrays_with_y_filled_and_one_for_each_column(tmp_path):
    names, other = np.array(["a", "b"]), np.arange(7)
    given = {"X": X, "y": np.array(["up", "", "down"]), "feature_names": names, "other": other}
    table = read_table(save(tmp_path / "in.npz", **given))
    assert table.names == ["a", "b", "y"]
    extra = {"p": ["", "0.75", ""], "set": ["", "sideways|up", ""]}
    write_filled(table, "y", [None, "sideways", None], extra, tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as copy:
        assert copy["y"].tolist() == ["up", "sideways", "down"]
        np.testing.assert_array_equal(copy["p"], [np.nan, 0.75, np.nan])
        assert copy["set"].tolist() == ["", "sideways|up", ""]
        for name in ("X", "feature_names", "other"):
            np.testing.assert_array_equal(copy[name], given[name])


@pytest.mark.parametrize("y", [np.array([3, 4, -1]), np.array([3.0, 4.0, np.nan], dtype=np.float32)])
def test_y_keeps_its_type(tmp_path, y):
    table = read_table(save(tmp_path / "in.npz", X=X, y=y))
    write_filled(table, "y", [None, None, "4"], {}, tmp_path / "out.npz", unlabeled="-1")
    filled = np.load(tmp_path / "out.npz")["y"]
    assert filled.dtype == y.dtype
    assert filled.tolist() == [3, 4, 4]


@pytest.mark.parametrize(
    "y, text, expected",
    [
        (np.array([3, 100, -1], "i1"), "-129", "int16"),
        (np.array([3, 255, 0], "u1"), "-7", "int16"),
        (np.array([3, 255, 0], "u1"), "70000", "int32"),
        (np.array([3, 4, 0], "u8"), "-7", "int64"),
        (np.array([3, 2**64 - 1, 0], "u8"), "8", "uint64"),
        (np.array([3, 4, -1], ">i2"), "7", ">i2"),
        (np.array([3, 4, np.nan], "f2"), "70000", "float32"),
        (np.array([3, np.inf, np.nan], "f4"), "1e39", "float64"),
    ],
)
def test_a_number_beyond_the_type_of_y_widens_it_and_no_given_one_changes(tmp_path, y, text, expected):
    table = read_table(save(tmp_path / "in.npz", X=X, y=y))
    write_filled(table, "y", [None, None, text], {}, tmp_path / "out.npz", unlabeled=str(y[2]))
    filled = np.load(tmp_path / "out.npz")["y"]
    assert filled.dtype == np.dtype(expected)
    assert filled.tolist() == [*y[:2].tolist(), pytest.approx(float(text))]


def test_numbers_that_no_integer_holds_together_are_refused(tmp_path):
    table = read_table(save(tmp_path / "in.npz", X=X, y=np.array([3, 2**64 - 1, 0], "u8")))
    with pytest.raises(KernelweaveError, match=r"y of .* has the type uint64 and cannot be filled: no type holds -7 "):
        write_filled(table, "y", [None, None, "-7"], {}, tmp_path / "out.npz", unlabeled="0")


def test_bytes_are_texts_and_no_given_label_is_lost(tmp_path):
    given = np.array(["grün".encode(), b"cd", b""])
    table = read_table(save(tmp_path / "in.npz", X=X, y=given, feature_names=np.array([b"a", b"b"])))
    assert table.names == ["a", "b", "y"]
    assert table.column("y").tolist() == ["grün", "cd", ""]
    assert table.frame()["y"].tolist() == ["grün", "cd", ""]
    write_filled(table, "y", [None, None, "longer"], {}, tmp_path / "out.npz")
    assert np.load(tmp_path / "out.npz")["y"].tolist() == ["grün", "cd", "longer"]


def test_truths_are_filled_with_truths(tmp_path):
    table = read_table(save(tmp_path / "in.npz", X=X, y=np.array([False, True, True])))
    write_filled(table, "y", [None, "False", "True"], {}, tmp_path / "out.npz", unlabeled="True")
    assert np.load(tmp_path / "out.npz")["y"].tolist() == [False, False, True]
    with pytest.raises(KernelweaveError, match="cannot be filled: 'no' is not one of True, False"):
        write_filled(table, "y", [None, "no", "True"], {}, tmp_path / "out.npz", unlabeled="True")


def test_a_label_that_the_type_cannot_hold_is_refused(tmp_path):
    table = read_table(save(tmp_path / "in.npz", X=X, y=np.array([3, 4, -1])))
    with pytest.raises(KernelweaveError, match="has the type int64 and cannot be filled") as caught:
        write_filled(table, "y", [None, None, "many"], {}, tmp_path / "out.npz", unlabeled="-1")
    assert caught.value.code is ErrorCode.UNSUPPORTED


def test_only_y_is_filled_and_no_array_is_lost(tmp_path):
    table = read_table(save(tmp_path / "in.npz", X=np.where(X > 4, np.nan, X), y=np.arange(3.0), p=np.ones(3)))
    with pytest.raises(KernelweaveError, match="only y can be filled, not 'x0'"):
        write_filled(table, "x0", [None, None, "1"], {}, tmp_path / "out.npz")
    with pytest.raises(KernelweaveError, match="already has an array 'p'"):
        write_filled(table, "x0", [None] * 3, {"p": ["", "", ""]}, tmp_path / "out.npz")


BROKEN = {
    "no X": ({"Z": X}, "needs an array X of two dimensions, of numbers; it has Z of shape"),
    "one dimension": ({"X": np.ones(3)}, "two dimensions"),
    "texts": ({"X": np.array([["a"]])}, "of numbers"),
    "other rows": ({"X": X, "y": np.ones(2)}, r"y has the shape \(2,\), but X has 3 rows"),
    "other columns": ({"X": X, "feature_names": np.array(["a"])}, "but X has 2 columns"),
    "names twice": ({"X": X, "feature_names": np.array(["a", "a"])}, "more than one column 'a'"),
    "objects": ({"X": X, "y": np.array([None, "a", {}], dtype=object)}, "it holds Python objects"),
    "no rows": ({"X": X[:0]}, "no rows"),
    "bytes of another encoding": (
        {"X": X, "y": np.array([b"\xff", b"a", b""])},
        "cannot be read: y holds bytes that are not UTF-8; write it as an array of str",
    ),
    "records": ({"X": X, "y": np.zeros(3, dtype="i4,f8")}, "cannot be read: y holds records"),
    "bytes for numbers": ({"X": np.array([[b"1", b"2"]])}, "of numbers"),
    "half a character": (
        {"X": X, "y": np.array(["a", "", "\udcff"])},
        "cannot be read: y holds texts that are not Unicode",
    ),
    "a name with half a character": (
        {"X": X, "feature_names": np.array(["a", "\ud800"], dtype=">U1")},
        "cannot be read: feature_names holds texts that are not Unicode",
    ),
    "no character": ({"X": X, "y": np.array([97, 0, 0x110000], np.uint32).view("U1")}, "texts that are not Unicode"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_arrays_that_are_no_table_are_one_sentence(tmp_path, kind):
    arrays, words = BROKEN[kind]
    with pytest.raises(KernelweaveError, match=words):
        read_table(save(tmp_path / "in.npz", **arrays))


def test_a_damaged_file_is_one_sentence(tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, X=X)
    raw = buffer.getvalue()
    (tmp_path / "in.npz").write_bytes(raw[:150] + bytes(20) + raw[170:])
    with pytest.raises(KernelweaveError, match=r"'.*in\.npz' cannot be read: .*\.$"):
        read_table(tmp_path / "in.npz")


@pytest.mark.parametrize(
    "header",
    [
        "(" * 3000,
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 2), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776, 1099511627776), }",
        "{'descr': " + "[" * 500 + "]" * 500 + ", 'fortran_order': False, 'shape': (1,), }",
    ],
    ids=["brackets", "a truth for a length", "a negative length", "lengths beyond all numbers", "nested types"],
)
def test_a_header_that_is_none_is_one_sentence(header, tmp_path):
    line = header.encode() + b"\n"
    with zipfile.ZipFile(tmp_path / "in.npz", "w") as archive:
        archive.writestr("X.npy", b"\x93NUMPY\1\0" + len(line).to_bytes(2, "little") + line + bytes(16))
    with pytest.raises(KernelweaveError, match=r"(?s)'.*in\.npz' cannot be read: .*\.$"):
        read_table(tmp_path / "in.npz")
