"""Holds what a run came to, after whatever befell it, against the run that nothing befell."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import msgspec

from holdfast import Holdfast
from holdfast.store.memory import MemoryStore
from tests.crash import flows, life
from tests.crash.stores import address_on
from tests.crash.world import World
from tests.deadlines import HANG
from tests.services import prefork

Facts = list[list[Any]]

# Effects of the same name would be told apart by their keys; here each name stands for one effect.
COMPARED = ("status", "state", "artifacts", "error")
ROOT = Path(__file__).parents[2]


class Peace(msgspec.Struct):
    """How the flow goes when nothing befalls it."""

    end: dict[str, Any]
    effects: dict[str, int]


@cache
def in_peace(name: str) -> Peace:
    world = World(Path(os.devnull))
    seen: list[str] = []
    world.happens = lambda name, run, **facts: seen.append(name)  # type: ignore[method-assign,misc]
    before, facts, run = flows.WORLD, [], str(uuid4())
    flows.settle_in(world)
    try:
        # A thread, because the caller may stand in an event loop.
        thread = Thread(target=lambda: asyncio.run(_live_in_memory(name, run, facts)))
        thread.start()
        thread.join()
    finally:
        flows.settle_in(before)
    return Peace(end_of(facts), {effect: seen.count(effect) for effect in seen})


async def _live_in_memory(name: str, run: str, facts: Facts) -> None:
    async with Holdfast(MemoryStore(), settings=life.SETTINGS) as hf:
        await life.live(hf, name, run, lambda *a, **more: facts.append([*a, more]), asyncio.sleep)


def end_of(facts: Facts) -> dict[str, Any]:
    ends = [fact[-1] for fact in facts if fact[0] == "end"]
    assert ends, f"the run did not come to its end: {facts[-3:]}"
    return ends[-1]


def judge(name: str, run: str, facts: Facts, world: World) -> None:
    """The run ended as in peace, each effect happened once, and nothing that was acknowledged is missing."""
    peace, end = in_peace(name), end_of(facts)
    assert {key: end[key] for key in COMPARED} == {key: peace.end[key] for key in COMPARED}
    assert dict(world.count(run)) == peace.effects
    _nothing_is_missing(facts, end)


def _nothing_is_missing(facts: Facts, end: dict[str, Any]) -> None:
    numbers = [number for number, _ in end["events"]]
    assert numbers == list(range(1, end["event_seq"] + 1))
    stored = dict(map(tuple, end["events"]))
    for what, *said in facts:
        if what == "event":
            assert stored[said[0]] == said[1]
        elif what == "answer":
            assert end["holds"][said[0]] == said[1]


Process = prefork.Child | subprocess.Popen[str]


class Victim:
    """One run of a flow in a store of its own, lived by as many processes as it takes."""

    def __init__(self, folder: Path, name: str, store: str = "sqlite") -> None:
        self.address, self.world = address_on(store, folder), World(folder / "world.jsonl")
        self.name, self.run = name, str(uuid4())
        self.facts: Facts = []
        # What its processes are started by, if anything.
        self.before: list[str] = []

    def start(self, *more: str, program: str = "victim", **environment: str) -> Process:
        what = [self.address, self.world.file, self.name, self.run, *more]
        env = {**os.environ, **environment}
        if not self.before:
            return prefork.Child(f"tests.crash.{program}", what, cwd=ROOT, env=env)
        return subprocess.Popen(
            [*self.before, sys.executable, "-m", f"tests.crash.{program}", *what],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=env,
        )  # fmt: skip

    def end(self, process: Process, within: float = HANG) -> int:
        """Wait for it, and keep what it said."""
        out, err = process.communicate(timeout=within)
        # A long last word may be cut off by a kill.
        self.facts += [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]
        code = process.returncode
        assert code in (0, 137, -9), err
        return code

    def live(self, **environment: str) -> int:
        return self.end(self.start(**environment))

    @property
    def doubts(self) -> int:
        return sum(fact[0] == "doubt" for fact in self.facts)

    def judge(self) -> None:
        judge(self.name, self.run, self.facts, self.world)
