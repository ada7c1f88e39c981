"""Pages of --report: content, names that are text, a page that opens quietly and fits a phone."""

import json
import re
import sys

import pytest
from checks.browser import needs_chromium, opened
from checks.command import rows, run, write

from kernelweave.cli.page import check_packages
from kernelweave.errors import KernelweaveError

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with nasty names, and the pages of all commands about it."""
    folder = tmp_path_factory.mktemp("pages")
    body = [[*row[:4], {"NA": NASTY, "None": "=cmd()", "": ""}[row[4]]] for row in rows()]
    body = [[row[0], row[1], f"${row[2]}", *row[3:]] for row in body]
    body[3][1] = "(3.5)"
    table = write(folder / "in.csv", body, header=("id", "<b>x</b>", "z\x1b[31m", "kind", "y"))
    table.chmod(0o600)
    named = (table, "--target", "y", "--id", "id")
    assert run("label", *named, "--report", folder / "label.html") == 0
    assert run("explain", *named, "--report", folder / "explain.html") == 0
    assert run("compare", *named, "--learner", "SVM", "--learner", "harmonic", "--report", folder / "compare.html") == 0
    return folder


def read_page(folder, name):
    return (folder / f"{name}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["label", "explain", "compare"])
def test_a_page_is_as_secret_as_the_table(folder, name):
    assert (folder / f"{name}.html").stat().st_mode & 0o777 == 0o600


def titles(page):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", page)


@pytest.mark.parametrize("name", ["label", "explain", "compare"])
def test_foreign_names_are_text(folder, name):
    page = read_page(folder, name)
    assert "<script" not in page
    assert "<b>x</b>" not in page
    assert "\x1b" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "How to repeat it" in titles(page)
    assert f"kernelweave {name} " in page


def test_the_page_of_label_names_rows_by_their_identifier_and_their_line(folder):
    page = read_page(folder, "label")
    assert {"What was learned", "Candidates", "Errors", "Doubtful labels", "Rows to label next", "Columns"} <= set(
        titles(page)
    )
    assert re.search(r"0\d\d \(row \d+\)", page)
    assert "30 have a label" in page


@pytest.mark.parametrize("name", ["label", "explain", "compare"])
def test_gaps_and_how_numbers_are_written_are_on_the_page(folder, name):
    page = read_page(folder, name)
    assert "Cells that cannot be read are gaps: &#39;(3.5)&#39; in" in page
    assert "numeric, in $" in page


def test_the_page_of_explain_says_which_columns_decide(folder):
    assert "Which columns decide" in titles(read_page(folder, "explain"))


def test_the_page_of_compare_has_all_learners_and_the_advice(folder):
    page = read_page(folder, "compare")
    assert "did the unlabelled rows help?" in page
    assert page.count('<th scope="row" class="name">harmonic</th>') == 1
    assert "Take " in page


def test_numbers_are_written_in_their_own_unit(tmp_path):
    body = [[*row[:4], f"{1000 + 100 * float(row[1]):.0f}" if row[4] else ""] for row in rows()]
    table = write(tmp_path / "in.csv", body)
    assert run("label", table, "--target", "y", "--report", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Errors are in the unit of y, whose standard deviation is" in page
    learned = re.search(r"Root mean squared error of held-out rows: (\S+)", page)[1]
    assert 5 < float(learned) < 200  # of numbers from 800 to 1200
    record = json.loads((tmp_path / "in.labeled.csv.json").read_text(encoding="utf-8"))
    assert float(learned) == pytest.approx(record["errors"]["kernelweave"]["rmse"], rel=0.01)
    candidate = re.search(r'<th scope="row" class="name">SVM</th><td class="number">([^<]+)</td>', page)[1]
    assert float(candidate) == pytest.approx(record["leaderboard"][0]["error"], rel=0.001)
    assert re.search(r"<b>\d+(\.\d+)?</b>root mean squared error<small>95 % interval .*, R² 0\.\d\d</small>", page)
    suspects = page[page.index("Look at these first") :]
    assert re.search(r"<td>(9|10|11)\d\d?</td>", suspects)


def test_a_page_over_the_table_or_without_a_folder_is_refused_and_nothing_is_written(folder, tmp_path, capsys):
    table = write(tmp_path / "in.csv", rows())
    before = table.read_bytes()
    for command in ("label", "explain", "compare"):
        assert run(command, table, "--target", "y", "--report", table) != 0
        assert run(command, table, "--target", "y", "--report", tmp_path / "none" / "page.html") != 0
    assert table.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["in.csv"]
    assert "Traceback" not in capsys.readouterr().err


def test_packages_that_are_missing_are_named_before_the_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(KernelweaveError, match=r"--report needs jinja2: pip install 'kernelweave\[report\]'"):
        check_packages()


@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("name", ["label", "explain", "compare"])
def test_a_page_opens_without_a_word_and_never_scrolls_sideways(folder, name, tmp_path):
    probe = "<script>document.title = document.documentElement.scrollWidth + '/' + window.innerWidth</script></body>"
    probed = tmp_path / "probed.html"
    probed.write_text(read_page(folder, name).replace("</body>", probe), encoding="utf-8")
    for look in (["--window-size=500,900"], ["--window-size=1300,900", "--blink-settings=preferredColorScheme=0"]):
        dom, said = opened(probed, tmp_path / "profile", "--dump-dom", *look)
        assert said == []
        wide, window = map(int, re.search(r"<title>(\d+)/(\d+)</title>", dom).groups())
        assert wide <= window
