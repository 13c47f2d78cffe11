"""Tools for runs: find, start, follow, cancel. Questions of a run are answered by people."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.pagination import Cursor, Limit
from holdfast.api.routes.callbacks import apply_outcome
from holdfast.api.routes.callbacks import send_heartbeat as heartbeat
from holdfast.api.routes.flows import list_flows as all_flows
from holdfast.api.routes.queues import send_event as send
from holdfast.api.routes.run_list import list_runs as all_runs
from holdfast.api.routes.runs import cancel_run as cancel
from holdfast.api.routes.runs import get_run_result, start_from_request
from holdfast.api.schemas.callbacks import CallbackWire, CompleteCallback, Message
from holdfast.api.schemas.common import Name, moment
from holdfast.api.schemas.events import EventWire, event_wire
from holdfast.api.schemas.flows import FlowWire
from holdfast.api.schemas.queues import Length, SendEvent, SentEvent
from holdfast.api.schemas.runs import CancelRun, CreateRun, ListRuns, ResultQuery, RunResult
from holdfast.app.flow import is_idle
from holdfast.errors import FlowNotFoundError
from holdfast.integrations.ask_people_flow import NAME
from holdfast.integrations.mcp.caller import McpCaller, Progress
from holdfast.integrations.mcp.change_signals import run_signal
from holdfast.integrations.mcp.tool_registry import ToolRegistry
from holdfast.integrations.mcp.tool_schemas import LONGEST_WAIT, RunName, Wait
from holdfast.runs.run_view import MachineWait, ShownRun, shown_run
from holdfast.store.rows import RunRow
from holdfast.types.hold import MACHINE_WAITS
from holdfast.types.status import ENDED, RunStatus

tools: Final = ToolRegistry()


class NoInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class StartRunInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    flow: Annotated[Name, msgspec.Meta(description="NAME or NAME@VERSION, as in list_flows.")]
    input: Annotated[dict[str, Any], msgspec.Meta(description="The input of the run.")] = {}
    idempotency_key: Annotated[
        Name | None, msgspec.Meta(description="Calls with the same key start one run.")
    ] = None
    thread: Annotated[Name | None, msgspec.Meta(description="A name that related runs share.")] = None
    wait_seconds: Wait = 0


class GetRunInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    run: RunName
    wait_seconds: Wait = 0


class ListRunsInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    status: list[RunStatus] = []
    flow: Name | None = None
    limit: Limit = 20
    cursor: Cursor | None = None


class FollowRunInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    run: RunName
    after: Annotated[
        int,
        msgspec.Meta(ge=0, le=0x7FFF_FFFF, description="`cursor` of the previous answer; 0: from the start."),
    ] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100
    wait_seconds: Wait = 0


class CancelRunInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    run: RunName
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] = "cancelled by an agent"


class HeartbeatInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    token: Annotated[
        str, msgspec.Meta(min_length=1, max_length=4000, description="The token, or its address.")
    ]


class CompleteCallbackInput(HeartbeatInput, kw_only=True, forbid_unknown_fields=True):
    result: Annotated[Any, msgspec.Meta(description="What the run gets.")] = None
    error: Annotated[Message | None, msgspec.Meta(description="What went wrong; without result.")] = None
    data: Annotated[Any, msgspec.Meta(description="Details of the error.")] = None


class SendEventInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: Annotated[
        str,
        msgspec.Meta(min_length=1, max_length=100, description="As the run waits for it: payment.received"),
    ]
    data: Annotated[Any, msgspec.Meta(description="What the run gets.")] = None
    key: Annotated[Name | None, msgspec.Meta(description="The run that waits for this key gets it.")] = None
    run: Annotated[RunName | None, msgspec.Meta(description="Only this run gets it; without key.")] = None
    id: Annotated[
        Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | None,
        msgspec.Meta(description="Calls with the same id send one event."),
    ] = None
    keep: Annotated[Length, msgspec.Meta(description="How long it waits for a run, such as 7d.")] = "7d"


class McpFlowList(msgspec.Struct, kw_only=True):
    items: list[FlowWire]


class McpPendingQuestion(msgspec.Struct, kw_only=True):
    """A question of a run to people. An agent cannot answer it."""

    id: str
    question: str
    assignee: str | None
    deadline: str | None


class McpRunView(msgspec.Struct, kw_only=True):
    """`status`: pending, running, waiting, pending_input, resumable, completed, failed or cancelled.
    `cursor`: of its latest event. `next`: what to do now. `wakes_at`: until when it sleeps. `waits_for`:
    the questions to people; `waits_for_events`: what it waits for from machines."""

    run: str
    flow: str
    version: str
    status: RunStatus
    started_by: str | None
    created_at: str | None
    ended_at: str | None
    error: str | None
    cursor: int
    waits_for: list[McpPendingQuestion]
    next: str
    wakes_at: str | None = None
    waits_for_events: list[MachineWait] = []


class McpRunList(msgspec.Struct, kw_only=True):
    items: list[McpRunView]
    next: str | None = None


class McpEventPage(msgspec.Struct, kw_only=True):
    """`cursor`: pass it as `after` of the next call. `ended`: there will be no more events."""

    run: str
    status: RunStatus
    events: list[EventWire]
    cursor: int
    ended: bool


@tools.tool(needs=Right.flows_read, reads=True)
async def list_flows(agent: McpCaller, given: NoInput, progress: Progress) -> McpFlowList:
    """The flows that can be started here: what each does, the schema of its input, and its versions."""
    found = (await all_flows(agent.call)).items
    return McpFlowList(items=[flow for flow in found if flow.name != NAME])


@tools.tool(needs=Right.runs_write)
async def start_run(agent: McpCaller, given: StartRunInput, progress: Progress) -> McpRunView:
    """Start a flow; the run is durable when this returns. The same idempotency_key starts it only once."""
    if given.flow.partition("@")[0] == NAME:
        raise FlowNotFoundError(f"{NAME} cannot be started as a flow.", hint="Use ask_people.")
    body = CreateRun(
        flow=given.flow, input=given.input, idempotency_key=given.idempotency_key, thread=given.thread
    )
    made = (await start_from_request(agent.call, body)).body
    return await _wait_until_idle(agent, made.id, given.wait_seconds, progress)


@tools.tool(needs=Right.runs_read, reads=True)
async def get_run(agent: McpCaller, given: GetRunInput, progress: Progress) -> McpRunView:
    """The state of a run. With wait_seconds it waits until the run has ended or waits for a person."""
    return await _wait_until_idle(agent, given.run, given.wait_seconds, progress)


@tools.tool(needs=Right.runs_read, reads=True)
async def list_runs(agent: McpCaller, given: ListRunsInput, progress: Progress) -> McpRunList:
    """Runs, newest first."""
    asked = ListRuns(status=given.status, flow=given.flow, limit=given.limit, cursor=given.cursor)
    page = await all_runs(agent.call, asked)
    service = await agent.call.runs()
    rows = [await service.get(each.id, tenant=agent.call.tenant) for each in page.items]
    return McpRunList(items=[await run_view(agent, row) for row in rows], next=page.next)


@tools.tool(needs=Right.runs_read, reads=True)
async def follow_run(agent: McpCaller, given: FollowRunInput, progress: Progress) -> McpEventPage:
    """The events of a run since a cursor, without gaps or repetitions.

    Start with after=0, then pass the cursor of each answer. With wait_seconds it waits for new events."""
    service = await agent.call.runs()
    row = await service.get(given.run, tenant=agent.call.tenant)

    async def news() -> bool | None:
        now = await service.get(row.id)
        return True if now.event_seq > given.after or now.status in ENDED else None

    bell = run_signal(agent.call, row.id)
    await agent.wait(given.wait_seconds, news, bell, progress, "There are no new events.")
    # The row is read before the events: if it says that the run has ended, no event can be missing.
    row = await service.get(row.id)
    found = await service.events(row.id, after=given.after, limit=given.limit)
    cursor = found[-1].number if found else given.after
    ended = row.status in ENDED and cursor >= row.event_seq
    shown = await shown_run(service.store, row)
    return McpEventPage(
        run=row.id,
        status=shown.status,
        events=[event_wire(each) for each in found],
        cursor=cursor,
        ended=ended,
    )


@tools.tool(needs=Right.runs_read, reads=True)
async def get_result(agent: McpCaller, given: GetRunInput, progress: Progress) -> RunResult:
    """The result of a run: its state, artifacts and error. With wait_seconds it waits for the end."""
    await _wait_until_idle(agent, given.run, given.wait_seconds, progress)
    return await get_run_result(agent.call, given.run, ResultQuery())


@tools.tool(needs=Right.runs_write, destroys=True, repeats=True)
async def cancel_run(agent: McpCaller, given: CancelRunInput, progress: Progress) -> McpRunView:
    """Cancel a run that you started; its open questions are withdrawn."""
    service = await agent.call.runs()
    row = await service.get(given.run, tenant=agent.call.tenant)
    agent.require_own(row)
    if row.status is not RunStatus.cancelled:
        await cancel(agent.call, row.id, CancelRun(reason=given.reason))
    return await run_view(agent, await service.get(row.id))


@tools.tool(needs=Right.queues_write)
async def send_event(agent: McpCaller, given: SendEventInput, progress: Progress) -> SentEvent:
    """Send an event to the run that waits for its name and key, or to one run; without such a run it is kept.
    It answers no question that a run asks people."""
    run = given.run and (await (await agent.call.runs()).get(given.run, tenant=agent.call.tenant)).id
    body = SendEvent(name=given.name, data=given.data, key=given.key, run=run, id=given.id, keep=given.keep)
    return (await send(agent.call, body)).body


@tools.tool(needs=Right.queues_write, repeats=True)
async def complete_callback(
    agent: McpCaller, given: CompleteCallbackInput, progress: Progress
) -> CallbackWire:
    """Complete a callback with the token that its run handed over, or report that it failed (error)."""
    body = CompleteCallback(result=given.result, error=given.error, data=given.data)
    return await apply_outcome(agent.call, _token_in(given.token), body)


@tools.tool(needs=Right.queues_write, repeats=True)
async def send_heartbeat(agent: McpCaller, given: HeartbeatInput, progress: Progress) -> CallbackWire:
    """Tell a run that waits for a callback that the work for it goes on."""
    return await heartbeat(agent.call, _token_in(given.token))


def _token_in(text: str) -> str:
    """Of a token, or of the address that ends with it."""
    return text.rstrip("/").rpartition("/")[2]


async def _wait_until_idle(agent: McpCaller, run: str, seconds: float, progress: Progress) -> McpRunView:
    service = await agent.call.runs()
    row = await service.get(run, tenant=agent.call.tenant)

    async def at_rest() -> bool | None:
        return await is_idle(service, row.id) or None

    if seconds:
        await agent.wait(seconds, at_rest, run_signal(agent.call, row.id), progress, "The run continues.")
    return await run_view(agent, await service.get(row.id))


async def run_view(agent: McpCaller, row: RunRow) -> McpRunView:
    service = await agent.call.runs()
    holds = await service.questions(row.id) if row.status is RunStatus.pending_input else []
    waits = [
        McpPendingQuestion(
            id=hold.id, question=hold.prompt, assignee=hold.assignee, deadline=moment(hold.expires_at)
        )
        for hold in holds
        if hold.type not in MACHINE_WAITS
    ]
    shown = await shown_run(service.store, row)
    return McpRunView(
        run=row.id,
        flow=row.flow,
        version=row.version,
        status=shown.status,
        started_by=row.started_by,
        created_at=moment(row.created_at),
        ended_at=moment(row.ended_at),
        error=row.error,
        cursor=row.event_seq,
        waits_for=waits,
        next=_next(shown, waits),
        waits_for_events=list(shown.waits_for),
        wakes_at=moment(shown.wakes_at),
    )


def _next(row: ShownRun, waits: list[McpPendingQuestion]) -> str:
    if row.status is RunStatus.completed:
        return "It has completed: call get_result."
    if row.status in ENDED:
        return f"It is {row.status}: call get_result for its state and error."
    if waits:
        return "It is waiting for input: people answer in their inbox. Call again later."
    if row.waits_for:
        by = "complete_callback" if row.waits_for[0].callback is not None else "send_event"
        return f"It is {row.label}; call {by} if you bring it."
    return f"It is not done. Call get_run or follow_run with wait_seconds (up to {LONGEST_WAIT}) to wait."
