import re
from html.parser import HTMLParser

import pytest
from checks.browser import needs_chromium, opened
from checks.tiny_paper import PAPER, TABLE

from kernelweave.papers import PAPERS
from kernelweave.papers.runner import current_records, execute, plan
from kernelweave.report import page

VOID = {"meta", "link", "br"}


class Sound(HTMLParser):
    """Every element is closed in order; what would be fetched is noted."""

    def __init__(self, text):
        super().__init__()
        self.open, self.fetched, self.ids, self.targets = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.targets += [given["href"][1:]] if tag == "a" else []
        self.fetched += [given[name] for name in ("src", "href", "action") if name in given and tag != "a"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    execute(plan([PAPER]), folder)
    return page.build([PAPER.describe()], *current_records([PAPER], folder))


def made_up(papers, fast=False, trials=2):
    """Records of every cell of the papers, with numbers that nobody computed."""
    records = []
    for task in plan(papers, trials=trials):
        values = {measure.name: 12.3 + task.cell.trial for measure in task.item.measures}
        for panel in task.item.panels:
            if panel.x is not None:
                names = (panel.x, panel.y, *(panel.to or ()))
                values |= {name: [1.0, 2.0, 3.0] for name in names}
        cell = {name: getattr(task.cell, name) for name in ("paper", "item", "row", "method", "trial")}
        more = {"fast": fast, "data": "original", "values": values, "date": "2026-01-02", "versions": {"numpy": "2"}}
        records.append(cell | more)
    return records


def test_the_page_is_sound_and_needs_nothing_else(tiny):
    text = page.html(tiny)
    seen = Sound(text)
    assert all(address.startswith(("data:", "#")) for address in seen.fetched)
    assert "<script" not in text
    assert "@import" not in text
    assert len(set(seen.ids)) == len(seen.ids)
    assert set(seen.targets) <= set(seen.ids)
    assert {"tiny", "tiny-table-1", "tiny-figure-1"} <= set(seen.ids)


def test_names_are_escaped(tiny):
    assert "Noise &lt;b&gt;about&lt;/b&gt; ten" in page.html(tiny)


def test_both_forms_hold_every_number_and_the_counts(tiny):
    table = tiny.papers[0][1][0].table
    assert sum(tiny.counts.values()) == 3
    for text in (page.html(tiny), page.markdown(tiny)):
        for cell in table.cells.values():
            if cell.mean is not None:
                assert page.number(cell.mean, 1) in text
            if cell.verdict:
                assert f"{page.SIGNS[cell.verdict]} {page.signed(cell.difference, 1)}" in text
        for verdict, count in tiny.counts.items():
            assert f"{page.SIGNS[verdict]} {count}" in text
        for word in ("Draw numbers.", "mean", "Printed nowhere.", "3 trials", "numpy", "scikit-learn"):
            assert word in text


def test_worse_cells_have_their_reason_and_the_others_are_listed_first():
    described, records = PAPER.describe(), made_up([PAPER])
    described["items"][0]["why"] = [["*", "two", "It is only noise."]]
    built = page.build([described], records)
    assert {(cell.row, cell.method) for _, cell in built.unexplained} == {("a", "one"), ("b", "one")}
    for text in (page.html(built), page.markdown(built)):
        assert "It is only noise." in text
        assert text.index("Unexplained: tiny table 1, b, one, error") < text.index("Draw numbers.")


def test_a_fast_run_says_so_and_owes_no_reasons():
    built = page.build([PAPER.describe()], made_up([PAPER], fast=True))
    assert built.unexplained == ()
    for text in (page.html(built), page.markdown(built)):
        assert "This is a fast run" in text
        assert "In this fast run" in text


def test_missing_failed_generated_and_outdated_records_are_said():
    records = [r for r in made_up([PAPER]) if r["row"] == "a"]
    records[0] = {k: v for k, v in records[0].items() if k != "values"} | {"error": "ValueError: <no>", "trial": 7}
    records[1] |= {"data": "generated"}
    built = page.build([PAPER.describe()], records, n_others=4)
    text = page.html(built)
    for words in ("No number yet for 2 of 4 pairs", "were generated", "4 records were made", "ValueError: &lt;no&gt;"):
        assert words in text
    assert "missing" in text
    assert "ValueError: &lt;no&gt;" in page.markdown(built)
    assert built.counts == {"better": 0, "equal": 0, "worse": 0}


def test_trials_and_papers_that_are_not_there_are_said_first():
    records = [r for r in made_up([PAPER], trials=3) if r["method"] == "one" or r["trial"] < 1]
    built = page.build([PAPER.describe()], records, without=["other", "third"])
    assert [view.title for view in built.partial] == ["Table 1"]
    for text in (page.html(built), page.markdown(built)):
        before = text[: text.index("Draw numbers.")]
        assert "There are no records of other, third" in before
        assert "Only 1 of 3 trials for 2 of 4 pairs of row and method in tiny table 1." in before
        assert "1 to 3 of 3 trials" in text
        assert text.count("1 of 3 trials") == 1 + 2 * 3  # the caution, and two rows of three measures
    whole = page.build([PAPER.describe()], made_up([PAPER], trials=3))
    assert whole.partial == ()
    assert page.warnings_of(whole)[0].startswith("Unexplained")


def test_warnings_of_cells_are_in_both_forms():
    records = made_up([PAPER])
    records[0]["warnings"] = ["It stopped\nearly."]
    built = page.build([PAPER.describe()], records)
    for text in (page.html(built), page.markdown(built)):
        assert "Warnings while computing" in text
        assert "It stopped early." in " ".join(text.split())


def test_one_row_is_a_grid_of_measures_and_several_are_a_grid_each():
    views = page.build([PAPER.describe()], made_up([PAPER])).papers[0][1]
    assert [(grid.title, grid.head) for grid in views[1].grids] == [("a", ("error (%)",))]
    several = [(grid.title, grid.head, grid.judged) for grid in views[0].grids]
    assert several[0] == ("error (%) ↓", ("one", "two"), True)
    assert [judged for _, _, judged in several] == [True, False, False]


def test_a_curve_is_short_in_markdown():
    built = page.build([PAPER.describe()], made_up([PAPER]))
    assert "- one: (1, 1), (2, 2), (3, 3)" in page.markdown(built)


def test_every_item_of_every_paper_is_shown():
    papers = list(PAPERS.values())
    built = page.build([paper.describe() for paper in papers], made_up(papers))
    text = page.html(built)
    Sound(text)
    assert built.missing == ()
    assert text.count("<article") == sum(len(paper.items) for paper in papers)
    assert text.count("<svg") == sum(len(item.panels) for paper in papers for item in paper.items)
    for paper in papers:
        assert paper.title in page.markdown(built)


def test_an_empty_run_makes_a_page(tmp_path):
    built = page.build([PAPER.describe()], [])
    assert "no trial yet" in page.html(built)
    assert len(built.missing) == 2
    assert built.papers[0][1][0].table.n_missing == len(TABLE.rows) * len(TABLE.methods)


@pytest.mark.browser
@needs_chromium
class TestBrowser:
    def test_the_console_is_heard(self, tmp_path):
        file = tmp_path / "page.html"
        file.write_text("<!DOCTYPE html><title>x</title><script>console.error('heard')</script>")
        _, said = opened(file, tmp_path / "profile", "--dump-dom")
        assert any("heard" in line for line in said)

    def test_the_report_opens_without_a_word_and_shows_every_item(self, tmp_path):
        papers = list(PAPERS.values())
        file = tmp_path / "report.html"
        file.write_text(
            page.html(page.build([paper.describe() for paper in papers], made_up(papers))), encoding="utf-8"
        )
        dom, said = opened(file, tmp_path / "profile", "--dump-dom")
        assert said == []
        assert dom.count("<article") == sum(len(paper.items) for paper in papers)
        assert not re.search(r'class="gap">(missing|failed)', dom)
        picture = tmp_path / "report.png"
        opened(file, tmp_path / "profile", "--window-size=1300,2000", f"--screenshot={picture}")
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size > 20_000


def test_markdown_shows_texts_of_records_and_takes_none_of_them_for_html_or_links():
    evil = "<script>alert(1)</script> [a](javascript:b) | c"
    records = made_up([PAPER])
    outside = [record | {"method": evil} for record in records if record["method"] == records[0]["method"]]
    failed = {k: v for k, v in records[0].items() if k != "values"} | {"error": f"{evil}\n# head", "trial": 7}
    others = {"warnings": [evil], "versions": {evil: evil}}
    built = page.build([PAPER.describe()], [*(record | others for record in records), *outside, failed])
    text = page.markdown(built)
    assert "<script" not in text
    assert "\n# head" not in text
    assert r"&lt;script&gt;alert(1)&lt;/script&gt; \[a\](javascript:b) \| c" in text
