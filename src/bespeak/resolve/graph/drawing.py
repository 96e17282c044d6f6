"""Draw trees as text: the path to a fault in an error, and a whole graph."""

from collections.abc import Sequence
from dataclasses import dataclass, field


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
