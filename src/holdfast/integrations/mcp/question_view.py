"""A question as an agent sees it, with what to do next."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.api.schemas.common import moment
from holdfast.api.schemas.holds import notes_wire
from holdfast.checkpoint.json_view import jsonable
from holdfast.integrations.mcp.caller import McpCaller
from holdfast.integrations.mcp.tool_schemas import (
    LONGEST_WAIT,
    FollowUpQuestion,
    McpQuestionView,
    QuestionComment,
)
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldRow
from holdfast.types.status import ENDED, HoldStatus


async def view_question(agent: McpCaller, row: HoldRow) -> McpQuestionView:
    """Raises ForbiddenError if the agent may not see it."""
    notes = notes_wire(await (await agent.call.holds()).comments(agent.call.actor, row.id))
    asked = [
        FollowUpQuestion(question=note.id, by=note.by, text=note.text)
        for note in notes
        if note.kind == "question" and note.open and row.status is HoldStatus.pending
    ]
    resolution: dict[str, Any] = msgspec.json.decode(row.resolution) if row.resolution else {}
    return McpQuestionView(
        id=row.id,
        run=row.run,
        status=str(row.status),
        question=row.prompt,
        next=_next(row, asked),
        assignee=row.assignee,
        choices=None if row.options is None else [option.id for option in row.options],
        asked_at=moment(row.created_at),
        deadline=moment(row.expires_at),
        decision=resolution.get("effective_decision") or resolution.get("decision"),
        data=jsonable(resolution.get("response_data")),
        comment=resolution.get("comment"),
        decided_by=row.resolved_by,
        decided_at=moment(row.resolved_at),
        asked_back=asked,
        comments=[
            QuestionComment(by=note.by, at=note.at, text=note.text)
            for note in notes
            if note.kind == "comment"
        ],
        page=f"{agent.site}/holds/{row.id}" if agent.site else None,
    )


def _next(row: HoldRow, asked: list[FollowUpQuestion]) -> str:
    if row.status is HoldStatus.resolved:
        return f"{row.resolved_by} has decided."
    if row.status is HoldStatus.expired:
        return "It expired without an answer. This is not an approval: do not proceed as if it were."
    if row.status is HoldStatus.cancelled:
        return "It was withdrawn. This is not an approval: do not proceed as if it were."
    if asked:
        return "A person asks for more information before they decide: answer with reply_to_people."
    return (
        "It is not decided yet. Continue with other work, and call check_answer again later; "
        f"with wait_seconds (up to {LONGEST_WAIT}) it waits for an answer."
    )


def view_unopened(row: RunRow, question: str) -> McpQuestionView:
    """A question whose run no worker has claimed yet."""
    if row.status in ENDED:
        status, text = str(row.status), "It was not asked: its run has ended."
    else:
        status = "opening"
        text = (
            "It is stored, and opens when a worker that serves it is running; call check_answer later. If it "
            "stays so, an operator must start a worker: any `holdfast worker` of the same release serves it."
        )
    return McpQuestionView(id=row.id, run=row.id, status=status, question=question, next=text)
