"""A graph as an SVG picture."""

import re
from collections.abc import Callable
from typing import Annotated, Any
from xml.etree import ElementTree

from bespeak import Elicit, Resolve
from bespeak.resolve.graph.svg import as_svg
from bespeak.server.features.tools import Tool

SVG = "{http://www.w3.org/2000/svg}"


async def stock(title: str) -> int: ...


async def consent(title: str, stock: Annotated[int, Resolve(stock)]) -> Elicit[bool]: ...


async def order(
    title: str,
    copies: int,
    stock: Annotated[int, Resolve(stock)],
    in_store: Annotated[int, Resolve(stock)],
    ok: Annotated[bool, Resolve(consent)],
) -> None: ...


def drawn(fn: Callable[..., Any], name: str = "order") -> ElementTree.Element:
    return ElementTree.fromstring(as_svg(Tool.from_function(fn).graph, name))


def boxes_of(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [one for one in root.iter(f"{SVG}rect") if one.get("class") != "canvas"]


def texts(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def test_every_parameter_and_resolver_has_a_box_and_the_foot_says_what_is_needed() -> None:
    root = drawn(order)
    kinds = [one.get("class") for one in boxes_of(root)]
    assert kinds == ["model", "model", "computed", "asked", "call"]
    said = texts(root)
    for text in ("title", "from the model", "copies", "may ask the user in round 1", "in_store", "ok", "order"):
        assert text in said
    assert said[-1] == "at most 2 rounds; the client needs elicitation.form"
    assert root.findtext(f"{SVG}title") == "order"


def test_no_two_boxes_overlap_and_all_lie_within_the_picture() -> None:
    root = drawn(order)
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    boxes = [[float(one.get(side, 0)) for side in ("x", "y", "width", "height")] for one in boxes_of(root)]
    for number, (x, y, w, h) in enumerate(boxes):
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
        for x2, y2, w2, h2 in boxes[:number]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_it_has_a_canvas_of_its_own_since_the_colours_of_the_page_around_it_may_differ_from_those_of_the_system() -> (
    None
):
    root = drawn(order)
    canvas = next(root.iter(f"{SVG}rect"))
    assert (canvas.get("class"), canvas.get("width"), canvas.get("height")) == ("canvas", "100%", "100%")
    light, _, dark = (root.findtext(f"{SVG}style") or "").partition("@media (prefers-color-scheme:dark)")
    assert ".canvas{fill:#fff" in light
    assert ".canvas{fill:#" in dark


def test_the_name_of_a_parameter_stands_out_from_the_edges_behind_it() -> None:
    root = drawn(order)
    assert [one.text for one in root.iter(f"{SVG}text") if one.get("class") == "edge"] == ["stock", "in_store", "ok"]
    assert ".edge{paint-order:stroke;" in (root.findtext(f"{SVG}style") or "")


def test_a_tool_without_parameters_is_drawn_too() -> None:
    async def nothing() -> None: ...

    assert texts(drawn(nothing, "nothing")) == ["nothing", "1 round: asks nothing"]


def test_a_name_is_text_and_nothing_is_loaded_or_run() -> None:
    text = as_svg(Tool.from_function(order).graph, "<script>&")
    assert "&lt;script&gt;&amp;" in text
    assert not re.search(r"<script|href|url\(|@import", text)
