"""Resources and templates: how they are listed and found, what is refused at registration, and which values are refused."""

from typing import Annotated, Any

import pytest
from mcp_types import Annotations, Icon
from pydantic import AliasChoices, Field

from bespeak import Complete, Context, Elicit, InvalidSignature, MCPServer, Resolve
from bespeak.server import CacheHint, ReadResourceContents
from tests.server.eras import FIRST, JUNE, MARCH, NOVEMBER, Respond, Sent, both_eras, legacy, modern
from tests.server.legacy.older_client import Older, yes

SECRETIVE = CacheHint(ttl_ms=5000, scope="public")


async def ask_shelf() -> Elicit[str]:
    return Elicit("Which shelf?", str)


async def stock() -> int:
    return 7


def library() -> MCPServer[Any]:
    mcp = MCPServer[Any]("library", cache_hints={"resources/read": CacheHint(ttl_ms=9)})

    @mcp.resource(
        "books://all",
        name="everything",
        title="All books",
        description="Every book",
        mime_type="text/csv",
        icons=[Icon(src="https://example.com/i.png")],
        annotations=Annotations(priority=1),
        meta={"a": 1},
        cache=SECRETIVE,
    )
    def every(stock: Annotated[int, Resolve(stock)]) -> str:
        return f"{stock} books"

    @mcp.resource("books://{number}", title="One book", icons=[Icon(src="i")], meta={"a": 1})
    def book(number: int, ctx: Context) -> str:
        """One book."""
        return f"{number!r} at {ctx.protocol_version}"

    @mcp.resource("shelves://{name}")
    def shelf(name: str, where: Annotated[str, Resolve(ask_shelf)]) -> str:
        return f"{name} {where}"

    @mcp.resource("broken://{name}")
    def broken(name: str) -> str:
        raise LookupError("secret")

    return mcp


async def read(respond: Respond, uri: Any) -> Sent:
    return await respond(library(), "resources/read", {"uri": uri})


# Lists


async def test_a_resource_is_listed() -> None:
    result = (await modern(library(), "resources/list"))["result"]
    assert result["resources"] == [
        {
            "uri": "books://all",
            "name": "everything",
            "title": "All books",
            "description": "Every book",
            "mimeType": "text/csv",
            "icons": [{"src": "https://example.com/i.png"}],
            "annotations": {"priority": 1},
            "_meta": {"a": 1},
        }
    ]


async def test_a_template_is_listed() -> None:
    result = (await modern(library(), "resources/templates/list"))["result"]
    assert result["resourceTemplates"][0] == {
        "uriTemplate": "books://{number}",
        "name": "book",
        "title": "One book",
        "description": "One book.",
        "icons": [{"src": "i"}],
        "_meta": {"a": 1},
    }
    assert result["resourceTemplates"][1] == {"uriTemplate": "shelves://{name}", "name": "shelf"}


@pytest.mark.parametrize(
    ("version", "lost"),
    [
        (FIRST, {"title", "icons", "_meta"}),
        (MARCH, {"title", "icons", "_meta"}),
        (JUNE, {"icons"}),
        (NOVEMBER, set[str]()),
    ],
)
async def test_an_older_list_lacks_what_came_later(version: str, lost: set[str]) -> None:
    fixed = (await legacy(library(), "resources/list", {}, version))["result"]
    templates = (await legacy(library(), "resources/templates/list", {}, version))["result"]
    assert {"title", "icons", "_meta"} - fixed["resources"][0].keys() == lost
    assert {"title", "icons", "_meta"} - templates["resourceTemplates"][0].keys() == lost
    assert "ttlMs" not in fixed


async def test_resources_and_templates_are_listed_without_a_client() -> None:
    mcp = library()
    assert [one.uri for one in await mcp.list_resources()] == ["books://all"]
    assert (await mcp.list_resource_templates())[0].uri_template == "books://{number}"


# Reading


@both_eras
async def test_a_resource_is_read_with_resolved_values(respond: Respond) -> None:
    result = (await read(respond, "books://all"))["result"]
    assert result["contents"] == [{"uri": "books://all", "mimeType": "text/csv", "text": "7 books"}]


@both_eras
async def test_a_template_gets_its_variables(respond: Respond) -> None:
    result = (await read(respond, "books://%37"))["result"]
    version = "2026-07-28" if respond is modern else "2025-11-25"
    assert result["contents"] == [{"uri": "books://%37", "mimeType": "text/plain", "text": f"7 at {version}"}]


async def test_a_cache_hint_is_the_resources_own_or_the_servers() -> None:
    own = (await read(modern, "books://all"))["result"]
    shared = (await read(modern, "books://7"))["result"]
    assert (own["ttlMs"], own["cacheScope"]) == (5000, "public")
    assert (shared["ttlMs"], shared["cacheScope"]) == (9, "private")
    assert (await read(legacy, "books://all"))["result"].keys() == {"contents"}


@pytest.mark.parametrize(("respond", "code"), [(modern, -32602), (legacy, -32002)])
async def test_an_unknown_resource_has_the_code_of_its_era(respond: Respond, code: int) -> None:
    assert (await read(respond, "books://a/b"))["error"] == {
        "code": code,
        "message": "unknown resource 'books://a/b'",
        "data": {"uri": "books://a/b"},
    }


@both_eras
async def test_a_uri_is_text(respond: Respond) -> None:
    error = (await read(respond, 7))["error"]
    assert (error["code"], error["message"]) == (-32602, "params.uri must be the URI of a resource")


@both_eras
async def test_a_variable_that_does_not_fit_its_type_is_refused(respond: Respond) -> None:
    error = (await read(respond, "books://seven"))["error"]
    assert error["code"] == -32602
    assert error["message"].startswith("Error reading resource books://seven: invalid arguments: number: ")


@both_eras
async def test_a_failure_is_an_internal_error(respond: Respond) -> None:
    error = (await read(respond, "broken://x"))["error"]
    assert error == {"code": -32603, "message": "Error reading resource broken://x"}


async def test_a_template_asks_in_both_eras() -> None:
    result = (await read(modern, "shelves://a"))["result"]
    assert result["resultType"] == "input_required"
    assert "ttlMs" not in result
    async with Older(library(), {"ask_shelf": yes(value="B")}) as client:
        answered = await client.request("resources/read", {"uri": "shelves://a"})
    assert answered["result"]["contents"][0]["text"] == "a B"


async def test_a_resource_is_found_before_a_template_and_templates_in_order() -> None:
    mcp = MCPServer("library")

    @mcp.resource("books://{+path}")
    def first(path: str) -> str:
        return "first"

    @mcp.resource("books://{number}")
    def second(number: str) -> str:
        return "second"

    @mcp.resource("books://all")
    def fixed() -> str:
        return "fixed"

    async def found(uri: str) -> Any:
        return (await mcp.read_resource(uri))[0].content

    assert [await found(uri) for uri in ("books://all", "books://7", "books://a/b")] == ["fixed", "first", "first"]
    mcp.remove_resource("books://{+path}")
    mcp.remove_resource("books://all")
    assert await found("books://all") == "second"


async def test_queries_are_optional() -> None:
    mcp = MCPServer("library")

    @mcp.resource("books://search{?q,page}")
    def search(q: str = "", page: int = 1) -> str:
        return f"{q}/{page!r}"

    assert (await mcp.read_resource("books://search"))[0] == ReadResourceContents("/1", "text/plain")
    assert (await mcp.read_resource("books://search?page=2&q=x"))[0].content == "x/2"


async def test_a_variable_may_be_an_alias() -> None:
    mcp = MCPServer("library")

    @mcp.resource("books://{no}/{part_name}")
    def book(
        number: Annotated[int, Field(alias="no")],
        part: Annotated[str, Field(validation_alias=AliasChoices("part_name", "part"))],
    ) -> str:
        return f"{number!r}/{part}"

    assert (await mcp.read_resource("books://7/a"))[0].content == "7/a"


def test_a_uri_must_be_given() -> None:
    mcp = MCPServer("library")
    with pytest.raises(TypeError, match=r"^resource\(\) needs a URI: @mcp\.resource\('orders://today'\)$"):

        @mcp.resource  # pyright: ignore[reportArgumentType] - the point
        def book() -> str: ...


# Faults


def faults(fn: Any, uri: str) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("library").resource(uri)(fn)
    return [(fault.problem, fault.fix) for fault in caught.value.faults]


def by_number(number: int) -> str: ...
def by_alias(number: Annotated[int, Field(alias="no")]) -> str: ...
def resolved(number: Annotated[int, Resolve(stock)]) -> str: ...


@pytest.mark.parametrize(
    ("fn", "uri", "problem", "fix"),
    [
        (
            by_number,
            "books://all",
            "parameter 'number' is not filled: the URI 'books://all' has no variable",
            "write {number} into the URI, or fill the parameter with Resolve(fn)",
        ),
        (
            resolved,
            "books",
            "'books' does not begin with a scheme such as 'file:' or 'orders:'",
            "write a URI such as orders://today",
        ),
        (
            by_number,
            "books://{number",
            "'books://{number' has a brace without its partner",
            "see RFC 6570, or use plain variables: orders://{number}",
        ),
        (
            resolved,
            "books://{number}",
            "the URI has the variable 'number', which is resolved",
            "rename the variable, or take 'number' from the URI",
        ),
        (
            by_number,
            "books://{number}/{page}",
            "the URI has the variable 'page', which is not a parameter",
            "add a parameter 'page', or take the variable out of the URI",
        ),
        (
            by_alias,
            "books://{number}",
            "the URI has the variable 'number', but the parameter of that name takes the argument 'no'",
            "write {no} into the URI, or remove the alias",
        ),
        (
            by_number,
            "books://search{?number}",
            "the variable 'number' may be left out of the URI, but the parameter has no default",
            "give 'number' a default",
        ),
    ],
)
def test_a_uri_that_does_not_fit_the_function_is_refused(fn: Any, uri: str, problem: str, fix: str) -> None:
    assert faults(fn, uri) == [(problem, fix)]


@pytest.mark.parametrize(("fn", "name"), [(by_number, "number"), (by_alias, "no")])
def test_a_required_parameter_is_a_variable(fn: Any, name: str) -> None:
    assert faults(fn, "books://{page}") == [
        (
            "the URI has the variable 'page', which is not a parameter",
            "add a parameter 'page', or take the variable out of the URI",
        ),
        (
            f"parameter 'number' is not filled: the URI 'books://{{page}}' has no variable {name!r}",
            f"write {{{name}}} into the URI, or fill the parameter with Resolve(fn)",
        ),
    ]


def test_a_template_that_cannot_be_read_does_not_hide_other_faults() -> None:
    def book(number: Annotated[int, Complete]) -> Elicit[str]: ...

    assert len(faults(book, "books://{number")) == 3


def test_a_type_that_does_not_come_from_a_uri_is_told_once() -> None:
    class Shelf: ...

    def book(number: Shelf) -> str: ...

    ((problem, _),) = faults(book, "books://{number}")
    assert problem.startswith("parameter 'number' takes Shelf")
