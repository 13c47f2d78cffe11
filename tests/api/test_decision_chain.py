"""Whoever made a credential counts as having taken part in what is decided with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.types.status import HoldStatus
from tests.api.harness import Harness, harness_of

pytestmark = pytest.mark.anyio

TWO: dict[str, Any] = {
    "assignee": "group:finance",
    "approval": {"mode": "quorum", "need": 2, "exclude": ["initiator"]},
}


@pytest.fixture
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness_of() as found:
        yield found


@pytest.mark.covers("SAFE-CHAIN-02")
async def test_tokens_made_for_two_others_do_not_pass_a_rule_of_two(harness: Harness) -> None:
    hold = await harness.asks(**TWO)
    for name in ("dana", "sam"):
        token = await harness.mint("ada", f"user:{name}")
        refused = await harness.decide(token, hold.id)
        assert refused.status_code == 403, refused.text
    assert (await harness.row(hold.id)).status is HoldStatus.pending
    # The people themselves can still agree.
    assert (await harness.decide("dana", hold.id)).status_code == 200
    assert (await harness.decide("sam", hold.id)).status_code == 200
    assert (await harness.row(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("SAFE-CHAIN-02")
async def test_links_made_for_two_others_do_not_pass_a_rule_of_two(harness: Harness) -> None:
    hold = await harness.asks(**TWO)
    for name in ("dana", "sam"):
        made = await harness.ask(
            "ada", "POST", f"/v1/holds/{hold.id}/links", {"to": f"user:{name}"}, status=201
        )
        assert made.get("token") is None
        assert made["sent_to"] == [f"{name}@acme"]
    await harness.delivers()
    assert (await harness.row(hold.id)).status is HoldStatus.pending
    # What was sent to their own addresses works.
    assert await harness.decide_by_link(harness.mail.links("dana@acme")[-1])
    assert await harness.decide_by_link(harness.mail.links("sam@acme")[-1])
    assert (await harness.row(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("SAFE-CHAIN-03")
async def test_a_link_for_another_person_is_sent_and_audited_and_one_for_oneself_is_returned(
    harness: Harness,
) -> None:
    hold = await harness.asks(**TWO)
    path = f"/v1/holds/{hold.id}/links"
    await harness.ask("ada", "POST", path, {"to": "user:dana"}, status=201)
    own = await harness.ask("ada", "POST", path, {"to": "ada@acme"}, status=201)
    assert own["token"]
    unknown = await harness.send("ada", "POST", path, {"to": "user:nobody"})
    assert unknown.status_code == 409
    made = [each for each in await harness.audit() if each["action"] == "link_made"]
    assert [(each["actor"], each["data"]["to"]) for each in made] == [
        ("user:ada", "user:dana"),
        ("user:ada", "user:ada@acme"),
    ]
    # Ada's own link is a credential of hers, and changes nothing for her.
    assert not await harness.decide_by_link(own["token"])


@pytest.mark.covers("SAFE-CHAIN-03")
async def test_minting_a_token_is_audited_with_its_chain(harness: Harness) -> None:
    first = await harness.mint("ada", "user:dana", rights=["admin:manage"], roles=[])
    await harness.mint(first, "user:sam")
    made = [each for each in await harness.audit() if each["action"] == "token_created"][-1]
    assert made["actor"] == "user:dana"
    assert [(each["by"], each["to"]) for each in made["data"]["chain"]] == [
        ("system:operator", "user:ada"),
        ("user:ada@acme", "user:ada"),
        ("user:ada", "user:dana"),
        ("user:dana@acme", "user:dana"),
        ("user:dana", "user:sam"),
    ]


@pytest.mark.covers("SAFE-CHAIN-02")
async def test_the_maker_of_a_credential_has_voted_with_it(harness: Harness) -> None:
    """Without an exclusion the maker may take part, once."""
    hold = await harness.asks(assignee="group:finance", approval={"mode": "quorum", "need": 2})
    for name in ("dana", "sam"):
        harness.tokens[f"{name}'s"] = await harness.mint("kim-admin", f"user:{name}")
    assert (await harness.decide("dana's", hold.id)).status_code == 200
    again = await harness.decide("sam's", hold.id)
    assert (again.status_code, again.json()["code"]) == (409, "already_voted")
    assert "kim" in again.json()["detail"]
    assert (await harness.decide("sam", hold.id)).status_code == 200
    said = (await harness.ask("ada", "GET", f"/v1/holds/{hold.id}"))["resolution"]
    assert [vote.get("took_part", []) for vote in said["votes"]] == [["kim", "kim@acme"], []]


@pytest.mark.covers("SAFE-CHAIN-02")
async def test_a_run_started_by_a_service_is_not_approved_by_the_maker_of_its_token(harness: Harness) -> None:
    robot = await harness.mint("ada", "service:robot", roles=["operator"])
    run = await harness.starts(robot, assignee="user:ada", approval={"exclude": ["initiator"]})
    (hold,) = await harness.open_holds(run)
    refused = await harness.decide("ada", hold)
    assert (refused.status_code, refused.json()["code"]) == (403, "excluded")
