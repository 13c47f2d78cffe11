"""What the command line says: tables and colour in a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

_STYLES = {
    "completed": "green",
    "success": "green",
    "failed": "red",
    "fail": "red",
    "unknown": "red",
    "cancelled": "red",
    "pending_input": "yellow",
    "waiting": "yellow",
    "running": "cyan",
    "resumable": "magenta",
    "retry": "yellow",
}


def complain(text: str) -> None:
    """To stderr, in one paragraph."""
    if sys.stderr.isatty():
        from rich.console import Console

        Console(stderr=True, highlight=False).print("[bold red]holdfast:[/]", _escaped(text))
    else:
        print(f"holdfast: {text}", file=sys.stderr)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def say(text: str = "", style: str = "") -> None:
    if is_terminal():
        from rich.console import Console

        Console(highlight=False).print(_escaped(text), style=style or None)
    else:
        print(text)


def note(text: str) -> None:
    """About the work, not its result: to stderr, so that a pipe carries results only."""
    if sys.stderr.isatty():
        from rich.console import Console

        Console(stderr=True, highlight=False).print(_escaped(text), style="dim")
    else:
        print(text, file=sys.stderr)


def fields(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values, one pair a line; empty values are left out."""
    shown = [(name, value) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        if is_terminal():
            _field(name, value, width)
        else:
            print(f"{name:{width}}  {value}")


def _field(name: str, value: str, width: int) -> None:
    from rich.console import Console
    from rich.text import Text

    line = Text(f"{name:{width}}  ", style="dim")
    line.append(value, style=_STYLES.get(value, ""))
    Console(highlight=False).print(line)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if is_terminal():
        _rich_table(heads, rows)
        return
    widths = [max(len(str(row[i])) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _rich_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for i, head in enumerate(heads):
        grid.add_column(head, no_wrap=i == 0, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(grid)


def print_json(value: Any) -> None:
    """One JSON document, indented for people in a terminal."""
    print(to_json(value, indent=2 if is_terminal() else None))


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Values that JSON does not know are shown as the nearest thing that it does."""
    import json

    from holdfast.checkpoint.interface import jsonable

    return json.dumps(jsonable(value), ensure_ascii=False, indent=indent)


def brief(value: Any, limit: int = 2000) -> str:
    text = to_json(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters; --json shows all)"
