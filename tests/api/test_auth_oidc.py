from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast import Holdfast
from holdfast.api.auth.oidc.flow import SignInState, grant_of
from holdfast.api.auth.settings import OidcSettings, SignInSettings
from holdfast.api.routes.sign_in import STATE_COOKIE
from tests.api.conftest import Server, serving
from tests.api.sign_in import audited
from tests.deadlines import HANG
from tests.services import oidc

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-AUTH-02")]


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with oidc.provider() as address:
        yield address


def settings(issuer: str, **more: Any) -> SignInSettings:
    given: dict[str, Any] = {
        "issuer": issuer,
        "client_id": "holdfast",
        "client_secret": oidc.SECRET,
        "roles": {"admin": ("platform",)},
        "tenant_claim": "org",
        "tenants": {"acme.example": "acme", "globex.example": "globex"},
    }
    return SignInSettings(oidc=OidcSettings(**given | more))


@pytest.fixture
async def hall(tmp_path: Path, issuer: str, anyio_backend: str) -> Any:
    store = f"sqlite:{tmp_path / 'o.db'}"
    async with Holdfast(store) as hf, serving(hf, sign_in=settings(issuer)) as found:
        yield found


def browser() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=HANG)


async def at_the_provider(client: httpx2.AsyncClient, server: Server, name: str, path: str = "/") -> str:
    """A person signs in there; answers the address that the provider sends them back to."""
    answer = await client.get(f"{server.serving.address}/sign-in/oidc", params={"next": path})
    for _ in range(12):
        if answer.is_redirect:
            where = str(httpx2.URL(str(answer.url)).join(answer.headers["location"]))
            if where.startswith(server.serving.address):
                return where
            answer = await client.get(where)
            continue
        form = re.search(r'<form[^>]*action="([^"]+)"', answer.text)
        assert form is not None, answer.text
        prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
        assert prompt is not None, answer.text
        said = {"prompt": prompt[1], "login": name, "password": "any"}
        answer = await client.post(str(httpx2.URL(str(answer.url)).join(form[1])), data=said)
    raise AssertionError("the provider goes round in circles")


async def test_person_signs_in_at_a_real_provider(hall: Server) -> None:
    async with browser() as client:
        back = await at_the_provider(client, hall, "dana", "/runs/17")
        answer = await client.get(back)
        assert (answer.status_code, answer.headers["location"]) == (303, "/runs/17")
        said = (await client.get(f"{hall.serving.address}/v1/session")).json()
        assert (said["subject"], said["tenant"]) == ("user:dana@acme.example", "acme")
        assert said["groups"] == ["everybody", "platform"]
        assert "admin:manage" in said["rights"]
        again = await client.get(back)  # the same address from the browser's history
        assert again.status_code == 401
    (row,) = await audited(hall, "signed_in", "acme")
    assert row.actor == "user:dana@acme.example"


async def test_person_in_no_group_is_a_member(hall: Server) -> None:
    async with browser() as client:
        await client.get(await at_the_provider(client, hall, "lea"))
        said = (await client.get(f"{hall.serving.address}/v1/session")).json()
    assert said["rights"] == ["holds:read", "holds:write"]


@pytest.mark.covers("WB-67", "WB-67-tenants")
async def test_person_of_two_tenants_switches_between_them_and_to_no_other(hall: Server) -> None:
    async with browser() as client:
        await client.get(await at_the_provider(client, hall, "both"))
        session = f"{hall.serving.address}/v1/session"
        said = (await client.get(session)).json()
        assert (said["tenant"], said["tenants"]) == ("acme", ["acme", "globex"])
        before = client.cookies["holdfast_session"]
        headers = {"X-CSRF-Token": said["csrf"]}
        for wrong in ("default", "_server", "", "GLOBEX"):
            refused = await client.post(f"{session}/tenant", json={"tenant": wrong}, headers=headers)
            assert refused.status_code == 403
        # Another site's page does not know the token of the session.
        assert (await client.post(f"{session}/tenant", json={"tenant": "globex"})).status_code == 403
        assert client.cookies["holdfast_session"] == before
        done = await client.post(f"{session}/tenant", json={"tenant": "globex"}, headers=headers)
        assert done.status_code == 204
        now = (await client.get(session)).json()
        assert (now["subject"], now["tenant"]) == (said["subject"], "globex")
        assert now["tenants"] == ["acme", "globex"]
        assert now["csrf"] != said["csrf"]
        # The old cookie is worth nothing.
        old = await client.get(session, headers={"Cookie": f"holdfast_session={before}"})
        assert old.status_code == 401 or old.json()["tenant"] == "globex"
    async with browser() as other:
        answer = await other.get(session, headers={"Cookie": f"holdfast_session={before}"})
        assert answer.status_code == 401
    assert [row.actor for row in await audited(hall, "signed_in", "globex")] == ["user:both@acme.example"]
    assert len(await audited(hall, "signed_out", "acme")) == 1


@pytest.mark.covers("WB-67-tenants")
async def test_person_of_one_tenant_and_a_token_have_nothing_to_switch_to(hall: Server) -> None:
    async with browser() as client:
        await client.get(await at_the_provider(client, hall, "dana"))
        session = f"{hall.serving.address}/v1/session"
        said = (await client.get(session)).json()
        assert said["tenants"] == ["acme"]
        headers = {"X-CSRF-Token": said["csrf"]}
        for tenant in ("acme", "globex"):
            answer = await client.post(f"{session}/tenant", json={"tenant": tenant}, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("name", "why"), [("nobody", "has not verified this address"), ("stray", "no tenant on this server")]
)
async def test_person_who_cannot_be_named_or_placed_is_not_let_in(hall: Server, name: str, why: str) -> None:
    async with browser() as client:
        answer = await client.get(await at_the_provider(client, hall, name))
        assert answer.status_code == 401
        assert why in answer.text
        assert "holdfast_session" not in client.cookies
    assert len(await audited(hall, "access_refused", "_server")) == 1


@pytest.mark.parametrize("change", ["no cookie", "state", "nonce", "verifier", "code", "iss", "denied"])
async def test_answer_that_does_not_belong_to_the_journey_is_refused(hall: Server, change: str) -> None:
    async with browser() as client:
        back = httpx2.URL(await at_the_provider(client, hall, "dana"))
        journey = SignInState.read(client.cookies.get(STATE_COOKIE))
        asked = dict(back.params)
        if change in ("state", "code", "iss"):
            asked[change] = "https://evil.example"
        if change == "denied":
            asked = {"state": asked["state"], "error": "access_denied"}
        if change in ("nonce", "verifier"):
            journey = SignInState(
                **{name: getattr(journey, name) for name in journey.__struct_fields__} | {change: "x" * 43}
            )
        cookies = {} if change == "no cookie" else {"Cookie": f"{STATE_COOKIE}={journey.text()}"}
    async with browser() as other:
        answer = await other.get(str(back.copy_with(params=asked)), headers=cookies)
        assert answer.status_code == 401, answer.text
        assert "the sign-in failed" in answer.text
        assert "holdfast_session" not in other.cookies


async def test_provider_that_is_away_is_reported_and_the_rest_works(
    tmp_path: Path, anyio_backend: str
) -> None:
    store, away = f"sqlite:{tmp_path / 'a.db'}", settings("http://127.0.0.1:9")
    async with Holdfast(store) as hf, serving(hf, sign_in=away) as found, browser() as client:
        answer = await client.get(f"{found.serving.address}/sign-in/oidc")
        assert answer.status_code == 502
        assert "does not work as expected" in answer.text
        await found.json("GET", "/v1/session")


async def signed_out(client: httpx2.AsyncClient, server: Server) -> str:
    """Where the browser is sent: by the page, since a form's answer may lead to no other site."""
    csrf = (await client.get(f"{server.serving.address}/v1/session")).json()["csrf"]
    answer = await client.post(f"{server.serving.address}/sign-out", data={"csrf_token": csrf})
    assert (await client.get(f"{server.serving.address}/v1/session")).status_code == 401
    if answer.status_code == 303:
        return str(answer.headers["location"])
    found = re.search(r'http-equiv="refresh" content="0; url=([^"]+)"', answer.text)
    assert found is not None, answer.text
    return unescape(found[1])


async def asks_who_it_is(client: httpx2.AsyncClient, server: Server, query: str = "") -> bool:
    """Whether the provider asks for a name again, or still knows this browser."""
    answer = await client.get(f"{server.serving.address}/sign-in/oidc{query}")
    while answer.is_redirect:
        where = str(httpx2.URL(str(answer.url)).join(answer.headers["location"]))
        if where.startswith(server.serving.address):
            return False
        answer = await client.get(where)
    return 'value="login"' in answer.text


@pytest.mark.covers("SAFE-CHAIN-05")
async def test_a_fresh_sign_in_is_asked_for_at_the_provider(tmp_path: Path, issuer: str) -> None:
    async with (
        Holdfast(f"sqlite:{tmp_path / 'o.db'}") as hf,
        serving(hf, sign_in=settings(issuer)) as hall,
        browser() as client,
    ):
        await client.get(await at_the_provider(client, hall, "dana"))
        assert not await asks_who_it_is(client, hall)
        assert await asks_who_it_is(client, hall, "?fresh=1")


@pytest.mark.covers("SAFE-CHAIN-05")
@pytest.mark.parametrize(
    ("claims", "since"),
    [({"auth_time": 1_700_000_000}, 1_700_000_000_000_000), ({}, 0), ({"auth_time": "now"}, 0)],
)
def test_the_provider_says_when_a_person_signed_in(claims: dict[str, Any], since: int) -> None:
    """Without it the sign-in may be long ago, and counts as such."""
    known = OidcSettings(issuer="https://id.example", client_id="holdfast", user="sub", tenant="acme")
    grant = grant_of(known, {"sub": "dana", **claims})
    session = grant.principal(method="session", credential="", channel="inbox", since=9)
    assert session.actor.signed_in_at == since
    assert grant.principal(method="token", credential="", channel="api").actor.signed_in_at is None


async def test_person_signs_out_at_the_provider_too_where_that_is_set(tmp_path: Path, issuer: str) -> None:
    store = f"sqlite:{tmp_path / 'o.db'}"
    wanted = settings(issuer, sign_out=True)
    async with Holdfast(store) as hf, serving(hf, sign_in=wanted) as hall, browser() as client:
        await client.get(await at_the_provider(client, hall, "dana"))
        assert not await asks_who_it_is(client, hall)
        await client.get(await at_the_provider(client, hall, "dana"))
        where = await signed_out(client, hall)
        assert where.startswith(issuer)
        assert "client_id=holdfast" in where
        page = await client.get(where)
        form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text)) | {"logout": "yes"}
        place = re.search(r'action="([^"]+)"', page.text)
        assert place is not None, page.text
        await client.post(str(httpx2.URL(str(page.url)).join(place[1])), data=form)
        assert await asks_who_it_is(client, hall)


async def test_person_stays_signed_in_at_the_provider_where_nothing_is_set(hall: Server) -> None:
    async with browser() as client:
        await client.get(await at_the_provider(client, hall, "dana"))
        assert await signed_out(client, hall) == "/sign-in"
        assert not await asks_who_it_is(client, hall)
