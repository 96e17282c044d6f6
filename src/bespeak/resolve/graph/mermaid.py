"""Draw a graph as a Mermaid flowchart."""

from collections.abc import Iterable

from bespeak.resolve.graph.model import FromNode, Graph, Input
from bespeak.resolve.graph.overview import source_of, traits

_COLOURS = {
    "model": "fill:#e8eefc,stroke:#4a6fd0,color:#1a2440",
    "context": "fill:#eeeeee,stroke:#888888,color:#222222",
    "computed": "fill:#e6f4ea,stroke:#2e7d46,color:#12301c",
    "asked": "fill:#fff1dc,stroke:#c77700,color:#3d2600",
}


def as_mermaid(graph: Graph, name: str) -> str:
    """Return the flowchart: arguments on the left, the consumer on the right."""
    lines = ["flowchart LR", f'    call[["{_escaped([name])}"]]']
    outside = dict.fromkeys(
        (source_of(graph, one), one.parameter) for one in _all_inputs(graph) if not isinstance(one, FromNode)
    )
    for source, parameter in outside:
        lines.append(f'    {_outside(source, parameter)}(["{_escaped([parameter, f"from the {source}"])}"]):::{source}')
    for node in graph.nodes:
        text = _escaped([node.name, *traits(graph, node)])
        box = f'{{{{"{text}"}}}}:::asked' if node.may_ask else f'["{text}"]:::computed'
        lines.append(f"    r{node.index}{box}")
    for node in graph.nodes:
        lines += [_edge(graph, one, f"r{node.index}") for one in node.inputs]
    lines += [_edge(graph, one, "call") for one in graph.inputs]
    lines += [f"    classDef {source} {colours}" for source, colours in _COLOURS.items()]
    return "\n".join(lines)


def _all_inputs(graph: Graph) -> Iterable[Input]:
    for node in graph.nodes:
        yield from node.inputs
    yield from graph.inputs


def _edge(graph: Graph, one: Input, to: str) -> str:
    if isinstance(one, FromNode):
        return f'    r{one.node} -->|"{_escaped([one.parameter])}"| {to}'
    return f"    {_outside(source_of(graph, one), one.parameter)} --> {to}"


def _outside(source: str, parameter: str) -> str:
    # Mermaid allows few letters in the names of boxes.
    return f"{source}_{parameter.encode().hex()}"


def _escaped(lines: list[str]) -> str:
    def one(line: str) -> str:
        return "".join(letter if letter.isalnum() or letter in " _-.,:'" else f"#{ord(letter)};" for letter in line)

    return "<br/>".join(map(one, lines))
