"""Completions: what the argument of a prompt or of a resource template could become, while a person types it.

A completion is one request. It never asks, so nothing of it is kept, and it spends no approval.
"""

import copy
import inspect
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

from bespeak.protocol import wire_types
from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.resolve.graph.model import FromArgument, Graph
from bespeak.resolve.markers import Question
from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.reading.signatures import Parameter
from bespeak.server.calls.arguments import Arguments
from bespeak.server.features.completion_functions import CompletionFunction, read_functions
from bespeak.server.features.registered import Registered, Registering, Resolving, protocol_error

if TYPE_CHECKING:
    from mcp_types import Completion, CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

    Reference = PromptReference | ResourceTemplateReference

MOST = 100
"""How many values the protocol allows in one result."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A `completion/complete` request."""

    ref: "Reference"
    argument: "CompletionArgument"
    context: "CompletionContext | None"

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> "CompletionRequest":
        """Read the parameters of a request. Raises `MCPError` if they are malformed."""
        argument = _object(params.get("argument"))
        name, value = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(value, str):
            raise MCPError(INVALID_PARAMS, "params.argument must have the name of an argument and its value as text")
        context = params.get("context")
        ref = read_reference(params.get("ref"))
        if ref is None:
            raise MCPError(
                INVALID_PARAMS,
                "params.ref must be {'type': 'ref/prompt', 'name': ...} or {'type': 'ref/resource', 'uri': ...}",
            )
        return cls(
            ref,
            wire_types.CompletionArgument(name=name, value=value),
            None if context is None else wire_types.CompletionContext(arguments=_resolved_arguments(context)),
        )

    def at_home(self, name: str) -> "CompletionRequest":
        """Return the request as the included server knows it, whose names have no prefix."""
        ref = self.ref
        own = (
            ref.model_copy(update={"name": name})
            if isinstance(ref, wire_types.PromptReference)
            else ref.model_copy(update={"uri": name})
        )
        return replace(self, ref=own)

    @property
    def sent(self) -> dict[str, str]:
        """The arguments that are resolved already."""
        return (self.context.arguments if self.context else None) or {}

    @property
    def target(self) -> str:
        """What is completed, for messages."""
        ref = self.ref
        owner = f"prompt {ref.name!r}" if isinstance(ref, wire_types.PromptReference) else f"resource {ref.uri!r}"
        return f"argument {self.argument.name!r} of {owner}"


def read_reference(sent: Any) -> "Reference | None":
    """Return the reference to a prompt or a resource; `None` if it is malformed."""
    ref = _object(sent)
    if ref.get("type") == "ref/prompt" and isinstance(ref.get("name"), str):
        title = ref.get("title")
        return wire_types.PromptReference(name=ref["name"], title=title if isinstance(title, str) else None)
    if ref.get("type") == "ref/resource" and isinstance(ref.get("uri"), str):
        return wire_types.ResourceTemplateReference(uri=ref["uri"])
    return None


def _resolved_arguments(context: Any) -> dict[str, str]:
    if not isinstance(context, dict):
        raise MCPError(INVALID_PARAMS, "params.context must be an object")
    arguments = cast("dict[str, Any]", context).get("arguments")
    if arguments is None:
        return {}
    known = _object(arguments)
    if not isinstance(arguments, dict) or not all(isinstance(value, str) for value in known.values()):
        raise MCPError(INVALID_PARAMS, "params.context.arguments must be an object whose values are strings")
    return known


def _object(sent: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}


class ArgumentCompletion(Resolving):
    """The completion of one argument, by the function of its `Complete` marker."""

    def __init__(self, function: CompletionFunction, others: Mapping[str, Parameter], arguments: Arguments) -> None:
        super().__init__(function.graph)
        self._function = function
        self._others = others
        self._sent_as = arguments.sent_as
        self._readers: dict[str, Arguments] = {}

    def __call__(self, request: CompletionRequest) -> "CompletionRun | None":
        """Return what is to be run for a request; `None` if an argument is missing that is needed to suggest anything.

        Raises `InvalidArguments`.
        """
        function = self._function
        below = {one.parameter for node in self.graph.nodes for one in node.inputs if isinstance(one, FromArgument)}
        values: dict[str, Any] = {}
        for name in below | function.arguments.keys():
            known = self._others[name]
            if not known.required or any(wire in request.sent for wire in self._sent_as[name]):
                values |= self._reader(name).read(dict(request.sent))
            elif name in below or function.arguments[name].required:
                return None
        given = dict.fromkeys(function.given, request.argument.value)
        return CompletionRun(function, self.graph, request.target, given, values)

    def _reader(self, name: str) -> Arguments:
        if name not in self._readers:
            self._readers[name] = Arguments(name, [self._others[name]])
        return self._readers[name]

    def _recompiled(self, overrides: Mapping[Hashable, Any], frame: Any) -> Graph:
        return self._function.recompiled(overrides, frame)


class CompletionHandler(Resolving):
    """The handler of all arguments without a function of their own."""

    def __init__(self, function: CompletionFunction) -> None:
        super().__init__(function.graph)
        self._function = function

    def __call__(self, request: CompletionRequest) -> "CompletionRun":
        """Return what is to be run for a request."""
        given = dict(zip(self._function.given, (request.ref, request.argument, request.context), strict=True))
        return CompletionRun(self._function, self.graph, request.target, given, {})

    def _recompiled(self, overrides: Mapping[Hashable, Any], frame: Any) -> Graph:
        return self._function.recompiled(overrides, frame)


class Completed(Registered):
    """What prompts and resource templates have in common: a person may type their arguments."""

    completions: Mapping[str, ArgumentCompletion]
    """By every name under which the argument may be sent."""

    def __init__(self, fn: Callable[..., Any], name: str, read: Registering, arguments: Arguments | None) -> None:
        functions = read_functions(read, self.what)
        super().__init__(fn, name, read, arguments)
        plain = {one.name: one for one in read.plain}
        self.completions = {}
        for completed, function in functions.items():
            others = {other: one for other, one in plain.items() if other != completed}
            completion = ArgumentCompletion(function, others, self.arguments)
            self.completions |= dict.fromkeys(self.arguments.sent_as[completed], completion)

    @property
    def argument_names(self) -> Sequence[str]:
        """The names under which arguments may be sent."""
        return sorted(self.arguments.wire_names)

    @property
    def parts(self) -> Sequence[Resolving]:
        return [self, *dict.fromkeys(self.completions.values())]

    def copied(self) -> Self:
        copied = super().copied()
        copies = {id(one): copy.copy(one) for one in self.completions.values()}
        copied.completions = {name: copies[id(one)] for name, one in self.completions.items()}
        return copied


class CompletionRun:
    """One request of a completion: what a call needs to know of it."""

    method = "completion/complete"
    idempotent = False
    plain = False
    may_ask = False
    at_once = False
    may_wait = True
    home: Any = None

    def __init__(
        self, function: CompletionFunction, graph: Graph, target: str, given: dict[str, Any], values: dict[str, Any]
    ) -> None:
        self._function = function
        self._given = given
        self.name = target
        self.graph = graph
        self.values = values
        self.kind = Kind.ASYNC if function.kind is Kind.ASYNC else Kind.SYNC
        self.context_parameters = function.context_parameters
        self.arguments = self
        self.fn = self._run_later if self.kind is Kind.ASYNC else self._run

    def read(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments, which have been validated already."""
        return sent

    def _run(self, **values: Any) -> Any:
        """Run the function and take what it returns. Lazy values are computed here, in the worker thread."""
        returned = self._function.call(self._given, values)
        return self._awaited(returned) if inspect.isawaitable(returned) else completion_of(returned)

    async def _run_later(self, **values: Any) -> "Completion":
        return completion_of(await self._function.call(self._given, values))

    @staticmethod
    async def _awaited(returned: Awaitable[Any]) -> "Completion":
        return completion_of(await returned)

    def result(self, value: "Completion") -> dict[str, Any]:
        """Return the wire result."""
        return completion_result(value)

    def failure(self, error: Exception) -> NoReturn:
        """Raise a failure as a JSON-RPC error."""
        raise protocol_error(f"Error completing {self.name}", error, f"the completion of {self.name}")


def completion_result(completion: "Completion | None" = None) -> dict[str, Any]:
    """Return a `completion/complete` result; without a completion, one that suggests nothing."""
    found = completion or wire_types.Completion(values=[], total=0, has_more=False)
    return {"completion": found.model_dump(mode="json", by_alias=True, exclude_none=True)}


def completion_of(returned: Any) -> "Completion":
    """Return at most 100 values of what a completion function returned. Raises `TypeError` for anything but texts."""
    if returned is None:
        return wire_types.Completion(values=[], total=0, has_more=False)
    if isinstance(returned, wire_types.Completion):
        if len(returned.values) <= MOST:
            return returned
        total = max(returned.total or 0, len(returned.values))
        return wire_types.Completion(values=returned.values[:MOST], total=total, has_more=True)
    kind = type(returned).__name__
    if isinstance(returned, (Question, wire_types.InputRequiredResult)):
        raise TypeError(f"a completion function returned {kind}, but a completion cannot ask")
    if isinstance(returned, (str, bytes)) or not isinstance(returned, Iterable):
        raise TypeError(f"a completion function returned {kind}; return a list of texts")
    values: list[Any] = list(islice(cast("Iterable[Any]", returned), MOST + 1))
    wrong = next((value for value in values if not isinstance(value, str)), None)
    if wrong is not None:
        raise TypeError(
            f"a completion function returned a value of type {type(wrong).__name__}; return a list of texts"
        )
    if len(values) <= MOST:
        return wire_types.Completion(values=values, total=len(values), has_more=False)
    return wire_types.Completion(
        values=values[:MOST], total=len(returned) if isinstance(returned, Sized) else None, has_more=True
    )
