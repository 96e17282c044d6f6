"""What a graph says about a call before it runs: who fills each parameter, in which round, and what its client must support."""

from typing import Any

from bespeak.protocol.capabilities import capability_names
from bespeak.resolve.graph.model import FromArgument, FromNode, Graph, Input, Node
from bespeak.resolve.markers import Elicit, ElicitUrl, ListRoots, Question, Sample

ASKED: dict[type[Question], str] = {
    Elicit: "the user",
    ElicitUrl: "the user on a web page",
    Sample: "the client's model",
    ListRoots: "the client's roots",
}
_NEEDS: dict[type[Question], dict[str, Any]] = {
    Elicit: {"elicitation": {"form": {}}},
    ElicitUrl: {"elicitation": {"url": {}}},
    Sample: {"sampling": {}},
    ListRoots: {"roots": {}},
}


def first_rounds(graph: Graph) -> tuple[int, ...]:
    """For each resolver, the number of rounds before it can have its value: one more than what it depends on if it asks."""
    rounds: list[int] = []
    for node in graph.nodes:  # dependencies come before their dependents
        rounds.append(max((rounds[below] for below in node.needs), default=0) + node.may_ask)
    return tuple(rounds)


def most_rounds(graph: Graph) -> int:
    """How many rounds the call can take if every answer is valid: those that ask, and the one that runs the body."""
    return max(first_rounds(graph), default=0) + 1


def needed_capabilities(graph: Graph) -> list[str]:
    """The client capabilities that its questions need, as far as the annotations say what is asked."""
    needs: dict[str, Any] = {}
    for node in graph.nodes:
        for question in node.asks:
            for name, parts in _NEEDS[question].items():
                needs.setdefault(name, {}).update(parts)
    return capability_names(needs)


def source_of(graph: Graph, one: Input) -> str:
    """Who fills a parameter: the model, the context, or a resolver that computes or may ask."""
    if isinstance(one, FromNode):
        return "asked" if graph.nodes[one.node].may_ask else "computed"
    return "model" if isinstance(one, FromArgument) else "context"


def traits(graph: Graph, node: Node) -> list[str]:
    """What is worth saying about a resolver, each in a few words."""
    said: list[str] = []
    if node.guard:
        said.append("guard")
    if node.once:
        said.append("once")
    if node.kind.is_generator:
        said.append(node.kind.value)
    if node.may_ask:
        who = " or ".join(ASKED[question] for question in node.asks) or "anything"
        said.append(f"may ask {who} in round {first_rounds(graph)[node.index]}")
    elif graph.may_ask:
        said.append("runs in every round" if node.index not in graph.rest else "runs after the last answer")
    return said


def summary(graph: Graph) -> str:
    """The most rounds of a call, and the capabilities that its client needs, in one line."""
    if not graph.may_ask:
        return "1 round: asks nothing"
    rounds = f"at most {most_rounds(graph)} rounds"
    if any(ElicitUrl in node.asks for node in graph.nodes):
        rounds += ", and more until the web page is done"
    if any(node.may_ask and not node.asks for node in graph.nodes):
        rounds += "; what is asked is not in every annotation"
    needs = needed_capabilities(graph)
    return f"{rounds}; the client needs {', '.join(needs)}" if needs else rounds


def as_json(graph: Graph) -> dict[str, Any]:
    """The graph as plain data, for programs."""
    rounds = first_rounds(graph)

    def inputs(those: tuple[Input, ...]) -> list[dict[str, Any]]:
        return [
            {
                "parameter": one.parameter,
                "from": source_of(graph, one),
                **({"resolver": one.node} if isinstance(one, FromNode) else {}),
            }
            for one in those
        ]

    return {
        "parameters": inputs(graph.inputs),
        "resolvers": [
            {
                "name": node.name,
                "asks": [question.__name__ for question in node.asks] if node.may_ask else None,
                "round": rounds[node.index] if node.may_ask else None,
                "guard": node.guard,
                "once": node.once is not None,
                "parameters": inputs(node.inputs),
            }
            for node in graph.nodes
        ],
        "mostRounds": most_rounds(graph),
        "capabilities": needed_capabilities(graph),
    }
