"""`holdfast diagnose`: why a run stands or failed, and what to do."""

from __future__ import annotations

import msgspec

from holdfast.cli.app import Json, Run, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_json, print_line


@app.command(epilog="Examples:  holdfast diagnose 3fa9c1   ·   holdfast diagnose 3fa9c1 --json")
def diagnose(run: Run, store: Store = None, json: Json = False) -> int:
    """Say why a run stands or failed, and what to do.

    At most ten lines: where it is, why, the end of a failed command's output, what came before, and the
    commands that lead on. It changes nothing.
    """
    return run_async(print_diagnosis(run, store=store, json=json))


async def print_diagnosis(run: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.reports.diagnosis import diagnose as find

    async with open_store_for_command(store, must_exist=True) as hf:
        found = await find(await hf.service(), run)
    if json:
        print_json(msgspec.to_builtins(found))
    else:
        for line in found.lines:
            print_line(line)
    return Exit.ok
