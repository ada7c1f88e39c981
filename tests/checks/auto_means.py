"""Means of the committed results of benchmarks/auto, which README and documentation quote."""

import json
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[2] / "benchmarks" / "auto" / "results.json"


def mean_error(method):
    """Return the mean error of a method over the sets with their usual numbers of labels ("wine @ 20" has another)."""
    errors = json.loads(RESULTS.read_text(encoding="utf-8"))["errors"]
    usual = [methods[method] for name, methods in errors.items() if " @ " not in name]
    return float(np.mean([np.mean([cell[0] for cell in draws.values()]) for draws in usual]))
