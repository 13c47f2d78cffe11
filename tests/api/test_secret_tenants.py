"""What one tenant calls a secret neither tells another one anything, nor changes what it reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest

from holdfast import Context, Flow, Worker
from holdfast.types.redaction import MASK, MAX_TENANT_SECRETS, redactor, tenant_scope
from tests.api.conftest import Server
from tests.api.documents import REFUND
from tests.api.sign_in import bearer, browser, session, token
from tests.api.test_websocket import Talk, talking

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-11")]

TOKEN: Final = "b-token-93f0"
LONG: Final = "live-4f9c2ab7714e0d5593f0"
GUESSES: Final = (TOKEN, "status", "refunds", "completed", "approve", '"items"', "run_id")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    redactor.forget()
    yield
    redactor.forget()


def notes() -> Flow:
    flow = Flow("notes", effect="pure", secrets=["token"])

    async def write(s: Any, ctx: Context) -> dict[str, Any]:
        ctx.emit(s["text"])
        if s.get("fails"):
            raise ValueError(f"refused {s['token']} and {s['text']}")
        return {"said": f"{s['text']} with {s.get('token', 'nothing')}"}

    flow.node(id="write")(write)
    return flow


@pytest.fixture
async def harness(server: Server) -> AsyncIterator[Server]:
    async with Worker(notes(), on=server.hf):
        yield server


async def signed_in(harness: Server, tenant: str) -> dict[str, str]:
    return bearer(await token(harness, f"user:{tenant}", "admin", tenant=tenant))


async def written(harness: Server, who: dict[str, str], text: str, **more: Any) -> Any:
    body = {"flow": "notes", "input": {"text": text, **more}, "wait": 60}
    return await harness.json("POST", "/v1/runs", 201, json=body, headers=who)


async def answers(harness: Server, who: dict[str, str], run: str) -> dict[str, str]:
    """Everything that the tenant reads about a run, by path."""
    found: dict[str, str] = {}
    for path in ("", "/result", "/timeline", "/events", "/checkpoints", "/checkpoints/latest", "/drawing"):
        answer = await harness.client.get(f"/v1/runs/{run}{path}", headers=who)
        found[path] = answer.text
    streamed = await harness.client.get(f"/v1/runs/{run}/stream", headers=who)
    found["/stream"] = streamed.text
    async with talking(harness, f"/v1/runs/{run}/stream/ws", headers=who) as talk:
        await talk.until("end", run=run)
    found["/stream/ws"] = json.dumps(talk.events)
    found["page"] = (await harness.client.get(f"/runs/{run}", headers={**who, "Accept": "text/html"})).text
    found["/runs"] = (await harness.client.get("/v1/runs", headers=who)).text
    return found


async def test_tenant_cannot_find_out_secrets_of_another_by_what_is_masked(harness: Server) -> None:
    ours, theirs = await signed_in(harness, "acme"), await signed_in(harness, "other")
    await written(harness, theirs, "hello", token=TOKEN)
    await written(harness, theirs, "hello", token=TOKEN, fails=True)
    run = await written(harness, ours, f"is it {TOKEN}?")
    for path, text in (await answers(harness, ours, run["id"])).items():
        assert MASK not in text, path
        if path in ("/result", "/stream", "/stream/ws", "/checkpoints/latest", "page"):
            assert f"is it {TOKEN}?" in text, path
    failed = await written(harness, ours, f"is it {TOKEN}?", token="own-token-1", fails=True)
    assert failed["error"].endswith(f"refused {MASK} and is it {TOKEN}?"), failed["error"]
    refused = await harness.json("GET", f"/v1/flows/{TOKEN}", 404, headers=ours)
    assert TOKEN in refused["detail"]
    anonymous = await harness.client.get("/v1/runs", headers={"Authorization": "", "X-Request-Id": TOKEN})
    assert (anonymous.status_code, anonymous.json()["request_id"]) == (401, TOKEN)


async def test_tenant_cannot_change_the_answers_of_another(harness: Server) -> None:
    ours, theirs = await signed_in(harness, "acme"), await signed_in(harness, "other")
    run = (await written(harness, ours, "refunds of acme"))["id"]
    before = await answers(harness, ours, run)
    for secret in GUESSES:
        await written(harness, theirs, "x", token=secret)
    assert await answers(harness, ours, run) == before


async def test_own_secrets_are_masked_in_values_and_leave_the_form_of_an_answer(harness: Server) -> None:
    who = await signed_in(harness, "acme")
    for secret in ('"items"', "status", "timeline", "viewBox", "</dl>", ' class="', "metadata"):
        await written(harness, who, "x", token=secret)
    run = await written(harness, who, f"status of {TOKEN}", token=TOKEN)
    assert run["status"] == "completed"
    texts = await answers(harness, who, run["id"])
    for path, text in texts.items():
        assert TOKEN not in text, path
        if path not in ("page", "/drawing", "/stream"):
            json.loads(text)
    assert json.loads(texts["/result"])["state"]["said"] == f"{MASK} of {MASK} with {MASK}"
    assert ' class="' in texts["page"]
    assert "viewBox" in texts["/drawing"]
    assert MASK in texts["/stream"]
    assert MASK in texts["/stream/ws"]


async def test_person_of_a_tenant_cannot_hide_statuses_and_decisions_from_the_others(harness: Server) -> None:
    who = await signed_in(harness, "acme")
    for secret in ("completed", "approve", "cancelled"):
        await written(harness, who, "x", token=secret)
    run = await written(harness, who, "approve it")
    assert run["status"] == "completed"
    result = await harness.json("GET", f"/v1/runs/{run['id']}/result", headers=who)
    assert result["state"]["said"] == "approve it with nothing"


async def test_number_that_is_a_secret_changes_no_number_of_an_answer(harness: Server) -> None:
    who = await signed_in(harness, "acme")
    run = await written(harness, who, "n", token=20261116)
    found = await harness.json("GET", f"/v1/runs/{run['id']}/result", headers=who)
    assert found["state"]["token"] == MASK
    assert found["state"]["said"] == f"n with {MASK}"


async def test_operator_secret_is_masked_for_tenants_only_if_it_cannot_be_guessed(harness: Server) -> None:
    who = await signed_in(harness, "acme")
    with tenant_scope(None):
        redactor.learn(["hunter22", "https://judge.example.com/decide", LONG])
    run = await written(harness, who, f"hunter22 https://judge.example.com/decide {LONG}")
    result = await harness.json("GET", f"/v1/runs/{run['id']}/result", headers=who)
    assert result["state"]["text"] == f"hunter22 https://judge.example.com/decide {MASK}"


async def test_tenant_with_many_secrets_displaces_only_its_own(harness: Server) -> None:
    ours, theirs = await signed_in(harness, "acme"), await signed_in(harness, "other")
    run = await written(harness, ours, f"it is {TOKEN}", token=TOKEN)
    many = [f"secret-number-{n}" for n in range(MAX_TENANT_SECRETS + 5_000)]
    await written(harness, theirs, "x", token=many)
    assert all(TOKEN not in text for text in (await answers(harness, ours, run["id"])).values())
    for first in range(0, len(many), 3_000):
        await written(harness, ours, "x", token=many[first : first + 3_000])
    # Its own, too, are known again when the run is read.
    assert all(TOKEN not in text for text in (await answers(harness, ours, run["id"])).values())


async def test_document_is_read_as_it_was_written_and_refused_with_a_secret(harness: Server) -> None:
    who = await signed_in(harness, "acme")
    text = REFUND.replace("name: refund", f"name: refund\ndescription: uses {LONG}")
    await written(harness, who, "x", token=LONG)
    at, new = "/v1/documents/refund", {"If-Match": '"new"'}
    saved = await harness.json("PUT", at, json={"source": text}, headers={**who, **new})
    read = await harness.json("GET", at, headers=who)
    assert saved["source"] == read["source"] == text
    variables = f"name: refund\nvariables: {{note: {{type: string, default: '{LONG}'}}}}"
    literal = {"source": REFUND.replace("name: refund", variables, 1)}
    refused = await harness.json("POST", "/v1/flows", 422, json=literal, headers=who)
    assert [each["rule"] for each in refused["errors"]] == ["secret-literal"], refused
    assert LONG not in json.dumps(refused)
    other = await signed_in(harness, "other")
    await harness.json("POST", "/v1/flows", 201, json=literal, headers=other)


async def test_page_of_a_session_masks_its_tenant_only(harness: Server) -> None:
    opened = await session(harness, "user:dana", "admin")
    theirs = await signed_in(harness, "other")
    await written(harness, theirs, "x", token="everyone")
    own = {"Authorization": f"Bearer {harness.token}"}
    run = await written(harness, own, f"everyone {TOKEN}", token=TOKEN)
    async with browser(harness, opened) as seen:
        page = await seen.get(f"/runs/{run['id']}", headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert f"everyone {MASK}" in page.text
    assert TOKEN not in page.text


async def test_streams_of_two_tenants_at_one_server_mask_their_own_secrets(server: Server) -> None:
    """One task polls for both, and it begins in the first request."""
    gate = asyncio.Event()
    flow = Flow("waits", effect="pure", secrets=["token"])

    async def say(s: Any, ctx: Context) -> None:
        await gate.wait()
        ctx.emit(f"{s['token']} {s['text']}")

    flow.node(id="say")(say)
    secrets = {"acme": "acme-token-1", "other": "other-token-2"}
    async with Worker(flow, on=server.hf), AsyncExitStack() as stack:
        talks: dict[str, Talk] = {}
        for tenant, text in (("acme", secrets["other"]), ("other", secrets["acme"])):
            who = await signed_in(server, tenant)
            body = {"flow": "waits", "input": {"token": secrets[tenant], "text": text}}
            run = (await server.json("POST", "/v1/runs", 201, json=body, headers=who))["id"]
            talk = await stack.enter_async_context(talking(server, f"/v1/runs/{run}/stream/ws", headers=who))
            await talk.until("event", event="run.created")
            talks[tenant] = talk
        gate.set()
        for tenant, talk in talks.items():
            await talk.until("end")
            texts = json.dumps(talk.events)
            assert secrets[tenant] not in texts, tenant
            assert f"{MASK} {secrets['other' if tenant == 'acme' else 'acme']}" in texts, tenant


def tries(flow: Flow) -> None:
    """The value is a secret only when the third attempt has returned it."""
    calls: list[int] = []

    @flow.node(effect="pure", retry=3)
    async def work(s: Any, ctx: Context) -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 3:
            return {"token": TOKEN}
        if len(calls) == 2:
            await ctx.step("call", breaks, effect="read")
        return breaks()


def breaks() -> dict[str, Any]:
    try:
        raise KeyError(f"no {TOKEN}")
    except KeyError as error:
        raise ValueError(f"not {TOKEN}") from error


@pytest.mark.covers("WB-33-traceback")
async def test_tracebacks_of_attempts_and_calls_hide_what_became_a_secret_later(server: Server) -> None:
    flow = Flow[Any]("tries", secrets=["token"])
    tries(flow)
    run = (await flow.run({}, on=server.hf)).expect().run_id
    (visit,) = (await (await server.hf.service()).story(run)).visits
    parts = [each for each in (*visit.retries, *visit.calls) if each.traceback]
    shown = [each.traceback.count(f"Because of KeyError: 'no {MASK}'") for each in parts]
    assert (shown[0], shown[-1]) == (1, 1), parts
    assert TOKEN not in repr([(each.error, each.traceback) for each in parts])
    step = await server.json("GET", f"/v1/runs/{run}/steps/{visit.seq}")
    assert TOKEN not in json.dumps(step)


@pytest.mark.covers("WB-33-traceback")
async def test_lines_of_code_in_a_traceback_need_the_right_to_write_runs(server: Server) -> None:
    flow = Flow[Any]("breaks")

    @flow.node(effect="pure")
    async def work(s: Any, ctx: Context) -> None:
        await ctx.step("call", breaks, effect="read")

    run = (await flow.run({}, on=server.hf)).run_id
    (visit,) = (await (await server.hf.service()).story(run)).visits
    seen: dict[str, list[str]] = {}
    for right in ("runs:read", "runs:write"):
        who = bearer(await token(server, f"user:{right}", rights=(right, "runs:read")))
        step = await server.json("GET", f"/v1/runs/{run}/steps/{visit.seq}", headers=who)
        seen[right] = [
            step["traceback"],
            *(each["traceback"] for each in (*step["spans"], *step["calls"])),
        ]
    assert len(seen["runs:read"]) == 3
    for text in (*seen["runs:read"], *seen["runs:write"]):
        assert '  File "tests/api/test_secret_tenants.py", line ' in text
        assert 'File "/' not in text
    assert all("    " not in text for text in seen["runs:read"])
    assert all("in work\n    await ctx.step(" in text for text in seen["runs:write"][:2])
    assert 'raise ValueError(f"not {TOKEN}") from error' in seen["runs:write"][2]
    assert "Because of KeyError: " in seen["runs:read"][2]
