"""What an adapter says of its agent: command line, stream, environment, versions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from holdfast.attractor.backends.agents.stream import AgentEvent, AgentReport, ShownEvent


class AgentStart(msgspec.Struct, frozen=True, kw_only=True):
    """How a process of an agent begins. `session`: the id to use, or to resume; empty if the agent selects
    it. `folders`: where it may write besides its workspace."""

    session: str = ""
    resume: bool = False
    permissions: str
    model: str = ""
    effort: str = ""
    workspace: Path
    folders: tuple[Path, ...] = ()


class AgentAdapter(ABC):
    """One agent. `read` and `shown` are pure, and accept whatever a stream contains."""

    name: str
    program: str
    provider: str
    variables: tuple[str, ...]
    """The variables of its key and address, which it gets besides those that every command gets."""
    tested: tuple[tuple[int, ...], tuple[int, ...]]
    """From this version, to before that one."""
    takes_session: bool
    """Whether the caller gives a new session its id."""
    reports_cost: bool
    adds_up: bool
    """Whether the usage it reports is that of its whole session."""
    lost: re.Pattern[str]
    """What it writes if it does not have the session to resume."""
    permissions: Mapping[str, str]
    exit_kinds: Mapping[int, str] = {}
    """Failure classes of its exit codes."""

    @abstractmethod
    def words(self, start: AgentStart) -> list[str]:
        """The command line."""

    @abstractmethod
    def read(self, events: Iterable[AgentEvent]) -> AgentReport:
        """What a stream, or its part so far, says."""

    @abstractmethod
    def begins(self, event: AgentEvent) -> bool:
        """Whether its streams begin with such an event, and no other program's do."""

    @abstractmethod
    def shown(self, event: AgentEvent) -> ShownEvent | None:
        """What is shown of an event; None: only that it happened."""
