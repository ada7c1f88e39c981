"""A page from plain data: everything foreign is text, tables are cut, one file with nothing from elsewhere."""

from html.parser import HTMLParser

from kernelweave.report.content import MAX_LINES, Document, Fact, Section, Table
from kernelweave.report.document import render_document

NASTY = "<script>alert(1)</script> & \"quoted\" 'x'"


class Reader(HTMLParser):
    """Collects elements and the texts inside them."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.texts = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]

    def handle_data(self, data):
        self.texts.append(data.strip())


def page(**parts):
    whole = {"title": "T", "lead": "L", "facts": (), "cautions": (), "sections": (), "footer": "F"} | parts
    return render_document(Document(**whole))


def test_every_foreign_text_is_text():
    table = Table(NASTY, (NASTY, "b"), ((NASTY, 1.0),))
    section = Section(NASTY, (NASTY,), (), (table,), NASTY)
    texts = dict.fromkeys(("title", "lead", "footer"), NASTY)
    found = Reader(page(**texts, facts=(Fact(NASTY, NASTY, NASTY),), cautions=(NASTY,), sections=(section,)))
    assert "script" not in found.tags
    assert found.texts.count(NASTY) == 14  # title twice, lead, footer, three of a fact, a caution, six of a section
    assert all(not name.startswith("on") for _, name, _ in found.attributes)


def test_a_page_loads_nothing_and_runs_nothing():
    found = Reader(page(sections=(Section("a", ("text",)),)))
    links = [value for _, name, value in found.attributes if name in ("src", "href")]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not {"script", "iframe", "img"} & set(found.tags)


def test_tables_have_heads_and_numbers_are_flush_right():
    table = Table("c", ("name", "share", "status"), (("a", 0.5, "x"), ("b", None, "y")))
    assert table.is_number == (False, True, False)
    found = Reader(page(sections=(Section("s", (), (), (table,)),)))
    assert [value for tag, name, value in found.attributes if (tag, name) == ("th", "scope")] == ["col"] * 3 + [
        "row"
    ] * 2
    assert sum(name == "class" and value == "number" for _, name, value in found.attributes) == 3


def test_long_tables_and_cells_are_cut_and_it_is_said():
    table = Table("c", ("a",), tuple((str(k),) for k in range(MAX_LINES + 7)))
    assert "7 more lines are not shown." in page(sections=(Section("s", (), (), (table,)),))


def test_a_table_without_lines_has_its_head():
    assert Table("c", ("a", "b"), ()).is_number == (False, False)
    assert "<th" in page(sections=(Section("s", (), (), (Table("c", ("a", "b"), ()),)),))


def test_links_of_the_contents_lead_to_sections():
    sections = tuple(Section(title) for title in ("One & two", "Three?", "Vier ü"))
    found = Reader(page(sections=sections))
    ids = {value for _, name, value in found.attributes if name == "id"}
    links = {value[1:] for tag, name, value in found.attributes if (tag, name) == ("a", "href")}
    assert links <= ids
    assert len(links) == 4  # and the one to the content
