import codecs
import csv
import errno
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from kernelweave.cli import streams
from kernelweave.cli.errors import EXIT_CODES, NO_READER
from kernelweave.errors import ErrorCode

TESTS = Path(__file__).parents[1]
SLOW = pytest.mark.slow  # like the others of its kind, which are enough for every day
ENCODINGS = ["latin-1", "cp932", "ascii", *(pytest.param(name, marks=SLOW) for name in ("cp1252", "cp437"))]
TARGET, CLASSES, COLUMNS = "città", ["Zürich…", "東京☃ [/b]"], ["größe", "β <x>", "tag"]

TARGETED = ["--target", TARGET, "--learner", "harmonic"]  # which is quick

# Runs several commands in one process, on its own streams; argv: the commands and where their exit codes go.
SEVERAL = """
import contextlib, json, os, sys
import kernelweave.papers
from checks.tiny_paper import PAPER
from kernelweave.cli.main import main
codes = []
for arguments in json.loads(sys.argv[1]):
    kernelweave.papers.PAPERS = {"tiny": PAPER} if "tiny" in " ".join(arguments) else kernelweave.papers.PAPERS
    sys.argv = ["kernelweave", *arguments]
    try:
        main()
    except SystemExit as stop:
        codes.append(stop.code or 0)
    else:
        codes.append(0)
    with contextlib.suppress(OSError):
        os.write(1, b"\\x1e")
    with open("codes.json", "w") as file:
        json.dump(codes, file)
"""


def table(path):
    rng = np.random.default_rng(0)
    rows = [
        [f"{x:.3f}", f"{z:.2f}", f"2024-0{i % 9 + 1}-11", CLASSES[int(x > 0)] if i < 16 else ""]
        for i, (x, z) in enumerate(rng.normal(size=(24, 2)))
    ]
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[*COLUMNS, TARGET], *rows])
    return path


def environment(**variables):
    mine = ("PYTHON", "LANG", "LC_", "TZ", "COLUMNS")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(mine)}
    return kept | {"PYTHONPATH": str(TESTS)} | variables


def command(folder, *arguments, variables=None, **options):
    """Run the command in a folder, on pipes unless told otherwise."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    line = [sys.executable, "-m", "kernelweave", *arguments]
    return subprocess.run(line, cwd=folder, env=environment(**variables or {}), check=False, **options)


def several(folder, *commands, variables=None, **options):
    """Run commands in one process; return their exit codes and what it left."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    line = [sys.executable, "-c", SEVERAL, json.dumps(commands)]
    done = subprocess.run(line, cwd=folder, env=environment(**variables or {}), check=False, **options)
    return json.loads((folder / "codes.json").read_text()), done


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The files of a run with ordinary streams."""
    folder = tmp_path_factory.mktemp("expected")
    table(folder / "in.csv")
    done = command(folder, "label", "in.csv", *TARGETED, variables={"PYTHONUTF8": "1"})
    assert done.returncode == 0, done.stderr.decode()
    return files(folder)


def files(folder):
    """Name and content of the files of a run; date and seconds aside."""
    found = {}
    for path in folder.iterdir():
        found[path.name] = path.read_bytes()
        if path.suffix == ".json" and path.name != "codes.json":
            found[path.name] = without_times(json.loads(found[path.name]))
    return found


def without_times(record):
    """The record of a run but for its date and its seconds."""
    board = [each | {"seconds": 0.0} for each in record["leaderboard"]]
    return record | {"date": "", "seconds": 0.0, "leaderboard": board}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_stream_of_any_encoding_shows_what_it_can(encoding, tmp_path, expected):
    table(tmp_path / "in.csv")
    codes, done = several(
        tmp_path,
        ["--help"],
        ["papers", "list"],
        ["label", "in.csv", *TARGETED],
        ["label", "in.csv", *TARGETED, "-o", "again.csv", "--json"],
        ["label", "in.csv", "--target", "☃…"],
        ["papers", "report", "nö☃"],
        variables={"PYTHONIOENCODING": encoding},
    )
    assert codes == [0, 0, 0, 0, EXIT_CODES[ErrorCode.NO_SUCH_COLUMN], 4]
    shown = done.stdout.decode(encoding).split("\x1e")  # strictly: there is no half character
    said = done.stderr.decode(encoding)
    assert "Traceback" not in said
    assert "Usage" in shown[0]
    assert "rkda" in shown[1]
    for text in (CLASSES[0], CLASSES[1], COLUMNS[0]):
        assert as_shown(text, encoding) in shown[2]
    assert as_shown("it has 'größe', 'β <x>', 'tag', 'città'", encoding) in said
    assert as_shown("'nö☃' has no records", encoding) in said
    assert json.loads(shown[3]) == json.loads((tmp_path / "again.csv.json").read_bytes())
    written = files(tmp_path)
    assert {name: written[name] for name in expected} == expected


def as_shown(text, encoding):
    def shown(character):
        try:
            character.encode(encoding)
        except UnicodeEncodeError:
            return {"…": "..."}.get(character, "?")
        return character

    return "".join(map(shown, text))


@pytest.mark.parametrize("locale", ["C", pytest.param("C.UTF-8", marks=SLOW)])
def test_names_that_the_locale_cannot_decode_are_those_of_the_files(locale, tmp_path, expected):
    table(tmp_path / "in.csv")
    name, model = b"caf\xe9 \xe2\x98\x83.csv", b"m\xe9.skops"
    try:
        os.rename(tmp_path / "in.csv", os.path.join(os.fsencode(tmp_path), name))
    except OSError:
        pytest.skip("names of files are Unicode here")
    variables = {"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    names = [*(word.encode() for word in TARGETED), b"--source", "☃=größe".encode(), b"--unlabeled", b"\xc3\x9f\xe9"]
    done = command(tmp_path, "label", name, *names, "--model", model, variables=variables)
    assert done.returncode == 0, done.stderr
    done = command(tmp_path, "predict", model, name, variables=variables)
    assert done.returncode == 0, done.stderr
    stem = os.path.join(os.fsencode(tmp_path), name.removesuffix(b".csv"))
    with open(stem + b".labeled.csv.json", "rb") as file:
        record = json.loads(file.read())
    assert list(record["options"]["sources"]) == ["☃"]
    assert os.fsencode(record["table"]) == name or record["table"].encode("utf-8", "surrogateescape") == name
    with open(stem + b".labeled.csv", "rb") as labeled, open(stem + b".predicted.csv", "rb") as predicted:
        assert labeled.read().decode().splitlines()[0] == predicted.read().decode().splitlines()[0]


CONDITIONS = {  # of standard output, and of standard error
    "both are closed": ("closed", "closed"),
    "nobody reads anything": ("unread", "unread"),
    "errors are full": ("read", "full"),
    "output is full": ("full", "read"),
    # marked slow from here on
    "output is closed": ("closed", "read"),
    "errors are closed": ("read", "closed"),
    "nobody reads the output": ("unread", "read"),
}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "condition", [*list(CONDITIONS)[:4], *(pytest.param(name, marks=SLOW) for name in list(CONDITIONS)[4:])]
)
def test_whatever_becomes_of_the_streams_the_files_are_written(condition, tmp_path, expected):
    table(tmp_path / "in.csv")
    kinds = CONDITIONS[condition]
    with open("/dev/full", "wb") as full, open(unread_pipe(), "wb") as unread:
        ends = {"read": subprocess.PIPE, "closed": subprocess.PIPE, "full": full, "unread": unread}

        def close():
            for number, kind in enumerate(kinds, 1):
                if kind == "closed":
                    os.close(number)

        options = {"stdout": ends[kinds[0]], "stderr": ends[kinds[1]], "preexec_fn": close}
        done = command(tmp_path, "label", "in.csv", *TARGETED, variables={"PYTHONUTF8": "1"}, **options)
    said = done.stderr or b""
    if kinds[0] == "full":
        assert done.returncode == EXIT_CODES[ErrorCode.NO_SPACE]
        sentence = "kernelweave: The report cannot be printed: No space left on device; the files are written."
        assert said.decode().splitlines()[-1] == sentence
    else:
        assert done.returncode == 0
    assert b"Traceback" not in said
    assert b"Error" not in said
    assert files(tmp_path) == expected


def unread_pipe():
    """The end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_other_commands_do_their_work_without_a_reader(tmp_path):
    pytest.importorskip("skops")
    table(tmp_path / "in.csv")
    commands = [
        ["label", "in.csv", *TARGETED, "--model", "m.skops"],
        ["predict", "m.skops", "in.csv"],
        ["papers", "run", "tiny", "--jobs", "1", "-o", "tiny"],
        ["papers", "report", "tiny"],
        ["predict", "none.skops", "in.csv"],
        ["papers", "list"],
        ["--help"],
    ]
    with open(unread_pipe(), "wb") as unread:
        codes, done = several(tmp_path, *commands, stdout=unread, variables={"HOME": str(tmp_path / "none")})
    assert codes == [0, 0, 0, 0, EXIT_CODES[ErrorCode.BAD_MODEL], NO_READER, NO_READER]
    assert b"Traceback" not in done.stderr
    assert (tmp_path / "in.predicted.csv").exists()
    assert (tmp_path / "tiny" / "report.html").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_bar_on_a_terminal_of_another_encoding(tmp_path, expected):
    table(tmp_path / "in.csv")
    terminal, end = os.openpty()
    variables = {"PYTHONIOENCODING": "latin-1", "TERM": "xterm"}
    line = [sys.executable, "-m", "kernelweave", "label", "in.csv", *TARGETED]
    process = subprocess.Popen(line, cwd=tmp_path, env=environment(**variables), stdout=end, stderr=end)
    os.close(end)
    shown = bytearray()
    with suppress(OSError):  # how Linux says that the other end is closed
        while chunk := os.read(terminal, 4096):
            shown += chunk
    os.close(terminal)
    assert process.wait() == 0
    assert b"\x1b[" in shown  # it was taken for a terminal
    assert b"Traceback" not in shown
    assert files(tmp_path) == expected


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_limit_of_files_is_one_sentence_and_nothing_is_lost(tmp_path):
    import resource

    table(tmp_path / "in.csv")
    (tmp_path / "in.labeled.csv").write_bytes(b"earlier")
    (tmp_path / "tiny").mkdir()
    codes, done = several(
        tmp_path,
        ["label", "in.csv", *TARGETED],
        ["papers", "run", "tiny", "--jobs", "1", "-o", "tiny"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        variables={"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert codes == [EXIT_CODES[ErrorCode.NO_SPACE], 2]
    sentences = [line for line in done.stderr.decode().splitlines() if line.startswith("kernelweave: ")]
    assert sentences == [
        "kernelweave: 'in.labeled.csv' cannot be written: File too large.",
        "kernelweave: The records cannot be written to 'tiny': File too large.",
    ]
    assert (tmp_path / "in.labeled.csv").read_bytes() == b"earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["codes.json", "in.csv", "in.labeled.csv", "tiny"]


def test_time_zones_and_missing_folders_of_the_user_change_nothing(tmp_path, expected):
    table(tmp_path / "in.csv")
    names = ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME")
    before = datetime.now(UTC)
    zone = "<A>-14" if before.hour >= 12 else "<A>12"  # where it is tomorrow, or yesterday
    variables = {"PYTHONUTF8": "1", "TZ": zone, **dict.fromkeys(names, "/dev/null/none")}
    done = command(tmp_path, "label", "in.csv", *TARGETED, variables=variables)
    assert done.returncode == 0
    assert b"kernelweave: " not in done.stderr
    record = json.loads((tmp_path / "in.labeled.csv.json").read_bytes())
    assert record["date"] in {str(before.date()), str(datetime.now(UTC).date())}
    assert files(tmp_path) == expected


def test_a_locale_with_decimal_commas_changes_nothing(tmp_path_factory, expected):
    folder, locales = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("locales")
    table(folder / "in.csv")
    variables = {"PYTHONUTF8": "1", "LC_ALL": "de_DE.UTF-8"}
    if shutil.which("localedef") and os.path.exists("/usr/share/i18n/locales/de_DE"):
        made = ["localedef", "--no-archive", "-i", "de_DE", "-f", "UTF-8", str(locales / "de_DE.UTF-8")]
        subprocess.run(made, capture_output=True, check=False)
        variables["LOCPATH"] = str(locales)
    code = (
        "import locale, sys; locale.setlocale(locale.LC_ALL, ''); assert locale.str(1.5) == '1,5'; print('set');"
        "from kernelweave.cli.main import main; main()"
    )
    line = [sys.executable, "-c", code, "label", "in.csv", *TARGETED]
    done = subprocess.run(line, cwd=folder, env=environment(**variables), capture_output=True, check=False)
    if not done.stdout.startswith(b"set"):
        pytest.skip("there is no locale de_DE.UTF-8")
    assert done.returncode == 0, done.stderr
    assert files(folder) == expected


def test_a_stream_that_fails_takes_the_rest_in_silence():
    class Broken(io.RawIOBase):
        n_calls = 0

        def write(self, data):
            self.n_calls += 1
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    raw = Broken()
    output = streams.Output(raw)
    assert [output.write(b"abc"), output.write(b"de")] == [3, 2]
    assert raw.n_calls == 1
    assert isinstance(output.failure, BrokenPipeError)


def test_streams_of_another_program_are_left_alone(monkeypatch):
    mine = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", mine[0])
    monkeypatch.setattr(sys, "stderr", mine[1])
    with streams.guard_streams() as output:
        print("a word")
        streams.mark_work_done()
        assert (sys.stdout, sys.stderr) == mine
    assert mine[0].getvalue() == "a word\n"
    assert (output.failure, output.work_is_done) == (None, False)


@pytest.mark.parametrize(
    "word, text",
    [
        ("plain", "plain"),
        ("größe", "größe"),
        ("gr\udcc3\udcb6\udcc3\udc9fe", "größe"),
        ("gr\udcf6\udcdfe", "gr\udcf6\udcdfe"),  # neither in the encoding of the system nor UTF-8
    ],
)
def test_words_that_the_system_cannot_decode_are_read_as_utf_8(word, text):
    assert streams.as_text(word) == text


def test_what_cannot_be_decoded_is_an_error_as_ever():
    codecs.register_error(streams.ERROR_HANDLER, streams._replace_characters)
    assert "a…–☃".encode("ascii", streams.ERROR_HANDLER) == b"a...-?"
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("ascii", streams.ERROR_HANDLER)


def test_a_full_pipe_that_does_not_block_is_waited_for():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    received = []

    def read():
        time.sleep(0.2)
        while part := os.read(reader, 65536):
            received.append(part)

    thread = threading.Thread(target=read)
    thread.start()
    with os.fdopen(writer, "wb", buffering=0) as raw, io.BufferedWriter(streams.Output(raw)) as buffered:
        buffered.write(b"x" * 1_000_000)
        buffered.flush()
    thread.join()
    assert sum(map(len, received)) == 1_000_000
