import json
import warnings

import pytest

from kernelweave.cli.display import as_json, describe_bound, show_stages


def test_json_has_no_nan_and_no_infinity():
    def refuse(text):
        raise AssertionError(f"{text} is not JSON")

    nested = {"a": [float("nan"), (1.5, float("inf"))], "b": {"c": -float("inf"), "d": 2}}
    assert json.loads(as_json(nested), parse_constant=refuse) == {"a": [None, [1.5, None]], "b": {"c": None, "d": 2}}


@pytest.mark.parametrize(
    "objective, gap, words",
    [
        (10.0, 0.0, "within 0.0e+00 of the optimum (relative)"),
        (0.0, 0.0, "within 0.0e+00 of the optimum (relative)"),
        (10.0, 2.0, "within 2.5e-01 of the optimum (relative)"),  # it is 8 at least
        (10.0, 6.0, "no useful bound"),
        (10.0, 10.0, "no useful bound"),
        (10.0, float("inf"), "no useful bound"),
    ],
)
def test_the_certificate_is_relative_to_the_optimum(objective, gap, words):
    assert words in describe_bound(objective, gap)


def test_stages_are_lines_and_warnings_are_notes_between_them(capsys):
    before = warnings.showwarning
    with show_stages() as on_stage:
        on_stage("reading the table", 0.0)
        warnings.warn("A [word] of caution.", stacklevel=1)
        on_stage("writing", 0.98)
    assert capsys.readouterr() == ("", "  0%  reading the table\nnote: A [word] of caution.\n 98%  writing\n")
    assert warnings.showwarning is before
