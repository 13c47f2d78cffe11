"""`holdfast queue`: published, claimed, completed, given up and requeued."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.queues.inbound import InboundQueue
from holdfast.testing.conformance.transports import BINDING
from tests.cli.conftest import Cli
from tests.cli.test_bad_input import complains

TASKS = "support/tasks"


@pytest.mark.covers("QU-11", "PLATFORM-QUEUE-03")
def test_message_is_published_claimed_and_completed(cli: Cli) -> None:
    made = cli("queue", "publish", TASKS, '{"order": 7}', "--id", "m1", "--priority", "high", "--json").json
    assert (made["state"], made["payload"], made["priority"]) == ("ready", {"order": 7}, "high")
    assert "support/tasks" in cli("queue", "list").out
    (mine,) = cli("queue", "claim", TASKS, "--by", "user:dana", "--ttl", "1m", "--json").items
    assert (mine["id"], mine["claimed_by"]) == ("m1", "user:dana")
    token = mine["claim_token"]
    assert cli("queue", "claim", TASKS).out.startswith("No message")
    assert cli("queue", "extend", TASKS, "m1", "--token", token, "--ttl", "9m").code == 0
    done = cli(
        "queue", "complete", TASKS, "m1", "--token", token, "--result", '"yes"', "--by", "user:dana", "--json"
    ).json
    assert (done["state"], done["result"], done["completed_by"]) == ("completed", "yes", "user:dana")
    shown = cli("queue", "show", TASKS, "m1")
    assert '"order": 7' in shown.out
    assert "user:dana" in shown.out


@pytest.mark.covers("QU-11", "PLATFORM-QUEUE-03")
def test_message_is_released_given_up_requeued_and_withdrawn(cli: Cli) -> None:
    cli("queue", "publish", TASKS, "1", "--id", "m1")
    (mine,) = cli("queue", "claim", TASKS, "m1", "--json").items
    back = cli(
        "queue", "release", TASKS, "m1", "--token", mine["claim_token"], "--error", "busy", "--json"
    ).json
    assert (back["state"], back["attempts"], back["error"]) == ("ready", 1, "busy")
    assert "is dead" in cli("queue", "dead", TASKS, "m1", "--error", "unreadable").out
    (dead,) = cli("queue", "list", TASKS, "--state", "dead", "--json").items
    assert dead["error"] == "unreadable"
    (queue,) = cli("queue", "list", "--json").items
    assert (queue["dead"], queue["ready"]) == (1, 0)
    assert cli("queue", "requeue", TASKS, "m1", "--json").json["state"] == "ready"
    assert "is withdrawn" in cli("queue", "withdraw", TASKS, "m1").out
    assert "No such messages" in cli("queue", "list", TASKS, "--state", "ready").out


@pytest.mark.covers("QU-11", "QU-21")
def test_what_a_broker_brought_in_vain_is_listed_with_the_reason(cli: Cli, tmp_path: Path) -> None:
    cli("queue", "publish", TASKS, "1", "--id", "m1")

    async def reject() -> None:
        async with Holdfast() as hf:
            await InboundQueue(await hf.queues()).record_rejected(BINDING, b"\xff", "it is not JSON")

    asyncio.run(reject())
    listed = cli("queue", "list", "support/reviews", "--state", "dead")
    assert "rejected" in listed.out
    assert "it is not JSON" in listed.out
    (dead,) = cli("queue", "list", "support/reviews", "--json").items
    assert "it is not JSON" in cli("queue", "show", "support/reviews", dead["id"]).out
    complains(cli("queue", "requeue", "support/reviews", dead["id"]), 2, "send it again")


@pytest.mark.covers("QU-2", "QU-11")
def test_wrong_words_are_answered_with_what_to_write(cli: Cli) -> None:
    cli("queue", "publish", TASKS, "1", "--id", "m1")
    complains(cli("queue", "publish", "tasks", "1"), 2, "SCOPE/QUEUE")
    complains(cli("queue", "publish", "Support/tasks", "1"), 2, "lower-case")
    complains(cli("queue", "publish", TASKS, "{"), 2, "not JSON")
    complains(cli("queue", "publish", TASKS, "2", "--id", "m1"), 2, "other content")
    complains(cli("queue", "publish", TASKS, "1", "--delay", "soon"), 2, "--delay")
    complains(cli("queue", "list", TASKS, "--state", "done"), 2, "Choose from")
    complains(cli("queue", "complete", TASKS, "m1", "--token", "1"), 2, "claim")
    complains(cli("queue", "show", TASKS, "m2"), 2, "no message m2")


@pytest.mark.covers("QU-11", "PLATFORM-QUEUE-03")
def test_reconciliation_publishes_the_review_of_an_open_hold(cli: Cli) -> None:
    Path("ask_in_a_queue.py").write_text(
        "from holdfast import Flow\n"
        'flow = Flow("ask", effect="pure")\n'
        'flow.hold("ask", prompt="Go?", options=["yes"], queue="support/reviews")\n'
    )
    assert cli("run", "ask_in_a_queue.py", "--detach").err == ""
    said = cli("queue", "reconcile", "--json").json
    assert (said["holds"], said["applied"]) == (1, 0)
    (row,) = cli("queue", "list", "support/reviews", "--json").items
    assert (row["type"], row["payload"]["prompt"]) == ("hitl_request", "Go?")
    assert cli("queue", "reconcile").out.startswith("1 open hold")


@pytest.mark.covers("USERS-EVENT-SEND", "USERS-EVENT-SIGNAL", "USERS-EVENT-SHOWN", "USERS-EVENT-QUERY")
def test_an_event_is_sent_to_a_waiting_run_or_kept(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / f"paid_{abs(hash(str(tmp_path)))}.py"
    file.write_text(
        """
from holdfast import Context, Flow
paid = Flow("paid", effect="read")
@paid.script
async def wait(ctx: Context):
    return {"got": [await ctx.wait_for("paid", key="A17"), await ctx.wait_for("note")]}
"""
    )
    run = cli("run", f"{file}:paid", "--json").json["id"]
    before = cli("runs", "--json").json
    shown = cli("show", run).out
    assert cli("runs", "--json").json == before
    assert "waiting for the event paid (A17)" in shown
    assert "holdfast events send paid JSON --key A17" in shown
    assert cli("runs", "--json").json["items"][0]["waits_for"][0]["event"] == "paid"
    assert "kept until" in cli("events", "send", "paid", "1", "--key", "B18").out
    assert cli("events", "send", "paid", '{"amount": 5}', "--key", "A17", "--json").json["delivered"]
    assert "kept until" in cli("events", "send", "note", "--run", run[:8]).out
    assert cli("resume", run, f"{file}:paid", "--json").json["state"]["got"] == [{"amount": 5}, None]


@pytest.mark.covers("USERS-CALLBACK", "USERS-BAD-TOKEN")
def test_a_callback_is_listed_completed_and_failed(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / f"build_{abs(hash(str(tmp_path)))}.py"
    file.write_text(
        """
from holdfast import Context, Flow
build = Flow("build", effect="read")
@build.script
async def wait(ctx: Context):
    return {"built": await (await ctx.callback("built", heartbeat="1h")).result()}
"""
    )
    run = cli("run", f"{file}:build", "--json").json["id"]
    shown = cli("show", run).out
    assert "waiting for the callback built" in shown
    assert f"holdfast callbacks list {run[:8]}" in shown
    (found,) = cli("callbacks", "list", run[:8], "--json").json["items"]
    assert found["url"] in cli("callbacks", "list", run).out
    assert "the run waits  until" in cli("callbacks", "heartbeat", found["url"]).out
    assert "the run has it" in cli("callbacks", "complete", found["url"], '{"image": "a17"}').out
    assert cli("callbacks", "complete", found["url"], '{"image": "a17"}', "--json").json["waiting"] is False
    assert cli("callbacks", "fail", found["url"], "no disk", "--data", "28").code == 2
    assert cli("callbacks", "heartbeat", "x" * 64).code == 2
    assert cli("resume", run, f"{file}:build", "--json").json["state"]["built"] == {"image": "a17"}
    assert "waits for no callback" in cli("callbacks", "list", run).out


REVIEW = """
holdfast: "1.0"
name: review
config: {scaiqueue: {scope: support}}
nodes:
  - {id: start, type: start}
  - {id: ask, type: hitl_review, config: {queue: reviews, prompt: "Pay?", options: [approve, reject]}}
  - {id: done, type: end}
edges:
  - {source: start, target: ask}
  - {source: ask, source_port: approve, target: done}
  - {source: ask, source_port: reject, target: done}
"""

CONSUME = """
holdfast: "1.0"
name: order
config: {scaiqueue: {scope: support}}
nodes:
  - {id: start, type: start}
  - {id: take, type: queue_consume, config: {queue: tasks}}
  - {id: done, type: end, config: {output: {order: "{{take.payload.order}}"}}}
edges: [{source: start, target: take}, {source: take, target: done}]
"""


@pytest.mark.covers("PLATFORM-QUEUE-01", "CV-46")
def test_run_without_a_worker_publishes_its_review_and_resumes_with_its_decision(cli: Cli) -> None:
    Path("review.yaml").write_text(REVIEW)
    run = cli("run", "review.yaml", "--json").json["id"]
    (mine,) = cli("queue", "claim", "support/reviews", "--by", "user:dana", "--json").items
    assert (mine["type"], mine["payload"]["prompt"], mine["run"]) == ("hitl_request", "Pay?", run)
    answer = ("--token", mine["claim_token"], "--result", '{"decision": "approve"}', "--by", "user:dana")
    assert cli("queue", "complete", "support/reviews", mine["id"], *answer).code == 0
    assert cli("resume", run, "--json").json["status"] == "completed"


@pytest.mark.covers("QU-30", "CV-46")
def test_run_without_a_worker_takes_the_message_that_is_there(cli: Cli) -> None:
    Path("order.yaml").write_text(CONSUME)
    cli("queue", "publish", TASKS, '{"order": 7}', "--id", "m1")
    done = cli("run", "order.yaml", "--json").json
    assert (done["status"], done["artifacts"]) == ("completed", {"order": 7})
    assert cli("queue", "show", TASKS, "m1", "--json").json["state"] == "completed"
