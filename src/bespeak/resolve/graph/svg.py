"""Draw a graph as an SVG picture, with no script and nothing to load."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from bespeak.resolve.graph.model import FromNode, Graph, Input
from bespeak.resolve.graph.overview import source_of, summary, traits

LETTER, LINE, PADDING = 7.0, 17, 10
"""The width of a letter and the height of a line, in pixels, as common fonts have them at most."""
END, LANE = 14, 8
"""The room of an edge: where it arrives at a box, and where it passes a column."""
GAP_ACROSS, GAP_DOWN, MARGIN = 70, 18, 20
_STYLE = """
text{font:13px system-ui,sans-serif;fill:#1d2330}.small,.edge{font-size:11px;fill:#5a6275}
rect{fill:#fff;stroke:#8a93a8;stroke-width:1.2}path{fill:none;stroke:#8a93a8;stroke-width:1.2}
.model{fill:#e8eefc;stroke:#4a6fd0}.context{fill:#eee}.computed{fill:#e6f4ea;stroke:#2e7d46}
.asked{fill:#fff1dc;stroke:#c77700}.call{stroke-width:2}
.canvas{fill:#fff;stroke:none}.edge{paint-order:stroke;stroke:#fff;stroke-width:4px}
@media (prefers-color-scheme:dark){text{fill:#e8ebf2}.small,.edge{fill:#a9b1c4}rect{fill:#20242e}
.model{fill:#1f2c52}.context{fill:#333}.computed{fill:#173a24}.asked{fill:#4a3209}
.canvas{fill:#1c2028}.edge{stroke:#1c2028}}
"""


@dataclass(slots=True, eq=False)
class _Box:
    kind: str
    lines: list[str]
    column: int
    inputs: list["_Box"] = field(default_factory=list["_Box"])
    x: float = 0.0
    y: float = 0.0

    width: float = 0.0
    """For a lane, the width of its column."""

    def __post_init__(self) -> None:
        if self.lines:
            self.width = max(len(line) for line in self.lines) * LETTER + 2 * PADDING

    @property
    def height(self) -> float:
        return max(len(self.lines) * LINE + PADDING, len(self.inputs) * END) if self.lines else LANE

    def entry(self, number: int) -> float:
        """How far down an edge arrives: each has its own place on the left side."""
        return self.y + self.height * (number + 0.5) / len(self.inputs)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


class _Picture:
    """Boxes in columns, each to the right of what it needs. An edge passes columns in lanes of their own."""

    def __init__(self, graph: Graph, name: str) -> None:
        self._graph = graph
        self._outside: dict[tuple[str, str], _Box] = {}
        self._nodes: list[_Box] = []
        self._labels: dict[tuple[int, str], tuple[_Box, str]] = {}
        for node in graph.nodes:
            box = _Box("asked" if node.may_ask else "computed", [node.name, *traits(graph, node)], 0)
            self._nodes.append(self._joined(box, node.inputs))
        call = self._joined(_Box("call", [name], 0), graph.inputs)
        call.column = max([call.column, *(box.column + 1 for box in self._nodes)])
        self._boxes = [*self._outside.values(), *self._nodes, call]
        self._lanes: dict[tuple[int, int], _Box] = {}
        for box in self._boxes:
            box.inputs = [self._lane(below, box.column - 1) for below in box.inputs]

    def _joined(self, box: _Box, inputs: Sequence[Input]) -> _Box:
        for one in inputs:
            below = self._from(one)
            box.inputs.append(below)
            if isinstance(one, FromNode):
                self._labels[id(below), one.parameter] = (below, one.parameter)
        box.column = 1 + max((below.column for below in box.inputs), default=-1)
        return box

    def _from(self, one: Input) -> _Box:
        if isinstance(one, FromNode):
            return self._nodes[one.node]
        source = source_of(self._graph, one)
        made = _Box(source, [one.parameter, f"from the {source}"], 0)
        return self._outside.setdefault((source, one.parameter), made)

    def _lane(self, box: _Box, column: int) -> _Box:
        """Where the edge from a box to the next columns leaves this one: the box itself, or a lane that passes the column."""
        if box.column == column:
            return box
        found = self._lanes.get((id(box), column))
        if found is None:
            found = self._lanes[id(box), column] = _Box("lane", [], column, [self._lane(box, column - 1)])
        return found

    def place(self) -> tuple[float, float]:
        """Give every box its place. Returns the width and the height of the picture."""
        everything = [*self._boxes, *self._lanes.values()]
        columns = [[one for one in everything if one.column == number] for number in range(self._boxes[-1].column + 1)]
        heights = [sum(box.height + GAP_DOWN for box in column) - GAP_DOWN for column in columns]
        x = float(MARGIN)
        for column, height in zip(columns, heights, strict=True):
            column.sort(key=lambda box: sum(one.middle for one in box.inputs) / max(1, len(box.inputs)))
            y = MARGIN + (max(heights) - height) / 2
            for box in column:
                box.x, box.y = x, y
                y += box.height + GAP_DOWN
            width = max(box.width for box in column)
            for box in column:
                box.inputs.sort(key=lambda one: one.middle)  # so that fewer edges cross
                box.width = box.width or width
            x += width + GAP_ACROSS
        return x - GAP_ACROSS + MARGIN, max(heights) + 2 * MARGIN

    def parts(self) -> list[str]:
        edges = [
            self._edge(box, number)
            for box in [*self._boxes, *self._lanes.values()]
            for number in range(len(box.inputs))
        ]
        labels = [
            f'<text class="edge" x="{box.x + box.width + 6:.0f}" y="{box.middle - 5 - 12 * number:.0f}">{escape(text)}</text>'
            for number, (box, text) in self._numbered()
        ]
        return [*edges, *labels, *map(self._drawn, self._boxes)]

    def _numbered(self) -> Iterator[tuple[int, tuple[_Box, str]]]:
        """The labels of edges, each with the number of those before it at the same box."""
        seen: Counter[int] = Counter()
        for box, text in self._labels.values():
            yield seen[id(box)], (box, text)
            seen[id(box)] += 1

    @staticmethod
    def _edge(right: _Box, number: int) -> str:
        left = right.inputs[number]
        x1, y1, x2, y2 = left.x + left.width, left.middle, right.x, right.entry(number)
        bend = (x2 - x1) / 2
        across = "" if right.lines else f"H{x2 + right.width:.0f}"
        curve = f"C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
        return f'<path d="M{x1:.0f} {y1:.0f}{curve}{across}"/>'

    @staticmethod
    def _drawn(box: _Box) -> str:
        size = f'x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}"'
        parts = [f'<rect class="{box.kind}" {size} rx="{12 if box.kind == "model" else 4}"/>']
        top = box.middle - len(box.lines) * LINE / 2
        for number, line in enumerate(box.lines):
            kind = ' class="small"' if number else ""
            parts.append(
                f'<text{kind} x="{box.x + PADDING:.0f}" y="{top + 13 + number * LINE:.0f}">{escape(line)}</text>'
            )
        return "".join(parts)


def as_svg(graph: Graph, name: str) -> str:
    """Return the picture: arguments on the left, the consumer on the right, what it asks below."""
    picture = _Picture(graph, name)
    width, height = picture.place()
    said = summary(graph)
    width = max(width, len(said) * LETTER + 2 * MARGIN)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height + LINE:.0f}" role="img">'
    foot = f'<text class="small" x="{MARGIN}" y="{height + 4:.0f}">{escape(said)}</text></svg>'
    title = f"<title>{escape(name)}</title>"
    # The colours are those of the system, and the page around the picture may have others.
    canvas = '<rect class="canvas" width="100%" height="100%" rx="8"/>'
    return "\n".join([head, title, f"<style>{_STYLE}</style>", canvas, *picture.parts(), foot])
