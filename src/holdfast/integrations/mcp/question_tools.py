"""Tools for questions to people: ask, check, comment, withdraw. None of them decides."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import cursor_of, place_of
from holdfast.api.problems import HttpError
from holdfast.api.routes.runs import start_from_request
from holdfast.api.schemas.runs import CreateRun
from holdfast.app.flow import Flow
from holdfast.errors import FlowInvalidError, HoldNotFoundError, InputError, RunNotFoundError, StateError
from holdfast.integrations.ask_people_flow import NAME
from holdfast.integrations.ask_people_flow import ask_people as flow
from holdfast.integrations.mcp.caller import McpCaller, Progress
from holdfast.integrations.mcp.change_signals import questions_signal, run_signal
from holdfast.integrations.mcp.question_view import view_question, view_unopened
from holdfast.integrations.mcp.tool_registry import ToolRegistry
from holdfast.integrations.mcp.tool_schemas import (
    AskPeopleInput,
    CheckAnswerInput,
    CommentInput,
    CommentResult,
    ListQuestionsInput,
    McpQuestionList,
    McpQuestionView,
    ReplyInput,
    WithdrawQuestionInput,
)
from holdfast.model.diagnostics import GraphProblem, errors_in
from holdfast.store.rows import RunRow
from holdfast.types.hold import HoldFilter, HoldOrder, HoldRow
from holdfast.types.status import ENDED, HoldStatus, run_label

tools: Final = ToolRegistry()

OPENS_IN: Final = 5.0
"""Seconds within which a worker opens a question; else no worker serves it now."""


@tools.tool(needs=Right.runs_write)
async def ask_people(agent: McpCaller, given: AskPeopleInput, progress: Progress) -> McpQuestionView:
    """Ask a person for a decision or for information; returns the question's id at once.

    The question stays open for days if needed, also after you have ended: keep the id and call check_answer
    later. Only people can answer; no tool can. Calls with the same idempotency_key ask once."""
    call = agent.call
    asked = _flow_input(given)
    # The built-in flow: any server may create its runs, also one without a worker.
    call.hf.register(flow.program())
    # Keys are per agent: with the same key one agent must not see the question of another.
    key = given.idempotency_key and f"ask:{call.actor.id}:{given.idempotency_key}"
    body = CreateRun(flow=NAME, input=asked, idempotency_key=key)
    run = (await start_from_request(call, body)).body
    service = await call.runs()
    row = await service.get(run.id, tenant=call.tenant)

    async def opened() -> HoldRow | bool | None:
        hold = await _hold_of(agent, row)
        ended = (await service.get(row.id)).status in ENDED
        return hold or (True if ended else None)

    text = "The question is being opened."
    found = await agent.wait(OPENS_IN, opened, run_signal(call, row.id), progress, text)
    if not isinstance(found, HoldRow):
        return await _unopened(agent, row, given.question)
    return await _answered(agent, found, given.wait_seconds, progress)


def _flow_input(given: AskPeopleInput) -> dict[str, Any]:
    """The flow's input. Raises InputError for an invalid question, before anything is started."""
    choices = [each if isinstance(each, str) else _choice(each) for each in given.choices]
    manner: dict[str, Any] = {
        "assignee": given.assignee,
        "priority": given.priority,
        "context": given.context,
        "tags": ["agent"],
    }
    if given.deadline is not None:
        manner |= {"timeout": given.deadline, "on_timeout": given.on_deadline}
    _require_askable(given, choices, manner)
    return {"question": given.question, "choices": choices or None, "form": given.form, "manner": manner}


def _require_askable(given: AskPeopleInput, choices: list[Any], manner: dict[str, Any]) -> None:
    """Compiles a trial flow with the same question, which reports what is invalid."""
    trial = Flow("ask")
    try:
        # `flow.hold` takes no context; it is checked when the question is asked.
        declared = {name: value for name, value in manner.items() if name != "context"}
        trial.hold("ask", prompt=given.question, options=choices or None, form=given.form, **declared)
        trial.program()
    except FlowInvalidError as error:
        found = cast("list[GraphProblem]", error.facts.get("problems", []))
        raise _not_askable("; ".join(each.message for each in errors_in(found)) or str(error)) from error
    except (InputError, ValueError, TypeError) as error:
        raise _not_askable(str(error)) from error


def _not_askable(why: str) -> InputError:
    return InputError(
        f"the question is not valid: {why.rstrip('.')}.", hint="Correct that argument, and ask again."
    )


def _choice(choice: Any) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(choice)
    fields["label"] = choice.label or choice.id
    return fields


async def _unopened(agent: McpCaller, row: RunRow, question: str) -> McpQuestionView:
    row = await (await agent.call.runs()).get(row.id)
    if row.status in ENDED:
        raise StateError(
            f"the question could not be asked: its run is {run_label(row.status)}"
            f"{f': {row.error}' if row.error else ''}.",
            hint="Correct the question, and ask again with another idempotency_key.",
        )
    return view_unopened(row, question)


async def _answered(agent: McpCaller, hold: HoldRow, seconds: float, progress: Progress) -> McpQuestionView:
    """Waits until it is decided or a person asks back, for at most `seconds`."""
    people = await agent.call.holds()

    async def news() -> HoldRow | None:
        row = await people.get(agent.call.actor, hold.id)
        return row if row.status is not HoldStatus.pending or row.paused_at is not None else None

    bell = questions_signal(agent.call)
    row = await agent.wait(seconds, news, bell, progress, "The question is not decided yet.")
    return await view_question(agent, row or await people.get(agent.call.actor, hold.id))


@tools.tool(needs=Right.holds_read, reads=True)
async def check_answer(agent: McpCaller, given: CheckAnswerInput, progress: Progress) -> McpQuestionView:
    """Whether a question is answered, and how. With wait_seconds it waits for the answer, up to a limit.

    Only the status `resolved` is an answer. If a person asks back (`asked_back`), reply with
    reply_to_people: they decide after that."""
    found = await _find(agent, given.id)
    if isinstance(found, RunRow):
        return view_unopened(found, await _prompt(agent, found))
    return await _answered(agent, found, given.wait_seconds, progress)


@tools.tool(needs=Right.holds_read, reads=True)
async def list_questions(agent: McpCaller, given: ListQuestionsInput, progress: Progress) -> McpQuestionList:
    """The questions that you have asked with ask_people, newest first."""
    people = await agent.call.holds()
    status = () if given.status == "any" else (HoldStatus(given.status),)
    own = (agent.call.actor.id,)
    where = HoldFilter(tenant=agent.call.tenant, flow=(NAME,), started_by=own, status=status)
    after: Any = place_of(agent.call.hf.cell, given.cursor, list[Any])
    page = await people.store.list_holds(where, order=HoldOrder.newest, after=after, limit=given.limit + 1)
    items = [await view_question(agent, row) for row, _ in page[: given.limit]]
    more = len(page) > given.limit
    return McpQuestionList(
        items=items, next=cursor_of(agent.call.hf.cell, *page[given.limit - 1][1]) if more else None
    )


@tools.tool(needs=Right.runs_write, destroys=True, repeats=True)
async def withdraw_question(
    agent: McpCaller, given: WithdrawQuestionInput, progress: Progress
) -> McpQuestionView:
    """Withdraw a question that you asked: it no longer needs an answer. This is not a decision.

    A question of a run that you started can be withdrawn too; that run then ends as cancelled."""
    found = await _find(agent, given.id)
    if isinstance(found, RunRow):
        service = await agent.call.runs()
        row = await service.cancel(found.id, reason=given.reason, by=agent.call.actor.id)
        return view_unopened(row, await _prompt(agent, row))
    people = await agent.call.holds()
    row = await people.cancel(agent.call.actor, found.id, reason=given.reason)
    return await view_question(agent, row)


@tools.tool(needs=Right.holds_write)
async def comment_on_question(agent: McpCaller, given: CommentInput, progress: Progress) -> CommentResult:
    """Add a comment for the people who decide a question, also after it is decided."""
    found = await _opened(agent, given.id)
    note = await (await agent.call.holds()).comment(agent.call.actor, found.id, given.text)
    return CommentResult(id=found.id, comment=note.slot)


@tools.tool(needs=Right.holds_write)
async def reply_to_people(agent: McpCaller, given: ReplyInput, progress: Progress) -> McpQuestionView:
    """Answer a person's question about your question (`asked_back`). They decide after that."""
    found = await _opened(agent, given.id)
    people = await agent.call.holds()
    row = await people.reply(agent.call.actor, found.id, given.text, question=given.question)
    return await view_question(agent, row)


# ---------------------------------------------------------------------- finding


async def _find(agent: McpCaller, name: str) -> HoldRow | RunRow:
    """A hold by its id, or by the id of its run, which is the only id until the question is open."""
    people = await agent.call.holds()
    try:
        return await people.get(agent.call.actor, name)
    except HoldNotFoundError as error:
        row = await _own_run(agent, name)
        if row is None:
            raise HoldNotFoundError(
                f"there is no question {name!r}.", hint="list_questions lists the questions that you asked."
            ) from error
        return await _hold_of(agent, row) or row


async def _own_run(agent: McpCaller, name: str) -> RunRow | None:
    try:
        row = await (await agent.call.runs()).get(name, tenant=agent.call.tenant)
    except RunNotFoundError:
        return None
    # Only their own: by the id of a run an agent must not read the question of another agent.
    return row if row.flow == NAME and row.started_by == agent.call.actor.id else None


async def _opened(agent: McpCaller, name: str) -> HoldRow:
    found = await _find(agent, name)
    if isinstance(found, RunRow):
        raise HttpError(
            409, "this question is not open yet.", code="not_open", hint="Call check_answer first."
        )
    return found


async def _hold_of(agent: McpCaller, row: RunRow) -> HoldRow | None:
    holds = await (await agent.call.runs()).holds(row.id, open_only=False)
    return min(holds, key=lambda hold: hold.seq) if holds else None


async def _prompt(agent: McpCaller, row: RunRow) -> str:
    service = await agent.call.runs()
    return str((await service.checkpoint(row.id, row.head)).shown().input.get("question", ""))
