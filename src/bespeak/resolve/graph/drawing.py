"""Draw trees as text: the path to a fault in an error, and a whole graph."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bespeak.resolve.graph.model import FromNode, Graph, Input
from bespeak.resolve.graph.overview import source_of, traits


@dataclass(slots=True)
class Branch:
    """One line of a tree, and the lines below it."""

    label: str
    below: list["Branch"] = field(default_factory=list["Branch"])


def draw(branch: Branch, indent: str = "") -> str:
    """Return the tree as text."""
    lines = [indent + branch.label]
    _draw_below(branch, indent, lines)
    return "\n".join(lines)


def _draw_below(branch: Branch, indent: str, lines: list[str]) -> None:
    for number, child in enumerate(branch.below, 1):
        last = number == len(branch.below)
        lines.append(f"{indent}{'└─ ' if last else '├─ '}{child.label}")
        _draw_below(child, indent + ("   " if last else "│  "), lines)


def draw_path(labels: Sequence[str], indent: str = "    ") -> str:
    """Return a path from the consumer down to one place."""
    root = here = Branch(labels[0])
    for label in labels[1:]:
        here.below.append(Branch(label))
        here = here.below[0]
    return draw(root, indent)


def draw_graph(graph: Graph, name: str) -> str:
    """Return the graph as a tree of parameters: the model's arguments, and each resolver with its traits."""
    drawn: set[int] = set()
    root = Branch(f"{name}   {graph.consumer.place}")
    root.below = [_branch(graph, one, drawn) for one in graph.inputs]
    return draw(root)


def _branch(graph: Graph, one: Input, drawn: set[int]) -> Branch:
    if not isinstance(one, FromNode):
        return Branch(f"{one.parameter} <- the {source_of(graph, one)}")
    node = graph.nodes[one.node]
    said = ", ".join(traits(graph, node))
    branch = Branch(f"{one.parameter} <- {node.name}{f' [{said}]' if said else ''}")
    if node.index in drawn:
        branch.label += " (drawn above)" if node.inputs else ""
        return branch
    drawn.add(node.index)
    branch.below = [_branch(graph, inner, drawn) for inner in node.inputs]
    return branch
