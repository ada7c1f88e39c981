"""Fill in the labels of a table from a few: odd or even digits, 100 labels, 1697 empty cells, three draws.

Each draw writes the digits to a CSV file in which only 100 cells of the column ``parity`` are filled, runs the command
``kernelweave label`` on it, and compares the copy with the truth, which is known here. Beside it: scikit-learn's SVC
with the same labels.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

N_LABELS, N_DRAWS = 100, 3


def write_table(path, pixels, cells):
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*(f"pixel{i}" for i in range(pixels.shape[1])), "parity"])
        rows.writerows([*row, cell] for row, cell in zip(pixels.astype(int), cells, strict=True))


def label(table, quiet):
    command = [sys.executable, "-m", "kernelweave", "label", str(table), "--target", "parity"]
    subprocess.run(
        command, check=True, **({"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} if quiet else {})
    )
    out = table.with_name("digits.labeled.csv")
    with open(out, newline="") as file:
        return list(csv.DictReader(file)), json.loads(Path(f"{out}.json").read_text())


def main():
    pixels, digits = load_digits(return_X_y=True)
    truth = np.where(digits % 2, "odd", "even")
    table = Path(tempfile.mkdtemp()) / "digits.csv"
    print(f"scikit-learn's digits, odd or even: {len(truth)} rows, {N_LABELS} of them labelled, in {table}\n")
    summary = []
    for draw in range(N_DRAWS):
        labeled = np.random.default_rng(draw).choice(len(truth), N_LABELS, replace=False)
        empty = np.setdiff1d(np.arange(len(truth)), labeled)
        write_table(table, pixels, np.where(np.isin(np.arange(len(truth)), labeled), truth, ""))
        if draw == 0:
            print(f"$ kernelweave label {table.name} --target parity\n", flush=True)
        rows, record = label(table, quiet=draw > 0)
        if draw == 0:
            print("\nthe first rows of the copy (last pixel and the label's columns):\n")
            for name in (columns := ["pixel63", "parity", "parity_probability", "parity_margin"]):
                print(f"{name:>20}", end="")
            for row in rows[:5]:
                print("\n" + "".join(f"{row[name]:>20}" for name in columns), end="")
            print("\n")
        filled = np.array([row["parity"] for row in rows])
        svc = SVC(C=10).fit(pixels[labeled] / 16, truth[labeled])
        errors = (filled != truth)[empty].mean(), (svc.predict(pixels / 16) != truth)[empty].mean()
        low, high = record["errors"]["kernelweave"]["interval"]
        summary.append((*errors, f"{low:.1%} to {high:.1%}", record["members"][0]["candidate"]))
    print("draw   error of kernelweave   error of SVC   error that it expected   largest weight")
    for draw, (ours, theirs, expected, heaviest) in enumerate(summary):
        print(f"{draw + 1:4d}   {ours:>20.2%}   {theirs:>12.2%}   {expected:>22}   {heaviest:>14}")
    ours, theirs = np.mean([row[:2] for row in summary], axis=0)
    print(f"mean   {ours:>20.2%}   {theirs:>12.2%}")


if __name__ == "__main__":
    main()
