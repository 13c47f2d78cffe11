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
    from holdfast.agents.ask_person import ask_person
    from holdfast.agents.budget import Budget
    from holdfast.agents.coding.kit import coding_tools
    from holdfast.agents.gemini import Gemini
    from holdfast.agents.local_sandbox import LocalSandbox, file_tools, shell_tool
    from holdfast.agents.messages import Message
    from holdfast.agents.model import Model
    from holdfast.agents.model_http import Retries
    from holdfast.agents.model_judge import ModelJudge
    from holdfast.agents.openai_chat import OpenAI
    from holdfast.agents.openai_responses import OpenAIResponses
    from holdfast.agents.prices import Prices
    from holdfast.agents.scripted import Scripted, tool_call
    from holdfast.agents.tools import Approval, Tool, ToolError, ToolOutput, tool
    from holdfast.agents.workspace import Files, Sandbox, SandboxGoneError
    from holdfast.app.flow import Flow
    from holdfast.app.holdfast import Holdfast, use
    from holdfast.app.interactions import Interactions
    from holdfast.app.places import Place, TenantDirectory
    from holdfast.app.result import Result
    from holdfast.app.worker import Worker
    from holdfast.checkpoint.checkpoint import Checkpoint
    from holdfast.checkpoint.diff_result import Diff
    from holdfast.checkpoint.keys import KeyRing, StaticKeys
    from holdfast.errors import (
        AgentLoopError,
        AlreadyVotedError,
        AnswerInvalidError,
        BlobMissingError,
        BudgetError,
        CallbackFailedError,
        CheckpointCorruptError,
        CheckpointNotFoundError,
        ChildDepthError,
        ChildFailedError,
        CodeRequiredError,
        ConflictError,
        ContentChangedError,
        DeadlinePassedError,
        DeploymentNotFoundError,
        DirectoryUnavailableError,
        EffectInDoubtError,
        EffectRejectedError,
        EffectsRepeatedError,
        EffectWaitingError,
        ExcludedError,
        FlowInvalidError,
        FlowNameTakenError,
        ForbiddenError,
        FormInvalidError,
        HeartbeatMissedError,
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
        LimitReachedError,
        MapFailedError,
        ModelError,
        ModelRefusedError,
        ModelReplyError,
        ModelUnavailableError,
        NoDocumentError,
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
        StepTimeoutError,
        StepUpRequiredError,
        StoreError,
        TenantNotPlacedError,
        TooManyPendingError,
        TurnLimitError,
        VersionMismatchError,
        VetoedError,
        WaitTimeoutError,
    )
    from holdfast.frontends.python import Guard, Join, NodeHandle, Retry, all_of, any_of, quorum
    from holdfast.holds.actions.rate_limit import Pace
    from holdfast.holds.directory.absence import Away
    from holdfast.holds.directory.admin import Registrar
    from holdfast.holds.directory.base import Circle, Directory, Memberships, Person
    from holdfast.holds.directory.external import Lookups, OutsideDirectory
    from holdfast.holds.directory.file import FileDirectory
    from holdfast.holds.directory.stored import TableDirectory
    from holdfast.holds.policies.guardrails import Guardrails
    from holdfast.holds.policies.judge import Judge, Judgement
    from holdfast.holds.policies.parse import read_policy
    from holdfast.holds.policies.policy import Policy
    from holdfast.holds.policies.rules import Rule
    from holdfast.holds.policies.webhook_judge import WebhookJudge
    from holdfast.holds.queries.feedback import Feedback
    from holdfast.holds.service import HoldService
    from holdfast.model.graph import END
    from holdfast.model.guardrails import Violation
    from holdfast.model.migration import renamed
    from holdfast.model.reducer_marks import (
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
    from holdfast.model.state_schema import DELETE
    from holdfast.reports.postmortem import Postmortem
    from holdfast.runs.context.children import ChildRun
    from holdfast.runs.context.context import Context
    from holdfast.runs.context.questions import Reply
    from holdfast.runs.driver.settings import RunSettings
    from holdfast.runs.history.checkpoint_store import CheckpointView
    from holdfast.runs.history.replay import Replay
    from holdfast.runs.node_memory import InProcessMemory
    from holdfast.types.concurrency_limits import Limits
    from holdfast.types.deployment import Deployment
    from holdfast.types.event import Event
    from holdfast.types.hold import HoldFilter, HoldRow
    from holdfast.types.memory import Memory, MemoryFilter
    from holdfast.types.outcome import Outcome
    from holdfast.types.redaction import Secret
    from holdfast.types.retention import Retention
    from holdfast.types.skill import Skill, SkillTool
    from holdfast.types.status import Effect, RunStatus
    from holdfast.types.terms import Actor, operator

_HOMES = {
    "holdfast.agents.agent": ("Agent",),
    "holdfast.agents.anthropic": ("Anthropic",),
    "holdfast.agents.budget": ("Budget",),
    "holdfast.agents.gemini": ("Gemini",),
    "holdfast.agents.coding.kit": ("coding_tools",),
    "holdfast.agents.model_http": ("Retries",),
    "holdfast.agents.messages": ("Message",),
    "holdfast.agents.model": ("Model",),
    "holdfast.agents.openai_chat": ("OpenAI",),
    "holdfast.agents.ask_person": ("ask_person",),
    "holdfast.agents.prices": ("Prices",),
    "holdfast.agents.openai_responses": ("OpenAIResponses",),
    "holdfast.agents.local_sandbox": ("LocalSandbox", "file_tools", "shell_tool"),
    "holdfast.agents.scripted": ("Scripted", "tool_call"),
    "holdfast.agents.workspace": ("Files", "Sandbox", "SandboxGoneError"),
    "holdfast.agents.tools": ("Approval", "Tool", "ToolError", "ToolOutput", "tool"),
    "holdfast.app.flow": ("Flow",),
    "holdfast.app.holdfast": ("Holdfast", "use"),
    "holdfast.app.places": ("Place", "TenantDirectory"),
    "holdfast.app.result": ("Result",),
    "holdfast.app.worker": ("Worker",),
    "holdfast.errors": (
        "AgentLoopError",
        "AlreadyVotedError",
        "AnswerInvalidError",
        "BlobMissingError",
        "BudgetError",
        "CheckpointCorruptError",
        "CheckpointNotFoundError",
        "ChildDepthError",
        "CallbackFailedError",
        "ChildFailedError",
        "ConflictError",
        "ContentChangedError",
        "DeadlinePassedError",
        "DeploymentNotFoundError",
        "DirectoryUnavailableError",
        "ExcludedError",
        "FlowInvalidError",
        "FlowNameTakenError",
        "CodeRequiredError",
        "EffectsRepeatedError",
        "EffectInDoubtError",
        "EffectRejectedError",
        "EffectWaitingError",
        "NoDocumentError",
        "ForbiddenError",
        "FormInvalidError",
        "HeartbeatMissedError",
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
        "LimitReachedError",
        "MapFailedError",
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
        "StepTimeoutError",
        "StepUpRequiredError",
        "StoreError",
        "TenantNotPlacedError",
        "TooManyPendingError",
        "TurnLimitError",
        "VersionMismatchError",
        "VetoedError",
        "WaitTimeoutError",
    ),
    "holdfast.agents.model_judge": ("ModelJudge",),
    "holdfast.app.interactions": ("Interactions",),
    "holdfast.holds.queries.feedback": ("Feedback",),
    "holdfast.holds.actions.rate_limit": ("Pace",),
    "holdfast.holds.policies.guardrails": ("Guardrails",),
    "holdfast.holds.policies.judge": ("Judge", "Judgement"),
    "holdfast.holds.policies.parse": ("read_policy",),
    "holdfast.holds.policies.policy": ("Policy",),
    "holdfast.holds.policies.rules": ("Rule",),
    "holdfast.holds.policies.webhook_judge": ("WebhookJudge",),
    "holdfast.frontends.python": ("Guard", "Join", "NodeHandle", "Retry", "all_of", "any_of", "quorum"),
    "holdfast.holds.directory.external": ("Lookups", "OutsideDirectory"),
    "holdfast.holds.directory.base": ("Away", "Circle", "Directory", "Memberships", "Person"),
    "holdfast.holds.directory.file": ("FileDirectory",),
    "holdfast.holds.directory.admin": ("Registrar",),
    "holdfast.holds.directory.stored": ("TableDirectory",),
    "holdfast.holds.service": ("HoldService",),
    "holdfast.model.graph": ("END",),
    "holdfast.model.guardrails": ("Violation",),
    "holdfast.model.migration": ("renamed",),
    "holdfast.model.reducer_marks": (
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
    "holdfast.model.state_schema": ("DELETE",),
    "holdfast.checkpoint.keys": ("KeyRing", "StaticKeys"),
    "holdfast.checkpoint.diff_result": ("Diff",),
    "holdfast.checkpoint.checkpoint": ("Checkpoint",),
    "holdfast.reports.postmortem": ("Postmortem",),
    "holdfast.runs.history.checkpoint_store": ("CheckpointView",),
    "holdfast.runs.history.replay": ("Replay",),
    "holdfast.runs.context.context": ("Context",),
    "holdfast.runs.node_memory": ("InProcessMemory",),
    "holdfast.runs.context.questions": ("Reply",),
    "holdfast.runs.context.children": ("ChildRun",),
    "holdfast.runs.driver.settings": ("RunSettings",),
    "holdfast.types.deployment": ("Deployment",),
    "holdfast.types.event": ("Event",),
    "holdfast.types.concurrency_limits": ("Limits",),
    "holdfast.types.memory": ("Memory", "MemoryFilter"),
    "holdfast.types.outcome": ("Outcome",),
    "holdfast.types.retention": ("Retention",),
    "holdfast.types.skill": ("Skill", "SkillTool"),
    "holdfast.types.status": ("Effect", "RunStatus"),
    "holdfast.types.hold": ("HoldFilter", "HoldRow"),
    "holdfast.types.terms": ("Actor", "operator"),
    "holdfast.types.redaction": ("Secret",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "DELETE",
    "END",
    "Actor",
    "Agent",
    "AgentLoopError",
    "AlreadyVotedError",
    "AnswerInvalidError",
    "Anthropic",
    "Approval",
    "Away",
    "BlobMissingError",
    "Budget",
    "BudgetError",
    "CallbackFailedError",
    "Checkpoint",
    "CheckpointCorruptError",
    "CheckpointNotFoundError",
    "CheckpointView",
    "ChildDepthError",
    "ChildFailedError",
    "ChildRun",
    "Circle",
    "CodeRequiredError",
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
    "EffectInDoubtError",
    "EffectRejectedError",
    "EffectWaitingError",
    "EffectsRepeatedError",
    "Event",
    "ExcludedError",
    "Feedback",
    "FileDirectory",
    "Files",
    "Flow",
    "FlowInvalidError",
    "FlowNameTakenError",
    "ForbiddenError",
    "FormInvalidError",
    "Gemini",
    "Guard",
    "Guardrails",
    "HeartbeatMissedError",
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
    "LimitReachedError",
    "Limits",
    "LocalSandbox",
    "Lookups",
    "MapFailedError",
    "Memberships",
    "Memory",
    "MemoryFilter",
    "Message",
    "Model",
    "ModelError",
    "ModelJudge",
    "ModelRefusedError",
    "ModelReplyError",
    "ModelUnavailableError",
    "NoDocumentError",
    "NodeHandle",
    "NotAssignedError",
    "NotDone",
    "NotFoundError",
    "OpenAI",
    "OpenAIResponses",
    "Outcome",
    "OutcomeUnknownError",
    "OutsideDirectory",
    "Pace",
    "Person",
    "Place",
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
    "StepTimeoutError",
    "StepUpRequiredError",
    "StoreError",
    "TableDirectory",
    "TenantDirectory",
    "TenantNotPlacedError",
    "TooManyPendingError",
    "Tool",
    "ToolError",
    "ToolOutput",
    "TurnLimitError",
    "VersionMismatchError",
    "VetoedError",
    "Violation",
    "WaitTimeoutError",
    "WebhookJudge",
    "Worker",
    "__version__",
    "all_of",
    "any_of",
    "append",
    "ask_person",
    "avg",
    "coding_tools",
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
