"""A file exists whole or not at all."""

import errno
import os
import stat

import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.files import atomic_write, check_output, is_full, reason, write_all


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")
def test_a_folder_in_which_no_file_can_be_made_is_found_out():
    with pytest.raises(KernelweaveError, match="no file can be made in '/proc'") as caught:
        check_output("/proc/out.csv")
    assert caught.value.code is ErrorCode.NOT_WRITABLE


@pytest.mark.parametrize("where", ["open", "fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError(28, "No space left on device")])
def test_nothing_is_left_after_an_error_or_an_interrupt(tmp_path, monkeypatch, where, error):
    (tmp_path / "out").write_bytes(b"old")

    def fail(*args):
        raise error

    if where != "open":
        monkeypatch.setattr(os, where, fail)
    with pytest.raises(KernelweaveError if isinstance(error, OSError) else error):
        atomic_write(tmp_path / "out", fail if where == "open" else b"new")
    assert os.listdir(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"old"


def test_the_temporary_file_of_a_living_writer_is_left_alone(tmp_path):
    atomic_write(tmp_path / "out", lambda file: (file.write(b"first"), atomic_write(tmp_path / "out", b"second")))
    assert (tmp_path / "out").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["out"]


def test_a_new_file_follows_the_umask_an_old_one_keeps_its_mode_and_a_link_stays_a_link(tmp_path):
    old = os.umask(0o027)
    try:
        atomic_write(tmp_path / "out", b"new")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640
    (tmp_path / "out").chmod(0o600)
    (tmp_path / "link").symlink_to("out")
    atomic_write(tmp_path / "link", b"newer")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out").read_bytes() == b"newer"
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    check_output(tmp_path / "out", tmp_path / "none")


def test_nothing_takes_its_place_before_all_is_written(tmp_path):
    for name in "ab":
        (tmp_path / name).write_bytes(b"earlier")

    def interrupt():
        assert sorted(path.name[:2] for path in tmp_path.glob(".*.part")) == [".a", ".b"]
        raise KeyboardInterrupt

    files = [(tmp_path / "a", b"new"), (tmp_path / "b", b"new")]
    with pytest.raises(KeyboardInterrupt):
        write_all(files, interrupt)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"earlier", "b": b"earlier"}
    write_all(files, lambda: None)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"new", "b": b"new"}


def test_a_reason_is_one_line_without_a_full_stop_and_without_the_files_name():
    assert reason(PermissionError(13, "Permission denied", "in.csv")) == "Permission denied"
    assert reason(ValueError("embedded null byte.\nmore")) == "embedded null byte"


@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT", "EFBIG"])
def test_disks_quotas_and_files_can_be_full(code):
    assert is_full(OSError(getattr(errno, code), "no more"))
    assert not is_full(OSError(errno.EACCES, "Permission denied"))
    assert not is_full(OSError("no number"))
