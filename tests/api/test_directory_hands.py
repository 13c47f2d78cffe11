"""Who creates or changes a person, address, group or membership counts as that person: for holds that were
open then, and for holds that their own run opens later."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Registrar
from tests.api.harness import Harness, harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-09")]

FINANCE, CFO = "group:finance", "role:cfo"
Change = tuple[str, list[tuple[str, str, Any]]]

CHANGES: dict[str, Change] = {
    "a membership": (FINANCE, [("PUT", "groups/finance", {"members": ["dana", "sam", "lee"]})]),
    "a role": (CFO, [("PUT", "roles/cfo", {"members": ["dana", "lee"]})]),
    "an address": (FINANCE, [("PUT", "people/lee", {"email": "lee@elsewhere"})]),
    "a person who is active again": (
        FINANCE,
        [
            ("PUT", "people/lee", {"email": "lee@acme", "active": False}),
            ("PUT", "people/lee", {"email": "lee@acme"}),
        ],
    ),
    "a person who is made anew": (
        FINANCE,
        [
            ("DELETE", "people/lee", None),
            ("PUT", "people/lee", {"email": "lee@acme"}),
            ("PUT", "groups/finance", {"members": ["dana", "sam", "lee"]}),
        ],
    ),
    "a group that is made anew": (
        FINANCE,
        [
            ("DELETE", "groups/finance", None),
            ("PUT", "groups/finance", {"members": ["dana", "lee"]}),
        ],
    ),
    "an absence": (FINANCE, [("PUT", "people/sam/away", {"substitute": "lee"})]),
}
MEMBERS = {
    "an address",
    "a person who is active again",
    "a group that is made anew",
    "a person who is made anew",
}
"""Here Lee is in the group before."""
ALWAYS = {"an absence"}
"""A credential: who made it counts for every hold."""


@pytest.fixture
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness_of() as found:
        await Registrar(await found.hf.open()).put_role("default", "cfo", ["dana"])
        yield found


async def change(harness: Harness, what: str) -> None:
    for method, path, body in CHANGES[what][1]:
        answer = await harness.send("ada", method, f"/v1/directory/{path}", body)
        assert answer.status_code < 300, answer.text


async def lee_before(harness: Harness, what: str) -> None:
    if what in MEMBERS:
        await Registrar(await harness.hf.open()).join("default", FINANCE, "lee")


@pytest.mark.parametrize("what", CHANGES)
async def test_it_counts_as_the_caller_for_a_hold_that_was_open_then(harness: Harness, what: str) -> None:
    await lee_before(harness, what)
    terms: dict[str, Any] = {"assignee": CHANGES[what][0], "approval": {"exclude": ["user:ada@acme"]}}
    hold, other = [await harness.asks(started_by="user:kim", **terms) for _ in range(2)]
    harness.clock.advance(minutes=1)
    await change(harness, what)
    refused = await harness.decide("lee", hold.id)
    assert (refused.status_code, refused.json()["code"]) == (403, "excluded"), refused.text
    assert "ada" in refused.json()["detail"]
    if what != "a group that is made anew":
        # Who was a member all along owes the place to nobody.
        assert (await harness.decide("dana", other.id)).status_code == 200


@pytest.mark.parametrize("what", CHANGES)
async def test_it_counts_as_the_caller_for_holds_of_their_later_runs(harness: Harness, what: str) -> None:
    await lee_before(harness, what)
    await change(harness, what)
    harness.clock.advance(hours=1)
    terms: dict[str, Any] = {"assignee": CHANGES[what][0], "approval": {"exclude": ["initiator"]}}
    own = await harness.asks(started_by="user:ada", **terms)
    assert (await harness.decide("lee", own.id)).status_code == 403


@pytest.mark.parametrize("what", CHANGES)
async def test_it_does_not_count_for_later_holds_of_others(harness: Harness, what: str) -> None:
    await lee_before(harness, what)
    await change(harness, what)
    harness.clock.advance(hours=1)
    terms: dict[str, Any] = {"assignee": CHANGES[what][0], "approval": {"exclude": ["user:ada"]}}
    later = await harness.asks(started_by="user:kim", **terms)
    expected = 403 if what in ALWAYS else 200
    assert (await harness.decide("lee", later.id)).status_code == expected


@pytest.mark.parametrize("what", CHANGES)
async def test_it_takes_the_vote_of_the_caller(harness: Harness, what: str) -> None:
    await lee_before(harness, what)
    terms: dict[str, Any] = {"approval": {"mode": "quorum", "need": 2, "of": [CHANGES[what][0], "user:ada"]}}
    hold = await harness.asks(started_by="user:kim", **terms)
    await change(harness, what)
    assert (await harness.decide("ada", hold.id)).status_code == 200
    again = await harness.decide("lee", hold.id)
    assert (again.status_code, again.json()["code"]) == (409, "already_voted"), again.text


async def test_a_delegation_carries_who_made_it(harness: Harness) -> None:
    for name, expected in (("ada", 403), ("kim-admin", 200)):
        deployment = f"of-{name}"
        await harness.ask("ada", "PUT", f"/v1/deployments/{deployment}", {"flow": "refund"})
        path = f"/v1/deployments/{deployment}/delegation"
        await harness.ask(name, "PUT", path, {"to": "user:lee"})
        terms: dict[str, Any] = {"assignee": "delegated_user", "approval": {"exclude": ["initiator"]}}
        hold = await harness.asks(deployment=deployment, **terms)
        assert (await harness.decide("lee", hold.id)).status_code == expected


async def test_who_reassigns_without_a_directory_counts_as_the_new_assignee() -> None:
    async with harness_of(directory=None) as harness:
        terms: dict[str, Any] = {
            "assignee": "user:dana",
            "approval": {"mode": "quorum", "need": 2, "of": ["user:dana", "user:sam"]},
        }
        hold = await harness.asks(started_by="user:kim", **terms)
        await harness.ask("ada", "POST", f"/v1/holds/{hold.id}/reassign", {"assignee": "user:lee"})
        assert (await harness.decide("lee", hold.id)).status_code == 200
        await harness.ask("ada", "POST", f"/v1/holds/{hold.id}/reassign", {"assignee": "user:ada"})
        again = await harness.decide("ada", hold.id)
        assert (again.status_code, again.json()["code"]) == (409, "already_voted")
        assert (await harness.decide("dana", hold.id)).status_code == 200


async def test_what_an_operator_changes_with_the_store_counts_as_nobody(harness: Harness) -> None:
    hold = await harness.asks(assignee=FINANCE, approval={"exclude": ["user:local"]}, started_by="user:kim")
    harness.clock.advance(minutes=1)
    await Registrar(await harness.hf.open()).join("default", FINANCE, "lee")
    assert (await harness.decide("lee", hold.id)).status_code == 200


async def test_an_address_that_is_given_up_stays_the_persons_for_an_open_hold(harness: Harness) -> None:
    hold = await harness.asks(
        assignee="user:ada", approval={"exclude": ["initiator"]}, started_by="user:ada@acme"
    )
    assert (await harness.decide("ada", hold.id)).json()["code"] == "excluded"
    harness.clock.advance(minutes=1)
    await harness.ask("kim-admin", "PUT", "/v1/directory/people/ada", {"email": ""})
    assert (await harness.decide("ada", hold.id)).json()["code"] == "excluded"
    # Nor does it help to give it to somebody else.
    await harness.ask("ada", "PUT", "/v1/directory/people/other", {"email": "ada@acme"})
    await harness.ask("ada", "POST", f"/v1/holds/{hold.id}/reassign", {"assignee": "user:other"}, status=422)
    assert (await harness.decide("ada", hold.id, reason="I may")).json()["code"] == "excluded"
