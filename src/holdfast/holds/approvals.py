"""How many people it takes: votes counted, in their order, with veto, and an end as soon as it is certain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from holdfast.holds.assigning import UNROUTED, parse_assignee, person_key
from holdfast.types.hold import HoldRow, Option
from holdfast.types.terms import Approval, Assignee

REJECTING: Final = frozenset({"reject", "rejected", "deny", "decline", "no"})
REJECT: Final = "reject"


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """`seats`: the entries of `approval.of` (or the assignee) that the person could sit in when they voted.
    `veto`: whether they had one. Kept as the body of a note of kind `vote`."""

    person: str
    decision: str
    at: int
    seats: tuple[str, ...] = ()
    veto: bool = False
    on_behalf_of: str | None = None


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome`: the decision, once it is certain; none: more votes are needed. `turn`: the seat that a
    sequential hold waits for."""

    outcome: str | None = None
    why: str = ""  # any, quorum, sequential, veto, rejected, unreachable
    counts: dict[str, int] = {}
    need: int = 1
    missing: int = 0
    turn: Assignee | None = None


def rejects(options: Sequence[Option] | None, decision: str) -> bool:
    """Whether a decision says no: by its name, or because its option is marked as dangerous."""
    if decision.lower() in REJECTING:
        return True
    return any(option.id == decision and option.variant == "danger" for option in options or ())


def rejection(options: Sequence[Option] | None) -> str:
    """The option that says no; `reject` where there is none."""
    return next((option.id for option in options or () if rejects(options, option.id)), REJECT)


def seats_of(hold: HoldRow) -> tuple[Assignee, ...]:
    """Who may vote: those that the approval names, else whom the hold is assigned to."""
    named = hold.terms.approval.of
    if named:
        return tuple(parse_assignee(text) for text in named)
    return () if hold.assignee_type == UNROUTED else (Assignee(hold.assignee_type, hold.assignee_value),)


def turn_of(hold: HoldRow, votes: Sequence[Vote]) -> Assignee | None:
    """The seat that a sequential hold waits for; none: all have signed, or it has no order."""
    if hold.terms.approval.mode != "sequential":
        return None
    seats = seats_of(hold)
    return seats[len(votes)] if len(votes) < len(seats) else None


def tally(hold: HoldRow, votes: Sequence[Vote], *, electorate: int | None = None) -> Tally:
    """What the votes come to, in the order in which they were cast. `electorate`: how many people may vote at
    all, where that is known; then a quorum that cannot be reached any more ends it at once."""
    approval = hold.terms.approval
    counts = dict(Counter(vote.decision for vote in votes))
    vetoed = next((vote for vote in votes if vote.veto and rejects(hold.options, vote.decision)), None)
    if vetoed is not None:
        return Tally(outcome=vetoed.decision, why="veto", counts=counts, need=_need(hold))
    if approval.mode == "sequential":
        return _in_order(hold, votes, counts)
    return _by_count(hold, votes, counts, electorate)


def _in_order(hold: HoldRow, votes: Sequence[Vote], counts: dict[str, int]) -> Tally:
    need = _need(hold)
    refused = next((vote for vote in votes if rejects(hold.options, vote.decision)), None)
    if refused is not None:
        return Tally(outcome=refused.decision, why="rejected", counts=counts, need=need)
    if len(votes) >= need:
        return Tally(outcome=votes[-1].decision, why="sequential", counts=counts, need=need)
    return Tally(counts=counts, need=need, missing=need - len(votes), turn=turn_of(hold, votes))


def _by_count(hold: HoldRow, votes: Sequence[Vote], counts: dict[str, int], electorate: int | None) -> Tally:
    need = _need(hold)
    won = _first_with(need, votes)
    if won is not None:
        return Tally(outcome=won, why=hold.terms.approval.mode, counts=counts, need=need)
    best = max((count for name, count in counts.items() if not rejects(hold.options, name)), default=0)
    if electorate is not None and best + max(electorate - len(votes), 0) < need:
        return Tally(outcome=rejection(hold.options), why="unreachable", counts=counts, need=need)
    return Tally(counts=counts, need=need, missing=need - best)


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


def has_voted(approval: Approval, votes: Sequence[Vote], person: str, seats: Sequence[str] = ()) -> bool:
    """Whether this person's vote is in already (RS-10). Where people need not be distinct, whoever sits in
    several seats votes once for each."""
    own = [vote for vote in votes if person_key(vote.person) == person_key(person)]
    if approval.distinct_people:
        return bool(own)
    return len(own) >= max(len(seats), 1)
