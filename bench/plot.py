"""Two kinds of pictures as SVG: bars in groups, and curves with logarithmic axes. They read well on light and on dark pages."""

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#0f766e", "#b45309", "#7c3aed", "#64748b", "#be123c", "#0369a1", "#4d7c0f")
WIDTH, LEFT, RIGHT = 760, 250, 90
BAR, GAP, BETWEEN = 20, 4, 26
PLOT = 300
OUTLINE = "paint-order:stroke;stroke:#ffffff;stroke-width:4px"
"""For a name that may lie on another curve."""


def _svg(height: float, parts: Sequence[str]) -> str:
    style = "text{font:13px system-ui,sans-serif;fill:#1f2937}.quiet{fill:#4b5563;font-size:12px}"
    inner = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}"><style>{style}</style><rect width="100%" height="100%" rx="6" fill="#ffffff"/>\n'
        f"{inner}\n</svg>\n"
    )


def _text(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def bars(groups: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """Return horizontal bars: one group for each piece of work, one bar for each library."""
    most = max(value for group in groups.values() for value in group.values())
    parts: list[str] = [_text(LEFT, 22, unit, kind="quiet")]
    top = 34.0
    colours: dict[str, str] = {}
    for work, group in groups.items():
        parts.append(_text(12, top + 15, work))
        top += BETWEEN
        for name, value in group.items():
            colour = colours.setdefault(name, COLOURS[len(colours) % len(COLOURS)])
            width = max(1.0, value / most * (WIDTH - LEFT - RIGHT))
            parts.append(_text(LEFT - 8, top + 15, name, "end", "quiet"))
            parts.append(f'<rect x="{LEFT}" y="{top:.0f}" width="{width:.1f}" height="{BAR}" rx="2" fill="{colour}"/>')
            parts.append(_text(LEFT + width + 6, top + 15, f"{value:,.0f}", kind="quiet"))
            top += BAR + GAP
        top += 8
    return _svg(top + 6, parts)


def lines(curves: Mapping[str, Sequence[tuple[float, float]]], unit: str) -> str:
    """Return curves over how much of something there is, with both axes logarithmic."""
    left, right, top = 70, 150, 34
    widest = math.log10(max(x for curve in curves.values() for x, _ in curve))
    values = [math.log10(y) for curve in curves.values() for _, y in curve]
    low, high = math.floor(min(values)), math.ceil(max(values))

    def place(x: float, y: float) -> tuple[float, float]:
        across = left + math.log10(max(x, 1)) / widest * (WIDTH - left - right)
        return across, top + PLOT - (math.log10(y) - low) / (high - low) * PLOT

    parts = [_text(left, 20, unit, kind="quiet")]
    for power in range(low, high + 1):
        _, y = place(1, 10.0**power)
        parts.append(f'<line x1="{left}" x2="{WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e7eb"/>')
        parts.append(_text(left - 8, y + 4, f"{10**power:,}", "end", "quiet"))
    for power in range(int(widest) + 1):
        x, _ = place(10.0**power, 10.0**low)
        parts.append(_text(x, top + PLOT + 20, f"{10**power:,}", "middle", "quiet"))
    taken: list[float] = []
    names: list[str] = []
    for colour, (name, curve) in zip(COLOURS[: len(curves)], curves.items(), strict=True):
        points = [place(x, y) for x, y in curve]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        x, y = points[-1]
        while any(abs(y - other) < 16 for other in taken):
            y -= 4
        taken.append(y)
        names.append(f'<text x="{x + 9:.1f}" y="{y + 4:.1f}" style="fill:{colour};{OUTLINE}">{escape(name)}</text>')
    return _svg(top + PLOT + 34, [*parts, *names])
