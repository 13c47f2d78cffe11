"""A vote is cast when it is given and applied with the last one: it lapses if its author loses the right in
between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast import Person, Registrar
from holdfast.types.status import HoldStatus
from tests.api.harness import SITE, Harness, harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-06")]

RULES: dict[str, dict[str, Any]] = {
    "quorum": {"assignee": "group:finance", "approval": {"mode": "quorum", "need": 2}},
    "quorum of several": {"approval": {"mode": "quorum", "need": 2, "of": ["group:finance", "role:cfo"]}},
    "order": {"approval": {"mode": "sequential", "of": ["group:finance", "user:sam"]}},
}
LOSSES = ("membership", "person", "active", "token", "token of a session", "exclusion")


@pytest.fixture
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness_of() as found:
        # Enough members, so that a quorum stays possible without one of them.
        await Registrar(await found.hf.open()).put_group("default", "finance", ["dana", "sam", "kim"])
        yield found


async def votes(harness: Harness, hold: str, token: str, *, session: bool) -> None:
    """Dana, with a token that an operator made for her."""
    if not session:
        assert (await harness.decide(token, hold)).status_code == 200
        return
    async with httpx2.AsyncClient(transport=harness.transport, base_url=SITE) as browser:
        await browser.post("/sign-in", data={"token": token})
        csrf = {"X-CSRF-Token": (await browser.get("/v1/session")).json()["csrf"]}
        sent = await browser.post(f"/v1/holds/{hold}/resolve", json={"decision": "approve"}, headers=csrf)
        assert sent.status_code == 200


async def loses(harness: Harness, loss: str, token: str) -> None:
    registrar = Registrar(await harness.hf.open())
    if loss == "membership":
        await registrar.leave("default", "group:finance", "dana")
    elif loss == "person":
        await registrar.delete_person("default", "dana")
    elif loss == "active":
        await registrar.put_person("default", Person(id="dana", email="dana@acme", active=False))
    elif loss == "exclusion":
        await registrar.join("default", "group:traders", "dana")
    else:
        await harness.ask("ada", "DELETE", f"/v1/tokens/{token.split('_')[1]}")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
async def test_a_vote_lapses_when_its_author_loses_the_right(harness: Harness, rule: str, loss: str) -> None:
    asked = {**RULES[rule], "approval": {**RULES[rule]["approval"], "exclude": ["group:traders"]}}
    hold = (await harness.asks(started_by="user:lee", **asked)).id
    await votes(harness, hold, harness.tokens["dana"], session=loss == "token of a session")
    await loses(harness, loss, harness.tokens["dana"])
    said = await harness.decide("sam", hold)
    row = await harness.row(hold)
    lapsed = [each for each in await harness.audit() if each["action"] == "vote_lapsed"]
    assert (row.status, [each["actor"] for each in lapsed]) == (HoldStatus.pending, ["user:dana"])
    assert lapsed[0]["data"]["why"]
    assert said.status_code == 200
    if rule == "order":
        # His signature was the first one: it is the turn of the second seat, which is his too.
        assert row.assignee_value == "sam"
        return
    assert (await harness.decide("kim", hold)).json()["status"] == "resolved"
    assert b'"decision":"approve"' in ((await harness.row(hold)).resolution or b"")


@pytest.mark.parametrize("rule", RULES)
async def test_a_vote_counts_when_its_author_keeps_the_right(harness: Harness, rule: str) -> None:
    hold = (await harness.asks(started_by="user:lee", **RULES[rule])).id
    assert (await harness.decide("dana", hold)).status_code == 200
    assert (await harness.decide("sam", hold)).json()["status"] == "resolved"


async def test_a_vote_counts_when_the_hold_was_handed_on_since(harness: Harness) -> None:
    hold = (await harness.asks(started_by="user:lee", **RULES["quorum"])).id
    assert (await harness.decide("dana", hold)).status_code == 200
    await harness.ask("ada", "POST", f"/v1/holds/{hold}/reassign", {"assignee": "role:cfo"})
    assert (await harness.decide("kim", hold)).json()["status"] == "resolved"


async def test_a_signature_of_a_new_assignee_counts_when_the_hold_moves_on(harness: Harness) -> None:
    asked = {"approval": {"mode": "sequential", "of": ["user:dana", "user:sam"]}}
    hold = (await harness.asks(started_by="user:lee", **asked)).id
    await harness.ask("ada", "POST", f"/v1/holds/{hold}/reassign", {"assignee": "user:kim"})
    assert (await harness.decide("kim", hold)).status_code == 200
    assert (await harness.decide("sam", hold)).json()["status"] == "resolved"


async def test_later_signatures_lapse_when_an_earlier_one_does(harness: Harness) -> None:
    asked = {"approval": {"mode": "sequential", "of": ["group:finance", "user:sam", "user:ada"]}}
    hold = (await harness.asks(started_by="user:lee", **asked)).id
    for name in ("dana", "sam"):
        assert (await harness.decide(name, hold)).status_code == 200
    await Registrar(await harness.hf.open()).leave("default", "group:finance", "dana")
    refused = await harness.decide("ada", hold)
    row = await harness.row(hold)
    assert (refused.status_code, row.assignee_value) == (403, "finance")
    lapsed = [each["actor"] for each in await harness.audit() if each["action"] == "vote_lapsed"]
    assert lapsed == ["user:dana", "user:sam"]
    for name in ("kim", "sam", "ada"):
        answer = await harness.decide(name, hold)
        assert answer.status_code == 200, answer.text
    assert (await harness.row(hold)).status is HoldStatus.resolved


async def test_a_voter_votes_again_when_the_right_comes_back(harness: Harness) -> None:
    hold = (await harness.asks(started_by="user:lee", **RULES["quorum"])).id
    registrar = Registrar(await harness.hf.open())
    assert (await harness.decide("dana", hold)).status_code == 200
    await registrar.leave("default", "group:finance", "dana")
    assert (await harness.decide("sam", hold)).json()["status"] == "pending"
    await registrar.join("default", "group:finance", "dana")
    assert (await harness.decide("dana", hold)).json()["status"] == "resolved"


@pytest.mark.parametrize("who", ["nobody", "the substitute", "the person who was away"])
async def test_a_vote_of_a_substitute_counts_when_the_absence_ends_and_both_could_decide(
    harness: Harness, who: str
) -> None:
    hold = (await harness.asks(started_by="user:lee", **RULES["quorum"])).id
    registrar = Registrar(await harness.hf.open())
    await harness.ask("dana", "PUT", "/v1/directory/me/away", {"substitute": "ada"}, status=204)
    assert (await harness.decide("ada", hold)).status_code == 200
    await harness.ask("dana", "DELETE", "/v1/directory/me/away", status=204)
    if who == "the substitute":
        await registrar.put_person("default", Person(id="ada", email="ada@acme", active=False))
    elif who == "the person who was away":
        await registrar.leave("default", "group:finance", "dana")
    done = await harness.decide("sam", hold)
    assert done.json()["status"] == ("resolved" if who == "nobody" else "pending")
