"""Agents ask people over MCP, and hear what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.cli.commands.worker import WorkerOptions, run_worker
from holdfast.integrations.ask_people_flow import EARLIER_CODE, ask_people
from holdfast.types.ids import HoldId
from holdfast.types.terms import operator
from tests.api.conftest import Server
from tests.api.sign_in import audited, bearer, token
from tests.deadlines import HANG
from tests.integrations.mcp.session import agent, speaking

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-MCP-01")]


@pytest.fixture
async def hall(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Server]:
    async with speaking(f"sqlite:{tmp_path / 'm.db'}") as server:
        yield server


async def decide(server: Server, hold: str, decision: str, who: str = "user:dana", **more: object) -> None:
    secret = await token(server, who, rights=("holds:write",))
    body = {"decision": decision, **more}
    await server.json("POST", f"/v1/holds/{hold}/resolve", headers=bearer(secret), json=body)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_agent_asks_and_hears_what_a_person_decided(hall: Server, mode: str) -> None:
    async with agent(hall, mode=mode) as bot:
        asked = await bot.does(
            "ask_people", question="Delete it?", choices=["yes", "no"], assignee="user:dana"
        )
        assert (asked["status"], asked["decision"], asked["choices"]) == ("pending", None, ["yes", "no"])
        assert asked["page"] == f"{hall.serving.address}/holds/{asked['id']}"
        await decide(hall, asked["id"], "no", comment="It is still used.")
        heard = await bot.does("check_answer", id=asked["id"], wait_seconds=20)
        assert (heard["status"], heard["decision"], heard["decided_by"]) == ("resolved", "no", "user:dana")
        assert heard["comment"] == "It is still used."
        done = await bot.does("get_result", run=asked["run"], wait_seconds=20)
        assert (done["status"], done["state"]["decision"]) == ("completed", "no")


async def test_agent_that_waits_is_reported_at_once_and_hears_that_it_goes_on(
    hall: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.integrations.mcp.caller.BEAT", 0.1)
    beats: asyncio.Queue[str | None] = asyncio.Queue()

    async def beat(done: float, total: float | None, text: str | None) -> None:
        beats.put_nowait(text)

    async with agent(hall) as bot:
        asked = await bot.does("ask_people", question="Now?", choices=["yes", "no"], assignee="user:dana")
        given = {"id": asked["id"], "wait_seconds": 50}
        waiting = asyncio.create_task(bot.client.call_tool("check_answer", given, progress_callback=beat))
        async with asyncio.timeout(HANG):
            assert await beats.get() == "The question is not decided yet."
        assert not waiting.done()
        await decide(hall, asked["id"], "yes")
        async with asyncio.timeout(HANG):
            said = await waiting
    assert said.structured_content["decision"] == "yes"


async def test_question_is_kept_and_answered_while_nobody_of_the_server_lives(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'm.db'}"
    async with speaking(store) as server, agent(server) as bot:
        asked = await bot.does("ask_people", question="Ship it?", choices=["yes", "no"])
    async with Holdfast(store) as hf:
        people = await hf.holds()
        await people.resolve(operator("user:dana"), asked["id"], decision="yes")
    async with speaking(store, works=False) as server, agent(server) as bot:
        heard = await bot.does("check_answer", id=asked["id"])
        assert (heard["status"], heard["decision"]) == ("resolved", "yes")


async def test_any_of_several_servers_answers_an_agent(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'm.db'}"
    async with (
        speaking(store) as first,
        speaking(store, works=False) as second,
        agent(first) as bot,
        agent(second) as same,
    ):
        asked = await bot.does("ask_people", question="Here?", choices=["yes", "no"], assignee="user:dana")
        waiting = asyncio.create_task(same.does("check_answer", id=asked["id"], wait_seconds=50))
        await decide(first, asked["id"], "yes")
        async with asyncio.timeout(HANG):
            assert (await waiting)["decision"] == "yes"


async def test_question_that_nobody_serves_is_kept_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.integrations.mcp.question_tools.OPENS_IN", 0.05)
    store = f"sqlite:{tmp_path / 'm.db'}"
    async with speaking(store, works=False) as server, agent(server) as bot:
        asked = await bot.does("ask_people", question="Anybody?")
        assert asked["status"] == "opening"
        assert "holdfast worker" in asked["next"]
        assert (await bot.does("check_answer", id=asked["id"]))["question"] == "Anybody?"
        assert "not open yet" in await bot.fails("comment_on_question", id=asked["id"], text="Hello?")
    # Any worker opens it: nobody has to name what agents ask.
    await run_worker([], None, 2, until_idle=True, store=store, json=False, terms=WorkerOptions())
    async with speaking(store, works=False) as server, agent(server) as bot:
        assert (await bot.does("check_answer", id=asked["run"]))["status"] == "pending"


async def test_question_has_its_form_context_deadline_and_the_agents_name(hall: Server) -> None:
    form = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    async with agent(hall) as bot:
        asked = await bot.does(
            "ask_people",
            question="How much?",
            choices=[{"id": "pay", "label": "Pay it", "variant": "primary"}, "drop"],
            form=form,
            assignee="user:dana",
            deadline="2h",
            on_deadline="escalate:role:boss",
            priority="high",
            context={"order": 7},
        )
        row = await hall.json("GET", f"/v1/holds/{asked['id']}")
        assert [(each["id"], each["label"]) for each in row["options"]] == [
            ("pay", "Pay it"),
            ("drop", "drop"),
        ]
        assert (row["priority"], row["context"]["order"], row["tags"]) == ("high", 7, ["agent"])
        assert (row["escalation_target"], row["started_by"]) == ("role:boss", "service:bot")
        assert row["original_timeout_s"] == 7200
        await decide(hall, asked["id"], "pay", response_data={"amount": 12})
        heard = await bot.does("check_answer", id=asked["id"])
        assert (heard["decision"], heard["data"]) == ("pay", {"amount": 12})


async def test_same_key_is_one_question_of_one_agent(hall: Server) -> None:
    async with agent(hall) as bot, agent(hall, "service:other") as other:
        given = {"question": "Once?", "idempotency_key": "k"}
        first = await bot.does("ask_people", **given)
        assert (await bot.does("ask_people", **given))["id"] == first["id"]
        assert (await other.does("ask_people", **given))["id"] != first["id"]
        assert "key" in await bot.fails("ask_people", question="Another?", idempotency_key="k")


async def test_agent_lists_its_own_questions_page_by_page(hall: Server) -> None:
    async with agent(hall) as bot, agent(hall, "service:other") as other:
        mine = [(await bot.does("ask_people", question=f"Q{n}"))["id"] for n in range(3)]
        foreign = (await other.does("ask_people", question="Theirs"))["id"]
        first = await bot.does("list_questions", limit=2)
        second = await bot.does("list_questions", limit=2, cursor=first["next"])
        assert [each["id"] for each in (*first["items"], *second["items"])] == mine[::-1]
        assert second["next"] is None
        assert (await bot.does("list_questions", status="resolved"))["items"] == []
        assert "not to service:bot" in await bot.fails("check_answer", id=foreign)


async def test_person_asks_back_and_the_agent_replies(hall: Server) -> None:
    async with agent(hall) as bot:
        asked = await bot.does("ask_people", question="Pay?", choices=["yes", "no"], assignee="user:dana")
        dana = bearer(await token(hall, "user:dana", rights=("holds:write",)))
        place = f"/v1/holds/{asked['id']}"
        await hall.json("POST", f"{place}/ask-back", headers=dana, json={"text": "For what?"})
        heard = await bot.does("check_answer", id=asked["id"], wait_seconds=20)
        assert [(each["by"], each["text"]) for each in heard["asked_back"]] == [("user:dana", "For what?")]
        assert "reply_to_people" in heard["next"]
        result = await bot.does("reply_to_people", id=asked["id"], text="For the server.")
        assert (result["status"], result["asked_back"]) == ("pending", [])
        notes = (await hall.json("GET", f"{place}/comments", headers=dana))["items"]
        assert notes[-1]["text"] == "For the server."


@pytest.mark.covers("SERVER-MCP-02")
async def test_agent_comments_and_withdraws_what_it_asked(hall: Server) -> None:
    async with agent(hall) as bot:
        asked = await bot.does("ask_people", question="Still?", choices=["yes", "no"], assignee="user:dana")
        await bot.does("comment_on_question", id=asked["id"], text="It is urgent.")
        heard = await bot.does("check_answer", id=asked["id"])
        assert [(each["by"], each["text"]) for each in heard["comments"]] == [
            ("service:bot", "It is urgent.")
        ]
        for _ in range(2):  # again is no change
            gone = await bot.does("withdraw_question", id=asked["id"], reason="solved otherwise")
            assert (gone["status"], gone["decision"]) == ("cancelled", None)
        assert "not an approval" in gone["next"]
        done = await bot.does("get_run", run=asked["run"], wait_seconds=20)
        assert done["status"] == "cancelled"
    row = await hall.json("GET", f"/v1/holds/{asked['id']}")
    assert (row["cancelled_by"], row["cancel_reason"]) == ("service:bot", "solved otherwise")
    for action in ("commented", "cancelled"):
        (entry,) = await audited(hall, action)
        assert (entry.actor, b'"channel":"mcp"' in entry.data) == ("service:bot", True)


async def test_decided_question_is_not_withdrawn(hall: Server) -> None:
    async with agent(hall) as bot:
        asked = await bot.does("ask_people", question="Go?", choices=["yes", "no"], assignee="user:dana")
        await decide(hall, asked["id"], "yes")
        assert "user:dana" in await bot.fails("withdraw_question", id=asked["id"])
    store = await hall.hf.open()
    row = await store.hold(HoldId(asked["id"]))
    assert row is not None
    assert row.status == "resolved"


WRONG = [
    ({}, "question"),
    ({"question": ""}, "length >= 1"),
    ({"question": "?", "choices": ["a", "a"]}, "'a'"),
    ({"question": "?", "form": {"type": "array"}}, "no form can be made"),
    ({"question": "?", "deadline": "soon"}, "not a duration"),
    ({"question": "?", "deadline": "1h", "on_deadline": "default"}, "on_deadline"),
    ({"question": "?", "deadline": "1h", "on_deadline": "default_option"}, "on_deadline"),
    ({"question": "?", "priority": "asap"}, "priority"),
    ({"question": "?", "wait_seconds": 56}, "wait_seconds"),
    ({"question": "?", "decision": "yes"}, "decision"),
]


async def test_question_that_cannot_be_asked_is_reported_and_nothing_is_started(hall: Server) -> None:
    async with agent(hall) as bot:
        for given, why in WRONG:
            assert why in await bot.fails("ask_people", **given)
        assert (await bot.does("list_runs"))["items"] == []


def test_question_that_an_earlier_release_asked_resumes_with_this_code() -> None:
    """Where the second line fails although the node takes the same steps, add its mark to EARLIER_CODE."""
    program = ask_people.program()
    assert program.version == "g1-372b8e7143a600d2b4c0e2c68bb841ab"
    assert program.code["ask"] in EARLIER_CODE
    assert all(program.accepts_code("ask", mark) for mark in EARLIER_CODE)
