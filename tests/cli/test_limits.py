"""`holdfast limits`, and `run` while its flow's limits let no more go on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Timer

import pytest

from holdfast import Holdfast
from holdfast.runs.concurrency_limits.item_limits import SharedLimit
from holdfast.types.ids import RunId
from tests.cli.conftest import Cli
from tests.cli.test_bad_input import complains

FLOW = """
from holdfast import Flow, Limits

jobs = Flow("jobs", effect="pure", limits=Limits(concurrency=4, rate="100/min", key="{{who}}", per_key=1))

@jobs.node(effect="pure")
async def work(s):
    return {"done": True}
"""


@pytest.fixture
def jobs(cli: Cli, tmp_path: Path) -> str:
    name = f"jobs_{abs(hash(str(tmp_path)))}.py"
    Path(name).write_text(FLOW)
    assert cli("run", name, "--input", '{"who": "ann"}').code == 0
    return name


@pytest.mark.covers("FLEET-WORK-03", "FLEET-WORK-04")
def test_limits_are_listed_set_and_cleared(cli: Cli, jobs: str) -> None:
    flow, each = cli("limits", "list", "--json").items
    assert flow == {
        "name": "flow:jobs",
        "concurrency": 4,
        "rate": "100/min",
        "fixed": False,
        "running": 0,
        "waiting": 0,
        "holders": [],
        "waiters": [],
    }
    assert (each["name"], each["concurrency"]) == ("flow:jobs/*", 1)
    # What is not given stays as it is.
    assert cli("limits", "set", "flow:jobs", "--concurrency", "2").code == 0
    listed = cli("limits", "list", "flow:jobs").out
    assert "operator" in listed
    assert "100/min" in listed
    changed = cli("limits", "set", "flow:jobs", "--rate", "none", "--json").json
    assert (changed["concurrency"], changed["rate"], changed["fixed"]) == (2, None, True)
    assert cli("limits", "set", "flow:jobs/ann", "--concurrency", "3", "--json").json["concurrency"] == 3
    assert cli("limits", "clear", "flow:jobs", "--json").json == flow
    assert "flow:other has no limit" not in cli("limits", "clear", "flow:jobs/ann").out
    assert cli("limits", "set", "flow:other", "--concurrency", "3").code == 0
    assert "flow:other has no limit any more." in cli("limits", "clear", "flow:other").out


def test_limits_of_items_are_listed_with_the_runs_that_have_places(cli: Cli, jobs: str) -> None:
    store, run = ("--store", "sqlite:items.db"), RunId("00000000-0000-4000-8000-000000000001")

    async def enter() -> None:
        async with Holdfast("sqlite:items.db") as hf:
            limit = SharedLimit(await hf.open(), "acme", "mail\nflow:jobs")
            await limit.ask(0, 100_000, again=False)
            await limit.enter(run, "each/1", 2)

    asyncio.run(enter())
    (found,) = cli("limits", "list", "items:mail", "--tenant", "acme", "--json", *store).items
    assert (found["concurrency"], found["rate"], found["running"]) == (2, "10/s", 1)
    assert found["holders"] == [run]
    # A key is one line, whatever it has.
    assert "items:mail flow:jobs" in cli("limits", "list", "--tenant", "acme", *store).out
    assert cli("limits", "list", "--json", *store).items == []
    complains(cli("limits", "set", "items:mail", "--concurrency", "1", *store), 2, "names no limit")


def test_store_without_limits_says_how_to_set_one(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", '{"order": "A1", "amount": 1}')
    assert "holdfast limits set flow:NAME" in cli("limits", "list").out
    assert cli("limits", "list", "--json").items == []


def test_limit_that_means_nothing_is_refused(cli: Cli, jobs: str) -> None:
    complains(cli("limits", "set", "refund", "--concurrency", "1"), 2, "'refund' names no limit", "flow:NAME")
    complains(cli("limits", "set", "flow:jobs", "--rate", "soon"), 2, "'soon' is not a rate", "100/min")
    complains(cli("limits", "set", "flow:jobs", "--concurrency", "some"), 2, "'some' is not a number of runs")
    complains(cli("limits", "set", "flow:jobs", "--concurrency", "-1"), 2, "'-1' is not a number of runs")
    complains(cli("limits", "set", "flow:new"), 2, "nothing would limit 'flow:new'")
    complains(cli("limits", "set", "flow:new/x", "--concurrency", "1"), 2, "no flow declares a key")
    unspelled = cli("limits", "set", "flow:jobs/eu/50%", "--concurrency", "1")
    complains(unspelled, 2, "no run can have the limit 'flow:jobs/eu/50%'", "flow:jobs/eu%2F50%25")
    complains(cli("limits", "clear", "flow:jobs"), 2, "no limit 'flow:jobs' is set here")


@pytest.mark.covers("FLEET-WORK-03")
def test_run_waits_in_line_and_says_so_after_a_while(cli: Cli, jobs: str) -> None:
    cli("limits", "set", "flow:jobs", "--concurrency", "0")
    opened = Timer(2.8, _open)
    opened.start()
    said = cli("run", jobs, "--input", '{"who": "bob"}')
    opened.join()
    assert said.code == 0
    assert "is queued: flow:jobs allows 0 at once, and 0 are running." in said.err
    assert said.err.count("is queued: ") == 1
    assert "completed" in said.out


def _open() -> None:
    import asyncio

    from holdfast import Holdfast

    async def clear() -> None:
        async with Holdfast() as hf:
            await (await hf.limits()).clear("flow:jobs")

    asyncio.run(clear())
