"""Comparing two moments: of one run, of two branches of one history, of two runs, or of two versions.

No user code runs (D-26): both sides are folded from their journals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from holdfast.checkpoint.checkpoint import Checkpoint
from holdfast.checkpoint.diff_result import Diff, DivergencePoint, Moment, NodeDiff, RunUsage, Sides
from holdfast.checkpoint.value_diff import MISSING, Change, changes, limit_changes
from holdfast.checkpoint.visit import CallDetail, QuestionDetail, Visit
from holdfast.runs.history.checkpoints import make_checkpoint
from holdfast.runs.history.redact import hidden_changes
from holdfast.runs.history.story import Story
from holdfast.runs.history.story_loader import ANCESTORS, load_story
from holdfast.types.ids import RunId

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow

LIMIT = 1_000
"""Maximum number of changes of one partition that are listed."""

Place = tuple[str, int]


async def compare(service: RunAccess, a: str, b: str, *, limit: int = LIMIT) -> Diff:
    """From `a` to `b`, each given as for `RunService.find`. Raises the errors of `find`."""
    (row_a, seq_a), (row_b, seq_b) = await service.find(a), await service.find(b)
    one, other = await make_checkpoint(service, row_a, seq_a), await make_checkpoint(service, row_b, seq_b)
    story_a, story_b = await load_story(service, row_a, seq_a), await load_story(service, row_b, seq_b)
    nodes, same, edges = _nodes(story_a, story_b)
    parted = await _parted(service, one, other)
    secrets = (*one.secrets, *other.secrets)
    return Diff(
        a=_moment(one, row_a),
        b=_moment(other, row_b),
        relation="same" if row_a.id == row_b.id else "branches" if parted is not None else "runs",
        parted=parted,
        input=limit_changes(hidden_changes(changes(one.input, other.input), secrets), limit),
        state=limit_changes(hidden_changes(changes(one.state, other.state), secrets), limit),
        artifacts=limit_changes(hidden_changes(changes(one.artifacts, other.artifacts), secrets), limit),
        nodes=nodes,
        same_nodes=same,
        skipped=_sides(one.skipped, other.skipped),
        pending=_sides(one.pending_edges, other.pending_edges),
        spent=(_spent(story_a.visits), _spent(story_b.visits)),
        edges=edges,
    )


def _moment(at: Checkpoint, row: RunRow) -> Moment:
    ends = at.seq == row.head
    return Moment(
        run=at.run,
        seq=at.seq,
        checkpoint=at.id,
        node=at.node,
        at=at.at,
        status=str(row.status if ends else at.status),
        flow=at.flow,
        version=at.version,
    )


def _sides(before: Sequence[str], after: Sequence[str]) -> Sides:
    return [name for name in before if name not in after], [name for name in after if name not in before]


# ---------------------------------------------------------------------- where they part


async def _parted(service: RunAccess, a: Checkpoint, b: Checkpoint) -> DivergencePoint | None:
    """The last moment of the nearest run that both come from."""
    ours = dict(await _line(service, a))
    for run, seq in await _line(service, b):
        if run in ours:
            at = min(seq, ours[run])
            row = await service.store.get_run(RunId(run))
            inside = row is not None and row.horizon <= at <= row.head
            found = await service.store.read(RunId(run), first=at, last=at, payloads=False) if inside else []
            return DivergencePoint(run=run, seq=at, node=found[0].scope + found[0].node if found else "")
    return None


async def _line(service: RunAccess, at: Checkpoint) -> list[Place]:
    """The runs that a moment comes from, each with the last record that counts; its own first."""
    line: list[Place] = [(at.run, at.seq)]
    lineage: dict[str, Any] = at.lineage
    while lineage and len(line) < ANCESTORS:
        source, seq = str(lineage["run"]), int(lineage["seq"])
        line.append((source, seq))
        row = await service.store.get_run(RunId(source))
        lineage = (await make_checkpoint(service, row, row.horizon)).lineage if row is not None else {}
    return line


# ---------------------------------------------------------------------- nodes


def _nodes(a: Story, b: Story) -> tuple[list[NodeDiff], int, Sides]:
    """Visits that only one side has or that differ, in the order of B, then of A; the number of
    equal ones."""
    common = {c.identity for c in a.visits if c.seq >= 0} & {c.identity for c in b.visits if c.seq >= 0}
    ours = [c for c in a.visits if c.identity not in common]
    theirs = [c for c in b.visits if c.identity not in common]
    before = {(c.label, c.visit): c for c in ours}
    after = {(c.label, c.visit): c for c in theirs}
    found = [_node(before.get(key), after.get(key)) for key in dict.fromkeys([*before, *after])]
    lines = [node for node in found if node.kind != "same"]
    took = [list(dict.fromkeys(edge for c in side for edge in c.edges)) for side in (ours, theirs)]
    alike = len(found) - len(lines) + len(common)
    return lines, alike, _sides(*took)


def _node(a: Visit | None, b: Visit | None) -> NodeDiff:
    there = b or a
    assert there is not None
    facts = list(_facts_changed(a, b)) if a and b else []
    calls = list(_calls_changed(a, b))
    asked = list(_by_name(_asked(a), _asked(b)))
    kind = (
        "added" if a is None else "removed" if b is None else "changed" if facts + calls + asked else "same"
    )
    return NodeDiff(
        node=there.label,
        visit=there.visit,
        kind=kind,
        changes=facts,
        calls=calls,
        asked=asked,
        a=None if a is None else _spent([a]),
        b=None if b is None else _spent([b]),
        outcome=(_outcome(a), _outcome(b)),
    )


def _facts_changed(a: Visit, b: Visit) -> Iterator[Change]:
    yield from changes(_facts(a), _facts(b))
    if a.ended_at is not None and b.ended_at is not None:
        yield from changes(a.effect, b.effect, "effect")


def _by_name(a: dict[str, Any], b: dict[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys([*a, *b]):
        yield from changes(a.get(name, MISSING), b.get(name, MISSING), name)


def _outcome(visit: Visit | None) -> str:
    return "" if visit is None else visit.outcome or visit.state


def _facts(visit: Visit) -> dict[str, Any]:
    begun = {"outcome": _outcome(visit), "attempts": visit.attempts}
    if visit.ended_at is None:
        return begun
    shown = {
        "error": visit.error,
        "output": visit.output,
        "edges": [edge.removeprefix(visit.scope) for edge in visit.edges],
        "tokens": visit.tokens or None,
        "cost": round(visit.cost, 9) or None,
    }
    return {**begun, **{name: value for name, value in shown.items() if value is not None}}


def _calls_changed(a: Visit | None, b: Visit | None) -> Iterator[Change]:
    """Sub-steps by their key or, if they have none, by name and number."""
    before, after = ({_key(c): c for c in side.calls} if side is not None else {} for side in (a, b))
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key), after.get(key)
        yield from changes(_call(old), _call(new), _place(new or old))


def _key(call: CallDetail) -> str:
    return call.ordinal if call.ordinal.startswith("=") else f"{call.name}#{call.ordinal}"


def _place(call: CallDetail | None) -> str:
    assert call is not None
    keyed = call.ordinal.startswith("=")
    return f"{call.name} [{call.ordinal[1:]}]" if keyed else f"{call.name}#{call.ordinal}"


def _call(call: CallDetail | None) -> Any:
    if call is None:
        return MISSING
    return {
        "name": call.name,
        "value": _timeless(call.value),
        "error": call.error,
        "tokens": call.tokens,
        "cost": round(call.cost, 9),
    }


def _timeless(value: Any) -> Any:
    """An agent's calls record their duration; time alone does not make two of them differ."""
    if not isinstance(value, Mapping):
        return value
    return {k: v for k, v in cast("Mapping[str, Any]", value).items() if k != "micros"}


def _asked(visit: Visit | None) -> dict[str, Any]:
    return {} if visit is None else {f"question {i}": _question(q) for i, q in enumerate(visit.questions, 1)}


def _question(question: QuestionDetail) -> dict[str, Any]:
    names = ("type", "prompt", "options", "assignee", "status", "decision", "data", "comment", "by")
    return {name: getattr(question, name) for name in names}


def _spent(visits: Sequence[Visit]) -> RunUsage:
    return RunUsage(
        steps=sum(c.ended_at is not None for c in visits),
        duration=sum(c.duration for c in visits),
        tokens=sum(c.tokens for c in visits),
        cost=round(sum(c.cost for c in visits), 9),
    )
