"""What the command line says: tables and colour in a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any, TextIO, cast

from holdfast.model.forms.visible_text import escape_invisible, for_terminal
from holdfast.types.redaction import redactor

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text as RichText

    from holdfast.drawing import TextDrawing, TextSpan

_STYLES = {
    "completed": "green",
    "success": "green",
    "failed": "red",
    "fail": "red",
    "unknown": "red",
    "cancelled": "red",
    "pending_input": "yellow",
    "waiting for input": "yellow",
    "waiting": "yellow",
    "sleeping": "yellow",
    "running": "cyan",
    "resumable": "magenta",
    "interrupted": "magenta",
    "retry": "yellow",
    "done": "green",
    "ready": "blue",
    "asking": "bold yellow",
    "skipped": "dim",
    "abandoned": "dim",
    "stopped": "dim",
    "taken": "green",
    "added": "green",
    "removed": "red",
    "changed": "yellow",
    "failure": "red",
    "dead": "dim",
    "line": "dim",
    "note": "dim",
    "label": "cyan",
}

PATIENCE = 2.0
"""Seconds of silence after which somebody who waits wants to know what goes on."""


def clean_text(text: str) -> str:
    """Without secrets, and without what makes a terminal move, recolour or reverse what it shows: prompts,
    errors and live output come from models and strangers, and people decide by what they read."""
    return for_terminal(redactor.redact(text))


def one_line(text: str) -> str:
    return " ".join(clean_text(text).split())


def print_error(text: str) -> None:
    """To stderr, in one paragraph."""
    text = clean_text(text)
    if _is_ours(sys.stderr):
        from rich.console import Console

        Console(stderr=True, highlight=False).print("[bold red]holdfast:[/]", _escaped(text))
    else:
        print(f"holdfast: {text}", file=sys.stderr)


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _is_ours(stream: TextIO) -> bool:
    """A terminal that no live view has at the moment: that one has to know of every line."""
    return stream.isatty() and not hasattr(stream, "rich_proxied_file")


def is_terminal() -> bool:
    return _is_ours(sys.stdout)


def width() -> int:
    """Of the terminal, else of COLUMNS, else what a page holds."""
    from shutil import get_terminal_size

    return max(get_terminal_size((100, 40)).columns, 20)


def is_plain() -> bool:
    """Whether stdout knows nothing but ASCII and its neighbours."""
    return not (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


def print_raw(text: str) -> None:
    """A line as it is. What the encoding of stdout does not know becomes a question mark."""
    text = clean_text(text)
    if is_plain():
        known = sys.stdout.encoding or "ascii"
        text = text.encode(known, "replace").decode(known)
    print(text)


def print_line(text: str = "", style: str = "") -> None:
    text = clean_text(text)
    if is_terminal():
        from rich.console import Console

        Console(highlight=False).print(_escaped(text), style=style or None)
    else:
        print_raw(text)


def print_drawing(drawing: TextDrawing) -> None:
    """A drawing with the colours of its spans."""
    if not is_terminal():
        print_raw(drawing.plain)
        return
    from rich.console import Console

    console = Console(highlight=False)
    for line in drawing.lines:
        console.print(coloured(line), no_wrap=True, crop=True, overflow="crop")


def coloured(line: Sequence[TextSpan]) -> RichText:
    from rich.text import Text

    text = Text()
    for span in line:
        text.append(clean_text(span.text), style=style_of(span.style))
    return text


def style_of(word: str) -> str:
    """The colour of a status, an outcome, or a part of a drawing."""
    return _STYLES.get(word, "")


def print_note(text: str) -> None:
    """About the work, not its result: to stderr, so that a pipe carries results only."""
    text = clean_text(text)
    if _is_ours(sys.stderr):
        from rich.console import Console

        Console(stderr=True, highlight=False).print(_escaped(text), style="dim")
    else:
        print(text, file=sys.stderr)


def status_console() -> Console | None:
    """Where to say what goes on while somebody waits; None where nobody looks."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def live_console() -> Console:
    """For a live view on stdout. What its encoding does not know becomes a question mark."""
    from rich.console import Console

    change = getattr(sys.stdout, "reconfigure", None)
    if is_plain() and change is not None:
        change(errors="replace")
    return Console(highlight=False)


@contextmanager
def busy(text: str) -> Generator[None]:
    """What may take a while says so after two seconds, on stderr in a terminal."""
    console = status_console()
    if console is None:
        yield
        return
    status = console.status(f"{_escaped(text)} ...", spinner="dots")
    late = Timer(PATIENCE, status.start)
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()
        late.join()
        status.stop()


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


def print_json(value: Any) -> None:
    """One JSON document, indented for people in a terminal."""
    print(to_json(value, indent=2 if is_terminal() else None))


def print_list(items: Sequence[Any], following: str | None = None) -> None:
    """A list in JSON, shaped as over HTTP. `following`: what `--after` takes for the next page."""
    print_json({"items": items, "next": following})


def iso_times(fields: dict[str, Any]) -> dict[str, Any]:
    """Instants (`at`, `..._at`, `..._until`) as ISO 8601 in UTC, as over HTTP."""
    from holdfast.types.clock import iso

    return {
        name: iso(value) if isinstance(value, int) and _is_instant(name) else value
        for name, value in fields.items()
    }


def _is_instant(name: str) -> bool:
    return name in ("at", "since", "until") or name.endswith(("_at", "_until"))


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Values that JSON does not know are shown as the nearest thing that it does."""
    import json

    from holdfast.checkpoint.json_view import jsonable

    # JSON is often read in a terminal; as escapes the values stay exact.
    return escape_invisible(json.dumps(jsonable(value), ensure_ascii=False, indent=indent))


_LONG = 300
"""Characters of one text that are shown where a value is too long as a whole."""


def brief(value: Any, limit: int = 2000) -> str:
    """A long value cut, its long texts first: what stands after them is seen too."""
    import json

    whole = to_json(value)
    if len(whole) <= limit:
        return whole
    text = to_json(_with_short_texts(json.loads(whole)))
    cut = text if len(text) <= limit else f"{text[:limit]}…"
    return f"{cut} ({len(whole):,} characters; --json shows all)"


def _with_short_texts(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONG else f"{value[:_LONG]}…"
    if isinstance(value, dict):
        return {key: _with_short_texts(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_with_short_texts(each) for each in cast("list[Any]", value)]
    return value
