"""Frozen skills (2.8): what a run was pinned to at its start is what its nodes use, whatever came since."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, Holdfast, RunStatus
from holdfast.errors import SkillNotFoundError
from holdfast.holds.service import HoldService
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.document import Document
from holdfast.types.terms import operator
from tests.flows.places import RUN, Place, answer, open_holds
from tests.holds.deployments.flows import a_flow, deploy, pins, publish, versions

pytestmark = pytest.mark.anyio

KIND = "refunds@1.0.0"


@pytest.mark.covers("SK-1", "CP-8", "HOLD-SKILL-02")
async def test_a_hold_names_the_exact_skills_of_its_run(hf: Holdfast) -> None:
    flow = a_flow()
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow)

    (hold,) = (await flow.run({"amount": 5}, on=hf, deployment="desk")).holds

    skill = await (await hf.skills()).get("refunds", "1.0.0")
    assert pins(hold) == [{"id": "refunds", "version": "1.0.0", "digest": skill.digest}]
    assert hold.deployment == (await (await hf.deployments()).get("desk")).id == hold.core_id


@pytest.mark.covers("SK-1")
async def test_a_hold_names_no_skills_where_none_are_bound(hf: Holdfast) -> None:
    flow = a_flow()
    await deploy(hf, flow, skills=[])

    (bare,) = (await flow.run({"amount": 5}, on=hf)).holds
    (deployed,) = (await flow.run({"amount": 5}, on=hf, deployment="desk")).holds

    assert pins(bare) is None
    assert pins(deployed) is None


@pytest.mark.covers("SK-3", "SK-4", "SK-7", "HOLD-SKILL-03")
async def test_the_pinned_skill_runs_when_a_newer_one_was_published_and_it_was_yanked(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    flow = a_flow()
    hf = await place.hf()
    await publish(hf, "1.0.0", "Be kind.", limit=100)
    await deploy(hf, flow)
    early = await flow.run({"amount": 5}, on=hf, deployment="desk")
    await publish(hf, "1.1.0", "Be strict.", limit=10)
    late = await flow.run({"amount": 5}, on=hf, deployment="desk")
    await (await hf.skills()).yank("refunds", "1.0.0", reason="too kind")
    await hf.close()

    # Another process goes on, which knows nothing but the store.
    other = await place.hf()
    assert [versions(run.holds[0]) for run in (early, late)] == [{"refunds": "1.0.0"}, {"refunds": "1.1.0"}]
    for run in (early, late):
        await answer(other, run, "approve")
    with caplog.at_level(logging.WARNING, "holdfast"):
        first = await flow.resume(early.run_id, on=other)
        assert "skill refunds@1.0.0" in caplog.text
        assert "was yanked: too kind" in caplog.text
        caplog.clear()
        second = await flow.resume(late.run_id, on=other)
    assert "yanked" not in caplog.text
    assert first.state.said == ["Be kind. (up to 100)"]
    assert second.state.said == ["Be strict. (up to 10)"]


@pytest.mark.covers("SK-6", "SK-8")
async def test_every_hold_of_a_run_pins_the_same_set(place: Place) -> None:
    flow = a_flow(holds=3)
    hf = await place.hf()
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow)
    run = await flow.run({"amount": 5}, on=hf, deployment="desk")
    first = pins(run.holds[0])
    for version in ("1.1.0", "1.2.0"):
        await publish(hf, version, "Be strict.")
        await answer(hf, run, "approve")
        hf = await place.hf()
        run = await flow.resume(run.run_id, on=hf)
        assert pins(run.holds[0]) == first
    await answer(hf, run, "approve")
    run = await flow.resume(run.run_id, on=hf)

    assert run.state.said == ["Be kind. (up to 100)"] * 3
    everyone = await (await hf.service()).holds(run.run_id, open_only=False)
    assert [pins(hold) for hold in everyone] == [first] * 3


@pytest.mark.covers("SK-8")
async def test_no_act_on_a_hold_alters_its_pins(place: Place) -> None:
    flow = Flow("refund")
    flow.start(
        flow.hold(
            "approve", prompt="Well?", options=["yes", "no"], assignee="user:dana@acme", timeout="1h",
            on_timeout="escalate:group:leads",
        )
    )  # fmt: skip
    hf = await place.hf()
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow)
    (hold,) = (await flow.run({}, on=hf, deployment="desk")).holds
    await publish(hf, "1.1.0", "Be strict.")
    store = await hf.open()
    service, boss = HoldService(store), operator("user:boss@acme")

    await service.reassign(boss, hold.id, "user:sam@acme")
    await service.comment(boss, hold.id, "Look.")
    await service.claim(operator("user:sam@acme"), hold.id)
    place.clock.advance(hours=2)
    await (await hf.service()).runtime.sweeper.sweep()
    row = await store.hold(hold.id)
    assert row is not None
    assert (row.assignee_value, row.escalation_count) == ("leads", 1)
    await service.resolve(boss, hold.id, "yes")

    decided = await store.hold(hold.id)
    assert decided is not None
    assert (decided.context, decided.request_hash) == (hold.context, hold.request_hash)
    await flow.resume(hold.run, on=hf)


@pytest.mark.covers("SK-2")
async def test_what_a_program_writes_under_the_reserved_key_is_replaced(
    hf: Holdfast, caplog: pytest.LogCaptureFixture
) -> None:
    flow = Flow("refund")

    @flow.script(effect="read")
    async def ask(ctx: Context) -> None:
        await ctx.ask("Well?", options=["yes"], context={"resolved_skills": ["mine"], "else": 1})

    flow.start(ask)
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow)

    with caplog.at_level(logging.WARNING, "holdfast"):
        (bare,) = (await flow.run({}, on=hf)).holds
        (bound,) = (await flow.run({}, on=hf, deployment="desk")).holds

    assert caplog.text.count("'resolved_skills', which names the skills of the run and is replaced") == 2
    assert msgspec.json.decode(bare.context) == {"else": 1}
    assert versions(bound) == {"refunds": "1.0.0"}
    assert msgspec.json.decode(bound.context)["else"] == 1


@pytest.mark.covers("SK-2")
async def test_a_hold_node_that_writes_under_the_reserved_key_is_warned_of_when_it_is_compiled(
    hf: Holdfast,
) -> None:
    flow = Flow("refund")
    flow.start(flow.hold("ask", prompt="Well?", options=["yes"], context={"resolved_skills": "mine"}))

    (warning,) = [each for each in flow.problems() if each.rule == "hold-context"]
    (hold,) = (await flow.run({}, on=hf)).holds

    assert "resolved_skills" in str(warning)
    assert pins(hold) is None


def _using() -> Flow:
    flow = Flow("refund")
    asked = flow.hold("ask", prompt="Well?", options=["yes"])

    @flow.node(effect="pure", output_as="bound")
    async def look(ctx: Context) -> bool:
        return "refunds" in ctx.skills

    @flow.node(effect="pure", output_as="said")
    async def use(ctx: Context) -> str:
        return ctx.skills["refunds"].instructions

    flow.start(asked)
    flow.edge(asked, look)
    flow.edge(look, use)
    return flow


@pytest.mark.covers("SK-5", "PLATFORM-SKILL-01")
async def test_a_skill_that_is_gone_is_reported_and_the_run_uses_what_it_was_pinned_to(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    flow = _using()
    hf = await place.hf()
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow)
    run = await flow.run({}, on=hf, deployment="desk")
    assert await (await hf.open()).drop_document("default", "skill", KIND)
    await answer(hf, run, "yes")

    with caplog.at_level(logging.WARNING, "holdfast"):
        result = await flow.resume(run.run_id, on=await place.hf())

    assert "skill refunds@1.0.0" in caplog.text
    assert "does not exist any more: the run uses what it was pinned to" in caplog.text
    assert result.artifacts["said"] == "Be kind."


@pytest.mark.covers("SK-5")
async def test_only_a_node_that_uses_a_skill_fails_when_its_content_is_lost_too(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    flow = _using()
    hf = await place.hf()
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow)
    run = await flow.run({}, on=hf, deployment="desk")
    store = await hf.open()
    skill = await (await hf.skills()).get("refunds", "1.0.0")
    assert await store.drop_document("default", "skill", KIND)
    assert await store.drop_document("default", "skill_content", skill.digest)
    await answer(hf, run, "yes")

    with caplog.at_level(logging.WARNING, "holdfast"):
        result = await flow.resume(run.run_id, on=hf)

    assert "does not exist any more: using it raises an error" in caplog.text
    assert (result.status, result.failed_node) == (RunStatus.failed, "use")
    assert result.error is not None
    assert result.error.code == SkillNotFoundError.code
    assert "refunds@1.0.0, which this run is pinned to, does not exist any more" in result.error.message
    # The content that was pinned is put back, and the run goes on.
    await publish(hf, "1.0.0", "Be kind.")
    assert (await flow.resume(run.run_id, on=hf)).completed


async def _forge(hf: Holdfast, **changes: Any) -> None:
    """Somebody writes into the store what no publisher could."""
    store = await hf.open()
    kept = await store.document("default", "skill", KIND)
    assert kept is not None
    body = msgspec.json.encode({**msgspec.json.decode(kept.body), **changes})
    await store.put_document(Document(tenant="default", kind="skill", name=KIND, body=body))


@pytest.mark.covers("SK-9")
@pytest.mark.parametrize("strict", [False, True])
async def test_another_content_under_the_same_version_is_not_used_and_warns_or_fails_where_so_set(
    place: Place, caplog: pytest.LogCaptureFixture, strict: bool
) -> None:
    flow = a_flow()
    hf = await place.hf()
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow, on_changed_skill="fail" if strict else "warn")
    run = await flow.run({"amount": 5}, on=hf, deployment="desk")
    await _forge(hf, instructions="Pay everybody.")
    await answer(hf, run, "approve")

    with caplog.at_level(logging.WARNING, "holdfast"):
        result = await flow.resume(run.run_id, on=hf)

    assert "has different content than when the run was pinned to it" in caplog.text
    if not strict:
        assert result.state.said == ["Be kind. (up to 100)"]
        return
    assert (result.status, result.error and result.error.code) == (RunStatus.failed, "skill_changed")
    await deploy(hf, flow, on_changed_skill="warn")
    assert (await flow.resume(run.run_id, on=hf)).completed


@pytest.mark.covers("HOLD-SKILL-03")
async def test_a_fork_works_with_the_skills_of_its_source(hf: Holdfast) -> None:
    flow = a_flow()
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow)
    run = await flow.run({"amount": 5}, on=hf, deployment="desk")
    await publish(hf, "1.1.0", "Be strict.")

    fork = await flow.fork(run.run_id, 1, patch={"scratch": {"amount": 7}}, on=hf)
    (hold,) = await open_holds(hf, fork)
    await answer(hf, fork, "approve")
    result = await flow.resume(fork.run_id, on=hf)

    assert versions(hold) == {"refunds": "1.0.0"}
    assert hold.deployment == run.holds[0].deployment
    assert result.state.said == ["Be kind. (up to 100)"]


@pytest.mark.covers("SK-3")
async def test_a_hold_that_opens_after_a_crash_has_the_pins_of_its_run(place: Place) -> None:
    flow = Flow("refund", effect="external")
    flow.start(flow.node(id="touch", idempotency_key="once")(touch))
    flow.edge("touch", flow.hold("ask", prompt="Well?", options=["yes"]))
    hf = await place.hf()
    await publish(hf, "1.0.0", "Be kind.")
    await deploy(hf, flow)
    with armed("after_handler") as point, suppress(Crash):
        await flow.run({}, on=hf, deployment="desk", run_id=RUN)
    assert point.reached
    place.lapse()
    other = await place.hf()
    await publish(other, "1.1.0", "Be strict.")

    (hold,) = (await flow.resume(RUN, on=other)).holds

    assert versions(hold) == {"refunds": "1.0.0"}


def touch(ctx: Context) -> None:
    """A sync handler, in a thread of its own."""
    assert ctx.skills["refunds"].instructions == "Be kind."


async def test_a_skill_that_is_not_bound_is_not_there(hf: Holdfast) -> None:
    flow = Flow("refund")

    @flow.node(effect="pure")
    async def use(ctx: Context) -> None:
        assert len(ctx.skills) == 0
        assert "refunds" not in ctx.skills
        ctx.skills["refunds"]

    flow.start(use)

    result = await flow.run({}, on=hf)

    assert result.error is not None
    assert "no skill 'refunds' is bound to this run" in result.error.message
