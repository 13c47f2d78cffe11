"""Defaults of a deployment for holds whose flow does not set them."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import InputError
from holdfast.holds.permissions.assignees import parse_assignee
from holdfast.model.hold_declaration import expiry_of
from holdfast.types.clock import MICROS, micros
from holdfast.types.deployment import Defaults
from holdfast.types.duration import BusinessDuration, DurationError, parse_duration, parse_length
from holdfast.types.hold import NewHold
from holdfast.types.terms import PRIORITIES
from holdfast.types.text import clean_text

ACTIONS = ("cancel", "default_option", "fail")


def with_defaults(hold: NewHold, defaults: Defaults) -> NewHold:
    """Fill in what the flow does not set. Breakpoints have no assignee and no timeout."""
    if hold.type == "debug_breakpoint":
        return hold
    more: dict[str, Any] = {}
    if hold.assignee is None and defaults.assignee:
        more["assignee"] = defaults.assignee
    if hold.priority == "normal" and defaults.priority:
        more["priority"] = defaults.priority
    if hold.reminder_interval is None and defaults.reminder:
        more["reminder_interval"] = _minutes(defaults.reminder)
    terms = hold.terms
    if terms.calendar is None and defaults.calendar:
        terms = msgspec.structs.replace(terms, calendar=defaults.calendar)
    hold = msgspec.structs.replace(hold, terms=terms, **more)
    waits_for_ever = hold.expires_at is None and terms.timeout is None and not terms.ladder
    return _expiring(hold, defaults) if waits_for_ever and defaults.timeout else hold


def _expiring(hold: NewHold, defaults: Defaults) -> NewHold:
    length = parse_length(defaults.timeout or "")
    expiry = expiry_of(defaults.on_timeout, hold.terms)
    # Where certain people must decide, a deadline that the flow did not set decides nothing: it expires.
    decides = expiry.action == "default_option" and hold.terms.binds_everybody
    action = None if decides else expiry.action
    more: dict[str, Any] = {"expiry_action": action, "escalation_target": expiry.target}
    if isinstance(length, BusinessDuration):
        more["terms"] = msgspec.structs.replace(hold.terms, timeout=defaults.timeout)
    else:
        more |= {"expires_at": hold.created_at + micros(length), "original_timeout": micros(length)}
    return msgspec.structs.replace(hold, **more)


def _minutes(text: str) -> int:
    return max(1, micros(parse_duration(text)) // (60 * MICROS))


def check_defaults(given: Defaults, name: str) -> Defaults:
    """Raises InputError that names the field."""
    where = f"deployment {name!r}"
    if given.assignee is not None:
        parse_assignee(given.assignee)
    if given.priority is not None and given.priority not in PRIORITIES:
        raise InputError(
            f"{where}: priority {clean_text(repr(given.priority), 80)} is not one of {', '.join(PRIORITIES)}."
        )
    try:
        if given.timeout is not None:
            parse_length(given.timeout)
        if given.reminder is not None:
            parse_duration(given.reminder)
    except DurationError as error:
        raise InputError(f"{where}: {error}") from error
    _check_action(given, where)
    return given


def _check_action(given: Defaults, where: str) -> None:
    action, _, target = (given.on_timeout or "fail").partition(":")
    if action == "escalate" and not target.strip():
        raise InputError(
            f"{where}: the escalation of on_timeout has no target.", hint="Write escalate:group:leads."
        )
    if action != "escalate" and given.on_timeout not in (None, *ACTIONS):
        raise InputError(
            f"{where}: on_timeout {clean_text(repr(given.on_timeout), 80)} cannot be a default for holds.",
            hint=f"Use one of {', '.join(ACTIONS)}, escalate:<assignee>.",
        )
    if given.on_timeout is not None and given.timeout is None:
        raise InputError(f"{where}: on_timeout is set without timeout.", hint="Set timeout too.")
