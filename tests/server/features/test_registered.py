"""What tools, prompts and resources have in common: names, descriptions, failures and the registry."""

import logging
import re
from typing import Annotated, Any

import pytest
from pydantic import Field

from bespeak import Context, Elicit, InvalidSignature, MCPError, MCPServer, Resolve, ToolError
from bespeak.resolve.errors import Aborted, BadAnswer, NotAnswered, ResolverFailed
from bespeak.server.calls.arguments import InvalidArguments
from bespeak.server.features.prompts import Prompt, PromptOptions
from bespeak.server.features.registered import Registry, failure_text, protocol_error
from bespeak.state.ledger_errors import SettledOtherwise
from tests.resolve.positions import line_of


async def ask() -> Elicit[bool]:
    return Elicit("Sure?", bool)


def prompt(fn: Any, name: str | None = None) -> Prompt:
    return Prompt(fn, PromptOptions(name), None)


def faults(fn: Any, uri: str | None = None) -> list[tuple[str, str]]:
    mcp = MCPServer("shop")
    with pytest.raises(InvalidSignature) as caught:
        (mcp.prompt() if uri is None else mcp.resource(uri))(fn)
    assert {fault.place for fault in caught.value.faults} == {line_of(fn)}
    return [(fault.problem, fault.fix) for fault in caught.value.faults]


# Faults of the function itself


def test_a_consumer_returns_and_does_not_yield() -> None:
    def order() -> Any:
        yield "hello"

    assert faults(order) == [
        ("order is a generator, but a prompt must return its result", "return instead of yielding")
    ]
    assert faults(order, "shop://order") == [
        ("order is a generator, but a resource must return its result", "return instead of yielding")
    ]


def test_a_consumer_does_not_ask_by_returning_a_question() -> None:
    def order() -> Elicit[bool]: ...

    ((problem, fix),) = faults(order)
    assert problem.endswith("Elicit[bool], which only a resolver may return")
    assert fix == "ask in a resolver, and take the answer as a parameter: Annotated[..., Resolve(ask)]"


def test_a_method_is_registered_bound() -> None:
    class Desk:
        def order(self, title: str) -> str: ...

    assert faults(Desk.order) == [
        ("parameter 'self' would become an argument of the prompt", "register the bound method of an object")
    ]
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").add_tool(Desk.order)
    (fault,) = caught.value.faults
    assert fault.problem == "parameter 'self' would become an argument of the tool"
    assert fault.fix == "register the bound method of an object: mcp.add_tool(thing.method)"
    prompt(Desk().order)


def test_an_argument_comes_from_json() -> None:
    class Desk: ...

    def visit(desk: Desk) -> str: ...

    assert faults(visit) == [
        (
            "parameter 'desk' takes Desk, which JSON cannot represent",
            "use a type that JSON can represent, or fill it with Resolve(fn)",
        )
    ]


def test_an_argument_is_not_sent_under_the_name_of_a_resolved_parameter() -> None:
    def order(other: Annotated[str, Field(alias="sure")], sure: Annotated[bool, Resolve(ask)]) -> str: ...

    assert faults(order) == [
        ("an argument can be sent as 'sure', which is a resolved parameter", "give it an alias other than 'sure'")
    ]


# Names and descriptions


def test_a_name_comes_from_the_function_or_the_author() -> None:
    def order() -> str:
        """Order a book."""
        return ""

    assert prompt(order).name == "order"
    assert prompt(order, "buy").name == "buy"
    assert prompt(order).description == "Order a book."


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ValueError, match=r"^a lambda has no name; pass one: prompt\(name=\.\.\.\)$"):
        prompt(lambda: "hello")
    assert prompt(lambda: "hello", "greet").name == "greet"
    mcp = MCPServer("shop")
    with pytest.raises(ValueError, match=r"^a lambda has no name; pass one: resource\(uri, name=\.\.\.\)$"):
        mcp.resource("shop://a")(lambda: "hello")


def test_it_is_known_whether_a_call_may_ask() -> None:
    def certain() -> str: ...
    def unsaid():  # pyright: ignore[reportUnknownParameterType] - the point
        ...

    def asking(sure: Annotated[bool, Resolve(ask)]) -> str: ...
    def knowing(ctx: Context) -> str: ...

    assert [prompt(fn).may_ask for fn in (certain, unsaid, asking, knowing)] == [False, True, True, False]
    assert [prompt(fn).plain for fn in (certain, unsaid, asking, knowing)] == [True, False, False, False]


# Failures


def test_a_client_reads_the_authors_words_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "bespeak.server"):
        assert failure_text("It failed", ToolError("closed"), "prompt 'order'") == "It failed: closed"
        assert caplog.records == []
        assert failure_text("It failed", LookupError("secret"), "prompt 'order'") == "It failed"
        assert [record.message for record in caplog.records] == ["prompt 'order' failed"]
        failed = ResolverFailed("stock", "order -> stock")
        assert failure_text("It failed", failed, "prompt 'order'") == f"It failed: {failed}"


def test_a_failure_is_a_protocol_error() -> None:
    own = MCPError(7, "own")
    assert protocol_error("It failed", own, "x") is own
    assert protocol_error("It failed", InvalidArguments("bad"), "x").code == -32602
    assert protocol_error("It failed", LookupError(), "x").code == -32603
    assert protocol_error("It failed", ToolError("closed"), "x").code == -32603


@pytest.mark.parametrize("error", [BadAnswer("bad"), SettledOtherwise()])
def test_a_mistake_of_the_client_is_not_an_internal_error(error: ToolError) -> None:
    refused = protocol_error("It failed", error, "x")
    assert (refused.code, refused.message) == (-32602, f"It failed: {error}")


@pytest.mark.parametrize("error", [Aborted("sure", "decline"), NotAnswered("silent")])
def test_a_prompt_or_resource_that_nobody_agreed_to_is_the_same_text_as_an_error_32603(error: ToolError) -> None:
    refused = protocol_error("It failed", error, "x")
    assert (refused.code, refused.message) == (-32603, f"It failed: {error}")


# The registry


def test_a_registry_keeps_the_order_and_says_when_it_changes() -> None:
    changes: list[int] = []

    def first() -> str: ...
    def second() -> str: ...

    registry = Registry[Prompt]("prompt", lambda: changes.append(1))
    registry.add(prompt(first))
    registry.add(prompt(second))
    assert [one.name for one in registry.all()] == ["first", "second"]
    assert registry.get("second") is registry.all()[1]
    assert registry.get("third") is None
    registry.remove("first")
    assert [one.name for one in registry.all()] == ["second"]
    assert len(changes) == 3


def test_a_name_is_registered_once() -> None:
    def order() -> str: ...

    registry = Registry[Prompt]("prompt")
    registry.add(prompt(order))
    with pytest.raises(ValueError, match="already registered") as caught:
        registry.add(prompt(order))
    assert str(caught.value) == (
        "prompt 'order' is already registered; call remove_prompt('order') first, or rename one"
    )


def test_only_what_is_there_can_be_removed() -> None:
    with pytest.raises(ToolError, match=r"^there is no prompt 'order' to remove$"):
        Registry[Prompt]("prompt").remove("order")
    mcp = MCPServer("shop")
    with pytest.raises(ToolError, match=r"^there is no prompt 'order' to remove$"):
        mcp.remove_prompt("order")
    with pytest.raises(ToolError, match=r"^there is no resource 'a:b' to remove$"):
        mcp.remove_resource("a:b")
    with pytest.raises(ToolError, match=r"^there is no resource 'a:\{b\}' to remove$"):
        mcp.remove_resource("a:{b}")


@pytest.mark.parametrize("name", ["ctx", "context"])
def test_a_context_without_its_annotation_is_a_warning(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def count(title: str, {name}) -> str: ...", scope)
    told = f"parameter '{name}' of count has no annotation, so it is an argument that the client fills; to get the context, "
    with pytest.warns(UserWarning, match=f"{told}write {name}: Context"):
        MCPServer("shop").add_tool(scope["count"])


def test_a_resolver_whose_context_has_no_annotation_is_told_to_annotate_it() -> None:
    scope: dict[str, Any] = {}
    exec("def who(ctx) -> str: ...", scope)
    who = scope["who"]

    def count(caller: Annotated[str, Resolve(who)]) -> str: ...

    with pytest.raises(InvalidSignature, match="fix: write ctx: Context"):
        MCPServer("shop").add_tool(count)


class _Depends:
    """Like the marker of another framework."""


def look_up(title: str) -> int: ...


@pytest.mark.parametrize(
    ("hint", "default", "told"),
    [
        (int, look_up, "the function 'look_up' as its default"),
        (int, len, "the function 'len' as its default"),
        (int, _Depends(), "the `Depends` of another framework"),
        (Annotated[int, _Depends()], 3, "the `Depends` of another framework"),
    ],
)
def test_what_another_framework_takes_for_a_marker_does_not_become_an_argument(
    hint: Any, default: Any, told: str
) -> None:
    def count(copies: Any = default) -> int: ...

    count.__annotations__["copies"] = hint
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").add_tool(count)
    (fault,) = caught.value.faults
    assert fault.problem == f"parameter 'copies' has {told}, which has no effect here: a client would supply the value"
    assert fault.fix == "mark the parameter: copies: Annotated[int, Resolve(fn)]"


@pytest.mark.parametrize("given", ["count", 5, None])
def test_what_is_no_function_cannot_be_added_as_a_tool(given: Any) -> None:
    told = f"add_tool() needs a function, not {type(given).__name__}; pass the function itself, without calling it"
    with pytest.raises(TypeError, match=re.escape(told)):
        MCPServer("shop").add_tool(given)


def test_tools_of_a_server_are_tools_and_not_functions() -> None:
    tools: Any = [look_up]
    with pytest.raises(TypeError, match=r"tools= takes Tool objects, not function; write Tool\.from_function\(fn\)"):
        MCPServer("shop", tools=tools)
