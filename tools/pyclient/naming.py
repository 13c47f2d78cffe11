"""What each operation is called in the client. One that is not here gets a name by rule."""

from __future__ import annotations

import re

OTHER_PROTOCOLS = frozenset({"stream_ag_ui"})
"""Operations that the clients of another protocol call: ours have no method for them."""

NAMES: dict[str, tuple[str, str]] = {
    "list_checkpoint_holds": ("checkpoints", "list"),
    "get_checkpoint_hold": ("checkpoints", "get"),
    "checkpoint_history": ("checkpoints", "history"),
    "resolve_checkpoint": ("checkpoints", "resolve"),
    "cancel_checkpoint": ("checkpoints", "cancel"),
    "reassign_checkpoint": ("checkpoints", "reassign"),
    "list_pending_runs": ("runs", "pending"),
    "get_run_result": ("runs", "result"),
    "give_input": ("runs", "input"),
    "list_checkpoints": ("runs", "checkpoints"),
    "get_checkpoint": ("runs", "checkpoint"),
    "get_timeline": ("runs", "timeline"),
    "get_run_drawing": ("runs", "drawing"),
    "diff_runs": ("runs", "diff"),
    "list_events": ("runs", "events"),
    "stream_run": ("runs", "stream"),
    "list_artifacts": ("runs", "artifacts"),
    "get_artifact": ("runs", "artifact"),
    "export_run": ("runs", "export"),
    "import_run": ("runs", "take_in"),
    "list_thread_runs": ("threads", "runs"),
    "create_thread_run": ("threads", "say"),
    "get_flow_version": ("flows", "version"),
    "get_flow_drawing": ("flows", "drawing"),
    "next_of_schedule": ("schedules", "next"),
    "list_workers": ("admin", "workers"),
    "get_figures": ("admin", "figures"),
    "get_status": ("admin", "status"),
    "list_limits": ("limits", "list"),
    "set_limit": ("limits", "set"),
    "clear_limit": ("limits", "clear"),
    "list_dead_runs": ("dead", "list"),
    "get_dead_run": ("dead", "get"),
    "retry_dead_run": ("dead", "retry"),
    "discard_dead_run": ("dead", "discard"),
    "stream_holds": ("holds", "stream"),
    "count_holds": ("holds", "count"),
    "hold_metrics": ("holds", "metrics"),
    "hold_history": ("holds", "history"),
    "hold_schema": ("holds", "schema"),
    "hold_evidence": ("holds", "evidence"),
    "vote_on_hold": ("holds", "vote"),
    "place_decision": ("holds", "place"),
    "undo_decision": ("holds", "undo"),
    "list_comments": ("holds", "comments"),
    "comment_on_hold": ("holds", "comment"),
    "reply_to_question": ("holds", "reply"),
    "list_files": ("holds", "files"),
    "get_draft": ("holds", "draft"),
    "list_presence": ("holds", "presence"),
    "list_audit": ("audit", "list"),
    "audit_head": ("audit", "head"),
    "verify_audit": ("audit", "verify"),
    "list_view": ("views", "holds"),
    "take_click": ("inbound", "click"),
    "take_webhook": ("inbound", "webhook"),
    "take_mail": ("inbound", "mail"),
    "list_people": ("directory", "people"),
    "get_person": ("directory", "person"),
    "list_groups": ("directory", "groups"),
    "list_roles": ("directory", "roles"),
    "list_calendars": ("calendars", "list"),
    "put_calendar": ("calendars", "put"),
    "list_policies": ("policies", "list"),
    "put_policy": ("policies", "put"),
    "drop_policy": ("policies", "drop"),
    "simulate_policies": ("policies", "simulate"),
    "list_dead_notices": ("notices", "list"),
    "list_notices": ("notices", "by_state"),
    "replay_notice": ("notices", "replay"),
    "get_metric": ("metrics", "get"),
    "delegate_deployment": ("deployments", "delegate"),
    "revoke_delegation": ("deployments", "revoke_delegation"),
    "list_skills": ("skills", "list"),
    "publish_skill": ("skills", "publish"),
    "yank_skill": ("skills", "yank"),
    "restore_skill": ("skills", "restore"),
    "list_tokens": ("tokens", "list"),
    "create_token": ("tokens", "create"),
    "revoke_token": ("tokens", "revoke"),
    "get_pipeline_graph": ("pipelines", "graph"),
    "get_pipeline_checkpoint": ("pipelines", "checkpoint"),
    "get_pipeline_context": ("pipelines", "context"),
    "list_questions": ("pipelines", "questions"),
    "answer_question": ("pipelines", "answer"),
}
POSITIONAL: dict[str, tuple[str, ...]] = {
    "runs.create": ("flow", "input"),
    "threads.say": ("content",),
    "holds.resolve": ("decision",),
    "holds.vote": ("decision",),
    "holds.place": ("decision",),
    "holds.reassign": ("assignee",),
    "checkpoints.resolve": ("decision",),
    "checkpoints.reassign": ("assignee",),
}
"""Fields that need not be given and may be without their names."""


def named(operation: str, tag: str) -> tuple[str, str]:
    """(group, method). By rule: the group is the tag, and what the group is about is left out of the name."""
    if operation in NAMES:
        return NAMES[operation]
    group = re.sub(r"\W+", "_", tag)
    singular = re.sub(r"ies$", "y", group) if group.endswith("ies") else group.removesuffix("s")
    words = [word for word in operation.split("_") if word not in (group, singular)]
    return group, "_".join(words) or operation


def class_of(group: str) -> str:
    return "Async" + "".join(word.capitalize() for word in group.split("_"))
