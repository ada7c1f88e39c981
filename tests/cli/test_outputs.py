import sys
from pathlib import Path

import pytest

from kernelweave.cli.outputs import check_outputs, check_skops, name_copy, rename_taken
from kernelweave.errors import ErrorCode, KernelweaveError


def test_a_copy_is_named_after_its_table():
    for name, copy in (("in.csv", "in.x.csv"), ("in.csv.gz", "in.x.csv.gz"), ("in.xlsx", "in.x.csv"), ("-", "-")):
        assert name_copy(Path(name), "x") == Path(copy)
    with pytest.raises(KernelweaveError, match="has no default name; name the copy with -o"):
        name_copy(Path("/dev/null"), "x")


def test_outputs_are_neither_inputs_nor_the_same_file(tmp_path):
    table = tmp_path / "in.csv"
    table.touch()
    check_outputs([tmp_path / "a", tmp_path / "b"], table)
    for outputs in ([table], [tmp_path / "a", tmp_path / "x" / ".." / "a"]):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(KernelweaveError) as caught:
            check_outputs(outputs, table)
        assert caught.value.code is ErrorCode.SAME_FILE


def test_appended_columns_get_names_that_are_free():
    assert rename_taken({"p": 1, "q": 2}, ["p", "p_2", "r"]) == {"p_3": 1, "q": 2}
    assert list(rename_taken({"p": 1, "p_2": 2}, ["p"])) == ["p_2", "p_2_2"]


def test_without_skops_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(KernelweaveError, match=r"pip install 'kernelweave\[io\]'"):
        check_skops()
