"""A version's identity: the same graph has the same fingerprint in every process and compile (D-34)."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from holdfast.model.graph import GraphSpec

# Sorted keys, because equal graphs must have equal fingerprints.
_sorted = msgspec.json.Encoder(order="sorted")


CODED = "g1"
PIPELINES = "attractor"
"""The dialect of pipelines."""


class _Made(msgspec.Struct):
    """The part of a stored graph that names what it was made from."""

    document: dict[str, Any] = {}


_made = msgspec.json.Decoder(_Made)
REQUIRES = "requires"
"""In the document of a stored graph: what a worker must have to run it, where its dialect lists that."""


def graph_fingerprint(spec: GraphSpec) -> str:
    """Over structure, policies, schemas and sub-flows; never over handlers' code."""
    return _fingerprint(_sorted.encode(spec))


def fingerprint_of(encoded: bytes) -> str:
    """The fingerprint of a stored graph: over what was stored, so that fields which were added later do not
    change it. The order of its keys does not count."""
    return _fingerprint(_sorted.encode(msgspec.json.decode(encoded)))


def _fingerprint(encoded: bytes) -> str:
    """It begins with the dialect of the document that the graph was made from, so that a store can find runs
    by dialect."""
    dialect = _made.decode(encoded).document.get("dialect") if b'"document":' in encoded else None
    return f"{dialect or CODED}-{sha256(encoded).hexdigest()[:32]}"


def dialect_of(version: str) -> str:
    """`CODED` if there is none: such a graph needs the code that it was made from."""
    return version.partition("-")[0]


def requirements_in(encoded: bytes) -> frozenset[str]:
    """Of a stored graph."""
    return frozenset(_made.decode(encoded).document.get(REQUIRES) or ())


def encode_graph(spec: GraphSpec) -> bytes:
    """With the keys in their author's order: forms and inputs are shown from it."""
    return msgspec.json.encode(spec)


_decoder = msgspec.json.Decoder(GraphSpec)


def decode_graph(raw: bytes) -> GraphSpec:
    return _decoder.decode(raw)
