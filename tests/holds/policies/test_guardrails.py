"""The guardrail veto: a yes that no person said, or nobody should say, becomes a no (specs 42 to 44)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Actor, Flow, Holdfast, Judgement, RunStatus, StaticKeys
from holdfast.checkpoint.keys import new_scope, with_scope
from holdfast.errors import VetoedError
from holdfast.holds.policies.guardrails import Guardrails
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.rules import Rule
from holdfast.model.guardrails import Violation
from holdfast.testing.clock import FakeClock
from holdfast.types.status import HoldStatus
from tests.flows.places import told
from tests.holds.policies.conftest import MakeHoldfast
from tests.holds.policies.flows import actions, decide, given, hold_of, refund, said

pytestmark = pytest.mark.anyio

ACCEPT = Policy("p", Rule(name="r", decide="approve"))
SECRET = "my card is 4111 1111 1111 1111"


class Rail:
    """A check that remembers what it was asked."""

    def __init__(self, objection: Any = None) -> None:
        self.objection = objection
        self.asked: list[Any] = []

    def __call__(self, facts: Any) -> Any:
        self.asked.append(facts)
        if isinstance(self.objection, Exception):
            raise self.objection
        return self.objection


@pytest.mark.covers("G-44", "HOLD-POL-03", "G-42")
async def test_an_automatic_approval_is_vetoed_by_default(make_hf: MakeHoldfast) -> None:
    hf = await make_hf(policies=ACCEPT)
    result = await refund().run(given(7, note=SECRET), on=hf)
    assert result.state["paid"] is False
    kept = await said(hf, result)
    assert (kept["decision"], kept["effective_decision"]) == ("approve", "reject")
    assert kept["decided_by"] == "guardrail-override"
    assert kept["veto"]["guardrail"] == "pii-redaction"
    assert kept["veto"]["reason"] == "Guardrail override: pii-redaction: it shows a card number"
    (event,) = await told(hf, result, "hold.vetoed")
    assert event.data["reason"] == kept["veto"]["reason"]
    assert (event.data["decision"], event.data["effective_decision"]) == ("approve", "reject")
    (resolved,) = await told(hf, result, "hold.resolved")
    assert resolved.data["decision"] == "reject"
    row = await hold_of(hf, result.run_id)
    assert await actions(hf, row.id) == ["created", "resolved", "vetoed"]
    # What nothing is wrong with passes.
    assert (await refund().run(given(7), on=hf)).state["paid"] is True


@pytest.mark.covers("G-44", "HOLD-POL-03")
async def test_a_judges_approval_passes_the_veto_too(make_hf: MakeHoldfast) -> None:
    rail = Rail(Violation("not today"))
    policy = Policy("p", Rule(name="r", judge="j"), judges={"j": lambda _: True})
    hf = await make_hf(policies=policy, guardrails=Guardrails({"own": rail}))
    result = await refund().run(given(7), on=hf)
    assert (await said(hf, result))["decided_by"] == "guardrail-override"
    assert rail.asked[0]["decision"] == "approve"
    assert rail.asked[0]["context"]["amount"] == 7


@pytest.mark.covers("G-44")
async def test_a_refusal_needs_no_guardrail(make_hf: MakeHoldfast) -> None:
    rail = Rail(False)
    policy = Policy("p", Rule(name="r", decide="reject"))
    hf = await make_hf(policies=policy, guardrails=Guardrails({"own": rail}))
    assert (await said(hf, await refund().run(given(7), on=hf)))["decided_by"] == "auto-reject"
    assert rail.asked == []


@pytest.mark.covers("G-44")
@pytest.mark.parametrize("by", ["rule", "hold"])
async def test_guardrails_are_not_asked_where_they_are_switched_off(make_hf: MakeHoldfast, by: str) -> None:
    rail = Rail(False)
    policy = Policy("p", Rule(name="r", decide="approve", guarded=by != "rule"))
    hf = await make_hf(policies=policy, guardrails=Guardrails({"own": rail}))
    flow = refund(guarded=False) if by == "hold" else refund()
    assert (await flow.run(given(7), on=hf)).state["paid"] is True
    assert rail.asked == []


@pytest.mark.covers("G-44")
@pytest.mark.parametrize("required", [False, True])
async def test_without_any_guardrail_it_passes_unless_one_is_required(
    make_hf: MakeHoldfast, required: bool
) -> None:
    hf = await make_hf(policies=ACCEPT, guardrails=Guardrails({}, required=required))
    assert (await refund().run(given(7), on=hf)).state["paid"] is not required


@pytest.mark.covers("G-44")
async def test_the_holds_own_guardrails_are_asked_in_order_until_one_objects(make_hf: MakeHoldfast) -> None:
    first, second, third = Rail(), Rail("no"), Rail()
    rails = Guardrails({"first": first, "second": second, "third": third, "other": Rail(False)})
    hf = await make_hf(policies=ACCEPT, guardrails=rails)
    result = await refund(guardrails=["first", "second", "third"]).run(given(7), on=hf)
    assert (await said(hf, result))["veto"]["guardrail"] == "second"
    assert [len(rail.asked) for rail in (first, second, third)] == [1, 1, 0]


@pytest.mark.covers("G-44", "HOLD-POL-03")
@pytest.mark.parametrize("trouble", ["raises", "unknown"])
async def test_a_guardrail_that_cannot_be_asked_has_not_passed(make_hf: MakeHoldfast, trouble: str) -> None:
    rails = Guardrails({"own": Rail(RuntimeError("down"))} if trouble == "raises" else {"x": Rail()})
    hf = await make_hf(policies=ACCEPT, guardrails=rails)
    result = await refund(guardrails=["own"]).run(given(7), on=hf)
    assert result.state["paid"] is False


@pytest.mark.covers("G-44")
async def test_an_async_guardrail_is_awaited(make_hf: MakeHoldfast) -> None:
    async def own(_facts: Any) -> Violation:
        return Violation("no")

    hf = await make_hf(policies=ACCEPT, guardrails=Guardrails({"own": own}))
    assert (await refund().run(given(7), on=hf)).state["paid"] is False


@pytest.mark.covers("G-44")
@pytest.mark.parametrize("people", [False, True])
async def test_guardrails_watch_over_people_where_that_is_wanted(make_hf: MakeHoldfast, people: bool) -> None:
    hf = await make_hf(guardrails=Guardrails({"own": Rail("no")}, people=people))
    result = await refund().run(given(7), on=hf)
    row = await decide(hf, result.holds[0].id, "approve")
    assert row.resolved_by == "user:dana"
    assert (await refund().resume(result.run_id, on=hf)).state["paid"] is not people
    # What they said stays on record.
    assert (await said(hf, result))["decision"] == "approve"
    assert len(await told(hf, result, "hold.vetoed")) == int(people)


@pytest.mark.covers("G-44")
async def test_guardrails_look_at_what_several_people_agreed_on(make_hf: MakeHoldfast) -> None:
    rail = Rail("no")
    hf = await make_hf(guardrails=Guardrails({"own": rail}, people=True))
    quorum = {"mode": "quorum", "need": 2, "of": ["user:dana", "user:sam"]}
    result = await refund(approval=quorum).run(given(7), on=hf)
    service = await hf.holds()
    for who in ("user:dana", "user:sam"):
        assert rail.asked == []
        await service.resolve(Actor(id=who), result.holds[0].id, decision="approve")
    done = await refund(approval=quorum).resume(result.run_id, on=hf)
    assert done.state["paid"] is False
    assert len(await told(hf, result, "hold.vetoed")) == 1
    assert (await actions(hf, result.holds[0].id)).count("voted") == 2


@pytest.mark.covers("G-44")
async def test_guardrails_leave_the_engines_own_questions_alone(make_hf: MakeHoldfast) -> None:
    flow = Flow("doubtful")

    @flow.node(effect="external")
    async def send() -> dict[str, Any]:
        raise ConnectionError("was it sent?")

    rail = Rail("no")
    hf = await make_hf(guardrails=Guardrails({"own": rail}, people=True))
    result = await flow.run({}, on=hf)
    await decide(hf, result.holds[0].id, "happened")
    assert (await flow.resume(result.run_id, on=hf)).completed
    assert rail.asked == []


@pytest.mark.covers("G-44")
async def test_a_vetoed_hold_that_offers_no_refusal_stays_open(make_hf: MakeHoldfast) -> None:
    flow = refund(options=["approve", "later"])
    hf = await make_hf(policies=ACCEPT, guardrails=Guardrails({"own": Rail("no")}, people=True))
    result = await flow.run(given(7), on=hf)
    assert result.status is RunStatus.pending_input
    assert "left_to_people" in await actions(hf, result.holds[0].id)
    with pytest.raises(VetoedError, match="own: no"):
        await decide(hf, result.holds[0].id, "approve")
    assert (await hold_of(hf, result.run_id)).status is HoldStatus.pending
    assert (await decide(hf, result.holds[0].id, "later")).status is HoldStatus.resolved


# ---------------------------------------------------------------------- deadlines


async def passes(hf: Any, clock: FakeClock, result: Any, flow: Any) -> Any:
    """In another process than the one that asked."""
    clock.advance(hours=2)
    await (await hf.service()).runtime.sweeper.sweep()
    return await flow.resume(result.run_id, on=hf)


@pytest.mark.covers("G-43", "G-42")
@pytest.mark.parametrize(("says", "paid"), [("approve", True), ("reject", False)])
async def test_a_deadline_accepts_or_rejects_after_a_restart(
    make_hf: MakeHoldfast, clock: FakeClock, says: str, paid: bool
) -> None:
    flow = refund(timeout="1h", on_timeout="default", default_option=says)
    result = await flow.run(given(7), on=await make_hf())
    assert result.status is RunStatus.pending_input
    fresh = await make_hf()
    done = await passes(fresh, clock, result, flow)
    assert done.state["paid"] is paid
    kept = await said(fresh, result)
    assert kept["decided_by"] == ("timeout-accept" if paid else "timeout-reject")
    assert (kept["decision"], kept["effective_decision"], kept["auto_expired"]) == ("default", says, True)


@pytest.mark.covers("G-43")
async def test_a_deadline_that_fails_is_an_error(make_hf: MakeHoldfast, clock: FakeClock) -> None:
    flow = refund(timeout="1h", on_timeout="fail")
    result = await flow.run(given(7), on=await make_hf())
    done = await passes(await make_hf(), clock, result, flow)
    assert done.status is RunStatus.failed
    assert done.error.code == "hold_expired"


@pytest.mark.covers("G-43")
@pytest.mark.parametrize(("says", "paid"), [("accept", True), ("reject", False)])
async def test_a_rules_deadline_says_it_in_the_holds_own_word(
    make_hf: MakeHoldfast, clock: FakeClock, says: str, paid: bool
) -> None:
    flow = refund()
    hf = await make_hf(policies=Policy("p", Rule(name="r", timeout="1h", on_timeout=says)))
    result = await flow.run(given(7), on=hf)
    assert (await passes(hf, clock, result, flow)).state["paid"] is paid


@pytest.mark.covers("G-43")
@pytest.mark.parametrize("marked", ["approve", "reject"])
async def test_silence_decides_nothing_where_rule_and_flow_differ_about_it(
    make_hf: MakeHoldfast, clock: FakeClock, marked: str
) -> None:
    options = [{"id": each, "label": each, "default": each == marked} for each in ("approve", "reject")]
    flow = refund(options=options)
    hf = await make_hf(policies=Policy("p", Rule(name="r", timeout="1h", on_timeout="reject")))
    done = await passes(hf, clock, await flow.run(given(7), on=hf), flow)
    if marked == "reject":
        assert done.state["paid"] is False
    else:
        assert done.status is RunStatus.failed
        assert done.error.code == "hold_expired"


@pytest.mark.covers("G-43", "G-44", "HOLD-POL-03")
async def test_an_approval_by_deadline_passes_the_veto(make_hf: MakeHoldfast, clock: FakeClock) -> None:
    flow = refund(timeout="1h", on_timeout="default", default_option="approve")
    hf = await make_hf(guardrails=Guardrails({"own": Rail("no")}))
    result = await flow.run(given(7), on=hf)
    assert (await passes(hf, clock, result, flow)).state["paid"] is False
    kept = await said(hf, result)
    assert (kept["decided_by"], kept["effective_decision"]) == ("guardrail-override", "reject")
    assert len(await told(hf, result, "hold.vetoed")) == 1


@pytest.mark.covers("G-43", "G-44")
async def test_a_vetoed_deadline_without_a_refusal_expires(make_hf: MakeHoldfast, clock: FakeClock) -> None:
    flow = refund(options=["approve", "later"], timeout="1h", on_timeout="default", default_option="approve")
    hf = await make_hf(guardrails=Guardrails({"own": Rail("no")}))
    result = await flow.run(given(7), on=hf)
    done = await passes(hf, clock, result, flow)
    assert done.status is RunStatus.failed
    assert (await hold_of(hf, result.run_id)).status is HoldStatus.expired


@pytest.mark.covers("G-43", "G-42")
async def test_a_judge_that_hangs_does_not_hold_up_the_deadline(
    make_hf: MakeHoldfast, clock: FakeClock
) -> None:
    import asyncio

    async def hangs(_facts: Any) -> Any:
        await asyncio.sleep(60)

    rule = Rule(name="r", judge="j", judge_timeout=0.05, timeout="1h", on_timeout="accept")
    hf = await make_hf(policies=Policy("p", rule, judges={"j": hangs}))
    result = await refund().run(given(7), on=hf)
    assert (await passes(hf, clock, result, refund())).state["paid"] is True
    assert (await said(hf, result))["decided_by"] == "timeout-accept"


@pytest.mark.covers("G-44")
async def test_what_judges_and_guardrails_say_is_encrypted_with_the_rest(tmp_path: Path) -> None:
    canary = "sesame-4711"
    rails = Guardrails({"own": lambda facts: facts["decision"] == "x" or f"no {facts['context']['note']}"})
    policy = Policy("p", Rule(name="r", judge="j"), judges={"j": lambda _: Judgement("approve", 1, canary)})
    keys = StaticKeys(with_scope(None, "*", new_scope(datetime.now(UTC))))
    async with Holdfast(f"sqlite:{tmp_path / 'e.db'}", keys=keys, policies=policy, guardrails=rails) as hf:
        result = await refund().run(given(7, note=canary), on=hf)
        kept = await said(hf, result)
        assert (kept["comment"], kept["veto"]["guardrail"]) == (canary, "own")
        (event,) = await told(hf, result, "hold.vetoed")
        assert canary in event.data["reason"]
    assert not on_disk(tmp_path, canary)


def on_disk(folder: Path, text: str) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if text.encode() in file.read_bytes()]
