"""What all tables refuse alike."""

import sys
from pathlib import Path

import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.base import expand_names
from kernelweave.labeling.table import read_table


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"x,y\n1,2\n")
    with pytest.raises(KernelweaveError, match="no column 'z'; it has 'x', 'y'") as caught:
        read_table(tmp_path / "in.csv").column("z")
    assert caught.value.code is ErrorCode.NO_SUCH_COLUMN


def test_a_name_that_is_nearly_one_of_the_columns_is_understood(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"x,outcome\n1,2\n")
    with pytest.raises(KernelweaveError, match=r"no column 'Outcomes'; it has .*\. Did you mean 'outcome'\?$"):
        read_table(tmp_path / "in.csv").column("Outcomes")


def test_words_name_columns_one_by_one_in_lists_or_by_a_pattern():
    names = ["a", "b", "gene_1", "gene_2", "a,b", "[x]", " c"]
    where = Path("in.csv")
    assert expand_names(["a", "gene_*"], names, where) == ("a", "gene_1", "gene_2")
    assert expand_names(["a, gene_2"], names, where) == ("a", "gene_2")
    assert expand_names(["a,b", "[x]", "b", " c"], names, where) == ("a,b", "[x]", "b", " c")
    assert expand_names(["a,", ",b, ,gene_1"], names, where) == ("a", "b", "gene_1")
    assert expand_names([], names, where) == ()
    for words in (["gen*e"], ["a,gene_3"], [""], [","]):
        with pytest.raises(KernelweaveError, match=r"'in.csv' has no column '.*'; it has"):
            expand_names(words, names, where)


def test_without_the_extra_the_way_to_install_it_is_said(tmp_path, monkeypatch):
    (tmp_path / "in.csv").write_bytes(b"x,y\n1,\n")
    table = read_table(tmp_path / "in.csv")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        KernelweaveError, match=r"needs pandas; install it with `pip install 'kernelweave\[cli\]'`"
    ) as caught:
        table.frame()
    assert caught.value.code is ErrorCode.UNSUPPORTED
