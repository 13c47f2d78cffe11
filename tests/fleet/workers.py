"""Worker processes of the command line, on one store, with flows that a test steers by files."""

from __future__ import annotations

import asyncio
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from holdfast import Flow
from tests.deadlines import HANG
from tests.services import prefork

JOBS = """
import asyncio, os, time
from pathlib import Path
from holdfast import Flow

HERE = Path(__file__).parent

def note(word, job):
    with (HERE / "ledger").open("a") as file:
        file.write(f"{word} {job} {os.getpid()}\\n")

jobs = Flow("jobs", effect="pure")

@jobs.node(effect="read")
async def think(s):
    note("think", s["job"])
    try:
        while (HERE / f"hold-{os.getpid()}").exists():
            # On its own loop, or with the loop: then it ends the moment that its process goes on.
            time.sleep(0.05) if s.get("blocks") else await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        note("stopped", s["job"])
        raise
    note("thought", s["job"])
    return {"thought_by": os.getpid()}

@jobs.node(effect="external", idempotency_key="{{input.job}}")
async def act(s, ctx):
    note("act", s["job"])
    return {"acted_by": os.getpid()}

jobs.chain(think, act)

asks = Flow("asks", effect="pure")
asks.hold("approve", prompt="Go on?", options=["yes", "no"])

@asks.node(effect="read")
async def after(s):
    return {"after": s["decision"]}

asks.edge("approve", after)
"""


class Crew:
    """`with Crew(folder, address) as crew`: whoever is still alive at the end is killed, by its number."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.address = address
        self._all: list[prefork.Child] = []
        (folder / "jobs.py").write_text(JOBS)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_exc: object) -> None:
        for process in self._all:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=HANG)

    def flow(self, name: str) -> Flow:
        spec = spec_from_file_location(f"jobs_{abs(hash(str(self.folder)))}", self.folder / "jobs.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name)

    def spawn(self, *words: str) -> prefork.Child:
        env = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        command = ["worker", "jobs.py", "--store", self.address, *words]
        log = (self.folder / f"log-{len(self._all)}").open("w")
        worker = prefork.Child("holdfast", command, cwd=self.folder, env=env, stdout=log, stderr=log)
        self._all.append(worker)
        log.close()
        return worker

    async def start(self, *words: str) -> prefork.Child:
        """Until it says what it carries."""
        worker = self.spawn(*words)

        def began() -> bool:
            assert worker.poll() is None, self.said(worker)
            return "This worker serves" in self.said(worker)

        await until(began, f"{worker.args}")
        return worker

    def said(self, worker: prefork.Child) -> str:
        return (self.folder / f"log-{self._all.index(worker)}").read_text()

    def ledger(self, word: str) -> list[tuple[str, int]]:
        file = self.folder / "ledger"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(job, int(pid)) for said, job, pid in lines if said == word]

    def hold_up(self, worker: prefork.Child) -> Path:
        """Its `think` takes until the file is gone."""
        file = self.folder / f"hold-{worker.pid}"
        file.touch()
        return file


async def until(met: Callable[[], bool | Awaitable[bool]], what: str = "", seconds: float = HANG) -> None:
    limit = asyncio.get_running_loop().time() + seconds
    while True:
        found = met()
        if found if isinstance(found, bool) else await found:
            return
        assert asyncio.get_running_loop().time() < limit, f"not within {seconds} s: {what}"
        await asyncio.sleep(0.05)


def stop(worker: prefork.Child) -> None:
    worker.send_signal(signal.SIGSTOP)


def go_on(worker: prefork.Child) -> None:
    worker.send_signal(signal.SIGCONT)


async def ended(worker: prefork.Child, seconds: float = HANG) -> int:
    return await asyncio.to_thread(worker.wait, seconds)


async def fetch(port: int, path: str) -> tuple[int, str]:
    """(status, body); (0, why) where nobody answers."""

    def get() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=HANG) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    return await asyncio.to_thread(get)


def settings() -> dict[str, Any]:
    return {"lease_ttl": 2.0, "lease_margin": 0.3, "poll": 0.1}
