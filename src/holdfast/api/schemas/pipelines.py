"""Pipelines on the wire, in the form of their specification."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec

from holdfast.api.schemas.common import Name, moment
from holdfast.attractor.human_gates import Gate
from holdfast.attractor.machine_requirements import RequiredAccess
from holdfast.attractor.progress import RunProgress
from holdfast.frontends.dot.diagnostics import Diagnostic
from holdfast.runs.run_view import ShownRun
from holdfast.types.hold import HoldRow
from holdfast.types.status import RunStatus

_OUTCOMES = {RunStatus.completed: "success", RunStatus.failed: "fail", RunStatus.cancelled: "cancelled"}
Text = Annotated[str, msgspec.Meta(max_length=100_000, pattern=r"^[^\x00]*$")]


class SubmitPipeline(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`dot`: the source. `files`: the texts of the files that it names, by their names relative to it; no
    other files are read. `context`: initial values. `simulate`: no model is called. `backend`: the name of
    the one that answers its prompts: `model`, `agent:claude`, or as the operator named it. `strict`: strict
    grammar."""

    dot: Annotated[str, msgspec.Meta(min_length=1)]
    files: Annotated[dict[str, str], msgspec.Meta(max_length=500)] = {}
    context: dict[str, Any] = {}
    simulate: bool = False
    backend: Annotated[str, msgspec.Meta(max_length=200, pattern=r"^[^\s\x00]*$")] = ""
    strict: bool = False
    thread: Name | None = None
    lane: Name | None = None


class CancelPipeline(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=1000)] = "cancelled"


class AnswerQuestion(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`value`: an option's key, label or target, `yes` or `no`, or `skipped`; `text`: free words."""

    value: Text = ""
    text: Text = ""
    comment: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None


class DiagnosticWire(msgspec.Struct, kw_only=True):
    """`line` and `column` count from 1; 0: no position."""

    rule: str
    severity: str
    message: str
    node: str = ""
    edge: list[str] | None = None
    fix: str = ""
    line: int = 0
    column: int = 0


class PipelineWire(msgspec.Struct, kw_only=True):
    """`status` is the run's; `outcome` is success, fail or cancelled once it has ended. `current_node` is the
    last completed one. `completed_nodes` are in order: one that was visited twice is listed twice. `missing`:
    what it needs of a worker and no live one has."""

    id: str
    name: str
    goal: str
    status: RunStatus
    outcome: str | None
    current_node: str
    completed_nodes: list[str]
    node_outcomes: dict[str, str]
    node_retries: dict[str, int]
    failure_reason: str | None
    questions: list[str]
    created_at: str | None
    updated_at: str | None
    ended_at: str | None
    wakes_at: str | None = None
    missing: list[str] = []
    diagnostics: list[DiagnosticWire] = []


class QuestionOption(msgspec.Struct, kw_only=True):
    """`key`: its accelerator; `id`: its id in the hold."""

    id: str
    key: str
    label: str
    to: str | None = None


class QuestionWire(msgspec.Struct, kw_only=True):
    """`id` is the hold's: it can be decided as one too. `type`: yes_no, multiple_choice, freeform or
    confirmation; `approval` and others for questions that are not gates."""

    id: str
    stage: str
    text: str
    type: str
    options: list[QuestionOption]
    default: str | None
    timeout_seconds: float | None
    created_at: str | None
    expires_at: str | None
    assignee: str | None


class QuestionList(msgspec.Struct, kw_only=True):
    items: list[QuestionWire]


class AnswerTaken(msgspec.Struct, kw_only=True):
    """`decision`: of the hold; null if it was skipped."""

    id: str
    status: str
    decision: str | None
    resolved_by: str | None


def diagnostic_wire(found: Diagnostic) -> DiagnosticWire:
    """Without its path: callers must not learn the operator's folders."""
    return DiagnosticWire(
        rule=found.rule,
        severity=str(found.severity),
        message=found.message,
        node=found.node_id,
        edge=None if found.edge is None else list(found.edge),
        fix=found.fix,
        line=found.place.line,
        column=found.place.column,
    )


def brought_wire(found: RequiredAccess) -> DiagnosticWire:
    return DiagnosticWire(
        rule="code_not_allowed",
        severity="error",
        message=str(found),
        node=found.node,
        line=found.place.line,
        column=found.place.column,
    )


def pipeline_wire(
    row: ShownRun, picture: RunProgress, holds: Iterable[HoldRow], found: Iterable[Diagnostic] = ()
) -> PipelineWire:
    reason = str(picture.context.get("failure_reason") or "") or row.error or ""
    return PipelineWire(
        id=row.id,
        name=row.flow,
        goal=str(picture.input.get("graph.goal") or ""),
        status=row.status,
        outcome=_OUTCOMES.get(row.status),
        current_node=picture.current,
        completed_nodes=list(picture.completed),
        node_outcomes=dict(picture.outcomes),
        node_retries=dict(picture.retries),
        failure_reason=reason if row.status is RunStatus.failed else None,
        questions=[hold.id for hold in holds],
        created_at=moment(row.created_at),
        updated_at=moment(row.updated_at),
        ended_at=moment(row.ended_at),
        wakes_at=moment(row.wakes_at),
        missing=list(row.missing),
        diagnostics=[diagnostic_wire(each) for each in found],
    )


def question_wire(hold: HoldRow, gate: Gate | None) -> QuestionWire:
    """`gate`: None for a question that is not a gate's, such as one about a budget."""
    options = hold.options or ()
    shown = [QuestionOption(id=each.id, key=each.id, label=each.label) for each in options]
    if gate is not None:
        ways = {each.id: gate.decided(each.id) for each in options}
        shown = [
            QuestionOption(
                id=each.id,
                key=each.id if (way := ways[each.id]) is None else way.key,
                label=each.label,
                to=None if way is None else way.to,
            )
            for each in options
        ]
    return QuestionWire(
        id=hold.id,
        stage=hold.node,
        text=hold.prompt,
        type=hold.type if gate is None else str(gate.type),
        options=shown,
        default=None if gate is None or gate.default is None else gate.default.id,
        timeout_seconds=None if gate is None else gate.timeout,
        created_at=moment(hold.created_at),
        expires_at=moment(hold.expires_at),
        assignee=hold.assignee,
    )
