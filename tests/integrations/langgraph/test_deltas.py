from __future__ import annotations

import random
import zlib
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.integrations.langgraph import checksums, deltas
from holdfast.integrations.langgraph.checksums import checksum
from holdfast.integrations.langgraph.deltas import apply_deltas, delta_of

pytestmark = pytest.mark.covers("IN-15")


@given(
    st.binary(max_size=300),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 60), st.binary(max_size=80)), max_size=4),
)
def test_a_difference_gives_the_value_again(seed: bytes, edits: list[tuple[int, int, bytes]]) -> None:
    old = seed * 3
    new = old
    for at, cut, put in edits:
        new = new[:at] + put + new[at + cut :]
    found = delta_of(old, new, zlib.crc32(old))
    if found is not None:
        delta, crc = found
        assert apply_deltas(old, [delta]) == new
        assert crc == zlib.crc32(new)
        assert len(delta) * 2 < len(new)


@given(st.binary(max_size=900), st.lists(st.integers(0, 300) | st.binary(max_size=80), max_size=4))
def test_a_checksum_follows_from_that_of_the_earlier_value(old: bytes, given: list[int | bytes]) -> None:
    """Numbers: the rest of it from there."""
    parts = [each if isinstance(each, bytes) else (min(each, len(old)), len(old)) for each in given]
    new = b"".join([each if isinstance(each, bytes) else old[each[0] :] for each in parts])
    found = checksum(old, zlib.crc32(old), parts)
    assert found == zlib.crc32(new) or (
        found is None and any(each[0] * 2 > len(old) for each in parts if isinstance(each, tuple))
    )


def test_the_checksum_of_an_append_reads_little_of_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    old = random.Random(3).randbytes(100_000)
    new = b"\x01" + old[1:] + b"x" * 500
    crc, read = zlib.crc32(old), list[int]()

    def counted(data: bytes, value: int = 0) -> int:
        read.append(len(data))
        return zlib.crc32(data, value)

    for module in (checksums, deltas):
        monkeypatch.setattr(module, "zlib", SimpleNamespace(crc32=counted))
    found = delta_of(old, new, crc)
    assert found is not None
    assert found[1] == zlib.crc32(new)
    assert sum(read) < 600


def test_inserts_cuts_and_appends_cost_what_is_new() -> None:
    old = random.Random(1).randbytes(100_000)
    for new in (
        old,
        old + b"x" * 500,
        b"x" * 500 + old,
        old[:40_000] + b"x" * 500 + old[40_000:],
        old[9_000:],
    ):
        found = delta_of(old, new)
        assert found is not None
        delta, _ = found
        assert len(delta) < 600
        assert apply_deltas(old, [delta]) == new


def test_other_bytes_are_no_difference_and_a_wrong_base_is_found() -> None:
    values = random.Random(2)
    old, other = values.randbytes(5_000), values.randbytes(5_000)
    assert delta_of(old, other) is None
    found = delta_of(old, old + b"tail")
    assert found is not None
    delta, _ = found
    with pytest.raises(ValueError, match="not the one that was stored"):
        apply_deltas(other, [delta])
    with pytest.raises(ValueError, match="cannot be read"):
        apply_deltas(old, [b"\xc1"])
