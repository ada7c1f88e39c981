import numpy as np
import pandas as pd
import pytest

from kernelweave.labeling import new_rows
from kernelweave.labeling.columns import plan_columns
from kernelweave.labeling.encoder import make_encoder
from kernelweave.labeling.new_rows import note_new_rows

N = 60


REMARKS = ["fever and cough", "broken leg", "pain in the chest"]


def frame(**changed):
    rng = np.random.default_rng(0)
    columns = {
        "height": [f"{value:.2f}" for value in rng.normal(size=N)],
        "kind": rng.choice(["a", "b", "c"], N).tolist(),
        "flag": rng.choice(["yes", "no"], N).tolist(),
        "day": [f"2020-01-{1 + k % 28:02d}" for k in range(N)],
        "start": [f"09:{k % 60:02d}" for k in range(N)],
        "ride": [f"{k % 20 + 1} min" if k % 3 else "1 h" for k in range(N)],
        "remark": [f"{REMARKS[k % 3]} {k}" for k in range(N)],
        "y": ["1", "2", ""] * (N // 3),
    }
    return pd.DataFrame({**columns, **changed})


@pytest.fixture(scope="module", name="encoder")
def fitted_encoder():
    return make_encoder(plan_columns(frame(), target="y")).fit(frame())


def note(encoder, new):
    return note_new_rows(encoder, encoder[0].transform(new))


def test_rows_like_those_learned_from_are_not_noted(encoder):
    assert note(encoder, frame()) == []
    assert note(encoder, frame().head(1)) == []
    assert note(encoder, frame().head(0)) == []


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"height": [""] * N}, ["are blank: 'height'"]),
        ({"height": ["NA"] * N, "kind": [""] * N}, ["are blank: 'height', 'kind'"]),
        ({"kind": ["d"] * 40 + ["a"] * 20}, ["In column 'kind', 40 of 60 cells", "such as 'd'"]),
        ({"height": [str(170.0 + k) for k in range(N)]}, ["In column 'height', 60 of 60 numbers", "same unit?"]),
        ({"height": ["0.5"] * 50 + ["1e6"] * 10}, ["In column 'height', 10 of 60 numbers", "such as 1e+06"]),
        ({"remark": [""] * N}, ["are blank: 'remark'"]),
        ({"remark": ["xylophone wvy"] * N}, ["In column 'remark', 120 of 120 words", "such as 'wvy'", "same column?"]),
        (
            {"day": ["1990-05-01"] * N},
            [
                "In column 'day', 60 of 60 dates",
                "(2020-01-01 to 2020-01-28), such as 1990-05-01: is it the same column?",
            ],
        ),
        (
            {"start": ["21:15"] * N},
            ["In column 'start', 60 of 60 times of day", "(09:00 to 09:59), such as 21:15: is it the same column?"],
        ),
        ({"ride": ["30 h"] * N}, ["60 of 60 durations", "(60 s to 3600 s), such as 108000 s: is it the same unit?"]),
    ],
)
def test_what_differs_is_named(encoder, changed, words):
    (sentence,) = note(encoder, frame(**changed))
    assert all(word in sentence for word in words), sentence


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": ["d"] * 29 + ["a"] * 31},
        {"kind": ["d", "a"] + [""] * (N - 2)},
        {"remark": ["", "chest", "xylophone"] * (N // 3)},
        {"height": ["0.5"] * 58 + ["1e6"] * 2},
        {"height": ["5.0"] * N},  # beyond the largest, and not far
    ],
)
def test_a_few_others_are_none_of_it(encoder, changed):
    assert note(encoder, frame(**changed)) == []


def test_rows_at_even_distances_are_looked_at(encoder, monkeypatch):
    monkeypatch.setattr(new_rows, "MAX_ROWS", 10)
    (sentence,) = note(encoder, frame(kind=["d"] * N))
    assert "10 of 10 cells" in sentence
    assert note(encoder, frame(kind=["d"] * 10 + ["a"] * (N - 10))) == []
    (sentence,) = note(encoder, frame(kind=["a"] * 10 + ["d"] * (N - 10)))
    assert "8 of 10 cells" in sentence
