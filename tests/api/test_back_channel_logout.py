"""The provider tells that a person has signed out there (OpenID Connect Back-Channel Logout 1.0)."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest

from holdfast import Holdfast
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.oidc.flow import Oidc
from holdfast.api.auth.sessions import ProviderSession, Sessions
from holdfast.api.auth.settings import OidcSettings
from holdfast.types.status import HoldStatus
from tests.api.conftest import serving
from tests.api.harness import SITE, Harness, harness_of
from tests.api.issuer import LOGOUT, Issuer, issuer_served
from tests.api.test_auth_oidc import at_the_provider, browser, settings
from tests.api.test_step_up import settled
from tests.services import oidc

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-06")]
PATH = "/sign-in/oidc/logout"


@pytest.fixture(scope="module")
async def issuer(anyio_backend: str) -> AsyncIterator[Issuer]:
    async with issuer_served() as made:
        yield made


@pytest.fixture
async def harness(issuer: Issuer) -> AsyncIterator[Harness]:
    async with harness_of() as found:
        known = OidcSettings(issuer=issuer.address, client_id="holdfast")
        found.authenticator.oidc = Oidc(known)
        yield found


async def signed_in(harness: Harness, sub: str, sid: str, name: str = "dana") -> httpx2.AsyncClient:
    """A browser whose session began at the provider, in the provider's session `sid`."""
    sessions = Sessions(await harness.hf.open())
    grant = CredentialGrant(subject=f"user:{name}", roles=("member",))
    opened = await sessions.begin(grant, how="oidc", provider=ProviderSession(sub=sub, sid=sid))
    client = httpx2.AsyncClient(transport=harness.transport, base_url=SITE)
    client.cookies.set("__Host-holdfast_session", opened.id, domain="office.example")
    client.headers["X-CSRF-Token"] = (await client.get("/v1/session")).json()["csrf"]
    return client


async def is_signed_in(client: httpx2.AsyncClient) -> bool:
    return (await client.get("/v1/session")).status_code == 200


async def tells(harness: Harness, token: str) -> httpx2.Response:
    """As a provider does: no cookie, no origin, no credential."""
    async with httpx2.AsyncClient(transport=harness.transport, base_url=SITE) as client:
        return await client.post(PATH, data={"logout_token": token})


async def test_sign_out_at_the_provider_ends_the_sessions_that_it_names(
    harness: Harness, issuer: Issuer
) -> None:
    first, second = await signed_in(harness, "1", "s1"), await signed_in(harness, "1", "s2")
    other = await signed_in(harness, "2", "s3", "sam")
    by_session = await tells(harness, issuer.logout_token(sub=None, sid="s1"))
    assert (by_session.status_code, by_session.headers["cache-control"]) == (200, "no-store")
    assert [await is_signed_in(each) for each in (first, second, other)] == [False, True, True]
    foreign = await tells(
        harness, issuer.logout_token(sub="2", sid="s2")
    )  # nobody's: not this person's session
    assert (foreign.status_code, await is_signed_in(second), await is_signed_in(other)) == (200, True, True)
    assert (await tells(harness, issuer.logout_token(sub="1"))).status_code == 200
    assert [await is_signed_in(each) for each in (second, other)] == [False, True]
    noted = [e for e in await harness.audit() if e["action"] == "signed_out"]
    assert [(e["actor"], e["data"]["by"]) for e in noted] == [("user:dana", "provider")] * 2


async def test_a_placed_decision_lapses_when_its_author_signs_out_at_the_provider(
    harness: Harness, issuer: Issuer
) -> None:
    hold = (await harness.asks(assignee="group:finance", undo="10m")).id
    dana = await signed_in(harness, "1", "s1")
    sent = await dana.post(f"/v1/holds/{hold}/place", json={"decision": "approve", "seconds": 600})
    assert sent.status_code == 200, sent.text
    assert (await tells(harness, issuer.logout_token(sid="s1"))).status_code == 200
    assert await settled(harness, hold, by="sweep") is HoldStatus.pending


async def test_a_logout_token_works_once(harness: Harness, issuer: Issuer) -> None:
    token = issuer.logout_token()
    assert (await tells(harness, token)).status_code == 200
    dana = await signed_in(harness, "1", "s1")
    again = await tells(harness, token)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_request")
    assert "used before" in again.json()["error_description"]
    assert await is_signed_in(dana)


FORGED: dict[str, Callable[[Issuer], str]] = {
    "no token": lambda it: "abc",
    "nothing": lambda it: "",
    "somebody else's key": lambda it: it.logout_token(key=it.stranger),
    "changed after it was signed": lambda it: it.logout_token()[:-6] + "AAAAAA",
    "an ID token": lambda it: it.token(),
    "another issuer": lambda it: it.logout_token(iss="https://evil.example"),
    "another audience": lambda it: it.logout_token(aud="another"),
    "no audience": lambda it: it.logout_token(aud=None),
    "expired": lambda it: it.logout_token(exp=int(time.time()) - 61),
    "no end": lambda it: it.logout_token(exp=None),
    "of the future": lambda it: it.logout_token(iat=int(time.time()) + 600),
    "no time": lambda it: it.logout_token(iat=None),
    "no name of its own": lambda it: it.logout_token(jti=None),
    "a nonce": lambda it: it.logout_token(nonce="n"),
    "no events": lambda it: it.logout_token(events=None),
    "another event": lambda it: it.logout_token(events={"https://example.com/event": {}}),
    "an event that is no object": lambda it: it.logout_token(events={LOGOUT: "yes"}),
    "events as a list": lambda it: it.logout_token(events=[LOGOUT]),
    "neither person nor session": lambda it: it.logout_token(sub=None),
    "an empty session": lambda it: it.logout_token(sid=""),
    "a session that is no text": lambda it: it.logout_token(sid={"a": 1}),
    "another type": lambda it: it.logout_token(typ="at+jwt"),
}


@pytest.mark.parametrize("how", FORGED)
async def test_a_token_that_is_no_notice_of_the_provider_ends_nothing(
    harness: Harness, issuer: Issuer, how: str
) -> None:
    dana = await signed_in(harness, "1", "s1")
    refused = await tells(harness, FORGED[how](issuer))
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request"), refused.text
    assert await is_signed_in(dana)


async def test_a_server_without_provider_has_no_such_place(harness: Harness) -> None:
    harness.authenticator.oidc = None
    assert (await tells(harness, "x")).status_code == 404
    assert (await harness.client.post(PATH, json={"logout_token": "x"})).status_code == 404


async def test_person_who_signs_out_at_a_real_provider_is_signed_out_here(
    tmp_path: Path, anyio_backend: str
) -> None:
    with oidc.provider() as issuer:
        async with (
            Holdfast(f"sqlite:{tmp_path / 'o.db'}") as hf,
            serving(hf, sign_in=settings(issuer)) as hall,
            browser() as client,
        ):
            await client.get(await at_the_provider(client, hall, "dana"))
            assert (await client.get(f"{hall.serving.address}/v1/session")).status_code == 200
            await client.post(f"{issuer}/told", content=hall.serving.address + PATH)
            page = await client.get(f"{issuer}/session/end", params={"client_id": "holdfast"})
            form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text)) | {"logout": "yes"}
            place = re.search(r'action="([^"]+)"', page.text)
            assert place is not None, page.text
            await client.post(str(httpx2.URL(str(page.url)).join(place[1])), data=form)
            assert (await client.get(f"{hall.serving.address}/v1/session")).status_code == 401
