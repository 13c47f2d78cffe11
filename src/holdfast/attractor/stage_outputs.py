"""What a visit of a stage leaves, whole: its answer, the streams of its command, its verdict, its changes.

The journal has each of them, and the run directory a file per visit; `artifact_names` are the paths of these
files in the directory. Later stages get a short text of the latest ones with the context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from holdfast.attractor import run_files
from holdfast.attractor.long_texts import byte_size, ends_of
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.status_file import status_fields
from holdfast.model.branches import BRANCH_NOTES
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from holdfast.attractor.context import PipelineContext
    from holdfast.attractor.handler import StageVisit

LARGEST: Final = 64 * 2**20
"""Bytes of one output that are kept."""
FOLDER: Final = "visits"
TEXTS: Final = "internal.text."
"""In the context, before a slot: the texts of the latest stages, for preambles."""
SLOTS: Final = 6
TEXT_BYTES: Final = 12_000
"""Bytes of such a text: a whole preamble."""
RUN: Final = "run"
"""The sub-step under which the journal records how a command ended, with its streams."""
EXCHANGES: Final = frozenset({"begin", "answer", "status"})
"""The same for what a stage asked and was answered. The agent of a model has records of its own, with its
whole prompt and the results of its tools."""
DIFF, COMMIT = "diff", "commit"
"""The same for what a stage changed, alone or with the commit of its worktree."""
STREAMS: Final = ("stdout", "stderr")
FILES: Final[Mapping[str, str]] = {
    "response": "response.md",
    "stdout": "stdout",
    "stderr": "stderr",
    "verdict": "verdict.json",
    "diff": "diff",
}
"""What a visit may leave, and the end of its file's name."""


class StageOutputs(msgspec.Struct):
    """Filled while the stage runs. `diff`: what it changed in its worktree."""

    response: str = ""
    stdout: str = ""
    stderr: str = ""
    diff: str = ""

    def add_streams(self, ended: Mapping[str, Any]) -> None:
        """Of each command of the stage; an agent may be asked twice."""
        self.stdout += str(ended.get("stdout") or "")
        self.stderr += str(ended.get("stderr") or "")

    @property
    def texts(self) -> dict[str, str]:
        """Those that are not empty, each within its limit."""
        return {name: bounded(getattr(self, name)) for name in self.names}

    @property
    def names(self) -> list[str]:
        """Of those that are not empty."""
        return [name for name, text in msgspec.structs.asdict(self).items() if text]

    @property
    def length(self) -> int:
        """Characters in all."""
        return sum(map(len, msgspec.structs.asdict(self).values()))


def bounded(text: str) -> str:
    return middle_cut(text, LARGEST)


def middle_cut(text: str, limit: int, where: str = "", size: int = 0) -> str:
    """Within a number of bytes: a fifth of it from the beginning, four fifths from the end. `size`: of the
    text that this one was cut from, in bytes."""
    return _cut(text, limit, where, size, heads=5)


def tail_cut(text: str, limit: int, where: str = "", size: int = 0) -> str:
    """Within a number of bytes: the end."""
    return _cut(text, limit, where, size, heads=0)


def _cut(text: str, limit: int, where: str, size: int, *, heads: int) -> str:
    whole = byte_size(text, limit)
    if whole <= limit:
        return text
    note = f"[... {{}} bytes left out{f'; the whole is in {where}' if where else ''} ...]\n"
    room = max(0, limit - len(note.encode()) - 9)
    head, tail = ends_of(text, room // heads if heads else 0, room)
    tail = tail[len(head) :]
    said = note.format(max(size, whole) - len(head) - len(tail))
    begin = f"{head.decode('utf-8', 'ignore')}\n" if head else ""
    return f"{begin}{said}{tail.decode('utf-8', 'ignore')}"


def recorded_diff(name: str, value: Any) -> str:
    """What a sub-step says about changes; empty: nothing."""
    if name == COMMIT and isinstance(value, Mapping):
        value = cast("Mapping[str, Any]", value).get(DIFF)
    return bounded(value) if name in (DIFF, COMMIT) and isinstance(value, str) else ""


def visit_file(visit: int, name: str) -> str:
    """In the folder of the stage."""
    return f"{FOLDER}/{visit}.{FILES[name]}"


def artifact_names(visit: StageVisit) -> dict[str, str]:
    """The files of this visit, relative to the run's directory."""
    folder = visit.folder.relative_to(visit.logs) if visit.folder.is_relative_to(visit.logs) else visit.folder
    names = [*visit.outputs.names, "verdict"]
    return {name: str(folder / visit_file(visit.ctx.visit, name)) for name in names}


def write_outputs(visit: StageVisit, verdict: StageOutcome) -> None:
    """The files of this visit. An earlier attempt may have left others."""
    texts = {**visit.outputs.texts, "verdict": run_files.as_json(status_fields(verdict))}
    for name in FILES:
        path = visit.folder / visit_file(visit.ctx.visit, name)
        if name in texts:
            run_files.write(path, texts[name])
        elif visit.ctx.attempt > 1:
            path.unlink(missing_ok=True)


# ---------------------------------------------------------------------- short texts, in the context
class StageText(msgspec.Struct, frozen=True):
    """The answer of a stage, or the output of its failure. `number`: of its end, in the order of all."""

    stage: str
    number: int
    visit: int
    outcome: str
    text: str
    where: str = ""
    reason: str = ""
    size: int = 0
    """Bytes of the whole text, if this is not the whole."""

    @property
    def failed(self) -> bool:
        return self.outcome == StageStatus.FAIL


def text_updates(visit: StageVisit, outcome: StageOutcome, number: int) -> dict[str, Any]:
    """What the end of a stage adds to the context. `number`: of its end."""
    found = text_of(visit, outcome, number)
    updates: dict[str, Any] = {}
    if visit.outputs.response or found.failed:
        updates[f"{TEXTS}{number % SLOTS}"] = msgspec.to_builtins(found)
    if visit.branch:
        updates[BRANCH_NOTES] = _branch_notes(visit, outcome, found)
    return updates


def text_of(visit: StageVisit, outcome: StageOutcome, number: int) -> StageText:
    """Of a failed command its output, otherwise the answer of its model."""
    outputs, names = visit.outputs, artifact_names(visit)
    kept = ["response"] if outputs.response else ["stdout"]
    if not outputs.response or str(outcome.status) == StageStatus.FAIL:
        kept.append("stderr")
    text = "\n".join(filter(None, (getattr(outputs, name).strip() for name in kept)))
    where = " and ".join(names[name] for name in kept if name in names)
    return StageText(
        visit.stage.id,
        number,
        visit.ctx.visit,
        str(outcome.status),
        clean_text(middle_cut(text, TEXT_BYTES, where), TEXT_BYTES),
        where,
        clean_text(outcome.failure_reason, 500),
        size=_size(text),
    )


def _size(text: str) -> int:
    size = byte_size(text, TEXT_BYTES)
    return size if size > TEXT_BYTES else 0


def texts_of(context: PipelineContext) -> list[StageText]:
    """The latest text of each stage, the latest stage first."""
    found = [msgspec.convert(value, StageText) for value in context.beginning_with(TEXTS).values()]
    latest: dict[str, StageText] = {}
    for each in sorted(found, key=lambda each: -each.number):
        latest.setdefault(each.stage, each)
    return list(latest.values())


def _branch_notes(visit: StageVisit, outcome: StageOutcome, found: StageText) -> dict[str, Any]:
    """For the result of the branch: its last verdict, and the artifacts of all its stages."""
    before: Any = visit.context.get(BRANCH_NOTES)
    # What a branch inherits is of the stages around it.
    known = cast("dict[str, Any]", before) if isinstance(before, dict) else {}
    own = known if known.get("scope") == visit.branch else {}
    verdict = {key: value for key, value in status_fields(outcome).items() if key != "context_updates"}
    artifacts = {**own.get("artifacts", {}), visit.stage.id: artifact_names(visit)}
    left = {"text": found.text, "where": found.where, "size": found.size}
    said = left if found.text else own.get("said", {})
    return {"scope": visit.branch, "verdict": verdict, "artifacts": artifacts, "said": said}
