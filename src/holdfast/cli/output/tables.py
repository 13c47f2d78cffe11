"""Tables, and names with their values: with colour in a terminal, plain text in a pipe."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.output.console import clean_text, is_terminal, print_raw, style_of


def print_fields(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values, one pair a line; empty values are left out."""
    shown = [(name, clean_text(value)) for name, value in pairs if value]
    wide = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        if is_terminal():
            _print_field(name, value, wide)
        else:
            print_raw(f"{name:{wide}}  {value}")


def _print_field(name: str, value: str, wide: int) -> None:
    from rich.console import Console
    from rich.text import Text

    line = Text.assemble((f"{name:{wide}}  ", "dim"), (value, style_of(value)))
    Console(highlight=False).print(line)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    rows = [[clean_text(str(cell)) for cell in row] for row in rows]
    if is_terminal():
        _print_rich_table(heads, rows)
        return
    widths = [max(len(str(row[i])) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        print_raw("  ".join(f"{cell:{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip())


def _print_rich_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for i, head in enumerate(heads):
        grid.add_column(head, no_wrap=i == 0, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell, style=style_of(cell)) for cell in row))
    Console(highlight=False).print(grid)
