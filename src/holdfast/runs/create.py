"""A new run: its options are checked, its first records made, its flow's graph stored.

How a run is started: its names, and the options that replace its flow's settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Required, TypedDict, Unpack, cast

from holdfast.engine.decision import Decision
from holdfast.engine.start import begin
from holdfast.errors import InputError, StoreUnavailableError
from holdfast.holds.permissions.starters import RunStarters
from holdfast.model.breakpoints import find_breaks, find_places
from holdfast.model.fingerprint import encode_graph
from holdfast.model.graph import Graph, GraphSpec
from holdfast.model.hold_declaration import named_queues
from holdfast.model.position import Position
from holdfast.model.program import Program
from holdfast.runs.answer_fields import require_no_answers
from holdfast.runs.concurrency_limits.run_limits import limits_for_entity, limits_for_new_run
from holdfast.runs.hold_states import prepare_first_holds
from holdfast.runs.input_check import checked_input
from holdfast.runs.value_checker import TypedValues
from holdfast.store.rows import FlowRow, NewRun
from holdfast.types.concurrency_limits import LimitRow
from holdfast.types.deployment import Deployment, Mode
from holdfast.types.ids import DEFAULT_TENANT, EFFECT_FLOW, RunId, effect_run_id, is_id, new_run_id
from holdfast.types.record import Record
from holdfast.types.text import clean_text, require_text

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess


MAX_PRIORITY: Final = 1_000_000
MODES: Final = ("barrier", "strict", "exit")
POLICIES: Final = {"every": "every_node", "every_node": "every_node", "explicit": "explicit", "none": "none"}
MOMENTS: Final = ("before", "after", "both")


def check_options(names: Mapping[str, Any], priority: Any, mode: Any) -> None:
    """Raises InputError; the store is not used."""
    for name, value in names.items():
        if value is not None and not require_text(value, name):
            raise InputError(f"{name} is empty.", hint="Leave it out, or give it a value.")
    run_id = names["run_id"]
    if run_id is not None and not is_id(run_id):
        raise InputError(
            f"run_id {run_id!r} is not a valid id.",
            hint="Give a version-4 UUID in lower case; for your own names use idempotency_key=.",
        )
    if priority is not None and (type(priority) is not int or abs(priority) > MAX_PRIORITY):
        raise InputError(
            f"priority {clean_text(repr(priority), 80)} is not a whole number up to {MAX_PRIORITY:,}."
        )
    if mode is not None and mode not in MODES:
        raise InputError(f"mode {clean_text(repr(mode), 80)} is not one of {', '.join(MODES)}.")


def own_options(
    graph: Graph, breaks: Sequence[str] | None, checkpoints: str | Mapping[str, Any] | None
) -> dict[str, Any]:
    """The options stored in the run's first record. Raises InputError for nodes that do not exist."""
    options: dict[str, Any] = {"strict_names": True}
    if breaks:
        options["breaks"] = break_places(graph, breaks)
    if checkpoints is not None:
        options["checkpoints"] = _checkpoints(graph, checkpoints)
    return options


def break_places(graph: Graph, breaks: Sequence[str]) -> list[str]:
    return find_breaks(graph, _names(breaks, "breaks"))


def _names(given: Any, what: str) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(f"{what} is {clean_text(repr(given), 80)}.", hint=f'Give a list: {what}=["pay"].')
    return [
        require_text(getattr(name, "id", name), f"a node in {what}") for name in cast("Sequence[Any]", given)
    ]


def _checkpoints(graph: Graph, given: Any) -> dict[str, Any]:
    chosen = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"policy": given}
    unknown = sorted(map(str, chosen.keys() - {"policy", "when", "exclude"}))
    if unknown:
        raise InputError(f"checkpoints has no {', '.join(unknown)}.", hint="Use policy, when and exclude.")
    policy = chosen.get("policy", graph.spec.checkpoints)
    if not isinstance(policy, str) or policy not in POLICIES:
        raise InputError(f"checkpoints {clean_text(repr(policy), 80)} is not one of {', '.join(POLICIES)}.")
    when = chosen.get("when")
    if when is not None and when not in MOMENTS:
        raise InputError(f"checkpoints when {clean_text(repr(when), 80)} is not one of {', '.join(MOMENTS)}.")
    names = _names(chosen.get("exclude", ()), "exclude")
    return {
        "policy": POLICIES[policy],
        "when": when,
        "exclude": find_places(graph, names, "no checkpoint of"),
    }


class RunNames(TypedDict, total=False):
    """The names and owners of a run; fields of `NewRun`."""

    tenant: Required[str]
    thread: str | None
    instance_key: str | None
    idempotency_key: str | None
    started_by: str | None
    deployment: str | None
    parent_run: RunId | None
    forked_from: str | None
    supersedes: RunId | None


def _require_call_of_effect(flow: str, tenant: str, run_id: str | None, key: str | None) -> None:
    """Raises InputError for a run of an effect that is not that of its key: it would keep the key from being
    used, and the function is not called for it."""
    effect = flow.removeprefix(EFFECT_FLOW)
    if key is None or run_id != effect_run_id(tenant, effect, key):
        require_no_effect(flow)


def require_no_effect(flow: str) -> None:
    """Raises InputError for a flow whose runs only calls of an effect start."""
    effect = flow.removeprefix(EFFECT_FLOW)
    if effect != flow:
        raise InputError(
            f"runs of {flow!r} are started by calls of the effect {effect!r} only.",
            hint="Call the function that is declared with @hf.effect; a flow needs another name.",
        )


async def prepare(
    service: RunAccess,
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
    started_via: Sequence[str] = (),
    deployment: str | None = None,
    parent_run: RunId | None = None,
) -> tuple[NewRun, Position]:
    """Checked, begun and encoded, but not stored yet.

    `started_by`: who started it, such as `user:dana@acme`; `started_via`: everyone in the chain of their
    credential; `deployment`: the deployment that it is a run of; `parent_run`: whose script has started it.
    `breaks`: nodes to stop before, `child/node` inside a sub-flow. `checkpoints`: which records this run
    lists, instead of the flow's policy: "every", "explicit", "none", or a mapping with policy, when and
    exclude."""
    names: RunNames = {
        "tenant": tenant, "thread": thread, "instance_key": instance_key,
        "idempotency_key": idempotency_key, "started_by": started_by, "deployment": deployment,
    }  # fmt: skip
    given_names = {**names, "lane": lane, "run_id": run_id}
    names["parent_run"] = parent_run
    check_options(given_names, priority, mode)
    if service.runtime.require_tenant is not None:
        await service.runtime.require_tenant(tenant)
    _require_call_of_effect(program.graph.name, tenant, run_id, idempotency_key)
    own = own_options(program.graph, breaks, checkpoints)
    found: Deployment | None = None
    if deployment is not None:
        from holdfast.runs.deployments import deployment_for_run

        found, kept = await deployment_for_run(
            service.store, program, deployment, tenant=tenant, instance_key=instance_key
        )
        names["deployment"] = found.id
        own |= kept
    service.runtime.register(program)
    spec, now = program.graph.spec, service.store.now()
    if started_via:
        require_no_answers(spec, given, every=service.runtime.preparer.has_policies)
    start, scratch = await checked_input(program, given, tenant)
    if program.graph.dialect:
        scratch = {**spec.defaults, **scratch}
    limits = _limits(program, found, scratch, given_names)
    decision = _begun(program, run_id, (start, scratch), mode or spec.mode, now, own)
    # Before the run: a process without the code of the flow reads the run by its stored graph.
    await service.store_flow(program)
    try:
        records = await encode_records(service, program, decision, tenant)
        run = RunId(decision.pos.run)
        new = new_run(program, run, records, limits, now, lane=lane, priority=priority, **names)
        if started_via:
            await RunStarters(service.store).put(tenant, new.id, started_via, started_by=started_by)
        await prepare_first_holds(service, program, new)
    except StoreUnavailableError as error:
        # What an unavailable store says about runs is not true of one that is not stored yet.
        hint = "No run was created: start it again when the store can be used."
        raise type(error)(error.message, hint=hint, **error.facts) from error
    return new, decision.pos


def _limits(
    program: Program, deployment: Deployment | None, scratch: dict[str, Any], names: Mapping[str, Any]
) -> tuple[str, list[LimitRow]]:
    """Of a run of an entity, one at a time; of another one, as its flow declares them."""
    if deployment is not None and deployment.mode is Mode.entity:
        return limits_for_entity(program, deployment, names["instance_key"] or "")
    return limits_for_new_run(program, scratch, names)


def new_run(
    program: Program,
    run: RunId,
    first: list[Record],
    limits: tuple[str, list[LimitRow]],
    now: int,
    *,
    lane: str | None = None,
    priority: int | None = None,
    **names: Unpack[RunNames],
) -> NewRun:
    """The row of a run that begins with the records `first`, claimable at once. `limits`: its own, and those
    that its flow declares; `lane` and `priority`: those of the flow by default."""
    spec = program.graph.spec
    return NewRun(
        id=run,
        flow=program.graph.name,
        version=program.version,
        code=program.code_digest,
        lane=lane or spec.lane,
        priority=spec.priority if priority is None else priority,
        created_at=now,
        ready_at=now,
        first=first,
        limit=limits[0],
        limits=limits[1],
        **names,
    )


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
        fits=TypedValues(program),
    )


async def encode_records(
    service: RunAccess, program: Program, decision: Decision, tenant: str
) -> list[Record]:
    """The first records as they are stored; the blobs of their large values are stored before them."""
    codec = service.runtime.codec_for(program, tenant)
    records: list[Record] = []
    for record, body in decision.records:
        # Term 0: no worker has claimed the run yet.
        blobs = codec.encode(record, body, 0)
        if blobs:
            await service.runtime.blobs.of(tenant).put(blobs)
        records.append(record)
    return records


async def store_flow(service: RunAccess, program: Program) -> None:
    """Store the graph, so that runs can be read without code, and what the code consists of (D-34)."""
    if program.code_digest not in service.caches.stored_flows:
        # Read first: a read is cheap, and nearly every process finds what another has written.
        if await service.store.code(program.code_digest) is None:
            await service.store.put_code(program.code_digest, program.code_marks)
        service.caches.stored_flows.add(program.code_digest)
    if program.version not in service.caches.stored_flows:
        _require_queues(service, program.graph.spec)
        row = FlowRow(
            name=program.graph.name,
            version=program.version,
            graph=encode_graph(program.graph.spec),
            created_at=service.store.now(),
        )
        await service.store.put_flow(row)
        service.caches.stored_flows.add(program.version)


def _require_queues(service: RunAccess, spec: GraphSpec) -> None:
    """Raises FlowInvalidError for a queue that is not listed where that is required (QU-2). Most flows ask in
    no queue, and need no service of queues."""
    queues = service.runtime.queues
    if queues is not None and next(named_queues(spec), None) is not None:
        queues.open().require_queues(spec)
