import re
from xml.etree import ElementTree

import pytest

from kernelweave.report.figures import draw, series
from kernelweave.report.style import COLORS

ITEM = {"name": "figure 1", "rows": ["10", "100", "110"], "methods": ["one", "two"]}
LINE = {"title": "Means <of> errors", "x_label": "labels", "y_label": "error", "x": None, "y": "e", "style": "line"}
LINE |= {"rows": [], "methods": [], "to": None, "log": ""}


def record(row, method, trial, **values):
    return {"row": row, "method": method, "trial": trial, "values": values}


POINTS = [record(row, m, t, e=float(row) + t) for row in ITEM["rows"] for m in ITEM["methods"] for t in range(2)]
CURVES = [record("10", m, t, x=[1, 2, 4], y=[3.0, 2.0, 1.0 + t]) for m in ITEM["methods"] for t in range(2)]


def texts(svg):
    return {
        "".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
    }


def test_rows_become_places_and_trials_their_mean():
    found = series(ITEM, LINE, POINTS)
    assert list(found) == ["one", "two"]
    assert [point[:2] for point in found["one"][0]] == [("10", 10.5), ("100", 100.5), ("110", 110.5)]
    assert found["one"][0][0][2] == pytest.approx(0.5)  # the deviation of 10 and 11 over the root of 2


def test_a_panel_takes_its_rows_and_methods_only():
    found = series(ITEM, LINE | {"rows": ["100"], "methods": ["two"]}, POINTS)
    assert found == {"two": [[("100", 100.5, 0.5)]]}


def test_curves_stay_one_a_trial():
    found = series(ITEM, LINE | {"x": "x", "y": "y"}, CURVES)
    assert found["two"] == [[(1, 3.0), (2, 2.0), (4, 1.0)], [(1, 3.0), (2, 2.0), (4, 2.0)]]


LOOKS = [(style, log) for style in ("line", "points") for log in ("", "x", "y", "xy")] + [("bars", ""), ("bars", "y")]


@pytest.mark.parametrize("style, log", LOOKS)
def test_a_drawing_is_sound_xml_with_names_and_colours(style, log):
    curves = style == "points"
    panel = LINE | {"style": style, "log": log} | ({"x": "x", "y": "y"} if curves else {})
    svg = draw(ITEM, panel, CURVES if curves else POINTS, "p")
    assert {"labels", "error", "Means <of> errors", "one", "two"} <= texts(svg)
    assert all(color.lower() in svg for color in COLORS[:2])
    assert 'role="img"' in svg
    assert 'aria-label="figure 1: Means &lt;of&gt; errors"' in svg


def test_links_join_estimated_to_true_points():
    panel = LINE | {"style": "links", "x": "x", "y": "y", "to": ["tx", "ty"], "methods": ["one"]}
    svg = draw(ITEM, panel, [record("10", "one", 0, x=[1.0], y=[2.0], tx=[3.0], ty=[4.0])], "p")
    assert {"true", "estimated"} <= texts(svg)


def test_places_that_are_too_close_on_a_logarithmic_axis_share_a_name():
    assert {"10", "100"} <= texts(draw(ITEM, LINE | {"log": "x"}, POINTS, "p"))
    assert "110" not in texts(draw(ITEM, LINE | {"log": "x"}, POINTS, "p"))


def test_failed_records_are_left_out():
    failed = [{"row": "10", "method": "one", "trial": 9, "error": "no"}]
    assert draw(ITEM, LINE, POINTS + failed, "p") == draw(ITEM, LINE, POINTS, "p")
    assert "<svg" in draw(ITEM, LINE, failed, "p")


def test_two_drawings_share_no_id_and_the_same_one_is_the_same_text():
    first, second = (draw(ITEM, LINE, POINTS, prefix) for prefix in ("a", "b"))
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (first, second)]
    assert not ids[0] & ids[1]
    for svg, known in zip((first, second), ids, strict=True):
        used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg))
        assert used
        assert used <= known
    assert first == draw(ITEM, LINE, POINTS, "a")
