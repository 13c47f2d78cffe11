"""A command-line agent as a backend: a separate process that outlives the worker, with its transcript in the
stage's folder.

`{name}` in the template stands for: prompt, prompt_file, model, provider, effort, stage, stage_dir, logs,
run_id, goal, thread, session. No shell reads it: each word is one argument, whatever it contains. If neither
the prompt nor its file is named, the prompt is passed on standard input.

The output of a known agent, as lines of events or as a list of them, is read as that agent's. Any other
program may end its output with a JSON object of `type` "result": its answer, whether it failed, its tokens
and its cost are read from it; or with one of `type` "error".
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from holdfast.agents.messages import Message
from holdfast.agents.operator_sandbox import VARIABLE as SANDBOX
from holdfast.attractor import run_files
from holdfast.attractor.backends.agents.backend import ADAPTERS
from holdfast.attractor.backends.agents.known_streams import report_in
from holdfast.attractor.backends.base import (
    BackendAnswer,
    BackendReply,
    PromptRequest,
    as_conversation,
)
from holdfast.attractor.backends.tools import refuse_approvals
from holdfast.attractor.command_run import workdir_text
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.tool import ToolHandler, next_turn
from holdfast.attractor.long_texts import handled, last_line
from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.errors import HoldfastError, InputError, RunFileMissingError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.model_choice import model_choice

_COUNTED: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_MOST: Final = 1e12


class AgentResult(msgspec.Struct, frozen=True):
    text: str
    failed: str = ""
    """The error that it reports."""
    tokens: int = 0
    cost: float = 0.0


def result_in(output: str) -> AgentResult | None:
    """From the stream of a known agent, else from the whole output or its last event. None: it is plain
    text."""
    report = report_in(output, tuple(ADAPTERS.values()))
    if report is not None:
        cut = "" if report.ended else "its output ends without the last event of an agent"
        tokens = 0 if report.usage is None else report.usage.total
        return AgentResult(report.text, report.failed or cut, tokens, report.cost or 0.0)
    whole = output.strip()
    lines = reversed(whole.rsplit("\n", _LAST_LINES)[-_LAST_LINES:])
    for number, candidate in enumerate((whole, *map(str.strip, lines))):
        found = _object(candidate)
        if found.get("type") == "result" and (isinstance(found.get("result"), str) or _is_error(found)):
            return _read(found)
        if found.get("type") == "error" and number < 2:
            return AgentResult("", _text_of(found.get("error")) or _text_of(found) or "an error")
    return None


def _is_error(found: Mapping[str, Any]) -> bool:
    # Another value than false is no proof of a success.
    return found.get("is_error") not in (None, False) or str(found.get("subtype") or "").startswith("error")


def _text_of(error: Any) -> str:
    if not isinstance(error, Mapping):
        return error if isinstance(error, str) else ""
    message: Any = cast("Mapping[str, Any]", error).get("message")
    return message if isinstance(message, str) else ""


def _object(text: str) -> dict[str, Any]:
    if not text.startswith("{"):
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return {}


def _read(found: dict[str, Any]) -> AgentResult:
    counts: Any = found.get("usage")
    usage: dict[str, Any] = cast("dict[str, Any]", counts) if isinstance(counts, dict) else {}
    tokens = sum(int(_amount(usage.get(name))) for name in _COUNTED)
    cost = _amount(found.get("total_cost_usd"))
    # An error may have no text, but a kind.
    text = found.get("result")
    shown = text if isinstance(text, str) else str(found.get("subtype") or found.get("error") or "")
    return AgentResult(shown, (shown or "an error") if _is_error(found) else "", tokens, cost)


def _amount(value: Any) -> float:
    return float(value) if type(value) in (int, float) and 0 <= value < _MOST else 0.0


PREFIX: Final = "cli:"
FILE: Final = "request.md"
"""What the agent is given: preamble or conversation, and prompt."""
FIELDS: Final = frozenset(
    {"prompt", "prompt_file", "model", "provider", "effort", "stage", "stage_dir", "logs", "run_id", "goal",
     "thread", "session"}
)  # fmt: skip
OWN_PATH: Final = "env.PATH"
"""A stage that has it may find the program where its worker does not."""
_FIELD: Final = re.compile(r"\{\{|\}\}|\{([a-z_]+)\}")
_EVENTS: Final = re.compile(r"--output-format[= ](stream-)?json\b")
_SESSIONS: Final = uuid.UUID("5d0f4b9e-3c58-4a3f-9a51-0c6f9f6f3f0b")
_LAST: Final = 300
_LAST_LINES: Final = 20
"""Lines at the end of an output in which its last event is looked for: messages may follow it."""


class CommandBackend:
    """`CommandBackend("my-agent --model {model} --file {prompt_file}")`."""

    keeps_approvals = True  # it refuses such stages

    def __init__(self, template: str) -> None:
        try:
            self._words = shlex.split(template)
        except ValueError as error:
            raise InputError(f"the command {template!r} cannot be parsed: {error}.") from None
        named = {field for word in self._words for field in _FIELD.findall(word)} - {""}
        unknown = sorted(named - FIELDS)
        if unknown or not self._words:
            what = (
                f"unknown field {{{unknown[0]}}} in a backend's command"
                if unknown
                else "a backend's command is empty"
            )
            raise InputError(f"{what}.", hint=f"Known: {', '.join(sorted(FIELDS))}. {{{{ is a brace.")
        self._named = named
        # The words themselves may contain what others must not see.
        self.backend_name = f"command:{sha256(chr(0).join(self._words).encode()).hexdigest()[:12]}"
        self._tool = ToolHandler()

    def problems(self, pipeline: Pipeline, stages: Iterable[Stage]) -> Mapping[str, HoldfastError]:
        """The stages that it cannot do, and why: checked before anything runs."""
        found: dict[str, HoldfastError] = {}
        for stage in stages:
            try:
                refuse_approvals(stage, pipeline, "a command as a backend")
                _require_events(self._words)
                # Of a path it depends on the folder of the stage.
                if "/" not in self._words[0]:
                    self._require_program(stage, Path())
            except HoldfastError as error:
                found[stage.id] = error
        return found

    @property
    def program(self) -> str:
        """What its runs need of a worker; empty if that depends on a stage or its folder."""
        name = self._words[0]
        known = "{" not in name and ("/" not in name or Path(name).is_absolute())
        return f"program:{Path(name).name}" if known else ""

    @property
    def has_program(self) -> bool:
        """Inside the operator's sandbox other programs may be installed."""
        return not self.program or bool(os.environ.get(SANDBOX) or shutil.which(self._words[0]))

    def _require_program(self, stage: Stage, folder: Path) -> None:
        """Raises RunFileMissingError: that this machine has no such program is no outcome of a stage."""
        name = self._words[0]
        if "{" in name or OWN_PATH in stage.attrs or os.environ.get(SANDBOX):
            return
        if not shutil.which(str(folder / name) if "/" in name else name):
            # As a file: this worker offers the backend, and must not try again at once.
            raise RunFileMissingError(
                f"this run waits for a worker with the program {name!r}, which is not installed on "
                f"{platform.node()}.",
                hint="Install it there, or start a worker that has it.",
                missing=[f"program:{Path(name).name}"],
            )

    async def answer(self, visit: StageVisit, prompt: str) -> BackendAnswer:
        reply = await self.converse(PromptRequest(visit=visit, prompt=prompt))
        if reply.failed:
            return StageOutcome(status=StageStatus.FAIL, failure_reason=reply.failed)
        return reply.text

    async def converse(self, asking: PromptRequest) -> BackendReply:
        visit = asking.visit
        self._require_program(visit.stage, Path(workdir_text(visit) or "."))
        turn = next_turn(visit.ctx)
        refuse_approvals(visit.stage, visit.pipeline, "a command as a backend")
        # A name of its own for each turn: after a crash the agent of the second one may still read it.
        request = visit.folder / (FILE if turn == 1 else f"request-{turn}.md")
        whole = self._whole(asking)
        # Also for an encrypted store, because the agent reads it; then it is removed after the answer.
        run_files.write_or_raise(request, whole)
        command = self._command(asking, request, whole)
        # The timeout applies to the command itself: it is killed, not only abandoned.
        with visit.ctx.patience:
            ended = await self._tool.once(visit, command, turn, self._work(asking))
        if run_files.is_refused_here():
            request.unlink(missing_ok=True)
        events = _is_claude(self._words) and _has_events(self._words)
        return await handled(len(str(ended["stdout"])), _reply_for, visit, ended, asking, events=events)

    def _whole(self, asking: PromptRequest) -> str:
        """An agent that keeps its sessions already has the conversation."""
        return asking.with_verdict(asking.whole if "session" in self._named else as_conversation(asking))

    def _command(self, asking: PromptRequest, request: Path, whole: str) -> str:
        fields = self._fields(asking, request, whole)
        words = [_word(word, fields) for word in self._words]
        # `exec`: the agent replaces the shell, so that signals and the exit code are its own.
        line = f"exec {shlex.join(words)}"
        if self._named & {"prompt", "prompt_file"}:
            return line
        return f"{line} <{shlex.quote(str(request.resolve()))}"

    def _work(self, asking: PromptRequest) -> str:
        """Without the preamble and the paths, which another machine has otherwise."""
        choice = model_choice(asking.visit.stage, asking.visit.pipeline)
        return "\0".join((self.backend_name, choice.provider, choice.model, choice.effort, asking.prompt))

    def _fields(self, asking: PromptRequest, request: Path, whole: str) -> dict[str, str]:
        visit = asking.visit
        choice = model_choice(visit.stage, visit.pipeline)
        thread = asking.thread or f"{visit.stage.id}#{visit.ctx.visit}.{visit.ctx.attempt}"
        return {
            "prompt": whole,
            "prompt_file": str(request.resolve()),
            "model": choice.model,
            "provider": choice.provider,
            "effort": choice.effort,
            "stage": visit.stage.id,
            "stage_dir": str(visit.folder.resolve()),
            "logs": str(visit.logs.resolve()),
            "run_id": visit.ctx.run_id,
            "goal": visit.pipeline.goal,
            "thread": thread,
            "session": str(uuid.uuid5(_SESSIONS, f"{visit.ctx.run_id}/{visit.branch}/{thread}")),
        }


def _is_claude(words: Iterable[str]) -> bool:
    """Whether it runs Claude Code without its screen. A shell's command is one word."""
    given = [part for word in words for part in word.split()]
    names = [part.rpartition("/")[2] for part in given]
    return "claude" in names and bool({"-p", "--print"} & {*given[names.index("claude") :]})


def _has_events(words: Iterable[str]) -> bool:
    return bool(_EVENTS.search(" ".join(words)))


def _require_events(words: Sequence[str]) -> None:
    """Raises InputError for Claude Code without its events: as text, an error of its API is an answer."""
    if _is_claude(words) and not _has_events(words):
        raise InputError(
            "claude -p prints an error of its API as an answer, with exit code 0.",
            hint="Use --backend agent:claude, or add --output-format json.",
        )


def _word(word: str, fields: Mapping[str, str]) -> str:
    """A value from the document must not be read as an option of the agent."""
    made = _FIELD.sub(lambda found: _filled(found, fields), word)
    if not made.startswith("-") or word.startswith("-"):
        return made
    if word.startswith("{prompt}"):
        return f" {made}"
    raise InputError(
        f"{word} would be {made[:40]!r}, which looks like an option.", hint="Change the pipeline."
    )


def _filled(found: re.Match[str], fields: Mapping[str, str]) -> str:
    text = found.group(0)
    return text[0] if text in ("{{", "}}") else fields[found.group(1)]


def _reply_for(
    visit: StageVisit, ended: dict[str, Any], asking: PromptRequest, *, events: bool
) -> BackendReply:
    """Its standard output is its answer. A process that failed, or that reports an error, is no success; nor
    is one that has to print events, and printed none."""
    out = str(ended["stdout"])
    result = result_in(out)
    if result is not None and (result.tokens or result.cost):
        visit.ctx.spent(tokens=result.tokens, cost=result.cost)
    failed = _reason(visit, ended) if ended["why"] or ended["code"] != 0 else ""
    text = result.text if result is not None else out if failed else out.strip()
    if not failed and result is not None and result.failed:
        failed = f"the agent reported a failure: {result.failed[:_LAST]}"
    if not failed and result is None and events:
        failed = f"the agent printed no event{': ' + text[:_LAST] if text else ''}"
    return BackendReply(
        text=text,
        messages=(Message("user", asking.prompt), Message("assistant", text)),
        status=None if ended["why"] else ended.get("status"),
        fault=str(ended.get("fault", "")),
        failed=failed,
    )


def _reason(visit: StageVisit, ended: dict[str, Any]) -> str:
    if ended["why"] == "timeout":
        return f"timeout: the agent took longer than {visit.stage.text('timeout')} and was stopped"
    if ended["why"]:
        return f"the agent ended without an exit code: {ended['why']}"
    last = last_line(str(ended["stderr"])) or last_line(str(ended["stdout"]))
    return f"the agent ended with exit code {ended['code']}{': ' + last[:_LAST] if last else ''}"
