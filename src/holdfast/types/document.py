"""Small named records of a tenant that are looked up by name: people, groups, skills, calendars."""

from __future__ import annotations

import msgspec


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """`revision` grows by one with each write; a writer can require the one that it read.

    Kinds: person, group, role, skill, skill_content, deployment, calendar, policy, channel, view, link_key,
    flow_version, flow_source, flow_current, flow_layout, flow_draft, early_completion, queues_reconciled,
    preferences, store, item_limit, shadow_answer, steer, exec_notes, engine_run; and the server's:
    token, token_used, session, sign_in_code."""

    tenant: str
    kind: str
    name: str
    body: bytes
    revision: int = 0
    updated_at: int = 0
