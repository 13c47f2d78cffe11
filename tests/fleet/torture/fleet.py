"""The processes of a torture and the wires between them: who is started, stopped, killed and asked."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec

from tests.fleet.torture import clocks, stacks
from tests.proxy import Proxy
from tests.services.pgcluster import Cluster

ROOT: Final = Path(__file__).parents[3]
# Short waits, so that a swallowed connection is left within seconds.
SETTINGS: Final = "timeout=3&statement_timeout=4&silence=1.5&pool=6"


class Member(msgspec.Struct, kw_only=True):
    """One place in the fleet: its wire, its clock, and the process that fills it at the moment."""

    name: str
    command: list[str]
    proxy: Proxy
    skew: dict[str, str]
    log: Path
    process: subprocess.Popen[str] | None = None
    paused: bool = False
    ends: list[int] = []

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None and not self.paused


class Fleet:
    def __init__(self, folder: Path, seed: int, *, workers: int = 4, sabotage: str = "") -> None:
        self.folder = folder
        self.dice = random.Random(seed)
        self.sabotage = sabotage
        self.cluster = Cluster(fsync="on", max_connections="100", log_min_messages="panic")
        self.names = [f"worker-{number}" for number in range(1, workers + 1)]
        self.members: dict[str, Member] = {}

    async def open(self) -> None:
        await asyncio.to_thread(self.cluster.start)
        for name in (*self.names, "people", "reader"):
            proxy = Proxy(f"127.0.0.1:{self.cluster.port}", seed=self.dice.getrandbits(32))
            await proxy.start()
            self.members[name] = Member(
                name=name, command=[], proxy=proxy, skew=self._skew(), log=self.folder / f"{name}.log"
            )

    def _skew(self) -> dict[str, str]:
        """Minutes ahead or behind, a second lost or won in each hundred, and set by minutes when it jumps."""
        offset = self.dice.choice((-1, 1)) * self.dice.uniform(60, 600)
        return clocks.setting(offset, self.dice.uniform(-0.01, 0.01), self.dice.uniform(-400, 400))

    @property
    def address(self) -> str:
        return f"{self.cluster.address}?{SETTINGS}"

    @property
    def workers(self) -> list[Member]:
        return [self.members[name] for name in self.names]

    # ------------------------------------------------------------------ processes
    async def start(self, name: str, module: str, *args: Any) -> None:
        member = self.members[name]
        address = member.proxy.between(self.address)
        member.command = [sys.executable, "-m", f"tests.fleet.torture.{module}", address, *map(str, args)]
        await self.restart(member)

    async def restart(self, member: Member) -> None:
        environment = {
            **os.environ,
            **member.skew,
            "TORTURE_LEDGER": str(self.folder / "ledger.jsonl"),
            "TORTURE_SABOTAGE": self.sabotage,
        }
        await asyncio.to_thread(self._spawn, member, environment)

    def _spawn(self, member: Member, environment: dict[str, str]) -> None:
        with member.log.open("a") as log:
            member.process = subprocess.Popen(
                member.command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, env=environment
            )
        member.paused = False
        process = member.process
        assert process is not None
        assert process.stdout is not None
        if process.stdout.readline() != "serving\n":
            raise RuntimeError(f"{member.name} does not serve: {member.log.read_text()[-2000:]}")

    def signal(self, member: Member, number: signal.Signals) -> None:
        if member.process is not None and member.process.poll() is None:
            member.process.send_signal(number)

    async def end(self, member: Member, number: signal.Signals, within: float = 30.0) -> int:
        """Send the signal, wait for its end, and close its pipe; the process's code."""
        process = member.process
        assert process is not None
        self.signal(member, number)
        try:
            await asyncio.to_thread(process.communicate, None, within)
        except subprocess.TimeoutExpired:
            self.signal(member, stacks.ASK)
            await asyncio.sleep(1)
            process.kill()
            await asyncio.to_thread(process.communicate)
            raise RuntimeError(
                f"{member.name} did not end within {within:.0f} s: {member.log.read_text()[-12000:]}"
            ) from None
        member.ends.append(process.returncode)
        return process.returncode

    async def close(self) -> None:
        for member in self.members.values():
            if member.process is not None and member.process.poll() is None:
                member.process.kill()
                await asyncio.to_thread(member.process.communicate)
            await member.proxy.close()
        await asyncio.to_thread(self.cluster.remove)

    # ------------------------------------------------------------------ asking the server itself
    async def ask(self, sql: str, *args: Any) -> list[Any]:
        """By nobody's wire. Nothing where the server is just down, or goes down."""
        try:
            connection = await asyncpg.connect(self.cluster.address, timeout=3)
            try:
                return await connection.fetch(sql, *args, timeout=3)
            finally:
                connection.terminate()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return []

    async def leased_by(self, member: Member) -> dict[str, int]:
        """The runs that it holds, each with its term."""
        assert member.process is not None
        sql = "SELECT id, term FROM holdfast.runs WHERE worker LIKE $1 AND ended_at IS NULL"
        rows = await self.ask(sql, f"%:{member.process.pid}:%")
        return {str(row["id"]): row["term"] for row in rows}

    async def open_runs(self) -> int | None:
        rows = await self.ask("SELECT count(*) AS n FROM holdfast.runs WHERE ended_at IS NULL")
        return rows[0]["n"] if rows else None
