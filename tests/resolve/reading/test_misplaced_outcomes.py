"""A forgotten `Resolve` does not let a model consent: a client may not supply outcomes or questions (design 4).

The tables of test_generated_signatures.py try every place; here is what an author is told, and what they leave out.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from mcp_types import ListRootsResult
from pydantic import BaseModel, Field

from bespeak import (
    AcceptedElicitation,
    Client,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    ListRoots,
    MCPError,
    MCPServer,
    Resolve,
    ToolError,
)
from tests.answering import DECLINE, Person, accept
from tests.resolve.positions import as_tool, line_of, refusal, shown

EMPTY: Any = object()


class C(BaseModel):
    ok: bool


class Subclassed(AcceptedElicitation[C]):
    pass


@dataclass
class InDataclass:
    answer: DeclinedElicitation | None = None


class Deep(BaseModel):
    below: dict[str, list[InDataclass | None]]


async def ask() -> C | Elicit[C]:
    return Elicit("Delete it?", C)


def takes(hint: Any, default: Any = EMPTY) -> Callable[..., Any]:
    async def delete(path: str, answer: Any) -> str: ...

    if default is not EMPTY:
        delete.__defaults__ = (default,)
    delete.__annotations__["answer"] = hint
    return delete


def official(name: str) -> type[Any]:
    """A class that is the official SDK's by its name and module."""

    def made(self: Any, *given: Any) -> None: ...

    return type(name, (), {"__module__": "mcp.server.mcpserver", "__init__": made})


SUPPLIED: dict[str, tuple[Any, Any]] = {
    "an outcome": (ElicitationResult[C], EMPTY),
    "a subclass of an outcome": (Subclassed, EMPTY),
    "an optional outcome": (ElicitationResult[C] | None, None),
    "deep in a type": (Deep | None, EMPTY),
    "a question in Annotated": (Annotated[C, Elicit("Sure?", C)], EMPTY),
    "a question as the default": (C, Elicit("Sure?", C)),
    "a question from a factory": (C, Field(default_factory=lambda: Elicit("Sure?", C))),
    "a question as the annotation": (Elicit("Sure?", C), EMPTY),
    "a question as text": ("Elicit('Sure?', C)", EMPTY),
}


@pytest.mark.parametrize(("hint", "default"), SUPPLIED.values(), ids=SUPPLIED)
async def test_an_outcome_or_a_question_that_a_client_could_supply_is_refused(hint: Any, default: Any) -> None:
    fn = takes(hint, default)
    error = await refusal(as_tool, fn)

    (fault,) = [fault for fault in error.faults if "parameter 'answer'" in fault.problem]
    assert re.search(r"Annotated\[.*Resolve\(", fault.fix), fault.fix
    assert fault.place == line_of(fn)
    assert "─ answer" in fault.drawing
    assert str(fault) in str(error)


async def test_a_resolver_that_could_be_given_the_argument_of_that_name_is_refused_too() -> None:
    async def tool(path: str, answer: Any, found: Annotated[str, Resolve(takes(ElicitationResult[C]))]) -> None: ...

    assert "parameter 'answer'" in str(await refusal(as_tool, tool))


@pytest.mark.parametrize("name", ["Elicit", "AcceptedElicitation", "DeclinedElicitation", "Context"])
async def test_a_client_may_not_supply_the_official_sdks_outcomes_questions_and_context(name: str) -> None:
    assert f"would let a client supply {name}" in str(await refusal(as_tool, takes(official(name))))


async def test_the_official_sdks_question_from_a_resolver_is_an_error() -> None:
    theirs, mcp = official("Elicit"), MCPServer("files")

    async def ask_theirs() -> Any:
        return theirs("Sure?", bool)

    @mcp.tool()
    async def delete(ok: Annotated[bool, Resolve(ask_theirs)]) -> str:
        raise AssertionError

    with pytest.raises(ToolError, match="returned Elicit of the official SDK; import it from bespeak"):
        await mcp.call_tool("delete", {})


async def test_a_question_that_a_tool_returns_is_reported_to_the_author(caplog: pytest.LogCaptureFixture) -> None:
    mcp = MCPServer("files")

    @mcp.tool()
    async def delete() -> Any:
        return Elicit("Sure?", bool)

    async with Client(mcp) as client:
        assert (await client.call_tool("delete")).is_error
    assert "'delete' returned Elicit, which only a resolver may return" in caplog.text


def test_every_forgotten_marker_of_a_tool_is_reported_at_once() -> None:
    async def delete(
        path: str,
        answer: ElicitationResult[C],
        sure: Annotated[C, Elicit],
        roots: Annotated[ListRootsResult, ListRoots()],
        again: bool = True,
    ) -> None: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("files").add_tool(delete)

    said = [fault.problem.partition("parameter ")[2].split()[0] for fault in caught.value.faults]
    assert said == ["'answer'", "'sure'", "'roots'"]


# A model cannot consent

CONSENT = {"path": "/etc/passwd", "answer": {"action": "accept", "data": {"ok": True}}}


async def test_a_model_cannot_consent_where_resolve_was_forgotten() -> None:
    mcp = MCPServer("files")
    deleted: list[str] = []

    with pytest.raises(InvalidSignature):

        @mcp.tool()
        async def delete(path: str, answer: ElicitationResult[C]) -> str:
            if isinstance(answer, AcceptedElicitation) and answer.data.ok:
                deleted.append(path)
            return "done"

    async with Client(mcp) as client:
        assert (await client.list_tools()).tools == []
        with pytest.raises(MCPError):
            await client.call_tool("delete", CONSENT)
    assert deleted == []


@pytest.mark.parametrize("answer", [DECLINE, accept(ok=False)], ids=["declined", "answered with no"])
async def test_a_model_cannot_consent_in_place_of_the_person_who_is_asked(answer: Any) -> None:
    mcp = MCPServer("files")
    deleted: list[str] = []

    @mcp.tool()
    async def delete(path: str, answer: Annotated[ElicitationResult[C], Resolve(ask)]) -> str:
        if isinstance(answer, AcceptedElicitation) and answer.data.ok:
            deleted.append(path)
        return "done"

    person = Person({"ask": answer})
    async with Client(mcp, elicitation_callback=person) as client:
        (tool,) = (await client.list_tools()).tools
        assert list(tool.input_schema["properties"]) == ["path"]
        assert "AcceptedElicitation" not in str(tool.input_schema)
        await client.call_tool("delete", CONSENT)
    assert person.messages == ["Delete it?"]
    assert deleted == []


# What is let pass


class Outcomes(BaseModel):
    answer: ElicitationResult[C]


class Elicitation(BaseModel):
    """Named like ours, and the author's own."""

    action: str
    data: dict[str, bool]


def raising() -> C:
    raise RuntimeError("only in a call")


async def computed(path: str) -> Any:
    return path


async def test_what_is_resolved_or_only_looks_like_an_outcome_is_let_pass() -> None:
    assert await shown(takes(Annotated[Outcomes, Resolve(computed)])) == ["path"]
    assert await shown(takes(Elicitation)) == ["path", "answer"]
    assert await shown(takes(C, Field(default_factory=raising))) == ["path", "answer"]  # it is not called
