"""A slice of each part of the campaign, every day; `make campaign` runs all of it."""

import os
import warnings

import pytest
from campaign.parts import PARTS

# Cases that take little time.
SLICES = {
    "fits": range(1, 30),
    "bytes": (2, 3),
    "grammar": (1,),
    "tables": (*range(6), 850),
    "kills": (0, 3),
    "space": (0, 2, 3, 5),
    "interrupts": range(0, 16, 4),
}


def test_every_part_has_a_slice():
    assert set(SLICES) == set(PARTS)
    assert all(set(cases) <= set(range(PARTS[name].n_cases)) for name, cases in SLICES.items())


@pytest.mark.parametrize("name", SLICES)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in processes that are forked")
def test_a_slice_of_each_part_has_no_defect(name):
    pytest.importorskip("openpyxl")
    found = {}
    for number in SLICES[name]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = PARTS[name].run(number)
        if "defect" in result:
            found[number] = result
    assert not found
