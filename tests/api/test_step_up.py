"""A recent sign-in for strict holds, decisions that lapse with the right, and one's own absence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from holdfast import Person, Registrar
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.oidc.flow import Oidc
from holdfast.api.auth.sessions import Sessions
from holdfast.api.auth.settings import OidcSettings
from holdfast.errors import DirectoryUnavailableError
from holdfast.holds.actions.finalize import due_change
from holdfast.holds.directory.file import PeopleOfTenant
from holdfast.types.status import HoldStatus
from tests.api.harness import SITE, Harness, harness_of

pytestmark = pytest.mark.anyio

STRICT: dict[str, Any] = {"assignee": "user:dana", "strict_assignee": True, "step_up": "5m", "undo": "10m"}


@pytest.fixture
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness_of() as found:
        yield found


@asynccontextmanager
async def browser(harness: Harness, name: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser in which somebody has just signed in."""
    async with httpx2.AsyncClient(transport=harness.transport, base_url=SITE) as client:
        client.headers["Origin"] = SITE
        signed = await client.post("/v1/session", json={"token": harness.tokens[name]})
        assert signed.status_code == 204, signed.text
        client.headers["X-CSRF-Token"] = (await client.get("/v1/session")).json()["csrf"]
        yield client


# ---------------------------------------------------------------------- step_up


@pytest.mark.covers("SAFE-CHAIN-05")
async def test_a_strict_hold_is_decided_only_after_a_recent_sign_in(harness: Harness) -> None:
    hold = await harness.asks(**STRICT)
    by_token = await harness.decide("dana", hold.id)
    assert (by_token.status_code, by_token.json()["code"]) == (403, "step_up_required")
    async with browser(harness, "dana") as dana:
        harness.clock.advance(minutes=6)
        path = f"/v1/holds/{hold.id}/resolve"
        late = await dana.post(path, json={"decision": "approve", "comment": "fine"})
        assert (late.status_code, late.json()["code"]) == (403, "step_up_required")
        # Nothing that was typed is lost.
        assert (await dana.get(f"/v1/holds/{hold.id}/draft")).json()["comment"] == "fine"
        # The page shows the form all the same, and then leads to the sign-in.
        page = await dana.get(f"/inbox/{hold.id}", headers={"Accept": "text/html"}, follow_redirects=True)
        assert 'name="decision"' in page.text
        form = {"decision": "approve", "csrf_token": dana.headers["X-CSRF-Token"]}
        sent = await dana.post(page.url.path, data=form, headers={"Accept": "text/html"})
        assert f"/sign-in?fresh=1&amp;next=/holds/{hold.id}" in sent.text
    async with browser(harness, "dana") as again:
        assert (await again.post(path, json={"decision": "approve"})).status_code == 200
    assert (await harness.row(hold.id)).status is HoldStatus.resolved


@pytest.mark.covers("SAFE-CHAIN-05")
async def test_a_token_is_no_sign_in_when_people_sign_in_at_a_provider(harness: Harness) -> None:
    provider = OidcSettings(issuer="https://login.example", client_id="holdfast")
    harness.authenticator.oidc = Oidc(provider)
    hold = await harness.asks(**STRICT)
    async with browser(harness, "dana") as dana:
        refused = await dana.post(f"/v1/holds/{hold.id}/resolve", json={"decision": "approve"})
        assert (refused.status_code, refused.json()["code"]) == (403, "step_up_required")
    assert (await harness.row(hold.id)).status is HoldStatus.pending


@pytest.mark.covers("SAFE-CHAIN-05")
async def test_no_link_and_no_right_replaces_the_sign_in(harness: Harness) -> None:
    hold = await harness.asks(**{**STRICT, "links": "decide_low_risk"})
    await harness.delivers()
    assert not await harness.decide_by_link(harness.mail.links("dana@acme")[-1])
    over = await harness.decide("ada", hold.id, reason="I may")
    assert (over.status_code, over.json()["code"]) == (403, "step_up_required")


# ---------------------------------------------------------------------- decisions that lapse


async def placed(harness: Harness, who: str, **asked: Any) -> str:
    hold = await harness.asks(**{"assignee": "group:finance", "undo": "10m", **asked})
    body = {"decision": "approve", "comment": "fine", "seconds": 600}
    await harness.ask(who, "POST", f"/v1/holds/{hold.id}/place", body)
    assert (await harness.row(hold.id)).placed_by is not None
    return hold.id


async def settled(harness: Harness, hold: str, *, by: str) -> HoldStatus:
    """After the window: by the sweep, or by the next person who looks."""
    harness.clock.advance(minutes=11)
    if by == "sweep":
        sweeper = (await harness.hf.service()).runtime.sweeper
        assert sweeper is not None
        await sweeper.sweep()
    else:
        await harness.ask("ada", "GET", f"/v1/holds/{hold}")
    return (await harness.row(hold)).status


@pytest.mark.covers("SAFE-CHAIN-06")
@pytest.mark.parametrize("by", ["sweep", "reader"])
@pytest.mark.parametrize("loss", ["membership", "person", "active", "token", "absence", "none"])
async def test_a_placed_decision_lapses_when_its_author_loses_the_right(
    harness: Harness, loss: str, by: str
) -> None:
    registrar = Registrar(await harness.hf.open())
    who, asked = "dana", {}
    if loss == "token":
        who = harness.tokens["dana's"] = await harness.mint("ada", "user:dana")
    if loss == "absence":
        who, asked = "kim", {"assignee": "user:dana"}
        await harness.ask("dana", "PUT", "/v1/directory/me/away", {"substitute": "kim"}, status=204)
    hold = await placed(harness, who, **asked)
    if loss == "membership":
        await registrar.leave("default", "group:finance", "dana")
    elif loss == "person":
        await registrar.delete_person("default", "dana")
    elif loss == "active":
        await registrar.put_person("default", Person(id="dana", email="dana@acme", active=False))
    elif loss == "token":
        await harness.ask("ada", "DELETE", f"/v1/tokens/{who.split('_')[1]}")
    elif loss == "absence":
        await harness.ask("dana", "DELETE", "/v1/directory/me/away", status=204)
    status = await settled(harness, hold, by=by)
    row = await harness.row(hold)
    if loss == "none":
        assert status is HoldStatus.resolved
        return
    assert (status, row.placed, row.placed_by) == (HoldStatus.pending, None, None)
    lapsed = [each for each in await harness.audit() if each["action"] == "placed_lapsed"]
    assert len(lapsed) == 1
    assert lapsed[0]["data"]["why"]
    # Another member can decide it.
    if loss != "absence":
        assert (await harness.decide("sam", hold)).status_code == 200


@pytest.mark.covers("SAFE-CHAIN-06")
async def test_a_placed_decision_waits_while_the_directory_cannot_say(harness: Harness) -> None:
    hold = await placed(harness, "dana")
    ctx = (await harness.hf.holds()).ctx
    known, ctx.directory = ctx.directory, Unavailable()
    harness.clock.advance(minutes=11)
    row = await harness.row(hold)
    assert await due_change(ctx, row, ctx.now()) is None
    ctx.directory = known
    made = await due_change(ctx, row, ctx.now())
    assert made is not None
    assert made.fields["status"] is HoldStatus.resolved


class Unavailable(PeopleOfTenant):
    async def person(self, tenant: str, ref: str) -> Person | None:  # type: ignore[override]
        raise DirectoryUnavailableError("the directory is unavailable.")


# ---------------------------------------------------------------------- one's own absence


@pytest.mark.covers("SAFE-CHAIN-07", "WB-67")
async def test_people_set_their_own_absence_and_nobody_elses(harness: Harness) -> None:
    body = {"substitute": "kim", "until": "2031-01-01T00:00:00Z"}
    others = await harness.send("dana", "PUT", "/v1/directory/people/sam/away", body)
    assert others.status_code == 403
    await harness.ask("dana", "PUT", "/v1/directory/me/away", body, status=204)
    assert (await harness.ask("dana", "GET", "/v1/directory/me"))["away"]["substitute"] == "kim"
    hold = await harness.asks(assignee="user:dana", strict_assignee=True)
    done = await harness.ask("kim", "POST", f"/v1/holds/{hold.id}/resolve", {"decision": "approve"})
    assert done["resolution"]["on_behalf_of"] == "user:dana"
    await harness.ask("dana", "DELETE", "/v1/directory/me/away", status=204)
    after = await harness.asks(assignee="user:dana", strict_assignee=True)
    assert (await harness.decide("kim", after.id)).status_code == 403
    said = [each for each in await harness.audit() if each["action"] in ("away", "back")]
    assert [(each["actor"], each["data"]["person"]) for each in said] == [("user:dana", "dana")] * 2
    robot = await harness.mint("ada", "service:robot")
    assert (await harness.send(robot, "PUT", "/v1/directory/me/away", body)).status_code == 404


@pytest.mark.covers("SAFE-CHAIN-07")
async def test_people_set_and_end_their_own_absence_on_a_page(harness: Harness) -> None:
    async with browser(harness, "dana") as dana:
        dana.headers["Accept"] = "text/html"
        form = {"csrf_token": dana.headers["X-CSRF-Token"], "act": "set", "substitute": "kim@acme"}
        assert "your substitute decides" in (await dana.get("/absence")).text
        wrong = await dana.post("/absence", data={**form, "substitute": "nobody", "last_day": "2031-05-01"})
        assert (wrong.status_code, 'value="2031-05-01"' in wrong.text) == (404, True)
        odd = await dana.post("/absence", data={**form, "last_day": "tomorrow"})
        assert (odd.status_code, "not a date" in odd.text) == (422, True)
        sent = await dana.post("/absence", data={**form, "last_day": "2031-05-01"})
        assert sent.status_code == 303
        assert "kim acts for you until 2031-05-01" in (await dana.get("/absence")).text
        own = await harness.ask("dana", "GET", "/v1/directory/me")
        assert own["away"]["until"].startswith("2031-05-02T00:00:00")
        await dana.post("/absence", data={**form, "act": "end"})
        assert "I am back" not in (await dana.get("/absence")).text
        assert (await harness.ask("dana", "GET", "/v1/directory/me"))["away"] is None
    stranger = await harness.mint("ada", "user:stranger")
    page = await harness.send(stranger, "GET", "/absence", headers={"Accept": "text/html"})
    assert "not in the directory" in page.text


# ---------------------------------------------------------------------- sessions that end

ENDS = (
    "signs out",
    "signs out of the API",
    "is signed out",
    "another signs in",
    "signs in again",
    "goes",
)
KINDS = ("oidc", "code", "token")


@asynccontextmanager
async def signed_in(harness: Harness, name: str, how: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser with a session that was started at a provider, by a code of the operator, or with a token."""
    async with httpx2.AsyncClient(transport=harness.transport, base_url=SITE) as browser:
        if how == "token":
            await browser.post("/sign-in", data={"token": harness.tokens[name]})
        else:
            sessions = Sessions(await harness.hf.open())
            grant = CredentialGrant(subject=f"user:{name}", roles=("member",))
            opened = await sessions.begin(grant, how=how)
            browser.cookies.set("__Host-holdfast_session", opened.id, domain="office.example")
        browser.headers["X-CSRF-Token"] = (await browser.get("/v1/session")).json()["csrf"]
        yield browser


async def ends(harness: Harness, browser: httpx2.AsyncClient, end: str) -> None:
    if end == "signs out":
        form = {"csrf_token": browser.headers["X-CSRF-Token"]}
        assert (await browser.post("/sign-out", data=form)).status_code == 303
    elif end == "signs out of the API":
        assert (await browser.delete("/v1/session")).status_code == 204
    elif end == "is signed out":
        sessions = Sessions(await harness.hf.open())
        assert await sessions.end_all("user:dana", "default", by="user:local") == 1
    elif end == "another signs in":
        assert (await browser.post("/sign-in", data={"token": harness.tokens["sam"]})).status_code == 303
    elif end == "signs in again":
        assert (await browser.post("/sign-in", data={"token": harness.tokens["dana"]})).status_code == 303


@pytest.mark.covers("SAFE-CHAIN-06")
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("how", KINDS)
async def test_a_placed_decision_lapses_when_its_session_is_ended(
    harness: Harness, how: str, end: str
) -> None:
    hold = (await harness.asks(assignee="group:finance", undo="10m")).id
    async with signed_in(harness, "dana", how) as browser:
        sent = await browser.post(f"/v1/holds/{hold}/place", json={"decision": "approve", "seconds": 600})
        assert sent.status_code == 200, sent.text
        await ends(harness, browser, end)
    status = await settled(harness, hold, by="sweep")
    stays = end in ("signs in again", "goes")
    assert status is (HoldStatus.resolved if stays else HoldStatus.pending)
    if not stays:
        assert [e["data"]["why"] for e in await harness.audit() if e["action"] == "placed_lapsed"]
        history = await harness.ask("sam", "GET", f"/v1/holds/{hold}/history")
        sentence = "The decision of dana lapsed: their session was ended before it was final"
        assert sentence in [each["text"] for each in history["items"]]


@pytest.mark.parametrize("end", ["signs out", "is signed out"])
async def test_a_placed_decision_stays_if_its_session_is_ended_after_the_window(
    harness: Harness, end: str
) -> None:
    """Also if no worker has made it final in the meantime."""
    hold = (await harness.asks(assignee="group:finance", undo="10m")).id
    async with signed_in(harness, "dana", "code") as browser:
        await browser.post(f"/v1/holds/{hold}/place", json={"decision": "approve", "seconds": 600})
        harness.clock.advance(seconds=600)
        await ends(harness, browser, end)
    assert await settled(harness, hold, by="sweep") is HoldStatus.resolved


@pytest.mark.covers("SAFE-CHAIN-06")
@pytest.mark.parametrize(("end", "counts"), [("signs out", True), ("is signed out", False)])
async def test_a_vote_lapses_when_its_session_was_ended_for_the_voter(
    harness: Harness, end: str, counts: bool
) -> None:
    asked: dict[str, Any] = {"assignee": "group:finance", "approval": {"mode": "quorum", "need": 2}}
    hold = (await harness.asks(**asked)).id
    async with signed_in(harness, "dana", "oidc") as browser:
        sent = await browser.post(f"/v1/holds/{hold}/resolve", json={"decision": "approve"})
        assert sent.status_code == 200, sent.text
        await ends(harness, browser, end)
    said = (await harness.decide("sam", hold)).json()
    assert said["status"] == ("resolved" if counts else "pending")
