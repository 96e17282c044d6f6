"""The reference for random graphs: evaluates a plan one resolver after another."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bespeak import Elicit, MCPError, ToolError
from tests.answering import unresolved
from tests.graphs import (
    BODY,
    Node,
    Plan,
    Reply,
    Take,
    body_text,
    decide,
    parameter_name,
    plain,
    resolver_name,
    value_of,
)


@dataclass(frozen=True)
class Known:
    """What a call has settled, shown and computed once, as a state should carry it."""

    settled: Mapping[int, Reply] = field(default_factory=dict[int, Reply])
    shown: frozenset[int] = frozenset()
    once: frozenset[int] = frozenset()


@dataclass
class Verdict:
    """How a round must end."""

    known: Known
    ran: list[int] = field(default_factory=list[int])
    """Exact for a round that asks, or gets to its body."""
    open: list[int] = field(default_factory=list[int])
    failures: dict[int, str] = field(default_factory=dict[int, str])
    """By resolver, in graph order."""
    aborts: dict[int, str] = field(default_factory=dict[int, str])
    claims: bool = False
    """Whether it gets as far as phase two."""
    text: str | None = None
    """What the tool replies, if its body is reached."""

    @property
    def asks(self) -> bool:
        return bool(self.open) and not self.failures and not self.aborts


class Reference:
    """Evaluates a plan in graph order, one resolver after another."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.order: list[int] = []
        self.paths: dict[int, str] = {}
        self._walk(BODY, plan.wants, "consume")
        nodes = plan.nodes
        self.below = {index: self._below(index) for index in self.order}
        self.guards = self._closure(lambda node: node.guard)
        self.asking = [i for i in self._closure(lambda node: node.may_ask) if i not in self.guards]
        self.rest = [i for i in self.order if i not in self.guards and i not in self.asking]
        self.keys: dict[int, str] = {}
        for index in self.order:
            base = f"tests.graphs:{resolver_name(plan, index)}"
            before = sum(key.partition("#")[0] == base for key in self.keys.values())
            self.keys[index] = f"{base}#{before}" if before else base
        self.generators = {i for i in self.order if "generator" in nodes[i].kind}

    def _walk(self, consumer: int, takes: tuple[Take, ...], path: str) -> None:
        for position, take in enumerate(takes):
            if take.node not in self.paths:
                here = f"{path} -> {parameter_name(consumer, position)} -> {resolver_name(self.plan, take.node)}"
                self.paths[take.node] = here
                self._walk(take.node, self.plan.nodes[take.node].takes, here)
                self.order.append(take.node)

    def _below(self, index: int) -> set[int]:
        below: set[int] = set()
        for take in self.plan.nodes[index].takes:
            below |= {take.node} | self._below(take.node)
        return below

    def _closure(self, chosen: Callable[[Node], bool]) -> list[int]:
        roots = [i for i in self.order if chosen(self.plan.nodes[i])]
        return [i for i in self.order if i in roots or any(i in self.below[root] for root in roots)]

    def round(self, number: int, x: int, known: Known, sent: Mapping[int, Reply]) -> Verdict:
        """One round, with what earlier rounds settled and what the client sends now."""
        verdict = Verdict(known)
        results: dict[int, Any] = {}
        for phase in (self.guards, self.asking, self.rest):
            verdict.claims = phase is self.rest
            for index in phase:
                if all(take.node in results for take in self.plan.nodes[index].takes):
                    self._step(index, number, x, sent, verdict, results)
            if verdict.failures or verdict.aborts or (phase is self.asking and verdict.open):
                verdict.claims = verdict.claims and not verdict.aborts
                return verdict
        values = {
            parameter_name(BODY, at): self._taken(take, results[take.node]) for at, take in enumerate(self.plan.wants)
        }
        prefix = "Error executing tool consume"
        verdict.text = prefix if self.plan.body_fails else body_text({"x": x, **values})
        return verdict

    def _step(
        self, index: int, number: int, x: int, sent: Mapping[int, Reply], verdict: Verdict, results: dict[int, Any]
    ) -> None:
        node, known = self.plan.nodes[index], verdict.known
        inputs: dict[str, Any] = {"x": x} if node.argument else {}
        for position, take in enumerate(node.takes):
            inputs[parameter_name(index, position)] = plain(self._taken(take, results[take.node]))
        if index not in known.once:
            verdict.ran.append(index)
        try:
            decided = decide(self.plan, index, inputs, 0 if index in known.once else number)
        except RuntimeError:
            name = resolver_name(self.plan, index)
            verdict.failures[index] = f"Error executing tool consume: resolver {name!r} failed ({self.paths[index]})"
        except ToolError as error:
            verdict.failures[index] = f"Error executing tool consume: {error}"
        except MCPError as error:
            verdict.failures[index] = f"{error.code}: {error.message}"
        else:
            if isinstance(decided, Elicit):
                self._asked(index, sent, verdict, results)
            else:
                results[index] = decided
                if node.once:
                    verdict.known = replace(known, once=known.once | {index})

    def _asked(self, index: int, sent: Mapping[int, Reply], verdict: Verdict, results: dict[int, Any]) -> None:
        known = verdict.known
        reply = known.settled.get(index) or (sent.get(index) if index in known.shown else None)
        if reply is None:
            verdict.open.append(index)
            verdict.known = replace(known, shown=known.shown | {index})
            return
        verdict.known = replace(known, settled={**known.settled, index: reply}, shown=known.shown - {index})
        doomed = self._doomed(index) if reply.action != "accept" else None
        if doomed:
            verdict.aborts[index] = f"Error executing tool consume: {unresolved(doomed, reply.action)}"
        else:
            results[index] = reply

    def _doomed(self, index: int) -> str | None:
        """The first parameter, in graph order, that cannot do without an accepted answer."""
        for consumer in [*self.order, BODY]:
            takes = self.plan.wants if consumer == BODY else self.plan.nodes[consumer].takes
            for position, take in enumerate(takes):
                if take.node == index and take.how in ("value", "accepted"):
                    return parameter_name(consumer, position)
        return None

    def _taken(self, take: Take, result: Any) -> Any:
        """A result as one of its consumers gets it, already plain where it is an outcome."""
        outcome = take.how in ("outcome", "accepted")
        if isinstance(result, Reply):
            if result.action != "accept":
                return [result.action] if outcome else None
            result = value_of(self.plan.nodes[take.node].shape, result.number)
        return ["accept", plain(result)] if outcome else result
