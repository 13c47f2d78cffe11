"""Records of the audit on the wire, in the same envelope as events and webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.holds.queries.audit_text import AuditedHold, audit_sentence
from holdfast.types.audit import AuditRow
from holdfast.types.clock import iso

MODULE = "scaicore"
OWN = "holdfast"
"""Actions of the server itself: people, tokens, channels, refused requests."""


class AuditWire(msgspec.Struct, kw_only=True):
    """`hash` covers the previous hash, these fields and the digest of `data`: one chain per tenant. `text`:
    the record as one sentence, with the question for callers who may see all holds; it is not covered."""

    id: str
    seq: int
    type: str
    module: str
    tenant: str
    checkpoint_id: str | None
    execution_id: str | None
    at: str
    actor: str
    action: str
    text: str
    data: Any
    data_digest: str
    prev_hash: str
    hash: str


def audit_wire(row: AuditRow, questions: Mapping[str, AuditedHold] | None = None) -> AuditWire:
    module = module_of(row)
    return AuditWire(
        id=f"evt_{row.hash.hex()[:24]}",
        seq=row.seq,
        type=f"{'checkpoint' if row.hold else module}.{row.action}",
        module=module,
        tenant=row.tenant,
        checkpoint_id=row.hold,
        execution_id=row.run,
        at=iso(row.at),
        actor=row.actor,
        action=row.action,
        text=audit_sentence(row, questions),
        data=_decoded_data(row.data),
        data_digest=row.data_digest,
        prev_hash=row.prev.hex(),
        hash=row.hash.hex(),
    )


def module_of(row: AuditRow) -> str:
    return MODULE if row.hold is not None or row.run is not None else OWN


def _decoded_data(data: bytes) -> Any:
    """None: erased, or encrypted with a key that is not available."""
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None
