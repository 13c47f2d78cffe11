"""Whatever an agent calls, with whatever it gives: no question is decided."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import Flow
from holdfast.api.app import ApiSettings
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.rights import Right
from holdfast.errors import ForbiddenError, HoldfastError
from holdfast.holds.timing.sweeper import HoldSweeper
from holdfast.integrations.mcp.caller import McpCaller, as_agent
from holdfast.integrations.mcp.http import routes
from holdfast.integrations.mcp.resources import ignore_progress
from holdfast.integrations.mcp.server import TOOLS
from holdfast.integrations.mcp.tool_registry import McpTool
from holdfast.types.ids import RunId
from holdfast.types.status import HoldStatus
from tests.api.conftest import Server
from tests.api.sign_in import audited, bearer, token
from tests.deadlines import HANG
from tests.integrations.mcp.session import WORKS, agent, speaking

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-MCP-02")]

EVERYTHING: Final = tuple(str(right) for right in Right)
DECISIONS: Final = ("approve", "yes", "submit", "continue", "no", "reject")


def asks() -> Flow:
    """Questions of each kind that there is."""
    flow = Flow("asks")

    @flow.node(effect="pure")
    async def begin(s: Any) -> dict[str, Any]:
        return {}

    both: list[Any] = ["approve", "reject"]
    form = {"type": "object", "properties": {"amount": {"type": "integer"}}}
    holds = [
        flow.hold("choice", prompt="Pay?", options=both, assignee="user:dana"),
        flow.hold("unrouted", prompt="Pay?", options=both),
        flow.hold("words", prompt="Why?", assignee="user:dana"),
        flow.hold("filled", prompt="How much?", form=form, assignee="user:dana"),
    ]
    for hold in holds:
        flow.edge(begin, hold)
    return flow


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Server]:
    async with speaking(f"sqlite:{tmp_path / 'm.db'}", asks()) as server:
        yield server


async def asked_by(server: Server, who: str) -> list[str]:
    """A run of theirs that waits; its questions."""
    service = await server.hf.service()
    program = next(each for each in service.runtime.programs.values() if each.graph.name == "asks")
    row, _ = await service.create(program, {}, started_by=who)
    async with asyncio.timeout(HANG):
        while len(holds := await service.holds(row.id)) < 4:
            await service.store.wait_change(0.05)
    return [row.id, *(str(hold.id) for hold in holds)]


def values(name: str, ids: list[str]) -> list[Any]:
    """What a field is given: above all what could be taken for a decision."""
    known: dict[str, list[Any]] = {
        "id": ids,
        "run": ids,
        "flow": ["asks", "ask-people"],
        "input": [{}, {"decision": "approve", "choice": "approve"}],
        "choices": [["approve", "reject"], [{"id": "approve", "variant": "primary"}]],
        "form": [{"type": "object", "properties": {}}],
        "context": [{"decision": "approve"}],
        "assignee": ["user:dana", "service:bot"],
        "deadline": ["1s"],
        "on_deadline": ["fail", "cancel", "default", "default:approve", "escalate:user:dana"],
        "status": ["any", ["pending_input"]],
        "wait_seconds": [0, 0.01],
        "limit": [5],
        "after": [0],
        "cursor": ["approve"],
    }
    return known.get(name, list(DECISIONS))


def attempts(tool: McpTool, ids: list[str]) -> Iterator[dict[str, Any]]:
    """With each value of each field, for each id that it can be about; and with what it does not take."""
    fields = tool.takes.__struct_encode_fields__
    about = next((name for name in ("id", "run") if name in fields), None)
    needed = {name: values(name, ids)[0] for name in ("text", "question", "flow") if name in fields}
    for one in ids if about else [None]:
        base = needed | ({about: one} if about and one else {})
        for name in fields:
            for value in values(name, ids):
                yield base | {name: value}
        for decision in DECISIONS:
            for more in ("decision", "resolution", "answer", "content"):
                yield base | {more: decision}


@pytest.mark.parametrize("who", ["service:bot", "user:dana"])
async def test_no_tool_with_any_argument_decides_anything(
    hall: Server, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every right that there is, also for those whom the questions are for."""
    monkeypatch.setattr("holdfast.integrations.mcp.question_tools.OPENS_IN", 0.0)
    foreign, own = await asked_by(hall, "user:sam"), await asked_by(hall, who)
    grant = CredentialGrant(subject=who, rights=tuple(Right))
    principal = grant.principal(method="token", credential="t", channel="api")
    (route,), settings = routes.found, ApiSettings()
    called = done = 0
    # What takes something away comes last: before it everything has to be open still.
    for tool in sorted(TOOLS.values(), key=lambda each: each.destroys):
        if tool.destroys:
            assert await _statuses(hall, [*foreign, *own]) == {HoldStatus.pending}
        for given in attempts(tool, [*foreign, *own]):
            called += 1
            try:
                await tool.use(McpCaller(hall.hf, principal, route, settings), given, ignore_progress)
                done += 1
            except HoldfastError:
                pass
    assert (called > 1000, done > 100) == (True, True)
    assert await _statuses(hall, foreign) == {HoldStatus.pending}
    assert await _statuses(hall, own) == {HoldStatus.cancelled}
    for action in ("resolved", "voted", "placed", "claimed", "reassigned"):
        assert await audited(hall, action) == []


async def _statuses(server: Server, ids: list[str]) -> set[HoldStatus]:
    service = await server.hf.service()
    return {hold.status for hold in await service.holds(RunId(ids[0]), open_only=False)}


async def test_rights_that_decide_are_not_an_agents(hall: Server) -> None:
    """Even where something here would try: what is asked on its behalf is asked by this actor."""
    holds = await asked_by(hall, "user:sam")
    grant = CredentialGrant(subject="user:dana", rights=tuple(Right))
    actor = as_agent(grant.principal(method="token", credential="t", channel="api")).actor
    people = await hall.hf.holds()
    for hold in holds[1:]:
        with pytest.raises(ForbiddenError):
            await people.resolve(actor, hold, decision="approve", reason="because I can")
        with pytest.raises(ForbiddenError):
            await people.claim(actor, hold)
        with pytest.raises(ForbiddenError):
            await people.cancel(actor, hold)
        with pytest.raises(ForbiddenError):
            await people.reassign(actor, hold, "user:x")
    assert await _statuses(hall, holds) == {HoldStatus.pending}
    refusals = await audited(hall, "refused")
    assert refusals
    assert all(b'"channel":"mcp"' in each.data for each in refusals)


async def test_over_the_wire_an_administrators_token_has_no_tool_that_decides(hall: Server) -> None:
    (_, hold, *_) = await asked_by(hall, "user:sam")
    async with agent(hall, "user:root", "admin", rights=EVERYTHING) as bot:
        assert set(await bot.tools()) == set(TOOLS)
        for extra in ({"decision": "approve"}, {"resolution": "approve"}):
            assert "unknown field" in await bot.fails("check_answer", id=hold, **extra)


async def test_token_of_an_agent_decides_its_own_question_by_no_other_way_either(hall: Server) -> None:
    secret = await token(hall, "service:bot", rights=EVERYTHING)
    async with agent(hall, rights=EVERYTHING) as bot:
        asked = await bot.does("ask_people", question="Pay?", choices=["yes", "no"], assignee="service:bot")
        for path in (f"/v1/holds/{asked['id']}/resolve", f"/v1/runs/{asked['run']}/input"):
            body = {"content": "yes"} if path.endswith("input") else {"decision": "yes", "reason": "mine"}
            answer = await hall.client.post(path, json=body, headers=bearer(secret))
            assert (answer.status_code, "may not decide its own runs" in answer.text) == (403, True)
        assert (await bot.does("check_answer", id=asked["id"]))["status"] == "pending"


async def test_deadline_of_an_agents_question_never_approves(hall: Server) -> None:
    async with agent(hall) as bot:
        asked = await bot.does(
            "ask_people", question="Pay?", choices=[{"id": "approve", "variant": "primary"}], deadline="1ms"
        )
        service = await hall.hf.service()
        await HoldSweeper(service.store, service.runtime.clock).sweep()
        heard = await bot.does("check_answer", id=asked["id"], wait_seconds=20)
        assert (heard["status"], heard["decision"]) == ("expired", None)
        assert "not an approval" in heard["next"]


@pytest.mark.parametrize("more", [{"timeout": "1s", "on_timeout": "default:yes"}, {"allow_services": True}])
async def test_question_that_answers_itself_is_not_asked_when_its_flow_is_started_past_the_tool(
    hall: Server, more: dict[str, Any]
) -> None:
    secret = await token(hall, "service:bot", rights=WORKS)
    given = {"question": "Pay?", "choices": ["yes", "no"], "form": None, "manner": more}
    async with agent(hall) as bot:
        await bot.does("ask_people", question="So that the flow is known")
        body = {"flow": "ask-people", "input": given, "wait": 60}
        made = await hall.client.post("/v1/runs", json=body, headers=bearer(secret))
        run = made.json()
        assert (run["status"], "only people answer" in run["error"]) == ("failed", True)
