import json
import subprocess
import sys
from pathlib import Path

import pytest
from checks.command import rows, run, write

from kernelweave.cli.outputs import check_outputs, check_skops, name_copy, name_sources, rename_taken
from kernelweave.errors import ErrorCode, KernelweaveError


def test_a_copy_is_named_after_its_table():
    for name, copy in (("in.csv", "in.x.csv"), ("in.csv.gz", "in.x.csv.gz"), ("in.xlsx", "in.x.csv"), ("-", "-")):
        assert name_copy(Path(name), "x") == Path(copy)
    with pytest.raises(KernelweaveError, match="has no default name; name the copy with -o"):
        name_copy(Path("/dev/null"), "x")


def test_outputs_are_neither_inputs_nor_the_same_file(tmp_path):
    table = tmp_path / "in.csv"
    table.touch()
    check_outputs([tmp_path / "a", tmp_path / "b"], table)
    for outputs in ([table], [tmp_path / "a", tmp_path / "x" / ".." / "a"]):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(KernelweaveError) as caught:
            check_outputs(outputs, table)
        assert caught.value.code is ErrorCode.SAME_FILE


def test_standard_input_is_named_by_its_number():
    assert name_sources([Path("a.csv"), Path("-")]) == [Path("a.csv"), 0]


def test_appended_columns_get_names_that_are_free():
    assert rename_taken({"p": 1, "q": 2}, ["p", "p_2", "r"]) == {"p_3": 1, "q": 2}
    assert list(rename_taken({"p": 1, "p_2": 2}, ["p"])) == ["p_2", "p_2_2"]


def test_without_skops_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(KernelweaveError, match=r"pip install 'kernelweave\[io\]'"):
        check_skops()


def test_a_model_file_holds_what_is_said_of_it_and_no_columns_that_are_left_out(tmp_path):
    body = [[f"secret{i}", f"hidden{i % 3}", row[1], f"kind{row[3]}", row[4]] for i, row in enumerate(rows())]
    body[3][3] = "oncekind"
    table = write(tmp_path / "secretname.csv", body, ("idcolumn", "ignored", "x", "kind", "y"))
    options = ["--id", "idcolumn", "--ignore", "ignored", "--model", tmp_path / "m.skops", "--learner", "harmonic"]
    assert run("label", table, "--target", "y", *options) == 0
    held = (tmp_path / "m.skops").read_bytes()  # in which nothing is compressed
    held += held.replace(b"\0\0\0", b"")  # arrays of texts have four bytes for a character
    for word in ("kinda", "oncekind", "None", "kind", '"y'):
        assert word.encode() in held
    for word in ("secret", "hidden", "idcolumn", "ignored"):
        assert word.encode() not in held


@pytest.mark.skipif(sys.platform == "win32", reason="there are no permissions of POSIX")
@pytest.mark.parametrize("output", ["-", "out.csv"])
def test_outputs_are_as_secret_as_a_file_on_standard_input(output, tmp_path):
    table = write(tmp_path / "in.csv", rows())
    table.chmod(0o600)
    options = ["--target", "y", "--learner", "harmonic", "--model", "m.skops", "--report", "r.html", "-o", output]
    command = [sys.executable, "-m", "kernelweave", "label", "-", *options]
    with open(table, "rb") as file:
        subprocess.run(command, stdin=file, cwd=tmp_path, capture_output=True, check=True)
    made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    names = {"in.csv", "m.skops", "r.html"} | ({"out.csv", "out.csv.json"} if output != "-" else set())
    assert made == dict.fromkeys(names, 0o600)


def test_labels_of_no_use_and_a_class_that_is_never_filled_in_are_said_wherever_a_run_is_described(tmp_path, capsys):
    body = [[str(i % 10 + 0.5), "" if i >= 40 else "pq"[i // 10 == 3]] for i in range(60)]  # x says nothing about y
    table = write(tmp_path / "in.csv", body, ("x", "y"))
    for options in ([], ["--json"]):
        assert run("label", table, "--target", "y", "--learner", "harmonic", *options) == 0
        printed = " ".join(capsys.readouterr().out.split())
        record = json.loads((tmp_path / "in.labeled.csv.json").read_text(encoding="utf-8"))
        for words in ("no better than those of the majority class", "No empty cell is filled with the class 'q'"):
            assert sum(words in warning for warning in record["warnings"]) == 1
            assert printed.count(words) == 1
