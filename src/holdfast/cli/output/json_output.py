"""JSON on stdout, and values as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from holdfast.cli.output.console import is_terminal
from holdfast.model.forms.visible_text import escape_invisible


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
