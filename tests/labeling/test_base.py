"""What all tables refuse alike."""

import sys

import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling.table import read_table


def test_a_column_that_is_not_there_is_named_with_those_that_are(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"x,y\n1,2\n")
    with pytest.raises(KernelweaveError, match="no column 'z'; it has 'x', 'y'") as caught:
        read_table(tmp_path / "in.csv").column("z")
    assert caught.value.code is ErrorCode.NO_SUCH_COLUMN


def test_without_the_extra_the_way_to_install_it_is_said(tmp_path, monkeypatch):
    (tmp_path / "in.csv").write_bytes(b"x,y\n1,\n")
    table = read_table(tmp_path / "in.csv")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        KernelweaveError, match=r"needs pandas; install it with `pip install 'kernelweave\[cli\]'`"
    ) as caught:
        table.frame()
    assert caught.value.code is ErrorCode.UNSUPPORTED
