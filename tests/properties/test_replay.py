"""Replay of whole runs of random graphs: the same decisions again, whatever happened on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from holdfast import Holdfast
from holdfast.runs.history.retrace import RetraceResult, retrace
from holdfast.types.record import Record
from tests.properties.checks import EVERYTHING, STEADY, chooser
from tests.properties.graphs import Plan, plans
from tests.properties.play import CODEC, RUN, Play, look
from tests.properties.test_forks import Shape, flow_of, shapes


def journal_of(play: Play) -> list[tuple[Record, Any]]:
    return [(record, CODEC.decode(record)) for record in play.journal]


def proven(play: Play, plan: Plan) -> RetraceResult:
    found = retrace(plan.graph, RUN, journal_of(play))
    note("\n".join(play.trail()))
    assert found.difference is None, found.difference
    assert found.whole
    assert look(found.pos) == look(play.pos)
    return found


@pytest.mark.covers("TOOL-TIME-05")
@given(plan=plans(EVERYTHING), data=st.data())
@settings(max_examples=60)
def test_replay_decides_the_same_whatever_the_graph(plan: Plan, data: st.DataObject) -> None:
    choose = chooser(data)
    play = Play(plan, choose, noise=True).start()
    moment = choose(60)
    for at in range(400):
        if at == moment and not play.ended and play.pos.failing is None:
            play.cancel()
        if play.ended or not play.go_on():
            break
    proven(play, plan)


@pytest.mark.covers("TOOL-TIME-05")
@given(plan=plans(STEADY) | plans(EVERYTHING), data=st.data())
@settings(max_examples=60)
def test_replay_decides_the_same_when_a_worker_died_at_any_record(plan: Plan, data: st.DataObject) -> None:
    choose = chooser(data)
    play = Play(plan, choose).start().to_end()
    upto = settled(play, choose(len(play.journal)))
    again = Play(plan, choose).resume(play.journal, upto).to_end()
    for record in again.journal[upto + 1 :]:
        record.term = 2
    proven(again, plan)


async def branched(shape: Shape, place: float, keep: int) -> None:
    flow = flow_of(shape)
    async with Holdfast("memory:") as hf:
        source = (await flow.run({}, on=hf)).expect().run_id
        service = await hf.service()
        made = await service.fork(source, int(place * (await service.get(source)).head))
        result = await flow.resume(made.id, on=hf)
        while result.holds:
            await service.answer(result.holds[0].id, "not_happened")
            result = await flow.resume(made.id, on=hf)
        for run in (source, made.id):
            assert (await service.replay(run)).same
            await service.prune(run, keep=keep)
            found = await service.replay(run)
            assert found.same, found.difference


@pytest.mark.covers("TOOL-TIME-05")
@given(shape=shapes(), place=st.floats(0, 1), keep=st.integers(1, 6))
@example(
    shape=[(0, [0], False), (2, [0], False), (2, [0], False)], place=0.5, keep=6
)  # between two questions
@settings(max_examples=30)
def test_replay_decides_the_same_in_a_fork_and_after_a_prune(shape: Shape, place: float, keep: int) -> None:
    asyncio.run(branched(shape, place, keep))


def settled(play: Play, upto: int) -> int:
    """A worker never dies between two records of one decision: they commit together. At any other."""
    journal = journal_of(play)
    while not retrace(play.graph, RUN, journal[: upto + 1]).whole:
        upto += 1
    return upto
