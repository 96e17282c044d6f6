"""The files of the page: no markup is ever read from a string, nothing is inline, and nothing comes from elsewhere."""

import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest

from bespeak.dev.page_files import FIRST, KINDS, page_file

FOLDER = Path(str(files("bespeak.dev") / "static"))
SCRIPTS = sorted(name for name in KINDS if name.endswith(".js"))
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|setHTML|parseHTML"
    r"|\beval\b|new Function|\bimport\(|javascript:|\.style\b|localStorage|sessionStorage|document\.cookie"
)
"""What would read markup or code from a string, be stopped by the policy, or leave something behind."""


def test_every_file_of_the_folder_is_served_and_no_other() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(KINDS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_reads_markup_or_code_from_a_string(name: str) -> None:
    assert FORBIDDEN.findall(page_file(name).decode()) == []


@pytest.mark.parametrize("name", sorted(KINDS))
def test_no_file_loads_anything_from_elsewhere(name: str) -> None:
    found = re.findall(r"https?://[^\s\"'`]*|//[a-z]+\.", page_file(name).decode())
    assert [one for one in found if one != "http://www.w3.org/2000/svg"] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_import_only_files_of_the_page(name: str) -> None:
    imported = re.findall(r'^import .* from "(.*)";$', page_file(name).decode(), re.MULTILINE)
    assert all(one.startswith("./") and one[2:] in KINDS for one in imported)
    assert len(imported) == page_file(name).decode().count("import ")


class Tags(HTMLParser):
    """The tags of a document, and the text in those that could have code in them."""

    def __init__(self) -> None:
        super().__init__()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.inline: list[str] = []
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open = tag
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style") and data.strip():
            self.inline.append(data)


def test_the_document_has_no_inline_script_or_style() -> None:
    tags = Tags()
    tags.feed(page_file(FIRST).decode())
    assert tags.inline == []
    names = {name for _, name, _ in tags.attributes}
    assert "style" not in names
    assert [name for name in names if name.startswith("on")] == []


def test_the_document_loads_files_beside_it() -> None:
    tags = Tags()
    tags.feed(page_file(FIRST).decode())
    loaded = {value for tag, name, value in tags.attributes if name in ("src", "href") and tag != "a"}
    assert loaded == {"icon.svg", "page.css", "page.js"}


def test_every_control_of_the_document_has_a_label() -> None:
    tags = Tags()
    tags.feed(page_file(FIRST).decode())
    labelled = {value for tag, name, value in tags.attributes if (tag, name) == ("label", "for")}
    assert labelled == {value for tag, name, value in tags.attributes if tag in ("input", "select") and name == "id"}
