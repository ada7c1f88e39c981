"""Tables that a fit keeps: lists and dicts that a notebook shows as tables."""

import json
import pickle
import sys

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave import AutoKernelClassifier, LabelAwareKernelLearner, MKLClassifier, SSMKClassifier, load, save
from kernelweave.estimators.shared.records import NamedNumbers, Records, format_cell, html_table

HOSTILE = "<script>alert('&')</script>"


@pytest.fixture(scope="module")
def models():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, "a", "b")
    auto = AutoKernelClassifier(["MKL", "logistic regression"], random_state=0)
    return [model.fit(X, y) for model in (SSMKClassifier(), MKLClassifier(), LabelAwareKernelLearner(), auto)]


def tables(model):
    names = ("kernel_usage_", "kernel_weights_", "source_weights_", "history_", "leaderboard_", "base_kernels_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def test_what_a_fit_lists_is_a_table_and_still_a_list_or_a_dict(models):
    found = set()
    for model in models:
        for name, table in tables(model).items():
            found.add(name)
            assert isinstance(table, dict if name == "source_weights_" else list)
            assert "<table" in table._repr_html_()
            assert len(table.to_frame()) == len(table)
            assert table == (dict(table) if name == "source_weights_" else list(table))
    assert found == {"kernel_usage_", "kernel_weights_", "source_weights_", "history_", "leaderboard_", "base_kernels_"}


def test_tables_survive_pickling_saving_and_a_clone(models, tmp_path):
    for k, model in enumerate(models):
        save(model, tmp_path / str(k))
        for again in (pickle.loads(pickle.dumps(model)), load(tmp_path / str(k))):
            for name, table in tables(model).items():
                copy = getattr(again, name)
                assert type(copy) is type(table)
                assert copy.to_frame().equals(table.to_frame())
        assert not tables(clone(model))


def test_records_are_plain_data_to_json():
    assert json.dumps(Records([{"a": 1}])) == '[{"a": 1}]'
    assert json.dumps(NamedNumbers(a=0.5)) == '{"a": 0.5}'


def test_a_frame_has_a_column_for_each_key_and_a_gap_where_a_record_has_none():
    frame = Records([{"a": 1, "b": 2.0}, {"a": 3, "c": "x"}]).to_frame()
    assert list(frame.columns) == ["a", "b", "c"]
    assert frame["b"].isna().tolist() == [False, True]


def test_all_text_in_a_table_is_escaped():
    for text in (Records([{HOSTILE: HOSTILE}])._repr_html_(), NamedNumbers({HOSTILE: 1.0})._repr_html_()):
        assert "<script" not in text
        assert "&lt;script&gt;" in text


def test_a_long_table_is_cut_in_the_middle():
    text = html_table([{"row": f"r{k}"} for k in range(1000)])
    assert "960 more rows" in text
    assert ">r0<" in text
    assert ">r999<" in text
    assert text.index(">r19<") < text.index("more rows") < text.index(">r980<")
    assert len(text) < 5000


def test_a_text_that_is_cut_is_whole_under_the_pointer():
    text = html_table([{"name": f'{"x" * 90}"<b>{"x" * 90}'}])
    assert f'title="{"x" * 90}&quot;&lt;b&gt;{"x" * 90}"' in text


def test_an_empty_table_is_a_table():
    assert "<table" in Records()._repr_html_()
    assert len(Records().to_frame()) == 0


@pytest.mark.parametrize(
    "value, text",
    [
        (1 / 3, "0.3333"),
        (np.float64(1e-12), "1e-12"),
        (np.int64(7), "7"),
        (True, "True"),
        ("two\nlines", "two lines"),
        ("x" * 400 + "end", "x" * 45 + " … " + "x" * 29 + "end"),
    ],
)
def test_cells_are_short(value, text):
    assert format_cell(value) == text


def test_without_pandas_a_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="Frames need pandas"):
        Records([{"a": 1}]).to_frame()
