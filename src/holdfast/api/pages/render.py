"""Templates, and what every page is sent with. Templates are ours alone; every value in them is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast._version import __version__
from holdfast.api.auth.principal import Principal, Right
from holdfast.drawing.labels import WORDS
from holdfast.holds.queries.summary import assignee_of, countdown, roughly, title_of
from holdfast.model.template import as_text
from holdfast.types.clock import MICROS, iso, to_datetime
from holdfast.types.hold import HoldRow
from holdfast.types.human_time import human_duration

HERE: Final = Path(__file__).parent
POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Cookie",
}
STATUS_WORDS: Final = {
    "pending": "in line",
    "running": "at work",
    "waiting": "waits for a time",
    "pending_input": "waits for a person",
    "resumable": "can go on",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "stopped",
    "resolved": "decided",
    "expired": "expired",
}
"""How people say a status; of holds too."""
_LONG: Final = 80
_COLUMNS: Final = 8


@cache
def _environment() -> Environment:
    made: Any = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        {
            "moment": moment,
            "iso": iso,
            "lasting": human_duration,
            "since": since,
            "text": as_text,
            "pretty": pretty,
            "words": words,
            "person": person,
        }
    )
    made.tests.update({"nested": is_nested, "rows": is_rows})
    made.globals.update(
        {
            "title_of": title_of,
            "whom": whom,
            "countdown": countdown,
            "version": __version__,
            "status_words": STATUS_WORDS,
            "state_words": {str(state): word for state, word in WORDS.items()},
        }
    )
    return made


def page(
    request: Request, template: str, *, who: Principal | None = None, status: int = 200, **shown: Any
) -> Response:
    """`who`: whoever is signed in, for the head of the page."""
    root = request.scope.get("root_path", "")
    common: dict[str, Any] = {"root": root, "who": who, "here": request.url.path, "Right": Right}
    text = _environment().get_template(template).render(common | {"refresh": None} | shown)
    return HTMLResponse(text, status, dict(HEADERS))


def redirect(path: str, request: Request) -> Response:
    """POST, then look: what is reloaded is a page, and not the decision. Whatever a path brought along stays
    a part of this address: neither another host nor another header can be made of it."""
    where = quote(f"{request.scope.get('root_path', '')}{path}", safe="/?&=%#+,:@~-._")
    return Response(status_code=303, headers=HEADERS | {"Location": where})


def moment(instant: int) -> str:
    """To the minute, in UTC: who reads it may be anywhere."""
    return f"{to_datetime(instant):%Y-%m-%d %H:%M} UTC"


def since(instant: int, now: int) -> str:
    return "just now" if now - instant < 2 * MICROS else f"{roughly(now - instant)} ago"


def words(name: object) -> str:
    """`pending_input` as people write it."""
    return str(name).replace("_", " ")


def person(name: str) -> str:
    """`user:dana@acme` by the name alone; what is no person keeps its kind."""
    return name.removeprefix("user:")


def whom(row: HoldRow) -> str:
    """Whom a hold waits for."""
    return "nobody yet" if row.assignee_type == "unrouted" else person(assignee_of(row))


def pretty(value: object) -> str:
    """JSON, on one line where that is short."""
    found = msgspec.json.encode(value)
    return found.decode() if len(found) <= _LONG else msgspec.json.format(found, indent=2).decode()


def is_nested(value: object) -> bool:
    return isinstance(value, (dict, list)) and bool(value)  # pyright: ignore[reportUnknownArgumentType]


def is_rows(value: object) -> bool:
    """A list of flat objects with the same names: a table."""
    if not isinstance(value, list) or not value:
        return False
    rows = cast("list[Any]", value)
    if any(not isinstance(each, dict) or not each for each in rows):
        return False
    names = set(cast("dict[str, Any]", rows[0]))
    return len(names) <= _COLUMNS and all(
        set(row) == names and not any(is_nested(cell) for cell in row.values())
        for row in cast("list[dict[str, Any]]", rows)
    )
