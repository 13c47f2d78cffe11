from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.integrations.langgraph.deltas import apply_delta, delta_of

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
    delta = delta_of(old, new)
    if delta is not None:
        assert apply_delta(old, delta) == new
        assert len(delta) * 2 < len(new)


def test_inserts_cuts_and_appends_cost_what_is_new() -> None:
    old = random.Random(1).randbytes(100_000)
    for new in (
        old,
        old + b"x" * 500,
        b"x" * 500 + old,
        old[:40_000] + b"x" * 500 + old[40_000:],
        old[9_000:],
    ):
        delta = delta_of(old, new)
        assert delta is not None
        assert len(delta) < 600
        assert apply_delta(old, delta) == new


def test_other_bytes_are_no_difference_and_a_wrong_base_is_found() -> None:
    values = random.Random(2)
    old, other = values.randbytes(5_000), values.randbytes(5_000)
    assert delta_of(old, other) is None
    delta = delta_of(old, old + b"tail")
    assert delta is not None
    with pytest.raises(ValueError, match="not the one that was stored"):
        apply_delta(other, delta)
    with pytest.raises(ValueError, match="cannot be read"):
        apply_delta(old, b"\xc1")
