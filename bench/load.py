"""A load generator with open arrivals: requests come when they come, whatever the server does.

Each request has a moment at which it is due, drawn beforehand, and its latency counts from there. A server
that stands still for a second so shows in every request that was due in it, and not only in the one that
waited (coordinated omission).

    python -m bench.load http://127.0.0.1:8420 --rate 500 --seconds 60

against a server that carries the flow of `bench.serving`; tokens: HOLDFAST_LOAD_TOKENS, by commas.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from random import Random
from time import perf_counter
from typing import Any

import msgspec

from bench.wire import Answer, Wire

FLOW = "load"
MIX = {
    "get a run": 28,
    "list runs": 8,
    "list holds": 10,
    "get a hold": 12,
    "history of a hold": 8,
    "checkpoints of a run": 8,
    "events of a run": 6,
    "join a stream": 4,
    "create a run": 8,
    "decide a hold": 8,
}
"""Of a hundred requests. As many runs begin as are decided."""
SHARES = (50, 90, 99, 99.9)


class RequestStats(msgspec.Struct):
    """What became of the requests of one kind: seconds from when each was due, and what went wrong."""

    seconds: list[float] = []
    wrong: Counter[str] = msgspec.field(default_factory=Counter[str])

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))] if ordered else 0.0


class Outcome(msgspec.Struct):
    kinds: dict[str, RequestStats]
    seconds: float
    late: float  # seconds by which the generator itself sent a request after it was due, at the most
    connections: int
    decided: int = 0  # of the requests that were to decide: where no hold was known, they looked for one

    @property
    def all(self) -> RequestStats:
        whole = RequestStats()
        for entry in self.kinds.values():
            whole.seconds += entry.seconds
            whole.wrong.update(entry.wrong)
        return whole


class Load:
    """`people`: their tokens; each request is somebody's."""

    def __init__(self, address: str, people: Sequence[str], *, seed: int = 1) -> None:
        self.wire = Wire(address)
        self.people = people
        self.random = Random(seed)
        self.runs: list[str] = []
        self.holds: deque[str] = deque()
        self.met: set[str] = set()
        self.decided: list[str] = []
        self.kinds = {kind: RequestStats() for kind in MIX}
        self.late = 0.0
        self._acts: dict[str, Callable[[str], Awaitable[Answer]]] = {
            "get a run": self._get_run,
            "list runs": self._list_runs,
            "list holds": self._list_holds,
            "get a hold": self._get_hold,
            "history of a hold": self._history,
            "checkpoints of a run": self._checkpoints,
            "events of a run": self._events,
            "join a stream": self._join,
            "create a run": self._create,
            "decide a hold": self._decide,
        }

    async def warm_up(self, runs: int) -> None:
        """Runs to look at and to decide, before anything counts."""
        for _ in range(0, runs, 10):
            await asyncio.gather(*(self._create(self.people[0]) for _ in range(10)))
        while len(self.holds) < runs // 2:
            for run in self.runs[-runs:]:
                await self._look(run, self.people[0])

    async def run(self, rate: float, seconds: float) -> Outcome:
        began = perf_counter() + 0.1
        due, under_way = began, set[asyncio.Task[None]]()
        names, weights = list(MIX), list(MIX.values())
        while due < began + seconds:
            await asyncio.sleep(max(0.0, due - perf_counter()))
            kind = self.random.choices(names, weights)[0]
            task = asyncio.create_task(self._one(kind, due))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            due += self.random.expovariate(rate)
        await asyncio.gather(*under_way)
        whole = perf_counter() - began
        self.wire.close()
        return Outcome(self.kinds, whole, self.late, self.wire.opened, len(self.decided))

    async def _one(self, kind: str, due: float) -> None:
        result = self.kinds[kind]
        self.late = max(self.late, perf_counter() - due)
        try:
            answer = await self._acts[kind](self.random.choice(self.people))
        except Exception as error:  # whatever it is: it was no answer
            result.wrong[type(error).__name__] += 1
            return
        result.seconds.append(perf_counter() - due)
        if answer.status not in (200, 201):
            result.wrong[f"{answer.status} {answer.body[:200].decode(errors='replace')}"] += 1

    # ------------------------------------------------------------------ what people and programs ask
    async def _create(self, token: str) -> Answer:
        body = msgspec.json.encode({"flow": FLOW, "input": {"amount": self.random.randrange(1000)}})
        answer = await self.wire.ask("POST", "/v1/runs", token, body)
        if answer.status == 201:
            self.runs.append(msgspec.json.decode(answer.body)["id"])
        return answer

    def _a_run(self) -> str:
        """Most look at what is new."""
        return self.random.choice(self.runs[-200:] if self.random.random() < 0.8 else self.runs)

    async def _get_run(self, token: str) -> Answer:
        return await self._look(self._a_run(), token)

    async def _look(self, run: str, token: str) -> Answer:
        answer = await self.wire.ask("GET", f"/v1/runs/{run}", token)
        if answer.status == 200:
            self._meet(msgspec.json.decode(answer.body)["metadata"]["checkpoint_ids"])
        return answer

    def _meet(self, holds: list[str]) -> None:
        fresh = [hold for hold in holds if hold not in self.met]
        self.met.update(fresh)
        self.holds.extend(fresh)

    async def _list_runs(self, token: str) -> Answer:
        return await self.wire.ask("GET", "/v1/runs?limit=20", token)

    async def _list_holds(self, token: str) -> Answer:
        answer = await self.wire.ask("GET", "/v1/holds?limit=20", token)
        if answer.status == 200:
            found: dict[str, Any] = msgspec.json.decode(answer.body)
            self._meet([each["id"] for each in found["items"]])
        return answer

    def _a_hold(self) -> str:
        known = self.decided[-200:] or list(self.holds)[:50]
        return self.random.choice(known)

    async def _get_hold(self, token: str) -> Answer:
        return await self.wire.ask("GET", f"/v1/holds/{self._a_hold()}", token)

    async def _history(self, token: str) -> Answer:
        return await self.wire.ask("GET", f"/v1/holds/{self._a_hold()}/history", token)

    async def _checkpoints(self, token: str) -> Answer:
        return await self.wire.ask("GET", f"/v1/runs/{self._a_run()}/checkpoints", token)

    async def _events(self, token: str) -> Answer:
        return await self.wire.ask("GET", f"/v1/runs/{self._a_run()}/events?limit=100", token)

    async def _join(self, token: str) -> Answer:
        return await self.wire.join(f"/v1/runs/{self._a_run()}/stream", token)

    async def _decide(self, token: str) -> Answer:
        """Each hold once. Where none is known yet, somebody looks for one."""
        if not self.holds:
            return await self._list_holds(token)
        hold = self.holds.popleft()
        answer = await self.wire.ask("POST", f"/v1/holds/{hold}/resolve", token, b'{"decision":"approve"}')
        if answer.status == 200:
            self.decided.append(hold)
        return answer


def table(outcome: Outcome) -> str:
    head = f"{'':<24}{'requests':>9}{'p50':>8}{'p90':>8}{'p99':>8}{'p99.9':>8}{'max':>8}   ms  errors"
    rows = [_row(kind, told) for kind, told in outcome.kinds.items()]
    whole = _row(f"all ({len(outcome.all.seconds) / outcome.seconds:.0f}/s)", outcome.all)
    return "\n".join([head, *rows, whole])


def _row(kind: str, request_stats: RequestStats) -> str:
    shares = [request_stats.percentile(share) * 1000 for share in SHARES] + [
        max(request_stats.seconds, default=0) * 1000
    ]
    figures = "".join(f"{each:>8.1f}" for each in shares)
    return (
        f"{kind:<24}{len(request_stats.seconds):>9}{figures}       {sum(request_stats.wrong.values()) or ''}"
    )


async def measure(
    address: str, people: Sequence[str], rate: float, seconds: float, *, warm: int = 200
) -> Outcome:
    load = Load(address, people)
    await load.warm_up(warm)
    return await load.run(rate, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.load")
    parser.add_argument("address")
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    people = os.environ["HOLDFAST_LOAD_TOKENS"].split(",")
    outcome = asyncio.run(measure(options.address, people, options.rate, options.seconds))
    print(table(outcome))
    for what, count in outcome.all.wrong.most_common(10):
        print(f"{count} x {what}")
    return 1 if outcome.all.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
