"""Where several people have to agree: one more vote, and what all of them come to (RS-10)."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.errors import AlreadyVotedError, NotAssignedError
from holdfast.holds.approvals import Tally, Vote, has_voted, seats_of, tally, turn_of
from holdfast.holds.assigning import parse_assignee, person_key
from holdfast.holds.closing import resolved
from holdfast.holds.directory.base import Directory
from holdfast.holds.office import Office, Permit
from holdfast.holds.telling import VOTED, entry, event
from holdfast.types.clock import iso
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.terms import Actor, Assignee


class Ballot(Vote, frozen=True, kw_only=True):
    """A vote as it is kept: with what was filled in."""

    resolution: dict[str, Any]


async def ballots_of(office: Office, row: HoldRow) -> list[Ballot]:
    """In the order in which they were cast."""
    notes = await office.store.hold_notes(row.id, kinds=("vote",))
    found = [msgspec.json.decode(note.body, type=Ballot) for note in notes]
    return sorted(found, key=lambda each: each.at)


async def voted(
    office: Office, actor: Actor, row: HoldRow, permit: Permit, resolution: dict[str, Any], now: int
) -> HoldChange:
    """The vote, and the decision where it is the closing one. Raises AlreadyVotedError, and NotAssignedError
    for somebody without a seat or whose turn it is not."""
    if permit.verdict.authority == "override":
        return resolved(row, resolution, by=actor.id, at=now)
    before = await ballots_of(office, row)
    ballot = _ballot(row, actor, permit, resolution, now)
    _demand_turn(row, before, ballot)
    cast = [*before, ballot]
    count = tally(row, cast, electorate=await electorate(row, office.directory))
    if count.outcome is None:
        return _one_more(row, actor, ballot, len(before), count)
    whole = _outcome(resolution, cast, count)
    closing = resolved(row, whole, by=actor.id, at=now)
    note, said = _note(row, actor, ballot, len(before)), _said(row, actor, ballot, now)
    return msgspec.structs.replace(closing, notes=(note,), audit=(said, *closing.audit))


def _ballot(row: HoldRow, actor: Actor, permit: Permit, resolution: dict[str, Any], now: int) -> Ballot:
    vetoes = [parse_assignee(text) for text in row.terms.approval.veto]
    return Ballot(
        person=actor.id,
        decision=resolution["decision"],
        at=now,
        seats=tuple(str(each) for each in seats_of(row) if _sits(permit, each)),
        veto=any(_sits(permit, each) for each in vetoes),
        on_behalf_of=resolution["on_behalf_of"],
        resolution=resolution,
    )


def _sits(permit: Permit, seat: Assignee) -> bool:
    return any(capacity.fits(seat) for capacity in permit.standing.capacities)


def _demand_turn(row: HoldRow, before: list[Ballot], ballot: Ballot) -> None:
    if has_voted(row.terms.approval, before, ballot.person, ballot.seats):
        raise AlreadyVotedError(
            f"{ballot.person} has voted on hold {row.id} already.", hint="One person, one vote.", hold=row.id
        )
    turn = turn_of(row, before)
    if not ballot.seats and not ballot.veto:
        raise NotAssignedError(f"{ballot.person} has no vote on hold {row.id}.", hold=row.id)
    if turn is not None and str(turn) not in ballot.seats and not ballot.veto:
        raise NotAssignedError(
            f"hold {row.id} waits for {turn} now, not for {ballot.person}.",
            hint="It is signed in order.",
            hold=row.id,
            turn=str(turn),
        )


def _one_more(row: HoldRow, actor: Actor, ballot: Ballot, number: int, count: Tally) -> HoldChange:
    """The claim of whoever has voted ends with it; that also makes votes wait for each other."""
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=ballot.at,
        fields={"claimed_by": None, "claim_until": None},
        audit=(_said(row, actor, ballot, ballot.at, missing=count.missing),),
        notes=(_note(row, actor, ballot, number),),
        drop_notes=(("draft", person_key(actor.id)),),
        event=event(row, VOTED, ballot.at, by=actor.id),
    )


def _said(row: HoldRow, actor: Actor, ballot: Ballot, now: int, **more: Any) -> Any:
    known = {"decision": ballot.decision, "authority": ballot.resolution["authority"], **more}
    return entry(row, actor.id, "voted", now, **known)


def _note(row: HoldRow, actor: Actor, ballot: Ballot, number: int) -> Note:
    distinct = row.terms.approval.distinct_people
    slot = person_key(actor.id) if distinct else f"{person_key(actor.id)}#{number}"
    body = msgspec.json.encode(ballot)
    return Note(hold=row.id, kind="vote", slot=slot, person=actor.id, at=ballot.at, body=body)


def _outcome(resolution: dict[str, Any], cast: list[Ballot], count: Tally) -> dict[str, Any]:
    """What was decided, with what the last to say so had filled in, and who voted how."""
    agreeing = [each for each in cast if each.decision == count.outcome]
    filled = agreeing[-1].resolution if agreeing else {"response_data": None, "comment": None}
    votes = [
        {
            "person": each.person,
            "decision": each.decision,
            "at": iso(each.at),
            "comment": each.resolution.get("comment"),
            "on_behalf_of": each.on_behalf_of,
            "members": each.resolution.get("members"),
        }
        for each in cast
    ]
    said = {**resolution, "response_data": filled.get("response_data"), "comment": filled.get("comment")}
    return {**said, "decision": count.outcome, "votes": votes, "outcome_by": count.why}


async def electorate(row: HoldRow, directory: Directory | None) -> int | None:
    """How many people may vote; none: nobody knows, for a group may be anybody."""
    people: set[str] = set()
    for seat in seats_of(row):
        found = await _people(seat, row.tenant, directory)
        if found is None:
            return None
        people |= found
    return len(people)


async def _people(seat: Assignee, tenant: str, directory: Directory | None) -> set[str] | None:
    if seat.type == "user":
        return {seat.value}
    if directory is None or seat.type not in ("group", "role"):
        return None
    circle = await (directory.group if seat.type == "group" else directory.role)(tenant, seat.value)
    return None if circle is None else {person_key(member) for member in circle.members}
