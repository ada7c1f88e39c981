"""The sample of rows depends on the rows and the seed, not on the files that they are in."""

import numpy as np
import pyarrow as pa
import pytest
from checks.many_files import make_frame, write_files

from kernelweave.labeling import partitions, sampling
from kernelweave.labeling.partitions import Summary, inspect_file, unite_schemas
from kernelweave.labeling.sampling import choose_rows, take_rows


def sample(folder, frame, cuts, seed=0):
    names = [*cuts]
    paths = [str(write_files(folder, frame, cuts) / name) for name in names]
    summaries = [inspect_file(path, "y", None) for path in paths]
    schema = unite_schemas(names, [each.schema for each in summaries])
    taken = [take_rows(choice, "y", None, schema) for choice in choose_rows(paths, summaries, seed)]
    starts = np.cumsum([0, *(each.n_rows for each in summaries)])
    numbers = np.concatenate([start + each.numbers for start, each in zip(starts[:-1], taken, strict=True)])
    return pa.concat_tables([each.rows for each in taken]).to_pandas(), numbers


@pytest.mark.parametrize("limit", [1000, 100, 60])
def test_the_sample_is_the_same_however_the_rows_are_cut(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(sampling, "MAX_ROWS", limit)
    monkeypatch.setattr(sampling, "MIN_UNLABELED", 30)
    monkeypatch.setattr(partitions, "BATCH_ROWS", 17)
    frame = make_frame(200, 45).sample(frac=1, random_state=1, ignore_index=True)
    first, numbers = sample(tmp_path / "one", frame, {"a": 200})
    for k, cuts in enumerate(({"a": 1, "b": 1, "c": 120, "d": 200}, {f"{end:03}": end for end in range(10, 201, 10)})):
        rows, same = sample(tmp_path / str(k), frame, cuts)
        assert rows.equals(first)
        assert np.array_equal(same, numbers)
    assert frame["u"].iloc[numbers].tolist() == first["u"].tolist()
    assert len(first) == min(limit, 200)
    assert first["y"].notna().sum() == min(45, limit - 30)


def test_another_seed_is_another_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "MAX_ROWS", 80)
    monkeypatch.setattr(sampling, "MIN_UNLABELED", 10)
    frame = make_frame()
    _, first = sample(tmp_path, frame, {"a": 120})
    _, second = sample(tmp_path, frame, {"a": 120}, seed=1)
    assert np.array_equal(first[:45], np.arange(45))  # all labelled rows
    assert not np.array_equal(first, second)


def test_every_unlabelled_row_is_as_likely_as_every_other(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_ROWS", 20)
    monkeypatch.setattr(sampling, "MIN_UNLABELED", 10)
    summaries = [Summary(None, 30, 0), Summary(None, 0, 0), Summary(None, 10, 0)]
    counts = np.zeros(40)
    for seed in range(2000):
        first, _, last = choose_rows(["a", "b", "c"], summaries, seed)
        counts[first.unlabeled] += 1
        counts[30 + last.unlabeled] += 1
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(2000 * 0.25)  # five standard deviations of a binomial


def test_billions_of_rows_are_drawn_from_in_little_memory():
    choice, last = choose_rows(["a", "b"], [Summary(None, 10**12, 10), Summary(None, 10**12, 0)], 0)
    assert len(choice.labeled) == 10
    assert len(choice.unlabeled) + len(last.unlabeled) == sampling.MAX_ROWS - 10
    assert last.unlabeled.max() < 10**12


def test_of_many_labels_a_sample_is_taken_too(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_ROWS", 20)
    monkeypatch.setattr(sampling, "MIN_UNLABELED", 10)
    for n_rows, n_labeled, expected in ((100, 80, (10, 10)), (100, 98, (18, 2)), (100, 5, (5, 15)), (30, 30, (20, 0))):
        (choice,) = choose_rows(["a"], [Summary(None, n_rows, n_labeled)], 0)
        assert (len(choice.labeled), len(choice.unlabeled)) == expected


def test_of_one_large_table_labelled_rows_and_some_others_are_learned_from(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_WHOLE_ROWS", 100)
    monkeypatch.setattr(sampling, "MAX_ROWS", 40)
    monkeypatch.setattr(sampling, "MIN_UNLABELED", 10)
    np.testing.assert_array_equal(sampling.choose_learned(np.ones(100, dtype=bool), 0), np.arange(100))
    for n_labeled, n_kept in ((7, 7), (90, 30)):
        empty = np.random.default_rng(0).permutation(np.arange(120) >= n_labeled)
        rows = sampling.choose_learned(empty, 3)
        np.testing.assert_array_equal(rows, np.unique(rows))
        assert (len(rows), int((~empty[rows]).sum())) == (40, n_kept)
        np.testing.assert_array_equal(rows, sampling.choose_learned(empty, 3))
        assert not np.array_equal(rows, sampling.choose_learned(empty, 4))
