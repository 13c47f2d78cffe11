"""A shell command: run once, whatever happens to the worker in the meantime.

Its folder and its start are recorded before it runs. After a crash the next worker waits for it, or takes its
result; only if neither is possible is the outcome unknown, and the stage's policy decides.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import msgspec

from holdfast.attractor import detached_commands
from holdfast.attractor.command_run import CHANGED, CommandRun, command_digest, machine, sandbox_of
from holdfast.attractor.continuation import earlier_command
from holdfast.attractor.failures import failure_of
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.long_texts import last_line
from holdfast.attractor.machine_requirements import require_allowed
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.run_files import is_refused_here, make_private
from holdfast.attractor.stage_outputs import RUN
from holdfast.attractor.status_file import forget_status
from holdfast.attractor.verdict import outcome_of
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.runs.context.context import Context

AGAIN, DONE, FAILED = "run again", "it succeeded", "it failed"
NOTE: Final = 120
SOURCE: Final = "source"
"""Why a command of a fork has no result: it ran in a worktree of the run that was forked."""


_turns: WeakKeyDictionary[Context, int] = WeakKeyDictionary()


def next_turn(ctx: Context) -> int:
    """Of the commands of a visit, in the order of their start: the same when it is entered again."""
    number = _turns[ctx] = _turns.get(ctx, 0) + 1
    return number


class ToolHandler:
    def __init__(
        self,
        *,
        allowed: Callable[[StageVisit], str] | None = None,
        command: Callable[..., CommandRun] | None = None,
    ) -> None:
        """`allowed`: returns why a command may not run here, or an empty text. `command`: makes what runs
        it; default: CommandRun."""
        self._allowed = allowed
        self._command = command or CommandRun

    async def perform(self, visit: StageVisit) -> StageOutcome:
        command = visit.stage.text("tool_command")
        if not command:
            return _failed("No tool_command specified", terminal=True)
        if self._allowed is not None:
            require_allowed(visit)
            refused = self._allowed(visit)
            if refused:
                return _failed(refused, terminal=True)
        try:
            ended = await self.once(visit, command)
        except (OSError, InputError) as error:
            return failure_of(error)
        return _outcome(visit, command, ended)

    async def once(
        self,
        visit: StageVisit,
        command: str | Callable[[int], str],
        turn: int = 1,
        work: str = "",
    ) -> dict[str, Any]:
        """Run the command once; again only if a person, or the stage's policy, allows it. `command`: the
        same for every try, or made for each. `turn`: which of the stage's commands it is. `work`: what makes
        it another command, if its words have paths and ids in them."""
        sandbox_of(visit)  # before anything is recorded
        number = 1
        while True:
            line = command if isinstance(command, str) else command(number)
            ended = await self._try(visit, line, number, turn, work or line)
            if ended["why"] not in ("unknown", CHANGED):
                return ended
            is_changed = ended["why"] == CHANGED
            wanted = await _in_doubt(visit, line, number, turn, is_changed=is_changed)
            if wanted == DONE:
                return {**ended, "code": 0, "why": "", "assumed": True}
            if wanted == FAILED:
                return ended
            if is_changed:
                await _stop_earlier(visit, turn)
            number += 1

    async def _try(
        self, visit: StageVisit, command: str, number: int, turn: int, work: str
    ) -> dict[str, Any]:
        made: list[str] = []

        def place() -> dict[str, str]:
            left = earlier_command(visit, detached_commands.FOLDER, turn) if number == 1 else None
            if left is not None:
                folder, intent = left
                found = {"folder": str(folder.resolve()), "machine": f"{intent.host}/{intent.boot_id}"}
                return found if intent.command == command_digest(work) else {**found, "changed": "true"}
            made.append("here")
            return _place(visit, number)

        # Recorded before the start: after a crash the next worker must know in which folder to look.
        where = await visit.ctx.step("place", place, effect="read")
        here = made or where["machine"] == machine()
        run = self._command(visit, command, Path(where["folder"]), number, turn, work, same_machine=here)
        # CommandRun deduplicates: it starts the command only once, and otherwise waits for it.
        work_of = run.describe_changed if where.get("changed") else run.run
        ended = await visit.ctx.step(RUN, work_of, effect="external", idempotent=True)
        if ended is None:
            ended = _in_source(visit)
        if is_refused_here():
            # Its result is in the journal now, which is encrypted; these files are not.
            shutil.rmtree(where["folder"], ignore_errors=True)
            forget_status(visit.folder)
        visit.outputs.add_streams(ended)
        return ended


def _place(visit: StageVisit, number: int) -> dict[str, str]:
    """A folder that no earlier attempt has used."""
    stage_dir = visit.folder
    make_private(stage_dir)
    # A status of an earlier visit would be taken for the result of this command.
    (stage_dir / "status.json").unlink(missing_ok=True)
    name, again = f"{detached_commands.FOLDER}{visit.ctx.visit}-{visit.ctx.attempt}-{number}", 0
    while True:
        folder = stage_dir / (f"{name}.{again}" if again else name)
        try:
            # Without exist_ok: a folder that exists belongs to an attempt that may still run.
            folder.mkdir(mode=0o700)
        except FileExistsError:
            again += 1
            continue
        (folder / detached_commands.LOCK).touch()
        return {"folder": str(folder.resolve()), "machine": machine()}


def _in_source(visit: StageVisit) -> dict[str, Any]:
    """Of a fork: a person says that the command, which the source had started, did its work. What it did in
    a worktree is there."""
    why = "" if visit.workspace is None else SOURCE
    return {"why": why, "code": 0, "stdout": "", "stderr": "", "report": {}, "assumed": not why}


def policy_in_doubt(visit: StageVisit) -> str:
    """AGAIN or FAILED; empty if a person decides."""
    policy = visit.stage.text("in_doubt") or visit.pipeline.text("in_doubt")
    # By default a person decides: nothing outside may happen twice without notice.
    policy = policy or ("retry" if visit.stage.flag("idempotent") else "ask")
    return {"retry": AGAIN, "fail": FAILED}.get(policy, "")


async def _stop_earlier(visit: StageVisit, turn: int) -> None:
    """The command of the former pipeline, if it still runs here: it must not work beside the new one."""
    left = earlier_command(visit, detached_commands.FOLDER, turn)
    if left is not None and f"{left[1].host}/{left[1].boot_id}" == machine():
        await detached_commands.kill(left[0])


async def _in_doubt(visit: StageVisit, command: str, number: int, turn: int, *, is_changed: bool) -> str:
    stage = visit.stage
    policy = policy_in_doubt(visit)
    if policy:
        return policy
    # The text is compared with the recorded one: a changed text would stop runs that wait here.
    text = (
        f"Stage {stage.id!r} had started another command before its pipeline was changed, and the result of "
        f"that was not used. Look what it did. {AGAIN!r} stops it and runs the command of this pipeline. "
        "What now?"
        if is_changed
        else f"The command of stage {stage.id!r} was started, and how it ended is not known. "
        "Look whether it did its work. What now?"
    )
    reply = await visit.ctx.ask(
        text,
        options=[AGAIN, DONE, FAILED],
        context={"command": command, "stage": stage.id, "try": number},
        key=f"doubt.{number}" if turn == 1 else f"doubt.{turn}.{number}",
    )
    return str(reply.decision)


def _outcome(visit: StageVisit, command: str, ended: dict[str, Any]) -> StageOutcome:
    result = _context_of(ended)
    if ended["why"]:
        return _failed(_failure_reason(visit, ended), context_updates=result)
    status = outcome_of(ended["status"]) if "status" in ended else None
    if ended["code"] != 0:
        # A failed command cannot report success by its status
        # file, but it can give the reason of its failure.
        if status is not None and status.status not in (StageStatus.SUCCESS, StageStatus.PARTIAL_SUCCESS):
            return _with_context(status, result)
        return _failed(_exit_text(ended), context_updates=result)
    if "fault" in ended:
        return _failed(ended["fault"], context_updates=result)
    if status is not None:
        return _with_context(status, result)
    return StageOutcome(context_updates=result, notes=f"Tool completed: {command}")


def _with_context(status: StageOutcome, shown: dict[str, Any]) -> StageOutcome:
    return msgspec.structs.replace(status, context_updates={**shown, **status.context_updates})


def _context_of(ended: dict[str, Any]) -> dict[str, Any]:
    """The specification's `tool.output`, and the names that existing pipelines read."""
    out = detached_commands.shown(str(ended["stdout"]))
    lines = [line for line in out.splitlines() if line.strip()]
    return {
        "tool.output": out,
        "tool_stdout": out,
        "tool.stderr": detached_commands.shown(str(ended["stderr"])),
        "tool.last_line": lines[-1].strip() if lines else "",
        "tool.exit_code": ended["code"],
    }


def _exit_text(ended: dict[str, Any]) -> str:
    last = (last_line(str(ended["stderr"])) or last_line(str(ended["stdout"])))[:NOTE]
    return f"exit code {ended['code']}{': ' + last if last else ''}"


def _failure_reason(visit: StageVisit, ended: dict[str, Any]) -> str:
    if ended["why"] == "timeout":
        return f"timeout: the command took longer than {visit.stage.text('timeout')} and was stopped"
    if ended["why"] == "output":
        return f"the command wrote more than {detached_commands.MAX_STREAM:,} bytes and was stopped"
    if ended["why"] == SOURCE:
        return "the command did its work in a worktree of the run that was forked: its files are not here"
    if ended["why"] == CHANGED:
        return "another command of this stage had been started before its pipeline was changed"
    return "the command was started, but its result is unknown"


def _failed(
    reason: str, *, terminal: bool = False, context_updates: dict[str, Any] | None = None
) -> StageOutcome:
    return StageOutcome(
        status=StageStatus.FAIL,
        failure_reason=reason,
        terminal=terminal,
        context_updates=context_updates or {},
    )
