"""Documents in entity mode: one live run for each instance key, as an outside ledger sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import Worker
from holdfast.documents import functions
from tests.api.conftest import Server, server
from tests.api.documents import YAML
from tests.attractor.kill import Called, Place, until
from tests.deadlines import HANG
from tests.documents.run import flow_text

__all__ = ["server"]

pytestmark = pytest.mark.anyio

DOCUMENT = flow_text(
    """
    {id: start, type: start}
    {id: work, type: python, config: {function: work, args: {key: "{{run.instance_key}}"}, effect: read}}
    {id: done, type: end}
    """,
    "start -> work -> done",
)
ASKING = flow_text(
    """
    {id: start, type: start}
    {id: ask, type: checkpoint, config: {prompt: Go?, options: [yes]}}
    {id: done, type: end}
    """,
    "start -> ask\nask:yes -> done",
).replace("name: sample", "name: asking")


class Ledger:
    """Outside of the product: who is inside, and what happened in which order."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.inside: list[str] = []
        self.met = asyncio.Event()

    async def work(self, key: str) -> str:
        assert key not in self.inside, "two runs of one entity are inside"
        self.inside.append(key)
        self.lines.append(("in", key))
        if {"a", "b"} <= set(self.inside):
            self.met.set()
        # Different entities are inside at once; without that nothing would be shown.
        await asyncio.wait_for(self.met.wait(), HANG)
        for _ in range(50):
            await asyncio.sleep(0)
        self.inside.remove(key)
        self.lines.append(("out", key))
        return key


@pytest.fixture
async def ledger(server: Server, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ledger]:
    kept = Ledger()
    monkeypatch.setattr(functions, "_registered", {"work": kept.work})
    async with Worker(on=server.hf), Worker(on=server.hf):
        yield kept


async def deploy(server: Server, text: str, name: str) -> None:
    await server.json("POST", "/v1/flows", 201, content=text.encode(), headers=YAML)
    await server.json("PUT", "/v1/deployments/cases", json={"flow": name, "mode": "entity"})


async def invoke(server: Server, flow: str, key: str, **more: Any) -> Any:
    body = {"flow": flow, "deployment": "cases", "instance_key": key, **more}
    return await server.json("POST", "/v1/runs", 201, json=body)


@pytest.mark.covers("PLATFORM-ENTITY-01", "CP-3")
async def test_invocations_at_once_with_one_key_never_overlap(server: Server, ledger: Ledger) -> None:
    await deploy(server, DOCUMENT, "sample")
    keys = ["a", "a", "b", "a", "b"]
    runs = await asyncio.gather(*(invoke(server, "sample", key) for key in keys))
    for run in runs:
        ended = await server.json("GET", f"/v1/runs/{run['id']}/result?wait=60")
        assert ended["status"] == "completed"

    for key, count in (("a", 3), ("b", 2)):
        assert [what for what, who in ledger.lines if who == key] == ["in", "out"] * count
        listed = (await server.json("GET", f"/v1/runs?instance_key={key}"))["items"]
        expected = {run["id"] for run, given in zip(runs, keys, strict=True) if given == key}
        assert {run["id"] for run in listed} == expected
        assert {run["instance_key"] for run in listed} == {key}
    assert (await server.json("GET", "/v1/runs?instance_key=nobody"))["items"] == []


@pytest.mark.covers("PLATFORM-ENTITY-01", "CP-3")
async def test_run_of_an_entity_waits_until_the_one_that_asks_a_person_has_ended(
    server: Server, ledger: Ledger
) -> None:
    await deploy(server, ASKING, "asking")
    first = await invoke(server, "asking", "a", wait=20)
    assert first["status"] == "pending_input"
    second, other = await invoke(server, "asking", "a"), await invoke(server, "asking", "b", wait=20)
    assert other["status"] == "pending_input"
    assert (await server.json("GET", f"/v1/runs/{second['id']}"))["status"] == "pending"

    # One that waits in line can be cancelled: that needs no turn.
    third = await invoke(server, "asking", "a")
    await server.json("POST", f"/v1/runs/{third['id']}/cancel", json={})
    assert (await server.json("GET", f"/v1/runs/{third['id']}/result?wait=60"))["status"] == "cancelled"

    holds = (await server.json("GET", "/v1/holds?instance_key=a"))["items"]
    assert [hold["run"] for hold in holds] == [first["id"]]
    await server.json("POST", f"/v1/holds/{holds[0]['id']}/resolve", json={"decision": "yes"})
    assert (await server.json("GET", f"/v1/runs/{first['id']}/result?wait=60"))["status"] == "completed"
    assert (await server.json("GET", f"/v1/runs/{second['id']}/result?wait=60"))["status"] == "pending_input"


async def answered(server: Server, run: str) -> str:
    """Decides the open hold of a run; the status at which it ends or waits then."""
    (hold,) = (await server.json("GET", f"/v1/holds?run={run}"))["items"]
    await server.json("POST", f"/v1/holds/{hold['id']}/resolve", json={"decision": "yes"})
    return (await server.json("GET", f"/v1/runs/{run}/result?wait=60"))["status"]


@pytest.mark.covers("PLATFORM-ENTITY-01", "CP-3")
async def test_run_keeps_the_mode_in_which_it_was_created_when_the_deployment_changes(
    server: Server, ledger: Ledger
) -> None:
    await deploy(server, ASKING, "asking")
    first = await invoke(server, "asking", "a", wait=20)
    second = await invoke(server, "asking", "a")

    await server.json("PUT", "/v1/deployments/cases", json={"flow": "asking", "mode": "plain"})
    no = await server.json(
        "POST", "/v1/runs", 422, json={"flow": "asking", "deployment": "cases", "instance_key": "a"}
    )
    assert "has plain runs" in no["detail"]
    plain = {"flow": "asking", "deployment": "cases", "wait": 60}
    free = [await server.json("POST", "/v1/runs", 201, json=plain) for _ in range(2)]
    assert [run["status"] for run in free] == ["pending_input"] * 2
    # Those of the entity are still one at a time, with a fork of one of them.
    assert (await server.json("GET", f"/v1/runs/{second['id']}"))["status"] == "pending"
    assert await answered(server, first["id"]) == "completed"
    waits = await server.json("GET", f"/v1/runs/{second['id']}/result?wait=60")
    assert waits["status"] == "pending_input"
    fork = await server.json("POST", f"/v1/runs/{first['id']}/fork", 201, json={"seq": 1})
    assert (fork["instance_key"], fork["status"]) == ("a", "pending")

    await server.json("PUT", "/v1/deployments/cases", json={"flow": "asking", "mode": "entity"})
    third = await invoke(server, "asking", "a")
    assert await answered(server, second["id"]) == "completed"
    for run in (fork, third):
        reached = await server.json("GET", f"/v1/runs/{run['id']}/result?wait=60")
        assert reached["status"] == "pending_input"
        live = [
            each["id"]
            for each in (await server.json("GET", "/v1/runs?instance_key=a"))["items"]
            if each["status"] == "pending_input"
        ]
        assert live == [run["id"]]
        assert await answered(server, run["id"]) == "completed"


@pytest.mark.covers("PLATFORM-ENTITY-01")
async def test_failed_run_of_an_entity_is_not_resumed_while_another_is_live(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = [True]

    async def work(key: str) -> str:
        if fails:
            raise ValueError("not today")
        return key

    monkeypatch.setattr(functions, "_registered", {"work": work})
    text = DOCUMENT.replace("type: end}", "type: end}\n  - {id: ask, type: checkpoint}").replace(
        "{source: work, target: done}", "{source: work, target: ask}\n  - {source: ask, target: done}"
    )
    await deploy(server, text, "sample")
    async with Worker(on=server.hf):
        first = await invoke(server, "sample", "a", wait=20)
        assert first["status"] == "failed"
        fails.clear()
        second = await invoke(server, "sample", "a", wait=20)
        assert second["status"] == "pending_input"

        refused = await server.json("POST", f"/v1/runs/{first['id']}/resume", 409, json={})
        assert second["id"] in refused["detail"]
        await server.json("POST", f"/v1/runs/{second['id']}/cancel", json={})
        await server.json("GET", f"/v1/runs/{second['id']}/result?wait=60")
        await server.json("POST", f"/v1/runs/{first['id']}/resume", json={})
        again = await server.json("GET", f"/v1/runs/{first['id']}/result?wait=60")
        assert again["status"] == "pending_input"


CODE = """
import os
import time
from pathlib import Path

HERE = Path(__file__).parent


def work(key):
    with open(HERE / "trace", "a") as trace:
        trace.write(f"in-{os.getpid()}\\n")
        trace.flush()
        deadline = time.monotonic() + 40
        while not (HERE / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        trace.write(f"out-{os.getpid()}\\n")
    return key
"""


@pytest.mark.covers("PLATFORM-ENTITY-01")
def test_killed_run_of_an_entity_is_resumed_before_the_next_starts(tmp_path: Path) -> None:
    here = Place(tmp_path / "here", "")
    (here.folder / "sample.yaml").write_text(DOCUMENT)
    (here.folder / "work_code.py").write_text(CODE)
    given = ("--functions", "work_code.py")

    def done(*words: str) -> Called:
        called = here.call(*words)
        assert called.end() == 0, called.told
        return called

    done("deploy", "sample.yaml", *given)
    done("deployments", "create", "cases", "--flow", "sample", "--mode", "entity")
    runs = [str(_run_id(n)) for n in range(2)]
    for run in runs:
        done("run", "sample", "--detach", "--deployment", "cases", "--instance-key", "a", "--run-id", run)

    worker = here.call("worker", "--lease", "3s", *given)
    until(lambda: bool(here.trace), "the first run is inside")
    worker.kill()
    here.touch("go")

    def worked() -> bool:
        """A worker has nothing to do while the lease of the dead one lasts."""
        done("worker", "--until-idle", *given)
        return here.statuses() == {"completed"}

    until(worked, "both runs have ended")

    # The first was repeated by another process, and only then the second began.
    seen = [line.partition("-")[0] for line in here.trace]
    assert seen == ["in", "in", "out", "in", "out"]
    listed = done("runs", "--instance-key", "a", "--json").told
    assert listed.count('"completed"') == 2
    assert all(run in listed for run in runs)


def _run_id(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"
