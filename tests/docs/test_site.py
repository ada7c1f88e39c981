"""The built site: every name a page, every example a picture, every link a target, and no request to the network."""

from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from docs.pages import HTML, ROOT
from docs.test_sources import public_names

pytestmark = pytest.mark.docs

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src"), ("use", "href")}
NOT_LOADED = {"prev", "next", "search", "index", "canonical", "genindex"}  # links of the head that load nothing


class Page(HTMLParser):
    """What a page links to, loads from, and can be linked at."""

    def __init__(self, file):
        super().__init__()
        self.links, self.loaded, self.anchors, self.styles = [], [], {""}, []
        self.in_style = False
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        self.in_style = tag == "style"
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get("rel", "") not in NOT_LOADED:
            self.loaded += [given[key] for kind, key in LOADED if tag == kind and given.get(key)]
        self.styles.append(given.get("style", ""))

    def handle_data(self, data):
        if self.in_style:
            self.styles.append(data)


@cache
def page(file):
    return Page(file)


@pytest.fixture(scope="module")
def files():
    found = sorted(HTML.rglob("*.html"))
    assert found, f"{HTML} has no pages; `make docs` builds them"
    return found


def is_outside(address):
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "mailto")


def test_every_public_name_has_a_page(files):
    missing = [
        name for name in public_names() if not (HTML / "api" / "generated" / f"kernelweave.{name}.html").exists()
    ]
    assert not missing


def test_every_example_has_a_picture_on_its_page(files):
    for example in (ROOT / "examples").glob("plot_*.py"):
        built = HTML / "gallery" / f"{example.stem}.html"
        assert built.exists(), example.name
        assert [image for image in page(built).loaded if "sphx_glr_" in image], example.name


def test_every_internal_link_has_a_target(files):
    broken = []
    for file in files:
        for address in page(file).links:
            if is_outside(address) or address.startswith(("javascript:", "data:")):
                continue
            parts = urlsplit(address)
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file.resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                broken.append(f"{file.relative_to(HTML)}: {address}")
            elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in page(target).anchors:
                broken.append(f"{file.relative_to(HTML)}: {address} has no such place")
    assert not broken


def test_no_page_loads_anything_from_the_network(files):
    outside = [f"{file.relative_to(HTML)}: {it}" for file in files for it in page(file).loaded if is_outside(it)]
    styles = [style for file in files for style in page(file).styles] + [
        file.read_text(encoding="utf-8") for file in HTML.rglob("*.css")
    ]
    assert not outside
    assert not [style[:80] for style in styles if "url(http" in style or "@import" in style]


def test_everything_that_a_page_loads_is_there(files):
    missing = [
        f"{file.relative_to(HTML)}: {address}"
        for file in files
        for address in page(file).loaded
        if not address.startswith("data:") and not (file.parent / unquote(urlsplit(address).path)).exists()
    ]
    assert not missing


def test_mathematics_is_rendered_by_a_local_script_with_its_fonts(files):
    assert any("mathjax/tex-chtml.js" in address for address in page(HTML / "guide" / "mixtures.html").loaded)
    assert list((HTML / "_static" / "mathjax" / "output" / "chtml" / "fonts" / "woff-v2").glob("*.woff"))
