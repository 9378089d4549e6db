"""Two plain SVG charts: a bar chart for comparisons, and a line over sizes. Pure: figures in, text out."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH = 760
BAR, GAP = 20, 10
LABELS, NUMBERS = 220, 80  # left and right of the bars
TOP, BOTTOM = 40, 40
LINE_HEIGHT = 280
_OURS, _OTHERS, _INK = "#2f6feb", "#8b949e", "#57606a"  # readable on white and on black


class Bar(NamedTuple):
    label: str
    value: float
    shown: str
    is_ours: bool


class Point(NamedTuple):
    x: float  # above zero, on a logarithmic axis
    y: float
    low: float
    high: float
    label: str


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Longest bar first; the axis starts at zero."""
    ordered = sorted(rows, key=lambda row: -row.value)
    most = max((row.value for row in ordered), default=0.0) or 1.0
    room = WIDTH - LABELS - NUMBERS
    parts = [_text(0, 20, title, weight="bold")]
    for number, row in enumerate(ordered):
        y = TOP + number * (BAR + GAP)
        length = max(room * row.value / most, 1.0)
        colour = _OURS if row.is_ours else _OTHERS
        parts.append(_text(LABELS - 8, y + 15, row.label, anchor="end"))
        parts.append(f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
        parts.append(_text(LABELS + length + 6, y + 15, row.shown))
    return _svg(title, TOP + len(ordered) * (BAR + GAP), parts)


def line(title: str, points: Sequence[Point], level: float) -> str:
    """A line with the range of each point's rounds, and a dashed line at the goal."""
    ordered = sorted(points)
    most = max([level, *(point.high for point in ordered)]) * 1.1
    low, high = math.log10(ordered[0].x), math.log10(ordered[-1].x)
    left, right, bottom = 60, WIDTH - 40, LINE_HEIGHT - BOTTOM

    def place(point: Point, value: float) -> tuple[float, float]:
        along = (math.log10(point.x) - low) / ((high - low) or 1.0)
        return left + along * (right - left), bottom - value / most * (bottom - TOP)

    parts = [_text(0, 20, title, weight="bold")]
    for value in (0.0, level, 1.0):
        _, y = place(ordered[0], value)
        dash = ' stroke-dasharray="4 4"' if value == level else ""
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_OTHERS}"{dash}/>')
        parts.append(_text(left - 8, y + 4, f"{value:g}", anchor="end"))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(point, point.y) for point in ordered))
    parts.append(f'<polyline points="{path}" fill="none" stroke="{_OURS}" stroke-width="2"/>')
    for point in ordered:
        x, y = place(point, point.y)
        (_, least), (_, greatest) = place(point, point.low), place(point, point.high)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{least:.1f}" y2="{greatest:.1f}" stroke="{_OURS}"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_OURS}"/>')
        parts.append(_text(x, bottom + 20, point.label, anchor="middle"))
    return _svg(title, LINE_HEIGHT, parts)


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-weight="{weight}" fill="{_INK}">{escape(text)}</text>'


def _svg(title: str, height: float, parts: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}'
        f' font-family="sans-serif" font-size="13" role="img" aria-label="{escape(title)}">'
    )
    return "\n".join([head, *parts, "</svg>", ""])
