"""A shell command: run once, whatever happens to the worker in the meantime.

Its folder and its start are recorded before it runs. After a crash the next worker waits for it, or takes its
result; only if neither is possible is the outcome unknown, and the stage's policy decides.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import msgspec

from holdfast.agents.tool_environment import hide_keys, tool_environment
from holdfast.agents.tool_sandbox import sandbox_words
from holdfast.attractor import processes
from holdfast.attractor.backends.base import missing_error
from holdfast.attractor.continuation import Intent, earlier_command, write_intent
from holdfast.attractor.directory_owner import other_owner, require_owner
from holdfast.attractor.failures import failure_of
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.required_access import require_allowed
from holdfast.attractor.run_files import is_refused_here, logs_root_here, make_private, write
from holdfast.attractor.stage_outputs import RUN
from holdfast.attractor.status_file import forget_status, read_status, status_fields
from holdfast.attractor.verdict import VerdictError, outcome_of
from holdfast.attractor.workspace_needs import working_folder
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.runs.context.context import Context

AGAIN, DONE, FAILED = "run again", "it succeeded", "it failed"
CHANGED: Final = "changed"
"""Why a command has no result: it is that of a pipeline which was changed since."""
NOTE: Final = 120
SANDBOX: Final = "setting:tool-sandbox"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def workdir_text(visit: StageVisit) -> str:
    """The folder in which a stage works, in the worktree of its branch if it has one; empty: the worker's."""
    own = visit.stage.text("cwd")
    if visit.workspace is not None and not own:
        return str(visit.workspace.folder)
    folder = working_folder(visit.pipeline, visit.given, own)
    return folder if visit.workspace is None else str(visit.workspace.inside(folder))


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
            left = earlier_command(visit, processes.FOLDER, turn) if number == 1 else None
            if left is not None:
                folder, intent = left
                found = {"folder": str(folder.resolve()), "machine": f"{intent.host}/{intent.boot_id}"}
                return found if intent.command == _digest(work) else {**found, "changed": "true"}
            made.append("here")
            return _place(visit, number)

        # Recorded before the start: after a crash the next worker must know in which folder to look.
        where = await visit.ctx.step("place", place, effect="read")
        here = made or where["machine"] == machine()
        run = self._command(visit, command, Path(where["folder"]), number, turn, work, same_machine=here)
        # CommandRun deduplicates: it starts the command only once, and otherwise waits for it.
        work_of = run.describe_changed if where.get("changed") else run.run
        ended = await visit.ctx.step(RUN, work_of, effect="external", idempotent=True)
        if is_refused_here():
            # Its result is in the journal now, which is encrypted; these files are not.
            shutil.rmtree(where["folder"], ignore_errors=True)
            forget_status(visit.folder)
        visit.outputs.add_streams(ended)
        return ended


class CommandRun:
    """One attempt of the command, in a separate folder."""

    def __init__(
        self,
        visit: StageVisit,
        command: str,
        folder: Path,
        number: int,
        turn: int,
        work: str,
        *,
        same_machine: object,
    ) -> None:
        self.visit = visit
        self.command = command
        self.work = work
        self.folder = folder
        self.number = number
        self.turn = turn
        self.same_machine = bool(same_machine)

    async def run(self) -> dict[str, Any]:
        """Start it unless it has started, and wait for it."""
        if not self.same_machine or not (self.folder / processes.LOCK).exists():
            # On another machine its result is known only if its files are on a shared disk.
            return await self._record(await processes.wait_for_exit(self.folder, timeout=None))
        await self.visit.show_settled()
        # Shielded: a thread cannot be cancelled, and a command that it starts afterwards would be unknown.
        beginning = asyncio.ensure_future(asyncio.to_thread(self._begin))
        try:
            if not await asyncio.shield(beginning):
                await require_owner(self.visit)
            return await self._record(await self._end())
        except asyncio.CancelledError:
            # A worker that shuts down leaves the command to the worker that takes over the run.
            if self.visit.ctx.dropped:
                await asyncio.wait({beginning})
                processes.kill_now(self.folder)
            raise

    async def describe_changed(self) -> dict[str, Any]:
        """What another command left here, which the continued run had started before its pipeline was
        changed."""
        return await self._record(processes.ProcessExit(None, CHANGED))

    async def _end(self) -> processes.ProcessExit:
        limit = self.visit.stage.microseconds("timeout")
        return await processes.wait_for_exit(self.folder, timeout=None if limit is None else limit / 1e6)

    def _begin(self) -> bool:
        """False: it was not started, because its directory is another run's now."""
        if processes.has_begun(self.folder):
            return True
        stage = self.visit.stage
        cwd = workdir_text(self.visit)
        shell = self.shell()
        found = shutil.which(shell)
        if found is None:
            raise InputError(
                f"stage {stage.id!r}: the shell {shell!r} does not exist here.", hint="Set tool.shell."
            )
        if cwd and not Path(cwd).is_dir():
            raise InputError(
                f"stage {stage.id!r}: the folder {cwd!r} does not exist.",
                hint=f"Create {Path(cwd).resolve()} on {platform.node()} before this stage, or correct cwd.",
            )
        env, sandbox = self.environment(), sandbox_of(self.visit)
        write_intent(self.folder, self._intent(cwd))
        run = self.visit.ctx.run_id
        if not is_refused_here() and other_owner(logs_root_here(self.visit.given, run), run) is not None:
            return False
        processes.begin(
            self.folder,
            self.command,
            shell=found,
            cwd=Path(cwd) if cwd else None,
            env=env,
            sandbox=sandbox,
        )
        return True

    def _intent(self, cwd: str) -> Intent:
        ctx = self.visit.ctx
        host, _, boot = machine().partition("/")
        return Intent(
            run=ctx.run_id,
            stage=self.visit.stage.id,
            scope=self.visit.branch,
            visit=ctx.visit,
            attempt=ctx.attempt,
            failures=ctx.failures,
            number=self.number,
            turn=self.turn,
            idempotency_key=ctx.idempotency_key,
            command=_digest(self.work),
            cwd=cwd or str(Path.cwd()),
            host=host,
            boot_id=boot,
        )

    def shell(self) -> str:
        return self.visit.stage.text("tool.shell") or "/bin/sh"

    def environment(self) -> dict[str, str]:
        return environment(self.visit)

    def hide(self, text: str) -> str:
        """Without keys of this process, which a command can read in `/proc`."""
        return hide_keys(text)

    def _shown(self, path: Path, *, rewrite: bool) -> str:
        """`rewrite`: in the file too, because its directory may be copied to others."""
        text = processes.stream_text(path)
        shown = self.hide(text)
        if rewrite and shown != text:
            write(path, shown)
        return shown

    async def _record(self, ended: processes.ProcessExit) -> dict[str, Any]:
        """The result for the journal: after this the files are only for convenience."""
        # A process whose end is not known may still write its files.
        is_over = ended.why not in ("unknown", CHANGED)
        streams = [self.folder / name for name in (processes.STDOUT, processes.STDERR)]
        out, errors = [await asyncio.to_thread(self._shown, path, rewrite=is_over) for path in streams]
        found: dict[str, Any] = {
            "code": ended.code,
            "why": ended.why,
            "seconds": round(ended.seconds, 3),
            "stdout": out,
            "stderr": errors,
        }
        try:
            status = read_status(self.visit.folder, self.hide)
        except VerdictError as fault:
            return {**found, "fault": str(fault)}
        return found if status is None else {**found, "status": status_fields(status)}


def sandbox_of(visit: StageVisit) -> list[str]:
    """The words of the operator's sandbox for the commands of a stage. Raises RequirementsMissingError if it
    cannot be used: that is a fault of this worker, and no outcome of the stage."""
    workdir = Path(workdir_text(visit) or ".")
    common = workdir if visit.workspace is None else visit.workspace.repository.common
    places = {"workdir": workdir, "stage_dir": visit.folder, "logs": visit.logs, "repository": common}
    try:
        return sandbox_words(places)
    except InputError as error:
        raise missing_error([SANDBOX], error) from error


def environment(visit: StageVisit) -> dict[str, str]:
    """The allowed variables of the worker, those that identify this stage, and those of the stage:
    `env.NAME="text"`, or `env.NAME="context.key"` for a value of the context."""
    stage, ctx = visit.stage, visit.ctx
    found = tool_environment()
    found |= {
        "HOLDFAST_RUN_ID": ctx.run_id,
        "HOLDFAST_NODE": stage.id,
        "HOLDFAST_VISIT": str(ctx.visit),
        "HOLDFAST_IDEMPOTENCY_KEY": ctx.idempotency_key,
        "ATTRACTOR_LOGS_ROOT": str(visit.logs.resolve()),
        "ATTRACTOR_STAGE_DIR": str(visit.folder.resolve()),
        "ATTRACTOR_GOAL": visit.pipeline.goal,
    }
    for key in stage.attrs:
        if key.startswith("env."):
            found[key.removeprefix("env.")] = _value(visit, stage.text(key))
    return found


def _value(visit: StageVisit, text: str) -> str:
    if not text.startswith("context."):
        return text
    found = visit.context.get(text)
    return visit.context.get_string(text if found is not None else text.removeprefix("context."))


def _place(visit: StageVisit, number: int) -> dict[str, str]:
    """A folder that no earlier attempt has used."""
    stage_dir = visit.folder
    make_private(stage_dir)
    # A status of an earlier visit would be taken for the result of this command.
    (stage_dir / "status.json").unlink(missing_ok=True)
    name, again = f"{processes.FOLDER}{visit.ctx.visit}-{visit.ctx.attempt}-{number}", 0
    while True:
        folder = stage_dir / (f"{name}.{again}" if again else name)
        try:
            # Without exist_ok: a folder that exists belongs to an attempt that may still run.
            folder.mkdir(mode=0o700)
        except FileExistsError:
            again += 1
            continue
        (folder / processes.LOCK).touch()
        return {"folder": str(folder.resolve()), "machine": machine()}


def machine() -> str:
    """This machine since its last boot: processes from before the boot are gone."""
    try:
        # After a reboot the lock is free and the process id may be another program's.
        boot = _BOOT.read_text().strip()
    except OSError:
        boot = ""
    return f"{platform.node()}/{boot}"


def policy_in_doubt(visit: StageVisit) -> str:
    """AGAIN or FAILED; empty if a person decides."""
    policy = visit.stage.text("in_doubt") or visit.pipeline.text("in_doubt")
    # By default a person decides: nothing outside may happen twice without notice.
    policy = policy or ("retry" if visit.stage.flag("idempotent") else "ask")
    return {"retry": AGAIN, "fail": FAILED}.get(policy, "")


def _digest(work: str) -> str:
    return sha256(work.encode("utf-8", "replace")).hexdigest()


async def _stop_earlier(visit: StageVisit, turn: int) -> None:
    """The command of the former pipeline, if it still runs here: it must not work beside the new one."""
    left = earlier_command(visit, processes.FOLDER, turn)
    if left is not None and f"{left[1].host}/{left[1].boot_id}" == machine():
        await processes.kill(left[0])


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
    out = processes.shown(str(ended["stdout"]))
    lines = [line for line in out.splitlines() if line.strip()]
    return {
        "tool.output": out,
        "tool_stdout": out,
        "tool.stderr": processes.shown(str(ended["stderr"])),
        "tool.last_line": lines[-1].strip() if lines else "",
        "tool.exit_code": ended["code"],
    }


def _exit_text(ended: dict[str, Any]) -> str:
    output = str(ended["stderr"]).strip() or str(ended["stdout"]).strip()
    last = output.splitlines()[-1][:NOTE] if output else ""
    return f"exit code {ended['code']}{': ' + last if last else ''}"


def _failure_reason(visit: StageVisit, ended: dict[str, Any]) -> str:
    if ended["why"] == "timeout":
        return f"timeout: the command took longer than {visit.stage.text('timeout')} and was stopped"
    if ended["why"] == "output":
        return f"the command wrote more than {processes.MAX_STREAM:,} bytes and was stopped"
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
