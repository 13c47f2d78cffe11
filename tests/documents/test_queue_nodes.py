"""Nodes that publish messages, wait for them and move them."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.app.flow import advance
from holdfast.app.result import Result
from holdfast.documents.connections import ConnectionSettings
from holdfast.documents.program import program_for
from holdfast.errors import InputError
from holdfast.frontends.document.compile import compile_document
from holdfast.frontends.document.read import read_text
from holdfast.holds.queries.audit import records_of
from holdfast.holds.queries.evidence import make_pack, signed_pack
from holdfast.types.ids import derived_id, new_id
from holdfast.types.queue_message import MessageState
from holdfast.types.terms import MANAGE, Actor
from tests.documents.run import answer, flow_text, graph, rules, site_of, start
from tools.verify_evidence import verify

HEAD = """
config: {scaiqueue: {scope: shop}}
input: {properties: {order: {}}}
"""
NONE = ConnectionSettings()


def one(node: str, head: str = HEAD) -> str:
    listed = f"{{id: start, type: start}}\n{node}\n{{id: done, type: end}}"
    name = node.split("id: ")[1].split(",")[0]
    return flow_text(listed, f"start -> {name} -> done", head)


PUBLISH = one('{id: tell, type: queue_publish, config: {queue: work, payload: {order: "{{order}}"}}}')
MATCH = 'match: "message.payload.order == order"'
CONSUME = one(f"{{id: got, type: queue_consume, config: {{queue: work, {MATCH}}}}}")


async def resumed(hf: Holdfast, result: Result[Any]) -> Result[Any]:
    service = await hf.service()
    row = await service.get(result.run_id)
    program = await service.runtime.find_program(row.version, row.flow)
    return await advance(service, program, row.id)


# ------------------------------------------------------------------ publish
async def test_publish_node_sends_one_message_in_the_scope_of_its_flow(hf: Holdfast) -> None:
    ended = await start(hf, PUBLISH, {"order": 7}, settings=NONE)

    [row] = await (await hf.queues()).list("shop", "work")
    assert ended.status == "completed"
    assert ended.state["tell"] == {"message_id": row.id}
    assert msgspec.json.decode(row.payload) == {"order": 7}
    assert (row.type, row.run, row.node) == ("task", ended.run_id, "tell")


async def test_publish_node_sends_its_message_where_a_caller_has_taken_the_id(hf: Holdfast) -> None:
    site = site_of(settings=NONE)
    program = program_for(compile_document(read_text(PUBLISH, "yaml"), site), site)
    hf.register(program)
    service, queues, run = await hf.service(), await hf.queues(), new_id()
    taken = derived_id("queue_publish", "shop", "work", derived_id(run, "", "tell", 1, -1))
    await queues.publish("shop", "bait", {}, id=taken)
    row, _ = await service.create(program, {"order": 7}, run_id=run)
    ended = await advance(service, program, row.id, created=True)
    [own] = await queues.list("shop", "work")
    assert ended.state["tell"] == {"message_id": own.id}
    assert (own.run, msgspec.json.decode(own.payload)) == (run, {"order": 7})
    [bait] = await queues.list("shop", "bait")
    assert bait.id == taken


async def test_publish_node_has_its_own_scope_time_and_group(hf: Holdfast) -> None:
    text = one(
        "{id: tell, type: queue_publish, config: {queue: work, scope: depot, payload: 1, priority: high, "
        'delay: 1h, expires: 2h, group: "o-{{order}}", type: pick}}'
    )
    await start(hf, text, {"order": 7}, settings=NONE)

    [row] = await (await hf.queues()).list("depot", "work")
    assert (row.type, row.priority, row.group_key) == ("pick", "high", "o-7")
    assert row.expires_at is not None
    assert row.expires_at - row.visible_at == 3600 * 1_000_000
    assert await (await hf.queues()).claim(Actor(id="w"), "depot", "work") == []


async def test_publish_node_fails_without_a_message_when_its_payload_is_too_large(hf: Holdfast) -> None:
    ended = await start(hf, PUBLISH, {"order": "x" * 300_000}, settings=NONE)

    assert ended.status == "failed"
    assert "at most" in ended.error.message
    assert await (await hf.queues()).list("shop", "work") == []


def test_publish_node_is_repeated_after_a_crash_without_asking() -> None:
    [node] = [each for each in graph(PUBLISH).nodes if each.id == "tell"]

    assert (node.effect, node.in_doubt) == ("write", "retry")


# ------------------------------------------------------------------ consume
@pytest.mark.covers("QU-30")
async def test_consume_node_gets_the_message_that_matches_and_completes_it(hf: Holdfast) -> None:
    waiting = await start(hf, CONSUME, {"order": 7}, settings=NONE)
    queues = await hf.queues()
    assert [hold.type for hold in await (await hf.service()).holds(waiting.run_id)] == ["queue_wait"]
    await queues.publish("shop", "work", {"order": 6}, id="six")
    await queues.publish("shop", "work", {"order": 7, "note": "here"}, id="seven")
    await queues.work()
    ended = await resumed(hf, waiting)

    assert ended.status == "completed"
    assert ended.state["got"]["payload"] == {"order": 7, "note": "here"}
    assert ended.state["got"]["id"] == "seven"
    done = await queues.get("shop", "work", "seven")
    assert done.state is MessageState.completed
    assert msgspec.json.decode(done.result)["run"] == ended.run_id
    assert (await queues.get("shop", "work", "six")).state is MessageState.ready


@pytest.mark.covers("QU-30")
async def test_consume_node_is_shown_by_no_inbox_and_notifies_no_person(hf: Holdfast) -> None:
    await start(hf, CONSUME, {"order": 7}, settings=NONE)
    people = (await hf.service()).runtime.people
    admin = Actor(id="user:root", tenant="default", rights=frozenset({MANAGE}))

    for view in ("mine", "groups", "unassigned", "all", "breakpoints"):
        assert not (await people.list(admin, view=view)).rows


@pytest.mark.covers("QU-30")
async def test_each_message_goes_to_one_run_however_often_it_is_handed_out(hf: Holdfast) -> None:
    text = one("{id: got, type: queue_consume, config: {queue: work}}")
    runs = [await start(hf, text, {"order": number}, settings=NONE) for number in range(3)]
    queues = await hf.queues()
    for name in ("a", "b"):
        await queues.publish("shop", "work", name, id=name)
    await queues.work()

    ended = [await resumed(hf, each) for each in runs]
    got = [each.state["got"]["id"] for each in ended if each.status == "completed"]
    assert sorted(got) == ["a", "b"]
    assert [each.status for each in ended].count("pending_input") == 1


KEEPS = flow_text(
    """
    {id: start, type: start}
    {id: got, type: queue_consume, config: {queue: work, complete: run_end}}
    {id: ask, type: checkpoint, config: {prompt: "Done?", options: [ok], timeout: 1d, on_timeout: cancel}}
    {id: done, type: end}
    """,
    "start -> got -> ask -> done",
    HEAD,
)


@pytest.mark.covers("QU-30")
@pytest.mark.parametrize("ends", ["completed", "cancelled"])
async def test_run_keeps_its_message_until_it_ends_and_gives_it_back_when_it_fails(
    hf: Holdfast, ends: str
) -> None:
    waiting = await start(hf, KEEPS, {}, settings=NONE)
    queues, service = await hf.queues(), await hf.service()
    await queues.publish("shop", "work", {"order": 7}, id="seven")
    await queues.work()
    asked = await resumed(hf, waiting)
    await queues.work()
    row = await queues.get("shop", "work", "seven")
    assert (row.state, row.claimed_by) == (MessageState.claimed, f"run:{waiting.run_id}")
    assert row.claim_until is not None
    # No sweep takes it from a run that waits for a month.
    assert row.claim_until > queues.store.now() + 365 * 86_400 * 1_000_000
    if ends == "completed":
        await answer(hf, asked, "ok")
    else:
        await service.cancel(waiting.run_id)
        await resumed(hf, asked)
    await queues.work()
    row = await queues.get("shop", "work", "seven")
    if ends == "completed":
        assert (row.state, row.attempts) == (MessageState.completed, 0)
    else:
        assert (row.state, row.attempts) == (MessageState.ready, 1)
        assert "ended as cancelled" in (row.error or "")


async def test_consume_node_takes_no_review_of_another_hold(hf: Holdfast) -> None:
    review = one(
        "{id: ask, type: hitl_review, config: {queue: work, timeout: 1d, on_timeout: cancel, "
        "sections: [{type: decision, options: [ok]}]}}"
    )
    await start(hf, review, settings=NONE)
    waiting = await start(hf, one("{id: got, type: queue_consume, config: {queue: work}}"), settings=NONE)
    queues = await hf.queues()
    # It stands before the other message, and is left to those who review.
    await queues.publish("shop", "work", 1, id="a", priority="low")
    await queues.work()

    assert (await resumed(hf, waiting)).state["got"]["id"] == "a"
    review = next(each for each in await queues.list("shop", "work") if each.hold)
    assert (review.state, review.attempts) == (MessageState.ready, 0)


# ------------------------------------------------------------------ escalation
ESCALATE = flow_text(
    """
    {id: start, type: start}
    {id: tell, type: queue_publish, config: {queue: work, payload: {a: 1}, priority: high}}
    {id: ask, type: checkpoint, config: {prompt: "Go?", options: [ok], timeout: 1d, on_timeout: cancel}}
    {id: up, type: queue_escalation, config: {of: tell, queue: leads, priority: low, note: "{{order}} waits"}}
    {id: done, type: end}
    """,
    "start -> tell -> ask -> up -> done",
    HEAD,
)


@pytest.mark.covers("QU-32")
async def test_escalation_moves_the_message_drops_its_claim_and_keeps_the_priority(hf: Holdfast) -> None:
    waiting = await start(hf, ESCALATE, {"order": 7}, settings=NONE)
    queues = await hf.queues()
    await queues.claim(Actor(id="worker"), "shop", "work")
    ended = await answer(hf, waiting, "ok")

    [row] = await queues.list("shop", "leads")
    assert ended.state["up"] == {"escalated": True, "message_id": row.id}
    assert (row.state, row.priority, row.claimed_by) == (MessageState.ready, "high", None)
    assert msgspec.json.decode(row.payload) == {"a": 1, "escalation": {"note": "7 waits"}}


@pytest.mark.covers("QU-32")
async def test_escalation_of_a_final_message_changes_nothing(hf: Holdfast) -> None:
    waiting = await start(hf, ESCALATE, {"order": 7}, settings=NONE)
    queues = await hf.queues()
    [row] = await queues.list("shop", "work")
    await queues.withdraw("shop", "work", row.id)
    ended = await answer(hf, waiting, "ok")

    assert ended.state["up"] == {"escalated": False, "message_id": row.id}
    assert await queues.list("shop", "leads") == []


def test_queue_node_needs_a_scope() -> None:
    text = one("{id: it, type: queue_publish, config: {queue: work, payload: 1}}", "")

    assert rules(text, settings=NONE) == ["scope-missing"]


# ------------------------------------------------------------------ names without a value in match
def maybe(match: str) -> str:
    """`order` is set on one way only."""
    return flow_text(
        f"""
        {{id: start, type: start}}
        {{id: c, type: condition, config: {{when: flag}}}}
        {{id: s, type: set, config: {{values: {{order: 1}}}}}}
        {{id: got, type: queue_consume, config: {{queue: work, match: "{match}"}}}}
        {{id: done, type: end}}
        """,
        "start -> c\nc:true -> s -> got\nc:false -> got\ngot -> done",
        "config: {scaiqueue: {scope: shop}}\ninput: {properties: {flag: {}}}",
    )


async def test_consume_node_fails_when_a_name_of_its_match_has_no_value(hf: Holdfast) -> None:
    await (await hf.queues()).publish("shop", "work", {"order": ""})
    ended = await start(hf, maybe("message.payload.order == order"), {"flag": False}, settings=NONE)

    assert ended.status == "failed"
    assert "missing_name" in ended.error.message
    assert [row.state for row in await (await hf.queues()).list("shop", "work")] == [MessageState.ready]


@pytest.mark.parametrize(
    ("match", "taken"),
    [
        ("message.payload.order == (order | default(7))", 7),
        ("(exists(order) && message.payload.order == order) || message.payload.order == 8", 8),
        ("!exists(order) && message.payload.order == 9", 9),
        ("exists(state.flag) && message.payload.order == 9", 9),
    ],
)
async def test_consume_node_asks_whether_a_name_has_a_value(hf: Holdfast, match: str, taken: int) -> None:
    for each in ("", None, 7, 8, 9):
        await (await hf.queues()).publish("shop", "work", {"order": each})
    waiting = await start(hf, maybe(match), {"flag": False}, settings=NONE)
    await (await hf.queues()).work()
    ended = await resumed(hf, waiting)

    assert ended.state["got"]["payload"] == {"order": taken}


# ------------------------------------------------------------------ what an escalation leaves alone
def raises(config: str) -> str:
    return one(f'{{id: up, type: queue_escalation, config: {{message: "{{{{order}}}}", {config}}}}}')


@pytest.mark.parametrize(
    ("payload", "after"),
    [
        ({"note": "mine", "assignee": "x"}, {"note": "mine", "assignee": "x", "escalation": {"note": "up"}}),
        ([1, 2], {"payload": [1, 2], "escalation": {"note": "up"}}),
        (
            {"escalation": {"level": 3}},
            {"payload": {"escalation": {"level": 3}}, "escalation": {"note": "up"}},
        ),
    ],
)
async def test_escalation_keeps_the_fields_of_the_payload(hf: Holdfast, payload: Any, after: Any) -> None:
    queues = await hf.queues()
    await queues.publish("shop", "work", payload, id="m1")
    for _ in range(2):
        ended = await start(hf, raises("queue: leads, note: up"), {"order": "m1"}, settings=NONE)
        assert ended.state["up"]["escalated"] is True
    assert msgspec.json.decode((await queues.get("shop", "leads", "m1")).payload) == after


async def test_escalation_with_a_note_that_is_too_large_changes_nothing(hf: Holdfast) -> None:
    queues = await hf.queues()
    await queues.publish("shop", "work", {"a": 1}, id="m1")
    text = raises('queue: leads, note: "{{note}}"').replace("{order: {}}", "{order: {}, note: {}}")
    ended = await start(hf, text, {"order": "m1", "note": "N" * 300_000}, settings=NONE)

    assert ended.status == "failed"
    assert "at most" in ended.error.message
    assert msgspec.json.decode((await queues.get("shop", "work", "m1")).payload) == {"a": 1}


async def test_escalation_leaves_a_message_to_the_run_that_keeps_it(hf: Holdfast) -> None:
    waiting = await start(hf, KEEPS, {}, settings=NONE)
    queues = await hf.queues()
    await queues.publish("shop", "work", {"order": 7}, id="kept")
    await queues.work()
    await resumed(hf, waiting)
    ended = await start(hf, raises("priority: high"), {"order": "kept"}, settings=NONE)

    assert ended.state["up"] == {"escalated": False, "message_id": "kept"}
    row = await queues.get("shop", "work", "kept")
    assert (row.state, row.claimed_by) == (MessageState.claimed, f"run:{waiting.run_id}")


REVIEW = (
    "{id: ask, type: hitl_review, config: {queue: work, prompt: Pay, assignee: 'user:ann', timeout: 1d, "
    "on_timeout: cancel, sections: [{type: decision, options: [ok]}]}}"
)


async def test_review_of_another_run_is_not_escalated(hf: Holdfast) -> None:
    asked = await start(hf, one(REVIEW), settings=NONE)
    queues, service = await hf.queues(), await hf.service()
    await queues.work()
    [row] = await queues.list("shop", "work")
    text = raises("queue: leads, assignee: 'user:mallory', note: please")
    ended = await start(hf, text, {"order": row.id}, settings=NONE)

    assert ended.status == "failed"
    assert "review of another run" in ended.error.message
    assert await queues.list("shop", "work") == [row]
    [hold] = await service.holds(asked.run_id)
    assert hold.assignee == "user:ann"


def two_ways(assignee: str) -> str:
    """A run that escalates its own review while that waits."""
    return flow_text(
        f"""
        {{id: start, type: start}}
        {{id: both, type: parallel}}
        {REVIEW}
        {{id: nudge, type: checkpoint, config: {{prompt: "Now?", options: [ok], timeout: 1d, on_timeout: cancel}}}}
        {{id: up, type: queue_escalation, config: {{of: ask, queue: leads, priority: high, assignee: "{assignee}", note: late}}}}
        {{id: meet, type: join}}
        {{id: done, type: end}}
        """,
        "start -> both\nboth -> ask -> meet\nboth -> nudge -> up -> meet -> done",
        HEAD,
    )


@pytest.mark.parametrize(("assignee", "valid"), [("user:bea", True), ("user:{{order}}", False)])
async def test_own_review_is_escalated_with_its_hold(hf: Holdfast, assignee: str, valid: bool) -> None:
    waiting = await start(hf, two_ways(assignee), {"order": "cleo"}, settings=NONE)
    queues, service = await hf.queues(), await hf.service()
    await queues.work()
    holds = {hold.node: hold for hold in await service.holds(waiting.run_id)}
    await service.answer(holds["nudge"].id, "ok")
    await resumed(hf, waiting)
    found = await service.store.hold(holds["ask"].id)
    assert found is not None
    if not valid:
        assert found.assignee == "user:ann"
        assert await queues.list("shop", "leads") == []
        return
    assert (found.assignee_type, found.assignee_value, found.epoch) == ("user", "bea", holds["ask"].epoch + 1)
    assert found.priority == "high"
    for _ in range(2):
        [row] = await queues.list("shop", "leads")
        assert (row.priority, row.state) == ("high", MessageState.ready)
        payload = msgspec.json.decode(row.payload)
        assert (payload["assignee"], payload["escalation"]["note"]) == ("user:bea", "late")
        assert payload["priority"] == "high"
        await queues.work()


@pytest.mark.covers("QU-32")
@pytest.mark.parametrize(("given", "after"), [("critical", "critical"), ("low", "normal")])
async def test_priority_of_an_own_review_is_raised_with_its_hold_and_never_lowered(
    hf: Holdfast, given: str, after: str
) -> None:
    text = two_ways("user:ann").replace("priority: high", f"priority: {given}")
    waiting = await start(hf, text, {"order": "cleo"}, settings=NONE)
    queues, service = await hf.queues(), await hf.service()
    await queues.work()
    holds = {hold.node: hold for hold in await service.holds(waiting.run_id)}
    await service.answer(holds["nudge"].id, "ok")
    await resumed(hf, waiting)
    found = await service.store.hold(holds["ask"].id)
    assert found is not None
    assert (found.priority, found.assignee, found.epoch) == (after, "user:ann", holds["ask"].epoch)
    [row] = await queues.list("shop", "leads")
    assert (row.priority, msgspec.json.decode(row.payload)["priority"]) == (after, after)
    told = [each.action for each in await records_of(service.store, "default", hold=found.id)]
    assert told.count("raised") == (after != "normal")
    raw = await make_pack(service.store, found.id, tenant="default")
    pack = msgspec.json.decode(raw)
    assert pack["content"]["hold"]["priority"] == "normal"
    assert pack["content"]["hold"].get("raised_to") == (after if after != "normal" else None)
    assert list(verify(raw)) == []
    if after != "normal":
        forged = {**pack["content"], "hold": {**pack["content"]["hold"], "raised_to": "high"}}
        assert "the audit tells of another priority" in list(verify(signed_pack(forged)))


@pytest.mark.parametrize("value", [None, "", [], {}])
async def test_escalation_to_a_value_that_names_nobody_fails(hf: Holdfast, value: Any) -> None:
    queues = await hf.queues()
    await queues.publish("shop", "work", {"a": 1}, id="m1")
    text = one('{id: up, type: queue_escalation, config: {message: m1, assignee: "{{order}}"}}')
    ended = await start(hf, text, {"order": value}, settings=NONE)
    assert ended.status == "failed"
    assert msgspec.json.decode((await queues.get("shop", "work", "m1")).payload) == {"a": 1}


async def test_wait_for_a_message_is_not_answered_by_people(hf: Holdfast) -> None:
    waiting = await start(hf, one("{id: got, type: queue_consume, config: {queue: work}}"), settings=NONE)
    with pytest.raises(InputError, match="waits for a message of shop/work, not for an answer"):
        await answer(hf, waiting, "received")


async def test_escalation_without_a_worker_says_that_one_publishes_the_review(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: start, type: start}
        {id: review, type: hitl_review, config: {queue: reviews, options: [ok]}}
        {id: up, type: queue_escalation, config: {of: review, queue: leads}}
        {id: done, type: end}
        """,
        "start -> review\nstart -> up -> done\nreview:ok -> done",
        HEAD,
    )
    failed = await start(hf, text, {"order": 1}, settings=NONE)
    assert "a worker publishes it" in str(failed.error)
    assert "holdfast worker" in str(failed.error)


@pytest.mark.parametrize("kind", ["hitl_request", "rejected"])
def test_type_of_messages_that_holdfast_makes_is_refused(kind: str) -> None:
    text = one(f"{{id: tell, type: queue_publish, config: {{queue: work, payload: 1, type: {kind}}}}}")
    assert rules(text, settings=NONE) == ["message-type"]


# ------------------------------------------------------------------ events
EVENT = one(
    '{id: paid, type: event, config: {event: payment.received, key: "{{order}}", match: "event.amount > 10 && event.of == order"}}'
)


@pytest.mark.covers("USERS-EVENT-NODE")
async def test_event_node_of_a_document_waits_for_the_event_of_its_key(hf: Holdfast) -> None:
    waiting = await start(hf, EVENT, {"order": "A7"}, settings=NONE)
    queues = await hf.queues()
    for amount, key in ((50, "B8"), (50, None)):
        await queues.send_event("payment.received", {"amount": amount, "of": "A7"}, key=key)
    assert (await resumed(hf, waiting)).status == "pending_input"
    await queues.send_event("payment.received", {"amount": 50, "of": "A7"}, key="A7")
    ended = await resumed(hf, waiting)
    assert ended.status == "completed"
    assert (ended.state["paid"]["key"], ended.state["paid"]["data"]["amount"]) == ("A7", 50)
