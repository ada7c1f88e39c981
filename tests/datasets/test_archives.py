"""Archives: what is read back, what is refused, what the checksum sees."""

import io
import struct
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from kernelweave.datasets import archives
from kernelweave.datasets.archives import canonical, checksum, read_archive, write_archive

ARRAYS = {
    "X": np.array([[0.5, -1.0, 2.0], [0.25, 0.0, 1e-3]], dtype=np.float32),
    "y": np.array([-1, 1], dtype=np.int8),
    "idxLabs": np.array([[0], [1]], dtype=np.uint16),
    "is_test": np.array([False, True]),
}


@pytest.fixture
def path(tmp_path):
    write_archive(tmp_path / "set.npz", ARRAYS)
    return tmp_path / "set.npz"


def test_what_is_written_is_read_back_and_nothing_else_is_left(path):
    found = read_archive(path)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert [file.name for file in path.parent.iterdir()] == ["set.npz"]


def test_a_failed_write_leaves_the_old_archive_and_no_other_file(path, monkeypatch):
    def torn(file, **_):
        file.write(b"half")
        raise OSError("no space")

    monkeypatch.setattr(np, "savez_compressed", torn)
    with pytest.raises(OSError, match="no space"):
        write_archive(path, {})
    assert read_archive(path).keys() == ARRAYS.keys()
    assert [file.name for file in path.parent.iterdir()] == ["set.npz"]


def test_an_archive_of_plain_savez_is_read_as_well(tmp_path):
    np.savez(tmp_path / "set.npz", **ARRAYS)
    assert checksum(read_archive(tmp_path / "set.npz")) == checksum(ARRAYS)


def test_a_file_that_is_cut_off_anywhere_is_refused(path):
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"is not an archive of arrays.*Replace it"):
            read_archive(path)


def test_a_changed_byte_is_refused_or_changes_nothing(path):
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            found = read_archive(path)
        except ValueError:
            continue
        # times and names in the zip have no checksum of their own; a changed name changes that of the content
        assert found.keys() != ARRAYS.keys() or checksum(found) == checksum(ARRAYS)


def test_pickles_are_refused_unread(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("it was unpickled",))

    np.savez(tmp_path / "set.npz", X=np.array([Bomb()], dtype=object))
    with pytest.raises(ValueError, match="dtype object"):
        read_archive(tmp_path / "set.npz")


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.array([(1, 2)], dtype="i4,i4")])
def test_only_numbers_are_read(tmp_path, array):
    np.savez(tmp_path / "set.npz", X=array)
    with pytest.raises(ValueError, match="only numbers"):
        read_archive(tmp_path / "set.npz")


def test_an_archive_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "set.npz", X=np.zeros(100_000))
    assert (tmp_path / "set.npz").stat().st_size < 10_000
    monkeypatch.setattr(archives, "MAX_BYTES", 10_000)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(ValueError, match="unpacks to 1 arrays of 800128 bytes; 32 of 10000 are allowed"):
        read_archive(tmp_path / "set.npz")


def test_too_many_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "set.npz", **{f"a{k}": np.zeros(1) for k in range(33)})
    with pytest.raises(ValueError, match="unpacks to 33 arrays"):
        read_archive(tmp_path / "set.npz")


def test_a_member_larger_than_the_directory_says_is_not_unpacked_further(tmp_path):
    path = tmp_path / "set.npz"
    np.savez_compressed(path, X=np.zeros(100_000))
    raw = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):  # file_size in both headers
        at = raw.find(signature) + offset
        raw[at : at + 4] = struct.pack("<I", 1000)
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="is not an archive of arrays"):
        read_archive(path)


@pytest.mark.parametrize("shape", ["(10**12,)", "(1000000000000,)", "(-8,)", "(-1, -2)", "(3,)"])
def test_a_header_that_promises_other_than_there_is_is_refused(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    raw = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + np.zeros(2).tobytes()
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("X.npy", raw)
    with pytest.raises(ValueError, match="is not an archive of arrays"):
        read_archive(tmp_path / "set.npz")


def test_another_version_of_the_format_is_refused(tmp_path):
    raw = io.BytesIO()
    np.lib.format.write_array(raw, np.zeros(2), version=(2, 0))
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("X.npy", raw.getvalue())
    with pytest.raises(ValueError, match=r"version \(2, 0\)"):
        read_archive(tmp_path / "set.npz")


def test_the_checksum_does_not_see_how_numbers_are_stored():
    stored = {
        "X": np.asfortranarray(ARRAYS["X"], dtype=np.float64),
        "y": ARRAYS["y"].astype(">i4"),
        "idxLabs": ARRAYS["idxLabs"].astype(float),
        "is_test": ARRAYS["is_test"].astype(np.uint8),
    }
    stored["X"][1, 1] = -0.0
    assert checksum(dict(reversed(stored.items()))) == checksum(ARRAYS)


def test_the_checksum_sees_any_other_value_shape_name_and_order_of_rows():
    others = [
        {**ARRAYS, "X": np.nextafter(ARRAYS["X"].astype(float), 9.0)},
        {**ARRAYS, "X": ARRAYS["X"][::-1]},
        {**ARRAYS, "X": ARRAYS["X"].reshape(3, 2)},
        {**ARRAYS, "y": -ARRAYS["y"]},
        {**ARRAYS, "idxUnls": ARRAYS["idxLabs"]},
        {name: array for name, array in ARRAYS.items() if name != "is_test"},
    ]
    assert len({checksum(arrays) for arrays in [ARRAYS, *others]}) == len(others) + 1


def test_what_the_checksum_takes_for_equal_is_equal_in_canonical_form():
    disguised = {**ARRAYS, "is_test": np.array([0.5, 1.5])}
    assert checksum(disguised) == checksum(ARRAYS)
    assert_array_equal(canonical(disguised)["is_test"], canonical(ARRAYS)["is_test"])
