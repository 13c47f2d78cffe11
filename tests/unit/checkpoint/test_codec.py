from __future__ import annotations

import contextlib
import math
import struct
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from holdfast.checkpoint import TypeRegistry, pack, unpack
from holdfast.checkpoint.scalars import MAP, TUPLE
from holdfast.errors import CheckpointCorruptError, HoldfastError, ValueNotStorableError
from holdfast.types.value import FrozenDict, FrozenList, freeze
from tests.unit.checkpoint.strategies import REGISTRY, VALUES, Colour, Line, Point, same


def round_trip(value, registry=REGISTRY):
    return unpack(msgspec.msgpack.decode(msgspec.msgpack.encode(pack(value, registry))), registry)


@given(VALUES)
@pytest.mark.covers("CORE-CKPT-07", "RS-SER-1", "RF-9")
def test_codec_gives_back_equal_value_of_equal_type_at_every_depth(value):
    assert same(round_trip(value), value)


@given(VALUES)
def test_codec_encodes_equal_values_to_equal_bytes(value):
    encoded = msgspec.msgpack.encode(pack(value, REGISTRY))
    assert msgspec.msgpack.encode(pack(round_trip(value), REGISTRY)) == encoded


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000000, 1 << 63])
def test_codec_keeps_every_bit_of_a_float(bits):
    value = struct.unpack(">d", struct.pack(">Q", bits))[0]
    assert struct.pack(">d", round_trip(value)) == struct.pack(">Q", bits)


@pytest.mark.parametrize(
    "value", [2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**100, -(10**100), 255, 256, -256]
)
def test_codec_keeps_integers_of_any_size(value):
    assert round_trip(freeze({"n": value, value: [value]})) == {"n": value, value: [value]}


def test_codec_keeps_a_signalling_decimal_nan():
    assert str(round_trip(Decimal("sNaN7"))) == "sNaN7"


def test_codec_keeps_the_kinds_of_dict_keys_apart():
    value = freeze(
        {1: "int", "1": "text", 1.5: "float", None: 0, (1, "a"): 2, b"1": 3, Colour.red: 4, 2**70: 5},
        REGISTRY.adopt,
    )
    back = round_trip(value)
    assert [(type(k), k) for k in back] == [(type(k), k) for k in value]


def test_codec_keeps_the_fold_and_the_zone_of_a_datetime():
    twice = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Zurich"), fold=1)
    back = round_trip(twice)
    assert (back.utcoffset(), back.fold, back.tzinfo.key) == (timedelta(hours=1), 1, "Europe/Zurich")


def test_codec_keeps_the_name_of_a_fixed_zone():
    back = round_trip(datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1), "CET")))
    assert back.tzname() == "CET"


@pytest.mark.parametrize(
    "value", ["text", "zürich", 5, FrozenDict(a=1, b="x", c=None), FrozenList([1.0, "a", 2])]
)
def test_codec_passes_the_same_object_when_nothing_needs_help(value):
    assert pack(value) is value


def test_codec_passes_the_same_object_when_the_inside_needs_no_help():
    value = freeze({"messages": [{"role": "user", "content": "hi"}] * 3, 7: [1, [2]]})
    assert pack(value) is value


def test_codec_leaves_the_value_alone_when_a_part_needs_help():
    value = freeze({"a": (1, 2), "b": [1, (3,)]})
    pack(value)
    assert value == {"a": (1, 2), "b": [1, (3,)]}


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("\ud800", "value "),
        ({"a": ["ok", "x\udfff"]}, "value['a'][1] "),
        ({"a": ("ok", {"b": "\ud800"})}, "value['a'][1]['b'] "),
        ({"\ud800": 1}, "the key '\\ud800'"),
        (Point(1, "\ud800"), "value.y "),
        (frozenset({"\ud800"}), "the member '\\ud800'"),
    ],
)
@pytest.mark.covers("CORE-CKPT-07")
def test_codec_refuses_lone_surrogates_and_names_the_place(value, place):
    with pytest.raises(ValueNotStorableError) as caught:
        pack(freeze(value, REGISTRY.adopt), REGISTRY)
    assert place in str(caught.value)
    assert "surrogate" in str(caught.value)


@pytest.mark.covers("CORE-CKPT-06", "CORE-CKPT-07", "RS-SER-3")
def test_codec_refuses_an_unregistered_type_and_names_the_place():
    with pytest.raises(ValueNotStorableError, match=r"result\['p'\].*Point.*types=\[\.\.\.\]"):
        pack(FrozenDict(p=Point(1)), TypeRegistry(), "result")


def test_codec_refuses_a_time_zone_that_has_no_stable_name():
    class Own(tzinfo):
        def utcoffset(self, _dt):
            return timedelta(0)

    with pytest.raises(ValueNotStorableError, match="Use zoneinfo"):
        pack(datetime(2026, 1, 1, tzinfo=Own()))


@pytest.mark.covers("CORE-CKPT-06")
def test_reader_is_reported_the_type_name_when_it_is_not_registered():
    raw = msgspec.msgpack.decode(msgspec.msgpack.encode(pack(Line(1), REGISTRY)))
    with pytest.raises(ValueNotStorableError, match=r"'Line'.*types="):
        unpack(raw, TypeRegistry(Point))


def test_reader_is_asked_to_upgrade_when_the_extension_code_is_unknown():
    with pytest.raises(CheckpointCorruptError, match=r"code 99.*upgrade"):
        unpack(FrozenList.__base__([Ext(99, b"")]))


def test_reader_is_reported_what_to_install_when_the_zone_is_unknown():
    payload = msgspec.msgpack.encode([2026, 1, 1, 0, 0, 0, 0, 0, "Mars/Olympus"])
    with pytest.raises(ValueNotStorableError, match="tzdata"):
        unpack(Ext(6, payload))


WHOLE_NUMBER = 4  # any payload is one


@pytest.mark.parametrize("code", range(1, 14))
def test_reader_answers_with_a_typed_error_when_a_payload_is_damaged(code):
    for data in (b"", b"\xff", b"\x81\x01\x01", b"\xc1"):
        with contextlib.nullcontext() if code == WHOLE_NUMBER else pytest.raises(HoldfastError):
            unpack(Ext(code, data), REGISTRY)


def test_reader_refuses_a_map_with_a_key_without_a_value():
    with pytest.raises(CheckpointCorruptError):
        unpack(Ext(MAP, msgspec.msgpack.encode([1])))


def test_reader_refuses_a_nesting_that_nobody_writes():
    data = b"\x90"
    for _ in range(3000):
        data = msgspec.msgpack.encode([Ext(TUPLE, data)])
    with pytest.raises(CheckpointCorruptError, match="nested"):
        unpack(msgspec.msgpack.decode(data))


@given(VALUES, st.data())
def test_reader_answers_with_a_typed_error_or_a_value_when_bytes_are_flipped(value, data):
    encoded = bytearray(msgspec.msgpack.encode(pack(value, REGISTRY)))
    spot = data.draw(st.integers(0, len(encoded) - 1))
    encoded[spot] ^= data.draw(st.integers(1, 255))
    try:
        raw = msgspec.msgpack.decode(bytes(encoded))
    except (msgspec.MsgspecError, ValueError, TypeError):
        return
    with contextlib.suppress(HoldfastError):
        unpack(raw, REGISTRY)


def test_codec_reads_infinities_as_infinities():
    assert round_trip(FrozenList([math.inf, -math.inf])) == [math.inf, -math.inf]
