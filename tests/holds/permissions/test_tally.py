from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.permissions.vote_count import Vote, has_voted, rejection, rejects, tally, turn_of
from holdfast.types.hold import HoldRow, Option
from holdfast.types.terms import ApprovalTerms, Assignee
from tests.holds.permissions.people import hold_for

SEAT = "group:finance"


def quorum(need: int, **more: object) -> HoldRow:
    return hold_for("group", "finance", approval={"mode": "quorum", "need": need, **more})


def votes(*said: str, seats: Sequence[str] = (SEAT,)) -> list[Vote]:
    return [Vote(person=f"user:p{n}", decision=each, at=n, seats=tuple(seats)) for n, each in enumerate(said)]


@pytest.mark.covers("HOLD-AUTH-05", "RS-10")
def test_quorum_is_open_until_enough_say_the_same() -> None:
    hold = quorum(2)
    assert tally(hold, votes("approve")).outcome is None
    assert tally(hold, votes("approve")).missing == 1
    assert tally(hold, votes("approve", "reject")).outcome is None
    found = tally(hold, votes("approve", "reject", "approve"))
    assert (found.outcome, found.why) == ("approve", "quorum")
    assert found.counts == {"approve": 2, "reject": 1}


@pytest.mark.covers("HOLD-AUTH-05", "RS-10")
def test_quorum_that_cannot_be_reached_any_more_is_a_rejection_at_once() -> None:
    hold = quorum(2)
    assert tally(hold, votes("reject"), electorate=3).outcome is None
    found = tally(hold, votes("reject"), electorate=2)
    assert (found.outcome, found.why) == ("reject", "unreachable")
    assert tally(quorum(3), (), electorate=2).outcome == "reject"
    assert tally(hold, votes("reject")).outcome is None


@pytest.mark.covers("RS-10")
def test_rejection_is_the_option_that_says_no_and_never_an_approval() -> None:
    # What is shown as dangerous may be the very thing that is to be approved.
    assert rejection((Option("keep", "Keep"), Option("wipe", "Wipe", "danger"))) == "reject"
    assert rejection((Option("approve", "Wipe", "danger"), Option("keep", "Keep"))) == "reject"
    assert rejection((Option("ship", "Ship"), Option("Deny", "Deny"))) == "Deny"
    assert rejection((Option("a", "A"), Option("b", "B"))) == "reject"
    assert rejection(None) == "reject"
    assert not rejects(None, "approve")


@pytest.mark.covers("HOLD-AUTH-07", "RS-10")
def test_veto_ends_it_whatever_the_others_say_and_only_by_a_no() -> None:
    hold = quorum(2, veto=("role:cfo",))
    chief = Vote(person="user:kim", decision="reject", at=9, veto=True)
    found = tally(hold, [*votes("approve"), chief])
    assert (found.outcome, found.why) == ("reject", "veto")
    yes = Vote(person="user:kim", decision="approve", at=9, veto=True)
    assert tally(hold, [*votes("approve"), yes]).outcome is None, "a veto is no seat"


@pytest.mark.covers("HOLD-AUTH-06")
def test_sequential_sign_off_waits_for_each_seat_in_its_order() -> None:
    hold = hold_for("group", "leads", approval={"mode": "sequential", "of": ("group:leads", "role:cfo")})
    lead = Vote(person="user:dana", decision="approve", at=1, seats=("group:leads",))
    chief = Vote(person="user:kim", decision="approve", at=2, seats=("role:cfo",))
    assert turn_of(hold, ()) == Assignee("group", "leads")
    assert tally(hold, [lead]).turn == Assignee("role", "cfo")
    assert tally(hold, [chief]).turn == Assignee("group", "leads"), "out of turn signs nothing"
    found = tally(hold, [lead, chief])
    assert (found.outcome, found.why) == ("approve", "sequential")
    assert turn_of(hold, [lead, chief]) is None


@pytest.mark.covers("HOLD-AUTH-06")
def test_sequential_sign_off_ends_with_the_first_no() -> None:
    hold = hold_for("group", "leads", approval={"mode": "sequential", "of": ("group:leads", "role:cfo")})
    lead = Vote(person="user:dana", decision="reject", at=1, seats=("group:leads",))
    assert tally(hold, [lead]).outcome == "reject"


@pytest.mark.covers("RS-10")
def test_person_votes_once_unless_seats_need_not_be_distinct_people() -> None:
    cast = [Vote(person="user:Dana@acme", decision="approve", at=1, seats=(SEAT, "role:cfo"))]
    again = msgspec.structs.replace(cast[0], person="user:dana@ACME", at=2)
    assert has_voted(ApprovalTerms(mode="quorum"), cast, again)
    assert not has_voted(
        ApprovalTerms(mode="quorum"), cast, msgspec.structs.replace(again, person="user:sam")
    )
    loose = ApprovalTerms(mode="quorum", distinct_people=False)
    assert not has_voted(loose, cast, again)
    assert has_voted(loose, cast * 2, again)


@pytest.mark.covers("RS-10", "HOLD-AUTH-05")
@given(
    st.lists(st.sampled_from(["approve", "reject", "later"]), max_size=7),
    st.integers(1, 4),
    st.integers(0, 7),
)
def test_approval_takes_as_many_as_it_needs_and_nothing_after_the_end_changes_it(
    said: list[str], need: int, more: int
) -> None:
    hold, electorate = quorum(need), len(said) + more
    ends = [tally(hold, votes(*said[:upto]), electorate=electorate) for upto in range(len(said) + 1)]
    for upto, found in enumerate(ends):
        if found.outcome == "approve":
            assert said[:upto].count("approve") >= need
        if found.why == "unreachable":
            reachable = said[:upto].count("approve") + (electorate - upto)
            assert reachable < need
    first = next((upto for upto, found in enumerate(ends) if found.outcome is not None), len(ends))
    assert len({found.outcome for found in ends[first:]}) <= 1
