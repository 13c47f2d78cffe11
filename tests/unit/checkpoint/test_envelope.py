from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from holdfast.checkpoint import decode_body, encode_body, pack, record_digest, unpack
from holdfast.checkpoint.compress import MAX_DECOMPRESSED, WORTH_TRYING, compress, decompress, library
from holdfast.checkpoint.upcast import VERSION, upcast
from holdfast.errors import (
    CheckpointCorruptError,
    HoldfastError,
    SchemaTooNewError,
    ValueNotStorableError,
    ValueTooLargeError,
)
from holdfast.types.record import Body, Op
from holdfast.types.value import freeze
from tests.unit.checkpoint.strategies import REGISTRY, VALUES, same


class Step(Body):
    node: str
    ops: list[Op]
    output: Any = None


class StepWithMore(Body):
    node: str
    ops: list[Op]
    output: Any = None
    added: int = 7


def step(value: Any) -> Step:
    return Step("think", [("state", "answer", "set", pack(value, REGISTRY))], pack(value, REGISTRY))


@given(VALUES)
def test_envelope_gives_back_body_and_values(value):
    back = decode_body(encode_body(step(value)), Step)
    assert back.node == "think"
    assert same(unpack(back.ops[0][3], REGISTRY), value)
    assert same(unpack(back.output, REGISTRY), value)


def test_envelope_costs_one_byte_when_the_body_is_small():
    body = step("text")
    assert encode_body(body) == b"A" + msgspec.msgpack.encode(body)


@pytest.mark.covers("CORE-CKPT-08", "R-51")
def test_envelope_compresses_when_a_large_body_shrinks():
    value = freeze(["the same words again and again"] * 1000)
    data = encode_body(step(value))
    assert data[:1] == b"a"
    assert len(data) < 1000
    assert unpack(decode_body(data, Step).output) == value


@pytest.mark.covers("CORE-CKPT-08")
def test_envelope_does_not_compress_when_it_would_not_pay():
    assert encode_body(Step("n", [], os.urandom(10_000)))[:1] == b"A"
    assert encode_body(step("a" * (WORTH_TRYING // 2 - 100)))[:1] == b"A"


def test_squeezing_is_refused_when_it_saves_a_tenth_or_less():
    noise = os.urandom(9_500)
    assert compress(noise + b"\0" * 500) is None
    assert compress(noise + b"\0" * 3000) is not None


def test_body_reads_with_defaults_when_fields_were_added_later():
    assert decode_body(encode_body(step(1)), StepWithMore).added == 7


def test_body_reads_when_a_later_writer_added_fields():
    assert decode_body(encode_body(StepWithMore("n", [], 5)), Step).output == 5


@pytest.mark.covers("CORE-CKPT-05", "R-40")
def test_reader_is_asked_to_upgrade_when_the_version_is_newer():
    data = bytes([encode_body(step(1))[0] + 1]) + encode_body(step(1))[1:]
    with pytest.raises(SchemaTooNewError, match=f"version {VERSION + 1}.*Upgrade"):
        decode_body(data, Step)


@pytest.mark.parametrize("data", [b"", b"A", b"a", b"@", b"\x93", b" {}", b"A\x91", b"a(\xb5/\xfd"])
def test_reader_answers_corrupt_when_the_payload_is_none_of_ours(data):
    with pytest.raises(CheckpointCorruptError):
        decode_body(data, Step)


@pytest.mark.parametrize("value", ["short", freeze(["many words"] * 3000)])
def test_reader_answers_corrupt_when_the_payload_is_cut_off_or_longer(value):
    data = encode_body(step(value))
    for cut in (1, 2, 5, len(data) // 2, len(data) - 1):
        with pytest.raises(CheckpointCorruptError):
            decode_body(data[:cut], Step)
    with pytest.raises(CheckpointCorruptError):
        decode_body(data + b"\x00", Step)


@given(st.sampled_from(["some text", freeze([[f"row {i}", (i, -i)] for i in range(900)])]), st.data())
def test_reader_answers_with_a_typed_error_or_a_body_when_bytes_are_flipped(value, data):
    broken = bytearray(encode_body(step(value)))
    spot = data.draw(st.integers(0, len(broken) - 1))
    broken[spot] ^= data.draw(st.integers(1, 255))
    try:
        unpack(decode_body(bytes(broken), Step).output, REGISTRY)
    except HoldfastError:
        return


@given(st.binary(max_size=200))
def test_reader_answers_with_a_typed_error_or_a_body_when_the_bytes_are_noise(noise):
    for head in (b"A", b"a", b"A\x93\xa1n\x90"):
        try:
            unpack(decode_body(head + noise, Step).output, REGISTRY)
        except HoldfastError:
            continue


def test_reader_answers_corrupt_when_arrays_are_nested_without_end():
    with pytest.raises(CheckpointCorruptError):
        decode_body(b"A\x93\xa1n\x90" + b"\x91" * 100_000 + b"\x01", Step)


def test_reader_refuses_a_bomb_by_what_it_claims():
    bomb = library().compress(b"\0" * (MAX_DECOMPRESSED + 1))
    with pytest.raises(CheckpointCorruptError, match="claims"):
        decompress(bomb)


def test_reader_refuses_a_frame_that_does_not_tell_its_size():
    squeezer = library().ZstdCompressor()
    untold = squeezer.compress(b"\0" * 10_000) + squeezer.flush()
    with pytest.raises(CheckpointCorruptError, match="None"):
        decompress(untold)


def test_reader_refuses_a_second_frame_behind_the_first():
    with pytest.raises(CheckpointCorruptError, match="follows"):
        decompress(library().compress(b"\0" * 10_000) * 2)


def test_writer_is_reported_the_limit_when_a_value_is_too_large():
    with pytest.raises(ValueTooLargeError, match=r"over the limit of 1,000.*reference"):
        encode_body(step("a" * 600), limit=1000)


def test_writer_is_reported_the_place_when_a_body_has_a_lone_surrogate():
    with pytest.raises(ValueNotStorableError, match=r"Step\.ops\[1\]\[2\] "):
        encode_body(Step("n", [("s", "a", "set", 1), ("s", "b", "\ud800", 1)]))


def test_writer_answers_not_storable_when_a_value_was_not_packed():
    for value in (2**70, 1j, object()):
        with pytest.raises(ValueNotStorableError):
            encode_body(Step("n", [], value))


def test_reading_an_envelope_needs_no_registry_when_its_values_are_of_own_types():
    raw = decode_body(encode_body(step(freeze((1, 2)))), Step).output
    assert type(raw) is Ext


def test_digest_depends_on_each_column_and_on_where_one_ends():
    base = (6, 10, "ab", "c", 1, "ok", b"payload")
    others = [
        (7, 10, "ab", "c", 1, "ok", b"payload"),
        (6, 11, "ab", "c", 1, "ok", b"payload"),
        (6, 10, "a", "bc", 1, "ok", b"payload"),
        (6, 10, "abc", "", 1, "ok", b"payload"),
        (6, 10, "ab", "c", 2, "ok", b"payload"),
        (6, 10, "ab", "c", 1, "o", b"kpayload"),
        (6, 10, "ab", "c", 1, "ok", b"payloae"),
    ]
    digests = {record_digest(*columns) for columns in [base, *others]}
    assert len(digests) == len(others) + 1
    assert {len(d) for d in digests} == {16}
    assert record_digest(*base) == record_digest(*base)


def test_upcast_goes_through_every_version_in_turn():
    table = {1: lambda body, raw: [*raw, body], 2: lambda _body, raw: [*raw, "third"]}
    assert upcast("Step", ["first"], 1, table, 3) == ["first", "Step", "third"]
    assert upcast("Step", ["second"], 2, table, 3) == ["second", "third"]


@pytest.mark.covers("CORE-CKPT-05", "R-40")
def test_envelope_reads_an_old_version_through_its_upcast(monkeypatch):
    old = encode_body(Step("n", [], pack((1, 2))))
    monkeypatch.setattr("holdfast.checkpoint.envelope.VERSION", 2)
    monkeypatch.setattr(
        "holdfast.checkpoint.envelope.upcast",
        lambda body, raw, version: upcast(body, raw, version, {1: lambda _b, r: [r[0] + "!", *r[1:]]}, 2),
    )
    back = decode_body(old, Step)
    assert back.node == "n!"
    assert unpack(back.output) == (1, 2)
