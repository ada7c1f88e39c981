"""Drawings become elements of a page."""

import xml.etree.ElementTree as ET

import matplotlib as mpl

from kernelweave.report.drawing import draw_svg, embed_svg


def test_a_drawing_is_an_element_with_a_name_and_ids_of_its_own():
    svg = draw_svg(lambda ax: ax.plot([0, 1], [1, 0]), "one", 'what "it" <shows>')
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'what "it" <shows>'
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert ids
    assert all(each.startswith("one-") for each in ids)
    assert svg == draw_svg(lambda ax: ax.plot([0, 1], [1, 0]), "one", 'what "it" <shows>')


def test_texts_stay_texts_and_settings_come_back():
    before = dict(mpl.rcParams)
    root = ET.fromstring(draw_svg(lambda ax: ax.set_title("a <b> title"), "t", "title"))
    assert "a <b> title" in [text for each in root.iter() for text in [each.text] if text]
    assert dict(mpl.rcParams) == before


def test_references_within_a_drawing_follow_the_ids():
    svg = embed_svg('<?xml version="1.0"?><svg><g id="a"/><use href="#a" clip-path="url(#a)"/></svg>', "p", "l")
    assert 'id="p-a"' in svg
    assert 'href="#p-a"' in svg
    assert "url(#p-a)" in svg


def test_a_long_title_has_several_lines():
    words = " ".join(["title"] * 30)
    root = ET.fromstring(draw_svg(lambda ax: ax.set_title(words), "t", "title"))
    lines = [text for each in root.iter() if (text := (each.text or "").strip()).startswith("title")]
    assert len(lines) > 2
    assert " ".join(lines) == words
