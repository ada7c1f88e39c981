"""A table in many small Parquet files, some of them awkward."""

import numpy as np
import pandas as pd

CUTS = {"a.parquet": 50, "b.parquet": 50, "c.parquet": 51, "d/e.parquet": 80, "f.parquet": 120}  # where each ends


def make_frame(n=120, n_labeled=45, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["u", "v", "w"])
    frame["kind"] = rng.choice(["red", "blue"], n)
    truth = np.where(frame["u"] + (frame["kind"] == "red") > 0.5, "yes", "no")
    frame["y"] = pd.Series(np.where(np.arange(n) < n_labeled, truth, None), dtype=object)
    return frame


def write_files(folder, frame, cuts=CUTS):
    """Cut a frame into files: here one has no rows, one has one row, and two have no label."""
    start = 0
    for name, end in cuts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.iloc[start:end].to_parquet(path, index=False)
        start = end
    return folder


def read_files(folder, names=CUTS):
    """The files one below the other."""
    return pd.concat([pd.read_parquet(folder / name) for name in names], ignore_index=True)
