"""Reads a stage's attributes as policies of the engine: effects, retries, limits, gates, joins."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from holdfast.frontends.dot.document import Attributes, Pipeline, Stage
from holdfast.frontends.dot.parallel_regions import Region
from holdfast.model.graph import GATE, InDoubt, Node, NodeKind, ParallelSpec, RetryPolicy, WalkSpec
from holdfast.types.status import Effect

RESULTS: Final = "parallel.results"
APPROVAL: Final = "tool_approval"
NO_APPROVAL: Final = "none"
PRESETS: Final = {
    "none": (1, 200_000, 2.0),
    "standard": (5, 200_000, 2.0),
    "aggressive": (5, 500_000, 2.0),
    "linear": (3, 500_000, 1.0),
    "patient": (3, 2_000_000, 3.0),
}
"""For each `retry_policy`: attempts, the first wait in microseconds, and its factor of growth (AT-109)."""
_SPREAD: Final = 0.5  # the specification's jitter, 0.5 to 1.5 times the wait (AT-108)
_MAX_PARALLEL: Final = 4  # the specification's default (AT-186)
# These can run again after a crash: their outside effects are in sub-steps, which have their own classes.
_EFFECTS: Final = {
    "start": Effect.pure,
    "exit": Effect.pure,
    "conditional": Effect.pure,
    "parallel": Effect.pure,
    "parallel.fan_in": Effect.read,
    "codergen": Effect.read,
    GATE: Effect.read,
    "tool": Effect.read,
    "stack.manager_loop": Effect.read,
}
# Their `timeout` is that of the question, not of the stage's own work.
_PATIENT: Final = frozenset({GATE})


def node_of(stage: Stage, kind: str, pipeline: Pipeline) -> Node:
    value = stage.text("in_doubt")
    return Node(
        id=stage.id,
        effect=effect_of(stage, kind),
        script=True,
        retry=retry_of(stage, pipeline),
        timeout=None if kind in _PATIENT else stage.microseconds("timeout"),
        in_doubt=InDoubt(value) if value in ("ask", "retry", "fail") else None,
        walk=_walk(stage, kind),
        metadata={"handler": kind, "label": stage.label},
    )


def effect_of(stage: Stage, kind: str) -> Effect:
    """A registered handler is external unless declared otherwise: it may do anything, but only once."""
    return declared_effect_of(stage) or _EFFECTS.get(kind, Effect.external)


def declared_effect_of(stage: Stage) -> Effect | None:
    value = stage.text("effect")
    if value in Effect.__members__:
        return Effect(value)
    return Effect.read if stage.flag("idempotent") else None


def _walk(stage: Stage, kind: str) -> WalkSpec:
    more: dict[str, Any] = {"allow_partial": True} if allows_partial(stage, kind) else {}
    return WalkSpec(
        goal_gate=stage.flag("goal_gate"),
        retry_target=stage.text("retry_target") or None,
        fallback_retry_target=stage.text("fallback_retry_target") or None,
        max_visits=max(0, stage.integer("max_visits")),
        terminal=kind == "exit",
        routing=kind == "conditional",
        **more,
    )


def allows_partial(stage: Stage, kind: str) -> bool:
    """Never a gate: that nobody has answered is not a success."""
    return kind != GATE and stage.flag("allow_partial")


def retry_of(stage: Stage, pipeline: Pipeline) -> RetryPolicy:
    """The stage's own number wins, even 0; then its preset, the graph's number, the graph's preset."""
    for where in (stage, pipeline):
        count, preset = _retries(where), PRESETS.get(where.text("retry_policy"))
        if count is None and preset is None:
            continue
        attempts, delay, factor = preset or PRESETS["standard"]
        return _policy(attempts if count is None else max(0, count) + 1, delay, factor)
    return _policy(*PRESETS["none"])


def _retries(where: Attributes) -> int | None:
    keys = ("max_retries",) if isinstance(where, Stage) else ("default_max_retries", "default_max_retry")
    return next((where.integer(key) for key in keys if key in where.attrs), None)


def _policy(attempts: int, delay: int, factor: float) -> RetryPolicy:
    return RetryPolicy(attempts=attempts, delay=delay, factor=factor, spread=_SPREAD)


def branches_of(node: Node, stage: Stage, region: Region, edges: tuple[str, ...]) -> Node:
    """The node of a parallel stage. `edges`: the edges with which its branches begin."""
    total = len(region.starts)
    if not total:
        return node
    policy = stage.text("join_policy", "wait_all")
    count = stage.integer("join_k", 1) if policy == "k_of_n" else _quorum(stage, total)
    errors = stage.text("error_policy", "continue")
    spec = ParallelSpec(
        body=stage.id,
        starts=region.starts,
        edges=edges,
        into=RESULTS,
        join="k_of_n" if policy == "quorum" else policy,
        count=max(1, count),
        concurrency=max(1, stage.integer("max_parallel", _MAX_PARALLEL)),
        on_branch_failure=errors if errors in ("fail_fast", "ignore") else "continue",
    )
    return replace(node, kind=NodeKind.parallel, script=False, parallel=spec)


def _quorum(stage: Stage, total: int) -> int:
    """`join_quorum` is a share of the branches (`0.75`) or a number of them; without it, more than half."""
    value = stage.attrs.get("join_quorum")
    try:
        wanted = float(str(value)) if value is not None else 0.0
    except ValueError:
        wanted = 0.0
    if wanted > 1:
        return int(wanted)
    # A share is rounded up: 0.75 of 5 branches are 4.
    return -int(-total * wanted // 1) if wanted > 0 else total // 2 + 1


def approvals_in(text: str) -> frozenset[str]:
    """The tools whose calls a person is asked about, or `all`."""
    return frozenset(name.strip() for name in text.split(",")) - {"", NO_APPROVAL}


def wanted_approvals(stage: Stage, pipeline: Pipeline) -> frozenset[str]:
    """Those of the stage, else of the graph. An empty text says nothing: only `none` removes them."""
    return approvals_in(stage.text(APPROVAL) or pipeline.text(APPROVAL))
