"""Changed model files, a seeded slice: altered bytes are refused, and whatever a file says ends in one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checks.command import rows, run, write
from checks.model_files import read_parts, write_parts
from checks.mutations import alter_bytes, alter_content

from kernelweave import load
from kernelweave.cli.errors import EXIT_CODES
from kernelweave.errors import ErrorCode

N_ALTERED, N_CRAFTED = 40, 20
ENDS = {0, EXIT_CODES[ErrorCode.BAD_MODEL], EXIT_CODES[ErrorCode.BAD_FEATURES]}  # 0: what changed does not matter


@pytest.fixture(scope="module", name="model")
def saved_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    table = write(folder / "in.csv", rows(n_labeled=40))
    assert run("label", table, "--target", "y", "--model", folder / "m.skops", "--json") == 0
    return folder / "m.skops"


@pytest.mark.parametrize("seed", range(N_ALTERED))
def test_altered_bytes_are_refused(model, seed, tmp_path):
    alter_bytes(model, tmp_path / "m.skops", seed)
    with pytest.raises(ValueError, match=r"m.skops (is damaged|is not a model file|is a model file of format)"):
        load(tmp_path / "m.skops")


def test_a_file_that_was_zipped_again_is_refused(model, tmp_path):
    write_parts(tmp_path / "m.skops", read_parts(model), sealed=False)
    with pytest.raises(ValueError, match="was changed after it was saved: it has no digest"):
        load(tmp_path / "m.skops")


def test_crafted_files_cost_one_sentence_at_most(model, tmp_path):
    for seed in range(N_CRAFTED):
        alter_content(model, tmp_path / f"{seed:03d}.skops", seed)
    tests = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    program = [sys.executable, str(tests / "checks" / "mutations.py"), str(tmp_path), str(model.with_name("in.csv"))]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    ended = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert len(ended) == N_CRAFTED
    for name, code, errors in ended:
        sentences = [line for line in errors.splitlines() if not line.startswith("note: ")]
        assert code in ENDS, (name, code, errors)
        assert len(sentences) == (code != 0), (name, errors)
    assert len({code for _, code, _ in ended}) > 1  # some files are refused, others are not
