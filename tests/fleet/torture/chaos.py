"""What befalls the fleet: one act after the other, as the dice say, each noted with its time.

Every kind comes once before any comes twice, so that a short run has met all of them.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from tests.fleet.torture import clocks
from tests.fleet.torture.fleet import Fleet, Member
from tests.fleet.torture.worker import SETTINGS

SERVER = "restart of the server"
TTL = SETTINGS.lease_ttl
LONGER = 15.0  # seconds more, where something that must strike has not yet
LANDED = ("kill with runs under way", "pause that lost leases")
"""Kinds that count only where they met somebody."""


class Act(msgspec.Struct, kw_only=True):
    at: float  # seconds since the beginning
    kind: str
    whom: str
    what: str


class Chaos:
    def __init__(self, fleet: Fleet, seed: int) -> None:
        self.fleet = fleet
        self.dice = random.Random(seed)
        self.acts: list[Act] = []
        self.counts: Counter[str] = Counter()
        self.counts["processes with a wrong clock"] = len(fleet.members)
        self._began = time.monotonic()
        self._acts: list[asyncio.Task[None]] = []
        self.kinds: dict[str, Callable[[Member], Awaitable[None]]] = {
            "kill": self.kill,
            "pause": self.pause,
            "drain": self.drain,
            SERVER: self.restart,
            "cut": self.cut,
            "cut in a statement": self.cut_within,
            "answer lost": self.lose_answer,
            "delay": self.delay,
            "swallow": self.swallow,
            "refuse": self.refuse,
            "clock set": self.set_clock,
        }

    async def rage(self, seconds: float) -> None:
        """Acts overlap: the next comes while the last ones still last, but never two for one member."""
        deadline = time.monotonic() + seconds
        waiting: list[str] = []
        taken: set[str] = set()
        while (now := time.monotonic()) < deadline or (self.spared and now < deadline + LONGER):
            if not waiting:
                waiting = list(self.kinds)
                self.dice.shuffle(waiting)
            kind = waiting.pop()
            free = [member for member in self._targets(kind) if member.name not in taken]
            if free and (kind != SERVER or SERVER not in taken):
                member = self.dice.choice(free)
                self._acts.append(asyncio.create_task(self._act(kind, member, taken)))
            else:
                waiting.insert(0, kind)
            await asyncio.sleep(self.dice.uniform(0.4, 1.1))
        await self.over()

    @property
    def spared(self) -> list[str]:
        """What has not struck yet."""
        return [kind for kind in (*self.kinds, *LANDED) if not self.counts[kind]]

    async def over(self) -> None:
        """Every act is brought to its end, and every wire mended."""
        await asyncio.gather(*self._acts)
        for member in self.fleet.members.values():
            member.proxy.clear()

    def _targets(self, kind: str) -> list[Member]:
        """Whoever reads and answers is struck on the wire only: they write down what they were told."""
        if kind in ("kill", "pause", "drain", "clock set", SERVER):
            return [member for member in self.fleet.workers if member.alive]
        return [member for member in self.fleet.members.values() if member.alive]

    async def _act(self, kind: str, member: Member, taken: set[str]) -> None:
        whom = SERVER if kind == SERVER else member.name
        taken.add(whom)
        try:
            await self.kinds[kind](member)
        finally:
            taken.discard(whom)

    def _note(self, kind: str, member: Member | None, what: str) -> None:
        self.counts[kind] += 1
        at = time.monotonic() - self._began
        self.acts.append(Act(at=at, kind=kind, whom=member.name if member else "server", what=what))

    # ------------------------------------------------------------------ processes
    async def kill(self, member: Member) -> None:
        held = await self._stopped(member)
        await self.fleet.end(member, signal.SIGKILL)
        self._note("kill", member, f"SIGKILL with {len(held)} runs")
        self.counts["kill with runs under way"] += bool(held)
        await asyncio.sleep(self.dice.uniform(0.0, 1.0))
        await self.fleet.restart(member)

    async def pause(self, member: Member) -> None:
        """Long enough to lose every lease; then it wakes and believes that it still has them."""
        held = await self._stopped(member)
        await asyncio.sleep(TTL * self.dice.uniform(1.6, 2.2))
        lost = await self._lost(held)
        self.fleet.signal(member, signal.SIGCONT)
        member.paused = False
        self._note("pause", member, f"SIGSTOP with {len(held)} runs, {len(lost)} went on elsewhere")
        self.counts["pause that lost leases"] += bool(lost)
        self.counts["leases lost by pauses"] += len(lost)

    async def _lost(self, held: dict[str, int]) -> list[str]:
        """Which of them have another term by now. Others are busy, or the server is down: a while more."""
        sql = "SELECT id, term FROM holdfast.runs WHERE id = ANY($1)"
        for _ in range(12 if held else 0):
            now = {str(row["id"]): row["term"] for row in await self.fleet.ask(sql, list(held))}
            lost = [run for run, term in held.items() if now.get(run, term) > term]
            if lost:
                return lost
            await asyncio.sleep(0.4)
        return []

    async def _stopped(self, member: Member) -> dict[str, int]:
        """SIGSTOP at a moment when it has something to lose, if there is one within a while."""
        member.paused = True
        for _ in range(25):
            self.fleet.signal(member, signal.SIGSTOP)
            held = await self.fleet.leased_by(member)
            if held:
                return held
            self.fleet.signal(member, signal.SIGCONT)
            await asyncio.sleep(self.dice.uniform(0.05, 0.2))
        self.fleet.signal(member, signal.SIGSTOP)
        return {}

    async def drain(self, member: Member) -> None:
        code = await self.fleet.end(member, signal.SIGTERM)
        self._note("drain", member, f"SIGTERM, it ended with {code}")
        await self.fleet.restart(member)

    async def set_clock(self, member: Member) -> None:
        self.fleet.signal(member, clocks.JUMP)
        said = member.skew[clocks.VARIABLE].split(",")
        self._note("clock set", member, f"by {float(said[2]):+.0f} s")

    async def restart(self, _member: Member) -> None:
        cluster = self.fleet.cluster
        await asyncio.to_thread(cluster.stop, "immediate")
        await asyncio.sleep(self.dice.uniform(0.0, 0.8))
        await asyncio.to_thread(cluster.start)
        self._note(SERVER, None, "immediate")

    # ------------------------------------------------------------------ wires
    async def cut(self, member: Member) -> None:
        self._note("cut", member, f"{member.proxy.cut()} connections reset")

    async def cut_within(self, member: Member) -> None:
        await self._struck(member, "cut in a statement", self.dice.randint(20, 4000), "up")

    async def lose_answer(self, member: Member) -> None:
        await self._struck(member, "answer lost", 0, "down")

    async def _struck(self, member: Member, kind: str, count: int, way: str) -> None:
        struck = member.proxy.cut_after(count, "up" if way == "up" else "down")
        try:
            async with asyncio.timeout(3):
                await struck.wait()
            self._note(kind, member, f"after {count} bytes")
        except TimeoutError:
            pass  # it said nothing meanwhile: the wire is struck when it does

    async def delay(self, member: Member) -> None:
        latency = self.dice.uniform(0.05, 0.25)
        before = member.proxy.counts.delayed
        member.proxy.delay(latency, jitter=latency)
        await asyncio.sleep(self.dice.uniform(1.0, 3.0))
        member.proxy.delay(0)
        if member.proxy.counts.delayed > before:
            self._note("delay", member, f"{latency * 1000:.0f} to {latency * 2000:.0f} ms")

    async def swallow(self, member: Member) -> None:
        """For longer than a lease lasts; half of the time what was swallowed arrives after all."""
        before, seconds = member.proxy.counts.swallowed, TTL * self.dice.uniform(0.8, 1.8)
        member.proxy.swallow(self.dice.choice((None, "up", "down")))
        await asyncio.sleep(seconds)
        arrives = self.dice.random() < 0.5
        if not arrives:
            member.proxy.cut()
        member.proxy.clear()
        if member.proxy.counts.swallowed > before:
            self._note("swallow", member, f"{seconds:.1f} s, then {'all arrives' if arrives else 'cut'}")

    async def refuse(self, member: Member) -> None:
        member.proxy.refuse()
        cut = member.proxy.cut()
        await asyncio.sleep(self.dice.uniform(0.3, 1.5))
        member.proxy.clear()
        self._note("refuse", member, f"{cut} connections reset and nobody let in")
