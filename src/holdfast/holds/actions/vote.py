"""Holds that need several approvals: one more vote, and the result of all votes (RS-10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from holdfast.errors import AlreadyVotedError, NotAssignedError
from holdfast.holds.actions.audit_entries import VOTED, entry, event
from holdfast.holds.actions.close import resolved
from holdfast.holds.actions.context import HoldContext, Permit
from holdfast.holds.actions.reassign import moved
from holdfast.holds.permissions.actor import names_as
from holdfast.holds.permissions.assignees import parse_assignee, person_key, route
from holdfast.holds.permissions.check import places
from holdfast.holds.permissions.participants import names_behind
from holdfast.holds.permissions.vote_count import (
    Vote,
    VoteTally,
    electorate,
    has_voted,
    rejects,
    seats_taken,
    shared_participant,
    tally,
    turn_of,
    vetoes,
)
from holdfast.types.clock import iso
from holdfast.types.hold import HoldChange, HoldRow, Note
from holdfast.types.terms import Actor, Assignee

_FILLED: Final = ("response_data", "comment", "edited_fields")


class Ballot(Vote, frozen=True, kw_only=True):
    """A vote as it is stored: with the data of its form, and the token and session that were used."""

    resolution: dict[str, Any]
    credential: str = ""
    session: str = ""


async def cast_ballots(ctx: HoldContext, row: HoldRow) -> list[tuple[str, Ballot]]:
    """Each with the slot of its note, in the order in which they were cast."""
    notes = await ctx.store.hold_notes(row.id, kinds=("vote",))
    found = [(note.slot, msgspec.json.decode(note.body, type=Ballot)) for note in notes]
    return sorted(found, key=lambda each: each[1].at)


async def ballots_of(ctx: HoldContext, row: HoldRow) -> list[Ballot]:
    return [ballot for _, ballot in await cast_ballots(ctx, row)]


async def voted(
    ctx: HoldContext, actor: Actor, row: HoldRow, permit: Permit, resolution: dict[str, Any], now: int
) -> HoldChange:
    """The vote, and the decision if it is the last one needed. Raises AlreadyVotedError, and NotAssignedError
    for a person who has no vote or whose turn it is not."""
    # Alone, an override can only say no, as a veto does. An approval is one vote: where two people have to
    # agree, no right stands for the second.
    if permit.verdict.authority == "override" and rejects(row.options, resolution["decision"]):
        return resolved(row, resolution, by=actor.id, at=now)
    before = await ballots_of(ctx, row)
    ballot = _ballot(row, actor, permit, resolution, before, now)
    _require_turn(row, before, ballot)
    cast = [*before, ballot]
    # Counted with the new vote before it is written: vote and outcome are one change of the row.
    count = tally(row, cast, electorate=await electorate(row, ctx.directory, permit.past))
    if count.outcome is None:
        more = _one_more(row, actor, ballot, len(before), count)
        return more if count.turn is None else await handed_on(ctx, row, actor.id, more, count.turn)
    whole = _outcome(resolution, cast, count)
    closing = resolved(row, whole, by=actor.id, at=now)
    note, audit = _note(row, actor, ballot, len(before)), _vote_audit(row, actor, ballot, now)
    return msgspec.structs.replace(closing, notes=(note,), audit=(audit, *closing.audit))


async def require_vote(ctx: HoldContext, actor: Actor, row: HoldRow, permit: Permit, now: int) -> None:
    """Raises AlreadyVotedError, and NotAssignedError for a person who has no vote or whose turn it is not."""
    before = await ballots_of(ctx, row)
    undecided = {"decision": "", "on_behalf_of": permit.verdict.on_behalf_of}
    _require_turn(row, before, _ballot(row, actor, permit, undecided, before, now))


def _ballot(
    row: HoldRow,
    actor: Actor,
    permit: Permit,
    resolution: dict[str, Any],
    before: list[Ballot],
    now: int,
) -> Ballot:
    vetoes = [parse_assignee(text) for text in row.terms.approval.veto]
    held = places(permit.standing, row, permit.past)
    return Ballot(
        person=actor.id,
        decision=resolution["decision"],
        at=now,
        seats=_seats(row, permit, held, before),
        veto=any(each in held for each in vetoes),
        on_behalf_of=resolution["on_behalf_of"],
        names=names_as(permit.standing, resolution["on_behalf_of"]),
        behind=names_behind(permit.standing, permit.past, held),
        resolution=resolution,
        credential=actor.credential,
        session=actor.session,
    )


def _seats(
    row: HoldRow, permit: Permit, held: Sequence[Assignee], before: Sequence[Ballot]
) -> tuple[str, ...]:
    """An override gives its holder the seat whose turn it is, or else a place beside the others."""
    if permit.verdict.authority == "override":
        return (str(turn_of(row, before) or permit.verdict.authority),)
    return seats_taken(row, held, before)


def _require_turn(row: HoldRow, before: list[Ballot], ballot: Ballot) -> None:
    if has_voted(row.terms.approval, before, ballot):
        raise AlreadyVotedError(
            f"{ballot.person} has voted on hold {row.id} already.",
            hint="Each person has one vote.",
            hold=row.id,
        )
    shared = shared_participant(row.terms.approval, before, ballot)
    if shared is not None:
        raise AlreadyVotedError(
            f"{shared} took part in an earlier vote on hold {row.id}, and in this one of {ballot.person}.",
            hint="Each person has one vote, also by credentials and memberships that they made for others.",
            hold=row.id,
        )
    turn = turn_of(row, before)
    if not ballot.seats and not ballot.veto:
        raise NotAssignedError(f"{ballot.person} has no vote on hold {row.id}.", hold=row.id)
    vetoed = ballot.veto and vetoes(row.options, ballot.decision)
    if turn is not None and str(turn) not in ballot.seats and not vetoed:
        raise NotAssignedError(
            f"hold {row.id} waits for {turn} now, not for {ballot.person}.",
            hint="The approvers sign in order.",
            hold=row.id,
            turn=str(turn),
        )


def _one_more(row: HoldRow, actor: Actor, ballot: Ballot, number: int, count: VoteTally) -> HoldChange:
    """The voter's claim ends with the vote. Changing it also makes concurrent votes conflict."""
    return HoldChange(
        hold=row.id,
        version=row.version,
        at=ballot.at,
        fields={"claimed_by": None, "claim_until": None},
        audit=(_vote_audit(row, actor, ballot, ballot.at, missing=count.missing),),
        notes=(_note(row, actor, ballot, number),),
        drop_notes=(("draft", person_key(actor.id)),),
        event=event(row, VOTED, ballot.at, by=actor.id),
    )


async def handed_on(ctx: HoldContext, row: HoldRow, by: str, vote: HoldChange, turn: Assignee) -> HoldChange:
    """Assign it to the approver whose turn it is, who is notified."""
    target = await route(str(turn), row.tenant, ctx.directory, delegation=row.deployment)
    move = moved(row, str(turn), target, by=by, at=vote.at)
    return msgspec.structs.replace(
        vote, fields=move.fields, audit=(*vote.audit, *move.audit), outbox=move.outbox
    )


def _vote_audit(row: HoldRow, actor: Actor, ballot: Ballot, now: int, **more: Any) -> Any:
    known = {"decision": ballot.decision, "authority": ballot.resolution["authority"], **more}
    return entry(row, actor.id, "voted", now, **known)


def _note(row: HoldRow, actor: Actor, ballot: Ballot, number: int) -> Note:
    distinct = row.terms.approval.distinct_people
    # Numbered where a person may vote several times: a note with the same slot replaces the one before it.
    # With its time: an earlier one may have lapsed since, and its number is given again.
    slot = person_key(actor.id) if distinct else f"{person_key(actor.id)}#{number}@{ballot.at}"
    body = msgspec.json.encode(ballot)
    return Note(hold=row.id, kind="vote", slot=slot, person=actor.id, at=ballot.at, body=body)


def _outcome(resolution: dict[str, Any], cast: list[Ballot], count: VoteTally) -> dict[str, Any]:
    """The decision, with the data of the last matching vote, and all votes."""
    agreeing = [each for each in cast if each.decision == count.outcome]
    filled = agreeing[-1].resolution if agreeing else {}
    votes = [
        {
            "person": each.person,
            "decision": each.decision,
            "at": iso(each.at),
            "comment": each.resolution.get("comment"),
            "on_behalf_of": each.on_behalf_of,
            "members": each.resolution.get("members"),
            **({"took_part": list(each.behind)} if each.behind else {}),
        }
        for each in cast
    ]
    fields = {name: value for name, value in resolution.items() if name not in _FILLED}
    given = {"response_data": None, "comment": None} | {
        name: filled[name] for name in _FILLED if name in filled
    }
    return {**fields, **given, "decision": count.outcome, "votes": votes, "outcome_by": count.why}
