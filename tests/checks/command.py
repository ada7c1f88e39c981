"""The command in this process, and small tables for it."""

import csv
import signal
import sys
from unittest import mock

import numpy as np

from kernelweave.cli.main import main

N = 60
HEADER = ("id", "x", "z", "kind", "y")


def rows(n=N, n_labeled=30, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    kind = rng.choice(["a", "b"], n)
    label = np.where(x[:, 0] + (kind == "a") > 0.5, "NA", "None")  # classes with awkward names
    return [
        [f"{i:03d}", f"{x[i, 0]:.3f}", f"{x[i, 1]:.2f}", kind[i], label[i] if i < n_labeled else ""] for i in range(n)
    ]


def write(path, body, header=HEADER, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *body])
    return path


def read(path, delimiter=","):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=delimiter))


def run(*arguments):
    """Run the command, by default with a learner that is quick; return its exit code."""
    quick = ["--learner", "SVM"] if set(arguments[:1]) & {"label", "explain"} and "--learner" not in arguments else []
    line = ["kernelweave", *map(str, arguments), *quick]
    with mock.patch.object(sys, "argv", line), mock.patch.object(signal, "signal"):
        try:
            main()
        except SystemExit as stop:
            return stop.code or 0
    return 0
