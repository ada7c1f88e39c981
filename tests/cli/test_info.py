import json
import os
import re

import pytest
from checks.command import run

from kernelweave.cli import info
from kernelweave.cli.info import describe_installation, find_cache, show_info


def test_versions_threads_cores_memory_and_cache_are_said(capsys):
    assert run("info") == 0
    shown = capsys.readouterr().out
    for word in ("kernelweave", "Python", "numpy", "scikit-learn", "threads:", "cores:", "memory:", "compiled loops"):
        assert word in shown
    assert re.search(r"cores: \d+ usable of \d+", shown)
    assert "\x1b" not in shown


def test_the_same_as_json(capsys):
    assert run("info", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["extras"]) == {"cli", "io", "report", "ann"}
    assert found["versions"]["numpy"]
    assert found["cores"]["usable"] >= 1


def test_a_missing_extra_comes_with_the_command_that_installs_it(monkeypatch, capsys):
    real = info._find_version
    monkeypatch.setattr(info, "_find_version", lambda name: None if name == "skops" else real(name))
    found = describe_installation()
    assert found["extras"]["io"]["missing"] == ["skops"]
    show_info(found)
    shown = capsys.readouterr().out
    assert "missing: pip install 'kernelweave[io]'" in shown
    assert "skops missing" in shown


def test_where_nothing_is_missing_that_is_said(capsys):
    found = describe_installation()
    for extra in found["extras"].values():
        extra |= {"missing": [], "install": None}
    show_info(found)
    assert "no extra is missing" in capsys.readouterr().out


def test_the_folder_of_compiled_loops_is_the_one_that_numba_would_take(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert find_cache() == str(tmp_path)
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    assert find_cache().endswith("__pycache__")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert find_cache() == str(tmp_path / "numba")


@pytest.mark.parametrize("text, size", [("1073741824\n", 1.0), ("max\n", None), ("", None)])
def test_a_limit_of_memory_is_read_where_there_is_one(text, size, monkeypatch, tmp_path):
    path = tmp_path / "memory.max"
    path.write_text(text)
    monkeypatch.setattr(info, "CGROUP_LIMITS", (str(path), str(tmp_path / "none")))
    assert describe_installation()["memory"]["limit"] == size
