"""Compiling a consumer's graph, with every check that can be made before a client connects."""

import difflib
import types
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from bespeak.resolve.asking.form_schemas import FormError, form_of, secret_names
from bespeak.resolve.asking.once_values import lost_parts
from bespeak.resolve.errors import Fault, InvalidSignature
from bespeak.resolve.graph.drawing import draw_path
from bespeak.resolve.graph.model import CONSUMER, FromArgument, FromContext, FromNode, Graph, Input, Node, Use
from bespeak.resolve.graph.near_misses import Nearness, nearest
from bespeak.resolve.graph.replacements import Replacement, identity
from bespeak.resolve.markers import Elicit, Resolve
from bespeak.resolve.reading.callables import Kind, base_key
from bespeak.resolve.reading.signatures import EMPTY, ORDINARY, Parameter, Signature, read, unfillable
from bespeak.resolve.reading.type_hints import NO_SCHEMA, arms, can_agree, is_unknown, question_class, spell


def compile_graph(
    consumer: Signature,
    *,
    context_type: type,
    frame: types.FrameType | None = None,
    overrides: Mapping[Hashable, Replacement] | None = None,
    like: Graph | None = None,
) -> Graph:
    """The graph of a consumer. Raises `InvalidSignature` with all its faults at once.

    `like` is the graph of the same consumer without overrides: what was read then is not read again, and the wire keys
    of then stay.
    """
    compiler = _Compiler(consumer, context_type, frame, overrides or {})
    for replacement in (overrides or {}).values():
        compiler.signatures |= replacement.below
    if like is not None:
        compiler.signatures |= like.signatures
        compiler.given_keys = {who: like.nodes[index].key_name for who, index in like.identities.items()}
    return compiler.compile()


@dataclass(slots=True)
class _Draft:
    """A node before the whole graph is known."""

    fn: Callable[..., Any]
    original: Callable[..., Any]
    marker: Resolve
    signature: Signature
    trail: tuple[str, ...]
    path: str
    inputs: list[Input] = field(default_factory=list[Input])
    below: set[int] = field(default_factory=set[int])
    """Every node it depends on, however indirectly."""


@dataclass(slots=True)
class _Compiler:
    consumer: Signature
    context_type: type
    frame: types.FrameType | None
    overrides: Mapping[Hashable, Replacement]
    signatures: dict[Hashable, Signature] = field(default_factory=dict[Hashable, Signature])
    given_keys: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    drafts: list[_Draft] = field(default_factory=list[_Draft])
    indices: dict[Hashable, int] = field(default_factory=dict[Hashable, int])
    open: list[Hashable] = field(default_factory=list[Hashable])
    open_names: list[str] = field(default_factory=list[str])
    faults: list[Fault] = field(default_factory=list[Fault])
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])

    def compile(self) -> Graph:
        consumer = self.consumer
        trail = (f"{consumer.name}   {consumer.place}",)
        self._defects(consumer, trail)
        marked = [parameter for parameter in consumer.parameters if parameter.marker]
        self.arguments = {
            parameter.name: parameter.hint
            for parameter in consumer.parameters
            if not parameter.marker and not is_context(parameter.hint, self.context_type)
        }
        self._check_exposed(consumer, trail)
        for parameter in consumer.parameters:
            if parameter.by_position and not parameter.marker and not parameter.required:
                self._fault(consumer.place, (*trail, parameter.name), unfillable(parameter.name), ORDINARY)
        self._check_by_hand(consumer, trail)
        wants = [want for parameter in marked if (want := self._visit(parameter, trail, consumer.name, consumer.place))]
        once = {index: self._once(draft) for index, draft in enumerate(self.drafts) if draft.marker.once}
        self._check_guards()
        keys = self._keys()
        for draft in self.drafts:
            self._check_form(draft)
        if self.faults:
            raise InvalidSignature(consumer.name, tuple(self.faults))
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
            wants=wants,
            uses=tuple(tuple(one) for one in uses),
            guards=phases[0],
            questions=phases[1],
            rest=phases[2],
            chains=frozenset(
                phase
                for phase in phases
                if phase and all(before in nodes[after].needs for before, after in pairwise(phase))
            ),
            identities=self.indices,
            signatures=self.signatures,
            has_generators=any(node.kind.is_generator for node in nodes),
            may_ask=any(node.may_ask for node in nodes),
        )

    def _closure(self, indices: Iterable[int]) -> set[int]:
        chosen = set(indices)
        return chosen.union(*(self.drafts[index].below for index in chosen))

    def _node(self, index: int, key: str, once: TypeAdapter[Any] | None) -> Node:
        draft = self.drafts[index]
        return Node(
            index=index,
            key_name=key,
            fn=draft.fn,
            path=draft.path,
            once=once,
            guard=draft.marker.guard,
            timeout=draft.marker.timeout,
            inputs=tuple(draft.inputs),
            needs=tuple(dict.fromkeys(taken.node for taken in draft.inputs if isinstance(taken, FromNode))),
            rests_on=tuple(
                below
                for below in sorted(draft.below)
                if self.drafts[below].signature.may_ask or self.drafts[below].marker.once
            ),
            name=draft.signature.name,
            kind=draft.signature.kind,
            may_ask=draft.signature.may_ask,
        )

    # Walking the functions

    def _visit(self, parameter: Parameter, trail: tuple[str, ...], path: str, place: str) -> FromNode | None:
        """Visit the resolver of a marked parameter, and check the parameter against it."""
        marker = parameter.marker
        if marker is None or not callable(marker.fn):
            self._fault(
                place,
                (*trail, f"{parameter.name} <- {getattr(marker, 'fn', None)!r}"),
                f"parameter {parameter.name!r} names something that cannot be called",
                "write Resolve(fn) with the function itself: not what it returns, and not a question",
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
        if _options(draft.marker) != _options(marker):
            self._fault(
                draft.signature.place,
                here,
                f"resolver {draft.signature.name!r} is marked with different options in one graph",
                "give every Resolve of it the same key, once, guard and timeout",
            )
        returns = draft.signature.returns
        if returns is not EMPTY and not can_agree(returns, parameter.hint):
            self._fault(
                draft.signature.place,
                here,
                f"resolver {draft.signature.name!r} gives {spell(returns)}, but parameter {parameter.name!r} "
                f"takes {spell(parameter.hint)}",
                "make the two types agree",
            )
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
            self._fault(
                signature.place,
                here,
                f"resolvers depend on each other: {' -> '.join(cycle)}",
                "break the cycle at one of them",
            )
            return None
        draft = _Draft(fn, marker.fn, marker, signature, here, f"{path} -> {parameter.name} -> {signature.name}")
        self._defects(signature, here)
        self._check_exposed(signature, here)
        self._check_marker(draft)
        self._check_by_hand(signature, here)
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

    def _input(self, parameter: Parameter, draft: _Draft) -> Input | None:
        if parameter.marker:
            return self._visit(parameter, draft.trail, draft.path, draft.signature.place)
        if is_context(parameter.hint, self.context_type):
            return FromContext(parameter.name)
        if parameter.by_position:
            if parameter.name in self.arguments:
                self._fault(draft.signature.place, (*draft.trail, parameter.name), unfillable(parameter.name), ORDINARY)
            return None
        if parameter.name in self.arguments:
            hint = self.arguments[parameter.name]
            if not can_agree(hint, parameter.hint):
                self._fault(
                    draft.signature.place,
                    (*draft.trail, f"{parameter.name} <- the argument"),
                    f"parameter {parameter.name!r} of resolver {draft.signature.name!r} takes {spell(parameter.hint)}, "
                    f"but the argument of that name is {spell(hint)}",
                    "make the two types agree, or rename one of them",
                )
            return FromArgument(parameter.name)
        already_told = any(defect.parameter == parameter.name for defect in draft.signature.defects)
        # A pydantic Field is a default only where pydantic reads the parameters, as it does a tool's.
        if (parameter.required or isinstance(parameter.default, FieldInfo)) and not already_told:
            self._fault(
                draft.signature.place,
                (*draft.trail, f"{parameter.name} <- nobody"),
                f"parameter {parameter.name!r} of resolver {draft.signature.name!r} is filled by nobody",
                self._filling(parameter),
            )
        elif not already_told:
            self._check_near_miss(parameter, draft)
        return None

    def _check_near_miss(self, parameter: Parameter, draft: _Draft) -> None:
        """A default that stands in for an argument of almost the same name."""
        taken = {one.name for one in draft.signature.parameters}
        other, near = nearest(parameter.name, [name for name in self.arguments if name not in taken])
        what = f"parameter {parameter.name!r} of resolver {draft.signature.name!r} is left at its default"
        resolved = [one.name for one in self.consumer.parameters if one.marker and one.name == parameter.name]
        if resolved:
            self._fault(
                draft.signature.place,
                (*draft.trail, f"{parameter.name} <- its default"),
                f"{what}, though {self.consumer.name} has a resolved parameter of that name",
                self._filling(parameter),
            )
        elif near is Nearness.NEAR:
            self._fault(
                draft.signature.place,
                (*draft.trail, f"{parameter.name} <- its default"),
                f"{what}, though there is an argument {other!r}",
                f"name it {other!r} to get the argument, or something less like it",
            )
        elif near is Nearness.PERHAPS and not self.given_keys:  # said when it was registered
            _warn(draft.signature, f"{what}; if the argument {other!r} was meant, rename one of them")

    def _check_exposed(self, signature: Signature, trail: tuple[str, ...]) -> None:
        """A forgotten `Resolve` must not let a model consent."""
        told = {defect.parameter for defect in signature.defects}
        for parameter in signature.parameters:
            if parameter.name in told or is_context(parameter.hint, self.context_type):
                continue
            if parameter.exposed:
                self._fault(
                    signature.place,
                    (*trail, parameter.name),
                    f"{signature.name}: parameter {parameter.name!r} would let a client supply {parameter.exposed[0]}",
                    f"mark it, so that a resolver asks: {parameter.name}: Annotated[..., Resolve(ask)]",
                )

    def _filling(self, parameter: Parameter) -> str:
        resolved = {one.name: one.marker for one in self.consumer.parameters if one.marker}
        marker = resolved.get(parameter.name)
        if marker is not None:
            named = getattr(marker.fn, "__name__", "fn")
            return f"{parameter.name!r} is itself resolved: mark it here too, Annotated[..., Resolve({named})]"
        near = difflib.get_close_matches(parameter.name, self.arguments, n=1)
        if near:
            return f"did you mean the argument {near[0]!r}?"
        listed = ", ".join(self.arguments) or "none"
        return f"use Annotated[..., Resolve(fn)], the Context, a default, or an argument of that name (there are: {listed})"

    def _check_by_hand(self, signature: Signature, trail: tuple[str, ...]) -> None:
        if signature.returns_input_required and any(one.marker for one in signature.parameters):
            self._fault(
                signature.place,
                trail,
                f"{signature.name} has `Resolve` parameters and returns `InputRequiredResult` too; a call has one channel "
                "for questions",
                "ask everything in resolvers, or everything by hand",
            )

    def _check_marker(self, draft: _Draft) -> None:
        signature, marker = draft.signature, draft.marker
        timeout: Any = marker.timeout
        problems = {
            "is marked guard=True and once=True; a guard runs in every round": (
                marker.guard and marker.once,
                "drop one of the two",
            ),
            "has a timeout that is not a positive number of seconds": (
                not (marker.timeout is None or (isinstance(timeout, (int, float)) and timeout > 0)),
                "write timeout=2.0, or leave it out",
            ),
        }
        for problem, (holds, fix) in problems.items():
            if holds:
                self._fault(signature.place, draft.trail, f"resolver {signature.name!r} {problem}", fix)

    # The checks that need the whole graph

    def _check_guards(self) -> None:
        for draft in self.drafts:
            if not draft.marker.guard:
                continue
            asking = [draft, *(self.drafts[below] for below in sorted(draft.below))]
            for one in asking:
                if one.signature.may_ask:
                    what = "may ask" if one is draft else f"depends on {one.signature.name!r}, which may ask"
                    self._fault(
                        draft.signature.place,
                        draft.trail,
                        f"guard {draft.signature.name!r} {what}; guards run before anybody is asked",
                        "annotate what it returns without a question, or drop guard=True",
                    )

    def _once(self, draft: _Draft) -> TypeAdapter[Any] | None:
        signature = draft.signature
        if signature.kind is Kind.VALUE:
            return None
        if signature.may_ask:
            problem = "may ask; the answer to a question is kept anyway"
        elif signature.kind.is_generator:
            problem = "is a generator, whose value cannot outlive the round"
        else:
            try:
                adapter = TypeAdapter[Any](signature.returns)
                adapter.json_schema(mode="serialization")
            except NO_SCHEMA:
                problem = f"returns {spell(signature.returns)}, which cannot be serialised"
            else:
                lost = lost_parts(signature.returns)
                if lost is None:
                    return adapter
                problem = f"returns {spell(signature.returns)}, of which {lost}, would not survive until the next round"
        self._fault(
            signature.place,
            draft.trail,
            f"resolver {signature.name!r} is marked once=True but {problem}",
            "drop once=True, or return a plain value, model or dataclass",
        )
        return None

    def _check_form(self, draft: _Draft) -> None:
        for arm in draft.signature.question_arms:
            asked = get_args(arm)
            if question_class(arm) is not Elicit or not asked or is_unknown(asked[0]):
                continue
            try:
                form = form_of(asked[0])
            except FormError as error:
                for problem, fix in error.faults:
                    self._fault(draft.signature.place, draft.trail, f"the form cannot be shown: {problem}", fix)
                continue
            for name in () if self.given_keys else secret_names(form):  # said when it was registered
                _warn(
                    draft.signature,
                    f"form field {name!r} of resolver {draft.signature.name!r} is named like a secret; secrets must not "
                    "be asked for in a form (the protocol forbids it): use a URL question",
                )

    def _keys(self) -> list[str]:
        seen: dict[str, int] = {}
        keys: list[str] = []
        for draft in self.drafts:
            given = self.given_keys.get(identity(draft.original), draft.marker.key)
            if given is not None:
                key = given
                if not _is_text(key):
                    problem = "the key of a question is no text" if key else "the key of a question is empty"
                    self._fault(draft.signature.place, draft.trail, problem, "give it a name")
                elif "~" in key:
                    self._fault(
                        draft.signature.place,
                        draft.trail,
                        f"the key {key!r} contains '~', which parts the name of a question from what names its wording",
                        "write the key without '~'",
                    )
            else:
                base = base_key(draft.original)
                key = f"{base}#{seen[base]}" if base in seen else base
                seen[base] = seen.get(base, 0) + 1
                while key in self.given_keys.values():
                    key = f"{base}#{seen[base]}"
                    seen[base] += 1
            if key in keys:
                other = self.drafts[keys.index(key)].signature.name
                self._fault(
                    draft.signature.place,
                    draft.trail,
                    f"the key {key!r} of {draft.signature.name!r} is also the key of {other!r}",
                    "give each question a key of its own",
                )
            keys.append(key)
        return keys

    # Reporting

    def _defects(self, signature: Signature, trail: tuple[str, ...]) -> None:
        for defect in signature.defects:
            labels = (*trail, defect.parameter) if defect.parameter else trail
            self._fault(signature.place, labels, f"{signature.name}: {defect.problem}", defect.fix)

    def _fault(self, place: str, trail: tuple[str, ...], problem: str, fix: str) -> None:
        self.faults.append(Fault(problem, fix, place, draw_path(trail)))


def is_context(hint: Any, context_type: type) -> bool:
    """Whether a parameter is the call's context: `Context`, `Context[...]`, or a union with one."""
    return any(
        isinstance(owner, type) and issubclass(owner, context_type)
        for owner in (get_origin(arm) or arm for arm in arms(hint))
    )


def _warn(signature: Signature, message: str) -> None:
    """Warn at the place of a function."""
    file, _, line = signature.place.rpartition(":")
    warnings.warn_explicit(message, UserWarning, file, int(line) if line.isdigit() else 0)


def _is_text(key: Any) -> bool:
    return isinstance(key, str) and bool(key) and key.isprintable()


def _options(marker: Resolve) -> tuple[str | None, bool, bool, float | None]:
    return marker.key, marker.once, marker.guard, marker.timeout
