"""The script that plays other processors: which it plays, how it chooses, and what it reads from a report."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / ".ci" / "processors.py"))
FEATURES = {"SSE3", "SSE42", "AVX", "AVX2", "FMA3"}


def openblas(core):
    """What OpenBLAS plays on a processor without AVX-512, in a build that has no loops for Zen."""
    return {"own": "Haswell", "Zen": "Haswell", "Prescott": "Katmai"}.get(core, core)


def playable(*named, features=FEATURES, played=openblas, machine="x86_64"):
    return SCRIPT["playable"](features, played, named, machine)


def test_core_types_that_cannot_run_or_come_twice_are_left_out_with_a_sentence():
    cores, reasons = playable()
    assert cores == ["Prescott", "Nehalem", "Sandybridge", "own", "baseline"]
    assert reasons == [
        "The own core type of this processor is Haswell.",
        "Haswell is left out: OpenBLAS plays Haswell for it, which is another run.",
        "Zen is left out: OpenBLAS plays Haswell for it, which is another run.",
        "SkylakeX is left out: this processor lacks AVX512_SKX.",
    ]


def test_core_types_that_are_named_run_if_they_can():
    cores, reasons = playable("Zen", "SkylakeX", "baseline")
    assert cores == ["Zen", "baseline"]
    assert reasons[1:] == ["SkylakeX is left out: this processor lacks AVX512_SKX."]
    with pytest.raises(SystemExit, match="no core type Pentium; there are Prescott, "):
        playable("Pentium")


@pytest.mark.parametrize("other", [{"machine": "arm64"}, {"played": lambda core: None}], ids=["ARM", "another BLAS"])
def test_without_core_types_the_own_one_runs_and_it_is_said(other):
    cores, reasons = playable(**other)
    assert cores == ["own"]
    assert reasons[0].startswith("OpenBLAS has no core types to play here")


def test_one_commit_has_one_core_type_and_without_git_it_is_the_first(monkeypatch):
    cores = ["Prescott", "Nehalem", "Haswell"]
    assert [SCRIPT["choose"](cores, commit) for commit in ("", "0", "a1", "a1", "a2")] == [
        *("Prescott", "Prescott", "Haswell", "Haswell", "Prescott")
    ]
    monkeypatch.setenv("PATH", "")
    assert SCRIPT["commit"]() == ""


def test_numpy_accepts_what_is_switched_off():
    features, dispatched = SCRIPT["numpy_features"]()
    assert set(dispatched) <= features
    code = f"import runpy; print(*runpy.run_path({str(ROOT / '.ci' / 'processors.py')!r})['numpy_features']()[1])"

    def found(core, switched_off):  # in a new process, since this one may run with the loops of another processor
        command, environment = [sys.executable, "-W", "error", "-c", code], SCRIPT["environment"](core, 1, switched_off)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert found("baseline", found("own", [])) == []


def test_each_run_has_its_own_variables(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    assert SCRIPT["environment"]("Haswell", 2, ["AVX2"])["OPENBLAS_CORETYPE"] == "Haswell"
    assert SCRIPT["environment"]("Haswell", 2, ["AVX2"])["OPENBLAS_NUM_THREADS"] == "2"
    assert "OPENBLAS_CORETYPE" not in SCRIPT["environment"]("own", 1, [])


def test_the_outcome_of_a_run_is_read_from_its_report(tmp_path):
    test = tmp_path / "test_it.py"
    test.write_text(
        "import pytest\n"
        "def test_one(): pass\n"
        "@pytest.mark.parametrize('a', [1, 2])\n"
        "def test_two(a): assert a == 1\n"
        "def test_three(missing): pass\n"
        "@pytest.mark.xfail\n"
        "def test_four(): assert False\n"
        "@pytest.mark.skip\n"
        "def test_five(): pass\n"
    )
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", str(test)]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 1
    passed, failed = SCRIPT["outcomes"](report.read_text())
    assert (passed, failed) == (2, ["test_it::test_two[2]", "test_it::test_three"])
    lines = SCRIPT["table"]([SCRIPT["Run"]("Haswell", 1, passed, tuple(failed), 1)]).splitlines()
    assert lines[-1].split() == ["Haswell", "1", "2", "2", "test_it::test_two[2],", "test_it::test_three"]
