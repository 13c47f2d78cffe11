"""Effects of handlers and of tools of models.

Only the journal has their records. So the directory says, before the first of a stage, that there may be one:
where it is continued on another store, a person is asked before the stage does it again.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from holdfast.agents.agent import AgentTool
from holdfast.agents.tools import Tool, ToolError
from holdfast.attractor.command_run import machine
from holdfast.attractor.continuation import (
    CONTINUES,
    EFFECTS,
    Intent,
    earlier_command,
    read_intent,
    write_intent,
)
from holdfast.attractor.directory_owner import require_owner
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.tool import AGAIN, DONE, FAILED, policy_in_doubt
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.run_files import is_refused_here
from holdfast.model.user_code.boundary import call as call_code
from holdfast.types.status import REPEATABLE


async def mark_effect(visit: StageVisit, name: str) -> None:
    """Durable when this returns; once for each attempt. `name`: of the handler or tool. Raises OSError."""
    if is_refused_here():
        return
    ctx = visit.ctx
    folder = visit.folder / f"{EFFECTS}{ctx.visit}-{ctx.attempt}-{ctx.run_id[:8]}"
    if read_intent(folder) is not None:
        return
    await visit.show_settled()
    host, _, boot = machine().partition("/")
    intent = Intent(
        run=ctx.run_id,
        stage=visit.stage.id,
        scope=visit.branch,
        visit=ctx.visit,
        attempt=ctx.attempt,
        failures=ctx.failures,
        idempotency_key=ctx.idempotency_key,
        command=name,
        host=host,
        boot_id=boot,
    )
    write_intent(folder, intent)
    await require_owner(visit)


def with_mark(visit: StageVisit, tool: Tool) -> Tool:
    """The same tool; its calls are marked if a stage that begins anew might repeat what they did. Of an agent
    as a tool those of its own tools."""
    if isinstance(tool, AgentTool):
        return tool.with_each_tool(lambda each: with_mark(visit, each))
    if tool.fn is None or tool.effect in REPEATABLE:
        return tool
    made = copy(tool)
    made.fn = _marked(visit, tool.name, tool.fn)
    return made


def _marked(visit: StageVisit, name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    async def call(**given: Any) -> Any:
        try:
            await mark_effect(visit, name)
        except OSError as error:
            raise ToolError(f"the call was not made: {error.filename} cannot be written") from error
        return await call_code(fn, **given)

    return call


async def outcome_of_earlier_effects(visit: StageVisit) -> StageOutcome | None:
    """None: the stage is to run. It is asked about if the continued run had begun it and it may have had
    effects. Files that it left in a worktree are there, if that came with the directory."""
    if CONTINUES not in visit.given:
        return None

    def find() -> str:
        left = earlier_command(visit, EFFECTS)
        return "" if left is None else left[1].command

    name = await visit.ctx.step("earlier effects", find, effect="read", key="earlier effects")
    wanted = (await _wanted(visit, name)) if name else AGAIN
    if wanted == AGAIN:
        return None
    if wanted == DONE:
        return StageOutcome(notes=f"{visit.stage.id} was done before the run was continued here")
    reason = f"stage {visit.stage.id!r} had begun ({name}), and how it ended is not known"
    return StageOutcome(status=StageStatus.FAIL, failure_reason=reason)


async def _wanted(visit: StageVisit, name: str) -> str:
    policy = policy_in_doubt(visit)
    if policy:
        return policy
    reply = await visit.ctx.ask(
        f"Stage {visit.stage.id!r} had begun and may have had effects ({name}), and how it ended is not "
        "known. Look whether it did its work. If it runs again, it begins anew, with the files as they are. "
        "What now?",
        options=[AGAIN, DONE, FAILED],
        context={"stage": visit.stage.id, "began with": name},
        key="doubt.effects",
    )
    return str(reply.decision)
