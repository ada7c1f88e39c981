"""The walk of a new user, with the command of an installed wheel: label, compare, explain, predict, and the page.

`make wheel-check` installs the wheel with its extras into a new environment and names the command in the variable
KERNELWEAVE_COMMAND; without it the tests are skipped. Nothing of the source tree is imported here.
"""

import csv
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from checks.browser import needs_chromium, opened

COMMAND = os.environ.get("KERNELWEAVE_COMMAND")
pytestmark = [pytest.mark.walk, pytest.mark.skipif(not COMMAND, reason="KERNELWEAVE_COMMAND names no command")]

N_LABELED, N_BLANK, N_NEW = 45, 45, 30
HEAD = ("patient", "admitted", "site", "age", "dose", "outcome")
CLASSES = ("recovered", "stable", "worse")


def make_rows(n, seed):
    """Patients whose outcome can be told from their age, dose and day of admission; some ages are blank."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    age = rng.normal(50, 4, n) + 20 * (kind == 1)
    dose = np.exp(rng.normal(0, 0.2, n) + 1.5 * (kind == 2))
    days = np.datetime64("2024-01-01") + rng.integers(0, 90, n)
    ages = np.where(rng.random(n) < 0.05, "", np.char.mod("%.1f", age))
    names, sites = [f"p{seed}{k:03}" for k in range(n)], rng.choice(["north", "south"], n)
    return [list(map(str, row)) for row in zip(names, days, sites, ages, dose.round(2), strict=True)], kind


def write_table(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def read_table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(folder, *words):
    """Run the command in a process of its own; what it prints."""
    given = {**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "OMP_NUM_THREADS": "1"}
    given.pop("PYTHONPATH", None)
    done = subprocess.run([COMMAND, *words], cwd=folder, env=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the user's tables, after `kernelweave label`; the truth is kept apart."""
    folder = tmp_path_factory.mktemp("walk")
    rows, kind = make_rows(N_LABELED + N_BLANK, 1)
    given = [CLASSES[k] if row < N_LABELED else "" for row, k in enumerate(kind)]
    write_table(folder / "patients.csv", [HEAD, *([*row, label] for row, label in zip(rows, given, strict=True))])
    write_table(folder / "new.csv", [HEAD[:-1], *make_rows(N_NEW, 2)[0]])
    words = ("--target", "outcome", "--id", "patient", "--model", "outcome.skops", "--report", "page.html")
    (folder / "label.txt").write_text(run(folder, "label", "patients.csv", *words), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def printed(folder):
    """What the other commands print, each in a process of its own, two at a time."""
    table = ("patients.csv", "--target", "outcome", "--id", "patient")
    learners = ("--learner", "SVM", "--learner", "harmonic", "--learner", "logistic regression")
    commands = [
        ("compare", *table, *learners, "--json"),
        ("explain", *table, "--learner", "SVM"),
        ("predict", "outcome.skops", "new.csv"),
    ]
    with ThreadPoolExecutor(2) as workers:
        shown = workers.map(lambda words: run(folder, *words), commands)
        return {words[0]: text for words, text in zip(commands, shown, strict=True)}


def test_label_fills_in_the_blanks_and_leaves_all_else_as_it_was(folder):
    before, after = read_table(folder / "patients.csv"), read_table(folder / "patients.labeled.csv")
    assert [{name: row[name] for name in HEAD[:-1]} for row in after] == [
        {name: row[name] for name in HEAD[:-1]} for row in before
    ]
    assert [row["outcome"] for row in after[:N_LABELED]] == [row["outcome"] for row in before[:N_LABELED]]
    truth = [CLASSES[k] for k in make_rows(N_LABELED + N_BLANK, 1)[1]]
    filled = [row["outcome"] for row in after[N_LABELED:]]
    assert np.mean(np.array(filled) == truth[N_LABELED:]) >= 0.9
    assert all(0.3 < float(row["outcome_probability"]) <= 1 for row in after[N_LABELED:])
    assert all(row["outcome_probability"] == "" for row in after[:N_LABELED])


def test_the_record_and_the_terminal_say_how_good_the_labels_are(folder):
    record = json.loads((folder / "patients.labeled.csv.json").read_text(encoding="utf-8"))
    assert (record["rows"], record["rows_labeled"], record["rows_filled"]) == (90, N_LABELED, N_BLANK)
    assert record["errors"]["kernelweave"]["error"] < 0.2 < record["errors"]["majority class"]["error"]
    assert sum(each["weight"] for each in record["leaderboard"]) == pytest.approx(1.0)
    assert "patient" in record["columns"]["left_out"]
    shown = (folder / "label.txt").read_text(encoding="utf-8")
    assert "45 rows labelled from 45 given labels: classification (guessed)" in shown
    assert "written to patients.labeled.csv, record in patients.labeled.csv.json" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_the_page_has_what_the_record_has(folder):
    page, record = ((folder / name).read_text(encoding="utf-8") for name in ("page.html", "patients.labeled.csv.json"))
    text = re.sub(r"<[^>]+>", " ", page)
    assert f"{100 * json.loads(record)['errors']['kernelweave']['error']:.1f} %" in text
    assert "45 labels filled in" in " ".join(text.split())
    assert all(name in text for name in CLASSES)
    assert "kernelweave label patients.csv --target outcome" in text
    assert not re.search(r'(src|href)="(https?:)?//', page)


def test_compare_names_the_best_learner_under_the_same_folds(printed):
    found = json.loads(printed["compare"])
    errors = {each["learner"]: each["error"] for each in found["learners"]}
    assert {"SVM", "harmonic", "logistic regression", "majority class"} <= set(errors)
    alone = {name: error for name, error in errors.items() if name != "all, combined"}
    assert alone[found["best"]] == min(alone.values()) < alone["majority class"]
    assert "did the unlabelled rows help?" in found["advice"]


def test_explain_finds_the_columns_that_decide(printed):
    columns = re.findall(r"^. (admitted|site|age|dose) ", printed["explain"], flags=re.MULTILINE)
    assert set(columns[:2]) == {"age", "dose"}
    assert "rows of the file that are worth labelling next:" in printed["explain"]
    assert max(map(len, printed["explain"].splitlines())) <= 80


def test_predict_in_another_process_labels_new_rows(folder, printed):
    assert "30 of 30 rows labelled; written to new.predicted.csv" in printed["predict"]
    found = [row["outcome"] for row in read_table(folder / "new.predicted.csv")]
    truth = [CLASSES[k] for k in make_rows(N_NEW, 2)[1]]
    assert np.mean(np.array(found) == truth) >= 0.85


@pytest.mark.browser
@needs_chromium
def test_the_page_is_quiet_fits_every_screen_and_prints(folder, tmp_path):
    probe = "<script>document.title = document.documentElement.scrollWidth + '/' + window.innerWidth</script></body>"
    probed = tmp_path / "probed.html"
    probed.write_text((folder / "page.html").read_text(encoding="utf-8").replace("</body>", probe), encoding="utf-8")
    dark = "--blink-settings=preferredColorScheme=0"
    for look in (["--window-size=500,900"], ["--window-size=1300,900", dark]):
        dom, said = opened(probed, tmp_path / "profile", "--dump-dom", *look)
        assert said == []
        wide, window = map(int, re.search(r"<title>(\d+)/(\d+)</title>", dom).groups())
        assert wide <= window
    paper = tmp_path / "page.pdf"
    _, said = opened(
        folder / "page.html", tmp_path / "profile", f"--print-to-pdf={paper}", "--no-pdf-header-footer", dark
    )
    assert said == []
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper.read_bytes())) <= 12
