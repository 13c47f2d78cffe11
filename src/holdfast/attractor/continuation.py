"""What a run takes over from the directory that it continues: the commands that were started and the stages
of branches that were settled there, in another store. Nothing of that is repeated in silence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.attractor.detached_commands import FOLDER, FORKS, PID
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.run_files import as_json, restart_dir, stage_dir, write_or_raise
from holdfast.attractor.status_file import outcome_of
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit

CONTINUES: Final = "internal.continues"
"""In the run's input: the directory that it continues."""
INTENT: Final = "intent.json"
EFFECTS: Final = "effects-"
"""The beginning of the names of folders that say which effects a stage may have had."""
_WITHOUT_INTENTS: Final = frozenset({"worktrees", "artifacts", "visits", FORKS})


class Continuation(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    """The run that the directory was of."""
    folder: str
    restarts: int = 0
    """How often its walk had begun anew; what follows is of its last walk."""
    stage: str = ""
    """The stage that was under way outside of branches."""
    failures: int = 0
    """How many attempts of it had failed."""
    ended: bool = False
    """Whether that stage had failed for good: all its attempts are settled."""
    branches: dict[str, list[dict[str, Any]]] = {}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Continuation | None:
        found: Any = given.get(CONTINUES)
        return None if found is None else msgspec.convert(msgspec.to_builtins(found, enc_hook=dict), cls)

    def settled(self, visit: StageVisit) -> StageOutcome | None:
        """The outcome of a stage of a branch, if it was settled there."""
        stages = self.branches.get(visit.branch, ()) if visit.ctx.restarts == self.restarts else ()
        for stage in stages:
            if stage["node"] == visit.stage.id and stage["visit"] == visit.ctx.visit:
                return outcome_of(stage)
        return None

    def settled_failures(self, visit: StageVisit) -> int | None:
        """How many failed attempts of this visit are settled; None: the whole visit is."""
        if visit.branch or visit.stage.id != self.stage or visit.ctx.restarts != self.restarts:
            return 0
        return None if self.ended else self.failures

    def stage_folder(self, visit: StageVisit) -> Path:
        """Of the stage, in the walk that this one repeats."""
        shared = visit.branch if visit.folder.parent != visit.logs else ""
        return stage_dir(restart_dir(Path(self.folder), visit.ctx.restarts), visit.stage.id, shared)


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """Written before a command starts; `pid` and `exit_code` appear beside it."""

    run: str
    stage: str
    scope: str
    visit: int
    attempt: int
    failures: int
    number: int = 1
    turn: int = 1
    """Which of the stage's commands it is: a fail-closed gate asks its agent twice."""
    idempotency_key: str = ""
    command: str = ""
    """A digest of its words, of an agent and its prompt, or the name of a handler or of a tool of a model."""
    cwd: str = ""
    host: str = ""
    boot_id: str = ""


def write_intent(folder: Path, intent: Intent) -> None:
    """Durable when this returns. Raises OSError."""
    write_or_raise(folder / INTENT, as_json(msgspec.to_builtins(intent)), durable=True)


def read_intent(folder: Path) -> Intent | None:
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return msgspec.json.decode((folder / INTENT).read_bytes(), type=Intent)
    return None


def require_intents(root: Path) -> None:
    """Raises InputError if it is not known which command a folder was made for, or whether it was started:
    it might run again."""
    for at, names, files in os.walk(root):
        here = Path(at)
        begun = here.name.startswith((FOLDER, EFFECTS)) and bool({INTENT, PID} & {*files})
        if begun and read_intent(here) is None:
            raise InputError(
                f"{here / INTENT} cannot be read: it says what was started there.",
                hint=f"Restore it; or look what was done, and remove {here}: the stage runs again then.",
            )
        # In place, which keeps os.walk out of these folders.
        names[:] = [] if begun else [name for name in names if name not in _WITHOUT_INTENTS]


def earlier_command(visit: StageVisit, prefix: str, turn: int = 1) -> tuple[Path, Intent] | None:
    """The folder of the last command of this visit and turn that the continued run started, and whose result
    it did not settle."""
    known = Continuation.of(visit.given)
    if known is None:
        return None
    settled = known.settled_failures(visit)
    if settled is None:
        return None
    found: list[tuple[tuple[int, int, int], Path, Intent]] = []
    for folder in known.stage_folder(visit).glob(f"{prefix}*"):
        intent = read_intent(folder)
        if intent is None or intent.turn != turn:
            continue
        if intent.run != visit.ctx.run_id and _is_same_visit(intent, visit):
            found.append(((intent.failures, intent.attempt, intent.number), folder, intent))
    last = max(found, key=lambda each: each[0], default=None)
    return None if last is None or last[0][0] < settled else (last[1], last[2])


def _is_same_visit(intent: Intent, visit: StageVisit) -> bool:
    return (intent.stage, intent.scope, intent.visit) == (visit.stage.id, visit.branch, visit.ctx.visit)
