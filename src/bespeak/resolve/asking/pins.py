"""Pins and full keys, which identify a question together with the answers and `once` values that it depends on.

The pin decides whether an answer counts. It is a digest of everything that the client was shown, and of everything that
the question depends on. The full key names the question on the wire, where anybody can read it. So it contains no
`once` value: the value could be guessed from a digest if it is short.
"""

from typing import Any, Protocol

from bespeak.protocol.question_keys import full_key
from bespeak.resolve.asking.digests import NOTHING, digest, digest_of
from bespeak.resolve.asking.progress import Progress, Settled
from bespeak.resolve.asking.questions import Outcome, Rendered
from bespeak.resolve.graph.model import Graph, Node
from bespeak.resolve.outcomes import NotAsked


class Outcomes(Protocol):
    """The outcomes of one round's resolvers."""

    outcomes: list[Outcome | None]
    not_asked: dict[int, NotAsked]


class Pins:
    """The pins and keys of the questions of one round."""

    def __init__(
        self,
        graph: Graph,
        progress: Progress,
        call: str,
        outcomes: Outcomes,
    ) -> None:
        self._graph = graph
        self._progress = progress
        self._call = call
        """What is called, with a digest of the arguments: two calls may ask in the same words."""
        self._settled = outcomes
        self.keys: dict[int, str] = {}
        """The full keys of the questions met in this round, by the index of their resolver."""

    def pin(self, node: Node, question: Rendered) -> tuple[str, str]:
        """Return a question's pin, and a digest of what it depends on. Also records its full key."""
        shown = question.digest()
        if not node.rests_on:
            self.keys[node.index] = full_key(node.key_name, digest_of(f"{shown} {self._call}".encode()))
            return shown, NOTHING
        below = [self._graph.nodes[index] for index in node.rests_on]
        seen = [self._seen(one) for one in below if one.may_ask]
        self.keys[node.index] = full_key(node.key_name, digest([shown, self._call, seen]))
        rests = self.rests(node)
        return digest_of(f"{shown} {rests}".encode()), rests

    def rests(self, node: Node) -> str:
        """Return a digest of the answers and `once` values that a question or a `once` value depends on."""
        return digest([self._rest(self._graph.nodes[index]) for index in node.rests_on]) if node.rests_on else NOTHING

    def _rest(self, node: Node) -> list[Any]:
        """One question or `once` value that something rests on."""
        if node.once:
            kept = self._progress.once.get(node.key_name)
            return [node.key_name, kept and [kept.rests, kept.value]]
        if node.index in self._settled.not_asked:
            return [node.key_name, self._settled.not_asked[node.index].reason]
        entry = self._entry(node)
        return [node.key_name, entry and [entry.pin, entry.action, entry.content]]

    def _seen(self, node: Node) -> list[Any]:
        """What the client has seen of a question that another one rests on."""
        entry = self._entry(node)
        return [entry and self.keys[node.index], entry and [entry.action, entry.content]]

    def _entry(self, node: Node) -> Settled | None:
        """The answer that a resolver has in this round; `None` if it computed its value without asking."""
        asked = self._settled.outcomes[node.index] is not None and node.index in self.keys
        return self._progress.settled.get(node.key_name) if asked else None
