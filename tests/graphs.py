"""Graphs of resolvers made from plans, built on a real server that keeps a record of every round."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from zlib import crc32

from pydantic import BaseModel

from bespeak import AcceptedElicitation, Context, Elicit, ElicitationResult, MCPError, MCPServer, Resolve, ToolError
from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import LegacyRequest, Request
from bespeak.transports.interfaces import Channel, Notify, Peer, WrittenResponse

BODY = -1
"""Stands for the tool where a resolver's number could stand."""


class Details(BaseModel):
    """A form of more than one field."""

    count: int
    sure: bool


Shape = Literal["bool", "int", "form"]
TYPES: dict[Shape, Any] = {"bool": bool, "int": int, "form": Details}


# What is planned


@dataclass(frozen=True)
class Take:
    """One parameter filled by a resolver, and in which of the ways a consumer may take it."""

    node: int
    how: Literal["value", "outcome", "accepted", "default"] = "value"


@dataclass(frozen=True)
class Node:
    """One resolver. It takes only resolvers of lower numbers."""

    takes: tuple[Take, ...] = ()
    argument: bool = False
    shape: Shape = "int"
    kind: Literal["async", "sync", "generator", "async generator"] = "async"
    asks: Literal["never", "vague", "sometimes", "always"] = "never"
    """`vague` has no return annotation, so it may ask, and never does."""
    once: bool = False
    guard: bool = False
    fails: int = 0
    """The round it fails in; 0 for never, -1 for whenever its inputs say so."""
    failure: Literal["crash", "tool", "protocol"] = "crash"
    pauses: tuple[int, ...] = (0,)
    """How many turns of the loop its first, second ... run gives away."""

    @property
    def may_ask(self) -> bool:
        return self.asks != "never"


@dataclass(frozen=True)
class Plan:
    """A tool and its resolvers."""

    nodes: tuple[Node, ...]
    wants: tuple[Take, ...]
    body_fails: bool = False
    twins: bool = False
    """Whether all resolvers go by one name."""


@dataclass(frozen=True)
class Reply:
    """What a person answers to one question."""

    action: Literal["accept", "decline", "cancel"]
    number: int = 0

    def wire(self, shape: Shape) -> dict[str, Any]:
        if self.action != "accept":
            return {"action": self.action}
        value = value_of(shape, self.number)
        content = value.model_dump() if isinstance(value, Details) else {"value": value}
        return {"action": "accept", "content": content}


def value_of(shape: Shape, number: int) -> Any:
    return {"bool": number % 2 == 1, "int": number, "form": Details(count=number, sure=number % 2 == 1)}[shape]


def plain(value: Any) -> Any:
    """A value, an outcome or a default so that it can be compared and hashed, types included."""
    if isinstance(value, AcceptedElicitation):
        return ["accept", plain(value.data)]  # pyright: ignore[reportUnknownMemberType] - whatever was asked for
    if isinstance(value, Details):
        return ["form", value.count, value.sure]
    return [value.action] if hasattr(value, "action") else value


def decide(plan: Plan, index: int, inputs: Mapping[str, Any], round_: int) -> Any:
    """What a resolver does with its inputs: a value, a question, or an exception. Used by both sides."""
    node = plan.nodes[index]
    number = crc32(repr([index, *sorted(inputs.items())]).encode()) % 1000
    if 0 < node.fails == round_ or (node.fails == -1 and number % 2):
        raise {
            "crash": RuntimeError("not for the client"),
            "tool": ToolError(f"n{index} says no"),
            "protocol": MCPError(-32000 - index, f"n{index} says no"),
        }[node.failure]
    if node.asks == "always" or (node.asks == "sometimes" and number % 2):
        return Elicit(f"n{index} asks about {number}", TYPES[node.shape])
    return value_of(node.shape, number)


# What is built


@dataclass
class Record:
    """What happened in one round."""

    ran: list[int] = field(default_factory=list[int])
    opening: int = 0
    overlapped: bool = False
    opened: list[int] = field(default_factory=list[int])
    closed: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    bodies: list[str] = field(default_factory=list[str])
    """The call id of each run of the body."""


_record: ContextVar[Record] = ContextVar("record")


class Watched:
    """A server that keeps a record of each round of a tool."""

    def __init__(self, mcp: MCPServer[Any]) -> None:
        self.mcp = mcp
        self.rounds: list[Record] = []

    async def answer(
        self, request: Request, notify: Notify, headers: Headers | None = None, *, raise_exceptions: bool = False
    ) -> WrittenResponse:
        with self.recording(request.method):
            return await self.mcp.answer(request, notify, headers, raise_exceptions=raise_exceptions)

    @contextmanager
    def recording(self, method: str) -> Generator[None]:
        record = Record()
        if method == "tools/call":
            self.rounds.append(record)
        token = _record.set(record)
        try:
            yield
        finally:
            _record.reset(token)

    def peer(self, unaskable: AskingObstacle | None = None, assumed: str | None = None) -> Peer:
        return WatchedPeer(self, self.mcp.peer(unaskable, assumed))

    def end_subscriptions(self) -> None:
        self.mcp.end_subscriptions()

    @property
    def ready(self) -> bool:
        return self.mcp.ready

    @property
    def attended(self) -> bool:
        return self.mcp.attended

    def running(self) -> AbstractAsyncContextManager[Any]:
        return self.mcp.running()


class WatchedPeer:
    """The same for clients of older revisions."""

    def __init__(self, watched: Watched, inner: Peer) -> None:
        self._watched = watched
        self._inner = inner
        self.heard = inner.heard
        self.at_once = inner.at_once
        self.close = inner.close
        self.stand = inner.stand

    @property
    def version(self) -> str | None:
        return self._inner.version

    async def answer(
        self,
        request: LegacyRequest,
        channel: Channel,
        headers: Headers | None = None,
        *,
        raise_exceptions: bool = False,
    ) -> WrittenResponse:
        with self._watched.recording(request.method):
            return await self._inner.answer(request, channel, headers, raise_exceptions=raise_exceptions)


def build(plan: Plan) -> Watched:
    """A server with one tool, `consume`, as planned."""
    made: list[Any] = []
    for index in range(len(plan.nodes)):
        made.append(_resolver(plan, index, made))

    async def consume(**values: Any) -> str:
        _record.get().bodies.append(values.pop("ctx").call_id)
        if plan.body_fails:
            raise RuntimeError("not for the client")
        return body_text(values)

    tool: Any = consume
    parameters = [_parameter("x", int), *_takes(plan, BODY, plan.wants, made), _parameter("ctx", Context)]
    vars(tool)["__signature__"] = inspect.Signature(parameters, return_annotation=str)
    mcp = MCPServer[Any]("graphs")
    mcp.add_tool(tool)
    return Watched(mcp)


def body_text(values: Mapping[str, Any]) -> str:
    return repr([[name, plain(values[name])] for name in sorted(values)])


def parameter_name(consumer: int, position: int) -> str:
    return f"{'body' if consumer == BODY else f'n{consumer}'}_{position}"


def _parameter(name: str, hint: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _takes(plan: Plan, consumer: int, takes: tuple[Take, ...], made: list[Any]) -> list[inspect.Parameter]:
    parameters: list[inspect.Parameter] = []
    for position, take in enumerate(takes):
        node = plan.nodes[take.node]
        kind = TYPES[node.shape]
        hint: Any = {
            "value": kind,
            "outcome": ElicitationResult[kind],
            "accepted": AcceptedElicitation[kind],
            "default": kind | None,
        }[take.how]
        marked: Any = Annotated[hint, Resolve(made[take.node], once=node.once, guard=node.guard)]
        default = None if take.how == "default" else inspect.Parameter.empty
        parameters.append(_parameter(parameter_name(consumer, position), marked, default))
    return parameters


def _returns(node: Node) -> Any:
    value = TYPES[node.shape]
    if "generator" in node.kind:
        return Iterator[value] if node.kind == "generator" else AsyncIterator[value]
    return {
        "never": value,
        "vague": inspect.Signature.empty,
        "sometimes": value | Elicit[value],
        "always": Elicit[value],
    }[node.asks]


def _resolver(plan: Plan, index: int, made: list[Any]) -> Any:
    node = plan.nodes[index]
    runs = 0

    def start(inputs: dict[str, Any]) -> tuple[Record, int]:
        nonlocal runs
        record = _record.get()
        record.ran.append(index)
        runs += 1
        return record, node.pauses[(runs - 1) % len(node.pauses)]

    def result(inputs: dict[str, Any]) -> Any:
        context = inputs.pop("ctx", None)
        given = {name: plain(value) for name, value in inputs.items()}
        return decide(plan, index, given, context.round if context else 0)

    async def run(**inputs: Any) -> Any:
        _, pause = start(inputs)
        for _ in range(pause):
            await asyncio.sleep(0)
        return result(inputs)

    def run_sync(**inputs: Any) -> Any:
        start(inputs)
        return result(inputs)

    @contextmanager
    def closing(record: Record) -> Generator[None]:
        how = "finished"
        try:
            yield
        except GeneratorExit:
            how = "closed early"
            raise
        except BaseException:
            how = "saw an exception"
            raise
        finally:
            record.closed.append((index, how))

    async def generate(**inputs: Any) -> Any:
        record, pause = start(inputs)
        record.overlapped |= record.opening > 0
        record.opening += 1
        try:
            for _ in range(pause):
                await asyncio.sleep(0)
            value = result(inputs)
        finally:
            record.opening -= 1
        record.opened.append(index)
        with closing(record):
            yield value

    def generate_sync(**inputs: Any) -> Any:
        record, _ = start(inputs)
        value = result(inputs)
        record.opened.append(index)
        with closing(record):
            yield value

    fn: Any = {"async": run, "sync": run_sync, "generator": generate_sync, "async generator": generate}[node.kind]
    fn.__qualname__ = fn.__name__ = resolver_name(plan, index)
    parameters = _takes(plan, index, node.takes, made)
    if node.argument:
        parameters.append(_parameter("x", int))
    if node.fails > 0:
        parameters.append(_parameter("ctx", Context))
    vars(fn)["__signature__"] = inspect.Signature(parameters, return_annotation=_returns(node))
    return fn


def resolver_name(plan: Plan, index: int) -> str:
    return "twin" if plan.twins else f"n{index}"
