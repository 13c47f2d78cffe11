"""People, groups and roles as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.tables import print_fields
from holdfast.errors import NotFoundError
from holdfast.types.human_time import clock_time

if TYPE_CHECKING:
    from holdfast.holds.directory.base import Circle, Memberships, Person


def memberships_of(person: str, groups: Sequence[Circle], roles: Sequence[Circle]) -> Memberships:
    from holdfast.holds.directory.base import Memberships

    return Memberships(
        frozenset(each.key for each in groups if person in each.members),
        frozenset(each.key for each in roles if person in each.members),
    )


def print_empty(groups: Sequence[Circle], roles: Sequence[Circle]) -> None:
    empty = [f"group:{each.key}" for each in groups if not each.members]
    empty += [f"role:{each.key}" for each in roles if not each.members]
    if empty:
        print_note(f"{', '.join(empty)}: no members.")


def show_circle(circle: Circle | None, which: str, *, json: bool) -> Exit:
    if circle is None:
        raise NotFoundError(f"{which} is not in the directory.", hint="`holdfast directory list` shows all.")
    if json:
        print_json(circle)
    else:
        print_fields([(which, circle.name), ("members", ", ".join(circle.members) or "none")])
    return Exit.ok


def show_person(
    person: Person | None,
    member: Memberships,
    instead: Sequence[Person],
    which: str,
    now: int,
    *,
    json: bool,
) -> Exit:
    if person is None:
        raise NotFoundError(
            f"{which!r} is not in the directory.", hint="`holdfast directory list` shows all."
        )
    if json:
        others = [each.id for each in instead]
        print_json(
            entry_json(person)
            | {"groups": sorted(member.groups), "roles": sorted(member.roles), "stands_in_for": others}
        )
        return Exit.ok
    facts = [
        ("person", person.id),
        ("name", person.name),
        ("address", person.email),
        ("belongs to", memberships_text(member)),
        ("state", state_text(person, now)),
        ("substitute for", ", ".join(each.id for each in instead)),
    ]
    print_fields([(what, value) for what, value in facts if value])
    return Exit.ok


def state_text(person: Person, now: int) -> str:
    if not person.active:
        return "not active"
    away = person.away
    if away is None or (away.until is not None and away.until <= now):
        return ""
    since = f" from {clock_time(away.since)}" if away.since is not None and away.since > now else ""
    until = f" until {clock_time(away.until)}" if away.until is not None else ""
    return f"away{since}{until}, substitute: {away.substitute}"


def memberships_text(member: Memberships) -> str:
    keys = [f"group:{key}" for key in sorted(member.groups)]
    return ", ".join([*keys, *(f"role:{key}" for key in sorted(member.roles))])


def entry_json(value: Any) -> dict[str, Any]:
    return msgspec.to_builtins(value)


def print_entry(kept: Any, text: str, *, json: bool) -> None:
    if json:
        print_json(kept)
    else:
        print_line(text)
