import gzip
import io
import zipfile

import pytest

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling import archives
from kernelweave.labeling.archives import find_kind, pack_writer, unpack
from kernelweave.labeling.table import read_table, write_filled


def zipped(*names):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
    return buffer.getvalue()


def test_a_copy_of_an_archive_is_an_archive_with_the_other_cells_as_they_were(tmp_path):
    content = b'id\ty\r\n007\t"NA"\r\n008\t\r\n'
    (tmp_path / "in.tsv.gz").write_bytes(gzip.compress(content))
    table = read_table(tmp_path / "in.tsv.gz")
    assert table.names == ["id", "y"]
    write_filled(table, "y", [None, "a"], {}, tmp_path / "out.tsv.gz")
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()) == b'id\ty\r\n007\t"NA"\r\n008\ta\r\n'


def test_equal_contents_are_equal_archives():
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        pack_writer(lambda packed: packed.write(b"x,y\n"))(file)
    assert files[0].getvalue() == files[1].getvalue()
    assert unpack("in.gz", files[0].getvalue()) == b"x,y\n"


@pytest.mark.parametrize(
    "raw",
    [gzip.compress(b"x,y\n1,\n" * 99)[:-20], gzip.compress(b"x,y\n")[:-1] + b"\1", b"\x1f\x8b\x08" + b"\xff" * 40],
    ids=["cut", "wrong sum", "noise"],
)
def test_a_broken_archive_is_one_sentence(raw):
    with pytest.raises(KernelweaveError, match=r"'in\.gz' is a broken gzip archive: .*\.$") as caught:
        unpack("in.gz", raw)
    assert caught.value.code is ErrorCode.NOT_A_TABLE


@pytest.mark.parametrize("names, kind", [(["xl/workbook.xml"], "workbook"), (["X.npy", "y.npy"], "arrays")])
def test_zip_archives_are_told_apart_by_what_they_hold(names, kind):
    assert find_kind("in", zipped(*names)) == kind


@pytest.mark.parametrize(
    "raw, words",
    [
        (zipped("readme.txt"), "not a table but a zip archive; unpack it first"),
        (zipped("mimetype", "content.xml"), "not a table but an OpenDocument file; save it as"),
        (b"PK\x03\x04" + bytes(30), "a broken Excel workbook or zip archive"),
    ],
)
def test_other_zip_archives_are_refused_with_what_to_do(raw, words):
    with pytest.raises(KernelweaveError, match=words):
        find_kind("in.zip", raw)


def spoil_entry(name, how):
    """An archive with an entry whose data are not as its header says."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, b"some text that is compressed " * 20)
        archive.writestr("xl/workbook.xml" if name.endswith("xml") else "y.npy", b"")
    raw = bytearray(buffer.getvalue())
    central, data = raw.index(b"PK\x01\x02"), 30 + len(name)
    if how == "data":
        raw[data : data + 4] = b"\xff" * 4
    elif how == "encrypted":
        raw[6], raw[central + 8] = 1, 1
    else:
        raw[8], raw[central + 10] = 77, 77
    return bytes(raw)


@pytest.mark.parametrize("name", ["[Content_Types].xml", "X.npy"])
@pytest.mark.parametrize("how", ["data", "encrypted", "method"])
def test_an_archive_with_a_spoiled_entry_is_one_sentence(name, how, tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / ("in.npz" if name == "X.npy" else "in.xlsx")
    path.write_bytes(spoil_entry(name, how))
    with pytest.raises(KernelweaveError, match=r"is a broken workbook: .*\.|cannot be read: .*\.") as caught:
        read_table(path)
    assert caught.value.code is ErrorCode.NOT_A_TABLE


@pytest.mark.parametrize("name", ["in.csv.gz", "in.npz", "in.xlsx"])
def test_a_small_archive_of_more_than_the_memory_is_refused_before_it_is_unpacked(name, tmp_path, monkeypatch):
    n_bytes, path = 2**26, tmp_path / name
    if name == "in.csv.gz":
        path.write_bytes(gzip.compress(b"x,y\n" + b"1,\n" * (n_bytes // 3)))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("X.npy" if name == "in.npz" else "xl/workbook.xml", bytes(n_bytes))
    assert path.stat().st_size < n_bytes // 100
    monkeypatch.setattr(archives, "free_memory", lambda: n_bytes)
    monkeypatch.setattr(archives.zipfile.ZipFile, "open", lambda *given, **named: pytest.fail("an entry was read"))
    with pytest.raises(KernelweaveError, match=rf"{name}' holds more than the memory here: .* Leave rows or") as caught:
        read_table(path)
    assert caught.value.code is ErrorCode.UNSUPPORTED
