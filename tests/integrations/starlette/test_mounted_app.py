"""Holdfast inside of applications of Starlette and FastAPI: one lifespan, mounted under a path."""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast import Flow, Holdfast
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.sessions import Sessions
from holdfast.api.server import HttpServer
from holdfast.errors import SettingsError, StoreUnavailableError
from holdfast.integrations.starlette import instance, principal, signed_in
from holdfast.integrations.starlette.state import state_of
from tests.deadlines import HANG
from tools.docs import ROOT

pytestmark = [pytest.mark.anyio, pytest.mark.covers("USERS-FASTAPI")]

hello = Flow("hello", effect="pure")


@hello.node
async def greet(s: dict[str, Any]) -> dict[str, Any]:
    return {"said": f"hello {s['name']}"}


def who(request: Request) -> Any:
    name = request.headers.get("x-person")
    return None if name in (None, "nobody") else principal(f"user:{name}", roles=("operator",))


async def run_hello(request: Request) -> JSONResponse:
    result = await hello.run({"name": "Ada"}, on=instance(request))
    person = await signed_in(request)
    return JSONResponse({"said": result.state["said"], "by": person.actor.id, **request.state.own})


@asynccontextmanager
async def own_lifespan(_app: Any) -> AsyncIterator[dict[str, Any]]:
    yield {"own": {"inner": True}}


def application(kind: type[Any], hf: Holdfast, **options: Any) -> Any:
    living = hf.lifespan(flows=[hello], inner=own_lifespan, **options)
    app = kind(lifespan=living, routes=[Route("/hello", run_hello)])
    app.mount("/desk", hf.asgi(authenticator=who))
    return app


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[httpx2.AsyncClient]:
    server, ready = HttpServer(app, host="127.0.0.1", port=0, drain=5), asyncio.Event()
    task = asyncio.create_task(server.serve(ready.set))
    await asyncio.wait({task, asyncio.ensure_future(ready.wait())}, return_when=asyncio.FIRST_COMPLETED)
    try:
        async with httpx2.AsyncClient(base_url=server.address, headers={"x-person": "dana"}) as client:
            yield client
    finally:
        server.stop()
        await task


@pytest.mark.covers("IN-80")
@pytest.mark.parametrize("kind", [Starlette, FastAPI])
async def test_application_has_the_instance_the_person_and_everything_below_its_path(
    kind: type[Any], tmp_path: Path
) -> None:
    hf = Holdfast(f"sqlite:{tmp_path / 'h.db'}")
    async with serving(application(kind, hf, worker=True)) as client:
        said = (await client.get("/hello")).json()
        assert said == {"said": "hello Ada", "by": "user:dana", "inner": True}
        nobody = {"x-person": "nobody"}
        assert (await client.get("/hello", headers=nobody)).status_code == 401
        made = await client.post("/desk/v1/runs", json={"flow": "hello", "input": {"name": "Bob"}})
        assert (made.status_code, made.headers["location"][:14]) == (201, "/desk/v1/runs/")
        done = await client.get(f"{made.headers['location']}/result", params={"wait": 60})
        assert done.json()["state"]["said"] == "hello Bob"
        assert (await client.get("/desk/readyz")).json() == {"ready": True}
        described = (await client.get("/desk/openapi.json")).json()
        assert described["servers"][0]["url"] == "/desk"
        page = await client.get("/desk/plain/runs", headers={"Accept": "text/html"})
        assert 'href="/desk/' in page.text
        other = await client.post("/desk/v1/runs", json={}, headers={"Origin": "https://evil.example"})
        assert (other.status_code, other.json()["code"]) == (403, "cross_site")
        assert (await client.get("/desk/v1/runs", headers=nobody)).status_code == 401
    with pytest.raises(SettingsError):
        hf.asgi()


@pytest.mark.covers("IN-80")
async def test_everyone_may_call_only_where_that_is_said(tmp_path: Path) -> None:
    hf = Holdfast(f"sqlite:{tmp_path / 'h.db'}")
    app = Starlette(lifespan=hf.lifespan())
    app.mount("/desk", hf.asgi(allow_anonymous=True))
    async with serving(app) as client:
        assert (await client.get("/desk/v1/session")).json()["subject"] == "user:anonymous"
        evil = await client.post(
            "/desk/v1/events", json={"name": "x"}, headers={"Origin": "https://evil.example"}
        )
        assert evil.status_code == 403
        # Its name points to this machine: for the browser that page and this server are one site.
        rebound = await client.get(
            "/desk/v1/session", headers={"Host": f"evil.example:{client.base_url.port}"}
        )
        assert (rebound.status_code, rebound.json()["code"]) == (421, "wrong_host")


async def test_a_credential_that_browsers_send_by_themselves_does_not_vouch_for_the_page(
    tmp_path: Path,
) -> None:
    app = application(Starlette, Holdfast(f"sqlite:{tmp_path / 'h.db'}"))
    async with serving(app) as client:
        evil = {"Origin": "https://evil.example", "Authorization": "Basic ZGFuYTpwdw=="}
        sent = await client.post("/desk/v1/events", json={"name": "x"}, headers=evil)
        assert (sent.status_code, sent.json()["code"]) == (403, "cross_site")
        token = {**evil, "Authorization": "Bearer abc"}
        assert (await client.post("/desk/v1/events", json={"name": "x"}, headers=token)).status_code < 300


async def test_application_starts_without_its_store_and_is_not_ready(unused_port: int) -> None:
    away = f"postgresql://127.0.0.1:{unused_port}/nothing"
    hf = Holdfast(away)
    async with serving(application(FastAPI, hf)) as client:
        ready = await client.get("/desk/readyz")
        assert (ready.status_code, ready.json()) == (503, {"ready": False})
        assert (await client.get("/desk/healthz")).status_code == 200
        assert (await client.get("/desk/v1/runs")).json()["code"] == "not_ready"
    required = Holdfast(away).lifespan(require_store=True)
    with pytest.raises(StoreUnavailableError):
        async with required(None):
            pass


@pytest.mark.covers("SAFE-STORE-01")
@pytest.mark.parametrize("worker", [True, False])
async def test_application_is_not_ready_when_the_file_of_its_store_is_removed(
    tmp_path: Path, worker: bool, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "h.db"
    hf = Holdfast(f"sqlite:{file}")
    async with serving(application(FastAPI, hf, worker={"poll": 0.01} if worker else False)) as client:
        assert (await client.get("/desk/readyz")).status_code == 200
        file.unlink()
        async with asyncio.timeout(HANG):
            while worker and "its worker ended: the file" not in caplog.text:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert (await client.get("/desk/readyz")).status_code == 503
        assert (await client.post("/desk/v1/runs", json={"flow": "hello"})).status_code == 503


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def test_runs_survive_the_kill_of_a_process_and_a_signal_drains(
    tmp_path: Path, unused_port: int
) -> None:
    child = started(tmp_path, unused_port)
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{unused_port}", timeout=60) as client:
            await until_answered(client)
            run = (await client.post("/orders", params={"slow": True})).json()["run"]
            first = int(await until_written(tmp_path / "taken"))
            os.kill(first, signal.SIGKILL)
            dana = {"x-person": "dana"}
            done = await until_ended(client, f"/desk/v1/runs/{run}/result", dana)
            assert (done["status"], done["state"]["by"] != first) == ("completed", True)
            # A stream that stays open does not use up the grace.
            async with client.stream("GET", "/desk/v1/holds/stream", headers=dana) as stream:
                assert stream.status_code == 200
                child.send_signal(signal.SIGTERM)
                async for _ in stream.aiter_raw():
                    pass
            assert child.wait(HANG) == 0
            assert "graceful shutdown exceeded" not in _text(tmp_path / "said")
    finally:
        child.kill()
        child.wait()


async def until_answered(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(HANG):
        while True:
            try:
                if (await client.get("/desk/readyz")).status_code == 200:
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.1)


async def until_written(file: Path) -> str:
    async with asyncio.timeout(HANG):
        while not (written := _text(file)).endswith("\n"):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return written.split()[0]


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def started(folder: Path, port: int) -> subprocess.Popen[bytes]:
    options = {"workers": "2", "port": str(port), "timeout-graceful-shutdown": "20", "log-level": "warning"}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    command = [sys.executable, "-m", "uvicorn", "tests.integrations.starlette.shop:app", *words]
    with (folder / "said").open("w") as errors:
        return subprocess.Popen(command, env={**os.environ, "SHOP_FOLDER": str(folder)}, stderr=errors)


async def until_ended(client: httpx2.AsyncClient, path: str, headers: dict[str, str]) -> Any:
    for _ in range(60):
        try:
            found = (await client.get(path, params={"wait": 60}, headers=headers)).json()
        except httpx2.TransportError:
            continue  # the process that answered was killed
        if found["status"] == "completed":
            return found
    raise AssertionError("the run has not ended")


async def test_the_example_asks_before_it_refunds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_STORE", f"sqlite:{tmp_path / 'h.db'}")
    example = runpy.run_path(str(ROOT / "examples" / "fastapi_refund.py"))
    async with serving(example["app"]) as client:
        client.headers["x-user"] = "dana"
        run = (await client.post("/refunds", params={"order": "A17", "amount": 250})).json()["run"]
        await client.get(f"/holdfast/v1/runs/{run}/result", params={"wait": 60})
        answer = {"content": "approve"}
        assert (await client.post(f"/holdfast/v1/runs/{run}/input", json=answer)).status_code == 200
        done = await client.get(f"/holdfast/v1/runs/{run}/result", params={"wait": 60})
        assert (done.json()["status"], done.json()["state"]["decision"]) == ("completed", "approve")


@pytest.mark.covers("IN-80")
async def test_tokens_and_sessions_of_holdfast_work_below_the_path(tmp_path: Path) -> None:
    hf = Holdfast(f"sqlite:{tmp_path / 'h.db'}")
    app = FastAPI(lifespan=hf.lifespan())
    app.mount("/desk", hf.asgi(authenticator="holdfast"))

    @app.get("/me")
    async def me(request: Request) -> dict[str, str]:
        return {"id": (await signed_in(request)).actor.id}

    async with serving(app) as client:
        assert (await client.get("/desk/v1/runs")).status_code == 401
        grant = CredentialGrant(subject="user:dana", roles=("viewer",))
        code = await Sessions(await hf.open()).new_code(grant)
        opened = await client.get("/desk/sign-in", params={"code": code})
        assert opened.headers["location"].startswith("/desk/")
        # The cookie is valid in the routes of the application too.
        assert (await client.get("/me")).json() == {"id": "user:dana"}
        assert (await client.get("/desk/v1/runs")).status_code == 200


@pytest.mark.covers("IN-80")
async def test_routes_of_the_application_do_not_take_the_authenticator_of_another_mount(
    tmp_path: Path,
) -> None:
    hf = Holdfast(f"sqlite:{tmp_path / 'h.db'}")
    app = application(Starlette, hf, worker=True)
    async with serving(app) as client:
        assert (await client.get("/hello", headers={"x-person": "nobody"})).status_code == 401
        # Everyone has every right there: it must not say who calls here.
        hf.asgi(allow_anonymous=True)
        assert (await client.get("/desk/v1/runs", headers={"x-person": "nobody"})).status_code == 401
        with pytest.raises(SettingsError, match="2 mounts"):
            _ = state_of(hf).authenticator
        assert (await client.get("/hello", headers={"x-person": "nobody"})).status_code == 500
    same = Holdfast(f"sqlite:{tmp_path / 'h.db'}")
    for _ in range(2):
        same.asgi(authenticator="holdfast")
    assert state_of(same).authenticator is not None
