import numpy as np
import pandas as pd
import pytest
from checks.partial_tables import fill, numeric, table

from kernelweave.errors import KernelweaveError


def test_numbers_are_filled_with_an_interval_that_covers():
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, size=400)
    y = 1000 * np.sin(x) + 50 * rng.normal(size=400)
    empty = np.arange(400) % 2 == 0
    cells = np.where(empty, "", [f"{value:.1f}" for value in y]).astype(object)
    done = fill(pd.DataFrame({"x": x.astype(str), "y": cells}, dtype=object), cells, empty)
    assert done.report["task"] == "regression"
    low, high = (done.extra[f"y_{end}"][empty].astype(float) for end in ("low", "high"))
    assert 0.8 < np.mean((low <= y[empty]) & (y[empty] <= high)) < 0.98
    assert done.report["errors"]["kernelweave"]["rmse"] < 0.2 * done.report["errors"]["mean"]["rmse"]
    again = done.model.predict(pd.DataFrame({"x": x.astype(str)}))
    np.testing.assert_allclose(again[empty], done.values[empty].astype(float), atol=0.051)  # one decimal, as given


def test_regression_on_words_is_refused():
    frame, cells, empty, _ = table()
    with pytest.raises(KernelweaveError, match="Regression needs numbers"):
        fill(frame, cells, empty, task="regression")


def test_a_decimal_comma_is_kept():
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    empty = np.arange(80) >= 60
    cells = np.where(empty, "", [f"{3 * value + 10:.2f}".replace(".", ",") for value in x]).astype(object)
    done = fill(pd.DataFrame({"x": x.astype(str), "y": cells}, dtype=object), cells, empty)
    assert done.report["task"] == "regression"
    assert all(len(text.partition(",")[2]) == 2 for text in done.values[empty])


@pytest.mark.parametrize(
    "write", [lambda v: f"{300 * v:,.0f}", lambda v: f"{300 * v:,.2f}", lambda v: f"{1e5 * v:,.0f}"]
)
def test_thousands_in_the_target_are_refused_and_the_way_out_named(write):
    frame, cells, empty, _ = numeric(write)
    with pytest.raises(KernelweaveError, match=r"may separate thousands or decimals.*--task classification"):
        fill(frame, cells, empty)


@pytest.mark.parametrize(
    "write", [lambda v: f"{v * 1e-11:.3e}", lambda v: f"{v * 1e-13:.17f}", lambda v: f"{v * 1e12:.4E}"]
)
def test_small_and_large_numbers_keep_their_digits(write):
    frame, cells, empty, truth = numeric(write)
    done = fill(frame, cells, empty)
    assert done.report["task"] == "regression"
    filled = done.values[empty].astype(float)
    expected = np.array([float(write(value)) for value in truth[empty]])
    np.testing.assert_allclose(filled, expected, rtol=0.1)
    assert len(set(filled)) >= len(filled) - 2  # of 20 numbers with four digits two may be equal
    assert all(("e" in text.lower()) == ("e" in cells[0].lower()) for text in done.values[empty])


def test_numbers_too_large_to_be_squared_are_refused():
    frame, cells, empty, _ = numeric(lambda v: f"{v * 1e200:.3e}")
    with pytest.raises(KernelweaveError, match=r"'y' holds .*e\+201; numbers beyond 1e\+150"):
        fill(frame, cells, empty)


def test_a_spelled_out_missing_number_names_the_option():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    spelled = np.where(empty, "n/a", cells).astype(object)
    with pytest.raises(KernelweaveError, match=r"no empty cell, .*If 'n/a' marks an unlabelled row, .*--unlabeled n/a"):
        fill(frame, spelled, np.zeros_like(empty))
    half = np.where(np.arange(80) < 5, "NA", cells).astype(object)
    for task in ("auto", "regression"):
        with pytest.raises(KernelweaveError, match=r"numbers and other texts. If 'NA' marks .*--unlabeled NA"):
            fill(frame, half, empty, task=task)


@pytest.mark.parametrize("group", [None, "g"])
def test_one_number_is_not_enough_and_two_are(group):
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}", n=20, n_labeled=2)
    frame = frame.assign(g=[f"c{i % 4}" for i in range(20)])
    assert fill(frame, cells, empty, task="regression", group=group).report["rows_labeled"] == 2
    cells[1], empty[1] = "", True
    with pytest.raises(KernelweaveError, match="Only one row of 'y' has a number; label more rows"):
        fill(frame, cells, empty, task="regression", group=group)


def test_a_mix_of_dots_and_commas_is_refused_as_numbers():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}")
    cells[:5] = [text.replace(".", ",") for text in cells[:5]]
    with pytest.raises(KernelweaveError, match="Regression needs numbers, and 'y' holds dots and commas too"):
        fill(frame, cells, empty, task="regression")


def test_a_radius_that_is_not_known_is_none():
    frame, cells, empty, _ = numeric(lambda v: f"{v:.2f}", n=40, n_labeled=8)
    done = fill(frame, cells, empty, task="regression")
    assert done.report["interval_radius"] is None
    assert set(done.extra["y_low"]) == {""}
