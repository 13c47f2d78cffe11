"""`holdfast diagnose`: why a run waits or failed, and what to do."""

from __future__ import annotations

import msgspec

from holdfast.cli.app import Json, Run, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import command


@app.command(epilog="Examples:  holdfast diagnose 3fa9c1   ·   holdfast diagnose 3fa9c1 --json")
def diagnose(run: Run, store: Store = None, json: Json = False) -> int:
    """Explain why a run waits or failed, and what to do.

    At most ten lines: where it is, why, the end of a failed command's output, what came before, and the
    next commands. It changes nothing.
    """
    return run_async(print_diagnosis(run, store=store, json=json))


async def print_diagnosis(run: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.reports.diagnosis import diagnose as find

    async with open_store_for_command(store, must_exist=True) as hf:
        found = await find(await hf.service(), run)
    found = msgspec.structs.replace(found, todo=tuple(_for_store(line, store) for line in found.todo))
    if json:
        print_json(msgspec.to_builtins(found))
    else:
        for line in found.lines:
            print_line(line)
    return Exit.ok


def _for_store(line: str, store: str | None) -> str:
    """A command with its comment, for the same store."""
    words, gap, why = line.partition("    #")
    named = command("diagnose", "RUN", store).removeprefix("holdfast diagnose RUN")
    return f"{words}{named}{gap}{why}" if words.startswith("holdfast ") else line
