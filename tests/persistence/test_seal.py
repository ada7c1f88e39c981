import io
import os
import zipfile

import pytest

from kernelweave.persistence import seal
from kernelweave.persistence.seal import FORMAT, add_seal, read_sealed


def archive(content=b"numbers"):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("a", content)
    return file.getvalue()


@pytest.fixture(name="path")
def sealed_file(tmp_path):
    (tmp_path / "m").write_bytes(add_seal(archive()))
    return tmp_path / "m"


def test_a_sealed_file_says_its_format_and_is_still_an_archive(path):
    data, number = read_sealed(path)
    assert number == FORMAT
    assert data == path.read_bytes()
    with zipfile.ZipFile(path) as opened:
        assert opened.read("a") == b"numbers"
        assert opened.testzip() is None


def test_every_altered_byte_is_noticed(path):
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if seal.SEAL.fullmatch(path.read_bytes()[-seal.N_SEAL_BYTES :]):
            with pytest.raises(ValueError, match="damaged or was changed after it was saved"):
                read_sealed(path)
        else:  # the seal itself was altered: then there is none
            assert read_sealed(path)[1] is None


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: data + b"\n", lambda data: b"", archive])
def test_a_file_that_was_cut_prolonged_or_zipped_again_has_no_seal(path, change):
    path.write_bytes(change(path.read_bytes()))
    assert read_sealed(path)[1] is None


def test_a_file_without_its_middle_is_damaged(path):
    whole = path.read_bytes()
    path.write_bytes(whole[:10] + whole[11:])
    with pytest.raises(ValueError, match="damaged or was changed"):
        read_sealed(path)


def test_a_file_is_measured_before_it_is_read(path, monkeypatch):
    monkeypatch.setattr(seal, "MAX_FILE_BYTES", 50)
    monkeypatch.setattr("builtins.open", None)
    with pytest.raises(ValueError, match="has at most 50"):
        read_sealed(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_device_and_a_pipe_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", tmp_path / "pipe", tmp_path):
        with pytest.raises(ValueError, match="not an ordinary file"):
            read_sealed(path)
