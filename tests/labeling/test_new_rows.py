import numpy as np
import pandas as pd
import pytest

from kernelweave.labeling import new_rows
from kernelweave.labeling.columns import plan_columns
from kernelweave.labeling.encoder import make_encoder
from kernelweave.labeling.new_rows import note_new_rows

N = 60


def frame(**changed):
    rng = np.random.default_rng(0)
    columns = {
        "height": [f"{value:.2f}" for value in rng.normal(size=N)],
        "kind": rng.choice(["a", "b", "c"], N).tolist(),
        "flag": rng.choice(["yes", "no"], N).tolist(),
        "day": [f"2020-01-{1 + k % 28:02d}" for k in range(N)],
        "y": ["1", "2", ""] * (N // 3),
    }
    return pd.DataFrame({**columns, **changed})


@pytest.fixture(scope="module", name="encoder")
def fitted_encoder():
    return make_encoder(plan_columns(frame(), target="y")).fit(frame())


def test_rows_like_those_learned_from_are_not_noted(encoder):
    assert note_new_rows(encoder, frame()) == []
    assert note_new_rows(encoder, frame().head(1)) == []
    assert note_new_rows(encoder, frame().head(0)) == []


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"height": [""] * N}, ["are blank: 'height'"]),
        ({"height": ["NA"] * N, "kind": [""] * N}, ["are blank: 'height', 'kind'"]),
        ({"kind": ["d"] * 40 + ["a"] * 20}, ["In column 'kind', 40 of 60 cells", "such as 'd'"]),
        ({"height": [str(170.0 + k) for k in range(N)]}, ["In column 'height', 60 of 60 numbers", "same unit?"]),
        ({"height": ["0.5"] * 50 + ["1e6"] * 10}, ["In column 'height', 10 of 60 numbers", "such as 1e+06"]),
        ({"day": ["2031-05-01"] * N}, ["In column 'day', 60 of 60 numbers"]),
    ],
)
def test_what_differs_is_named(encoder, changed, words):
    (note,) = note_new_rows(encoder, frame(**changed))
    assert all(word in note for word in words), note


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": ["d"] * 29 + ["a"] * 31},
        {"kind": ["d", "a"] + [""] * (N - 2)},
        {"height": ["0.5"] * 58 + ["1e6"] * 2},
        {"height": ["5.0"] * N},  # beyond the largest, and not far
    ],
)
def test_a_few_others_are_none_of_it(encoder, changed):
    assert note_new_rows(encoder, frame(**changed)) == []


def test_the_first_rows_are_looked_at(encoder, monkeypatch):
    monkeypatch.setattr(new_rows, "MAX_ROWS", 10)
    (note,) = note_new_rows(encoder, frame(kind=["d"] * N))
    assert "10 of 10 cells" in note
