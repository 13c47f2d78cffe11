"""A new run: its options checked, its first records made, its flow's graph kept beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.engine.decision import Decision
from holdfast.engine.start import begin
from holdfast.model.fingerprint import encode_graph
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.runs.admission import stand
from holdfast.runs.create__options import check_options, own_options
from holdfast.runs.hold_preparation import facts_of
from holdfast.runs.typed_values import Fitting
from holdfast.store.protocols import FlowRow, NewRun
from holdfast.types.ids import DEFAULT_TENANT, RunId, new_run_id
from holdfast.types.record import Record

if TYPE_CHECKING:
    from holdfast.runs.service import RunService


async def prepare(
    service: RunService,
    program: Program,
    given: Any,
    *,
    run_id: str | None = None,
    tenant: str = DEFAULT_TENANT,
    thread: str | None = None,
    instance_key: str | None = None,
    idempotency_key: str | None = None,
    lane: str | None = None,
    priority: int | None = None,
    mode: str | None = None,
    breaks: Sequence[str] | None = None,
    checkpoints: str | Mapping[str, Any] | None = None,
    started_by: str | None = None,
    deployment: str | None = None,
) -> tuple[NewRun, Position]:
    """Checked, begun and sealed, and not yet stored.

    `started_by`: who set it going, as `user:dana@acme`; `deployment`: what it is a run of, beside its flow.
    `breaks`: nodes to stop before, `child/node` inside a sub-flow. `checkpoints`: which records this
    run lists, instead of the flow's policy: "every", "explicit", "none", or a mapping with policy, when
    and exclude."""
    names = {
        "tenant": tenant, "thread": thread, "instance_key": instance_key, "lane": lane,
        "idempotency_key": idempotency_key, "run_id": run_id, "started_by": started_by,
        "deployment": deployment,
    }  # fmt: skip
    check_options(names, priority, mode)
    own = own_options(program.graph, breaks, checkpoints)
    if deployment is not None:
        from holdfast.runs.deployments import enter

        deployment, kept = await enter(
            service.store, program, deployment, tenant=tenant, instance_key=instance_key
        )
        own |= kept
    service.runtime.carry(program)
    spec, now = program.graph.spec, service.store.now()
    start, scratch = program.schema.start(given)
    if program.graph.dialect:
        scratch = {**spec.defaults, **scratch}
    gate, gates = stand(program, scratch, names)
    decision = _begun(program, run_id, (start, scratch), mode or spec.mode, now, own)
    await service.keep_flow(program)
    new = NewRun(
        id=RunId(decision.pos.run),
        tenant=tenant,
        flow=program.graph.name,
        version=program.version,
        code=program.code_digest,
        lane=lane or spec.lane,
        priority=spec.priority if priority is None else priority,
        thread=thread,
        instance_key=instance_key,
        idempotency_key=idempotency_key,
        started_by=started_by,
        deployment=deployment,
        created_at=now,
        ready_at=now,
        first=await _sealed(service, program, decision, tenant),
        gate=gate,
        gates=gates,
    )
    await service.runtime.preparer.prepare_all(new.first, facts_of(new))
    return new, decision.pos


def _begun(
    program: Program,
    run_id: str | None,
    values: tuple[Any, dict[str, Any]],
    mode: str,
    now: int,
    options: dict[str, Any],
) -> Decision:
    start, scratch = values
    return begin(
        program.graph,
        RunId(run_id) if run_id else new_run_id(),
        version=program.version,
        code=program.code_digest,
        given=start,
        scratch=scratch,
        mode=mode,
        now=now,
        options=options,
        fits=Fitting(program),
    )


async def _sealed(service: RunService, program: Program, decision: Decision, tenant: str) -> list[Record]:
    """The first records as they are stored; their large values are put away before them."""
    sealer = service.runtime.sealer_of(program)
    records: list[Record] = []
    for record, body in decision.records:
        blobs = sealer.seal(record, body, 0)
        if blobs:
            await service.runtime.desk.of(tenant).put(blobs)
        records.append(record)
    return records


async def keep_flow(service: RunService, program: Program) -> None:
    """Store the graph, so that runs can be read without code, and what the code consists of (D-34)."""
    if program.code_digest not in service.stored:
        # Looked at first: a read costs little, and nearly every process finds what another has written.
        if await service.store.code(program.code_digest) is None:
            await service.store.put_code(program.code_digest, program.code_marks)
        service.stored.add(program.code_digest)
    if program.version not in service.stored:
        row = FlowRow(
            name=program.graph.name,
            version=program.version,
            graph=encode_graph(program.graph.spec),
            created_at=service.store.now(),
        )
        await service.store.put_flow(row)
        service.stored.add(program.version)
