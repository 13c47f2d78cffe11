"""Deciding a hold: the two bodies, what fits, who was first, and the same again."""

from __future__ import annotations

from threading import current_thread, main_thread
from typing import Any

import msgspec
import pytest

from holdfast.errors import (
    AnswerInvalidError,
    ContentChangedError,
    DeadlinePassedError,
    HoldChangedError,
    HoldDecidedError,
    HoldNotFoundError,
    HoldReassignedError,
    KeyReusedError,
    NotAssignedError,
    ValueTooLargeError,
)
from holdfast.holds.actions import submission
from holdfast.holds.forms.json_schema import problems_in
from holdfast.types.status import HoldStatus
from tests.holds.actions.scene import ADMIN, BOSS, CLERK, DANA, FINN, FOREIGN, SAM, Scene, data, said

pytestmark = pytest.mark.anyio

BODIES: list[dict[str, Any]] = [
    {"decision": "approve", "comment": "Within limits."},
    {"resolution": "approve", "comment": "Within limits."},
    {"decision": "approve", "resolution": "approve", "comment": "Within limits."},
    {"resolution": {"decision": "approve", "comment": "Within limits."}},
]


@pytest.mark.covers("RS-1", "RS-2", "HOLD-LIFE-01")
@pytest.mark.parametrize("body", BODIES, ids=["decision", "resolution", "both", "object"])
async def test_each_body_decides_row_audit_and_run_together(scene: Scene, body: dict[str, Any]) -> None:
    row = await scene.asks()
    scene.clock.advance(seconds=60)
    done = (await scene.holds.resolve(DANA, row.id, body)).row
    assert (done.status, done.resolved_by, done.resolved_at) == (
        HoldStatus.resolved,
        "user:dana@acme",
        scene.clock.now(),
    )
    kept = said(done)
    assert (kept["decision"], kept["comment"], kept["late"], kept["auto_expired"]) == (
        "approve",
        "Within limits.",
        False,
        False,
    )
    assert (kept["authority"], kept["channel"], kept["auth_method"]) == ("assignee", "inbox", "session")
    (entry,) = await scene.audit(row, "resolved")
    assert data(entry)["decision"] == "approve"
    assert "hold.closed" in await scene.topics(row)
    result = await scene.goes_on(row)
    assert result.completed
    assert result.state["decision"] == "approve"


@pytest.mark.covers("RS-1", "HOLD-BAD-01", "HOLD-BAD-03")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"comment": "approve"},
        {"decision": "approve", "resolution": "reject"},
        {"resolution": {"decision": "approve"}, "decision": "reject"},
        {"resolution": {}},
        {"decison": "approve"},
        {"decision": True},
        {"decision": ["approve"]},
        {"decision": "Approve"},
        {"decision": " approve"},
        {"decision": ""},
        {"decision": "approve", "approved": True},
    ],
    ids=str,
)
async def test_nothing_is_taken_for_an_approval_when_a_body_does_not_say_one(
    scene: Scene, body: dict[str, Any]
) -> None:
    row = await scene.asks()
    with pytest.raises(AnswerInvalidError) as caught:
        await scene.holds.resolve(DANA, row.id, body)
    assert caught.value.status == 422
    assert await scene.row(row.id) == row
    assert len(await scene.audit(row, "refused")) == 1
    with pytest.raises(HoldNotFoundError):
        await scene.holds.resolve(FOREIGN, row.id, body)


@pytest.mark.covers("RS-3", "HOLD-BAD-03")
async def test_a_decision_is_any_text_of_some_length_when_there_are_no_options(scene: Scene) -> None:
    row = await scene.asks(options=None)
    for wrong in ("", "   ", "x" * 201):
        with pytest.raises(AnswerInvalidError):
            await scene.holds.resolve(DANA, row.id, decision=wrong)
    assert (await scene.holds.resolve(DANA, row.id, decision="x" * 200)).row.status is HoldStatus.resolved


@pytest.mark.covers("RS-3")
async def test_a_refusal_lists_the_options(scene: Scene) -> None:
    row = await scene.asks()
    with pytest.raises(AnswerInvalidError, match="approve, reject") as caught:
        await scene.holds.resolve(DANA, row.id, "aprove")
    assert caught.value.facts["options"] == ["approve", "reject"]


@pytest.mark.covers("RS-4")
async def test_large_answer_is_compared_with_its_schema_beside_the_event_loop(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[bool] = []

    def compared(value: Any, schema: Any) -> list[str]:
        used.append(current_thread() is main_thread())
        return problems_in(value, schema)

    monkeypatch.setattr(submission, "problems_in", compared)
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": {"type": "number"}}}}
    for rows in ([1], list(range(2_000))):
        row = await scene.asks(schema=schema)
        done = await scene.holds.resolve(
            DANA, row.id, {"decision": "approve", "response_data": {"rows": rows}}
        )
        assert said(done.row)["response_data"] == {"rows": rows}
    assert used == [True, False]


@pytest.mark.covers("RS-4", "HOLD-LIFE-05", "HOLD-SEC-15")
async def test_an_answer_that_does_not_fit_leaves_the_hold_open_and_is_kept_as_a_draft(scene: Scene) -> None:
    schema = {"type": "object", "properties": {"amount": {"type": "number"}}, "required": ["amount"]}
    row = await scene.asks(schema=schema)
    body = {"decision": "approve", "response_data": {"amount": "many"}, "comment": "fine"}
    with pytest.raises(AnswerInvalidError, match="amount") as caught:
        await scene.holds.resolve(DANA, row.id, body)
    assert (caught.value.status, caught.value.facts["your_draft_saved"]) == (422, True)
    assert await scene.row(row.id) == row
    draft = await scene.holds.draft(DANA, row.id)
    assert draft is not None
    assert (draft.decision, draft.response_data, draft.comment) == ("approve", {"amount": "many"}, "fine")
    assert await scene.holds.draft(SAM, row.id) is None
    (refused,) = await scene.audit(row, "refused")
    assert data(refused) == {"action": "resolve", "code": "answer_invalid", "status": 422}
    done = await scene.holds.resolve(DANA, row.id, {**body, "response_data": {"amount": 5}})
    assert said(done.row)["response_data"] == {"amount": 5}
    assert await scene.holds.draft(DANA, row.id) is None


@pytest.mark.covers("RS-4")
async def test_any_object_is_taken_as_data_when_nothing_is_asked_for(scene: Scene) -> None:
    row = await scene.asks()
    body = {"decision": "approve", "response_data": {"amount_approved": 500}}
    assert said((await scene.holds.resolve(DANA, row.id, body)).row)["response_data"] == {
        "amount_approved": 500
    }


@pytest.mark.covers("HOLD-SEC-15", "RS-9")
async def test_what_is_too_large_or_too_deep_is_refused_and_the_hold_stays_open(scene: Scene) -> None:
    row = await scene.asks()
    deep: Any = 1
    for _ in range(21):
        deep = {"in": deep}
    for wrong in ({"response_data": {"x": "y" * 262_144}}, {"response_data": deep}, {"comment": "é" * 5001}):
        with pytest.raises(ValueTooLargeError) as caught:
            await scene.holds.resolve(DANA, row.id, {"decision": "approve", **wrong})
        assert caught.value.status == 413
    assert await scene.row(row.id) == row
    body = {"decision": "approve", "response_data": deep["in"], "comment": "é" * 5000}
    assert (await scene.holds.resolve(DANA, row.id, body)).row.status is HoldStatus.resolved


@pytest.mark.covers("RS-9")
async def test_a_comment_is_trimmed_and_needed_where_the_option_says_so(scene: Scene) -> None:
    row = await scene.asks(options=["approve", {"id": "reject", "label": "No", "requires_comment": True}])
    for comment in (None, "", "  \n "):
        with pytest.raises(AnswerInvalidError, match="comment"):
            await scene.holds.resolve(DANA, row.id, decision="reject", comment=comment)
    done = await scene.holds.resolve(DANA, row.id, decision="reject", comment="  too much \n")
    assert said(done.row)["comment"] == "too much"


@pytest.mark.covers("RS-5", "HOLD-LIFE-13", "HOLD-LIFE-05")
async def test_a_caller_who_comes_second_learns_who_was_first_and_keeps_a_draft(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    await scene.holds.resolve(SAM, row.id, {"decision": "reject", "comment": "no"})
    with pytest.raises(HoldDecidedError, match="'reject' by user:sam@acme") as caught:
        await scene.holds.resolve(FINN, row.id, {"decision": "approve", "comment": "yes, since ..."})
    facts = caught.value.facts
    assert caught.value.status == 409
    assert (facts["status"], facts["decision"], facts["resolved_by"]) == ("resolved", "reject", SAM.id)
    assert (facts["resolved_at"], facts["your_draft_saved"]) == (scene.clock.now(), True)
    draft = await scene.holds.draft(FINN, row.id)
    assert draft is not None
    assert draft.comment == "yes, since ..."
    assert len(await scene.audit(row, "resolved")) == 1


@pytest.mark.covers("RS-6", "HOLD-LIFE-12")
async def test_the_same_request_again_is_the_same_answer_and_another_one_is_refused(scene: Scene) -> None:
    row = await scene.asks()
    body = {"decision": "approve", "response_data": {"a": 1}}
    first = await scene.holds.resolve(DANA, row.id, body, idempotency_key="k1")
    again = await scene.holds.resolve(DANA, row.id, body, idempotency_key="k1")
    assert (first.replay, again.replay, again.row) == (False, True, first.row)
    with pytest.raises(KeyReusedError) as caught:
        await scene.holds.resolve(DANA, row.id, {"decision": "reject"}, idempotency_key="k1")
    assert caught.value.status == 422
    without = await scene.holds.resolve(DANA, row.id, body)
    assert (without.replay, without.row) == (True, first.row)
    for other in ({"decision": "reject"}, {"decision": "approve", "response_data": {"a": 2}}):
        with pytest.raises(HoldDecidedError):
            await scene.holds.resolve(DANA, row.id, other)
    with pytest.raises(HoldDecidedError):
        await scene.holds.resolve(ADMIN, row.id, body)
    assert len(await scene.audit(row, "resolved")) == 1


@pytest.mark.covers("RS-7", "HOLD-LIFE-12", "HOLD-BAD-01")
async def test_a_stale_version_and_a_changed_request_are_refused(scene: Scene) -> None:
    row = await scene.asks()
    with pytest.raises(HoldChangedError) as stale:
        await scene.holds.resolve(DANA, row.id, "approve", if_match=row.version - 1)
    with pytest.raises(ContentChangedError) as changed:
        await scene.holds.resolve(DANA, row.id, decision="approve", request_hash="sha256:other")
    assert (stale.value.status, changed.value.status, changed.value.code) == (412, 409, "content_changed")
    assert await scene.row(row.id) == row
    done = await scene.holds.resolve(
        DANA, row.id, decision="approve", request_hash=row.request_hash, if_match=row.version
    )
    assert said(done.row)["request_hash"] == row.request_hash


@pytest.mark.covers("RS-8", "HOLD-BAD-01", "HOLD-SEC-11")
@pytest.mark.parametrize("which", ["foreign", "unknown", "malformed", "", "'; drop table holds"])
async def test_what_a_tenant_does_not_have_is_not_found(scene: Scene, which: str) -> None:
    row = await scene.asks()
    name = {"foreign": row.id, "unknown": "00000000-0000-4000-8000-000000000000"}.get(which, which)
    actor = FOREIGN if which == "foreign" else DANA
    with pytest.raises(HoldNotFoundError) as caught:
        await scene.holds.resolve(actor, name, "approve")
    assert caught.value.status == 404
    assert await scene.row(row.id) == row


@pytest.mark.covers("RS-8", "HOLD-BAD-01", "HOLD-AUDIT-01")
async def test_only_the_assignee_decides_or_a_right_or_an_override_with_a_reason(scene: Scene) -> None:
    row = await scene.asks()
    for actor in (SAM, BOSS):
        with pytest.raises(NotAssignedError) as caught:
            await scene.holds.resolve(actor, row.id, "approve")
        assert caught.value.status == 403
    assert [data(each)["code"] for each in await scene.audit(row, "refused")] == ["not_assigned"] * 2
    by_right = await scene.holds.resolve(CLERK, row.id, "approve")
    assert said(by_right.row)["authority"] == "permission"

    strict = await scene.asks(strict_assignee=True)
    with pytest.raises(NotAssignedError):
        await scene.holds.resolve(CLERK, strict.id, "approve")
    over = await scene.holds.resolve(BOSS, strict.id, "approve", reason="Dana has left.")
    assert (said(over.row)["authority"], said(over.row)["override_reason"]) == ("override", "Dana has left.")


@pytest.mark.covers("EX-10")
async def test_a_late_decision_is_marked_or_refused_as_the_hold_says(scene: Scene) -> None:
    late = await scene.asks(timeout="1h")
    strict = await scene.asks(timeout="1h", late_resolution="reject")
    scene.clock.advance(hours=1)
    assert said((await scene.holds.resolve(DANA, late.id, "approve")).row)["late"] is True
    with pytest.raises(DeadlinePassedError) as caught:
        await scene.holds.resolve(DANA, strict.id, "approve")
    assert (caught.value.status, caught.value.code) == (409, "deadline_passed")
    assert (await scene.row(strict.id)).status is HoldStatus.pending


@pytest.mark.covers("RC-3")
async def test_the_old_assignee_is_reported_that_it_went_on_and_keeps_a_draft(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    await scene.holds.reassign(ADMIN, row.id, "user:dana@acme")
    with pytest.raises(HoldReassignedError, match="user:dana@acme") as caught:
        await scene.holds.resolve(SAM, row.id, {"decision": "approve", "comment": "long thought"})
    assert (caught.value.status, caught.value.facts["your_draft_saved"]) == (409, True)
    draft = await scene.holds.draft(SAM, row.id)
    assert draft is not None
    assert draft.comment == "long thought"


@pytest.mark.covers("RS-8")
async def test_a_decision_keeps_what_the_decider_belonged_to(scene: Scene) -> None:
    row = await scene.asks(assignee="group:finance")
    members = said((await scene.holds.resolve(SAM, row.id, "approve")).row)["members"]
    assert (members["matched"], members["groups"]) == ("group:finance", ["finance"])
    assert msgspec.json.encode(members)
