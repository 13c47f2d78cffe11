"""A version's identity: the same graph has the same fingerprint in every process and compile (D-34)."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from holdfast.model.graph import GraphSpec

_encoder = msgspec.json.Encoder(order="sorted")


def graph_fingerprint(spec: GraphSpec) -> str:
    """Over structure, policies, schemas and sub-flows; never over handlers' code."""
    return fingerprint_of(_encoder.encode(spec))


def fingerprint_of(encoded: bytes) -> str:
    """Of a stored graph: over its bytes, so that fields which came later do not change it."""
    return "g1-" + sha256(encoded).hexdigest()[:32]


def encode_graph(spec: GraphSpec) -> bytes:
    return _encoder.encode(spec)


_decoder = msgspec.json.Decoder(GraphSpec)


def decode_graph(raw: bytes) -> GraphSpec:
    return _decoder.decode(raw)
