"""`holdfast answer`: decides a hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import HOLDS_SHOWN, command, hold_json
from holdfast.errors import HoldNotFoundError, InputError, RunNotFoundError
from holdfast.types.ids import HoldId
from holdfast.types.status import RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.types.hold import HoldRow

_MIN_PREFIX = 6
"""Minimum length of a prefix of an open hold's id."""


@app.command(
    epilog="Examples:  holdfast answer 3fa9c1 approve   ·   holdfast answer 3fa9c1 edit --data @new.json"
)
def answer(
    which: Annotated[
        str, typer.Argument(help="Hold id, or a run with exactly one open hold", metavar="RUN|HOLD")
    ],
    decision: Annotated[str, typer.Argument(help="One of the hold's options, or free text if it has none")],
    data: Annotated[Text, typer.Option(help="Data of the answer: JSON, @file or -", metavar="JSON")] = None,
    comment: Annotated[Text, typer.Option(help="Comment")] = None,
    by: By = "user:local",
    resume: Annotated[bool, typer.Option("--resume", help="Advance the run in this process")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Answer a hold.

    The decision is made once. A worker resumes the run, or this command does with --resume.
    """
    found = read_json(data, "--data")
    manner = OutputOptions(store, False, json)
    return run_async(
        answer_hold(which, decision, data=found, comment=comment, by=by, go_on=resume, manner=manner)
    )


async def answer_hold(
    which: str, decision: str, *, data: Any, comment: str | None, by: str, go_on: bool, manner: OutputOptions
) -> Exit:
    from holdfast.cli.commands.resume import resume_run

    async with open_store_for_command(manner.store, must_exist=True) as hf:
        service = await hf.service()
        hold = await _find_hold(service, which)
        decided = await service.answer(hold.id, decision, data=data, comment=comment, by=by, channel="cli")
        if not go_on:
            _print_answer(decided, decision, manner)
            return Exit.ok
        resumed = await _asked_run(service, which, hold)
    return await resume_run(resumed, None, manner)


async def _asked_run(service: RunService, which: str, hold: HoldRow) -> str:
    """The run that was named: a manager shows the question of its child, and resumes with it."""
    if which == hold.id:
        return hold.run
    try:
        return (await service.get(which)).id
    except RunNotFoundError:
        return hold.run


def _print_answer(decided: HoldRow, decision: str, manner: OutputOptions) -> None:
    if manner.json:
        print_json(hold_json(decided))
        return
    print_line(f"Recorded: {decision!r} for {decided.node!r} of run {decided.run}.")
    print_note(f"A worker resumes the run, or run: {command('resume', decided.run[:8], manner.store)}")


async def _find_hold(service: RunService, which: str) -> HoldRow:
    """A hold's id, a prefix of an open hold's id, or a run with exactly one open hold."""
    hold = await service.store.hold(HoldId(which))
    if hold is not None:
        return hold
    try:
        row = await service.get(which)
    except RunNotFoundError:
        begun = [
            hold for hold in await service.holds() if len(which) >= _MIN_PREFIX and hold.id.startswith(which)
        ]
        if len(begun) == 1:
            return begun[0]
        raise HoldNotFoundError(
            f"{which!r} is neither a hold nor a run in this store.",
            hint="`holdfast runs --status pending_input` lists them.",
        ) from None
    holds = await service.questions(row.id)
    if len(holds) == 1:
        return holds[0]
    if holds:
        names = "; ".join(f"{hold.id} ({hold.prompt})" for hold in holds[:HOLDS_SHOWN])
        raise InputError(
            f"run {row.id} has {len(holds)} open holds.", hint=f"Name the one you answer: {names}."
        )
    answered = _last_answer(await service.holds(row.id, open_only=False))
    if row.status is RunStatus.pending_input and not row.read_only:
        raise HoldNotFoundError(
            f"run {row.id} has no open hold: its last one is closed, and no worker has resumed the run since."
            f"{answered}",
            hint=f"Resume it: holdfast resume {row.id}.",
        )
    state = "imported history" if row.read_only else run_label(row.status)
    raise HoldNotFoundError(f"run {row.id} ({state}) has no open hold.{answered}")


def _last_answer(holds: list[HoldRow]) -> str:
    """Who decided the last hold, for a caller who is too late."""
    decided = [hold for hold in holds if hold.resolution and hold.resolved_at]
    if not decided:
        return ""
    last = max(decided, key=lambda hold: hold.resolved_at or 0)
    return f" The last one, at {last.node!r}, was decided by {last.resolved_by or 'an unknown person'}."
