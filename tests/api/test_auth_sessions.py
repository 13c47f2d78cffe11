from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from websockets.asyncio.client import connect

from holdfast.api.auth.grants import SERVER, CredentialGrant
from holdfast.api.auth.sessions import SESSION, BrowserSession, Sessions, local_path
from holdfast.api.auth.settings import SignInSettings
from holdfast.store.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.api.conftest import Server, serving
from tests.api.sign_in import audited, browser, session, token

pytestmark = pytest.mark.anyio
NEW = {"subject": "service:bot", "roles": ["viewer"]}


@pytest.mark.covers("SERVER-AUTH-03")
async def test_token_becomes_a_session_that_no_script_can_read(server: Server) -> None:
    text = await token(server, "user:dana", "operator")
    async with browser(server) as client:
        answer = await client.post("/v1/session", json={"token": text})
        cookie = answer.headers["set-cookie"]
        assert answer.status_code == 204
        assert all(word in cookie for word in ("HttpOnly", "SameSite=lax", "Path=/"))
        assert "Secure" not in cookie  # plain http, on loopback
        said = (await client.get("/v1/session")).json()
    assert (said["subject"], said["method"]) == ("user:dana", "session")
    assert text not in cookie


@pytest.mark.covers("SERVER-AUTH-03")
async def test_cookie_is_secure_and_our_own_behind_https(server: Server) -> None:
    text = await token(server, "user:dana", "operator")
    public = SignInSettings(public_url="https://holdfast.example")
    async with serving(server.hf, sign_in=public) as safe, browser(safe) as client:
        cookie = (await client.post("/v1/session", json={"token": text})).headers["set-cookie"]
    assert cookie.startswith("__Host-holdfast_session=")
    assert "Secure" in cookie
    assert "Domain" not in cookie


@pytest.mark.covers("SERVER-AUTH-03")
async def test_change_with_a_session_shows_its_own_value(server: Server) -> None:
    mine, other = await session(server, "user:dana", "admin"), await session(server, "user:eve", "admin")
    async with browser(server, mine) as client:
        for shown in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": other.csrf}, {"X-CSRF-Token": "é"}):
            raw = {name: value.encode() for name, value in shown.items()}
            refused = await client.post("/v1/tokens", json=NEW, headers=raw)
            assert (refused.status_code, refused.json()["code"]) == (403, "csrf")
        result = (await client.get("/v1/session")).json()["csrf"]
        assert result == mine.csrf
        assert (
            await client.post("/v1/tokens", json=NEW, headers={"X-CSRF-Token": result})
        ).status_code == 201
    assert len(await audited(server, "token_created")) == 1


@pytest.mark.covers("SERVER-AUTH-03")
async def test_change_from_another_site_is_refused(server: Server) -> None:
    mine = await session(server, "user:dana", "admin")
    body = b'{"subject": "service:bot", "roles": ["viewer"]}'
    cases: list[tuple[dict[str, str], int]] = [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 201),  # a page that hides its address, over plain http
        ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 201),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Origin": server.serving.address}, 201),
        ({}, 201),
        ({"Content-Type": "text/plain"}, 415),
    ]
    async with browser(server, mine) as client:
        for headers, status in cases:
            sent = {"X-CSRF-Token": mine.csrf, "Content-Type": "application/json", **headers}
            answer = await client.post("/v1/tokens", content=body, headers=sent)
            assert answer.status_code == status, headers


@pytest.mark.covers("SAFE-TOOLS-03", "SERVER-AUTH-03")
async def test_only_a_page_that_the_browser_calls_our_own_needs_no_value_and_only_on_runtime_paths(
    server: Server,
) -> None:
    mine = await session(server, "user:dana", "admin")
    own, evil = server.serving.address, "https://evil.example"
    form = "application/x-www-form-urlencoded"
    cases: list[tuple[str, dict[str, str], int]] = [
        # 404: let through; there is no such run.
        ("/runs/none/input", {"Origin": own, "Sec-Fetch-Site": "same-origin"}, 404),
        ("/v2/runs/none/input", {"Origin": own}, 404),  # over plain http there is no Sec-Fetch-Site
        ("/api/runs/none/input", {"Origin": own}, 404),
        ("/runs/none/input", {}, 415),
        ("/runs/none/input", {"Content-Type": "application/json"}, 403),
        ("/runs/none/input", {"Sec-Fetch-Site": "same-origin"}, 415),
        ("/runs/none/input", {"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 415),
        ("/runs/none/input", {"Origin": own, "Sec-Fetch-Site": "same-site"}, 403),
        ("/runs/none/input", {"Origin": own, "Sec-Fetch-Site": "cross-site"}, 403),
        ("/runs/none/input", {"Origin": evil}, 403),
        ("/runs/none/input", {"Origin": evil, "Sec-Fetch-Site": "same-origin"}, 403),
        ("/runs/none/input", {"Origin": own, "Content-Type": form}, 403),
        ("/v1/runs/none/input", {"Origin": own, "Content-Type": "application/json"}, 403),
        ("/checkpoints/none/resolve", {"Origin": own, "Content-Type": "application/json"}, 403),
        ("/pipelines/none/cancel", {"Origin": own, "Content-Type": "application/json"}, 403),
    ]
    async with browser(server, mine) as client:
        for path, headers, status in cases:
            sent = {"Content-Type": "text/plain;charset=UTF-8", **headers}
            answer = await client.post(path, content=b'{"content": "approve"}', headers=sent)
            assert answer.status_code == status, (path, headers, answer.text)


@pytest.mark.covers("SERVER-AUTH-03")
async def test_form_shows_the_value_in_a_field(server: Server) -> None:
    mine = await session(server, "user:dana", "admin")
    async with browser(server, mine) as client:
        assert (await client.post("/sign-out", data={"csrf_token": "wrong"})).status_code in (303, 403)
        assert (await client.get("/v1/session")).status_code == 200
        out = await client.post("/sign-out", data={"csrf_token": mine.csrf})
        assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
        assert (await client.get("/v1/session")).status_code == 401
    async with browser(server, mine) as kept:  # somebody who copied the cookie before
        assert (await kept.get("/v1/session")).status_code == 401


@pytest.mark.covers("SERVER-AUTH-03")
async def test_signing_in_again_gives_a_new_session_and_ends_the_old_one(server: Server) -> None:
    text = await token(server, "user:dana", "viewer")
    planted = await session(server, "user:eve", "viewer")
    async with browser(server, planted) as client:
        sent = {"X-CSRF-Token": planted.csrf}
        assert (await client.post("/v1/session", json={"token": text}, headers=sent)).status_code == 204
        assert client.cookies["holdfast_session"] != planted.id
    async with browser(server, planted) as client:
        assert (await client.get("/v1/session")).status_code == 401


async def test_session_ends_with_the_token_it_began_with(server: Server) -> None:
    text = await token(server, "user:dana", "viewer")
    async with browser(server) as client:
        await client.post("/v1/session", json={"token": text})
        assert (await client.get("/v1/session")).status_code == 200
        await server.json("DELETE", f"/v1/tokens/{text.split('_')[1]}")
        assert (await client.get("/v1/session")).status_code == 401


@pytest.mark.covers("SERVER-AUTH-03")
async def test_all_sessions_of_somebody_are_ended_at_once(server: Server) -> None:
    mine, theirs = await session(server, "user:dana", "viewer"), await session(server, "user:lea", "viewer")
    sessions = Sessions(await server.hf.open())
    assert await sessions.end_all("user:dana", "other", by="user:local") == 0
    assert await sessions.end_all("user:dana", "default", by="user:local") == 1
    for opened, status in ((mine, 401), (theirs, 200)):
        async with browser(server, opened) as client:
            assert (await client.get("/v1/session")).status_code == status
    assert [row.actor for row in await audited(server, "sessions_ended")] == ["user:local"]


async def test_session_of_a_stranger_site_cannot_be_begun(server: Server) -> None:
    text = await token(server, "user:mallory", "viewer")
    async with browser(server) as client:
        for origin in ("https://evil.example", "null"):
            sent = {"Origin": origin}
            answer = await client.post("/v1/session", json={"token": text}, headers=sent)
            assert (answer.status_code, answer.json()["code"]) == (403, "cross_site")
            assert (await client.post("/sign-in", data={"token": text}, headers=sent)).status_code == 403
        assert not client.cookies


@pytest.mark.covers("SERVER-AUTH-03")
async def test_session_ends_when_idle_and_when_old(anyio_backend: str) -> None:
    clock = FakeClock()
    sessions = Sessions(MemoryStore(clock=clock), lives=timedelta(days=2), idle=timedelta(hours=12))
    idle = await sessions.begin(CredentialGrant(subject="user:dana"), how="code")
    used = await sessions.begin(CredentialGrant(subject="user:lea"), how="code")
    for _ in range(4):
        clock.advance(hours=11)
        assert await sessions.find(used.id) is not None
    assert await sessions.find(idle.id) is None
    clock.advance(hours=5)  # 49 hours in all
    assert await sessions.find(used.id) is None
    assert await sessions.store.documents(SERVER, SESSION) == []


@pytest.mark.covers("SERVER-AUTH-03", "WB-46")
async def test_only_acts_of_a_person_keep_a_session_from_ending(server: Server) -> None:
    """A page that is left open polls, follows and connects again: it is signed out like any other."""
    mine, store = await session(server, "user:dana", "admin"), await server.hf.open()
    (kept,) = await store.documents(SERVER, SESSION)
    old = msgspec.json.decode(kept.body, type=BrowserSession)
    old = msgspec.structs.replace(old, seen_at=old.seen_at - 3600 * 1_000_000)
    await store.put_document(msgspec.structs.replace(kept, body=msgspec.json.encode(old)))

    async def seen_at() -> int:
        (found,) = await store.documents(SERVER, SESSION)
        return msgspec.json.decode(found.body, type=BrowserSession).seen_at

    async with browser(server, mine) as client:
        for shown in ({"Holdfast-Unattended": "1"}, {"Accept": "text/event-stream"}):
            assert (await client.get("/v1/session", headers=shown)).json()["subject"] == "user:dana"
            assert await seen_at() == old.seen_at
        cookie = "; ".join(f"{each.name}={each.value}" for each in client.cookies.jar)
        address = server.serving.address
        headers = {"Cookie": cookie, "Origin": address}
        async with connect(
            address.replace("http", "ws", 1) + "/v1/stream/ws", additional_headers=headers
        ) as socket:
            assert "user:dana" in str(await socket.recv())
        assert await seen_at() == old.seen_at
        await client.get("/v1/session")
        assert await seen_at() > old.seen_at


@pytest.mark.covers("SERVER-AUTH-03")
async def test_store_keeps_no_session_id(server: Server) -> None:
    mine = await session(server, "user:dana", "admin")
    (kept,) = await (await server.hf.open()).documents(SERVER, SESSION)
    assert mine.id not in kept.name
    assert mine.id.encode() not in kept.body
    assert mine.csrf.encode() not in kept.body


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("/runs/1?x=2", "/runs/1?x=2"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/\t/evil.example", "/"),
        ("", "/"),
        (None, "/"),
    ],
)
def test_browser_goes_on_to_a_path_of_ours_only(wanted: str | None, found: str) -> None:
    assert local_path(wanted) == found
