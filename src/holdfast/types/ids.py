"""Identities. Every id has the form of a version-4 UUID; some are derived, so that a repeat finds them."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Final, NewType

RunId = NewType("RunId", str)
CheckpointId = NewType("CheckpointId", str)
HoldId = NewType("HoldId", str)
WorkerId = NewType("WorkerId", str)
TenantId = NewType("TenantId", str)

DEFAULT_TENANT = TenantId("default")
DEFAULT_CELL: Final = "main"
"""The name of the cell where none is given."""

_ID_LETTERS = frozenset("0123456789abcdef-")
_SEQ_MASK = 0xFFFF_FFFF
_CHECK_MASK = (1 << 30) - 1


def _uuid_form(raw: bytes) -> str:
    """Sixteen bytes written as a version-4 UUID (six bits are fixed by the form)."""
    b = bytearray(raw)
    b[6] = (b[6] & 0x0F) | 0x40
    b[8] = (b[8] & 0x3F) | 0x80
    h = b.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def new_id() -> str:
    return _uuid_form(os.urandom(16))


def new_run_id() -> RunId:
    return RunId(new_id())


def derived_id(*parts: str | int) -> str:
    """The same parts always give the same id: an ask that is executed again finds its row."""
    digest = sha256()
    for part in parts:
        text = str(part).encode()
        digest.update(b"%d:" % len(text))
        digest.update(text)
    return _uuid_form(digest.digest()[:16])


def is_id(text: str) -> bool:
    """Whether the text has the form of one of our ids."""
    return (
        len(text) == 36
        and text[8] == text[13] == text[18] == text[23] == "-"
        and text.count("-") == 4
        and _ID_LETTERS.issuperset(text)
    )


def checkpoint_id(run: RunId, seq: int) -> CheckpointId:
    """The id of the checkpoint at `seq`: found again from the id alone, with no index row per step.

    It begins with the first half of the run's id; the second half hides `seq` under a mask and
    has 30 check bits, so that a guessed id does not resolve.
    """
    head = bytes.fromhex(run.replace("-", ""))[:8]
    mask, check = _mask_and_check(run, seq)
    # The two highest bits are the variant of a UUID, then come 30 check bits and 32 bits of `seq`.
    tail = (2 << 62) | (check << 32) | ((seq ^ mask) & _SEQ_MASK)
    return CheckpointId(_uuid_form(head + tail.to_bytes(8, "big")))


def run_prefix(checkpoint: str) -> str:
    """The part that the run's id begins with."""
    return checkpoint[:18]  # 8 bytes: 16 hexadecimal digits and two dashes


def checkpoint_seq(checkpoint: str, run: RunId) -> int | None:
    """The seq that this checkpoint id names in that run, or None where it names none."""
    if not is_id(checkpoint) or run_prefix(checkpoint) != run_prefix(run):
        return None
    tail = int.from_bytes(bytes.fromhex(checkpoint.replace("-", ""))[8:], "big")
    mask, _ = _mask_and_check(run, 0)
    seq = (tail & _SEQ_MASK) ^ mask
    return seq if checkpoint_id(run, seq) == checkpoint else None


def _mask_and_check(run: RunId, seq: int) -> tuple[int, int]:
    mask = int.from_bytes(sha256(run.encode()).digest()[:4], "big")
    check = int.from_bytes(sha256(f"{run}/{seq}".encode()).digest()[:4], "big") & _CHECK_MASK
    return mask, check


EFFECT_FLOW: Final = "effect."
"""Before the name of an effect: its flow."""


def effect_run_id(tenant: str, effect: str, key: str) -> RunId:
    """The run of an effect with this key (ADR 99)."""
    return RunId(derived_id("effect", tenant, effect, key))
