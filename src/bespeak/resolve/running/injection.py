"""What each consumer gets of a resolver: its value, an outcome, a default, or the end of the call.

A consumer says by its annotation what it takes. One that takes the bare value cannot do with a decline or a cancel, unless
its parameter has a default; an outcome that some consumer cannot do with ends the call.
"""

import logging
from typing import Any, cast

from bespeak.protocol.capabilities import AskingObstacle, capability_names, merge
from bespeak.resolve.asking.questions import Outcome
from bespeak.resolve.errors import Aborted, MissingCapability, ResolverFailed
from bespeak.resolve.graph.model import FromNode, Graph, Node
from bespeak.resolve.outcomes import AcceptedElicitation, NotAsked
from bespeak.resolve.reading.returned_values import is_value
from bespeak.resolve.reading.signatures import Factory

logger = logging.getLogger("bespeak.resolve")


class Settlements:
    """The values and outcomes of one round's resolvers, by their index."""

    def __init__(self, graph: Graph) -> None:
        count = len(graph.nodes)
        self._graph = graph
        self.done = [False] * count
        self.plain = [False] * count
        """Those that are settled with a value, and not with an outcome."""
        self._values: list[Any] = [None] * count
        self.outcomes: list[Outcome | None] = [None] * count
        self.not_asked: dict[int, NotAsked] = {}
        self._aborts: dict[int, tuple[FromNode, Outcome]] = {}
        """The consumer's parameter and the outcome it cannot do with, by the resolver."""
        self._lacking: dict[str, Any] = {}
        self._obstacle: AskingObstacle | None = None
        """Why the client could not be asked something that it would have to be asked."""
        self.limit = count
        """From this place in graph order on, nothing is of use any more."""

    @property
    def last(self) -> int:
        """The place of the first resolver in graph order whose outcome ends the call; that of the consumer if none does."""
        return min(self._aborts, default=len(self._graph.nodes))

    def check(self) -> None:
        """Raise `Aborted` or `MissingCapability` if the call cannot go on."""
        if self._aborts:
            raise _aborted(*self._aborts[min(self._aborts)])
        if self._lacking:
            raise MissingCapability(self._lacking, self._obstacle and self._obstacle.words)

    # Settling a resolver

    def put(self, node: Node, result: Any) -> None:
        """Settle a resolver with what it returned. An outcome, handed on from another resolver, stays what it is."""
        if is_value(cast("type[Any]", type(result))):
            self.put_value(node.index, result)
        elif isinstance(result, NotAsked):
            self._take_not_asked(node, result, None)
        else:
            self.take(node, result)

    def put_value(self, index: int, value: Any) -> None:
        """Settle a resolver with a value."""
        self._values[index] = value
        self.done[index] = self.plain[index] = True

    def take(self, node: Node, outcome: Outcome) -> None:
        """Settle a resolver with an outcome. If a consumer cannot do with it, the call ends."""
        self.outcomes[node.index] = outcome
        self.done[node.index] = True
        for use in self._graph.uses[node.index]:
            if not _acceptable(use.input, outcome) and not use.input.has_default:
                self._aborts[node.index] = (use.input, outcome)
                self.limit = min(self.limit, node.index)
                return

    def cannot_ask(self, node: Node, obstacle: AskingObstacle, missing: dict[str, Any]) -> None:
        """Settle a resolver whose question cannot be asked, if every consumer of it has a default or takes `NotAsked`."""
        why = obstacle.words or f"it did not declare {', '.join(capability_names(missing))}"
        logger.info("the question of resolver %r cannot be sent to the client: %s", node.name, why)
        self._take_not_asked(node, NotAsked(obstacle.reason, missing), obstacle)

    def _take_not_asked(self, node: Node, not_asked: NotAsked, obstacle: AskingObstacle | None) -> None:
        if all(use.input.has_default or use.input.takes_not_asked for use in self._graph.uses[node.index]):
            self.not_asked[node.index] = not_asked
            self.done[node.index] = True
        else:
            self._obstacle = self._obstacle or obstacle
            merge(self._lacking, not_asked.missing)

    # What a consumer gets

    def injected(self, wanted: FromNode) -> Any:
        """Return a settled resolver's value or outcome as one of its consumers wants it."""
        index = wanted.node
        if self.plain[index] and not wanted.takes:
            return self._values[index]
        if not self.done[index]:
            node = self._graph.nodes[index]
            raise ResolverFailed(node.name, node.path, "has no value that this parameter could use")
        if index in self.not_asked:
            return self.not_asked[index] if wanted.takes_not_asked else _default(wanted)
        outcome = self.outcomes[index]
        if outcome is None:
            value = self._values[index]
            if not wanted.takes:
                return value
            outcome = AcceptedElicitation(data=value)
            if not wanted.has_default and not _acceptable(wanted, outcome):
                raise _aborted(wanted, outcome)
        if wanted.accepts(type(outcome)):
            return outcome
        if isinstance(outcome, AcceptedElicitation) and not wanted.takes:
            return outcome.data
        return _default(wanted)


def _acceptable(wanted: FromNode, outcome: Outcome) -> bool:
    if not wanted.takes:
        return isinstance(outcome, AcceptedElicitation)
    return wanted.accepts(type(outcome))


def _default(wanted: FromNode) -> Any:
    return wanted.default.make() if isinstance(wanted.default, Factory) else wanted.default


def _aborted(wanted: FromNode, outcome: Outcome) -> Aborted:
    return Aborted(wanted.parameter, outcome.action)
