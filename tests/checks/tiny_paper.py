"""A paper whose cells are cheap, and slow on demand: python -m checks.tiny_paper FOLDER JOBS runs it."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelweave.papers.definition import Item, Measure, Panel, Paper
from kernelweave.papers.outside import outside
from kernelweave.papers.runner import execute, plan

PAUSE = float(os.environ.get("TINY_PAUSE", "0"))


def draw(cell, fast):
    """Means of normal numbers, drawn from the cell's own seed; `broken` fails, `killed` takes its process along."""
    time.sleep(PAUSE)
    if cell.method == "broken":
        raise ZeroDivisionError("this method always fails")
    if cell.method == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    rows = np.random.default_rng(cell.seed("row", "trial")).normal(size=(40, 3))
    if outside(cell.method) is not None:
        y = (rows[:, 0] > 0).astype(int)
        return {"error": 100 * float(np.mean(outside(cell.method).fit(rows[:20], y[:20]).predict(rows[20:]) != y[20:]))}
    noise = np.random.default_rng(cell.seed()).normal()
    product = rows.T @ rows  # a product of matrices: threads could change its last digits
    return {"error": 10 + noise, "time": np.float64(product[0, 0]), "x": [1, 2, 3], "y": product[0], "none": np.nan}


@dataclass(frozen=True)
class TinyPaper(Paper):
    def published(self):
        rows = {"a": {"one": {"error": [12.0, 0.1]}, "two": {"error": 8.0}}, "b": {"one": {"error": 9.96}}}
        return {"table 1": {"trials": 4, "note": "Printed nowhere.", "rows": rows}}


TABLE = Item(
    kind="table",
    number=1,
    caption="Noise <b>about</b> ten",
    rows=("a", "b"),
    methods=("one", "two"),
    own=(),
    measures=(Measure("error", "%", "lower", digits=1), Measure("time", "s"), Measure("nothing")),
    run=draw,
    trials=3,
    protocol="Draw numbers.",
    settings={"mean": 10.0},
    fast_settings={"mean": 10.0},
    why={("*", "two"): "It is only noise.", ("b", "*"): "Row b is hard."},
    outside=True,
)
FIGURE = Item(
    kind="figure",
    number=1,
    caption="A curve",
    rows=("a",),
    methods=("one", "two"),
    absent=frozenset({("a", "two")}),
    measures=(Measure("error", "%"),),
    panels=(Panel("curve", "x", "y", x="x", y="y"),),
    run=draw,
    trials=2,
    protocol="Draw a curve.",
    settings={},
    fast_settings={},
)
PAPER = TinyPaper("tiny", "A tiny paper", "Nobody. Nowhere 2000.", (TABLE, FIGURE))


if __name__ == "__main__":
    execute(plan([PAPER]), Path(sys.argv[1]), n_jobs=int(sys.argv[2]))
