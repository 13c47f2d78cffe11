"""Holdfast on the peers' terms: the same workloads, data and rounds."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.flows import Carry, Grow, Looped, count_up, line_of, ring_of
from bench.growth import interrupted, touch_counter
from bench.measure import stored
from bench.peers.kit import (
    DATABASE,
    EACH,
    GROWTH,
    LONG,
    PEOPLE,
    PERSON,
    RESUME,
    RUNS,
    STEP,
    STEPS,
    STORED,
    ends,
    folder,
    heavy,
    main,
    measure,
    message,
    now,
)
from bench.waits import answered
from holdfast import Flow, Holdfast

MESSAGES = [str(message(number)["content"]) for number in range(LONG + 100)]


class OpenInstance:
    """An instance that stays open over the rounds, as the peers' stores do."""

    def __init__(self, address: str) -> None:
        self._hf = Holdfast(address)
        self._open = False

    async def hf(self) -> Holdfast:
        if not self._open:
            self._open = True
            await self._hf.__aenter__()
        return self._hf

    async def close(self) -> None:
        await self._hf.__aexit__(None, None, None)


def row_a() -> None:
    def line(name: str, address: str, mode: str) -> None:
        flow, kept = line_of(STEPS, mode), OpenInstance(address)

        async def once() -> float:
            hf = await kept.hf()
            began = now()
            (await flow.run({}, on=hf)).expect()
            return (now() - began) / STEPS

        measure("A", name, once, STEP, finish=kept.close)

    line("Holdfast memory", "memory:", "barrier")
    for mode in ("strict", "barrier"):
        with folder() as place:
            line(f"Holdfast sqlite {mode}", f"sqlite:{place}/h.db", mode)


async def append_one(state: Grow) -> dict[str, object]:
    return {"n": state.n + 1, "messages": [MESSAGES[state.n]]}


def row_b() -> None:
    async def once() -> tuple[float, float]:
        looped = Looped("grow", Grow, append_one, "strict")
        with folder() as place:
            async with Holdfast(f"sqlite:{place}/h.db") as hf:
                (await looped.flow.run({"limit": LONG}, on=hf)).expect()
            return ends(looped.times), stored(place)

    measure("B", "Holdfast sqlite strict", once, GROWTH, STORED, rounds=3)


def row_c() -> None:
    weight = heavy()

    async def once() -> tuple[float, float]:
        flow = Looped("carry", Carry, count_up, "strict").flow
        with folder() as place:
            async with Holdfast(f"sqlite:{place}/h.db") as hf:
                began = now()
                (await flow.run({"limit": STEPS, "weight": weight}, on=hf)).expect()
                took = (now() - began) / STEPS
            return took, stored(place)

    measure("C", "Holdfast sqlite strict", once, STEP, STORED)


def row_d() -> None:
    for mode in ("strict", "barrier"):
        flow, kept = ring_of(1, mode), OpenInstance(DATABASE)

        async def once(flow: Flow = flow, kept: OpenInstance = kept) -> float:
            hf = await kept.hf()
            began = now()
            results = await asyncio.gather(*(flow.run({"limit": EACH}, on=hf) for _ in range(RUNS)))
            took = now() - began
            for result in results:
                result.expect()
            return took / (RUNS * EACH)

        measure("D", f"Holdfast postgres {mode}", once, STEP, finish=kept.close)


def row_e() -> None:
    async def once() -> float:
        with folder() as place:
            return await resumed(place)

    measure("E", "Holdfast sqlite", once, RESUME)


async def resumed(place: Path) -> float:
    run = await interrupted(place, LONG)
    looped = Looped("grow", Grow, touch_counter)
    async with Holdfast(f"sqlite:{place}/h.db") as hf:
        await hf.service()
        began = now()
        (await looped.flow.resume(run, on=hf)).expect()
        return now() - began


def row_f() -> None:
    with folder() as place:
        kept = OpenInstance(f"sqlite:{place}/h.db")

        async def once() -> float:
            hf = await kept.hf()
            return sum([await answered(hf) for _ in range(PEOPLE)]) / PEOPLE

        measure("F", "Holdfast sqlite", once, PERSON, finish=kept.close)


if __name__ == "__main__":
    main({"A": row_a, "B": row_b, "C": row_c, "D": row_d, "E": row_e, "F": row_f})
