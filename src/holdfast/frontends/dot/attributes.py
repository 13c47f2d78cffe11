"""The attributes that are read, by the type of their values and by what has them."""

from __future__ import annotations

from typing import Final

FLAGS: Final = frozenset(
    {"goal_gate", "auto_status", "allow_partial", "loop_restart", "idempotent", "fail_closed",
     "stack.child_autostart", "verdict"}
)  # fmt: skip
INTEGERS: Final = frozenset(
    {"max_retries", "default_max_retries", "default_max_retry", "weight", "max_visits", "max_parallel",
     "max_restarts", "max_goal_jumps", "max_same_failures", "manager.max_cycles", "join_k", "max_turns",
     "session_max_tokens"}
)  # fmt: skip
DURATIONS: Final = frozenset(
    {
        "timeout",
        "manager.poll_interval",
        "manager.steer_cooldown",
        "tool_hooks.timeout",
        "agent_idle_timeout",
    }
)
WORDS: Final = {
    "reasoning_effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "conditions": ("extended",),
    "in_doubt": ("ask", "retry", "fail"),
    "effect": ("pure", "read", "write", "external", "human"),
    "question_type": ("yes_no", "multiple_choice", "freeform", "confirmation"),
    "human.question_type": ("yes_no", "multiple_choice", "freeform", "confirmation"),
    "human.unknown_answer": ("refuse", "first"),
    "retry_policy": ("none", "standard", "aggressive", "linear", "patient"),
}
WORKSPACES: Final = {
    "workspace": ("shared", "worktree"),
    "merge": ("all", "best", "none"),
    "on_conflict": ("ask", "fail", "best"),
}
"""Of a fan-out: where its branches work, and how their work is joined. Another word is an error."""
_GATE: Final = frozenset(
    {"question_type", "human.question_type", "human.default_choice", "human.unknown_answer", "assignee",
     "human.assignee", "priority", "human.priority", "reminder", "human.reminder", "escalate",
     "human.escalate", "calendar", "human.calendar", "tags", "human.tags", "excluded", "human.excluded"}
)  # fmt: skip
PROVIDERS: Final = frozenset({"anthropic", "openai", "gemini", "openai_compatible", "simulation"})

AGENTS: Final = ("claude", "codex", "gemini")
PERMISSIONS: Final = ("plan", "edit", "full")
"""What a command-line agent may do: read, also edit files, all."""
_AGENT: Final = frozenset({"agent_permissions", "agent_idle_timeout"})
_MODEL: Final = frozenset({"llm_model", "llm_provider", "reasoning_effort"})
_RETRIES: Final = frozenset({"retry_target", "fallback_retry_target"})
_HOOKS: Final = frozenset(
    {"tool_hooks.pre", "tool_hooks.post", "tool_hooks.timeout", "tools", "tool_approval"}
)
_TALKS: Final = frozenset({"max_turns", "session_max_tokens"})
BUDGET: Final = frozenset({"budget_tokens", "budget_usd", "budget_time", "budget_ask_at"})
GRAPH: Final = (
    _MODEL
    | _AGENT
    | frozenset({"human.unknown_answer"})
    | _RETRIES
    | _HOOKS
    | _TALKS
    | BUDGET
    | frozenset(
        {"goal", "label", "model_stylesheet", "default_max_retries", "default_max_retry", "default_fidelity",
         "stack.child_dotfile", "stack.child_workdir", "stack.child_autostart", "stack.child_resolve",
         "stack.child_detach", "conditions", "max_visits", "max_restarts", "max_goal_jumps",
         "max_same_failures", "retry_policy", "in_doubt", "fail_closed", "auto_status",
         "resume_fidelity", "thread_id", "default_thread_id", "workdir"}
    )
)  # fmt: skip
NODE: Final = (
    _MODEL
    | _AGENT
    | _GATE
    | _RETRIES
    | _HOOKS
    | _TALKS
    | frozenset(
        {"label", "shape", "type", "prompt", "max_retries", "goal_gate", "fidelity", "thread_id", "class",
         "timeout", "auto_status", "allow_partial", "tool_command", "max_visits", "max_parallel",
         "join_policy", "error_policy", "join_k", "join_quorum", "workspace", "merge", "on_conflict",
         "manager.poll_interval", "manager.max_cycles", "manager.stop_condition", "manager.actions",
         "stack.child_dotfile", "stack.child_autostart", "stack.child_workdir", "stack.child_resolve",
         "stack.child_detach", "idempotent", "in_doubt", "effect", "retry_policy", "fail_closed",
         "max_same_failures", "subgraph_file", "cwd", "workdir", "tool.shell", "manager.steer_text",
         "manager.steer_cooldown", "verdict", "agent", "output_schema"}
    )
)  # fmt: skip
EDGE: Final = frozenset({"label", "condition", "weight", "fidelity", "thread_id", "loop_restart"})
# Read by Graphviz only; known here, so that `attribute_known` does not report them as misspelled.
_DRAWING: Final = frozenset(
    {"rankdir", "color", "fillcolor", "fontcolor", "fontname", "fontsize", "style", "penwidth", "width",
     "height", "bgcolor", "splines", "nodesep", "ranksep", "rank", "tooltip", "xlabel", "arrowhead", "dir",
     "margin", "pad", "group", "constraint", "minlen", "compound", "comment", "URL", "href", "id", "size"}
)  # fmt: skip
KNOWN: Final = GRAPH | NODE | EDGE | _DRAWING
