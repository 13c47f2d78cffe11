"""Holdfast: durable graphs of work. Agents, tools, code and people that survive anything.

The public names. They are loaded when they are first used, so that `import holdfast` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast._version import __version__

if TYPE_CHECKING:
    from holdfast.agents.agent import Agent
    from holdfast.agents.anthropic import Anthropic
    from holdfast.agents.budget import Budget
    from holdfast.agents.http import Retries
    from holdfast.agents.judging import ModelJudge
    from holdfast.agents.messages import Message
    from holdfast.agents.model import Model
    from holdfast.agents.openai import OpenAI
    from holdfast.agents.people import ask_person
    from holdfast.agents.prices import Prices
    from holdfast.agents.sandbox import LocalSandbox, file_tools, shell_tool
    from holdfast.agents.scripted import Scripted, tool_call
    from holdfast.agents.space import Files, Sandbox, SandboxGoneError
    from holdfast.agents.tools import Approval, Tool, ToolError, tool
    from holdfast.app.flow import Flow
    from holdfast.app.house import Holdfast, use
    from holdfast.app.interactions import Interactions
    from holdfast.app.result import Result
    from holdfast.app.worker import Worker
    from holdfast.checkpoint.difference import Diff
    from holdfast.checkpoint.keys import KeyRing, StaticKeys
    from holdfast.checkpoint.picture import Checkpoint
    from holdfast.errors import (
        AlreadyVotedError,
        AnswerInvalidError,
        BlobMissingError,
        BudgetError,
        CheckpointCorruptError,
        CheckpointNotFoundError,
        ConflictError,
        ContentChangedError,
        DeadlinePassedError,
        DeploymentNotFoundError,
        DirectoryUnavailableError,
        ExcludedError,
        FlowInvalidError,
        ForbiddenError,
        FormInvalidError,
        GateShutError,
        HoldCancelledError,
        HoldChangedError,
        HoldClaimedError,
        HoldDecidedError,
        HoldExpiredError,
        HoldfastError,
        HoldNotFoundError,
        HoldReassignedError,
        InputError,
        KeyMissingError,
        KeyReusedError,
        LeaseLostError,
        ModelError,
        ModelRefusedError,
        ModelReplyError,
        ModelUnavailableError,
        NotAssignedError,
        NotDone,
        NotFoundError,
        OutcomeUnknownError,
        PolicyInvalidError,
        RateLimitedError,
        RequestExistsError,
        RunBusyError,
        RunEndedError,
        RunError,
        RunNotFoundError,
        SkillChangedError,
        SkillNotFoundError,
        SkillPublishedError,
        StepFailedError,
        StoreError,
        TooManyPendingError,
        TurnLimitError,
        VersionMismatchError,
        VetoedError,
    )
    from holdfast.frontends.python import Guard, Join, NodeHandle, Retry, all_of, any_of, quorum
    from holdfast.holds.acts.pacing import Pace
    from holdfast.holds.directory.adapter import Lookups, OutsideDirectory
    from holdfast.holds.directory.base import Away, Circle, Directory, Memberships, Person
    from holdfast.holds.directory.file import FileDirectory
    from holdfast.holds.directory.registrar import Registrar
    from holdfast.holds.directory.tables import TableDirectory
    from holdfast.holds.looking.feedback import Feedback
    from holdfast.holds.policies.guardrails import Guardrails
    from holdfast.holds.policies.judgement import Judge, Judgement
    from holdfast.holds.policies.policy import Policy
    from holdfast.holds.policies.reading import read_policy
    from holdfast.holds.policies.rules import Rule
    from holdfast.holds.policies.webhook import WebhookJudge
    from holdfast.holds.service import HoldService
    from holdfast.model.guard import Violation
    from holdfast.model.migration import renamed
    from holdfast.model.reducers import (
        append,
        avg,
        concat,
        first,
        last,
        longest,
        max_,
        merge,
        min_,
        reducer,
        sum_,
    )
    from holdfast.model.schema import DELETE
    from holdfast.reports.postmortem import Postmortem
    from holdfast.runs.context import Context
    from holdfast.runs.memory import InProcessMemory
    from holdfast.runs.questions import Reply
    from holdfast.runs.replaying import Replay
    from holdfast.runs.runtime import RunSettings
    from holdfast.types.deployment import Deployment
    from holdfast.types.event import Event
    from holdfast.types.hold import HoldFilter, HoldRow
    from holdfast.types.limits import Limits
    from holdfast.types.outcome import Outcome
    from holdfast.types.retention import Retention
    from holdfast.types.skill import Skill, SkillTool
    from holdfast.types.status import Effect, RunStatus
    from holdfast.types.terms import Actor, operator
    from holdfast.types.veil import Secret

_HOMES = {
    "holdfast.agents.agent": ("Agent",),
    "holdfast.agents.anthropic": ("Anthropic",),
    "holdfast.agents.budget": ("Budget",),
    "holdfast.agents.http": ("Retries",),
    "holdfast.agents.messages": ("Message",),
    "holdfast.agents.model": ("Model",),
    "holdfast.agents.openai": ("OpenAI",),
    "holdfast.agents.people": ("ask_person",),
    "holdfast.agents.prices": ("Prices",),
    "holdfast.agents.sandbox": ("LocalSandbox", "file_tools", "shell_tool"),
    "holdfast.agents.scripted": ("Scripted", "tool_call"),
    "holdfast.agents.space": ("Files", "Sandbox", "SandboxGoneError"),
    "holdfast.agents.tools": ("Approval", "Tool", "ToolError", "tool"),
    "holdfast.app.flow": ("Flow",),
    "holdfast.app.house": ("Holdfast", "use"),
    "holdfast.app.result": ("Result",),
    "holdfast.app.worker": ("Worker",),
    "holdfast.errors": (
        "AlreadyVotedError",
        "AnswerInvalidError",
        "BlobMissingError",
        "BudgetError",
        "CheckpointCorruptError",
        "CheckpointNotFoundError",
        "ConflictError",
        "ContentChangedError",
        "DeadlinePassedError",
        "DeploymentNotFoundError",
        "DirectoryUnavailableError",
        "ExcludedError",
        "FlowInvalidError",
        "ForbiddenError",
        "FormInvalidError",
        "GateShutError",
        "HoldCancelledError",
        "HoldChangedError",
        "HoldClaimedError",
        "HoldDecidedError",
        "HoldExpiredError",
        "HoldNotFoundError",
        "HoldReassignedError",
        "HoldfastError",
        "InputError",
        "KeyMissingError",
        "KeyReusedError",
        "LeaseLostError",
        "ModelError",
        "ModelRefusedError",
        "ModelReplyError",
        "ModelUnavailableError",
        "NotAssignedError",
        "NotDone",
        "NotFoundError",
        "OutcomeUnknownError",
        "PolicyInvalidError",
        "RateLimitedError",
        "RequestExistsError",
        "RunBusyError",
        "RunEndedError",
        "RunError",
        "RunNotFoundError",
        "SkillChangedError",
        "SkillNotFoundError",
        "SkillPublishedError",
        "StepFailedError",
        "StoreError",
        "TooManyPendingError",
        "TurnLimitError",
        "VersionMismatchError",
        "VetoedError",
    ),
    "holdfast.agents.judging": ("ModelJudge",),
    "holdfast.app.interactions": ("Interactions",),
    "holdfast.holds.looking.feedback": ("Feedback",),
    "holdfast.holds.acts.pacing": ("Pace",),
    "holdfast.holds.policies.guardrails": ("Guardrails",),
    "holdfast.holds.policies.judgement": ("Judge", "Judgement"),
    "holdfast.holds.policies.reading": ("read_policy",),
    "holdfast.holds.policies.policy": ("Policy",),
    "holdfast.holds.policies.rules": ("Rule",),
    "holdfast.holds.policies.webhook": ("WebhookJudge",),
    "holdfast.frontends.python": ("Guard", "Join", "NodeHandle", "Retry", "all_of", "any_of", "quorum"),
    "holdfast.holds.directory.adapter": ("Lookups", "OutsideDirectory"),
    "holdfast.holds.directory.base": ("Away", "Circle", "Directory", "Memberships", "Person"),
    "holdfast.holds.directory.file": ("FileDirectory",),
    "holdfast.holds.directory.registrar": ("Registrar",),
    "holdfast.holds.directory.tables": ("TableDirectory",),
    "holdfast.holds.service": ("HoldService",),
    "holdfast.model.guard": ("Violation",),
    "holdfast.model.migration": ("renamed",),
    "holdfast.model.reducers": (
        "append",
        "avg",
        "concat",
        "first",
        "last",
        "longest",
        "max_",
        "merge",
        "min_",
        "reducer",
        "sum_",
    ),
    "holdfast.model.schema": ("DELETE",),
    "holdfast.checkpoint.keys": ("KeyRing", "StaticKeys"),
    "holdfast.checkpoint.difference": ("Diff",),
    "holdfast.checkpoint.picture": ("Checkpoint",),
    "holdfast.reports.postmortem": ("Postmortem",),
    "holdfast.runs.replaying": ("Replay",),
    "holdfast.runs.context": ("Context",),
    "holdfast.runs.memory": ("InProcessMemory",),
    "holdfast.runs.questions": ("Reply",),
    "holdfast.runs.runtime": ("RunSettings",),
    "holdfast.types.deployment": ("Deployment",),
    "holdfast.types.event": ("Event",),
    "holdfast.types.limits": ("Limits",),
    "holdfast.types.outcome": ("Outcome",),
    "holdfast.types.retention": ("Retention",),
    "holdfast.types.skill": ("Skill", "SkillTool"),
    "holdfast.types.status": ("Effect", "RunStatus"),
    "holdfast.types.hold": ("HoldFilter", "HoldRow"),
    "holdfast.types.terms": ("Actor", "operator"),
    "holdfast.types.veil": ("Secret",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DELETE",
    "Actor",
    "Agent",
    "AlreadyVotedError",
    "AnswerInvalidError",
    "Anthropic",
    "Approval",
    "Away",
    "BlobMissingError",
    "Budget",
    "BudgetError",
    "Checkpoint",
    "CheckpointCorruptError",
    "CheckpointNotFoundError",
    "Circle",
    "ConflictError",
    "ContentChangedError",
    "Context",
    "DeadlinePassedError",
    "Deployment",
    "DeploymentNotFoundError",
    "Diff",
    "Directory",
    "DirectoryUnavailableError",
    "Effect",
    "Event",
    "ExcludedError",
    "Feedback",
    "FileDirectory",
    "Files",
    "Flow",
    "FlowInvalidError",
    "ForbiddenError",
    "FormInvalidError",
    "GateShutError",
    "Guard",
    "Guardrails",
    "HoldCancelledError",
    "HoldChangedError",
    "HoldClaimedError",
    "HoldDecidedError",
    "HoldExpiredError",
    "HoldFilter",
    "HoldNotFoundError",
    "HoldReassignedError",
    "HoldRow",
    "HoldService",
    "Holdfast",
    "HoldfastError",
    "InProcessMemory",
    "InputError",
    "Interactions",
    "Join",
    "Judge",
    "Judgement",
    "KeyMissingError",
    "KeyReusedError",
    "KeyRing",
    "LeaseLostError",
    "Limits",
    "LocalSandbox",
    "Lookups",
    "Memberships",
    "Message",
    "Model",
    "ModelError",
    "ModelJudge",
    "ModelRefusedError",
    "ModelReplyError",
    "ModelUnavailableError",
    "NodeHandle",
    "NotAssignedError",
    "NotDone",
    "NotFoundError",
    "OpenAI",
    "Outcome",
    "OutcomeUnknownError",
    "OutsideDirectory",
    "Pace",
    "Person",
    "Policy",
    "PolicyInvalidError",
    "Postmortem",
    "Prices",
    "RateLimitedError",
    "Registrar",
    "Replay",
    "Reply",
    "RequestExistsError",
    "Result",
    "Retention",
    "Retries",
    "Retry",
    "Rule",
    "RunBusyError",
    "RunEndedError",
    "RunError",
    "RunNotFoundError",
    "RunSettings",
    "RunStatus",
    "Sandbox",
    "SandboxGoneError",
    "Scripted",
    "Secret",
    "Skill",
    "SkillChangedError",
    "SkillNotFoundError",
    "SkillPublishedError",
    "SkillTool",
    "StaticKeys",
    "StepFailedError",
    "StoreError",
    "TableDirectory",
    "TooManyPendingError",
    "Tool",
    "ToolError",
    "TurnLimitError",
    "VersionMismatchError",
    "VetoedError",
    "Violation",
    "WebhookJudge",
    "Worker",
    "__version__",
    "all_of",
    "any_of",
    "append",
    "ask_person",
    "avg",
    "concat",
    "file_tools",
    "first",
    "last",
    "longest",
    "max_",
    "merge",
    "min_",
    "operator",
    "quorum",
    "read_policy",
    "reducer",
    "renamed",
    "shell_tool",
    "sum_",
    "tool",
    "tool_call",
    "use",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
