from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from holdfast.checkpoint import SPILL_OVER, decode_body, encode_body, pack, spill, unpack, unspill
from holdfast.errors import BlobMissingError, ValueTooLargeError
from holdfast.types.record import Body
from holdfast.types.value import BlobRef, freeze
from tests.unit.checkpoint.strategies import REGISTRY, Point, same


class Holder(Body):
    value: Any


LARGE = [
    "x" * 70_000,
    "ü" * 40_000,
    b"\x01" * 70_000,
    freeze(["item"] * 20_000),
    freeze({"one": "y" * 70_000}),
    freeze(("z" * 70_000, {1: (2,)})),
    Point("p" * 70_000, 1),
    2 ** (8 * 70_000),
]
SMALL = [
    None,
    True,
    1.5,
    5,
    "x" * 60_000,
    b"x" * 60_000,
    "ü" * 20_000,
    freeze({"a": [1, (2,)]}),
    freeze(("a",)),
]


def read_back(value: Any) -> tuple[Any, list]:
    """(what the record holds, blobs), through a sealed record."""
    inline, blobs = spill(pack(value, REGISTRY))
    return unpack(decode_body(encode_body(Holder(inline)), Holder).value, REGISTRY), blobs


@pytest.mark.parametrize("value", SMALL, ids=lambda v: type(v).__name__)
def test_small_values_stay_in_the_record(value):
    back, blobs = read_back(value)
    assert blobs == []
    assert same(back, value)


@pytest.mark.parametrize("value", LARGE, ids=lambda v: type(v).__name__)
@pytest.mark.covers("CORE-CKPT-03")
def test_large_values_become_a_reference_to_their_blob(value):
    back, (blob,) = read_back(value)
    assert back == blob.ref == BlobRef(hashlib.sha256(blob.data).digest(), len(blob.data))
    assert same(unspill(blob.ref, blob.data, REGISTRY), value)


def test_values_spill_exactly_when_their_encoded_size_is_over_the_threshold():
    value = freeze(["a" * 100] * 10)
    size = len(msgspec.msgpack.encode(value))
    assert spill(value, size)[1] == []
    assert len(spill(value, size - 1)[1]) == 1


def test_equal_values_share_one_blob():
    first, second = (spill(pack(freeze({"k": frozenset("abcdef"), "v": "x" * 70_000})))[1] for _ in range(2))
    assert first == second


def test_large_value_is_encoded_once_when_it_stays():
    value = freeze(["item"] * 5000)
    assert len(msgspec.msgpack.encode(value)) < SPILL_OVER
    inline, _ = spill(pack(value))
    assert isinstance(inline, msgspec.Raw)


def test_reader_is_reported_the_hash_when_the_blob_is_gone():
    _, (blob,) = spill("x" * 70_000)
    with pytest.raises(BlobMissingError, match=blob.ref.digest.hex()):
        unspill(blob.ref, None)


def test_reader_is_reported_when_the_blob_is_damaged():
    _, (blob,) = spill(freeze(list(range(70_000))))
    with pytest.raises(BlobMissingError, match="bytes instead of"):
        unspill(blob.ref, blob.data[:-1])
    flipped = blob.data[:-1] + bytes([blob.data[-1] ^ 1])
    with pytest.raises(BlobMissingError, match="hash"):
        unspill(blob.ref, flipped)


def test_writer_is_reported_the_limit_when_a_value_is_too_large_for_a_blob():
    with pytest.raises(ValueTooLargeError):
        spill("x" * 70_000, limit=65_000)
