"""Copies of files, with a model that is simple enough to know what it fills in."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from checks.many_files import make_frame

from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling import file_copies, partitions
from kernelweave.labeling.file_copies import FileCopy, describe_copies, fill_file
from kernelweave.labeling.job import LabelingOptions, fill_labels
from kernelweave.persistence import save

pytest.importorskip("skops")


def as_table(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(scope="module")
def learned():
    """A model of a frame, and what is saved with it."""
    frame = make_frame()
    schema = as_table(frame).schema.remove_metadata()
    cells = frame["y"].fillna("").to_numpy(dtype=object)
    options = LabelingOptions(target="y", learner="SVM", coverage=0.9)
    labeling = fill_labels(frame, cells, cells == "", options, lambda *stage: None)
    names = {name: f"{name}_2" if name == "y_margin" else name for name in labeling.extra}
    about = describe_copies(schema, labeling.extra, names, "y")
    return labeling, about | {"target": "y", "unlabeled": None}


@pytest.fixture
def fill(learned, tmp_path):
    """What fills an Arrow table by way of files, and returns the copy."""
    save(learned[0].model, tmp_path / "m.skops", **learned[1])

    def fill(table, **options):
        source, out = tmp_path / "in.parquet", tmp_path / "out" / "copy.parquet"
        pq.write_table(table, source, **options)
        assert fill_file(FileCopy(str(source), str(out), str(tmp_path / "m.skops"), "1")) == table.num_rows
        assert [path.name for path in out.parent.iterdir()] == ["copy.parquet"]
        return pq.ParquetFile(out)

    file_copies._load_filler.cache_clear()
    return fill


def test_a_copy_has_the_labels_that_the_job_fills_in(fill, learned, monkeypatch):
    monkeypatch.setattr(partitions, "BATCH_ROWS", 13)
    frame, labeling = make_frame(), learned[0]
    before = as_table(frame)
    copy = fill(before, row_group_size=50, compression="zstd")
    after = copy.read()
    assert after.column_names == [*before.column_names, "y_probability", "y_margin_2", "y_set"]
    assert after.drop_columns(["y", *after.column_names[5:]]).equals(before.drop_columns(["y"]))
    assert after["y"].to_pylist() == [
        given or filled for given, filled in zip(frame["y"], labeling.values, strict=True)
    ]
    stated = [float(text) if text else np.nan for text in labeling.extra["y_probability"]]
    assert after["y_probability"].to_numpy() == pytest.approx(stated, abs=2e-4, nan_ok=True)
    assert [copy.metadata.row_group(k).num_rows for k in range(3)] == [50, 50, 20]
    assert copy.metadata.row_group(0).column(0).compression == "ZSTD"
    assert after.schema.metadata == before.schema.metadata


@pytest.mark.parametrize("n_rows", [0, 1])
def test_files_of_no_row_and_of_one_row_have_copies(fill, n_rows):
    after = fill(as_table(make_frame().iloc[100 : 100 + n_rows])).read()
    assert after.num_rows == n_rows
    assert after.schema.field("y").type in (pa.string(), pa.large_string())
    assert after.column_names[5:] == ["y_probability", "y_margin_2", "y_set"]
    assert after["y"].null_count == 0


def test_a_file_without_a_label_and_one_with_all_have_the_same_types(fill):
    frame = make_frame()
    empty, full = as_table(frame.iloc[60:90]), as_table(frame.iloc[:30])
    assert empty.schema.field("y").type == pa.null()
    schemas = [fill(table).schema_arrow.remove_metadata() for table in (empty, full)]
    assert schemas[0] == schemas[1]
    assert schemas[0].field("y_set").type == pa.string()


def test_other_types_and_another_order_of_columns_are_read(fill):
    frame = make_frame().iloc[50:70]
    same = fill(as_table(frame)).read()
    frame = frame[["y", "kind", "w", "v", "u"]]
    after = fill(as_table(frame)).read()
    assert after.column_names[:5] == [*frame]
    assert after["y"].to_pylist() == same["y"].to_pylist()
    whole = frame.assign(u=1)
    assert fill(as_table(whole)).read()["u"].type == pa.int64()


def test_a_cell_that_cannot_be_read_is_refused_with_its_file(fill, tmp_path):
    frame = make_frame().iloc[50:70].assign(u=1e200)
    with pytest.raises(KernelweaveError, match=r"in\.parquet") as caught:
        fill(as_table(frame))
    assert caught.value.code is ErrorCode.BAD_FEATURES
    assert not (tmp_path / "out" / "copy.parquet").exists()


def test_sets_of_classes_that_look_like_numbers_are_text():
    about = describe_copies(
        pa.schema([("y", pa.int64())]),
        {"y_probability": ["0.5", ""], "y_set": ["0", "1"], "y_low": ["1,5", ""]},
        {"y_probability": "y_probability", "y_set": "y_set", "y_low": "y_low_2"},
        "y",
    )
    assert about["appended"] == {
        "y_probability": ["y_probability", "double"],
        "y_set": ["y_set", "string"],
        "y_low": ["y_low_2", "string"],
    }
