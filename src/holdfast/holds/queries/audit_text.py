"""A record of the audit as one sentence: what a hold's history says of it, and what the server did itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from holdfast.holds.queries.history import entry_of
from holdfast.holds.queries.history_text import short_name
from holdfast.store.hold_protocols import Holds
from holdfast.types.audit import AuditRow
from holdfast.types.hold import HoldFilter, Option

# `{who}` acted; the other names are fields of the record's data.
_SENTENCES: Final = {
    "signed_in": "{who} signed in",
    "signed_out": "{who} signed out",
    "sessions_ended": "{who} ended all sessions of {subject}",
    "sign_in_code_made": "{who} made a code to sign in",
    "token_created": "{who} created a token for {subject}",
    "token_revoked": "{who} revoked a token of {subject}",
    "access_refused": "{who} was refused access",
    "person_kept": "{who} saved the person {person}",
    "person_dropped": "{who} removed the person {person}",
    "circle_kept": "{who} saved {circle}",
    "circle_dropped": "{who} removed {circle}",
    "away": "{who} recorded an absence of {person}",
    "back": "{who} ended the absence of {person}",
    "deployed": "{who} deployed {name}",
    "delegated": "{who} delegated {name} to {to}",
    "delegation_revoked": "{who} ended the delegation of {name} to {to}",
    "flow_deployed": "{who} deployed the flow {flow}",
    "flow_activated": "{who} made version {version} of the flow {flow} the current one",
    "policy_written": "{who} saved the policy {policy}",
    "policy_dropped": "{who} removed the policy {policy}",
    "policy_removal_confirmed": "{who} confirmed that the policy {policy} was removed",
    "chat_user_set": "{who} linked the chat user {chat} to {person}",
    "chat_user_dropped": "{who} removed the link of the chat user {chat}",
    "run_deleted": "{who} deleted a run of the flow {flow}",
    "foreign_completion": "{who} sent an answer to a question of another tenant",
}
_PEOPLE: Final = frozenset({"subject", "person", "circle", "to"})
MOST: Final = 200
"""Characters of a value in a sentence: names come from outside."""
LONGEST_QUESTION: Final = 100


class AuditedHold(NamedTuple):
    """What a sentence says of a hold: no value that was decided, which readers of the audit need not see."""

    prompt: str
    options: Sequence[Option] | None = None


async def questions_of(store: Holds, tenant: str, rows: Sequence[AuditRow]) -> Mapping[str, AuditedHold]:
    """What was asked, for each hold of these records that still exists."""
    ids = tuple({row.hold for row in rows if row.hold})
    if not ids:
        return {}
    where = HoldFilter(tenant=tenant, ids=ids, live=False)
    found = await store.list_holds(where, limit=len(ids))
    return {hold.id: AuditedHold(hold.prompt, hold.options) for hold, _ in found}


def audit_sentence(row: AuditRow, questions: Mapping[str, AuditedHold] | None = None) -> str:
    """`dana approved, on the web page (“Release 4.2.0 now?”)`; `ada signed in`. Data that were erased or
    cannot be decrypted leave a sentence without them. `questions`: by hold; the audit itself keeps none."""
    template = None if row.hold else _SENTENCES.get(row.action)
    if template is None:
        asked = (questions or {}).get(row.hold or "", AuditedHold(""))
        known = row if _is_object(row.data) else msgspec.structs.replace(row, data=b"{}")
        return entry_of(known, options=asked.options).text + _quoted(asked.prompt)
    data: dict[str, Any] = msgspec.json.decode(row.data) if _is_object(row.data) else {}
    return template.format_map(_Words(data, who=_actor(row.actor)))


def _quoted(question: str) -> str:
    """On one line: a prompt may be a page of markdown."""
    text = " ".join(question[: 4 * LONGEST_QUESTION].split())
    if not text:
        return ""
    shown = text if len(text) <= LONGEST_QUESTION else text[: LONGEST_QUESTION - 1].rstrip() + "…"
    return f" (“{shown}”)"


class _Words(dict[str, str]):
    def __init__(self, data: dict[str, Any], **more: str) -> None:
        super().__init__({name: _text(name, value) for name, value in data.items()} | more)

    def __missing__(self, name: str) -> str:
        return f"(no {name})"


def _text(name: str, value: Any) -> str:
    text = str(value)
    return (short_name(text) if name in _PEOPLE else text)[:MOST]


def _actor(actor: str) -> str:
    return "A caller who had not signed in" if actor == "anonymous" else short_name(actor)


def _is_object(data: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(data), dict)
    except msgspec.DecodeError:
        return False
