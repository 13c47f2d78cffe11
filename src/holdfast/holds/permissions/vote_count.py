"""Counts votes: in order, with vetoes, ending as soon as the result is certain.

Also counts the people who may vote, to know when a quorum can no longer be reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.directory.base import Directory
from holdfast.holds.permissions.actor import capacity_named
from holdfast.holds.permissions.assignees import UNROUTED, parse_assignee, person_key
from holdfast.holds.permissions.exclusions import PermissionFacts, excludes_circles, exclusion
from holdfast.types.decision_words import approves, approving_answer, refuses, refusing_answer
from holdfast.types.hold import HoldRow, Option
from holdfast.types.terms import ApprovalTerms, Assignee

REJECT: Final = "reject"


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """`seats`: the entries of `approval.of` (or the assignee) that the person could fill when they voted.
    `veto`: whether they had one. `names`: of the person, and of the person they substituted. `behind`: of
    everybody else who took part (`holds.permissions.participants`). Stored as the body of a note of kind
    `vote`."""

    person: str
    decision: str
    at: int
    seats: tuple[str, ...] = ()
    veto: bool = False
    on_behalf_of: str | None = None
    names: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


class VoteTally(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome`: the decision, once it is certain; None: more votes are needed. `turn`: the seat that a
    sequential hold waits for."""

    outcome: str | None = None
    why: str = ""  # any, quorum, sequential, veto, rejected, unreachable
    counts: dict[str, int] = {}
    need: int = 1
    missing: int = 0
    turn: Assignee | None = None


def rejects(options: Sequence[Option] | None, decision: str) -> bool:
    """Whether a decision means no: one of its options that does, or any such text if it has no options."""
    # By the option's id and never by its colour: an option shown as dangerous may be the one to approve.
    known = options is None or any(option.id == decision for option in options)
    return known and refuses(decision)


def vetoes(options: Sequence[Option] | None, decision: str) -> bool:
    """Whether a person with a veto uses it: by a no, or by anything but the approving option."""
    other = approving_answer(options) is not None and not approves(decision, options)
    return rejects(options, decision) or other


def rejection(options: Sequence[Option] | None) -> str:
    """The option that means no; `reject` if there is none."""
    return refusing_answer(options) or REJECT


def seats_of(hold: HoldRow) -> tuple[Assignee, ...]:
    """The voters: those that the approval names, else the assignee."""
    named = hold.terms.approval.of
    if named:
        return tuple(parse_assignee(text) for text in named)
    return () if hold.assignee_type == UNROUTED else (_assignee(hold),)


def voters_of(hold: HoldRow) -> tuple[Assignee, ...]:
    """Those, and the present assignee: otherwise reassigning and escalating would have no effect. The first
    assignee is one of the voters (`address`)."""
    seats = seats_of(hold)
    # Epoch 1 is the first assignment, whose assignee is one of the voters already.
    handed_on = hold.epoch > 1 and hold.assignee_type != UNROUTED and _assignee(hold) not in seats
    return (*seats, _assignee(hold)) if handed_on else seats


def seats_taken(hold: HoldRow, places: Sequence[Assignee], votes: Sequence[Vote]) -> tuple[str, ...]:
    """The seats of a voter, given the places that they have. A new assignee takes the seat whose turn it
    is."""
    seats = seats_of(hold)
    taken = [str(each) for each in places if each in seats]
    # In a sequence the new assignee signs for the seat that waits; a further seat at the end would leave it
    # waiting for the person it was escalated from.
    if _assignee(hold) in places and _assignee(hold) not in seats:
        taken.append(str(turn_of(hold, votes) or _assignee(hold)))
    return tuple(dict.fromkeys(taken))


def _assignee(hold: HoldRow) -> Assignee:
    return Assignee(hold.assignee_type, hold.assignee_value)


def turn_of(hold: HoldRow, votes: Sequence[Vote]) -> Assignee | None:
    """The seat that a sequential hold waits for; None: all have signed, or it is not sequential."""
    if hold.terms.approval.mode != "sequential":
        return None
    seats, signed = seats_of(hold), len(_signatures(hold, votes))
    return seats[signed] if signed < len(seats) else None


def _signatures(hold: HoldRow, votes: Sequence[Vote]) -> list[Vote]:
    """The votes that came when it was their seat's turn."""
    seats, found = seats_of(hold), list[Vote]()
    for vote in votes:
        if len(found) < len(seats) and str(seats[len(found)]) in vote.seats:
            found.append(vote)
    return found


def tally(hold: HoldRow, votes: Sequence[Vote], *, electorate: int | None = None) -> VoteTally:
    """The result of the votes, in the order in which they were cast. `electorate`: how many people may vote,
    if known; then a quorum that can no longer be reached ends it at once."""
    # Before any count: a veto also ends a vote that has reached its quorum with this ballot.
    vetoed = next((vote for vote in votes if vote.veto and vetoes(hold.options, vote.decision)), None)
    # A person with only a veto can end it, and does not count otherwise.
    seated = [vote for vote in votes if vote.seats]
    known = VoteTally(counts=dict(Counter(vote.decision for vote in seated)), need=_need(hold))
    if vetoed is not None:
        return _ended(known, _no(hold, vetoed), "veto")
    if hold.terms.approval.mode == "sequential":
        return _in_order(hold, seated, known)
    return _by_count(hold, seated, known, electorate)


def _in_order(hold: HoldRow, votes: Sequence[Vote], known: VoteTally) -> VoteTally:
    signed = _signatures(hold, votes)
    refused = next((vote for vote in signed if rejects(hold.options, vote.decision)), None)
    if refused is not None:
        return _ended(known, refused.decision, "rejected")
    # All must sign the same: two different approving options are no agreement.
    if len({vote.decision for vote in signed}) > 1:
        return _ended(known, rejection(hold.options), "rejected")
    if len(signed) >= known.need:
        return _ended(known, signed[-1].decision, "sequential")
    return msgspec.structs.replace(known, missing=known.need - len(signed), turn=turn_of(hold, votes))


def _by_count(hold: HoldRow, votes: Sequence[Vote], known: VoteTally, electorate: int | None) -> VoteTally:
    # In the order of the votes and not by the highest count: the
    # result must not depend on votes cast after it was certain.
    won = _first_with(known.need, votes)
    if won is not None:
        return _ended(known, won, hold.terms.approval.mode)
    # If even all remaining votes for the leading option would not be enough, waiting is useless.
    best = max((count for name, count in known.counts.items() if not rejects(hold.options, name)), default=0)
    if electorate is not None and best + max(electorate - len(votes), 0) < known.need:
        return _ended(known, rejection(hold.options), "unreachable")
    return msgspec.structs.replace(known, missing=known.need - best)


def _no(hold: HoldRow, vote: Vote) -> str:
    """One person alone can only reject, whatever else they answered."""
    return vote.decision if rejects(hold.options, vote.decision) else rejection(hold.options)


def _ended(known: VoteTally, outcome: str, why: str) -> VoteTally:
    return msgspec.structs.replace(known, outcome=outcome, why=why)


def _first_with(need: int, votes: Sequence[Vote]) -> str | None:
    counts: Counter[str] = Counter()
    for vote in votes:
        counts[vote.decision] += 1
        if counts[vote.decision] >= need:
            return vote.decision
    return None


def _need(hold: HoldRow) -> int:
    approval = hold.terms.approval
    if approval.mode == "sequential":
        return max(len(seats_of(hold)), 1)
    return max(approval.need, 1) if approval.mode == "quorum" else 1


def has_voted(approval: ApprovalTerms, votes: Sequence[Vote], new: Vote) -> bool:
    """Whether this person has voted already (RS-10), under any of their names, or by a substitute. If people
    need not be distinct, a person with several seats votes once for each."""
    # All names are compared: a person must not vote once by id and
    # once by e-mail address, or for themselves and as a substitute.
    own = [vote for vote in votes if _names(vote) & _names(new)]
    if approval.distinct_people:
        return bool(own)
    return len(own) >= max(len(new.seats), 1)


def shared_participant(approval: ApprovalTerms, votes: Sequence[Vote], new: Vote) -> str | None:
    """Somebody who took part in an earlier vote and in this one, behind at least one of them; None: nobody.
    Where people have to be distinct, such a vote would count one person twice."""
    if not approval.distinct_people:
        return None
    mine = _names(new) | {person_key(name) for name in new.behind}
    theirs = {name for vote in votes for name in (*_names(vote), *map(person_key, vote.behind))}
    return min(mine & theirs, default=None)


def _names(vote: Vote) -> set[str]:
    known = (vote.person, vote.on_behalf_of, *vote.names)
    return {person_key(name) for name in known if name}


async def electorate(hold: HoldRow, directory: Directory | None, past: PermissionFacts) -> int | None:
    """Without excluded people. None: not known, because without a directory a group may have any members."""
    found: list[str] = []
    try:
        for seat in voters_of(hold):
            people = await _people(seat, hold, directory, past)
            if people is None:
                return None
            found += people
    except DirectoryUnavailableError:
        # Unknown and not zero: a quorum must not be declared unreachable because the directory is down.
        return None
    # One person in two groups is one voter, unless people need not be distinct.
    return len(set(found)) if hold.terms.approval.distinct_people else len(found)


async def _people(
    seat: Assignee, hold: HoldRow, directory: Directory | None, past: PermissionFacts
) -> list[str] | None:
    if seat.type == "user":
        return await _voters((seat.value,), hold, directory, past)
    if directory is None or seat.type not in ("group", "role"):
        return None
    ask = directory.group if seat.type == "group" else directory.role
    circle = await ask(hold.tenant, seat.value)
    return None if circle is None else await _voters(circle.members, hold, directory, past)


async def _voters(
    names: tuple[str, ...], hold: HoldRow, directory: Directory | None, past: PermissionFacts
) -> list[str]:
    found: list[str] = []
    belonging = excludes_circles(hold)
    for name in names:
        capacity = await capacity_named(name, hold.tenant, directory, belonging=belonging)
        if capacity is not None and exclusion(capacity, hold, past) is None:
            # Any of the person's names, but always the same
            # one, so that the caller can count distinct people.
            found.append(min(capacity.people))
    return found
