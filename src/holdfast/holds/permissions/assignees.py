"""Whom a hold waits for: the text that a program writes, read, compared, and looked up in the directory."""

from __future__ import annotations

from typing import Any, Final

from holdfast.errors import DirectoryUnavailableError, InputError
from holdfast.holds.directory.base import Circle, Directory
from holdfast.telemetry import log
from holdfast.types.terms import Assignee
from holdfast.types.text import require_text

MAX_ASSIGNEE: Final = 500
DELEGATED: Final = "delegated_user"
UNROUTED: Final = "unrouted"

_PREFIXES: Final = frozenset({"user", "group", "role", DELEGATED})
_WAYS: Final = "Write user:NAME, group:KEY, role:KEY or delegated_user, on one line."


def parse_assignee(raw: str | None) -> Assignee:
    """What the text says, by itself. Nothing, or a prefix without a value, is unrouted (AS-1 to AS-7).

    Raises InputError for what is no text, is too long, or has control characters in it."""
    if raw is None:
        return Assignee(UNROUTED)
    text = _require_line(raw)
    if not text:
        return Assignee(UNROUTED)
    head, colon, rest = text.partition(":")
    kind, value = head.strip().lower(), rest.strip()
    if kind == DELEGATED:
        return Assignee(DELEGATED, value)
    if not colon or kind not in _PREFIXES:
        return Assignee("user", _spelled(text))
    if not value:
        return Assignee(UNROUTED)
    return Assignee(kind, _spelled(value) if kind == "user" else value)


def person_key(ref: str) -> str:
    """One name for one person, from an id such as `user:dana@acme`: without `user:`, an address in lower case
    (AS-6). Other ids (`service:billing`) stay as they are."""
    return _spelled(ref.removeprefix("user:"))


def same_person(one: str, other: str) -> bool:
    return person_key(one) == person_key(other)


def _spelled(name: str) -> str:
    return name.lower() if looks_like_email(name) else name


def looks_like_email(value: str) -> bool:
    """One `@` with something on both sides, no space, nothing that controls (NO-4): `alice@acme` counts."""
    name, at, place = value.partition("@")
    if not (at and name and place) or "@" in place:
        return False
    return value.isprintable() and not any(letter.isspace() for letter in value)


async def route(
    raw: str | None, tenant: str, directory: Directory | None, *, delegation: str | None = None
) -> Assignee:
    """Whom the text means here and now (AS-8, AS-9). `delegation`: the id of the run's deployment where
    that is delegated to somebody, be it revoked for now; who that is, is asked whenever it matters.

    Nobody to be found is no error: the hold is unrouted, with the reason."""
    parsed = parse_assignee(raw)
    if parsed.type == DELEGATED:
        return _delegated(parsed, delegation)
    if directory is None or parsed.type == UNROUTED:
        return parsed
    try:
        return await _known(parsed, tenant, directory)
    except DirectoryUnavailableError as error:
        # The text stands: whether somebody is meant by it is asked again when they want to decide.
        log.warning("whether there is %s could not be asked: %s", parsed, error)
        return parsed


def _delegated(parsed: Assignee, delegation: str | None) -> Assignee:
    if delegation is None:
        return _lost("the run's deployment is delegated to nobody", parsed)
    return Assignee(DELEGATED, parsed.value or delegation)


async def _known(parsed: Assignee, tenant: str, directory: Directory) -> Assignee:
    if parsed.type == "user":
        person = await directory.person(tenant, parsed.value)
        if person is None:
            return _lost(f"the directory knows no user {parsed.value!r}", parsed)
        return parsed if person.active else _lost(f"user {parsed.value!r} is not active any more", parsed)
    circle = await _circle(parsed, tenant, directory)
    if circle is None:
        return _lost(f"the directory knows no {parsed.type} {parsed.value!r}", parsed)
    if not circle.members:
        # Somebody may join: it stays theirs, but until then nobody sees it.
        log.warning("a hold went to %s, which has no members; only admins see it", parsed)
        return Assignee(parsed.type, parsed.value, f"{parsed} has no members yet")
    return parsed


async def _circle(parsed: Assignee, tenant: str, directory: Directory) -> Circle | None:
    ask = directory.group if parsed.type == "group" else directory.role
    return await ask(tenant, parsed.value)


def _lost(why: str, parsed: Assignee) -> Assignee:
    log.warning("a hold for %s is unrouted: %s", parsed, why)
    return Assignee(UNROUTED, reason=why)


def _require_line(raw: Any) -> str:
    text = require_text(raw, "an assignee", hint=_WAYS).strip()
    if len(text) > MAX_ASSIGNEE:
        raise InputError(f"an assignee has at most {MAX_ASSIGNEE} characters, not {len(text):,}.", hint=_WAYS)
    if not text.isprintable():
        at = next(place for place, letter in enumerate(text) if not letter.isprintable())
        raise InputError(
            f"an assignee holds the character {text[at]!a} at {at}, which cannot be seen.", hint=_WAYS
        )
    return text
