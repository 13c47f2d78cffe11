"""Escapes the text of a flow for people: nothing hidden in it, nothing that the target would interpret.

The text may come from an untrusted source, and each target interprets some characters as markup.
"""

from __future__ import annotations

import html
import re
from typing import Final

from holdfast.model.forms.visible_text import show_invisible
from holdfast.types.redaction import redactor

MAX_TEXT: Final = 16_000
MAX_LINE: Final = 150

# Unicode line and paragraph separators also break lines.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_HOST = re.compile(r"(?P<before>(?:https?://|www\.))(?P<host>[^\s/?#:<>\"']+)", re.IGNORECASE)


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Lines of text with invisible characters spelled out and secrets masked, cut at a limit."""
    plain = (
        redactor.redact(text).encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    )
    plain = _CONTROL.sub(_number, show_invisible(_HOST.sub(_ascii_host, plain)))
    return plain if len(plain) <= limit else f"{plain[:limit]}… ({len(plain):,} characters)"


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """For a subject, a title, a header."""
    plain = " ".join(clean_text(text, 10 * limit).split())
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def error_line(error: BaseException | str) -> str:
    """The text of an error that a service of the operator gave."""
    return one_line(redactor.redact_operator(str(error) or type(error).__name__))


def for_html(text: str) -> str:
    return html.escape(clean_text(text), quote=True).replace("\n", "<br>\n")


def for_slack(text: str) -> str:
    """Without `<` there are no mentions, channel calls, or links with a text that differs from their
    address."""
    return clean_text(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _number(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _ascii_host(found: re.Match[str]) -> str:
    """Host names in punycode, because letters of other scripts can look like Latin ones."""
    host = found["host"]
    if host.isascii():
        return found[0]
    try:
        return found["before"] + host.encode("idna").decode()
    except UnicodeError:
        return found["before"] + host.encode("ascii", "backslashreplace").decode()
