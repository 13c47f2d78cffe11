"""What a flow says about a hold: what reaches the row, and what is refused before anything runs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, FlowInvalidError, RunStatus
from holdfast.types.hold import Option
from holdfast.types.terms import ApprovalTerms, Rung
from tests.flows.places import Place

pytestmark = pytest.mark.anyio

OPTIONS = ["approve", {"id": "reject", "label": "Reject", "variant": "danger", "requires_comment": True}]


def asking(**manner: Any) -> Flow:
    flow = Flow("asking", effect="pure")
    manner.setdefault("prompt", "Pay?")
    flow.hold("gate", **manner)
    return flow


def inside(**manner: Any) -> Flow:
    flow = Flow("inside")

    @flow.script
    async def work(ctx: Context) -> dict[str, Any]:
        reply = await ctx.ask("Pay?", **manner)
        return {"said": reply.decision}

    return flow


@pytest.mark.covers("CP-4", "CP-5", "CP-6", "CP-8", "CP-10", "CP-13")
async def test_a_row_has_the_usual_values_when_a_flow_says_nothing(place: Place) -> None:
    (hold,) = (await asking(prompt="", options=["a", {"id": "b"}]).run(on=await place.hf())).holds
    assert (hold.type, hold.prompt, hold.priority) == ("approval", "", "normal")
    assert hold.options == (Option("a", "a", "secondary"), Option("b", "b", "secondary"))
    assert (hold.context, hold.tags, hold.block) == (b"{}", (), 0)
    assert (hold.expires_at, hold.expiry_action, hold.escalation_target) == (None, None, None)
    assert (hold.notification_sent, hold.reminder_count, hold.reminder_interval) == (False, 0, None)
    assert (hold.assignee_type, hold.resolution, hold.resumed_at) == ("unrouted", None, None)


@pytest.mark.covers("CP-4")
async def test_a_type_of_the_programs_own_is_kept_when_nobody_knows_it(place: Place) -> None:
    (hold,) = (await asking(type="moon_phase").run(on=await place.hf())).holds
    assert (hold.type, hold.options) == ("moon_phase", None)


TERMS: dict[str, Any] = {
    "assignee": "group:finance",
    "timeout": "2h",
    "on_timeout": "default_option",
    "ladder": [("2h", "role:lead"), {"after": "1d", "to": "role:cfo"}, Rung("role:ceo")],
    "reminder": "90m",
    "max_reminders": 4,
    "default_option": "reject",
    "approval": {"mode": "quorum", "need": 2, "of": ["group:finance"], "exclude": ["initiator"]},
    "tags": ["money", "eu"],
    "strict_assignee": True,
    "late_resolution": "reject",
    "on_cancel": "raise",
    "bulk": False,
    "undo": "8s",
    "links": "view_only",
    "allow_services": True,
    "excluded": ["user:mallory"],
    "priority": "critical",
}


@pytest.mark.covers("CP-6", "CP-11", "CP-12", "CP-13")
@pytest.mark.parametrize("make", [asking, inside])
async def test_every_term_reaches_the_row_when_a_flow_or_a_handler_asks(place: Place, make: Any) -> None:
    result = await make(options=OPTIONS, **TERMS).run(on=await place.hf())
    (hold,) = result.holds
    terms = hold.terms
    assert (hold.assignee, hold.assignee_type, hold.assignee_value) == ("group:finance", "group", "finance")
    assert (hold.priority, hold.tags, hold.reminder_interval) == ("critical", ("money", "eu"), 90)
    assert hold.options is not None
    assert hold.options[1] == Option("reject", "Reject", "danger", requires_comment=True)
    assert (hold.expiry_action, hold.escalation_target) == ("escalate", "role:lead")
    assert terms.ladder == (Rung("role:lead", "2h"), Rung("role:cfo", "1d"), Rung("role:ceo"))
    assert (terms.final_action, terms.default_option) == ("default_option", "reject")
    exclude = ApprovalTerms(mode="quorum", need=2, of=("group:finance",), exclude=("initiator",))
    assert terms.approval == exclude
    assert (terms.strict_assignee, terms.late_resolution, terms.on_cancel) == (True, "reject", "raise")
    assert (terms.bulk, terms.undo, terms.links, terms.allow_services) == (False, 8, "view_only", True)
    assert (terms.max_reminders, terms.excluded) == (4, ("user:mallory",))
    assert hold.expires_at == hold.created_at + 2 * 3600 * 1_000_000
    assert hold.remind_at == hold.created_at + 90 * 60 * 1_000_000


async def test_a_fork_asks_on_the_same_terms_when_the_question_is_a_handlers(place: Place) -> None:
    hf = await place.hf()
    flow = inside(options=OPTIONS, **TERMS)
    result = await flow.run(on=hf)
    forked = await flow.fork(result.holds[0].id, on=hf)
    before, after = result.holds[0], forked.holds[0]
    assert after.id != before.id
    same = ("options", "assignee", "tags", "reminder_interval", "terms", "expiry_action", "priority")
    assert [getattr(after, name) for name in same] == [getattr(before, name) for name in same]


@pytest.mark.parametrize(
    ("manner", "said"),
    [
        ({"options": ["a", "a"]}, "2 options have the id 'a'"),
        ({"options": [""]}, "empty id"),
        ({"options": [{"id": "a", "default": "yes"}]}, "not True or False"),
        ({"options": ["a"], "default_option": "b", "timeout": 5, "on_timeout": "default"}, "not one of a"),
        ({"priority": "urgent"}, "'urgent' is not one of low, normal, high, critical"),
        ({"timeout": 5, "on_timeout": "escalate"}, "escalation has no target"),
        ({"timeout": 5, "on_timeout": {"action": "escalate"}}, "escalation has no target"),
        ({"timeout": 5, "on_timeout": "approve"}, "not one of cancel"),
        ({"timeout": 5, "on_timeout": "branch:nowhere"}, "which does not exist"),
        ({"timeout": 0}, "it is zero"),
        ({"timeout": -5}, "negative"),
        ({"timeout": "soon"}, "not a duration"),
        ({"timeout": "4bx"}, "not a duration"),
        ({"reminder": 0}, "zero"),
        ({"reminder": "30s"}, "shorter than a minute"),
        ({"assignee": "user:a\nb"}, "invisible character"),
        ({"assignee": "user:{{who"}, "never closed"),
        ({"ladder": [("4h", "")]}, "it is empty"),
        ({"ladder": [("later", "role:x")]}, "not a duration"),
        ({"ladder": ["role:x"]}, "not (after, to)"),
        ({"ladder": [Rung("role:x")]}, "has no duration"),
        ({"approval": {"mode": "most"}}, "not one of any, quorum, sequential"),
        ({"approval": {"mode": "quorum", "need": 3, "of": ["user:a", "user:b"]}}, "has only 2 entries"),
        ({"approval": {"mode": "sequential"}}, "`of` is empty"),
        ({"approval": {"quorum": 2}}, "it has no quorum"),
        ({"late_resolution": "maybe"}, "not one of accept, reject"),
        ({"on_cancel": "ignore"}, "not one of cancel, raise"),
        ({"final_action": "approve", "timeout": 5, "on_timeout": "escalate:role:x"}, "not one of cancel"),
        ({"max_reminders": 0}, "of 1 or more"),
        ({"tags": "money"}, "not a list of texts"),
        ({"into": "decision"}, "stored in 'decision', in place of its decision"),
        ({"into": "decision_result"}, "in place of its decision"),
    ],
)
@pytest.mark.covers("CP-6", "CP-10", "CP-12", "CP-13", "HOLD-BAD-02")
def test_a_slip_is_a_compile_error_that_names_the_hold(manner: dict[str, Any], said: str) -> None:
    with pytest.raises(FlowInvalidError) as caught:
        asking(**manner).program()
    assert said in str(caught.value)
    assert "node 'gate'" in str(caught.value)


@pytest.mark.parametrize(
    "manner",
    [
        {"options": ["a", "a"]},
        {"priority": "urgent"},
        {"timeout": 5, "on_timeout": "escalate"},
        {"timeout": 5, "on_timeout": "branch:work"},
        {"timeout": 0},
        {"reminder": "1s"},
        {"assignee": "user:a\nb"},
        {"options": ["a"], "default_option": "b"},
    ],
)
@pytest.mark.covers("CP-6", "CP-10", "CP-12", "CP-13", "HOLD-BAD-02")
async def test_a_slip_fails_the_node_and_asks_nobody_when_a_handler_makes_it(
    place: Place, manner: dict[str, Any]
) -> None:
    hf = await place.hf()
    result = await inside(**manner).run(on=hf)
    assert (result.status, result.failed_node) == (RunStatus.failed, "work")
    assert not await (await hf.open()).holds()


@pytest.mark.covers("HOLD-BAD-02")
@pytest.mark.parametrize(
    ("manner", "given", "said"),
    [
        ({"timeout": "{{hours}}h"}, {"hours": 0}, "its timeout '{{hours}}h'"),
        ({"timeout": "{{hours}}h"}, {"hours": "many"}, "its timeout '{{hours}}h'"),
        ({"timeout": "{{hours}}h"}, {}, "{{hours}}"),
        ({"assignee": "user:{{who}}"}, {}, "{{who}}"),
        ({"assignee": "user:{{who}}"}, {"who": "a\r\nBcc: b"}, "its assignee 'user:{{who}}'"),
        ({"timeout": 5, "on_timeout": "escalate:{{who}}"}, {}, "{{who}}"),
    ],
)
async def test_a_question_that_cannot_be_put_fails_its_node_and_names_the_expression(
    place: Place, manner: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    hf = await place.hf()
    result = await asking(**manner).run(given, on=hf)
    assert (result.status, result.failed_node) == (RunStatus.failed, "gate")
    assert result.error is not None
    assert result.error.code == "expression_invalid"
    assert said in result.error.message
    assert not await (await hf.open()).holds()


@pytest.mark.covers("CP-11")
async def test_timeout_and_people_are_known_when_the_question_is_asked(place: Place) -> None:
    flow = asking(
        timeout="{{hours}}h", assignee="user:{{who}}", on_timeout="escalate:user:{{boss}}", options=["a"]
    )
    given = {"hours": 3, "who": "Dana@Acme.example", "boss": "sam"}
    (hold,) = (await flow.run(given, on=await place.hf())).holds
    assert hold.expires_at == hold.created_at + 3 * 3600 * 1_000_000
    assert (hold.assignee, hold.assignee_value) == ("user:Dana@Acme.example", "dana@acme.example")
    assert (hold.expiry_action, hold.escalation_target) == ("escalate", "user:sam")


@pytest.mark.parametrize(
    ("manner", "rule"),
    [
        ({"on_timeout": "cancel"}, "no-timeout"),
        ({"timeout": 5, "on_timeout": "default"}, "default-option"),
        (
            {"timeout": 5, "on_timeout": "default", "options": [{"id": "approve", "default": True}]},
            "approving-default",
        ),
        (
            {"ladder": [("1h", "role:x")], "final_action": "default_option", "default_option": "yes"},
            "approving-default",
        ),
    ],
)
@pytest.mark.covers("EX-5", "HOLD-BAD-03")
def test_what_may_surprise_is_a_warning_when_the_flow_is_compiled(manner: dict[str, Any], rule: str) -> None:
    flow = asking(**manner)
    found = [problem.rule for problem in flow.problems() if problem.severity == "warning"]
    assert found == [rule]


def test_the_version_of_a_flow_stays_what_it_was_when_a_hold_uses_nothing_new() -> None:
    spec = asking(options=["a"], timeout=5, on_timeout="fail").program().graph.spec
    (node,) = spec.nodes
    said = msgspec.to_builtins(node.hold)
    assert not {"wait", "reminder", "tags", "terms"} & said.keys()
    assert said["options"] == ({"id": "a", "label": "a", "variant": "secondary"},)
