"""What a measurement comes to: lines of the table, and how they are shown."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import msgspec


class Line(msgspec.Struct, kw_only=True):
    """One figure. `most` and `least` are its targets; with neither it is there for information.
    `id`: of the target in `bench.targets`."""

    row: str
    name: str
    id: str = ""
    value: float | None
    unit: str
    most: float | None = None
    least: float | None = None
    spread: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "absent"
        if self.most is None and self.least is None:
            return ""
        fits = (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )
        return "ok" if fits else "MISSED"

    @property
    def target(self) -> str:
        if self.most is not None:
            return f"<= {number(self.most)}"
        return f">= {number(self.least)}" if self.least is not None else ""


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def show(line: Line) -> str:
    spread = "" if line.spread is None else f"±{line.spread * 100:.0f}%"
    return (
        f"{line.row:<2}{line.name:<52}{number(line.value):>10} {line.unit:<9}{spread:>6} "
        f"{line.target:>10} {line.verdict:<7}{line.note}"
    )


HEADING = f"{'':<2}{'':<52}{'measured':>10} {'':<9}{'':>6} {'target':>10}"


def print_lines(lines: Iterable[Line], *, quiet: bool) -> None:
    """As soon as it is known: a long run must not look like a hung one."""
    for line in lines:
        print(show(line), file=sys.stderr if quiet else sys.stdout, flush=True)
