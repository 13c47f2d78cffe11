"""`holdfast doctor`: checks a store and says what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import msgspec
import typer

from holdfast.cli.app import Engine, Json, Store, app, run_async
from holdfast.cli.doctor.finding import FAIL, OK, Finding
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command, shown_address
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.errors import HoldfastError

_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


@app.command(
    epilog="Examples:  holdfast doctor   ·   holdfast doctor --deep --store sqlite:runs.db --json",
)
def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every record and blob of every run (slow)")
    ] = False,
    store: Store = None,
    engine: Engine = None,
    json: Json = False,
) -> int:
    """Check the store and say what to do.

    It checks file, schema, records, blobs, leases, workers, code, keys, disk space, files of settings,
    brokers, agents of pipelines and the engine of runs, and changes nothing.
    Exit code 1: at least one check failed; warnings do not count.
    """
    return run_async(run_doctor(store=store, engine=engine, deep=deep, json=json))


async def run_doctor(*, store: str | None, engine: str | None, deep: bool, json: bool) -> Exit:
    found = [finding async for finding in _findings(store, engine, deep=deep)]
    if json:
        print_json({"ok": not _failed(found), "findings": [msgspec.to_builtins(each) for each in found]})
    else:
        _print_findings(found)
    return Exit.run_failed if _failed(found) else Exit.ok


def _failed(found: list[Finding]) -> bool:
    return any(finding.state == FAIL for finding in found)


async def _findings(store: str | None, engine: str | None = None, *, deep: bool) -> AsyncIterator[Finding]:
    from holdfast.cli.doctor import agents, brokers, fleet, runs, settings
    from holdfast.cli.doctor import engine as doctor_engine
    from holdfast.cli.doctor import store as doctor_store

    for finding in doctor_store.machine_findings(store):
        yield finding
    async for finding in settings.settings_findings():
        yield finding
    async for finding in agents.agent_findings():
        yield finding
    try:
        async with open_store_for_command(store, must_exist=True, engine=engine) as hf:
            service = await hf.service()
            yield Finding("store", OK, f"{shown_address(store)} can be opened")
            async for finding in doctor_store.store_findings(service, store, deep=deep):
                yield finding
            async for finding in fleet.fleet_findings(service):
                yield finding
            async for finding in runs.run_findings(service, store, deep=deep):
                yield finding
            async for finding in fleet.schedule_findings(service):
                yield finding
            async for finding in brokers.broker_findings(service.store):
                yield finding
            async for finding in doctor_engine.engine_findings(service):
                yield finding
    except HoldfastError as error:
        yield Finding("store", FAIL, error.message, error.hint or "")


def _print_findings(found: list[Finding]) -> None:
    wide = max(len(finding.check) for finding in found)
    for finding in found:
        mark, style = _MARKS[finding.state]
        print_line(
            f"{mark}  {finding.check:{wide}}  {finding.said}", style=style if finding.state != OK else ""
        )
        for line in finding.about:
            print_line(f"      {'':{wide}}  {line}")
        if finding.todo:
            print_line(f"      {'':{wide}}  -> {finding.todo}", style="dim")
    counts = {state: sum(finding.state == state for finding in found) for state in ("fail", "warn")}
    print_line()
    if not any(counts.values()):
        print_line("All checks passed.", style="green")
    else:
        warned = "1 warning" if counts["warn"] == 1 else f"{counts['warn']} warnings"
        print_line(f"{counts['fail']} failed, {warned}.")
