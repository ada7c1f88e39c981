"""A file exists whole or not at all."""

import errno
import os
import signal
import stat
import subprocess
import sys
import time

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


NAMES = ("copy", "record", "model")
needs_posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no permissions and processes of POSIX")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(name="group")
def earlier_group(tmp_path):
    """Files of an earlier run."""
    for name in NAMES:
        (tmp_path / name).write_bytes(b"old")
    return tmp_path


def test_nothing_takes_its_place_before_all_is_written(group):
    def interrupt(file):
        assert sorted(path.name.split(".")[1] for path in group.glob(".*.part")) == sorted(NAMES)
        raise KeyboardInterrupt

    before, files = contents(group), [(group / name, b"new") for name in NAMES]
    with pytest.raises(KeyboardInterrupt):
        write_all([*files[:2], (files[2][0], interrupt)])
    assert contents(group) == before
    write_all(files)
    assert contents(group) == dict.fromkeys(NAMES, b"new")


@pytest.mark.parametrize("exist", [NAMES, NAMES[:1], NAMES[1:], ()])
@pytest.mark.parametrize("n_done", range(6))
def test_a_group_is_as_it_was_where_a_renaming_fails(tmp_path, monkeypatch, exist, n_done):
    for name in exist:
        (tmp_path / name).write_bytes(b"old")
    before, rename, calls = contents(tmp_path), os.replace, []

    def fail(*paths):
        calls.append(paths)
        if len(calls) == n_done + 1:
            raise PermissionError(errno.EACCES, "Permission denied")
        rename(*paths)

    monkeypatch.setattr(os, "replace", fail)
    files = [(tmp_path / name, b"new") for name in NAMES]
    if n_done < len(NAMES) + len(set(exist) - {"copy"}):
        with pytest.raises(KernelweaveError, match="cannot be written: Permission denied"):
            write_all(files)
        assert contents(tmp_path) == before
    else:
        write_all(files)
        assert contents(tmp_path) == dict.fromkeys(NAMES, b"new")


KILLED = """
import os, signal, sys, time
from kernelweave import files
rename, parent = os.replace, os.getpid()
def slow(*paths):
    rename(*paths)
    if sys.argv[2:] == ["renaming"]:
        os.kill(parent, signal.SIGKILL)
        sys.argv[2] = "killed"
    time.sleep(0.05)
os.replace = slow
if len(sys.argv) == 2:
    files._run_apart = lambda task: (os.kill(parent, signal.SIGKILL), task())
files.write_all([(os.path.join(sys.argv[1], name), b"new") for name in ("copy", "record", "model")])
"""


@needs_posix
@pytest.mark.parametrize("words, expected", [([], b"old"), (["renaming"], b"new")], ids=["before", "while renaming"])
def test_a_group_is_old_or_new_after_a_kill(group, words, expected):
    done = subprocess.run([sys.executable, "-c", KILLED, str(group), *words], check=False)
    assert done.returncode == -signal.SIGKILL
    end = time.monotonic() + 20.0
    while expected == b"new" and set(contents(group)) != set(NAMES) and time.monotonic() < end:
        time.sleep(0.05)  # the process that renames has still to finish
    assert {name: contents(group)[name] for name in NAMES} == dict.fromkeys(NAMES, expected)
    write_all([(group / name, b"newer") for name in NAMES])
    assert contents(group) == dict.fromkeys(NAMES, b"newer")  # nothing is left of the killed one


@needs_posix
def test_a_group_is_written_where_no_other_process_can_be_made(group, monkeypatch):
    monkeypatch.setattr(os, "fork", lambda: (_ for _ in ()).throw(OSError(errno.ENOMEM, "Cannot allocate memory")))
    write_all([(group / name, b"new") for name in NAMES])
    assert contents(group) == dict.fromkeys(NAMES, b"new")
    monkeypatch.delattr(os, "fork")
    write_all([(group / name, b"newer") for name in NAMES])
    assert contents(group) == dict.fromkeys(NAMES, b"newer")


def test_what_was_put_aside_takes_its_place_again(tmp_path):
    (tmp_path / ".model.0123abcd.old").write_bytes(b"old")

    def look(file):
        assert (tmp_path / "model").read_bytes() == b"old"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic_write(tmp_path / "model", look)
    assert contents(tmp_path) == {"model": b"old"}


@needs_posix
@pytest.mark.parametrize(
    "sources, old, expected",
    [
        ([0o600], None, 0o600),
        ([0o640], None, 0o640),
        ([0o644, 0o600], None, 0o600),
        ([0o755], None, 0o644),
        ([0o666], None, 0o644),  # the umask
        ([0o600], 0o644, 0o600),
        ([0o644], 0o600, 0o600),
        ([], 0o640, 0o640),
        ([0o400], None, 0o600),  # the next run can write it again
    ],
)
def test_an_output_is_as_secret_as_what_it_is_made_from(tmp_path, sources, old, expected):
    for k, mode in enumerate(sources):
        (tmp_path / f"in{k}").touch()
        (tmp_path / f"in{k}").chmod(mode)
    if old is not None:
        (tmp_path / "out").touch()
        (tmp_path / "out").chmod(old)

    def look(file):
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == expected  # before anything is written

    umask = os.umask(0o022)
    try:
        atomic_write(tmp_path / "out", look, like=[tmp_path / f"in{k}" for k in range(len(sources))])
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == expected


@needs_posix
def test_an_open_file_may_be_named_by_its_number(tmp_path):
    (tmp_path / "in").touch()
    (tmp_path / "in").chmod(0o600)
    with open(tmp_path / "in", "rb") as file:
        atomic_write(tmp_path / "out", b"new", like=[file.fileno()])
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    ours, its = os.pipe()
    atomic_write(tmp_path / "pipe", b"new", like=[ours])  # which has no permissions of a file
    (tmp_path / "plain").touch()
    assert (tmp_path / "pipe").stat().st_mode == (tmp_path / "plain").stat().st_mode
    os.close(ours)
    os.close(its)


@needs_posix
@pytest.mark.parametrize("mode, expected", [(0o660, 0o600), (0o664, 0o644), (0o640, 0o600)])
def test_an_output_of_another_group_is_open_to_it_as_to_all(tmp_path, monkeypatch, mode, expected):
    (tmp_path / "in").touch()
    (tmp_path / "in").chmod(mode)
    given, measure = os.stat(tmp_path / "in"), os.stat
    other = os.stat_result((*given[:5], given.st_gid + 1, *given[6:]))
    monkeypatch.setattr(os, "stat", lambda path, **named: other if path == "in" else measure(path, **named))
    monkeypatch.setattr(os.path, "isfile", lambda path: True)
    umask = os.umask(0o002)
    try:
        atomic_write(tmp_path / "out", b"", like=["in"])
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == expected


def test_a_reason_is_one_line_without_a_full_stop_and_without_the_files_name():
    assert reason(PermissionError(13, "Permission denied", "in.csv")) == "Permission denied"
    assert reason(ValueError("embedded null byte.\nmore")) == "embedded null byte"


@pytest.mark.parametrize("code", ["ENOSPC", "EDQUOT", "EFBIG"])
def test_disks_quotas_and_files_can_be_full(code):
    assert is_full(OSError(getattr(errno, code), "no more"))
    assert not is_full(OSError(errno.EACCES, "Permission denied"))
    assert not is_full(OSError("no number"))
