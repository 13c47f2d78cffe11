"""The attributes that something reads, and what their values are."""

from __future__ import annotations

from typing import Final

FLAGS: Final = frozenset({"goal_gate", "auto_status", "allow_partial", "loop_restart", "idempotent"})
INTEGERS: Final = frozenset(
    {"max_retries", "default_max_retries", "default_max_retry", "weight", "max_visits", "max_parallel",
     "max_restarts", "max_goal_jumps", "manager.max_cycles"}
)  # fmt: skip
DURATIONS: Final = frozenset({"timeout", "manager.poll_interval", "manager.steer_cooldown", "budget_time"})
PROVIDERS: Final = frozenset({"anthropic", "openai", "gemini", "openai_compatible", "simulation"})

_MODEL: Final = frozenset({"llm_model", "llm_provider", "reasoning_effort"})
_RETRIES: Final = frozenset({"retry_target", "fallback_retry_target"})
_HOOKS: Final = frozenset({"tool_hooks.pre", "tool_hooks.post"})
_BUDGET: Final = frozenset({"budget_tokens", "budget_usd", "budget_time", "budget_ask_at"})
GRAPH: Final = (
    _MODEL
    | _RETRIES
    | _HOOKS
    | _BUDGET
    | frozenset(
        {"goal", "label", "model_stylesheet", "default_max_retries", "default_max_retry", "default_fidelity",
         "stack.child_dotfile", "stack.child_workdir", "stack.child_autostart", "conditions", "max_visits",
         "max_restarts", "max_goal_jumps"}
    )
)  # fmt: skip
NODE: Final = (
    _MODEL
    | _RETRIES
    | _HOOKS
    | frozenset(
        {"label", "shape", "type", "prompt", "max_retries", "goal_gate", "fidelity", "thread_id", "class",
         "timeout", "auto_status", "allow_partial", "tool_command", "max_visits", "max_parallel",
         "join_policy", "error_policy", "join_k", "join_quorum", "human.default_choice",
         "manager.poll_interval", "manager.max_cycles", "manager.stop_condition", "manager.actions",
         "stack.child_dotfile", "stack.child_autostart", "idempotent", "in_doubt", "subgraph_file", "cwd"}
    )
)  # fmt: skip
EDGE: Final = frozenset({"label", "condition", "weight", "fidelity", "thread_id", "loop_restart"})
_DRAWING: Final = frozenset(
    {"rankdir", "color", "fillcolor", "fontcolor", "fontname", "fontsize", "style", "penwidth", "width",
     "height", "bgcolor", "splines", "nodesep", "ranksep", "rank", "tooltip", "xlabel", "arrowhead", "dir",
     "margin", "pad", "group", "constraint", "minlen", "compound", "comment", "URL", "href", "id", "size"}
)  # fmt: skip
KNOWN: Final = GRAPH | NODE | EDGE | _DRAWING
