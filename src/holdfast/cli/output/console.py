"""What the command line prints: colour in a terminal, plain text in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, TextIO

from holdfast.model.forms.visible_text import for_terminal
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
