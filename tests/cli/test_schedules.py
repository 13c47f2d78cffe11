"""`holdfast schedules`: set, looked at, paused, started by hand, deleted."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from holdfast.store.open import open_store
from holdfast.types.clock import MICROS
from tests.cli.conftest import Cli, given
from tests.cli.test_bad_input import complains

NIGHTLY = ("schedules", "set", "nightly", "--cron", "0 2 * * *", "--zone", "Europe/Berlin")


@pytest.mark.covers("FLEET-WORK-10")
def test_a_schedule_is_set_listed_shown_and_deleted(cli: Cli, refund: str) -> None:
    said = cli(*NIGHTLY, "--flow", refund, "--input", given(20))
    assert said.code == 0
    assert "Schedule nightly starts refund 0 2 * * * (Europe/Berlin)." in said.out
    (listed,) = cli("schedules", "list", "--json").items
    assert (listed["name"], listed["flow"], listed["missed"], listed["overlap"]) == (
        "nightly", "refund", "last", "skip",
    )  # fmt: skip
    assert listed["next_at"].endswith(("T00:00:00Z", "T01:00:00Z"))
    assert "0 2 * * * (Europe/Berlin)" in cli("schedules", "list").out
    shown = cli("schedules", "show", "nightly")
    assert '"amount": 20' in shown.out
    assert len(cli("schedules", "next", "nightly", "--count", "7", "--json").items) == 7
    assert "02:00:00 CE" in cli("schedules", "next", "nightly").out
    assert cli("schedules", "delete", "nightly").code == 0
    assert "No schedules." in cli("schedules", "list").out


@pytest.mark.covers("FLEET-WORK-10")
def test_who_deletes_a_schedule_is_informed_of_runs_that_it_promised(cli: Cli, refund: str) -> None:
    for form in ((), ("--json",)):
        cli(*NIGHTLY, "--flow", refund, "--input", given(20))
        run = cli("schedules", "trigger", "nightly", "--json").json["run"]
        said = cli("schedules", "delete", "nightly", *form)
        assert said.code == 0
        assert said.json["not_started"] == [run] if form else run in said.err


@pytest.mark.covers("FLEET-WORK-10")
def test_a_schedule_is_paused_resumed_and_started_by_hand(cli: Cli, refund: str) -> None:
    cli(*NIGHTLY, "--flow", refund, "--input", given(20))
    assert cli("schedules", "pause", "nightly", "--reason", "stocktaking", "--json").json["paused"]
    assert "stocktaking" in cli("schedules", "show", "nightly").out
    assert "paused" in cli("schedules", "next", "nightly").err
    run = cli("schedules", "trigger", "nightly", "--by", "user:dana", "--json").json["run"]
    assert cli("worker", refund, "--until-idle").code == 0
    (row,) = cli("runs", "--json").items
    assert (row["id"], row["status"], row["started_by"]) == (run, "completed", "user:dana")
    assert "is resumed: next" in cli("schedules", "resume", "nightly").out
    assert cli("schedules", "show", "nightly", "--json").json["last_run"] == run


@pytest.mark.covers("FLEET-WORK-10")
def test_a_schedule_of_a_flow_that_the_store_knows_needs_no_file(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(20))
    said = cli(*NIGHTLY, "--flow", "refund")
    assert said.code == 0
    assert "The input was not checked" in said.err


@pytest.mark.covers("FLEET-WORK-10")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--cron", "0 25 * * *"), "'25' is not a valid hour"),
        (("--cron", "0 2 * * *", "--zone", "Berlin"), "'Berlin' is not a time zone"),
        (("--every", "10ms"), "too short"),
        (("--every", "1h", "--start", "2027-02-01", "--end", "2027-01-01"), "is before the start"),
        (("--at", "2020-01-01T09:00"), "never fires"),
        ((), "a schedule has one of cron, every and at"),
        (("--every", "1h", "--missed", "some"), "not one of skip, last, all"),
        (("--every", "1h", "--input", '{"order": 5}'), "cannot start flow 'refund'"),
    ],
)
def test_what_a_schedule_cannot_be_is_refused_and_nothing_is_set(
    cli: Cli, refund: str, words: tuple[str, ...], expected: str
) -> None:
    said = cli("schedules", "set", "nightly", "--flow", refund, *words)
    complains(said, 2, expected)
    assert "No schedules." in cli("schedules", "list").out


@pytest.mark.covers("FLEET-WORK-10")
def test_a_schedule_or_flow_that_is_not_there_is_named(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(20))
    complains(cli(*NIGHTLY, "--flow", "nothing"), 2, "this store has no flow 'nothing'")
    complains(cli(*NIGHTLY, "--flow", "nothing.py"), 2, "there is no file nothing.py")
    for verb in ("show", "next", "pause", "resume", "trigger", "delete"):
        complains(cli("schedules", verb, "weekly"), 2, "there is no schedule 'weekly'")


@pytest.mark.covers("FLEET-WORK-11")
def test_where_no_run_is_dead_that_is_said(cli: Cli, refund: str) -> None:
    cli("run", refund, "--input", given(20))
    (row,) = cli("runs", "--json").items
    assert "No dead letters" in cli("dead", "list").out
    assert cli("dead", "list", "--json").items == []
    assert cli("runs", "--dead", "--json").items == []
    assert "No worker of this run has died." in cli("dead", "show", row["id"]).out
    for verb in ("retry", "discard"):
        said = cli("dead", verb, row["id"])
        assert said.code == 2
        assert "is completed; it is not a dead letter" in said.err


@pytest.mark.covers("FLEET-WORK-10")
def test_doctor_names_schedules_that_nobody_serves(cli: Cli, refund: str) -> None:
    cli(*NIGHTLY, "--flow", refund, "--input", given(20))
    found = {each["check"]: each for each in cli("doctor", "--json").json["findings"]}
    assert found["schedules"]["state"] == "warn"
    assert "a flow that no worker serves: refund" in found["schedules"]["said"]
    cli("schedules", "pause", "nightly")
    found = {each["check"]: each for each in cli("doctor", "--json").json["findings"]}
    assert found["schedules"]["said"] == "1 schedules, 1 paused or over"


def test_doctor_names_a_schedule_that_waits_because_the_clock_was_set_back(cli: Cli, refund: str) -> None:
    assert cli(*NIGHTLY, "--flow", refund, "--input", given(20)).code == 0

    async def fired_too_early() -> None:
        store = await open_store("sqlite:.holdfast/holdfast.db")
        try:
            (row,) = await store.schedules("default", limit=1)
            far = row.next_at + 365 * 86_400 * MICROS if row.next_at is not None else 0
            await store.put_schedule(msgspec.structs.replace(row, last_at=far - 3600 * MICROS, next_at=far))
        finally:
            await store.close()

    asyncio.run(fired_too_early())
    said = cli("doctor").out
    assert "1 of 1 schedules fired for later times: the clock was set back" in said
    (before,) = cli("schedules", "list", "--json").items
    assert cli("schedules", "pause", "nightly").code == cli("schedules", "resume", "nightly").code == 0
    (after,) = cli("schedules", "list", "--json").items
    assert after["next_at"] < before["next_at"]
    assert "the clock was set back" not in cli("doctor").out
