"""A vote is cast when it is given and applied with the last one: it lapses if its author loses the right in
between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast import Person, Registrar
from holdfast.types.status import HoldStatus
from tests.api.office import SITE, Office, office_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-06")]

RULES: dict[str, dict[str, Any]] = {
    "quorum": {"assignee": "group:finance", "approval": {"mode": "quorum", "need": 2}},
    "quorum of several": {"approval": {"mode": "quorum", "need": 2, "of": ["group:finance", "role:cfo"]}},
    "order": {"approval": {"mode": "sequential", "of": ["group:finance", "user:sam"]}},
}
LOSSES = ("membership", "person", "active", "token", "token of a session", "exclusion")


@pytest.fixture
async def office(anyio_backend: str) -> AsyncIterator[Office]:
    async with office_of() as found:
        # Enough members, so that a quorum stays possible without one of them.
        await Registrar(await found.hf.open()).put_group("default", "finance", ["dana", "sam", "kim"])
        yield found


async def votes(office: Office, hold: str, token: str, *, session: bool) -> None:
    """Dana, with a token that an operator made for her."""
    if not session:
        assert (await office.decide(token, hold)).status_code == 200
        return
    async with httpx2.AsyncClient(transport=office.transport, base_url=SITE) as browser:
        await browser.post("/sign-in", data={"token": token})
        csrf = {"X-CSRF-Token": (await browser.get("/v1/session")).json()["csrf"]}
        sent = await browser.post(f"/v1/holds/{hold}/resolve", json={"decision": "approve"}, headers=csrf)
        assert sent.status_code == 200


async def loses(office: Office, loss: str, token: str) -> None:
    registrar = Registrar(await office.hf.open())
    if loss == "membership":
        await registrar.leave("default", "group:finance", "dana")
    elif loss == "person":
        await registrar.delete_person("default", "dana")
    elif loss == "active":
        await registrar.put_person("default", Person(id="dana", email="dana@acme", active=False))
    elif loss == "exclusion":
        await registrar.join("default", "group:traders", "dana")
    else:
        await office.ask("ada", "DELETE", f"/v1/tokens/{token.split('_')[1]}")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rule", RULES)
async def test_a_vote_lapses_when_its_author_loses_the_right(office: Office, rule: str, loss: str) -> None:
    asked = {**RULES[rule], "approval": {**RULES[rule]["approval"], "exclude": ["group:traders"]}}
    hold = (await office.asks(started_by="user:lee", **asked)).id
    await votes(office, hold, office.tokens["dana"], session=loss == "token of a session")
    await loses(office, loss, office.tokens["dana"])
    said = await office.decide("sam", hold)
    row = await office.row(hold)
    lapsed = [each for each in await office.audit() if each["action"] == "vote_lapsed"]
    assert (row.status, [each["actor"] for each in lapsed]) == (HoldStatus.pending, ["user:dana"])
    assert lapsed[0]["data"]["why"]
    assert said.status_code == 200
    if rule == "order":
        # His signature was the first one: it is the turn of the second seat, which is his too.
        assert row.assignee_value == "sam"
        return
    assert (await office.decide("kim", hold)).json()["status"] == "resolved"
    assert b'"decision":"approve"' in ((await office.row(hold)).resolution or b"")


@pytest.mark.parametrize("rule", RULES)
async def test_a_vote_counts_when_its_author_keeps_the_right(office: Office, rule: str) -> None:
    hold = (await office.asks(started_by="user:lee", **RULES[rule])).id
    assert (await office.decide("dana", hold)).status_code == 200
    assert (await office.decide("sam", hold)).json()["status"] == "resolved"


async def test_a_vote_counts_when_the_hold_was_handed_on_since(office: Office) -> None:
    hold = (await office.asks(started_by="user:lee", **RULES["quorum"])).id
    assert (await office.decide("dana", hold)).status_code == 200
    await office.ask("ada", "POST", f"/v1/holds/{hold}/reassign", {"assignee": "role:cfo"})
    assert (await office.decide("kim", hold)).json()["status"] == "resolved"


async def test_a_signature_of_a_new_assignee_counts_when_the_hold_moves_on(office: Office) -> None:
    asked = {"approval": {"mode": "sequential", "of": ["user:dana", "user:sam"]}}
    hold = (await office.asks(started_by="user:lee", **asked)).id
    await office.ask("ada", "POST", f"/v1/holds/{hold}/reassign", {"assignee": "user:kim"})
    assert (await office.decide("kim", hold)).status_code == 200
    assert (await office.decide("sam", hold)).json()["status"] == "resolved"


async def test_later_signatures_lapse_when_an_earlier_one_does(office: Office) -> None:
    asked = {"approval": {"mode": "sequential", "of": ["group:finance", "user:sam", "user:ada"]}}
    hold = (await office.asks(started_by="user:lee", **asked)).id
    for name in ("dana", "sam"):
        assert (await office.decide(name, hold)).status_code == 200
    await Registrar(await office.hf.open()).leave("default", "group:finance", "dana")
    refused = await office.decide("ada", hold)
    row = await office.row(hold)
    assert (refused.status_code, row.assignee_value) == (403, "finance")
    lapsed = [each["actor"] for each in await office.audit() if each["action"] == "vote_lapsed"]
    assert lapsed == ["user:dana", "user:sam"]
    for name in ("kim", "sam", "ada"):
        answer = await office.decide(name, hold)
        assert answer.status_code == 200, answer.text
    assert (await office.row(hold)).status is HoldStatus.resolved


async def test_a_voter_votes_again_when_the_right_comes_back(office: Office) -> None:
    hold = (await office.asks(started_by="user:lee", **RULES["quorum"])).id
    registrar = Registrar(await office.hf.open())
    assert (await office.decide("dana", hold)).status_code == 200
    await registrar.leave("default", "group:finance", "dana")
    assert (await office.decide("sam", hold)).json()["status"] == "pending"
    await registrar.join("default", "group:finance", "dana")
    assert (await office.decide("dana", hold)).json()["status"] == "resolved"


@pytest.mark.parametrize("who", ["nobody", "the substitute", "the person who was away"])
async def test_a_vote_of_a_substitute_counts_when_the_absence_ends_and_both_could_decide(
    office: Office, who: str
) -> None:
    hold = (await office.asks(started_by="user:lee", **RULES["quorum"])).id
    registrar = Registrar(await office.hf.open())
    await office.ask("dana", "PUT", "/v1/directory/me/away", {"substitute": "ada"}, status=204)
    assert (await office.decide("ada", hold)).status_code == 200
    await office.ask("dana", "DELETE", "/v1/directory/me/away", status=204)
    if who == "the substitute":
        await registrar.put_person("default", Person(id="ada", email="ada@acme", active=False))
    elif who == "the person who was away":
        await registrar.leave("default", "group:finance", "dana")
    done = await office.decide("sam", hold)
    assert done.json()["status"] == ("resolved" if who == "nobody" else "pending")
