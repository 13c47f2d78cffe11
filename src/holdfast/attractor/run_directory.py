"""The run directory, derived from the journal: record by record, it computes the contents of the files.
Conversations are not in it: the journal has them, a checkpoint file does not.

Only what a record changes is computed again; values of the context are kept in encoded form, as they are
written to the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from holdfast.agents.tool_call import RESULT
from holdfast.attractor.artifacts import FOLDER, artifact_record, is_large
from holdfast.attractor.branch_files import FOLDER as BRANCHES
from holdfast.attractor.branch_files import BranchProgress
from holdfast.attractor.context import copied
from holdfast.attractor.continuation import Continuation
from holdfast.attractor.conversations import PREFIX as SESSIONS
from holdfast.attractor.handler import AT_ONCE
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.run_files import (
    CHECKPOINT,
    DOCUMENT,
    MANIFEST,
    PLAIN,
    PREAMBLE,
    PROMPT,
    RESPONSE,
    SOURCE,
    RunFile,
    as_json,
    encode,
    execution_outcome,
    json_list,
    json_object,
    restart_dir,
    safe_name,
    stage_dir,
    stage_outcome,
)
from holdfast.attractor.stage_outputs import (
    DIFF,
    EXCHANGES,
    FILES,
    RUN,
    STREAMS,
    bounded,
    recorded_diff,
    visit_file,
)
from holdfast.attractor.status_file import NAME, status_fields
from holdfast.attractor.walk_position import WalkPosition
from holdfast.checkpoint.visit import Visit
from holdfast.model.events import graph_at
from holdfast.model.graph import Graph, NodeKind
from holdfast.model.position import Position
from holdfast.model.record_bodies import AttemptBody, ChunkBody, EndBody, StepBody, SubstepBody
from holdfast.types.clock import to_datetime
from holdfast.types.ids import RunId, checkpoint_id
from holdfast.types.record import Kind, Record

FIDELITY = "internal.fidelity"
ASKING = frozenset({"codergen", "parallel.fan_in"})
"""Stages that ask a model."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the files of a run have in common."""

    run: str
    name: str
    version: str
    graph: Graph
    started_at: int
    shared: frozenset[str] = frozenset()
    """Stages that several branches share: each has a folder per branch."""


class RunDirectory:
    """`pos` is the run's position; the reader of the journal advances it."""

    def __init__(
        self, facts: Facts, pos: Position, brought: Iterable[Visit] = (), *, every: bool = False
    ) -> None:
        """`every`: with the files that stages write themselves, not only the first time: they run on other
        machines."""
        self.facts, self.pos, self._every = facts, pos, every
        self._stands = WalkPosition(facts.graph, pos)
        self.pages: dict[Path, RunFile] = {}
        """Files that have changed."""
        self.stale = True
        """Whether the checkpoint is to be written."""
        # Whether files that stages write themselves are included: only the first time.
        self._whole = True
        self._restarts = self._stands.restarts
        self._context: dict[str, bytes] = {}
        self._completed: list[bytes] = []
        self._history: list[bytes] = []
        self._logs: list[bytes] = []
        self._outcomes: dict[str, str] = {}
        self._inside: dict[str, str] = {}
        """Outcomes of stages inside branches."""
        self._branches: dict[str, BranchProgress] = {}
        self._changed: set[str] = set()
        """The branches whose checkpoints are to be written."""
        self._artifacts: dict[str, dict[str, Any]] = {}
        self._streams: dict[Path, str] = {}
        """What the commands of a stage have written so far."""
        self._outcome: dict[str, Any] | None = None
        self._before: tuple[str, dict[str, str], dict[str, Any] | None] | None = None
        self._current, self._edge, self._status = "", "", pos.status
        self._error = "" if pos.failing is None else pos.failing.message
        self._at, self._seq = pos.at, max(pos.head, 0)
        self._read_context()
        self._read_branches()
        for execution in brought:
            self._add_earlier(execution)
        self._begin_directory()

    # ------------------------------------------------------------------ the files
    @property
    def folder(self) -> Path:
        """The folder of the current walk, relative to the root."""
        return restart_dir(Path(), self._restarts)

    def checkpoint(self, goes_on_in: str = "") -> str:
        """The keys of the specification, of the checkpoint proposal, and others that a resume needs."""
        fields: dict[str, bytes] = {
            "timestamp": encode(to_datetime(self._at).isoformat()),
            "current_node": encode(self._current),
            "completed_nodes": json_list(self._completed),
            "node_retries": encode(self._stands.retries),
            "context": json_object(self._context),
            "logs": json_list(self._logs),
            "run_id": encode(self.facts.run),
            "pipeline_name": encode(self.facts.name),
            "status": encode(self._status),
            "outcome": encode(self._outcome),
            "node_outcomes": encode({**self._inside, **self._outcomes}),
            "node_history": json_list(self._history),
            "branches": encode({each.scope: each.summary for each in self._branches.values()}),
            "goal_gate_status": encode(self._stands.gates),
            "fidelity_state": encode(self._fidelity()),
            "artifacts": encode(self._artifacts),
            **self._position(),
            "goes_on_in": encode(goes_on_in or None),
        }
        return json_object(fields, "").decode() + "\n"

    def _position(self) -> dict[str, bytes]:
        """The selected edge, if any: a resume continues at its target, else it selects an edge."""
        onward = self._stands.under_way if self._status in ("running", "failed") else ""
        return {
            "edge_selected": encode(bool(onward)),
            "selected_edge": encode(self._edge or None),
            "next_node": encode(onward or None),
            "error": encode(self._error),
            "visits": encode(self._stands.visits),
            "counters": encode({"restarts": self._restarts, **self._stands.counters}),
            "graph_version": encode(self.facts.version),
            "seq": encode(self._seq),
            "checkpoint_id": encode(checkpoint_id(RunId(self.facts.run), self._seq)),
        }

    def take(self, *, whole: bool = True) -> dict[Path, str]:
        """The files to write; checkpoints come last, and those of earlier walks after that of this one: they
        point to it. `whole`: also the files that stages write themselves, because the folder is empty."""
        self._write_branches()
        found, self.pages = self.pages, {}
        if self._every:
            # The worker that runs a stage now must not find its files from an earlier visit.
            busy = self._folders_under_way()
            self.pages = {path: page for path, page in found.items() if path.parent in busy}
            found = {path: page for path, page in found.items() if path not in self.pages}
        before = {path: page for path, page in found.items() if path.name == CHECKPOINT and _is_main(path)}
        found = {path: page for path, page in found.items() if path not in before}
        if self.stale:
            found[self.folder / CHECKPOINT] = RunFile(self.checkpoint())
            self.stale = False
        found |= {path: page for path, page in before.items() if path not in found}
        self._whole = self._every
        return {path: page.text for path, page in found.items() if whole or not page.by_stage}

    def _folders_under_way(self) -> set[Path]:
        found: set[Path] = set()
        for execution in self.pos.execs.values():
            node = graph_at(self.facts.graph, execution.scope).nodes[execution.node].id
            found.add(stage_dir(self.folder, node, execution.scope if node in self.facts.shared else ""))
        return found

    def _write_branches(self) -> None:
        for scope in self._changed:
            branch = self._branches[scope]
            self.pages[self.folder / branch.path] = RunFile(branch.checkpoint(self.facts.run))
        self._changed = set()

    # ------------------------------------------------------------------ a record
    def note(self, record: Record, body: Any) -> None:
        """Called after `pos` was advanced by the record, with large values loaded."""
        if record.kind == Kind.step:
            self._step(record, body)
        elif record.kind == Kind.substep:
            self._substep(record, body)
        elif record.kind == Kind.chunk:
            self._chunk(record, body)
        elif record.kind == Kind.attempt:
            self._attempt(record, body)
        elif record.kind == Kind.end:
            self._end(record, body)

    def _step(self, record: Record, body: StepBody) -> None:
        self._keep_artifacts(body)
        outcome = stage_outcome(self.facts.graph, record, body)
        self._page(record, NAME, lambda: as_json(status_fields(outcome)))
        if self._is_by_stage(record):
            self._page(record, visit_file(record.visit, "verdict"), lambda: as_json(status_fields(outcome)))
        self._history.append(encode([record.node, str(record.outcome)]))
        for name in STREAMS:
            self._streams.pop(self._place(record, visit_file(record.visit, name)), None)
        if record.scope:
            self._step_in_branch(record, outcome)
            return
        self._error = outcome.failure_reason if body.halts else ""
        self._status = "failed" if body.halts else "running"
        if body.halts:
            self._before = (self._current, dict(self._outcomes), self._outcome)
        if record.outcome != "unknown":
            self._done(record.node, str(record.outcome), status_fields(outcome))
        self._edge = next(iter(self._edges(body)), "")
        self._touch(record)
        for partition, key, op, value in body.ops:
            if partition == "scratch" and op == "set" and not key.startswith(SESSIONS):
                self._context[key] = encode(copied(value))
            elif partition == "scratch":
                self._context.pop(key, None)
        if self._stands.restarts != self._restarts:
            self._restart()

    def _step_in_branch(self, record: Record, outcome: StageOutcome) -> None:
        self._inside[record.node] = str(record.outcome)
        if record.outcome != "unknown":
            branch = self._branches.setdefault(record.scope, BranchProgress(record.scope))
            branch.add(record.node, record.visit, outcome, record.at)
            self._changed.add(record.scope)
        self._touch(record)

    def _read_branches(self) -> None:
        """What the run took over from a directory."""
        known = Continuation.of(self.pos.scopes[""].tree.see(0, "input"))
        for scope, stages in () if known is None else known.branches.items():
            self._branches[scope] = BranchProgress(scope, stages)
            self._changed.add(scope)
            self._inside |= {stage["node"]: str(stage["outcome"]) for stage in stages}

    def _done(self, node: str, outcome: str, fields: dict[str, Any]) -> None:
        self._current = node
        self._completed.append(encode(node))
        self._outcomes[node] = outcome
        self._outcome = fields

    def _edges(self, body: StepBody) -> list[str]:
        edges = self.facts.graph.edges
        return [edges[a].id for what, scope, a, _ in body.moves if what in ("F", "G") and not scope]

    def _substep(self, record: Record, body: SubstepBody) -> None:
        """Prompt and answer of a model are part of the record of its answer."""
        value: Any = body.value
        if isinstance(value, Mapping) and body.name in EXCHANGES and self._handler(record) in ASKING:
            for key, name in (("prompt", PROMPT), ("preamble", PREAMBLE), ("text", RESPONSE)):
                text = cast("Mapping[str, Any]", value).get(key)
                if isinstance(text, str):
                    self._page(record, name, partial(str, text))
                    if name == RESPONSE and text:
                        self._page(record, visit_file(record.visit, "response"), partial(bounded, text))
        diff = recorded_diff(body.name, value)
        if diff:
            self._page(record, visit_file(record.visit, DIFF), partial(str, diff))
        if isinstance(value, Mapping) and body.name == RUN:
            for name in STREAMS:
                self._add_stream(record, name, str(cast("Mapping[str, Any]", value).get(name) or ""))

    def _add_stream(self, record: Record, name: str, text: str) -> None:
        """A stage may run several commands, one after the other."""
        file = visit_file(record.visit, name)
        place = self._place(record, file)
        if text and self._whole:
            whole = self._streams[place] = bounded(self._streams.get(place, "") + text)
            self._page(record, file, partial(str, whole))

    def _chunk(self, record: Record, body: ChunkBody) -> None:
        new = [encode(_line(data)) for kind, data in body.items if kind == "log"]
        self._logs += new
        if new:
            self._touch(record)

    def _attempt(self, record: Record, body: AttemptBody) -> None:
        if body.reason == "retry":
            # The next attempt leaves outputs of its own.
            for name in FILES:
                place = self._place(record, visit_file(record.visit, name))
                self.pages.pop(place, None)
                self._streams.pop(place, None)
        if body.reason in ("retry", "resumed") and not record.scope:
            self._undo_failure()
            self._status, self._error = "running", ""
            self._touch(record)

    def _undo_failure(self) -> None:
        """A resume runs the stage again that had failed the run, so it no longer counts as ended."""
        if self._before is not None:
            self._completed.pop()
            self._current, self._outcomes, self._outcome = self._before
            self._before = None

    def _end(self, record: Record, body: EndBody) -> None:
        self._status = body.status
        self._error = "" if body.error is None else body.error.message
        self._touch(record)

    def _touch(self, record: Record) -> None:
        """The checkpoint names the record it is from, so that every writer produces the same file."""
        self.stale = True
        self._at, self._seq = record.at, record.seq

    # ------------------------------------------------------------------ parts
    def _begin_directory(self) -> None:
        spec, values = self.facts.graph.spec, self.pos.scopes[""].tree.see(0, "scratch")
        goal = values.get("graph.goal", spec.defaults.get("graph.goal", ""))
        fields = {
            "name": self.facts.name,
            "goal": str(goal),
            "start_time": to_datetime(self.facts.started_at).isoformat(),
            "run_id": self.facts.run,
            "graph_version": self.facts.version,
        }
        if self._restarts:
            before = restart_dir(Path(), self._restarts - 1)
            fields |= {"restart": self._restarts, "parent": str(Path("..") / before)}
        self.pages[self.folder / MANIFEST] = RunFile(as_json(fields))
        document: Any = spec.document if isinstance(spec.document, dict) else {}
        self.pages[self.folder / SOURCE] = RunFile(str(document.get("source", "")))
        self.pages[self.folder / DOCUMENT] = RunFile(as_json(document))

    def _restart(self) -> None:
        """The last checkpoint of the old directory points to the new one."""
        self._write_branches()
        restarts = self._stands.restarts
        anew = restart_dir(Path(), restarts)
        self.pages[self.folder / CHECKPOINT] = RunFile(
            self.checkpoint(str(Path("..") / anew if self._restarts else anew))
        )
        self._restarts = restarts
        self._completed, self._history, self._logs, self._outcomes = [], [], [], {}
        self._inside, self._branches = {}, {}
        self._current, self._outcome = "", None
        self._read_context()
        self._begin_directory()
        self.stale = True

    def _read_context(self) -> None:
        values = self.pos.scopes[""].tree.see(0, "scratch")
        kept = {key: value for key, value in values.items() if not key.startswith(SESSIONS)}
        self._context = {key: encode(copied(value)) for key, value in kept.items()}

    def _add_earlier(self, execution: Visit) -> None:
        """The history before the first record: of a fork, a pruned run or another directory."""
        outcome = execution_outcome(execution)
        if outcome is not None:
            fields = status_fields(outcome)
            self._page(execution, NAME, lambda: as_json(fields))
        if execution.scope:
            return
        self._history.append(encode([execution.node, execution.outcome]))
        if execution.settled:
            outcome = outcome or StageOutcome(status=execution.outcome)
            self._done(execution.node, execution.outcome, status_fields(outcome))

    def _page(self, record: Record | Visit, name: str, make: Callable[[], str]) -> None:
        node = graph_at(self.facts.graph, record.scope).node_named(record.node)
        by_stage = self._is_by_stage(record)
        if (node.walk or PLAIN).terminal or (by_stage and not self._whole):
            return
        self.pages[self._place(record, name)] = RunFile(make(), by_stage=by_stage)

    def _place(self, record: Record | Visit, name: str) -> Path:
        scope = record.scope if record.node in self.facts.shared else ""
        return stage_dir(self.folder, record.node, scope) / name

    def _is_by_stage(self, record: Record | Visit) -> bool:
        """Whether its files are written by the worker that runs it."""
        node = graph_at(self.facts.graph, record.scope).node_named(record.node)
        return node.kind is NodeKind.task and node.metadata.get("handler") not in AT_ONCE

    def _handler(self, record: Record) -> str:
        node = graph_at(self.facts.graph, record.scope).node_named(record.node)
        return str(node.metadata.get("handler", ""))

    def _keep_artifacts(self, body: StepBody) -> None:
        for partition, key, _, value in body.ops:
            if partition == "artifacts":
                self._keep_artifact(key, artifact_record(value))

    def _keep_artifact(self, key: str, kept: Mapping[str, Any] | None) -> None:
        path = Path(FOLDER) / f"{safe_name(key)}.json"
        if kept is None:
            self._artifacts.pop(key, None)
            self.pages.pop(self.folder / path, None)
            return
        # The stage wrote a large one itself; a result that a model got only in part has a file of any size.
        of_record = kept.get("of") == RESULT
        large = of_record or is_large(kept)
        self._artifacts[key] = {"name": kept["name"], "path": str(path) if large else None}
        if large:
            self.pages[self.folder / path] = RunFile(as_json(copied(kept["data"])), by_stage=not of_record)

    def _fidelity(self) -> dict[str, Any]:
        """The fidelity of the last stage that asked a model, and its summaries."""
        kept = self._context.get(FIDELITY)
        noted: Any = {} if kept is None else msgspec.json.decode(kept)
        default = self.facts.graph.spec.defaults.get("graph.default_fidelity") or "compact"
        found = cast("dict[str, Any]", noted) if isinstance(noted, dict) else {}
        return {"mode": default, "summaries": {}, **found}


def _is_main(path: Path) -> bool:
    return BRANCHES not in path.parts


def _line(logged: Any) -> str:
    """What a stage emits as log is text; `ctx.log` adds a level."""
    return str(cast("Mapping[str, Any]", logged).get("text", "") if isinstance(logged, Mapping) else logged)
