"""Small named things of a tenant that are looked up by name: people, groups, skills, calendars."""

from __future__ import annotations

import msgspec


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """`revision` grows by one with each write; writers can demand the one that they read.

    Kinds: person, group, role, skill, deployment, calendar, policy, channel, view, link_key; and the
    server's own: token, token_used, session, sign_in_code."""

    tenant: str
    kind: str
    name: str
    body: bytes
    revision: int = 0
    updated_at: int = 0
