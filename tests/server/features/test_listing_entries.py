"""How a server, a tool, a prompt or a resource is described to clients."""

from typing import Any

import pytest
from mcp_types import Annotations, Icon, Implementation, Prompt, Resource, ResourceTemplate, Tool, ToolAnnotations
from pydantic import BaseModel, ValidationError

from bespeak import MCPServer
from bespeak.server.features.listing_entries import listing_entry

ICON = Icon(src="https://example.com/i.png", mime_type="image/png", sizes=["48x48"])


def everything() -> list[tuple[type[BaseModel], dict[str, Any]]]:
    """One server, and one of each thing on it, with everything that can be said of it; and the model of its entry."""
    mcp = MCPServer("shop", "The shop", "Sells", website_url="https://example.com", icons=[ICON], version="1")

    @mcp.tool(title="Buy it", annotations=ToolAnnotations(read_only_hint=False), icons=[ICON], meta={"a": None})
    def buy(thing: str, number: int = 1) -> list[str]:
        """Buy something."""
        return [thing] * number

    @mcp.prompt(title="Ask for it", description="Ask", icons=[ICON])
    def ask(thing: str, colour: str = "") -> str:
        return thing + colour

    @mcp.resource("shop://stock", title="In stock", mime_type="text/plain", icons=[ICON])
    def stock() -> str:
        """What there is."""
        return ""

    @mcp.resource("shop://{thing}", annotations=Annotations(priority=0.5), meta={"b": 1})
    def thing(thing: str) -> str:
        return thing

    models: dict[str, type[BaseModel]] = {
        "tool": Tool,
        "prompt": Prompt,
        "resource": Resource,
        "resource template": ResourceTemplate,
    }
    listed: list[tuple[type[BaseModel], dict[str, Any]]] = [(models[one.what], one.wire) for one in mcp.registered]
    texts = {"name": "shop", "title": "The shop", "version": "1", "description": "Sells"}
    return [(Implementation, listing_entry({**texts, "websiteUrl": "https://example.com"}, [ICON])), *listed]


@pytest.mark.parametrize(("model", "entry"), everything(), ids=lambda value: getattr(value, "__name__", ""))
def test_an_entry_is_what_its_model_would_send(model: type[BaseModel], entry: dict[str, Any]) -> None:
    read = model.model_validate(entry)
    assert read.model_dump(mode="json", by_alias=True, exclude_none=True) == entry


def test_an_icon_may_be_given_as_a_dict() -> None:
    icons: Any = [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}]
    assert listing_entry({}, icons) == listing_entry({}, [ICON])


def test_an_icon_that_is_none_is_refused() -> None:
    icons: Any = [{"mimeType": "image/png"}]
    with pytest.raises(ValidationError, match="src"):
        listing_entry({}, icons)


def test_a_title_that_is_no_text_is_refused() -> None:
    title: Any = 3
    with pytest.raises(TypeError, match=r"^title must be a string, not int$"):
        MCPServer("shop", title)
