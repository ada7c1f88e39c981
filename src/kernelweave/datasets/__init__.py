"""Benchmark sets by name, generators by recipe, and splits by seed."""

from .generators import make_g50c_like, make_g241c_like, make_g241n_like, make_waveform_like
from .loading import list_datasets, load
from .records import Dataset
from .splits import draw_labels, split

__all__ = [
    "Dataset",
    "list_datasets",
    "load",
    "make_g50c_like",
    "make_g241c_like",
    "make_g241n_like",
    "make_waveform_like",
    "draw_labels",
    "split",
]
