"""Threads of other frameworks' graphs, as rows: checkpoints, the values of their channels, pending writes.

The store knows no framework: content is bytes, and what it has to find rows by is in columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

FACET_MARK: Final = "\x1f"
"""Stands around each facet. JSON escapes control characters, so no facet contains it."""


class GraphClaim(msgspec.Struct, frozen=True):
    """Who may write to a thread. `owner` is unique for each claim, so that a claim of a thread that was
    deleted and made again is not taken for the new one. `new_thread`: in the answer to the call that made the
    thread, which has nothing to be read yet."""

    owner: str
    term: int
    until: int
    new_thread: bool = False


class GraphThreadRow(msgspec.Struct, frozen=True, kw_only=True):
    """`claim`: the last one, whether it still lives or not."""

    tenant: str
    thread: str
    created_at: int
    claim: GraphClaim | None = None


class GraphValueRow(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a channel as of one version. With `base`, `data` says how it differs from that value; the
    number is drawn by the caller. With `blob_digest`, the bytes are in the blob there, and `data` is
    their digest."""

    number: int
    channel: str
    data: bytes
    base: int | None = None
    blob_digest: bytes | None = None


class GraphWriteRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a task wrote for the checkpoint after `checkpoint`. The first of a number stays; negative
    numbers are replaced."""

    ns: str
    checkpoint: str
    task: str
    idx: int
    path: str
    channel: str
    data: bytes


class GraphCheckpointRow(msgspec.Struct, frozen=True, kw_only=True):
    """`values`: the numbers of those that it refers to. `facets`: its metadata, to be found by. Not `listed`:
    it was deleted, but others are built from it. `digest`: of all that was put with it, to tell a repeat."""

    ns: str
    id: str
    parent: str | None
    body: bytes
    digest: bytes
    thread: str = ""
    values: tuple[int, ...] = ()
    facets: str = ""
    run_id: str | None = None
    listed: bool = True
    written_at: int = 0
    number: int = 0
    writes: tuple[GraphWriteRow, ...] = ()


class GraphBatch(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction adds to a thread. Not `fenced`: also while another has claimed it."""

    tenant: str
    thread: str
    checkpoints: tuple[GraphCheckpointRow, ...] = ()
    values: tuple[GraphValueRow, ...] = ()
    writes: tuple[GraphWriteRow, ...] = ()
    claim: GraphClaim | None = None
    fenced: bool = True

    def needed_values(self, rows: Iterable[GraphCheckpointRow]) -> set[int]:
        """Values that the store must have: these rows refer to them, or new values are built from them."""
        refs = {number for row in rows for number in row.values}
        bases = {v.base for v in self.values if v.base is not None and v.number in refs}
        return (refs | bases) - {v.number for v in self.values}


class GraphDrop(msgspec.Struct, frozen=True, kw_only=True):
    """What one transaction deletes from a thread: `places` are (namespace, checkpoint), None is all of it.
    `unlisted` are kept for those that are built from them."""

    tenant: str
    thread: str
    places: tuple[tuple[str, str], ...] | None = None
    unlisted: tuple[tuple[str, str], ...] = ()
    claim: GraphClaim | None = None
    fenced: bool = True


class GraphFilter(msgspec.Struct, frozen=True, kw_only=True):
    """`facets`: all of these. `absent`: keys that must not be there, or be null. `before`: checkpoints with a
    smaller id."""

    tenant: str
    thread: str | None = None
    ns: str | None = None
    id: str | None = None
    before: str | None = None
    run_ids: tuple[str, ...] = ()
    facets: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    unlisted: bool = False

    def admits(self, facets: str) -> bool:
        return all(facet in facets for facet in self.facets) and not any(
            key_mark(key) in facets and facet_of(key, None) not in facets for key in self.absent
        )


class GraphCopy(msgspec.Struct, frozen=True, kw_only=True):
    """`claim`: of the source."""

    tenant: str
    source: str
    target: str
    claim: GraphClaim | None = None
    fenced: bool = True


class GraphRefusal(msgspec.Struct, frozen=True):
    """Why nothing was written. `lost`: the claim that was given is not the thread's any more; else another
    one lives. `exists`: the target of a copy is there already. `missing`: a value that a checkpoint refers
    to, or a new one is built from, was deleted meanwhile; or a blob must be put again."""

    claim: GraphClaim | None = None
    lost: bool = False
    exists: bool = False
    missing: bool = False


def facet_of(key: str, value: Any) -> str:
    return f"{FACET_MARK}{_encoder.encode([key, _plain(value)]).decode()}{FACET_MARK}"


def facets_of(metadata: dict[str, Any]) -> str:
    """Of each entry that JSON can express; others cannot be found by."""
    found: list[str] = []
    for key, value in metadata.items():
        try:
            found.append(facet_of(key, value))
        except (TypeError, ValueError, msgspec.MsgspecError):
            continue
    return "".join(found)


def key_mark(key: str) -> str:
    """How the facets of this key begin."""
    return f"{FACET_MARK}[{_encoder.encode(key).decode()},"


def _plain(value: Any) -> Any:
    """1.0 is found by 1, as Python compares them."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_encoder = msgspec.json.Encoder(order="deterministic")


class GraphClaimRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`ttl` in microseconds."""

    tenant: str
    thread: str
    owner: str
    ttl: int


class GraphExtension(msgspec.Struct, frozen=True, kw_only=True):
    """A claim to be kept alive."""

    tenant: str
    thread: str
    claim: GraphClaim
