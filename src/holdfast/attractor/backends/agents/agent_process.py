"""The process of an agent: a command that outlives the worker, with its events shown while it runs."""

from __future__ import annotations

import asyncio
import codecs
import os
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.agents.digests import digest
from holdfast.agents.messages import TokenUsage
from holdfast.agents.prices import Prices
from holdfast.agents.tool_environment import hide_secrets
from holdfast.attractor import detached_commands, run_files
from holdfast.attractor.backends.agents import session
from holdfast.attractor.backends.agents.adapter import AgentAdapter
from holdfast.attractor.backends.agents.stream import AgentReport, event_of, events_in, is_event
from holdfast.attractor.command_run import CommandRun
from holdfast.attractor.handler import StageVisit
from holdfast.errors import InputError
from holdfast.types.own_threads import in_thread
from holdfast.types.text import clean_text

EVENTS: Final = "events.jsonl"
IDLE: Final = 600.0
"""Seconds without an event before an agent is stopped (`agent_idle_timeout`)."""
_SHOWN: Final = 4_000
_PART: Final = 2**18
"""Bytes of a stream that are shown before other work of this process has its turn."""
# With these a document could send the agent's key elsewhere, or run other code with it.
_RESERVED: Final = (
    "ANTHROPIC_*", "CLAUDE_*", "OPENAI_*", "CODEX_*", "GEMINI_*", "GOOGLE_*", "NODE_*", "LD_*", "DYLD_*",
    "PATH", "HOME", "*_PROXY", "*_proxy", "SSL_*",
)  # fmt: skip


class AgentLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """What the processes of one turn have in common. `used`: what the session had used before. `first`:
    whether it is the first turn of the attempt."""

    adapter: AgentAdapter
    prompt: str
    used: TokenUsage | None = None
    prices: Prices | None = None
    first: bool = True

    def maker(self) -> Any:
        return partial(AgentProcess, launch=self)


class AgentProcess(CommandRun):
    def __init__(self, *args: Any, launch: AgentLaunch, **more: Any) -> None:
        """`args` and `more` are those of CommandRun."""
        super().__init__(*args, **more)
        self._launch = launch
        self._adapter = launch.adapter
        self._view = EventView(self.visit, launch.adapter, self.folder)

    def shell(self) -> str:
        return "/bin/sh"

    def environment(self) -> dict[str, str]:
        refuse_reserved(self.visit)
        own = {name: os.environ[name] for name in self._adapter.variables if os.environ.get(name)}
        return {**super().environment(), **own}

    def hide(self, text: str) -> str:
        return hide_secrets(text)

    async def _end(self) -> detached_commands.ProcessExit:
        limit = self.visit.stage.microseconds("timeout")
        ended = await detached_commands.wait_for_exit(
            self.folder,
            timeout=None if limit is None else limit / 1e6,
            idle=idle_of(self.visit),
            look=self._view.look,
        )
        while self._view.look():  # noqa: ASYNC110 (each turn shows a part)
            await asyncio.sleep(0)
        return ended

    async def _record(self, ended: detached_commands.ProcessExit) -> dict[str, Any]:
        found = await super()._record(ended)
        report = await in_thread(self._read, found.pop("stdout"))
        self._count(report)
        return {**found, "report": msgspec.to_builtins(report)}

    def _read(self, written: str) -> AgentReport:
        """Of the whole stream, which is also kept as `events.jsonl`."""
        events = events_in(written)
        report = self._adapter.read(events)
        lines = "".join(msgspec.json.encode(event).decode() + "\n" for event in events)
        path = self.visit.folder / EVENTS
        if not self._launch.first:
            with suppress(OSError):
                lines = path.read_text("utf-8") + lines
        run_files.write(path, lines)
        if report.session and report.events:
            usage = report.usage or self._launch.used
            session.write(
                self.visit.folder, session.session_of(self._adapter, self.visit, report.session, usage)
            )
        return report

    def _count(self, report: AgentReport) -> None:
        """Inside the recorded step, so that it counts once."""
        ctx, launch = self.visit.ctx, self._launch
        ctx.note_digests(agent=digest([self._adapter.name, self.command]), prompt=digest(launch.prompt))
        usage = report.usage
        if usage is None:
            return
        spent = less(usage, launch.used) if self._adapter.adds_up and launch.used else usage
        cost = report.cost
        if cost is None and launch.prices is not None:
            cost = float(launch.prices.cost(spent))
        ctx.spent(tokens=spent.total, cost=cost or 0.0)


class EventView:
    """Shows the events of a running agent, once for each worker that waits for it."""

    def __init__(self, visit: StageVisit, adapter: AgentAdapter, folder: Path) -> None:
        self._visit = visit
        self._adapter = adapter
        self._path = folder / detached_commands.STDOUT
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._known = ""

    def look(self) -> bool:
        """The next part of what it has written; whether there may be more."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._offset)
                raw = stream.read(_PART)
        except OSError:
            return False
        self._offset += len(raw)
        *lines, self._rest = (self._rest + self._decoder.decode(raw)).split("\n")
        for line in lines:
            if line.strip():
                self._show(event_of(hide_secrets(line)))
        return len(raw) == _PART

    def _show(self, event: Mapping[str, Any]) -> None:
        if is_event(event) and not self._known:
            self._note_session(event)
        shown = self._adapter.shown(event)
        ctx = self._visit.ctx
        if shown is None:
            ctx.emit({"agent": self._adapter.name, "type": clean_text(event["type"], 100)}, "agent_event")
        elif isinstance(shown.data, str):
            ctx.emit(clean_text(shown.data, _SHOWN), shown.kind)
        else:
            fields = {key: clean_text(value, _SHOWN) for key, value in shown.data.items()}
            ctx.emit({"agent": self._adapter.name, **fields}, shown.kind)

    def _note_session(self, event: Mapping[str, Any]) -> None:
        """At the first event, so that a next attempt can resume it."""
        self._known = self._adapter.read([event]).session
        if self._known:
            found = session.session_of(self._adapter, self._visit, self._known, None)
            session.write(self._visit.folder, found)
            shown = {"agent": self._adapter.name, "type": "session", "session": clean_text(self._known, 100)}
            self._visit.ctx.emit(shown, "agent_event")


def refuse_reserved(visit: StageVisit) -> None:
    for key in visit.stage.attrs:
        name = key.removeprefix("env.")
        if name != key and any(fnmatchcase(name, pattern) for pattern in _RESERVED):
            raise InputError(
                f"stage {visit.stage.id!r} sets {key}, which only the operator may set for an agent.",
                hint="Remove it from the pipeline, and set it in the environment of the worker.",
            )


def idle_of(visit: StageVisit) -> float:
    key = "agent_idle_timeout"
    found = visit.stage.microseconds(key)
    found = visit.pipeline.microseconds(key) if found is None else found
    return IDLE if found is None else found / 1e6


def less(usage: TokenUsage, before: TokenUsage) -> TokenUsage:
    return TokenUsage(
        max(0, usage.input - before.input),
        max(0, usage.output - before.output),
        max(0, usage.cached - before.cached),
        max(0, usage.written - before.written),
    )
