"""Sets from a server that answers as OpenML does, honestly or not."""

import importlib.util
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import _openml

from kernelweave.datasets import openml
from kernelweave.datasets.archives import checksum, read_archive
from kernelweave.datasets.openml import OpenML, fetch
from kernelweave.datasets.records import STORED

ROWS = ["0.5,1,a", "-2,3,b", "0.5,0.1,a", "7,7,b"]
ARRAYS = {"X": np.array([[0.5, 1], [-2, 3], [0.5, 0.1], [7, 7]], dtype=np.float32), "y": np.array([-1, 1, -1, 1])}
SOURCE = OpenML(77, {"a": -1, "b": 1})
ROW_ORDER = openml.ROW_ORDER


@pytest.fixture(autouse=True)
def ranks(monkeypatch, tmp_path):
    """The order of ARRAYS, as the file of ranks has it."""
    order = np.lexsort((ARRAYS["y"], *ARRAYS["X"].T))
    path = tmp_path / "row_order.json"
    path.write_text(json.dumps({"tiny": np.argsort(order).tolist()}))
    monkeypatch.setattr(openml, "ROW_ORDER", path)


@pytest.fixture(params=["pandas", "liac-arff"])
def parser(request, monkeypatch):
    if request.param == "liac-arff":
        found = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else found(name))
    return request.param


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert_array_equal(found[name], array)


@pytest.mark.parametrize("rows", [ROWS, ROWS[::-1], [ROWS[2], ROWS[0], ROWS[3], ROWS[1]]])
def test_rows_are_those_of_the_archive_whatever_their_order_on_the_server(server, parser, rows):
    server.serve(77, rows, "ab", 2)
    assert_same(fetch("tiny", SOURCE), ARRAYS)


def test_rows_with_a_missing_value_are_dropped(server, parser):
    server.serve(77, [*ROWS[:2], "?,4,a", *ROWS[2:], "1,?,b"], "ab", 2)
    assert_same(fetch("tiny", SOURCE), ARRAYS)


def test_what_is_sent_compressed_is_read_as_well(server, parser):
    server.gzip = True
    server.serve(77, ROWS, "ab", 2)
    assert_same(fetch("tiny", SOURCE), ARRAYS)


def test_a_part_is_taken_by_position(server, parser):
    server.serve(77, ROWS, "ab", 2)
    rows = np.array([3, 1])
    found = fetch("part", OpenML(77, SOURCE.labels, positions=lambda: rows))
    assert_same(found, {"X": ARRAYS["X"][rows], "y": ARRAYS["y"][rows], "train_index": rows})


def test_a_part_of_more_rows_than_there_are_is_refused(server):
    server.serve(77, ROWS, "ab", 2)
    with pytest.raises(ValueError, match="it has 4 rows, and row 4 is needed"):
        fetch("part", OpenML(77, SOURCE.labels, positions=lambda: np.array([4])))


def test_classes_may_be_numbers_or_stand_in_quotes(server, parser):
    server.serve(77, ["1,2,'3'", "4,5,'6'"], ["'3'", "'6'"], 2)
    found = fetch("part", OpenML(77, {"3": 3, "6": 6}, positions=lambda: np.arange(2)))
    assert_array_equal(found["y"], [3, 6])


@pytest.mark.parametrize(
    "rows, target, message",
    [
        ([*ROWS[:3], "7,7,c"], "abc", r"classes \['c'\], and only \['a', 'b'\] are known"),
        (ROWS[:3], "ab", "it has 3 rows without a missing value, and 4 are expected"),
        (["1,1,a"] * 5, "ab", "it has 5 rows"),
    ],
)
def test_another_set_under_that_number_is_refused(server, rows, target, message):
    server.serve(77, rows, target, 2)
    with pytest.raises(ValueError, match=message):
        fetch("tiny", SOURCE)


@pytest.mark.parametrize("packed", [False, True])
def test_no_more_is_read_than_allowed(server, packed):
    server.gzip = packed  # a million equal rows pack to little
    server.serve(77, ["1,1,a"] * 1_000_000, "ab", 2)
    with pytest.raises(ValueError, match="larger than the 100000 bytes that are allowed"):
        fetch("tiny", OpenML(77, SOURCE.labels, max_bytes=100_000))


def test_an_endless_description_is_not_read_to_its_end(server):
    server.serve(77, ROWS, "ab", 2)
    server.answers["/api/v1/json/data/77"] = b'{"data_set_description": "' + b"x" * 1_000_000
    with pytest.raises(ValueError, match="larger than the 100000 bytes"):
        fetch("tiny", OpenML(77, SOURCE.labels, max_bytes=100_000))


@pytest.mark.skipif(hasattr(_openml, "_DATA_FILE"), reason="scikit-learn before 1.7 does not follow the server's url")
@pytest.mark.parametrize("where", ["file:///etc/hostname", "ftp://127.0.0.1/r.arff", "{address}/data/../../../r.arff"])
def test_the_server_cannot_send_us_elsewhere(server, where):
    server.serve(77, ROWS, "ab", 2, url=where.format(address=server.address))
    with pytest.raises(ValueError, match="is not one of the web"):
        fetch("tiny", SOURCE)


def test_a_wrong_md5_is_noticed(server):
    server.serve(77, ROWS, "ab", 2, md5="0" * 32)
    with pytest.raises(ValueError, match="md5 checksum"):
        fetch("tiny", SOURCE)


def test_scikit_learn_is_left_as_it_was(server):
    assert _openml.urlopen is urlopen
    server.serve(77, ROWS, "ab", 2)
    fetch("tiny", SOURCE)
    assert _openml.urlopen is urlopen
    server.answers.clear()
    with pytest.raises(OSError, match="404"):
        fetch("tiny", SOURCE)
    assert _openml.urlopen is urlopen


def test_threads_do_not_disturb_each_other(server):
    server.serve(77, ROWS, "ab", 2)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: fetch("tiny", SOURCE), range(8)):
            assert_same(found, ARRAYS)
    assert _openml.urlopen is urlopen


ON_OPENML = [record for record in STORED.values() if record.openml and record.openml.positions is None]


@pytest.mark.data
@pytest.mark.parametrize("record", ON_OPENML, ids=lambda record: record.name)
def test_the_stored_sets_come_back_from_a_shuffled_download(server, parser, data_dir, monkeypatch, record):
    monkeypatch.setattr(openml, "ROW_ORDER", ROW_ORDER)
    stored = read_archive(data_dir / f"{record.name}.npz")
    names = {code: name for name, code in record.openml.labels.items()}
    order = np.random.default_rng(0).permutation(record.n_rows)
    # decimals as the original has them, which has no more digits than a float32
    cells = [[f"{value:.7g}" for value in row] for row in stored["X"][order].astype(float)]
    rows = [",".join([*row, names[code]]) for row, code in zip(cells, stored["y"][order], strict=True)]
    incomplete = [",".join(["1"] * (record.n_columns - 1) + ["?", names[1]])] * 16
    server.serve(record.openml.data_id, [*rows, *incomplete], list(record.openml.labels), record.n_columns)
    assert checksum(fetch(record.name, record.openml)) == record.checksum


@pytest.mark.data
def test_mnist_is_the_part_of_the_training_rows_that_is_stored(data_dir):
    record, stored = STORED["mnist14k"], read_archive(data_dir / "mnist14k.npz")
    X, y = np.zeros((60000, 784), dtype=np.uint8), np.zeros(60000, dtype=int)
    X[stored["train_index"]], y[stored["train_index"]] = stored["X"], stored["y"]
    found = openml._convert("mnist14k", record.openml, X, y.astype(str))
    assert checksum(found) == record.checksum
