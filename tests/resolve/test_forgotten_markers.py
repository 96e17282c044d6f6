"""A forgotten `Resolve` does not let a model consent: outcomes and questions are nothing a client supplies (design 4)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Optional

import pytest
from mcp_types import CreateMessageResult, ElicitResult, ListRootsResult
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import bespeak
from bespeak import (
    AcceptedElicitation,
    CancelledElicitation,
    Client,
    DeclinedElicitation,
    Elicit,
    ElicitationResult,
    InvalidSignature,
    ListRoots,
    MCPError,
    MCPServer,
    Resolve,
    Sample,
)
from tests.answering import DECLINE, Person, accept
from tests.resolve.test_invalid_signatures import Position, as_tool, refusal

EMPTY: Any = object()


class C(BaseModel):
    ok: bool


async def ask() -> C | Elicit[C]:
    return Elicit("Delete it?", C)


# Where the function can stand. As a resolver it could be given the argument of that name.


def as_resolver(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    async def tool(path: str, answer: Any, found: Annotated[object, Resolve(fn)]) -> None: ...

    mcp.add_tool(tool)


def as_nested_resolver(mcp: MCPServer[Any], fn: Callable[..., Any]) -> None:
    async def middle(found: Annotated[object, Resolve(fn)]) -> int: ...

    async def tool(path: str, answer: Any, counted: Annotated[int, Resolve(middle)]) -> None: ...

    mcp.add_tool(tool)


everywhere = pytest.mark.parametrize("position", [as_tool, as_resolver, as_nested_resolver])


def takes(hint: Any, default: Any = EMPTY) -> Callable[..., Any]:
    if default is EMPTY:

        async def delete(path: str, answer: Any) -> str: ...

    else:

        async def delete(path: str, answer: Any = default) -> str: ...

    delete.__annotations__["answer"] = hint
    return delete


async def refused(position: Position, fn: Callable[..., Any]) -> None:
    """Refused for the parameter `answer`, and told to mark it."""
    error = await refusal(position, fn)

    (fault,) = [fault for fault in error.faults if "parameter 'answer'" in fault.problem]
    assert re.search(r"Annotated\[.*Resolve\(", fault.fix), fault.fix
    assert fault.place == f"{__file__}:{fn.__code__.co_firstlineno}"
    assert "─ answer" in fault.drawing
    assert str(fault) in str(error)


# As the type

TYPES: dict[str, Any] = {
    "ElicitationResult[C]": ElicitationResult[C],
    "ElicitationResult": ElicitationResult,
    "AcceptedElicitation[C]": AcceptedElicitation[C],
    "AcceptedElicitation": AcceptedElicitation,
    "DeclinedElicitation": DeclinedElicitation,
    "CancelledElicitation": CancelledElicitation,
    "Elicit[C]": Elicit[C],
    "Elicit": Elicit,
    "Sample": Sample,
    "ListRoots": ListRoots,
    **{name: getattr(bespeak, name) for name in ("NotAsked", "ElicitUrl") if name in dir(bespeak)},
    # What a question gives is for a client's person or model to say, and not for the one that calls.
    "ListRootsResult": ListRootsResult,
    "CreateMessageResult": CreateMessageResult,
    "ElicitResult": ElicitResult,
}


@everywhere
@pytest.mark.parametrize("hint", TYPES.values(), ids=TYPES)
async def test_an_outcome_or_a_question_as_the_type_is_refused(position: Position, hint: Any) -> None:
    await refused(position, takes(hint))


class Subclassed(AcceptedElicitation[C]):
    pass


@everywhere
async def test_a_subclass_of_an_outcome_is_an_outcome(position: Position) -> None:
    await refused(position, takes(Subclassed))


# Inside the type


class InModel(BaseModel):
    answer: ElicitationResult[C]


@dataclass
class InDataclass:
    answer: DeclinedElicitation | None = None


class InTypedDict(TypedDict):
    answer: AcceptedElicitation[C]


class InNamedTuple(NamedTuple):
    answer: CancelledElicitation


class InherentlyInModel(InModel):
    more: int = 0


class Deep(BaseModel):
    below: dict[str, list[InDataclass | None]]


INSIDE: dict[str, Any] = {
    "optional": ElicitationResult[C] | None,
    "union": C | DeclinedElicitation,
    "list": list[AcceptedElicitation[C]],
    "dict": dict[str, ElicitationResult[C]],
    "tuple": tuple[int, CancelledElicitation],
    "annotated": Annotated[ElicitationResult[C], Field(description="Sure?")],
    "question in a union": C | Elicit[C],
    "question in a list": list[ListRoots],
    "model": InModel,
    "dataclass": InDataclass,
    "typed dict": InTypedDict,
    "named tuple": InNamedTuple,
    "base class": InherentlyInModel,
    "deep": Deep | None,
}


@everywhere
@pytest.mark.parametrize("hint", INSIDE.values(), ids=INSIDE)
async def test_an_outcome_or_a_question_inside_the_type_is_refused(position: Position, hint: Any) -> None:
    await refused(position, takes(hint))


@everywhere
async def test_an_optional_outcome_with_a_default_is_refused_where_a_client_could_supply_it(position: Position) -> None:
    await refused(position, takes(ElicitationResult[C] | None, None))


# In `Annotated`

METADATA: dict[str, Any] = {
    "an Elicit": Annotated[C, Elicit("Sure?", C)],
    "Elicit": Annotated[C, Elicit],
    "Elicit[C]": Annotated[C, Elicit[C]],
    "a ListRoots": Annotated[ListRootsResult, ListRoots()],
    "ListRoots": Annotated[ListRootsResult, ListRoots],
    "a Sample": Annotated[str, Sample([], max_tokens=10)],
    "Sample": Annotated[str, Sample],
    "an outcome": Annotated[C, DeclinedElicitation],
    "an outcome's alias": Annotated[C, ElicitationResult[C]],
    "beside a field": Annotated[C, Field(description="Sure?"), Elicit("Sure?", C)],
    "inside a union": Optional[Annotated[C, Elicit("Sure?", C)]],  # noqa: UP045 - a checker cannot add these two
}


@everywhere
@pytest.mark.parametrize("hint", METADATA.values(), ids=METADATA)
async def test_a_question_or_an_outcome_in_annotated_is_refused(position: Position, hint: Any) -> None:
    await refused(position, takes(hint))


# As the default

DEFAULTS: dict[str, Any] = {
    "an Elicit": Elicit("Sure?", C),
    "Elicit": Elicit,
    "a ListRoots": ListRoots(),
    "a Sample": Sample([], max_tokens=10),
    "an outcome": DeclinedElicitation(),
    "a field": Field(default=Elicit("Sure?", C)),
    "a field's factory": Field(default_factory=lambda: Elicit("Sure?", C)),
}


@everywhere
@pytest.mark.parametrize("default", DEFAULTS.values(), ids=DEFAULTS)
async def test_a_question_or_an_outcome_as_the_default_is_refused(position: Position, default: Any) -> None:
    await refused(position, takes(C, default))


# `Resolve` where it cannot be honoured


def made_by_a_named_function() -> Any:
    return Resolve(ask)


FACTORIES: dict[str, Any] = {
    "a lambda": lambda: Resolve(ask),
    "a lambda that takes data": lambda data: Resolve(ask),  # pyright: ignore[reportUnknownLambdaType] - pydantic's
    "a function": made_by_a_named_function,
    "the marker itself": Resolve(ask),
    "the class": lambda: Resolve,
}


@everywhere
@pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
@pytest.mark.parametrize("annotated", [False, True], ids=["as the default", "in Annotated"])
async def test_a_marker_from_a_default_factory_is_refused(position: Position, factory: Any, annotated: bool) -> None:
    made: Any = Field(default_factory=factory)
    await refused(position, takes(Annotated[C, made]) if annotated else takes(C, made))


@everywhere
@pytest.mark.parametrize(
    "hint",
    [Resolve(ask), Resolve, "Resolve(ask)", "Resolve"],
    ids=["called", "not called", "called in text", "not called in text"],
)
async def test_a_marker_as_the_annotation_itself_is_refused(position: Position, hint: Any) -> None:
    await refused(position, takes(hint))


@everywhere
@pytest.mark.parametrize("hint", [Elicit("Sure?", C), ListRoots(), "Elicit('Sure?', C)"], ids=["form", "roots", "text"])
async def test_a_question_that_was_made_already_is_refused_as_the_annotation(position: Position, hint: Any) -> None:
    await refused(position, takes(hint))


def test_every_forgotten_marker_of_a_tool_is_told_at_once() -> None:
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


async def computed(path: str) -> Any:
    return path


RESOLVED: dict[str, Any] = {
    "outcome": Annotated[ElicitationResult[C], Resolve(ask)],
    "accepted": Annotated[AcceptedElicitation[C], Resolve(ask)],
    "refusals": Annotated[DeclinedElicitation | CancelledElicitation, Resolve(ask)],
    "a list of outcomes that a resolver makes": Annotated[list[ElicitationResult[C]], Resolve(computed)],
    "a model of outcomes that a resolver makes": Annotated[InModel, Resolve(computed)],
}


@pytest.mark.parametrize("hint", RESOLVED.values(), ids=RESOLVED)
async def test_outcomes_are_let_pass_where_they_are_resolved(hint: Any) -> None:
    mcp = MCPServer("files")
    mcp.add_tool(takes(hint))

    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["path"]


class Elicitation(BaseModel):
    """Named like ours, and the author's own."""

    action: str
    data: dict[str, bool]


ORDINARY: dict[str, Any] = {
    "a model of the same shape": Elicitation,
    "a note": Annotated[C, "ask with Elicit if unsure"],
    "a note with a call in it": Annotated[C, "see dns.Resolve(host) for how"],
    "a factory": Annotated[C, Field(default_factory=lambda: C(ok=False))],
}


@pytest.mark.parametrize("hint", ORDINARY.values(), ids=ORDINARY)
async def test_what_only_looks_like_an_outcome_or_a_question_is_let_pass(hint: Any) -> None:
    mcp = MCPServer("files")
    mcp.add_tool(takes(hint))

    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["path", "answer"]


async def test_a_factory_that_raises_outside_a_call_is_let_pass() -> None:
    def raising() -> C:
        raise RuntimeError("only in a call")

    mcp = MCPServer("files")
    mcp.add_tool(takes(C, Field(default_factory=raising)))

    (tool,) = await mcp.list_tools()
    assert list(tool.input_schema["properties"]) == ["path", "answer"]
