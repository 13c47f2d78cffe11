"""Which answers say yes and which say no, however their buttons look: nobody mixes them up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.holds.permissions.actor import ActorMemberships
from holdfast.holds.permissions.check import can
from holdfast.holds.permissions.vote_count import Vote, tally
from holdfast.types.decision_words import NO, YES, approves, approving_answer, refuses, refusing_answer
from holdfast.types.hold import Option
from holdfast.types.terms import OVERRIDE, RESOLVE, Actor, ApprovalTerms, HoldTerms
from tests.holds.timing.rows import a_row

OPTIONS = st.lists(
    st.builds(
        Option,
        st.sampled_from(["approve", "yes", "ok", "reject", "no", "deny", "revise", "delete", "keep", "stop"]),
        st.just("?"),
        st.sampled_from(["primary", "secondary", "danger"]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda option: option.id,
)


@pytest.mark.covers("HOLD-BAD-03", "HOLD-SEC-12")
@given(OPTIONS)
def test_what_speaks_for_an_agent_can_choose_nothing_but_a_no(options: list[Option]) -> None:
    agent = ActorMemberships(
        actor=Actor(id="service:helper", rights=frozenset({RESOLVE, OVERRIDE}), channel="mcp")
    )
    row = a_row(options=tuple(options))
    for option in options:
        verdict = can(agent, "resolve", row, row.created_at, reason="because", decision=option.id)
        assert verdict.allowed <= (option.id in NO), option


@pytest.mark.covers("HOLD-BAD-03")
@given(OPTIONS)
def test_the_answer_that_is_put_in_place_of_a_yes_is_a_no(options: list[Option]) -> None:
    found = refusing_answer(options)
    assert found is None or (found not in YES and not approves(found, options))


VOTES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=5)


@pytest.mark.covers("HOLD-BAD-03", "RS-10")
@given(OPTIONS, VOTES, st.sampled_from(["quorum", "sequential"]), st.sampled_from([None, 2, 3]))
def test_whatever_fewer_votes_than_it_takes_come_to_is_a_no(
    options: list[Option], cast: list[tuple[int, int, bool]], mode: str, electorate: int | None
) -> None:
    seats = tuple(f"user:p{n}" for n in range(2))
    approval = ApprovalTerms(mode=mode, need=2, of=seats if mode == "sequential" else ("group:g",))
    row = a_row(options=tuple(options), terms=HoldTerms(approval=approval))
    votes = [
        Vote(
            person=f"user:p{person}",
            decision=options[choice % len(options)].id,
            at=at,
            seats=(f"user:p{person}",) if mode == "sequential" else ("group:g",),
            veto=veto,
        )
        for at, (person, choice, veto) in enumerate(cast)
    ]
    outcome = tally(row, votes, electorate=electorate).outcome
    if outcome is not None and outcome not in NO:
        assert sum(vote.decision == outcome for vote in votes) >= 2


@pytest.mark.covers("HOLD-BAD-03", "RS-10", "HOLD-AUTH-07")
@given(OPTIONS, VOTES)
def test_who_has_a_veto_and_says_anything_but_yes_ends_it(
    options: list[Option], cast: list[tuple[int, int, bool]]
) -> None:
    words = [option.id for option in options]
    if approving_answer(options) is None:
        return  # which of them is the yes is not known
    row = a_row(
        options=tuple(options),
        terms=HoldTerms(approval=ApprovalTerms(mode="quorum", need=1, of=("group:g",))),
    )
    votes = [
        Vote(person=f"user:p{n}", decision=words[choice % len(words)], at=n, seats=("group:g",), veto=veto)
        for n, (_, choice, veto) in enumerate(cast)
    ]
    objected = [vote for vote in votes if vote.veto and not approves(vote.decision, options)]
    if objected:
        assert refuses(tally(row, votes).outcome or "")
