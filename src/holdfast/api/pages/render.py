"""Templates, and the headers of every page. Templates are part of the package; every value is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from holdfast._version import __version__
from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import Right
from holdfast.drawing.state_signs import WORDS
from holdfast.holds.queries.history_text import short_date, short_name
from holdfast.holds.queries.summary import assignee_of, countdown, prompt_rest, roughly, title_of
from holdfast.model.forms.visible_text import hides, show_invisible
from holdfast.model.template import as_text
from holdfast.runs.run_view import ShownRun
from holdfast.types.clock import MICROS, iso, to_datetime
from holdfast.types.hold import HoldRow
from holdfast.types.human_time import human_duration
from holdfast.types.redaction import redactor
from holdfast.types.status import HOLD_LABELS, RUN_LABELS, run_label

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
        finalize=_readable,
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
            "exact": exact,
        }
    )
    made.tests.update({"nested": is_nested, "rows": is_rows, "hiding": hides})
    made.globals.update(
        {
            "title_of": title_of,
            "prompt_rest": prompt_rest,
            "whom": whom,
            "countdown": countdown,
            "version": __version__,
            "run_labels": {str(status): label for status, label in RUN_LABELS.items()},
            "hold_labels": {str(status): label for status, label in HOLD_LABELS.items()},
            "run_status": run_status,
            "short_date": short_date,
            "state_words": {str(state): word for state, word in WORDS.items()},
        }
    )
    return made


def _readable(value: Any) -> Any:
    """Every value that a template shows: known secrets are masked, and characters that are not visible, or
    reverse the text, are spelled out. Markup was made from values that went through here."""
    if isinstance(value, (dict, list, tuple)):
        value = str(value)  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return show_invisible(redactor.redact(value))


def exact(value: Any) -> Markup:
    """For the value of a form's control, which the browser sends back: masked, escaped, and otherwise as it
    is."""
    return escape(redactor.redact(value) if isinstance(value, str) else value)


def page(
    request: Request, template: str, *, who: Principal | None = None, status: int = 200, **shown: Any
) -> Response:
    """`who`: the signed-in person, for the header of the page."""
    root = request.scope.get("root_path", "")
    common: dict[str, Any] = {
        "root": root,
        "who": who,
        "here": request.url.path,
        "Right": Right,
        "has_web_app": request.app.state.has_web_app,
    }
    text = _environment().get_template(template).render(common | {"refresh": None} | shown)
    return HTMLResponse(text, status, dict(HEADERS))


def redirect(path: str, request: Request) -> Response:
    """After a POST, so that a reload repeats the page and not the decision. The path is quoted: a request
    cannot turn it into another host or another header."""
    where = quote(f"{request.scope.get('root_path', '')}{path}", safe="/?&=%#+,:@~-._")
    return Response(status_code=303, headers=HEADERS | {"Location": where})


def moment(instant: int) -> str:
    """To the minute, in UTC: the reader's time zone is not known."""
    return f"{to_datetime(instant):%Y-%m-%d %H:%M} UTC"


def run_status(row: ShownRun) -> str:
    """`sleeping until 29 Nov 23:39`."""
    return row.label if row.wakes_at is None else run_label(row.status, short_date(iso(row.wakes_at)))


def since(instant: int, now: int) -> str:
    return "just now" if now - instant < 2 * MICROS else f"{roughly(now - instant)} ago"


def words(name: object) -> str:
    """The label of a word such as `pending_input`."""
    return str(name).replace("_", " ")


def person(name: str) -> str:
    """`user:dana@acme` by the address alone; a group or service keeps its kind."""
    return name.removeprefix("user:")


def whom(row: HoldRow) -> str:
    """The assignee of a hold."""
    return "unassigned" if row.assignee_type == "unrouted" else f"for {short_name(assignee_of(row))}"


def pretty(value: object) -> str:
    """JSON, on one line if that is short."""
    found = msgspec.json.encode(value)
    return found.decode() if len(found) <= _LONG else msgspec.json.format(found, indent=2).decode()


def is_nested(value: object) -> bool:
    return isinstance(value, (dict, list)) and bool(value)  # pyright: ignore[reportUnknownArgumentType]


def is_rows(value: object) -> bool:
    """Whether it is a list of flat objects with the same names, which is shown as a table."""
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
