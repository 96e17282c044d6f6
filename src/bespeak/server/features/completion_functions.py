"""The functions that complete arguments: read and checked when their prompt or resource template is registered."""

import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from bespeak.resolve.errors import InvalidSignature
from bespeak.resolve.graph.checks import is_context
from bespeak.resolve.graph.compiler import compile_graph
from bespeak.resolve.graph.faults import Faults
from bespeak.resolve.graph.model import Graph
from bespeak.resolve.graph.near_misses import Nearness, nearest
from bespeak.resolve.graph.replacements import Replacement
from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.reading.signatures import EMPTY, Parameter, Signature, read
from bespeak.resolve.reading.type_hints import arms, can_agree, spell
from bespeak.server.context import Context
from bespeak.server.features.registered import Registering

TEXT = "value"
"""The parameter that gets the text typed so far, wherever it stands; otherwise the first one does."""


@dataclass(frozen=True, slots=True)
class CompletionFunction:
    """A function that completes arguments, its parameters assigned."""

    fn: Callable[..., Any]
    kind: Kind
    given: tuple[str, ...]
    """The parameters that get what the request says: the text, or reference, argument and context."""
    arguments: Mapping[str, Parameter]
    """The parameters that get other arguments, if they are resolved already."""
    resolved: frozenset[str]
    context_parameters: tuple[str, ...]
    trail: tuple[str, ...]
    graph: Graph

    def call(self, given: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
        """Call it with what the request says, and those of the values that it takes."""
        takes = {*self.arguments, *self.resolved, *self.context_parameters}
        return self.fn(**given, **{name: value for name, value in values.items() if name in takes})

    def recompiled(self, overrides: Mapping[Hashable, Replacement], frame: types.FrameType | None) -> Graph:
        """Return the graph with some resolvers replaced. Raises `InvalidSignature` if a replacement does not fit."""
        return _compiled(self.graph.consumer, self.trail, frame, overrides, self.graph)


def _compiled(
    consumer: Signature,
    trail: tuple[str, ...],
    frame: types.FrameType | None,
    overrides: Mapping[Hashable, Replacement] | None = None,
    like: Graph | None = None,
) -> Graph:
    return compile_graph(
        consumer, context_type=Context, frame=frame, overrides=overrides, like=like, trail=trail, quiet=True
    )


def read_functions(owner: Registering, what: str) -> dict[str, CompletionFunction]:
    """Read the functions that complete a consumer's arguments, by parameter. Their faults are the consumer's."""
    takes = {
        one.name: one
        for one in owner.signature.parameters
        if not one.marker and one.name not in owner.context_parameters
    }
    found: dict[str, CompletionFunction] = {}
    for parameter in owner.signature.parameters:
        marker = parameter.completion
        if marker is None or parameter.marker:
            continue
        if parameter.name in owner.context_parameters:
            owner.fault(
                f"parameter {parameter.name!r} is marked with `Complete`, but it takes the Context, which nobody types",
                "remove it",
                parameter.name,
            )
        elif not callable(marker.fn):
            owner.fault(
                f"parameter {parameter.name!r} has a Complete whose argument is not callable",
                "pass a function that takes the text typed so far and returns a list of texts",
                f"{parameter.name} <- {marker.fn!r}",
            )
        else:
            others = {name: one for name, one in takes.items() if name != parameter.name}
            function = _Reading(marker.fn, owner.frame, owner.trail, parameter.name).for_argument(what, others)
            owner.add_faults(function.faults.found)
            if function.read is not None:
                found[parameter.name] = function.read
    return found


def read_handler(fn: Callable[..., Any], frame: types.FrameType | None) -> CompletionFunction:
    """Read a handler for all arguments. Raises `InvalidSignature`, all faults at once."""
    function = _Reading(fn, frame, (), None).for_everything()
    if function.read is None:
        raise InvalidSignature(function.signature.name, tuple(function.faults.found))
    return function.read


class _Reading:
    """Reads one function, and gathers its faults."""

    read: CompletionFunction | None = None

    def __init__(
        self, fn: Callable[..., Any], frame: types.FrameType | None, trail: tuple[str, ...], parameter: str | None
    ) -> None:
        self._fn = fn
        self._frame = frame
        self.signature = signature = read(fn, frame)
        label = f"{signature.name}   {signature.place}"
        self._trail = (*trail, f"{parameter} <- {label}" if parameter else label)
        self.faults = Faults()
        self._context = tuple(
            one.name for one in signature.parameters if not one.marker and is_context(one.hint, Context)
        )
        told = {defect.parameter for defect in signature.defects}
        self._plain = {
            one.name: one
            for one in signature.parameters
            if not one.marker and one.name not in self._context and one.name not in told
        }

    def _fault(self, problem: str, fix: str, *below: str) -> None:
        self.faults.add(self.signature.place, (*self._trail, *below), problem, fix)

    def for_argument(self, what: str, others: Mapping[str, Parameter]) -> "_Reading":
        """Read a function that takes the text typed so far, and other arguments by name."""
        name = self.signature.name
        text = self._plain.get(TEXT) or next(iter(self._plain.values()), None)
        if text is None:
            self._fault(
                f"{name} has no parameter for the text typed so far",
                f"take it first: def {name}(value: str) -> list[str]",
            )
        elif text.name in others:
            self._fault(
                f"parameter {text.name!r} of {name} would get the text typed so far, but {text.name!r} is another argument "
                f"of the {what}",
                "give the parameter for the text another name, and put it first"
                if text.name == TEXT
                else "take the text first: value: str",
                text.name,
            )
        elif not can_agree(str, text.hint):
            self._fault(
                f"parameter {text.name!r} of {name} gets the text typed so far, but takes {spell(text.hint)}",
                f"annotate it as text: {text.name}: str",
                text.name,
            )
        arguments = {one.name: one for one in self._plain.values() if one is not text and one.name in others}
        for one in self._plain.values():
            if one.name in arguments:
                self._check_type(one, others[one.name])
            elif one is not text:
                self._check_left_out(one, others)
        self._finish((text.name,) if text else (), arguments, others)
        return self

    def for_everything(self) -> "_Reading":
        """Read a handler that takes the reference, the argument and the context, in that order."""
        given = tuple(self._plain)[:3]
        if len(given) < 3:
            self._fault(
                f"{self.signature.name} does not take the reference, the argument and the context",
                "write async def handler(ref, argument, context) -> Completion | None",
            )
        for one in list(self._plain.values())[3:]:
            self._check_left_out(one, {})
        self._finish(given, {}, {})
        return self

    def _check_type(self, parameter: Parameter, argument: Parameter) -> None:
        if not can_agree(argument.hint, parameter.hint):
            self._fault(
                f"parameter {parameter.name!r} of {self.signature.name} takes {spell(parameter.hint)}, but the argument of "
                f"that name is {spell(argument.hint)}",
                "make the two types agree, or rename one of them",
                f"{parameter.name} <- the argument",
            )

    def _check_left_out(self, parameter: Parameter, others: Mapping[str, Parameter]) -> None:
        """A parameter that gets nothing has a default, and is not a slip of the pen."""
        near, nearness = nearest(parameter.name, [name for name in others if name not in self._plain])
        if parameter.required:
            listed = ", ".join(others) or "none"
            self._fault(
                f"parameter {parameter.name!r} of {self.signature.name} cannot be filled: nothing has that name",
                f"use Annotated[..., Resolve(fn)], the Context, a default, or another argument (there are: {listed})",
                f"{parameter.name} <- nothing",
            )
        elif nearness is Nearness.NEAR:
            self._fault(
                f"parameter {parameter.name!r} of {self.signature.name} uses its default, though there is an argument {near!r}",
                f"rename it to {near!r} to receive the argument, or choose a name that is less similar",
                f"{parameter.name} <- its default",
            )

    def _finish(
        self, given: tuple[str, ...], arguments: Mapping[str, Parameter], others: Mapping[str, Parameter]
    ) -> None:
        signature = self.signature
        for one in signature.parameters:
            if one.completion and not one.marker:
                self._fault(
                    f"parameter {one.name!r} of {signature.name} is marked with `Complete`, which has an effect only on "
                    "parameters of prompts and resource templates",
                    "remove it",
                    one.name,
                )
        self._check_returns()
        marked = [one for one in signature.parameters if one.marker]
        known = [Parameter(name, one.hint, EMPTY) for name, one in others.items()]
        # What it returns is checked here. For the graph it is what takes values, and nothing else.
        consumer = Signature(
            signature.name, signature.place, signature.kind, (*marked, *known), EMPTY, signature.defects
        )
        try:
            graph = _compiled(consumer, self._trail, self._frame)
        except InvalidSignature as invalid:
            self.faults.found.extend(invalid.faults)
            return
        if not self.faults.found:
            resolved = frozenset(one.name for one in marked)
            self.read = CompletionFunction(
                self._fn, signature.kind, given, arguments, resolved, self._context, self._trail, graph
            )

    def _check_returns(self) -> None:
        signature = self.signature
        name, returns = signature.name, [] if signature.returns is EMPTY else arms(signature.returns)
        if signature.question_arms or signature.returns_input_required:
            asked = spell(signature.question_arms[0]) if signature.question_arms else "InputRequiredResult"
            self._fault(f"{name} returns {asked}, but a completion cannot ask", "return a list of texts")
        elif signature.kind is Kind.ASYNC_GENERATOR:
            self._fault(f"{name} is an async generator", "return a list of texts")
        elif str in returns and signature.kind is not Kind.GENERATOR:
            self._fault(f"{name} returns one text, but there may be several suggestions", "return a list of texts")
