"""Checkpoint ids: found again from the id alone, and never by chance."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.types.ids import RunId, checkpoint_id, checkpoint_seq, derived_id, is_id, new_id, run_prefix

runs = st.uuids(version=4).map(lambda u: RunId(str(u)))
seqs = st.integers(0, 2**31 - 1)


@pytest.mark.covers("CORE-CKPT-10", "CORE-IFACE-02")
@given(run=runs, seq=seqs)
@settings(max_examples=200)
def test_checkpoint_id_leads_back_to_its_record_when_it_is_asked_for(run: RunId, seq: int) -> None:
    made = checkpoint_id(run, seq)
    assert UUID(made).version == 4
    assert UUID(made).variant == UUID(new_id()).variant
    assert is_id(made)
    assert run_prefix(made) == run_prefix(run)
    assert checkpoint_seq(made, run) == seq


@pytest.mark.covers("CORE-CKPT-10")
@given(run=runs, seq=seqs, bit=st.integers(0, 127))
@settings(max_examples=200)
def test_checkpoint_id_names_nothing_when_one_bit_of_it_is_another(run: RunId, seq: int, bit: int) -> None:
    made = checkpoint_id(run, seq)
    other = str(UUID(int=UUID(made).int ^ (1 << bit)))
    assert checkpoint_seq(other, run) is None


@pytest.mark.covers("CORE-CKPT-10")
@given(run=runs, other=runs, seq=seqs, chance=st.uuids(version=4))
@settings(max_examples=200)
def test_checkpoint_id_names_nothing_in_another_run(run: RunId, other: RunId, seq: int, chance: UUID) -> None:
    assume(run != other)
    assert checkpoint_seq(checkpoint_id(run, seq), other) is None
    sharing = RunId(run[:18] + other[18:])
    assert sharing == run or checkpoint_seq(checkpoint_id(run, seq), sharing) is None
    assert checkpoint_seq(run[:18] + str(chance)[18:], run) is None
    assert checkpoint_seq(run, run) is None


@given(text=st.text(max_size=40) | st.text("0123456789abcdef-", min_size=36, max_size=36), run=runs)
@settings(max_examples=100)
def test_checkpoint_id_is_refused_quietly_when_it_is_any_text(text: str, run: RunId) -> None:
    assert checkpoint_seq(text, run) is None
    assert checkpoint_seq(run[:18] + text[18:], run) is None


@pytest.mark.covers("D-28")
@given(
    one=st.lists(st.text(max_size=4) | st.integers(), max_size=5),
    two=st.lists(st.text(max_size=4), max_size=5),
)
@settings(max_examples=200)
def test_derived_id_is_another_when_its_parts_are(one: list[str | int], two: list[str]) -> None:
    assert derived_id(*one) == derived_id(*one)
    assert UUID(derived_id(*one)).version == 4
    if list(map(str, one)) != two:
        assert derived_id(*one) != derived_id(*two)
