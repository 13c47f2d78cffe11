"""The comparison as a picture: one panel a measure, bars on a logarithmic scale. Plain SVG, no library."""

from __future__ import annotations

import math
from html import escape
from typing import Any

WIDTH, LABEL, BAR, GAP, HEAD = 900, 340, 18, 6, 56
TITLES = {
    ("A", "us a step"): "A. One step of a line of 100 nodes (microseconds)",
    ("B", "MB stored"): "B. 1,000 steps that append 1 KB each: megabytes stored",
    ("B", "last/first"): "B. The last steps of these, by the first",
    ("C", "us a step"): "C. A step beside a value of 1 MB (microseconds)",
    ("C", "MB stored"): "C. 100 such steps: megabytes stored",
    ("E", "ms to resume"): "E. Resume a run of 1,000 steps and do one more (milliseconds)",
    ("F", "ms a person"): "F. Start, pause for a person, answer, end (milliseconds)",
}
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2933 }
  .title { font-weight: 600 } .small { font-size: 11px; fill: #616e7c }
  .ours { fill: #0b7285 } .peer { fill: #adb5bd }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7eb } .small { fill: #9aa5b1 } .ours { fill: #3bc9db } .peer { fill: #52606d }
  }
"""


def draw(data: dict[str, Any]) -> str:
    """Of a report as `compare.report` makes it."""
    top, parts = HEAD, []
    for (row, unit), title in TITLES.items():
        bars = sorted(
            (one for one in data["figures"] if one["row"] == row and one["unit"] == unit),
            key=lambda one: one["value"],
        )
        if bars:
            parts.append(_panel(title, bars, top))
            top += 34 + len(bars) * (BAR + GAP) + 18
    where = f"{data['machine']}, Python {data['python']}, {data['at'][:10]}"
    said = f"{where}; shorter is better, scales are logarithmic"
    head = (
        f'<text class="title" x="16" y="24">Holdfast beside its peers, one run on one machine</text>'
        f'<text class="small" x="16" y="42">{escape(said)}</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img" '
        f'aria-label="Benchmark of Holdfast beside its peers"><style>{STYLE}</style>{head}{"".join(parts)}'
        "</svg>\n"
    )


def _panel(title: str, bars: list[dict[str, Any]], top: int) -> str:
    low = math.log10(max(min(one["value"] for one in bars), 1e-3)) - 0.3
    high = max(math.log10(max(one["value"], 1e-3)) for one in bars)
    parts = [f'<text class="title" x="16" y="{top + 16}">{escape(title)}</text>']
    for index, one in enumerate(bars):
        y = top + 28 + index * (BAR + GAP)
        share = (math.log10(max(one["value"], 1e-3)) - low) / max(high - low, 0.1)
        length = max(2, share * (WIDTH - LABEL - 110))
        kind = "ours" if one["runtime"].startswith("Holdfast") else "peer"
        parts.append(
            f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(one["runtime"])}</text>'
            f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{length:.0f}" height="{BAR}" rx="2"/>'
            f'<text class="small" x="{LABEL + length + 6:.0f}" y="{y + 13}">{_number(one["value"])}</text>'
        )
    return "".join(parts)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"
