"""A table in many files: the same labels as in one file, whoever computes them and however often the run ends early."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from checks.command import run
from checks.dask_processes import run_scheduler
from checks.many_files import CUTS, make_frame, read_files, write_files

from kernelweave.cli import partitions
from kernelweave.cli.errors import EXIT_CODES
from kernelweave.errors import ErrorCode, KernelweaveError
from kernelweave.labeling import sampling
from kernelweave.labeling.file_copies import fill_file
from kernelweave.labeling.job import LabelingOptions

pytest.importorskip("skops")
LABEL = ("label", "rows", "--target", "y", "-o", "out", "--quiet")


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """The folder `rows` of the present one."""
    monkeypatch.chdir(tmp_path)
    return write_files(tmp_path / "rows", make_frame())


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The copy of one file with the rows of all."""
    folder = tmp_path_factory.mktemp("one")
    make_frame().to_parquet(folder / "one.parquet", index=False)
    assert run("label", folder / "one.parquet", "--target", "y", "-o", folder / "copy.parquet", "--quiet") == 0
    return pd.read_parquet(folder / "copy.parquet")


def check_copies(expected, out="out"):
    """The copies are those of one file; numbers may differ by rounding in the last of the four digits written."""
    copies = read_files(Path(out))
    pd.testing.assert_frame_equal(copies, expected, check_dtype=False, rtol=0, atol=2e-4)


def test_many_files_have_the_labels_of_one(rows, expected, capsys):
    assert run(*LABEL) == 0
    check_copies(expected)
    shown = capsys.readouterr().out
    assert "75 rows labelled from 45 given labels" in shown
    assert "learned from 120 of 120 rows in 5 files" in shown
    assert "written to out, record in _record.json\nmodel saved to out/_model.skops" in shown
    record = json.loads(Path("out/_record.json").read_text())
    assert (record["files"], record["rows"], record["rows_filled"]) == (5, 120, 75)
    assert sorted(path.name for path in Path("out").iterdir() if not path.name.endswith(".parquet")) == [
        "_model.skops",
        "_record.json",
        "_run.json",
        "d",
    ]
    assert pd.read_parquet("out").shape == (120, 7)  # readers of folders pass over the other files
    assert run("predict", "out/_model.skops", "rows/a.parquet", "-o", "a.parquet", "--quiet") == 0
    assert pd.read_parquet("a.parquet")["y"].tolist() == pd.read_parquet("out/a.parquet")["y"].tolist()


def test_a_sample_is_learned_from_where_there_are_many_rows(rows, monkeypatch, capsys):
    monkeypatch.setattr(sampling, "MAX_ROWS", 60)
    monkeypatch.setattr(sampling, "MIN_UNLABELED", 20)
    assert run("label", "rows/*.parquet", *LABEL[2:], "--suspects", 2, "--next", 2, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["files"], report["rows"], report["rows_learned"], report["rows_labeled"]) == (4, 91, 60, 45)
    assert report["warnings"][0] == "Learned from 40 of 45 labelled rows, drawn at random."
    for each in report["suspects"] + report["next"]:
        row = pd.read_parquet(Path("out") / each["id"]["file"]).iloc[each["row"] - 1]
        assert row["y"] == each.get("given", each.get("guess"))
    assert run("label", "rows/*.parquet", *LABEL[2:], "--suspects", 2, "--next", 2, "--json") == 0
    assert json.loads(capsys.readouterr().out) == report


def fail_at_the_third(copy):
    if len(list(Path("out").rglob("*.parquet"))) == 2:
        raise KernelweaveError("The scheduler was lost.", ErrorCode.NO_CLUSTER)
    return fill_file(copy)


def test_a_run_that_ended_early_goes_on_with_the_files_that_are_left(rows, expected, monkeypatch, capsys):
    monkeypatch.setattr(partitions, "fill_file", fail_at_the_third)
    assert run(*LABEL) == EXIT_CODES[ErrorCode.NO_CLUSTER]
    sentence = "The scheduler was lost. 2 of 5 files are labelled; the same command goes on with the others."
    assert capsys.readouterr().err == f"kernelweave: {sentence}\n"
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*") if path.is_file()}
    assert len(before) == 5
    monkeypatch.setattr(partitions, "fill_file", fill_file)
    assert run(*LABEL) == 0
    check_copies(expected)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert "labelled with the model of the earlier run; its record is out/_record.json" in capsys.readouterr().out


def interrupt_after_writing(copy):
    fill_file(copy)
    raise KeyboardInterrupt


def test_an_interrupted_run_counts_the_copies_that_are_there(rows, monkeypatch):
    monkeypatch.setattr(partitions, "fill_file", interrupt_after_writing)
    job = partitions.FilesJob([Path("rows")], Path("out"), LabelingOptions("y"), None, None, None, None, None)
    with pytest.raises(KernelweaveError, match=r"Interrupted: 1 of 5 files are labelled; the same command goes on"):
        partitions.label_files(job, is_quiet=True)


def test_a_killed_run_goes_on_with_the_files_that_are_left(rows, expected):
    program = (
        "import time; from kernelweave.cli import main, partitions; fill = partitions.fill_file\n"
        "partitions.fill_file = lambda copy: (fill(copy), time.sleep(60))\n"
        "main.main()"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-c", program, *LABEL, "--learner", "SVM"]
    with subprocess.Popen(line, env=environment) as process:
        while not Path("out/a.parquet").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    assert not Path("out/b.parquet").exists()
    assert run(*LABEL) == 0
    check_copies(expected)


def die_once(copy):
    """Kill the worker that has the first file, once."""
    if copy.source.endswith("a.parquet") and not os.path.exists("marker"):
        Path("marker").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return fill_file(copy)


@pytest.mark.slow
def test_a_killed_worker_does_not_change_the_labels(rows, expected, monkeypatch):
    monkeypatch.setattr(partitions, "fill_file", die_once)
    assert run(*LABEL, "--workers", 2) == 0
    assert Path("marker").exists()
    check_copies(expected)


@pytest.mark.slow
def test_a_lost_scheduler_leaves_whole_files_only(rows, expected, monkeypatch, capsys):
    with run_scheduler() as (address, process, _):

        def kill_scheduler(client, function, items):
            for each in run_each(client, function, items):
                yield each
                if function is fill_file:  # after the first copy
                    process.kill()

        run_each = partitions.run_each
        monkeypatch.setattr(partitions, "run_each", kill_scheduler)
        assert run(*LABEL, "--cluster", address) == EXIT_CODES[ErrorCode.NO_CLUSTER]
    assert f"The scheduler of Dask at {address} was lost" in capsys.readouterr().err
    for path in Path("out").rglob("*.parquet"):
        assert pd.read_parquet(path)["y"].notna().all()
    monkeypatch.setattr(partitions, "run_each", run_each)
    assert run(*LABEL) == 0
    check_copies(expected)
    assert not list(Path("out").rglob("*.part"))  # which a killed worker may have left


def test_another_run_in_the_same_folder_is_refused(rows, capsys):
    assert run(*LABEL) == 0
    capsys.readouterr()
    remedy = "Name another folder with -o, or delete 'out'."
    os.utime("rows/c.parquet", (1, 1))
    for options, why in (
        (["--seed", 3], "the option 'seed' was 0 and is 3"),
        ([], "the file 'c.parquet' was changed since"),
    ):
        assert run(*LABEL, *options) == EXIT_CODES[ErrorCode.SAME_FILE]
        assert capsys.readouterr().err == f"kernelweave: 'out' holds the copies of another run: {why}. {remedy}\n"
    os.remove("rows/c.parquet")
    assert run(*LABEL) == EXIT_CODES[ErrorCode.SAME_FILE]
    assert "the file 'c.parquet' is missing now" in capsys.readouterr().err
    Path("out/_run.json").write_text("[1]")
    assert run(*LABEL) == EXIT_CODES[ErrorCode.UNREADABLE]
    assert "'out/_run.json' cannot be read" in capsys.readouterr().err
    os.remove("out/_run.json")
    assert run(*LABEL) == EXIT_CODES[ErrorCode.SAME_FILE]
    assert "'out/a.parquet' exists, and there is no record that this command wrote it" in capsys.readouterr().err


CASES = {
    "no output": (("label", "rows", "--target", "y"), ErrorCode.BAD_OPTION, "name a folder for them with -o"),
    "an output that is printed": ((*LABEL[:4], "-o", "-"), ErrorCode.BAD_OPTION, "name a folder for them with -o"),
    "the folder itself": ((*LABEL[:4], "-o", "rows"), ErrorCode.SAME_FILE, "'rows' holds the files themselves"),
    "a folder above": ((*LABEL[:4], "-o", "."), ErrorCode.SAME_FILE, r"'\.' holds the folder of the files, 'rows'"),
    "a folder above a pattern": (
        ("label", "rows/d/*.parquet", *LABEL[2:4], "-o", "rows"),
        ErrorCode.SAME_FILE,
        "'rows' holds the folder of the files, 'rows/d'; name another one for the copies with -o",
    ),
    "an output that is a file": ((*LABEL[:4], "-o", "file"), ErrorCode.NOT_WRITABLE, "'file' is a file"),
    "an output in no folder": ((*LABEL[:4], "-o", "no/out"), ErrorCode.NOT_WRITABLE, "there is no folder"),
    "no such target": (("label", "rows", "--target", "z", *LABEL[4:]), ErrorCode.NO_SUCH_COLUMN, "no column 'z'"),
    "no such column": ((*LABEL, "--id", "z"), ErrorCode.NO_SUCH_COLUMN, "no column 'z'"),
    "no match": (("label", "rows/*.x", *LABEL[2:]), ErrorCode.NOT_FOUND, "matches no file"),
    "no Parquet": (("label", "rows/*/*", *LABEL[2:]), ErrorCode.NOT_A_TABLE, r"notes\.txt' is not a Parquet file"),
    "joined tables": ((*LABEL, "file"), ErrorCode.BAD_OPTION, "cannot be joined with other tables"),
    "no label": (("label", "rows/f*", *LABEL[2:]), ErrorCode.BAD_TARGET, "No row of 'y' has a label"),
    "two kinds of workers": ((*LABEL, "--workers", 2, "--cluster", "tcp://x:1"), ErrorCode.BAD_OPTION, "exclude"),
    "no worker": ((*LABEL, "--workers", 0), ErrorCode.BAD_OPTION, "--workers 0 is less than 1"),
    "one file": (("label", "rows/a.parquet", "--target", "y", "--workers", 2), ErrorCode.BAD_OPTION, "many Parquet"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_command_is_one_sentence_and_writes_nothing(rows, case, capsys):
    line, code, words = CASES[case]
    Path("file").touch()
    Path("rows/d/notes.txt").write_text("x")
    assert run(*line) == EXIT_CODES[code]
    error = capsys.readouterr().err
    assert re.search(words, error), error
    assert error.count("\n") == 1
    assert not Path("out").exists()


@pytest.mark.parametrize("name", ["a.parquet", "d/e.parquet", "_model.skops", "_record.json", "_run.json"])
def test_a_model_or_page_in_the_place_of_what_the_run_writes_is_refused(rows, name, capsys):
    Path("out/d").mkdir(parents=True)
    for option in ("--model", "--report"):
        if (option, name) == ("--model", "_model.skops"):
            continue
        assert run(*LABEL, option, f"out/{name}") == EXIT_CODES[ErrorCode.SAME_FILE]
        assert f"The output 'out/{name}' has the name of a file that the run itself" in capsys.readouterr().err
    assert not [path for path in Path("out").rglob("*") if path.is_file()]


def test_the_model_may_be_named_where_it_is_written_anyway(rows, expected):
    for _ in range(2):
        assert run(*LABEL, "--model", "out/_model.skops") == 0
    check_copies(expected)


@pytest.mark.parametrize("named", ["rows", "rows/*.parquet"])
@pytest.mark.parametrize("option", ["--model", "--report"])
def test_a_model_or_page_in_the_place_of_an_input_file_is_refused(rows, named, option, capsys):
    before = Path("rows/b.parquet").read_bytes()
    Path("link.parquet").symlink_to("rows/b.parquet")
    for output in ("rows/b.parquet", "link.parquet"):
        assert run("label", named, *LABEL[2:], option, output) == EXIT_CODES[ErrorCode.SAME_FILE]
        error = f"kernelweave: The output '{output}' is the input itself, which is never overwritten.\n"
        assert capsys.readouterr().err == error
    assert Path("rows/b.parquet").read_bytes() == before
    assert not Path("out").exists()


def test_a_column_that_one_file_lacks_is_named(rows, capsys):
    pd.read_parquet("rows/d/e.parquet").drop(columns="w").to_parquet("rows/d/e.parquet")
    assert run(*LABEL) == EXIT_CODES[ErrorCode.FILES_DIFFER]
    assert "'d/e.parquet' has other columns than 'a.parquet': it lacks 'w'" in capsys.readouterr().err
    assert not Path("out").exists()


def test_numbers_and_a_model_and_a_page_of_their_own(rows, capsys):
    frame = make_frame()
    frame["y"] = (10 * frame["u"] + frame["v"]).round(2).where(frame["y"].notna())
    write_files(rows, frame)
    assert run(*LABEL, "--model", "m.skops", "--report", "page.html") == 0
    assert Path("m.skops").read_bytes() == Path("out/_model.skops").read_bytes()
    assert "<html" in Path("page.html").read_text()
    copies = read_files(Path("out"), CUTS)
    assert copies[["y", "y_low", "y_high"]].dtypes.eq(float).all()
    assert copies["y"].notna().all()
    assert copies["y"][:45].tolist() == frame["y"][:45].tolist()


def test_categories_and_hidden_markers(rows):
    frame = make_frame()
    frame["y"] = frame["y"].fillna("?")
    for name in write_files(rows, frame).rglob("*.parquet"):
        part = pd.read_parquet(name)
        part.assign(y=part["y"].astype("category")).to_parquet(name, index=False)  # each file has its own categories
    assert run(*LABEL, "--unlabeled", "?", "--probabilities") == 0
    copies = pd.concat([pd.read_parquet(Path("out") / name).astype({"y": str}) for name in CUTS])
    assert set(copies["y"]) == {"yes", "no"}
    assert {"y_probability_no", "y_probability_yes"} < set(copies)
    assert pd.read_parquet("out/f.parquet")["y"].dtype == "category"
