"""Compiling the graph of a consumer: its functions are walked once, and every check is made at registration."""

import types
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from bespeak.resolve.errors import InvalidSignature
from bespeak.resolve.graph.checks import (
    check_argument_type,
    check_by_hand,
    check_completions,
    check_exposed,
    check_form,
    check_guards,
    check_marker,
    check_near_miss,
    check_once,
    check_options,
    check_quiet,
    check_readable,
    check_result_type,
    how_to_fill,
    is_context,
)
from bespeak.resolve.graph.faults import Faults
from bespeak.resolve.graph.key_names import question_names
from bespeak.resolve.graph.model import CONSUMER, Draft, FromArgument, FromContext, FromNode, Graph, Input, Node, Use
from bespeak.resolve.graph.replacements import Replacement, identity
from bespeak.resolve.markers import ElicitUrl, Resolve
from bespeak.resolve.reading.callables import Kind, may_wait
from bespeak.resolve.reading.returned_values import asked_class
from bespeak.resolve.reading.signatures import ORDINARY, Parameter, Signature, read, unfillable
from bespeak.resolve.reading.type_hints import question_class


def compile_graph(
    consumer: Signature,
    *,
    context_type: type,
    frame: types.FrameType | None = None,
    overrides: Mapping[Hashable, Replacement] | None = None,
    like: Graph | None = None,
    trail: tuple[str, ...] | None = None,
    quiet: bool = False,
) -> Graph:
    """Return the graph of a consumer. Raises `InvalidSignature` with all its faults at once.

    `like` is the graph of the same consumer without overrides. Its signatures are not read again, and its wire keys are
    kept. `trail` is the path to the consumer in drawings, if it is not a root. `quiet` means that it cannot ask: a resolver
    that may ask is a fault.
    """
    compiler = _Compiler(consumer, context_type, frame, overrides or {}, trail, quiet)
    for replacement in (overrides or {}).values():
        compiler.signatures |= replacement.below
    if like is not None:
        compiler.signatures |= like.signatures
        compiler.given_keys = {who: like.nodes[index].key_name for who, index in like.identities.items()}
    return compiler.compile()


@dataclass(slots=True)
class _Compiler:
    consumer: Signature
    context_type: type
    frame: types.FrameType | None
    overrides: Mapping[Hashable, Replacement]
    trail: tuple[str, ...] | None
    quiet: bool
    signatures: dict[Hashable, Signature] = field(default_factory=dict[Hashable, Signature])
    given_keys: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    drafts: list[Draft] = field(default_factory=list[Draft])
    indices: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    open: list[Hashable] = field(default_factory=list[Hashable])
    open_names: list[str] = field(default_factory=list[str])
    faults: Faults = field(default_factory=Faults)
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])

    def compile(self) -> Graph:
        consumer = self.consumer
        trail = self.trail or (f"{consumer.name}   {consumer.place}",)
        self.faults.add_defects(consumer, trail)
        marked = [parameter for parameter in consumer.parameters if parameter.marker]
        self.arguments = {
            parameter.name: parameter.hint
            for parameter in consumer.parameters
            if not parameter.marker and not is_context(parameter.hint, self.context_type)
        }
        check_exposed(consumer, trail, self.context_type, self.faults)
        for parameter in consumer.parameters:
            if parameter.by_position and not parameter.marker and not parameter.required:
                self.faults.add(consumer.place, (*trail, parameter.name), unfillable(parameter.name), ORDINARY)
        check_by_hand(consumer, trail, self.faults)
        wants = [want for parameter in marked if (want := self._visit(parameter, trail, consumer.name, consumer.place))]
        once = {index: check_once(draft, self.faults) for index, draft in enumerate(self.drafts) if draft.marker.once}
        check_guards(self.drafts, self.faults)
        if self.quiet:
            check_quiet(self.drafts, self.faults)
        keys = question_names(self.drafts, self.given_keys, self.faults)
        for draft in self.drafts:
            check_form(draft, self.faults, warn=not self.given_keys)  # said when it was registered
        if self.faults.found:
            raise InvalidSignature(consumer.name, tuple(self.faults.found))
        nodes = tuple(self._node(index, keys[index], once.get(index)) for index in range(len(self.drafts)))
        return self._graph(nodes, tuple(wants))

    def _graph(self, nodes: tuple[Node, ...], wants: tuple[FromNode, ...]) -> Graph:
        guards = self._closure(node.index for node in nodes if node.guard)
        asking = self._closure(node.index for node in nodes if node.may_ask) - guards
        uses: list[list[Use]] = [[] for _ in nodes]
        for consumer, inputs in [*((node.index, node.inputs) for node in nodes), (CONSUMER, wants)]:
            for taken in inputs:
                if isinstance(taken, FromNode):
                    uses[taken.node].append(Use(consumer, taken))
        phases = [
            tuple(sorted(guards)),
            tuple(sorted(asking)),
            tuple(index for index in range(len(nodes)) if index not in guards | asking),
        ]
        return Graph(
            consumer=self.consumer,
            nodes=nodes,
            inputs=self._own_inputs(wants),
            wants=wants,
            uses=tuple(tuple(one) for one in uses),
            guards=phases[0],
            questions=phases[1],
            rest=phases[2],
            at_once=frozenset(
                phase for phase in phases if phase and all(_is_run_at_once(nodes[index]) for index in phase)
            ),
            chains=frozenset(
                phase
                for phase in phases
                if phase and all(before in nodes[after].needs for before, after in pairwise(phase))
            ),
            identities=self.indices,
            signatures=self.signatures,
            has_generators=any(node.kind.is_generator for node in nodes),
            may_ask=any(node.may_ask for node in nodes),
            straight=bool(nodes)
            and not any(node.may_ask or node.kind.is_generator or node.overridden for node in nodes),
            uses_context=any(isinstance(taken, FromContext) for node in nodes for taken in node.inputs),
            may_wait_at_last=any(nodes[index].may_wait for index in phases[2]),
            overridden=any(node.overridden for node in nodes),
        )

    def _own_inputs(self, wants: tuple[FromNode, ...]) -> tuple[Input, ...]:
        marked = {want.parameter: want for want in wants}
        return tuple(
            marked.get(name) or (FromArgument(name) if name in self.arguments else FromContext(name))
            for name in (parameter.name for parameter in self.consumer.parameters)
        )

    def _closure(self, indices: Iterable[int]) -> set[int]:
        chosen = set(indices)
        return chosen.union(*(self.drafts[index].below for index in chosen))

    def _node(self, index: int, key: str, once: TypeAdapter[Any] | None) -> Node:
        draft = self.drafts[index]
        signature, marker = draft.signature, draft.marker
        waits = signature.kind is not Kind.VALUE and may_wait(draft.fn)
        ordinary = signature.kind is Kind.ASYNC and marker.timeout is None and once is None
        return Node(
            index=index,
            key_name=key,
            fn=draft.fn,
            path=draft.path,
            once=once,
            guard=marker.guard,
            timeout=marker.timeout,
            inputs=tuple(draft.inputs),
            needs=tuple(dict.fromkeys(taken.node for taken in draft.inputs if isinstance(taken, FromNode))),
            rests_on=tuple(
                below
                for below in sorted(draft.below)
                if self.drafts[below].signature.may_ask or self.drafts[below].marker.once
            ),
            name=signature.name,
            kind=signature.kind,
            may_ask=signature.may_ask,
            may_wait=waits,
            at_once=ordinary and not waits,
            asks=tuple(dict.fromkeys(filter(None, map(question_class, signature.question_arms)))),
            asks_for=asked_class(signature.question_arms),
            returns=signature.returns,
            takers=tuple(draft.takers),
            ruled_out=draft.ruled_out,
            overridden=draft.fn is not marker.fn,
        )

    # Walking the functions

    def _visit(self, parameter: Parameter, trail: tuple[str, ...], path: str, place: str) -> FromNode | None:
        """Visit the resolver of a marked parameter, and check the parameter against it."""
        marker = parameter.marker
        if marker is None or not callable(marker.fn):
            self.faults.add(
                place,
                (*trail, f"{parameter.name} <- {getattr(marker, 'fn', None)!r}"),
                f"parameter {parameter.name!r} has a Resolve whose argument is not callable",
                "pass the function itself to Resolve, not its return value or a question",
            )
            return None
        who = identity(marker.fn)
        index = self.indices.get(who)
        if index is None:
            index = self._enter(parameter, marker, who, trail, path)
            if index is None:
                return None
        draft = self.drafts[index]
        here = (*trail, f"{parameter.name} <- {draft.signature.name}   {draft.signature.place}")
        check_options(draft, marker, here, self.faults)
        check_result_type(draft, parameter, here, self.faults)
        draft.takers.append((parameter.name, parameter.hint))
        return FromNode(parameter.name, index, parameter.takes, parameter.default, parameter.takes_not_asked)

    def _enter(
        self, parameter: Parameter, marker: Resolve, who: Hashable, trail: tuple[str, ...], path: str
    ) -> int | None:
        """Read a resolver met for the first time and all it depends on; its index, or `None` inside a cycle."""
        replacement = self.overrides.get(who)
        if replacement:
            signature, fn = replacement.signature, replacement.fn
        else:
            signature, fn = self._read(marker.fn, who), marker.fn
        here = (*trail, f"{parameter.name} <- {signature.name}   {signature.place}")
        if who in self.open:
            cycle = [*self.open_names[self.open.index(who) :], signature.name]
            self.faults.add(
                signature.place,
                here,
                f"cyclic dependency between resolvers: {' -> '.join(cycle)}",
                "break the cycle at one of them",
            )
            return None
        draft = Draft(fn, marker.fn, marker, signature, here, f"{path} -> {parameter.name} -> {signature.name}")
        self.faults.add_defects(signature, here)
        check_exposed(signature, here, self.context_type, self.faults)
        check_marker(draft, self.faults)
        check_by_hand(signature, here, self.faults)
        check_completions(signature, here, self.faults)
        self.open.append(who)
        self.open_names.append(signature.name)
        for inner in signature.parameters:
            if (taken := self._input(inner, draft)) is not None:
                draft.inputs.append(taken)
        self.open.pop()
        self.open_names.pop()
        for taken in draft.inputs:
            if isinstance(taken, FromNode):
                draft.below |= {taken.node} | self.drafts[taken.node].below
        self.drafts.append(draft)
        self.indices[who] = len(self.drafts) - 1
        return self.indices[who]

    def _read(self, fn: Callable[..., Any], who: Hashable) -> Signature:
        if who not in self.signatures:
            self.signatures[who] = read(fn, self.frame)
        return self.signatures[who]

    def _input(self, parameter: Parameter, draft: Draft) -> Input | None:
        if parameter.marker:
            return self._visit(parameter, draft.trail, draft.path, draft.signature.place)
        if is_context(parameter.hint, self.context_type):
            return FromContext(parameter.name)
        if parameter.by_position:
            if parameter.name in self.arguments:
                self.faults.add(
                    draft.signature.place, (*draft.trail, parameter.name), unfillable(parameter.name), ORDINARY
                )
            return None
        if parameter.name in self.arguments:
            check_argument_type(parameter, self.arguments[parameter.name], draft, self.faults)
            check_readable(parameter, draft, self.faults)
            return FromArgument(parameter.name)
        already_told = any(defect.parameter == parameter.name for defect in draft.signature.defects)
        # A pydantic Field is a default only where pydantic reads the parameters, as it does a tool's.
        if (parameter.required or isinstance(parameter.default, FieldInfo)) and not already_told:
            self.faults.add(
                draft.signature.place,
                (*draft.trail, f"{parameter.name} <- nothing"),
                f"parameter {parameter.name!r} of resolver {draft.signature.name!r} cannot be resolved: nothing fills it",
                how_to_fill(parameter, self.consumer, self.arguments),
            )
        elif not already_told:
            check_near_miss(parameter, draft, self.consumer, self.arguments, self.faults, warn=not self.given_keys)
        return None


def _is_run_at_once(node: Node) -> bool:
    """Whether nothing has to be waited for. A resolver that sends people to a page may be run again, with pauses."""
    return node.at_once and not (node.may_ask and (not node.asks or ElicitUrl in node.asks))
