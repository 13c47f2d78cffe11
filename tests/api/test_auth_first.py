from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import httpx2
import pytest

from holdfast import Holdfast
from holdfast.api.app import ApiSettings
from holdfast.api.auth.authenticator import Authenticator, Refusals
from holdfast.api.auth.first_token import require_safe, sign_in_address
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.host_guard import HostGuard, hosts_for, is_loopback
from holdfast.api.auth.sessions import Sessions
from holdfast.cli.main import run
from holdfast.errors import SettingsError
from holdfast.store.memory import MemoryStore
from holdfast.testing.clock import FakeClock
from tests.api.conftest import Server, serving
from tests.api.sign_in import audited, bearer, browser, token
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------------- the first run


@pytest.mark.covers("SERVER-AUTH-08")
async def test_server_without_a_token_listens_on_its_own_machine_only(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'f.db'}") as hf:
        door, host = Authenticator(hf), "0.0.0.0"
        for near in ("127.0.0.1", "localhost", "::1"):
            await require_safe(door, near)
        for far in (host, "::", "192.0.2.1", "holdfast.example"):
            with pytest.raises(SettingsError, match="holdfast tokens create"):
                await require_safe(door, far)
        tokens = await door.tokens()
        gone, _ = await tokens.create(CredentialGrant(subject="user:a", roles=("admin",)), by="user:local")
        await tokens.revoke(gone.id, by="user:local")
        with pytest.raises(SettingsError):
            await require_safe(door, host)
        await tokens.create(CredentialGrant(subject="user:a", roles=("admin",)), by="user:local")
        await require_safe(door, host)


@pytest.mark.covers("SERVER-AUTH-08")
async def test_code_signs_in_once_as_an_admin(server: Server) -> None:
    where = await sign_in_address(Authenticator(server.hf), server.serving.address)
    async with browser(server) as client:
        assert (await client.head(where)).status_code == 200  # what looks ahead takes nothing away
        answer = await client.get(where)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        said = (await client.get("/v1/session")).json()
        assert (said["subject"], "admin:manage" in said["rights"]) == ("user:local", True)
    async with browser(server) as late:
        answer = await late.get(where)
        assert (answer.status_code, "holdfast_session" in late.cookies) == (401, False)
        assert "holdfast sign-in" in answer.text
        assert where.rpartition("=")[2] not in answer.text


@pytest.mark.covers("SERVER-AUTH-08")
async def test_code_is_good_for_ten_minutes(anyio_backend: str) -> None:
    clock = FakeClock()
    sessions = Sessions(MemoryStore(clock=clock))
    old = await sessions.new_code(CredentialGrant(subject="user:local", roles=("admin",)))
    clock.advance(minutes=10)
    assert await sessions.take_code(old) is None


@pytest.mark.covers("SERVER-AUTH-08")
async def test_of_several_who_have_a_code_one_is_signed_in(server: Server) -> None:
    sessions = Sessions(await server.hf.open())
    code = await sessions.new_code(CredentialGrant(subject="user:local", roles=("admin",)))
    taken = await asyncio.gather(*(sessions.take_code(code) for _ in range(8)))
    assert len([each for each in taken if each is not None]) == 1


@pytest.mark.covers("SERVER-AUTH-08")
async def test_served_for_real_it_prints_an_address_that_signs_in(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'served.db'}"
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", "--store", store, "--json"]
    server = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert server.stdout is not None
        reply = json.loads(await asyncio.wait_for(server.stdout.readline(), HANG))
        async with httpx2.AsyncClient(base_url=reply["address"], timeout=HANG) as client:
            assert (await client.get("/v1/runs")).status_code == 401
            assert (await client.get(reply["sign_in"])).status_code == 303
            assert (await client.get("/v1/runs")).status_code == 200
            away = await client.get("/v1/runs", headers={"Host": "evil.example"})
            assert (away.status_code, away.json()["code"]) == (421, "wrong_host")
    finally:
        server.kill()
        await server.wait()


@pytest.mark.covers("SERVER-AUTH-08")
async def test_served_for_others_without_a_token_it_ends_and_says_why(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'served.db'}"
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "serve",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--store",
        store,
    ]
    server = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        _, said = await asyncio.wait_for(server.communicate(), HANG)
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
    assert server.returncode == 2
    assert "holdfast tokens create" in said.decode()
    assert "Traceback" not in said.decode()


@pytest.mark.covers("SERVER-AUTH-08")
def test_command_makes_a_new_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", f"sqlite:{tmp_path / 'c.db'}"]
    assert run(["sign-in", *store]) == 4  # there is no store to sign in at
    assert run(["tokens", "create", "user:a", "--role", "viewer", *store]) == 0
    capsys.readouterr()
    assert run(["sign-in", "--address", "https://h.example/", *store]) == 0
    assert capsys.readouterr().out.startswith("https://h.example/sign-in?code=")


# ---------------------------------------------------------------------- names


@pytest.mark.covers("SERVER-AUTH-08")
async def test_other_names_are_refused_on_loopback(server: Server) -> None:
    settings = ApiSettings(hosts=hosts_for("127.0.0.1", None))
    async with serving(server.hf, settings) as guarded:
        for name in ("evil.example", "127.0.0.1.evil.example", "", "localhost@evil.example", "local host"):
            answer = await guarded.client.get("/v1/session", headers={"Host": name})
            assert answer.status_code in (400, 421), name
        for name in ("localhost:80", "LOCALHOST", "[::1]:99", "127.0.0.1"):
            assert (await guarded.client.get("/v1/session", headers={"Host": name})).status_code == 200, name


def test_names_that_a_server_answers_to() -> None:
    assert hosts_for("0.0.0.0", None) == ()
    guard = HostGuard(lambda *_: None, hosts_for("0.0.0.0", "https://hf.example:8443/x", ("*.corp.example",)))
    for name in ("hf.example", "a.corp.example", "hf.example.", "localhost"):
        assert guard.knows(name), name
    for name in ("corp.example", "xcorp.example", "other.example"):
        assert not guard.knows(name), name
    assert [is_loopback(each) for each in ("127.8.9.1", "[::1]", "10.0.0.1", "x")] == [
        True,
        True,
        False,
        False,
    ]


# ---------------------------------------------------------------------- refusals


@pytest.mark.covers("SERVER-AUTH-07")
async def test_refusals_are_audited_where_they_belong(server: Server) -> None:
    text = await token(server, "user:dana", "viewer", tenant="acme")
    await server.json("POST", "/v1/tokens", 403, headers=bearer(text), json={"subject": "user:x"})
    (row,) = await audited(server, "access_refused", "acme")
    said = json.loads(row.data)
    assert row.actor == "user:dana"
    assert (said["right"], said["path"], said["credential"]) == (
        "admin:manage",
        "/v1/tokens",
        text.split("_")[1],
    )
    await server.json("GET", "/v1/runs", 401, headers=bearer(f"{text}x"))
    async with browser(server) as client:
        await client.get("/v1/runs")
    rows = await audited(server, "access_refused", "_server")
    assert [(row.actor, json.loads(row.data)["status"]) for row in rows] == [("anonymous", 401)] * 2
    assert not [row for row in rows if text.rpartition("_")[2] in row.data.decode()]


@pytest.mark.covers("SERVER-AUTH-07")
async def test_nobody_fills_the_audit_with_refusals(server: Server) -> None:
    for _ in range(25):
        await server.client.get("/v1/runs", headers=bearer("hf_wrong"))
    assert len(await audited(server, "access_refused", "_server")) == 10


def test_what_was_left_out_is_counted() -> None:
    refusals = Refusals(most=3, each=2, span=3600)
    assert [refusals._may_write(who) for who in "aaabbcc"] == [True, True, False, True, False, False, False]
    assert refusals._left_out == 4
