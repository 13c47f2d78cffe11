"""Assignees: parsed from the text that a program writes, compared, and looked up in the directory."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec

from holdfast.errors import DirectoryUnavailableError, InputError
from holdfast.holds.directory.base import Circle, Directory
from holdfast.telemetry import log
from holdfast.types.hold import NewHold
from holdfast.types.terms import Assignee
from holdfast.types.text import require_text

MAX_ASSIGNEE: Final = 500
DELEGATED: Final = "delegated_user"
UNROUTED: Final = "unrouted"

_PREFIXES: Final = frozenset({"user", "group", "role", DELEGATED})
_WAYS: Final = "Write user:NAME, group:KEY, role:KEY or delegated_user, on one line."


def parse_assignee(raw: str | None) -> Assignee:
    """The parsed text, without a lookup. An empty text, or a prefix without a value, is unrouted (AS-1 to
    AS-7).

    Raises InputError if it is not text, is too long, or has control characters."""
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


@lru_cache(1024)
def person_key(ref: str) -> str:
    """The canonical name of a person, from an id such as `user:dana@acme`: without `user:`, an address in
    lower case (AS-6). Other ids (`service:billing`) stay as they are."""
    return _spelled(ref.removeprefix("user:"))


def same_person(one: str, other: str) -> bool:
    return person_key(one) == person_key(other)


def _spelled(name: str) -> str:
    # Only addresses: ids of other systems may differ in case alone.
    return name.lower() if looks_like_email(name) else name


def looks_like_email(value: str) -> bool:
    """One `@` with text on both sides, no spaces or control characters (NO-4): `alice@acme` counts."""
    name, at, place = value.partition("@")
    if not (at and name and place) or "@" in place:
        return False
    return value.isprintable() and not any(letter.isspace() for letter in value)


async def route(
    raw: str | None, tenant: str, directory: Directory | None, *, delegation: str | None = None
) -> Assignee:
    """The assignee that the text stands for now (AS-8, AS-9). `delegation`: the id of the run's deployment
    if it was ever delegated, even if that is revoked now; the person is looked up when needed.

    An unknown assignee is not an error: the hold is unrouted, with the reason."""
    parsed = parse_assignee(raw)
    if parsed.type == DELEGATED:
        return _delegated(parsed, delegation)
    if directory is None or parsed.type == UNROUTED:
        return parsed
    try:
        return await _known(parsed, tenant, directory)
    except DirectoryUnavailableError as error:
        # The text is kept: the directory is asked again when a person wants to decide.
        log.warning("%s could not be looked up: %s", parsed, error)
        return parsed


def _delegated(parsed: Assignee, delegation: str | None) -> Assignee:
    if delegation is None:
        return _lost("the run's deployment is not delegated", parsed)
    return Assignee(DELEGATED, parsed.value or delegation)


async def _known(parsed: Assignee, tenant: str, directory: Directory) -> Assignee:
    if parsed.type == "user":
        person = await directory.person(tenant, parsed.value)
        if person is None:
            return _lost(f"user {parsed.value!r} is not in the directory", parsed)
        return parsed if person.active else _lost(f"user {parsed.value!r} is not active", parsed)
    circle = await _circle(parsed, tenant, directory)
    if circle is None:
        return _lost(f"{parsed.type} {parsed.value!r} is not in the directory", parsed)
    if not circle.members:
        # A person may join later: the hold stays assigned to the group, but until then only admins see it.
        log.warning("a hold was assigned to %s, which has no members; only admins see it", parsed)
        return Assignee(parsed.type, parsed.value, f"{parsed} has no members yet")
    return parsed


async def _circle(parsed: Assignee, tenant: str, directory: Directory) -> Circle | None:
    ask = directory.group if parsed.type == "group" else directory.role
    return await ask(tenant, parsed.value)


def _lost(why: str, parsed: Assignee) -> Assignee:
    log.warning("a hold for %s is unassigned: %s", parsed, why)
    return Assignee(UNROUTED, reason=why)


def _require_line(raw: Any) -> str:
    text = require_text(raw, "an assignee", hint=_WAYS).strip()
    if len(text) > MAX_ASSIGNEE:
        raise InputError(
            f"an assignee must have at most {MAX_ASSIGNEE} characters, not {len(text):,}.", hint=_WAYS
        )
    # Invisible characters would make two assignees look the same to a person.
    if not text.isprintable():
        at = next(place for place, letter in enumerate(text) if not letter.isprintable())
        raise InputError(
            f"the assignee has the invisible character {text[at]!a} at position {at}.", hint=_WAYS
        )
    return text


def with_named_by(hold: NewHold, names: Iterable[str | None], people: tuple[str, ...]) -> NewHold:
    """The hold with who wrote these assignees through a server; nobody: an operator did."""
    if not people:
        return hold
    more = {str(parse_assignee(name)): people for name in names if name}
    terms = msgspec.structs.replace(hold.terms, named_by={**hold.terms.named_by, **more})
    return msgspec.structs.replace(hold, terms=terms) if more else hold
