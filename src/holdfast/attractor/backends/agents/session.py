"""Sessions of agents: which one a process begins or resumes.

An agent keeps its sessions on its machine. The file `session.json` in the stage's folder has the one of the
last process, as soon as its first event was read: a next attempt resumes it. The context has the session of
each thread: under fidelity `full` the next stage resumes it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from holdfast.agents.messages import TokenUsage
from holdfast.attractor import run_files
from holdfast.attractor.backends.agents.adapter import AgentAdapter
from holdfast.attractor.backends.base import PromptRequest
from holdfast.attractor.command_run import machine
from holdfast.attractor.handler import StageVisit
from holdfast.telemetry import log

FILE: Final = "session.json"
PREFIX: Final = "internal.agent_session."
"""In the context, before the key of a thread."""
_IDS: Final = uuid.UUID("0f5a9c0e-5a8d-4c7e-9f0b-0b3f5f0a7c51")


class AgentSession(msgspec.Struct, frozen=True, kw_only=True):
    """`usage`: of the whole session, as far as its agent adds it up."""

    agent: str
    session: str
    machine: str
    run: str = ""
    branch: str = ""
    visit: int = 0
    attempt: int = 0
    usage: TokenUsage | None = None


class SessionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded before the process starts. `lost`: there is a session, but not on this machine."""

    session: str = ""
    resume: bool = False
    lost: bool = False
    usage: TokenUsage | None = None


def choose(adapter: AgentAdapter, asking: PromptRequest, number: int) -> SessionChoice:
    """`number`: of the processes of this attempt."""
    visit = asking.visit
    known = read(visit, adapter.name)
    if asking.earlier is not None and asking.earlier.session:
        usage = known.usage if known is not None and known.session == asking.earlier.session else None
        return SessionChoice(session=asking.earlier.session, resume=True, usage=usage)
    if known is not None and known.visit == visit.ctx.visit and known.attempt < visit.ctx.attempt:
        return SessionChoice(session=known.session, resume=True, usage=known.usage)
    of_thread = _of_thread(visit, asking.thread, adapter.name)
    if of_thread is not None and of_thread.machine == machine():
        return SessionChoice(session=of_thread.session, resume=True, usage=of_thread.usage)
    return fresh(adapter, visit, str(number), lost=of_thread is not None)


def fresh(adapter: AgentAdapter, visit: StageVisit, number: str, *, lost: bool = False) -> SessionChoice:
    """A new session: its id is the same if the stage is entered again after a crash, and no other's."""
    ctx = visit.ctx
    name = f"{ctx.run_id}/{visit.branch}/{ctx.restarts}/{visit.stage.id}/{ctx.visit}.{ctx.attempt}.{number}"
    return SessionChoice(session=str(uuid.uuid5(_IDS, name)) if adapter.takes_session else "", lost=lost)


def session_of(
    adapter: AgentAdapter, visit: StageVisit, session: str, usage: TokenUsage | None
) -> AgentSession:
    return AgentSession(
        agent=adapter.name,
        session=session,
        machine=machine(),
        run=visit.ctx.run_id,
        branch=visit.branch,
        visit=visit.ctx.visit,
        attempt=visit.ctx.attempt,
        usage=usage,
    )


def read(visit: StageVisit, agent: str) -> AgentSession | None:
    """That of the last process of the stage, if it was of this agent, run and machine."""
    try:
        found = msgspec.json.decode((visit.folder / FILE).read_bytes(), type=AgentSession)
    except (OSError, msgspec.MsgspecError):
        return None
    here = (agent, visit.ctx.run_id, machine())
    return found if (found.agent, found.run, found.machine) == here else None


def write(folder: Path, found: AgentSession) -> None:
    try:
        # Also for an encrypted store: it has no more than an id.
        run_files.write_or_raise(folder / FILE, run_files.as_json(found))
    except OSError as error:
        log.warning("%s cannot be written: %s", folder / FILE, error)


def keep_for_thread(visit: StageVisit, thread: str, found: AgentSession) -> None:
    visit.context.set(PREFIX + thread, msgspec.to_builtins(found))


def _of_thread(visit: StageVisit, thread: str, agent: str) -> AgentSession | None:
    """A branch and a fork begin a session of their own: two processes must not use one at the same time."""
    kept: Any = visit.context.get(PREFIX + thread) if thread else None
    if not isinstance(kept, Mapping):
        return None
    try:
        found = msgspec.convert(dict(cast("Mapping[str, Any]", kept)), AgentSession)
    except msgspec.ValidationError:
        return None
    here = (agent, visit.ctx.run_id, visit.branch)
    return found if (found.agent, found.run, found.branch) == here else None
