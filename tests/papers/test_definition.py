import json
from dataclasses import replace

import pytest
from checks.tiny_paper import FIGURE, PAPER, TABLE

from kernelweave.papers.definition import Cell


def test_cells_that_agree_in_the_named_fields_share_a_seed():
    first = Cell("p", "table 1", "a", "one", 0)
    assert first.seed("row", "trial") == replace(first, method="two").seed("trial", "row")
    assert first.seed("row", "trial") != replace(first, trial=1).seed("row", "trial")
    seeds = {replace(first, **{name: value}).seed() for name, value in [("row", "b"), ("method", "two"), ("trial", 1)]}
    assert len({first.seed(), *seeds}) == 4


@pytest.mark.parametrize("change", [{"settings": {"mean": 11.0}}, {"version": 2}])
def test_the_digest_follows_what_decides_the_values(change):
    for fast in (False, True):
        assert replace(TABLE, fast_settings={}, **change).digest(fast) != replace(TABLE, fast_settings={}).digest(fast)


@pytest.mark.parametrize("nest", [lambda x: x, lambda x: (1.0, [x]), lambda x: {"inner": {"grid": (x, 1.0)}}])
def test_the_digest_is_that_of_numbers_to_rounding(nest):
    # NumPy's 10.0 ** np.arange(-8.0, 0.0) holds the first on some processors and the second on others
    first, second, other = (
        replace(TABLE, settings={"mean": nest(value)}, fast_settings={}).digest(False)
        for value in (1e-05, 9.999999999999999e-06, 1.000001e-05)
    )
    assert first == second != other


def test_the_digest_ignores_prose_names_and_numbers_of_trials():
    other = replace(TABLE, protocol="Other words.", caption="", trials=9, methods=("one",), why={}, notes=("n",))
    assert other.digest(False) == TABLE.digest(False)


def test_settings_of_a_fast_run_leave_the_whole_run_valid():
    other = replace(TABLE, fast_settings={"mean": 1.0})
    assert other.digest(False) == TABLE.digest(False)
    assert other.digest(True) != TABLE.digest(True)
    assert TABLE.digest(False) != TABLE.digest(True)


def test_cells_come_trial_by_trial_without_absent_pairs():
    cells = list(TABLE.cells("tiny", 2))
    assert [cell.trial for cell in cells] == [0] * 4 + [1] * 4
    assert [(c.row, c.method) for c in cells[:4]] == [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")]
    assert [(c.row, c.method, c.trial) for c in FIGURE.cells("tiny", 2)] == [("a", "one", 0), ("a", "one", 1)]


def test_outside_methods_join_only_items_that_take_them():
    assert sum(cell.method == "m:C" for cell in TABLE.cells("tiny", 1, ("m:C",))) == 2
    assert all(cell.method != "m:C" for cell in FIGURE.cells("tiny", 1, ("m:C",)))


def test_the_description_is_plain_and_complete():
    described = PAPER.describe()
    assert json.loads(json.dumps(described)) == described
    table = described["items"][0]
    assert table["settings"] == {"mean": "10"}
    assert table["published"]["rows"]["a"]["one"]["error"] == [12.0, 0.1]
    assert ["*", "two", "It is only noise."] in table["why"]


def test_a_method_has_a_version_of_its_own():
    other = replace(TABLE, method_versions={"default": 2})
    assert other.digest(False, "default") != TABLE.digest(False, "default")
    assert other.digest(False, "another") == TABLE.digest(False, "another") == TABLE.digest(False)
