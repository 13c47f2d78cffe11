"""The evidence of one decision: what was shown, what was decided and by whom, and its audit records.

One JSON file in one canonical form, so that every byte of it counts. `tools/verify_evidence.py` checks it
with nothing but Python: the digest of the whole, the hash of what was shown, the digest of what was decided,
and the chain of the audit that has both, up to its head.
"""

from __future__ import annotations

import base64
import hmac
import json
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.errors import HoldChangedError, HoldNotFoundError
from holdfast.holds.actions.audit_entries import entry
from holdfast.holds.actions.change import TRIES, load_visible
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.deployments.skills import SkillRegistry
from holdfast.holds.queries.audit import records_of, require_secret
from holdfast.model.template import json_bytes
from holdfast.store.protocols import Store
from holdfast.types.audit import GENESIS, AuditRow, hashed_bytes
from holdfast.types.clock import iso
from holdfast.types.hold import HoldRow, facts_of
from holdfast.types.ids import DEFAULT_TENANT, HoldId
from holdfast.types.skill import RESOLVED_SKILLS, Skill, SkillPin, hashed_content
from holdfast.types.terms import Actor

FORMAT = "holdfast-evidence/1"


async def export_evidence(
    ctx: HoldContext, actor: Actor, hold: str, *, key: bytes | None = None, to_head: bool = True
) -> bytes:
    """`make_pack`, for an actor who may see the hold. The export is audited.

    Raises HoldNotFoundError, ForbiddenError."""
    row = await load_visible(ctx, actor, hold)
    pack = await make_pack(ctx.store, row.id, tenant=row.tenant, key=key, to_head=to_head)
    digest: str = json.loads(pack)["digest"]
    result = entry(row, actor.id, "exported", ctx.now(), digest=digest)
    await ctx.store.append_audit(row.tenant, [result])
    return pack


async def make_pack(
    store: Store,
    hold: str,
    *,
    tenant: str = DEFAULT_TENANT,
    key: bytes | None = None,
    to_head: bool = True,
) -> bytes:
    """The file. `key`: also sign it, for verifiers with the same key. Without `to_head` the chain ends with
    the hold's last record and does not cover later ones.

    Raises HoldNotFoundError: no such hold, or another tenant's."""
    row, chain = await _as_one(store, HoldId(hold), tenant, to_head=to_head)
    content = {
        "format": FORMAT,
        "made_at": iso(store.now()),
        "hold": {**_facts(row), **await _priority(store, row)},
        "request": {"hash": row.request_hash, "shown": shown_content(row)},
        "decision": None if row.resolution is None else row.resolution.decode(),
        "skills": await _skills(store, row),
        "audit": chain,
    }
    return signed_pack(content, key)


async def _as_one(
    store: Store, hold: HoldId, tenant: str, *, to_head: bool
) -> tuple[HoldRow, dict[str, Any]]:
    """The hold and its audit records, with no write to the hold in between."""
    for _ in range(TRIES):
        row = await store.hold(hold)
        if row is None or row.tenant != tenant:
            raise HoldNotFoundError(f"there is no hold {hold!r} in this store.", hold=hold)
        chain = await _chain(store, row, to_head=to_head)
        if await store.hold(hold) == row:
            return row, chain
    raise HoldChangedError(
        f"hold {hold} was changed by others in every attempt.", hint="Try again.", hold=hold
    )


def signed_pack(content: dict[str, Any], key: bytes | None = None) -> bytes:
    content_bytes = as_json(content)
    pack: dict[str, Any] = {"content": content, "digest": "sha256:" + sha256(content_bytes).hexdigest()}
    if key is not None:
        require_secret(key)
        pack["signature"] = "hmac-sha256:" + hmac.digest(key, content_bytes, "sha256").hex()
    return as_json(pack) + b"\n"


def as_json(value: Any) -> bytes:
    """Encoded with the standard library, so that a script without our dependencies writes the same bytes."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def shown_content(row: HoldRow) -> str:
    """The content that the request hash covers: prompt, options, context, schema (the form)."""
    parts = (json_bytes(row.prompt), json_bytes(row.options), _sorted(row.context), _sorted(row.schema))
    return (b"[" + b",".join(parts) + b"]").decode()


def _sorted(stored: bytes | None) -> bytes:
    """As the request hash covers it: the order of keys does not count."""
    return b"null" if stored is None else json_bytes(msgspec.json.decode(stored))


def _facts(row: HoldRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "tenant": row.tenant,
        "core_id": row.core_id,
        "run": row.run,
        "flow": row.flow,
        "node": row.node,
        "instance_key": row.instance_key,
        "started_by": row.started_by,
        "type": row.type,
        "assignee": row.assignee,
        "assignee_type": row.assignee_type,
        "assignee_value": row.assignee_value,
        "status": str(row.status),
        "expires_at": None if row.expires_at is None else iso(row.expires_at),
        "resolved_by": row.resolved_by,
        "resolved_at": None if row.resolved_at is None else iso(row.resolved_at),
        "closed_by": row.closed_by,
        "closed_reason": row.closed_reason,
        **facts_of(row),
        "form": None if row.schema is None else "sha256:" + sha256(_sorted(row.schema)).hexdigest(),
    }


async def _priority(store: Store, row: HoldRow) -> dict[str, str]:
    """As it was asked, which the audit has a digest of; and what it was raised to since."""
    raises = [each for each in await records_of(store, row.tenant, hold=row.id) if each.action == "raised"]
    if not raises:
        return {}
    first: dict[str, Any] = msgspec.json.decode(raises[0].data)
    return {"priority": first["from"], "raised_to": row.priority}


async def _skills(store: Store, row: HoldRow) -> list[dict[str, Any]]:
    """The pins, each with the content that was pinned if it still exists."""
    registry = SkillRegistry(store)
    found: list[dict[str, Any]] = []
    for pin in msgspec.json.decode(row.context).get(RESOLVED_SKILLS) or ():
        known = SkillPin(pin["id"], pin["version"], pin["digest"])
        skill: Skill | None = await registry.find_pinned(known, tenant=row.tenant)
        found.append({**pin, "said": None if skill is None else hashed_content(skill).decode()})
    return found


# ---------------------------------------------------------------------- the audit


async def _chain(store: Store, row: HoldRow, *, to_head: bool) -> dict[str, Any]:
    """From the hold's first record on, without gaps: of other holds' records only the hashed fields."""
    own = await records_of(store, row.tenant, hold=row.id)
    if not own:
        return {"rows": [], "prev": GENESIS.hex(), "head": None}
    seq, last = await store.audit_head(row.tenant)
    end = seq if to_head else own[-1].seq
    rows = await records_of(store, row.tenant, after=own[0].seq - 1, upto=end)
    return {
        "rows": [_link(each, mine=each.hold == row.id) for each in rows],
        "prev": own[0].prev.hex(),
        "head": {"seq": seq, "hash": last.hex()} if to_head else None,
    }


def _link(row: AuditRow, *, mine: bool) -> dict[str, Any]:
    """`sealed`: the stored bytes if they are encrypted: the chain covers these."""
    link: dict[str, Any] = {"said": hashed_bytes(row).decode(), "hash": row.hash.hex()}
    if mine:
        link["data"] = row.data.decode()
    if mine and row.sealed is not None:
        link["sealed"] = base64.b64encode(row.sealed).decode()
    return link
