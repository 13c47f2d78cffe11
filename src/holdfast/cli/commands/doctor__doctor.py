"""`doctor`: asks every question, and tells the answers with what to do about them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from holdfast.cli.doctor import fleet, runs
from holdfast.cli.doctor import store as doctor_store
from holdfast.cli.doctor.finding import FAIL, OK, Finding
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command, shown_address
from holdfast.cli.output.screen import print_json, say
from holdfast.errors import HoldfastError

_MARKS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}


async def examine(*, store: str | None, deep: bool, json: bool) -> Exit:
    found = [finding async for finding in _findings(store, deep=deep)]
    if json:
        print_json({"ok": not _failed(found), "findings": [msgspec.to_builtins(each) for each in found]})
    else:
        _tell(found)
    return Exit.run_failed if _failed(found) else Exit.ok


def _failed(found: list[Finding]) -> bool:
    return any(finding.state == FAIL for finding in found)


async def _findings(store: str | None, *, deep: bool) -> AsyncIterator[Finding]:
    for finding in doctor_store.of_machine(store):
        yield finding
    try:
        async with open_store_for_command(store, must_exist=True) as hf:
            service = await hf.service()
            yield Finding("store", OK, f"{shown_address(store)} can be opened")
            async for finding in doctor_store.of_store(service, store, deep=deep):
                yield finding
            async for finding in fleet.of_fleet(service):
                yield finding
            async for finding in runs.of_runs(service, store, deep=deep):
                yield finding
            async for finding in fleet.of_schedules(service):
                yield finding
    except HoldfastError as error:
        yield Finding("store", FAIL, error.message, error.hint or "")


def _tell(found: list[Finding]) -> None:
    wide = max(len(finding.check) for finding in found)
    for finding in found:
        mark, style = _MARKS[finding.state]
        say(f"{mark}  {finding.check:{wide}}  {finding.said}", style=style if finding.state != OK else "")
        for line in finding.about:
            say(f"      {'':{wide}}  {line}")
        if finding.todo:
            say(f"      {'':{wide}}  -> {finding.todo}", style="dim")
    counts = {state: sum(finding.state == state for finding in found) for state in ("fail", "warn")}
    say()
    if not any(counts.values()):
        say("Everything is as it should be.", style="green")
    else:
        say(f"{counts['fail']} wrong, {counts['warn']} to look at.")
