"""The demo's output: a terminal with colours, or a plain pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

_STYLES = {"success": "green", "retry": "yellow", "completed": "bold green"}


class Printout:
    def __init__(self) -> None:
        self.rich = sys.stdout.isatty()
        self._out = Console(highlight=False)

    def title(self, text: str) -> None:
        if self.rich:
            self._out.print()
            self._out.print(Rule(Text(text, style="bold"), align="left", style="cyan"))
        else:
            print(f"\n== {text}")

    def say(self, text: str, style: str = "") -> None:
        self._out.print(Text(text, style=style)) if self.rich else print(text)
        sys.stdout.flush()

    def typed(self, command: str) -> None:
        """A command as a person would type it."""
        if self.rich:
            self._out.print(Text.assemble(("  $ ", "dim"), (command, "bold cyan")))
        else:
            print(f"  $ {command}")

    def framed(self, text: str, title: str) -> None:
        if self.rich:
            self._out.print(Panel(Text(text, style="bold"), title=title, border_style="yellow", expand=False))
        else:
            print(f"  [{title}] {text}")

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if not self.rich:
            widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
            for row in [heads, *rows]:
                print("  " + "  ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)).rstrip())
            return
        grid = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=True)
        for head in heads:
            grid.add_column(head)
        for row in rows:
            grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
        self._out.print(grid)
