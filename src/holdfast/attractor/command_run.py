"""The process of one attempt of a command: where it works, what it is given, its result for the journal."""

from __future__ import annotations

import asyncio
import platform
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from holdfast.agents.operator_sandbox import sandbox_words
from holdfast.agents.tool_environment import hide_keys, tool_environment
from holdfast.attractor import detached_commands
from holdfast.attractor.backends.base import missing_error
from holdfast.attractor.continuation import Intent, write_intent
from holdfast.attractor.directory_owner import other_owner, require_owner
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.run_files import is_refused_here, logs_root_here, write
from holdfast.attractor.status_file import read_status, status_fields
from holdfast.attractor.verdict import VerdictError
from holdfast.attractor.worktree_requirements import working_folder
from holdfast.errors import InputError
from holdfast.types.own_threads import in_thread

CHANGED: Final = "changed"
"""Why a command has no result: it is that of a pipeline which was changed since."""
SANDBOX: Final = "setting:tool-sandbox"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


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
        if not self.same_machine or not (self.folder / detached_commands.LOCK).exists():
            # On another machine its result is known only if its files are on a shared disk.
            return await self._record(await detached_commands.wait_for_exit(self.folder, timeout=None))
        await self.visit.show_settled()
        # Shielded: a thread cannot be cancelled, and a command that it starts afterwards would be unknown.
        beginning = asyncio.ensure_future(in_thread(self._begin))
        try:
            if not await asyncio.shield(beginning):
                await require_owner(self.visit)
            return await self._record(await self._end())
        except asyncio.CancelledError:
            # A worker that shuts down leaves the command to the worker that takes over the run.
            if self.visit.ctx.dropped:
                await asyncio.wait({beginning})
                detached_commands.kill_now(self.folder)
            raise

    async def describe_changed(self) -> dict[str, Any]:
        """What another command left here, which the continued run had started before its pipeline was
        changed."""
        return await self._record(detached_commands.ProcessExit(None, CHANGED))

    async def _end(self) -> detached_commands.ProcessExit:
        limit = self.visit.stage.microseconds("timeout")
        return await detached_commands.wait_for_exit(
            self.folder, timeout=None if limit is None else limit / 1e6
        )

    def _begin(self) -> bool:
        """False: it was not started, because its directory is another run's now."""
        if detached_commands.has_begun(self.folder):
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
        detached_commands.begin(
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
            command=command_digest(self.work),
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
        text = detached_commands.stream_text(path)
        shown = self.hide(text)
        if rewrite and shown != text:
            write(path, shown)
        return shown

    async def _record(self, ended: detached_commands.ProcessExit) -> dict[str, Any]:
        """The result for the journal: after this the files are only for convenience."""
        # A process whose end is not known may still write its files.
        is_over = ended.why not in ("unknown", CHANGED)
        streams = [self.folder / name for name in (detached_commands.STDOUT, detached_commands.STDERR)]
        out, errors = [await in_thread(self._shown, path, rewrite=is_over) for path in streams]
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


def workdir_text(visit: StageVisit) -> str:
    """The folder in which a stage works, in the worktree of its branch if it has one; empty: the worker's."""
    own = visit.stage.text("cwd")
    if visit.workspace is not None and not own:
        return str(visit.workspace.folder)
    folder = working_folder(visit.pipeline, visit.given, own)
    return folder if visit.workspace is None else str(visit.workspace.inside(folder))


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


def machine() -> str:
    """This machine since its last boot: processes from before the boot are gone."""
    try:
        # After a reboot the lock is free and the process id may be another program's.
        boot = _BOOT.read_text().strip()
    except OSError:
        boot = ""
    return f"{platform.node()}/{boot}"


def command_digest(work: str) -> str:
    return sha256(work.encode("utf-8", "replace")).hexdigest()
