"""A prompt for a model: expanded, sent, answered; prompt and response are kept in the stage's folder."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.attractor import rundir
from holdfast.attractor.backends.base import AnyBackend, durably, is_durable, plainly
from holdfast.attractor.backends.choosing import Backends
from holdfast.attractor.failures import CLASS_KEY, TERMINAL, failure_of, raise_if_ours
from holdfast.attractor.handler import Visit
from holdfast.attractor.outcome import Outcome, StageStatus
from holdfast.attractor.statusfile import AUTO_NOTE, NAME, StatusFault, outcome_of, read_status, status_fields
from holdfast.frontends.dot.document import Pipeline, Stage

SHOWN = 200
"""Characters of an answer that later stages see as `last_response`."""


class CodergenHandler:
    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    async def perform(self, visit: Visit) -> Outcome:
        prompt = prompt_of(visit.stage, visit.pipeline)
        folder = visit.folder
        rundir.write(folder / "prompt.md", prompt)
        backend = self._backends.of(visit)
        if is_durable(backend):
            said = await self._durable(backend, visit, prompt, folder)
        else:
            said = await visit.ctx.step("answer", self._answer, backend, visit, prompt, folder, effect="read")
        visit.context.apply_updates(said.get("changes") or {})
        return self._outcome(visit, said, folder)

    async def _answer(self, backend: AnyBackend, visit: Visit, prompt: str, folder: Path) -> dict[str, Any]:
        """As it is recorded: who comes back after a crash finds it and does not ask again."""
        _forget_status(folder)
        before = visit.context.changes()
        try:
            said = told_of(await call_backend(backend, visit, prompt))
        except Exception as error:
            return _failure(error)
        changes = {k: v for k, v in visit.context.changes().items() if before.get(k, ...) != v}
        return {**said, **_status(folder), "changes": changes}

    async def _durable(self, backend: AnyBackend, visit: Visit, prompt: str, folder: Path) -> dict[str, Any]:
        await visit.ctx.step("begin", _forget_status, folder, effect="read")
        try:
            said = told_of(await durably(backend).answer(visit, prompt))
        except Exception as error:
            raise_if_ours(error)
            return _failure(error)
        found = await visit.ctx.step("status", _status, folder, effect="read")
        return {**said, **found}

    def _outcome(self, visit: Visit, said: Mapping[str, Any], folder: Path) -> Outcome:
        """The backend's own outcome, else what the stage wrote as its status, else success (AT-A15)."""
        if "failed" in said:
            return Outcome(
                status=StageStatus.FAIL,
                failure_reason=said["failed"],
                terminal=said["class"] == TERMINAL,
                context_updates={CLASS_KEY: said["class"]},
            )
        if "outcome" in said:
            return outcome_of(said["outcome"])
        text = str(said["text"])
        rundir.write(folder / "response.md", text)
        noted = {"last_stage": visit.stage.id, "last_response": text[:SHOWN]}
        if "fault" in said:
            return _unusable(said["fault"], noted)
        if "status" in said:
            written = outcome_of(said["status"])
            return replaced(written, context_updates={**noted, **written.context_updates})
        if wants_proof(visit.stage, visit.pipeline):
            return _unproven(noted)
        auto = visit.stage.flag("auto_status")
        notes = AUTO_NOTE if auto else f"Stage completed: {visit.stage.id}"
        return Outcome(notes=notes, context_updates=noted)


def prompt_of(stage: Stage, pipeline: Pipeline) -> str:
    """The prompt, else the label, with `$goal` replaced wherever it stands."""
    return (stage.prompt or stage.label).replace("$goal", pipeline.goal)


async def call_backend(backend: AnyBackend, visit: Visit, prompt: str) -> Any:
    """A sync one is called in a thread of its own, so that it holds nobody up."""
    run = plainly(backend).run
    if inspect.iscoroutinefunction(run):
        return await run(visit.stage, prompt, visit.context)
    found = await asyncio.to_thread(run, visit.stage, prompt, visit.context)
    return await found if inspect.isawaitable(found) else found


def told_of(answer: Any) -> dict[str, Any]:
    if isinstance(answer, Outcome):
        return {"outcome": status_fields(answer)}
    return {"text": "" if answer is None else str(answer)}


def wants_proof(stage: Stage, pipeline: Pipeline) -> bool:
    """Fail closed: `auto_status=false` written on a goal gate, or `fail_closed=true` on the graph."""
    if not stage.flag("goal_gate") or stage.flag("auto_status"):
        return False
    return "auto_status" in stage.attrs or pipeline.flag("fail_closed")


def replaced(outcome: Outcome, **changes: Any) -> Outcome:
    return msgspec.structs.replace(outcome, **changes)


def _failure(error: BaseException) -> dict[str, Any]:
    failed = failure_of(error)
    return {"failed": failed.failure_reason, "class": failed.context_updates[CLASS_KEY]}


def _unusable(fault: str, noted: dict[str, Any]) -> Outcome:
    return Outcome(status=StageStatus.FAIL, failure_reason=fault, context_updates=noted)


def _unproven(noted: dict[str, Any]) -> Outcome:
    reason = f"no {NAME} was written, and prose is no proof: this goal gate is fail-closed"
    return Outcome(status=StageStatus.FAIL, failure_reason=reason, context_updates=noted)


def _forget_status(folder: Path) -> None:
    """One of an earlier visit says nothing about this one."""
    (folder / NAME).unlink(missing_ok=True)


def _status(folder: Path) -> dict[str, Any]:
    """What the stage wrote about itself, to be recorded."""
    try:
        found = read_status(folder)
    except StatusFault as fault:
        return {"fault": str(fault)}
    return {} if found is None else {"status": status_fields(found)}
