"""Agents start runs and follow them over MCP; what each tool says of itself; who may use which."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest
from mcp.shared.exceptions import MCPError

from holdfast import Context, Flow
from holdfast.api.app import ApiSettings
from holdfast.api.live.hub import close_streams
from holdfast.types.redaction import redactor
from tests.api.conftest import Server
from tests.api.flows import refund
from tests.api.sign_in import audited, bearer, browser, session, token
from tests.deadlines import HANG
from tests.integrations.mcp.session import WORKS, agent, speaking

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-MCP-01")]

ORDER = {"order": "a1", "amount": 7}


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Server]:
    settings = ApiSettings(origins=("https://tools.example",))
    async with speaking(f"sqlite:{tmp_path / 'm.db'}", refund(), paid, build, settings=settings) as server:
        yield server


paid = Flow("paid", effect="read")


@paid.script
async def wait(ctx: Context) -> dict[str, Any]:
    return {"paid": await ctx.wait_for("payment.received", key="A17", timeout="2d")}


build = Flow("build", effect="read")


@build.script
async def wait_for_build(ctx: Context) -> dict[str, Any]:
    return {"built": await (await ctx.callback("built", timeout="2d")).result()}


@pytest.mark.covers("USERS-EVENT-SEND-mcp", "USERS-EVENT-SHOWN", "USERS-EVENT-QUERY")
async def test_agent_sends_the_event_that_a_run_waits_for(hall: Server) -> None:
    async with agent(hall, rights=("runs:write", "queues:write", "holds:read")) as bot:
        made = await bot.does("start_run", flow="paid", wait_seconds=20)
        (waits,) = made["waits_for_events"]
        assert (waits["event"], waits["key"], made["waits_for"]) == ("payment.received", "A17", [])
        assert "waiting for the event payment.received (A17)" in made["next"]
        # The same over HTTP and on its page; no inbox asks a person.
        run = await hall.json("GET", f"/v1/runs/{made['run']}")
        assert (run["status"], run["waits_for"]) == ("pending_input", [waits])
        assert (await hall.json("GET", "/v1/runs"))["items"][0]["waits_for"] == [waits]
        read = await hall.json("GET", f"/v1/runs/{made['run']}/result")
        assert (read["status"], await hall.json("GET", f"/v1/runs/{made['run']}")) == ("pending_input", run)
        shown = await hall.client.get(f"/runs/{made['run']}", headers={"Accept": "text/html"})
        assert "waiting for the event payment.received (A17) until" in shown.text
        assert (await hall.json("GET", "/v1/holds"))["items"] == []
        assert (await bot.does("list_questions"))["items"] == []
        event = {"name": "payment.received", "data": {"amount": 5}, "id": "e1"}
        other = await bot.does("send_event", **event, key="B18")
        assert not other["delivered"]
        assert "id" in await bot.fails("send_event", **event, key="A17")
        assert "key or a run" in await bot.fails("send_event", name="x", key="A17", run=made["run"])
        assert (await bot.does("send_event", name="payment.received", data=5, key="A17"))["delivered"]
        done = await bot.does("get_result", run=made["run"], wait_seconds=20)
        assert (done["status"], done["state"]) == ("completed", {"paid": 5})
        assert "has ended (completed)" in await bot.fails("send_event", name="x", run=made["run"])


@pytest.mark.covers("USERS-CALLBACK")
async def test_agent_completes_the_callback_that_a_run_waits_for(hall: Server) -> None:
    async with agent(hall, rights=("runs:write", "queues:write", "holds:read")) as bot:
        made = await bot.does("start_run", flow="build", wait_seconds=20)
        assert "waiting for the callback built; call complete_callback" in made["next"]
        assert (made["waits_for"], made["waits_for_events"][0]["callback"]) == ([], "built")
        (found,) = (await hall.json("GET", f"/v1/runs/{made['run']}/callbacks"))["items"]
        assert (await bot.does("send_heartbeat", token=found["token"]))["status"] == "waiting"
        assert "no callback" in await bot.fails("complete_callback", token="x" * 64)
        assert (await bot.does("complete_callback", token=found["url"], result=5))["status"] == "completed"
        done = await bot.does("get_result", run=made["run"], wait_seconds=20)
        assert (done["status"], done["state"]) == ("completed", {"built": 5})


async def test_agent_starts_follows_and_gets_the_result_of_a_run(hall: Server) -> None:
    async with agent(hall) as bot:
        assert [flow["name"] for flow in (await bot.does("list_flows"))["items"]] == [
            "build",
            "paid",
            "refund",
        ]
        given = {"flow": "refund", "input": ORDER, "idempotency_key": "a1"}
        made = await bot.does("start_run", **given, wait_seconds=20)
        assert (made["status"], made["waits_for"][0]["question"]) == ("pending_input", "Refund 7?")
        assert (await bot.does("start_run", **given))["run"] == made["run"]
        assert made["started_by"] == "service:bot"

        first = await bot.does("follow_run", run=made["run"], limit=3)
        later = await bot.does("follow_run", run=made["run"], after=first["cursor"])
        await hall.json(
            "POST", f"/v1/holds/{made['waits_for'][0]['id']}/resolve", json={"decision": "approve"}
        )
        done = await bot.does("get_result", run=made["run"], wait_seconds=20)
        assert (done["status"], done["state"]["paid"]) == ("completed", 7)
        last = await bot.does("follow_run", run=made["run"], after=later["cursor"], wait_seconds=20)
        numbers = [each["number"] for part in (first, later, last) for each in part["events"]]
        assert numbers == list(range(1, len(numbers) + 1))
        assert last["ended"]
        assert "run.completed" in [each["type"] for each in last["events"]]
        assert (await bot.does("list_runs", flow="refund"))["items"][0]["status"] == "completed"


@pytest.mark.covers("SAFE-EDGE-11")
async def test_agent_gets_no_secret_of_its_tenant_and_learns_none_of_another(hall: Server) -> None:
    redactor.learn_for("acme", "ours-1234")
    redactor.learn_for("other", "theirs-1234")
    try:
        async with agent(hall, tenant="acme") as bot:
            order = {"order": "ours-1234 theirs-1234", "amount": 7}
            run = (await bot.does("start_run", flow="refund", input=order, wait_seconds=20))["run"]
            result = await bot.does("get_result", run=run)
            events = await bot.does("follow_run", run=run)
            read = await bot.client.read_resource(f"holdfast://runs/{run}")
    finally:
        redactor.forget()
    assert result["state"]["order"] == "*** theirs-1234"
    assert "ours-1234" not in f"{events} {read}"


async def test_agent_stops_only_what_it_has_started(hall: Server) -> None:
    async with agent(hall) as bot, agent(hall, "service:other") as other:
        made = await bot.does("start_run", flow="refund", input=ORDER, wait_seconds=20)
        hold = made["waits_for"][0]["id"]
        assert "started by service:bot" in await other.fails("cancel_run", run=made["run"])
        assert "not to service:other" in await other.fails("withdraw_question", id=hold)
        assert (await bot.does("get_run", run=made["run"]))["status"] == "pending_input"
        await bot.does("cancel_run", run=made["run"], reason="not needed")
        assert (await bot.does("get_run", run=made["run"], wait_seconds=20))["status"] == "cancelled"


async def test_mistakes_are_reported_with_what_to_do(hall: Server) -> None:
    async with agent(hall) as bot:
        assert "there is no flow 'refunds'" in await bot.fails("start_run", flow="refunds")
        assert "Use ask_people" in await bot.fails("start_run", flow="ask-people")
        assert "no run" in await bot.fails("get_run", run="nothing")
        assert "list_questions" in await bot.fails("check_answer", id="nothing")
        assert "It takes run, after, limit, wait_seconds" in await bot.fails("follow_run", run="x", after=-1)
        assert "the cursor" in await bot.fails("list_runs", cursor="nonsense")
        with pytest.raises(MCPError, match="no tool 'resolve'"):
            await bot.does("resolve")


async def test_tools_say_what_they_take_give_and_do(hall: Server) -> None:
    async with agent(hall) as bot:
        tools = await bot.tools()
    reads = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
    assert reads == {
        "check_answer", "list_questions", "list_flows", "get_run", "list_runs", "follow_run", "get_result",
    }  # fmt: skip
    assert {name for name, tool in tools.items() if tool.annotations.destructive_hint} == {
        "withdraw_question", "cancel_run",
    }  # fmt: skip
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False


async def test_agent_sees_the_tools_that_its_token_is_good_for(hall: Server) -> None:
    async with agent(hall, rights=("runs:read",)) as bot:
        assert set(await bot.tools()) == {"get_run", "list_runs", "follow_run", "get_result"}
        assert "does not have the right runs:write" in await bot.fails("ask_people", question="May I?")
        assert (await bot.client.list_resource_templates()).resource_templates[0].name == "run"
    (entry,) = await audited(hall, "access_refused")
    assert entry.actor == "service:bot"


async def test_agent_of_another_tenant_finds_nothing(hall: Server) -> None:
    async with agent(hall) as bot, agent(hall, tenant="acme") as stranger:
        asked = await bot.does("ask_people", question="Ours?")
        for tool, given in (("check_answer", asked["id"]), ("withdraw_question", asked["run"])):
            assert "no question" in await stranger.fails(tool, id=given)
        assert "no run" in await stranger.fails("get_run", run=asked["run"])
        with pytest.raises(MCPError, match="no hold"):
            await stranger.client.read_resource(f"holdfast://questions/{asked['id']}")
        assert (await stranger.client.list_resources()).resources == []


async def test_runs_and_questions_are_resources_that_tell_of_changes(hall: Server) -> None:
    async with agent(hall) as bot:
        asked = await bot.does("ask_people", question="Change?", choices=["yes", "no"])
        made = await bot.does("start_run", flow="refund", input=ORDER, wait_seconds=20)
        question, run = f"holdfast://questions/{asked['id']}", f"holdfast://runs/{made['run']}"
        assert {each.uri for each in (await bot.client.list_resources()).resources} == {question, run}
        (content,) = (await bot.client.read_resource(run)).contents
        assert '"status":"pending_input"' in content.text
        with pytest.raises(MCPError, match="no resource at"):
            await bot.client.read_resource("holdfast://secrets/1")
        async with bot.client.listen(resource_subscriptions=[question]) as changes:
            await hall.json("POST", f"/v1/holds/{asked['id']}/resolve", json={"decision": "yes"})
            async with asyncio.timeout(HANG):
                assert (await anext(aiter(changes))).uri == question
        async with bot.client.listen(resource_subscriptions=[run]) as changes:
            await bot.does("cancel_run", run=made["run"])
            async with asyncio.timeout(HANG):
                assert (await anext(aiter(changes))).uri == run
        with pytest.raises(MCPError, match="no run"):
            async with bot.client.listen(resource_subscriptions=["holdfast://runs/nothing"]):
                pass
        (content,) = (await bot.client.read_resource(question)).contents
        assert '"decision":"yes"' in content.text


async def test_agent_that_listens_is_let_go_when_the_server_ends(hall: Server) -> None:
    async with agent(hall) as bot:
        asked = await bot.does("ask_people", question="Change?")
        named = [f"holdfast://questions/{asked['id']}"]
        async with bot.client.listen(resource_subscriptions=named) as changes, asyncio.timeout(HANG):
            close_streams(hall.hf)
            assert [each async for each in changes] == []


async def test_prompt_tells_an_agent_to_ask_first(hall: Server) -> None:
    async with agent(hall) as bot:
        (prompt,) = (await bot.client.list_prompts()).prompts
        said = await bot.client.get_prompt(prompt.name, {"task": "Clean up.", "assignee": "role:boss"})
        assert "Clean up." in said.messages[0].content.text
        assert "role:boss" in said.messages[0].content.text
        with pytest.raises(MCPError, match="needs a task"):
            await bot.client.get_prompt(prompt.name, {})


PING: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
BOTH = {"Accept": "application/json, text/event-stream"}


async def test_door_is_that_of_every_route(hall: Server) -> None:
    """No credential, a cookie, another site's page, too much: each is told as everywhere."""
    secret = await token(hall, "service:bot", rights=WORKS)
    async with httpx2.AsyncClient(base_url=hall.serving.address, headers=BOTH) as client:

        async def sent(status: int, **more: Any) -> httpx2.Response:
            headers = {**bearer(secret), **more.pop("headers", {})}
            answer = await client.post("/mcp", **{"json": PING, **more}, headers=headers)
            assert answer.status_code == status, answer.text
            return answer

        assert '"result":{}' in (await sent(200)).text
        assert (await sent(200)).headers["x-request-id"]
        await sent(200, headers={"Origin": hall.serving.address})
        await sent(200, headers={"Origin": "https://tools.example"})
        refused = await sent(403, headers={"Origin": "https://evil.example"})
        assert refused.json()["code"] == "cross_site"
        assert (await sent(401, headers=bearer("hf_nonsense"))).json()["code"] == "unauthenticated"
        assert (await sent(413, content=b" " * (2 << 20))).json()["code"] == "too_large"
        await sent(400, content=b"{")
        await sent(400, headers={"MCP-Protocol-Version": "1999-01-01"})
        await sent(406, headers={"Accept": "text/plain"})
        assert (await client.post("/mcp", json=PING)).status_code == 401
        for method in ("GET", "DELETE"):
            answer = await client.request(method, "/mcp", headers=bearer(secret))
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_session_of_a_browser_is_no_agent(hall: Server) -> None:
    opened = await session(hall, "user:dana", "admin")
    async with browser(hall, opened) as page:
        answer = await page.post("/mcp", json=PING, headers={**BOTH, "X-CSRF-Token": opened.csrf})
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


async def test_server_without_the_library_says_what_to_install(
    hall: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.integrations.mcp.http.find_spec", lambda _name: None)
    answer = await hall.client.post("/mcp", json=PING, headers=BOTH)
    assert (answer.status_code, answer.json()["code"]) == (501, "not_installed")
    assert "extra `mcp`" in answer.json()["hint"]


@dataclass
class Refund:
    order: str
    amount: int
    reason: str = ""


@pytest.mark.covers("SAFE-READ-12")
async def test_agent_reads_what_a_flow_does_and_which_input_it_takes(tmp_path: Path) -> None:
    described = Flow("described", state=Refund, effect="pure", description="Pays an order back.")
    described.node(id="a")(lambda: None)
    free = Flow("free", effect="pure")
    free.node(id="a")(lambda: None)
    async with (
        speaking(f"sqlite:{tmp_path / 'm.db'}", described, free) as server,
        agent(server) as bot,
    ):
        flows = {flow["name"]: flow for flow in (await bot.does("list_flows"))["items"]}
        assert flows["described"]["description"] == "Pays an order back."
        schema = flows["described"]["input_schema"]
        assert sorted(schema["required"]) == ["amount", "order"]
        assert schema["properties"]["amount"] == {"type": "integer"}
        assert schema["properties"]["reason"] == {"type": "string", "default": ""}
        assert (flows["free"]["description"], flows["free"]["input_schema"]) == ("", {"type": "object"})
        # What the schema says is what a start accepts.
        fits = jsonschema_rs.Draft202012Validator(schema)
        for given, good in (({"order": "a", "amount": 1}, True), ({"order": "a"}, False)):
            assert fits.is_valid(given) is good
            start = bot.does if good else bot.fails
            assert await start("start_run", flow="described", input=given)
        listed = await server.json("GET", "/v1/flows")
        schemas = {each["name"]: each["input_schema"] for each in listed["items"]}
        assert [schemas[name] for name in flows] == [flow["input_schema"] for flow in flows.values()]
        one = await server.json("GET", "/v1/flows/described")
        assert (one["description"], one["input_schema"]) == ("Pays an order back.", schema)
