"""Servers and workers as processes of the command line, on one PostgreSQL: what a browser really meets."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import httpx2

from holdfast import Holdfast
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.tokens import ApiTokens
from tests.deadlines import HANG
from tests.fleet.workers import Crew, ended
from tests.services import prefork

MORE = """
pays = Flow("pays", effect="pure")

@pays.node(effect="read")
async def look(s):
    return {"looked": True}

pays.hold("sure", prompt="Pay?", options=["yes", "no"])

@pays.node(effect="read")
async def pay(s):
    return {"paid": s["decision"]}

pays.edge(look, "sure")
pays.edge("sure", pay)

talks = Flow("talks", effect="pure")

@talks.node(effect="read")
async def talk(s, ctx):
    for number in range(s["words"]):
        ctx.emit(f"word {number} ", kind="token")
        await asyncio.sleep(0.02)
    return {"told": s["words"]}
"""


class Serving:
    """A server process, and a browser that talks to it."""

    def __init__(self, process: prefork.Child, shown: dict[str, Any], token: str) -> None:
        self.process = process
        self.address: str = shown["address"]
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx2.AsyncClient(base_url=self.address, headers=headers, timeout=HANG)

    async def json(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        answer = await self.client.request(method, path, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    async def start(self, flow: str, **given: Any) -> str:
        answer = await self.client.post("/runs", json={"workflow_uri": flow, "input": given})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["id"]

    async def kill(self) -> None:
        self.process.kill()
        await ended(self.process)


class Town(Crew):
    """`async with Town(folder, address) as town`: whoever is left is killed at the end, by its number."""

    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(folder, address)
        with (folder / "jobs.py").open("a") as file:
            file.write(MORE)
        self.tokens: dict[str, str] = {}
        self.servers: list[prefork.Child] = []
        self._clients: list[httpx2.AsyncClient] = []

    async def __aenter__(self) -> Town:
        async with Holdfast(self.address) as hf:
            made = ApiTokens(await hf.open())
            for name in ("dana", "sam"):
                grant = CredentialGrant(subject=f"user:{name}@acme", roles=("admin",))
                self.tokens[name] = (await made.create(grant, by="user:test"))[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        for client in self._clients:
            await client.aclose()
        await asyncio.to_thread(self.__exit__, *exc)

    async def serve(self, *words: str, who: str = "dana") -> Serving:
        process = self._spawn_server(*words)
        assert process.stdout is not None
        async with asyncio.timeout(HANG):
            line = await asyncio.to_thread(process.stdout.readline)
        found = Serving(process, json.loads(line), self.tokens[who])
        self._clients.append(found.client)
        return found

    def _spawn_server(self, *words: str) -> prefork.Child:
        env = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
        command = ["serve", "jobs.py", "--store", self.address, "--no-worker", "--port", "0", "--json"]
        with (self.folder / f"server-{len(self._all)}.log").open("w") as log:
            process = prefork.Child("holdfast", [*command, *words], cwd=self.folder, env=env, stderr=log)
        self._all.append(process)
        self.servers.append(process)
        return process

    async def dismiss(self) -> None:
        """Every worker: the next test has its own."""
        for process in self._all:
            if process not in self.servers and process.poll() is None:
                process.kill()
                await ended(process)

    def device(self, server: Serving, who: str) -> httpx2.AsyncClient:
        """Another browser, of somebody who may be another."""
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        client = httpx2.AsyncClient(base_url=server.address, headers=headers, timeout=HANG)
        self._clients.append(client)
        return client
