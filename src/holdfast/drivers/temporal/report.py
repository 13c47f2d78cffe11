"""How runs of a cluster are doing: what `holdfast show`, `holdfast run` and `holdfast doctor` say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from holdfast.drivers.temporal.projection import is_driven
from holdfast.drivers.temporal.reconcile import CONFLICTS
from holdfast.errors import EngineError
from holdfast.model.fingerprint import CODED, dialect_of
from holdfast.runs.engine_report import EngineFinding, EngineReport
from holdfast.store.rows import RunFilter, RunRow
from holdfast.types.status import ENDED, RunStatus

if TYPE_CHECKING:
    from holdfast.drivers.temporal.client import TemporalEngine

POLLED: Final = timedelta(seconds=150)
"""A worker that asked for work within this time is alive: it asks every minute."""
FAILING: Final = 3
"""Attempts of a workflow task from which it counts as failing."""
EXAMINED: Final = 500
"""Runs of which `doctor` asks the cluster, the newest ones."""
_QUERY: Final = timedelta(seconds=5)


async def report_of(engine: TemporalEngine, row: RunRow) -> EngineReport:
    """Of one run. Raises EngineError if the cluster does not answer."""
    if row.status in ENDED or not is_driven(row, engine.name):
        return EngineReport(engine=row.worker or engine.name)
    client = await engine.cluster.connect()
    queue = await engine.queues.of(row)
    made = EngineReport(engine=engine.name, queue=queue)
    try:
        found = await client.get_workflow_handle(row.id).describe()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise EngineError(
                f"the cluster did not answer a query about run {row.id}: {error.message[:200]}"
            ) from error
        made.problem = "it has no workflow yet: a worker of the engine starts it"
        return made
    made.history_events = found.history_length
    made.problem = _problem(found)
    if not made.problem and not await is_polled(engine, queue):
        made.problem = f"no worker polls its task queue {queue}: start one with {await _means(engine, row)}"
    if not made.problem:
        await _add_lag(engine, row, made)
    return made


async def _means(engine: TemporalEngine, row: RunRow) -> str:
    """What a worker must have to take it."""
    if dialect_of(row.version) == CODED:
        return "its code"
    needs = await engine.queues.needs(row.flow, row.version)
    return ", ".join(sorted(needs)) if needs else "any flows or none"


async def _add_lag(engine: TemporalEngine, row: RunRow, made: EngineReport) -> None:
    """What was decided and is not in the store: known to a worker that has the workflow."""
    client = await engine.client()
    try:
        raw = await client.get_workflow_handle(row.id).query(
            "holdfast.progress", result_type=bytes, rpc_timeout=_QUERY
        )
    except RPCError:
        return
    progress = msgspec.msgpack.decode(raw, type=dict[str, int])
    made.lag_records = max(progress["head"] - row.head, 0)
    oldest = progress["oldest"]
    made.lag_seconds = max(engine.store.now() - oldest, 0) / 1e6 if made.lag_records and oldest else 0.0


def _problem(found: WorkflowExecutionDescription) -> str:
    if found.status not in (None, WorkflowExecutionStatus.RUNNING):
        return f"its workflow has {found.status.name.lower().replace('_', ' ')}; the run ends within minutes"
    task = found.raw_description.pending_workflow_task
    if task.attempt >= FAILING:
        return f"its workflow task has failed {task.attempt - 1} times: see the log of its worker"
    for each in found.raw_description.pending_activities:
        if each.attempt >= FAILING and each.activity_type.name == "holdfast.project":
            return f"its records cannot be written to the store, in {each.attempt - 1} tries"
    return ""


async def is_polled(engine: TemporalEngine, queue: str) -> bool:
    """Whether a worker has asked for work of this queue lately."""
    client = await engine.cluster.connect()
    found = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
    )
    oldest = datetime.now(UTC) - POLLED
    return any(poller.last_access_time.ToDatetime(tzinfo=UTC) > oldest for poller in found.pollers)


async def findings(engine: TemporalEngine) -> AsyncIterator[EngineFinding]:
    """What `doctor` says. Raises EngineError if the cluster cannot be used."""
    await engine.cluster.connect()
    where = RunFilter(worker=engine.name, leased=True)
    rows = await engine.store.list_runs(where, after=None, limit=EXAMINED)
    yield EngineFinding("engine", f"{engine.name} answers; {len(rows)} live runs of it were examined")
    try:
        yield await _queues(engine, rows)
        yield await _workflows(engine, rows)
    except RPCError as error:
        raise EngineError(
            f"the cluster did not answer a query about its runs: {error.message[:200]}"
        ) from error
    yield await _conflicts(engine)
    yield await _undelivered(engine, rows)


async def _queues(engine: TemporalEngine, rows: list[RunRow]) -> EngineFinding:
    counts, means = Counter[str](), dict[str, str]()
    for row in rows:
        queue = await engine.queues.of(row)
        counts[queue] += 1
        means[queue] = means.get(queue) or await _means(engine, row)
    idle = [queue for queue in counts if not await is_polled(engine, queue)]
    return EngineFinding(
        "task queues",
        "a worker polls every task queue that has runs",
        f"{sum(counts[queue] for queue in idle)} runs are in task queues that no worker polls",
        "start a worker that has what they need: holdfast worker [FILE] --engine ADDRESS",
        [f"{counts[queue]} in {queue}, which need {means[queue]}" for queue in idle],
    )


async def _workflows(engine: TemporalEngine, rows: list[RunRow]) -> EngineFinding:
    wrong: list[str] = []
    client = await engine.cluster.connect()
    for row in rows:
        try:
            problem = _problem(await client.get_workflow_handle(row.id).describe())
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            problem = "" if row.head == 0 else "it has no workflow"
        if problem:
            wrong.append(f"{row.id} ({row.flow}): {problem}")
    return EngineFinding(
        "workflows",
        "no workflow task fails, and no live run has a closed workflow",
        f"{len(wrong)} {'run does' if len(wrong) == 1 else 'runs do'} not advance",
        "read the log of their workers; the same release on all workers, or `holdfast rewind`",
        wrong,
    )


async def _conflicts(engine: TemporalEngine) -> EngineFinding:
    """Among the latest failed runs."""
    failed = await engine.store.list_runs(RunFilter(status=(RunStatus.failed,)), after=None, limit=EXAMINED)
    found = [f"{row.id} ({row.flow})" for row in failed if CONFLICTS in (row.error or "")]
    return EngineFinding(
        "projection",
        "no journal differs from what its workflow decided",
        f"{len(found)} runs failed because their workflow and the store differ",
        "it was reset, or two clusters drove it: continue with `holdfast rewind RUN@N`",
        found,
    )


async def _undelivered(engine: TemporalEngine, rows: list[RunRow]) -> EngineFinding:
    old = engine.store.now() - 60_000_000
    late: list[str] = []
    for row in rows:
        if row.inbox_seq:
            _, mail = await engine.store.pending(row.id)
            if any(each.at < old for each in mail):
                late.append(f"{row.id} ({row.flow})")
    return EngineFinding(
        "engine messages",
        "every decision about a run of the engine has reached it",
        f"{len(late)} runs have not received a decision for more than a minute",
        "start a worker of the engine: holdfast worker FILE --engine ADDRESS",
        late,
    )
