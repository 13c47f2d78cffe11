"""Plays a plan without a store: `engine.step` decides, scripted handlers answer, a chooser orders them.

Whatever is played is checked on the way: the records, sealed and opened again, lead a second position
(the shadow) to the same place as the live one; each record has as many events as it says; a value
that a handler was given never changes under it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from holdfast.checkpoint import TypeRegistry
from holdfast.engine.decision import Decision
from holdfast.engine.messages import (
    CancelRequested,
    HandlerFinished,
    HandlersStopped,
    HoldAnswered,
    Message,
    RunRecovered,
    TimerFired,
)
from holdfast.engine.start import begin
from holdfast.engine.step import step
from holdfast.model.apply import apply_record
from holdfast.model.events import derive_events
from holdfast.model.graph import EdgeKind, Graph
from holdfast.model.position import SETTLED, Exec, Position
from holdfast.model.record_bodies import ErrorInfo, IntentBody, SnapshotBody
from holdfast.model.snapshot import dump_position, load_position
from holdfast.runs.driver.load import items_between
from holdfast.runs.record_codec import RecordCodec
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Record
from holdfast.types.status import REPEATABLE
from holdfast.types.value import FrozenDict, FrozenList, freeze, thaw
from tests.properties.graphs import DEFAULTS, Plan

RUN = RunId("6f1c54a0-9d1e-4b7a-8a53-0d8a6a1f2b3c")
CODEC = RecordCodec(TypeRegistry())
MANY = 400  # rounds: far more than any drawn plan needs

Choose = Callable[[int], int]
Key = tuple[str, int]


def first(_count: int) -> int:
    return 0


def last(count: int) -> int:
    return count - 1


def mark(*parts: object) -> int:
    return int.from_bytes(sha256(repr(parts).encode()).digest()[:4], "big")


def fingerprint(view: dict[str, Any]) -> str:
    return sha256(json.dumps(thaw(view), sort_keys=True).encode()).hexdigest()[:8]


def look(pos: Position) -> dict[str, Any]:
    """The position as plain data of its own: nothing in it grows later."""
    return thaw(dump_position(pos))


def stored(pos: Position) -> Position:
    """The position after a journey through a snapshot record."""
    copy = load_position(CODEC.decode(draft_snapshot(dump_position(pos))).position)
    copy.cancelling, copy.cancel_rows = pos.cancelling, list(pos.cancel_rows)
    return copy


def draft_snapshot(plain: dict[str, Any]) -> Record:
    record = Record(0, Kind.snapshot, 0, 0, "", 0, 0, "", "", "", False, 0, b"", b"")
    CODEC.encode(record, SnapshotBody(plain), 1)
    return record


def fold(graph: Graph, journal: list[Record], upto: int | None = None) -> Position:
    """Where the records lead, from the first one on."""
    pos = Position(RUN)
    for record in journal if upto is None else journal[: upto + 1]:
        apply_record(graph, pos, record, CODEC.decode(record))
    return pos


@dataclass
class Ending:
    """What two runs of one plan are compared by."""

    status: str
    state: dict[str, Any]
    settled: set[tuple[str, str, int, str]]
    skipped: Counter[tuple[str, str]]


class Play:
    def __init__(
        self,
        plan: Plan,
        choose: Choose = first,
        *,
        noise: bool = False,
        twins: bool = False,
        breaks: Sequence[str] = (),
    ) -> None:
        self.breaks = list(breaks)
        self.plan, self.graph, self.choose = plan, plan.graph, choose
        self.noise, self.twins = noise, twins
        self.journal: list[Record] = []
        self.bodies: list[Any] = []
        self.running: dict[Key, tuple[int, str]] = {}
        self.calls: Counter[tuple[str, int, int]] = Counter()
        self.shadows: list[Position] = []
        self.stale: list[Message] = []
        self.now = 1_000_000
        self.pos = Position(RUN)
        self.ended = False

    # ---------------------------------------------------------------- from the start, or from a checkpoint
    def start(self) -> Play:
        self.shadows.append(Position(RUN))
        decision = begin(
            self.graph,
            RUN,
            version="v",
            code="c",
            given=FrozenDict({"n": 1}),
            scratch=start_values(),
            mode="barrier",
            now=self.now,
            options={"breaks": self.breaks} if self.breaks else None,
        )
        self.pos = decision.pos
        self._take(decision)
        return self

    def resume(self, journal: list[Record], upto: int) -> Play:
        self.journal = journal[: upto + 1]
        self.bodies = [CODEC.decode(record) for record in self.journal]
        self.pos = fold(self.graph, self.journal)
        self.now = self.pos.at
        if self.pos.status != "running":
            self.ended = True
            return self
        self.shadows.append(fold(self.graph, self.journal))
        self.tell([RunRecovered()])
        return self

    def to_end(self) -> Play:
        for _ in range(MANY):
            if self.ended or not self.go_on():
                return self
        raise AssertionError(f"still going after {MANY} rounds: {self.trail()[-20:]}")

    # ---------------------------------------------------------------- one round
    def go_on(self) -> bool:
        """One more thing happens. False where nothing can: the run has stopped in silence."""
        if self.pos.failing is not None or self.pos.cancelling is not None:
            self._come_to_rest()
            return True
        messages: list[Message] = []
        listed: set[Key] = set()
        for _ in range(1 + (self.choose(3) if self.noise else 0)):
            options = [say for key, say in self._options() if key not in listed]
            if options:
                messages += options[self.choose(len(options))](listed)
        if not messages:
            return False
        if self.noise:
            messages += self._noise()
        self.tell(messages)
        self.stale += [m for m in messages if not isinstance(m, HandlerFinished)]
        return True

    def _options(self) -> list[tuple[Key, Callable[[set[Key]], list[Message]]]]:
        """What may happen next, each with the execution that it is about: one thing at a time for each."""
        options: list[tuple[Key, Callable[[set[Key]], list[Message]]]] = []

        def may(key: Key, say: Callable[[], list[Message]]) -> None:
            options.append((key, lambda told: (told.add(key), say())[1]))

        for key in self.running:
            may(key, lambda key=key: self._finish(key))
        for hold, waiting in self.pos.holds.items():
            may((waiting.scope, waiting.node), lambda hold=hold: self._answer(hold))
        for token, key in self.pos.timers.items():
            may(key, lambda token=token: self._fire(token))
        return options

    def _noise(self) -> list[Message]:
        """Things said twice, and too late. They change nothing."""
        return deepcopy(self.stale[-self.choose(3) :]) if self.stale and self.choose(4) == 0 else []

    def cancel(self) -> None:
        self.tell([CancelRequested(reason="enough", inbox=99)])

    def _come_to_rest(self) -> None:
        self.running = {k: v for k, v in self.running.items() if self._effect(k) not in REPEATABLE}
        if self.running and self.pos.cancelling is None:
            keys = list(self.running)
            self.tell(self._finish(keys[self.choose(len(keys))]))
        else:
            self.running = {}
            self.tell([HandlersStopped()])

    def tell(self, messages: list[Message]) -> Decision:
        self.now += 1000
        twin = stored(self.pos) if self.twins else None
        result = deepcopy(messages)
        decision = step(self.graph, self.pos, messages, self.now)
        if twin is not None:
            again = step(self.graph, twin, result, self.now)
            assert drafts(again) == drafts(decision)
            assert look(twin) == look(self.pos)
            assert [(e.scope, e.node) for e in again.starts] == [(e.scope, e.node) for e in decision.starts]
        self._take(decision)
        return decision

    def _take(self, decision: Decision) -> None:
        for record, body in decision.records:
            self._write(record, body)
        self._same()
        self.ended = decision.ended
        for gone in decision.cancels:
            self.running.pop((gone.scope, gone.node), None)
        if self.pos.failing is None and self.pos.cancelling is None and not self.ended:
            for execution in decision.starts:
                self._begin(execution)

    def _write(self, record: Record, body: Any) -> None:
        CODEC.encode(record, body, 1)
        assert record.seq == len(self.journal)
        assert not self.journal or record.at >= self.journal[-1].at
        self.journal.append(record)
        opened = CODEC.decode(record)
        self.bodies.append(opened)
        lines = list(derive_events(self.graph, RUN, record, opened))
        assert len(lines) == record.events, (Kind(record.kind).name, opened, lines)
        for shadow in self.shadows:
            apply_record(self.graph, shadow, record, CODEC.decode(record))

    def _same(self) -> None:
        live = look(self.pos)
        for shadow in self.shadows:
            there = look(shadow)
            assert there == live, differences(there, live)

    def snapshot(self, *, whole: bool = True) -> None:
        """From here on, a reader who started from a snapshot must see the same too."""
        if self.pos.cancelling is None:
            self.shadows.append(stored(self.pos) if whole else self._indexed())

    def _indexed(self) -> Position:
        """From a snapshot that names long lists by their records, as the worker writes it (D-27)."""
        record = draft_snapshot(dump_position(self.pos, whole=False, by_ref=True))
        load = items_between(CODEC, RUN, lambda *, first, last: self.journal[first : last + 1])
        return load_position(CODEC.decode(record).position, load=load)

    # ---------------------------------------------------------------- handlers
    def _graph_of(self, scope: str) -> Graph:
        return self.pos.scope_graph(self.graph, self.pos.scopes[scope])

    def _effect(self, key: Key) -> str:
        return self._graph_of(key[0]).nodes[key[1]].effect if key in self.pos.execs else "pure"

    def view(self, execution: Exec) -> dict[str, Any]:
        tree = self.pos.scopes[execution.scope].tree
        return {part: dict(tree.see(execution.frame, part)) for part in ("scratch", "input", "artifacts")}

    def _begin(self, execution: Exec) -> None:
        key = (execution.scope, execution.node)
        assert key not in self.running, f"{key} runs twice at once"
        node = self._graph_of(execution.scope).nodes[execution.node]
        if node.effect not in REPEATABLE and execution.intent < 0 and SETTLED not in execution.subs:
            decision = Decision(self.graph, self.pos, self.now)
            body = IntentBody(-1, node.id, "")
            record = decision.draft(Kind.intent, body, node=node.id, execution=execution, effect=node.effect)
            apply_record(self.graph, self.pos, record, body)
            self._write(record, body)
        self.running[key] = (execution.visit, fingerprint(self.view(execution)))

    def _finish(self, key: Key) -> list[Message]:
        """The handler's end. What it was given at its start is still what it was."""
        visit, seen = self.running.pop(key)
        execution = self.pos.execs[key]
        assert execution.visit == visit
        assert fingerprint(self.view(execution)) == seen, "a value changed under a running handler"
        graph = self._graph_of(key[0])
        node, script = graph.nodes[key[1]], self.plan.script
        ended = HandlerFinished(scope=key[0], node=key[1], visit=visit, duration=7)
        if SETTLED in execution.subs:
            return [self._choose_way(graph, execution, ended, seen)]
        self.calls[(*key, visit)] += 1
        if node.id in script.unknown and self.calls[(*key, visit)] == 1:
            ended.outcome, ended.unknown = "fail", True
            ended.error = ErrorInfo("timeout", "TimeoutError", "nobody knows")
        elif execution.failures < script.failures.get(node.id, 0):
            ended.outcome, ended.retryable = "fail", True
            ended.error = ErrorInfo("node_failed", "Planned", f"failure {execution.failures + 1}")
        else:
            tag = mark(key[0], node.id, visit, seen)
            ended.ops = [
                (p, k, op, operand(k, op, node.id, visit, tag)) for p, k, op in script.writes.get(node.id, [])
            ]
            ended.routes = self._routes(graph, key[1], visit, tag)
            ended.output = f"out {tag}" if node.id in script.outputs else None
        return [ended]

    def _choose_way(
        self, graph: Graph, execution: Exec, ended: HandlerFinished, seen: str
    ) -> HandlerFinished:
        """The node is done; only its router is asked (D-26)."""
        settled = execution.subs[SETTLED].value
        ended.ops, ended.outcome = [tuple(op) for op in settled["ops"]], settled["outcome"]
        tag = mark(execution.scope, execution.node, execution.visit, seen)
        ended.routes = self._routes(graph, execution.node, execution.visit, tag)
        return ended

    def _routes(self, graph: Graph, node: int, visit: int, tag: int) -> list[int]:
        chosen: list[int] = []
        for e in graph.out[node]:
            edge = graph.edges[e]
            if edge.loop is not None:
                turns = self.plan.script.turns[edge.source]
                if visit % (turns + 1):
                    chosen.append(e)
            elif edge.kind is EdgeKind.chosen and mark(tag, edge.target) % 3:
                chosen.append(e)
        return chosen

    def _answer(self, hold: str) -> list[Message]:
        waiting = self.pos.holds[hold]
        execution = self.pos.execs[(waiting.scope, waiting.node)]
        if waiting.why == "doubt":
            said = "not_happened"
        elif waiting.why == "break":
            said = "continue"
        else:
            said = ("yes", "no")[mark(waiting.scope, waiting.node, execution.visit) % 2]
        resolution = FrozenDict({"decision": said, "response_data": None})
        return [HoldAnswered(hold=hold, resolution=resolution, by="person", at=self.now, inbox=self._mail())]

    def _fire(self, token: str) -> list[Message]:
        self.now += 3_600_000_000
        return [TimerFired(token=token, inbox=self._mail())]

    def _mail(self) -> int:
        return len(self.journal) + 1

    # ---------------------------------------------------------------- what came of it
    def trail(self) -> list[str]:
        return [
            f"{r.seq} {Kind(r.kind).name} {r.scope}{r.node}.{r.visit} {r.outcome} {b}"
            for r, b in zip(self.journal, self.bodies, strict=True)
        ]

    def moves(self) -> list[tuple[str, str, int, int]]:
        return [tuple(move) for body in self.bodies for move in getattr(body, "moves", ())]

    def ending(self) -> Ending:
        gone = [self.below(move) for move in self.moves() if move[0] == "W"]
        settled = {
            (r.scope, r.node, r.visit, r.outcome)
            for r in self.journal
            if r.kind == Kind.step and not any(r.scope.startswith(path) for path in gone)
        }
        skipped = Counter(
            (scope, self._name(scope, a))
            for what, scope, a, _ in self.moves()
            if what == "K" and not any(scope.startswith(path) for path in gone)
        )
        values = self.pos.scopes[""].tree.values
        state = {part: thaw(values.get(part, {})) for part in ("input", "scratch", "artifacts")}
        return Ending(self.pos.status, state if self.pos.status == "completed" else {}, settled, skipped)

    def below(self, move: tuple[str, str, int, int]) -> str:
        """What the scopes of this node's children begin with."""
        return f"{move[1]}{self._name(move[1], move[2])}."

    def _name(self, scope: str, node: int) -> str:
        return graph_at(self.graph, scope).nodes[node].id


def graph_at(graph: Graph, scope: str) -> Graph:
    for part in scope.split("/")[:-1]:
        node = graph.nodes[graph.index[part.partition(".")[0]]]
        graph = graph.subgraphs[node.map.body if node.map else node.subflow.body]
    return graph


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(k for k in other if k not in one)]
        return [d for k in keys for d in differences(one.get(k, "-"), other.get(k, "-"), f"{where}.{k}")]
    return [] if one == other else [f"{where}: replayed {one!r}, live {other!r}"]


def start_values() -> dict[str, Any]:
    return {key: freeze(value) for key, value in DEFAULTS.items()}


def drafts(decision: Decision) -> list[tuple[Any, ...]]:
    return [
        (
            r.seq,
            r.kind,
            r.at,
            r.node,
            r.visit,
            r.attempt,
            r.scope,
            r.effect,
            r.outcome,
            r.listed,
            r.side,
            thaw_body(b),
        )
        for r, b in decision.records
    ]


def thaw_body(body: Any) -> list[Any]:
    return [thaw(getattr(body, name)) for name in body.__struct_fields__]


def operand(key: str, op: str, node: str, visit: int, tag: int) -> Any:
    if op == "delete":
        return None
    if op in ("sum", "avg"):
        return tag % 10
    if op == "append":
        return FrozenList([f"{node}.{visit}.{tag % 1000}"])
    if op == "concat":
        return f" {node}"
    if op == "merge":
        return FrozenDict({node: FrozenDict({str(visit): tag % 1000})})
    return f"{node}.{visit}.{tag}"
