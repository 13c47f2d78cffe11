"""What `cancel`, `resume` and `fork` share for many runs: `--where` selects them, `--plan` only says what
would happen to each."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from holdfast.cli.app import Text
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import PATIENCE, print_line, print_note, status_console
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import shown_run
from holdfast.errors import HoldfastError, InputError, RunEndedError, RunStatusError, StoreError
from holdfast.types.status import ENDED, RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunFilter, RunRow

Where = Annotated[
    Text,
    typer.Option(
        "--where",
        help="All runs that this search finds, e.g. 'status:failed flow:refund created<2d'",
        metavar="QUERY",
    ),
]
Plan = Annotated[
    bool, typer.Option("--plan", help="With --where: say what would happen to each run; change nothing")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="With --where: do not ask for confirmation")]
ManyTenant = Annotated[Text, typer.Option("--tenant", help="With --where: only runs of this tenant")]

Action = Literal["cancel", "resume", "fork"]
_BATCH = 500
_APPLIES: dict[Action, tuple[RunStatus, ...]] = {
    "cancel": tuple(status for status in RunStatus if status not in ENDED),
    "resume": (RunStatus.failed, RunStatus.resumable),
    "fork": tuple(RunStatus),
}
_DONE: dict[Action, str] = {"cancel": "cancelled", "resume": "queued to resume", "fork": "forked"}


class ManyOptions(msgspec.Struct, frozen=True):
    """The part of the command line that selects runs."""

    where: str
    tenant: str | None
    plan: bool
    yes: bool
    store: str | None
    json: bool


class ManyItem(msgspec.Struct, kw_only=True):
    """`done`: changed, or in a plan: would be. `made`: the new run of a fork. `text`: what would happen."""

    run: str
    flow: str
    status: str
    done: bool = False
    made: str | None = None
    code: str | None = None
    why: str | None = None
    text: list[str] = []


class RunChange(msgspec.Struct, frozen=True):
    """One action on many runs. `describe` says what it would do to a run, `apply` does it and answers the
    id of a new run, if it makes one; both raise where it does not apply."""

    action: Action
    describe: Callable[[RunService, RunRow], Awaitable[list[str]]]
    apply: Callable[[RunService, RunRow], Awaitable[str | None]]


def planned(action: Action) -> Callable[[RunService, RunRow], Awaitable[list[str]]]:
    """The sentences that the pages show before a person confirms the action."""

    async def describe(service: RunService, row: RunRow) -> list[str]:
        from holdfast.runs.preview.run_change import preview_change

        return (await preview_change(service, row, action, actor=None)).text

    return describe


def require_one_way(
    ref: str | None, where: str | None, *, plan: bool, yes: bool, tenant: str | None, name: str = "RUN"
) -> None:
    """A run is named, or many are selected."""
    if (ref is None) == (where is None):
        raise InputError(f"give {name} or --where.", hint=f"One {name}, or a search for many runs.")
    for option, given in (("--plan", plan), ("--yes", yes), ("--tenant", tenant is not None)):
        if given and where is None:
            raise InputError(f"{option} needs --where.", hint="It is for many runs.")
    if where is not None and not where.strip():
        raise InputError("--where is empty.", hint="Write a search: --where 'status:failed flow:refund'.")


async def change_many(change: RunChange, options: ManyOptions) -> Exit:
    async with open_store_for_command(options.store, must_exist=True) as hf:
        service = await hf.service()
        rows = await _selected(service, options)
        if rows and not options.plan and not _confirmed(change, rows, options):
            print_note("Nothing was changed.")
            return Exit.ok
        items = await _each(service, change, rows, options)
    if options.json:
        left_out = Counter(item.code for item in items if item.code)
        print_json({"action": change.action, "plan": options.plan, "done": sum(item.done for item in items),
                    "left_out": dict(left_out), "items": msgspec.to_builtins(items)})  # fmt: skip
    else:
        _print(change, items, plan=options.plan)
    return Exit.ok if all(item.done for item in items) else Exit.run_failed


async def _selected(service: RunService, options: ManyOptions) -> list[RunRow]:
    """All of them before the first is changed: a change would move runs into or out of the search."""
    from holdfast.runs.encryption.detect import encrypted_store_within
    from holdfast.runs.run_query import read_run_query
    from holdfast.store.rows import RunFilter

    now = service.store.now()
    where: RunFilter = read_run_query(
        options.where, RunFilter(tenant=options.tenant), me="user:local", now=now
    )
    if where.error is not None and encrypted_store_within(service.store) is not None:
        raise InputError(
            "errors cannot be searched in this store: they are encrypted.", hint="Leave error: out."
        )
    found: list[RunRow] = []
    after: tuple[int, int] | None = None
    while rows := await service.store.list_runs(where, after=after, limit=_BATCH):
        found += rows
        after = (rows[-1].created_at, rows[-1].key)
    return found


def _confirmed(change: RunChange, rows: Sequence[RunRow], options: ManyOptions) -> bool:
    """A person at a terminal is asked once; scripts are not."""
    if options.yes or options.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    count = "1 run" if len(rows) == 1 else f"{len(rows)} runs"
    print_note("The same command with --plan says what would happen to each.")
    return input(f"{change.action.capitalize()} {count}? [y/N] ").strip().lower() in ("y", "yes")


async def _each(
    service: RunService, change: RunChange, rows: Sequence[RunRow], options: ManyOptions
) -> list[ManyItem]:
    items: list[ManyItem] = []
    progress = _Progress(len(rows))
    try:
        for row in rows:
            items.append(await _one(service, change, row, plan=options.plan))
            progress.show(len(items))
    finally:
        progress.end()
    return items


async def _one(service: RunService, change: RunChange, row: RunRow, *, plan: bool) -> ManyItem:
    """An error of one run is its own: the others are changed all the same."""
    item = ManyItem(run=row.id, flow=row.flow, status=str(row.status))
    try:
        # As it is now; it may have been deleted since it was found.
        shown = await shown_run(service.store, await service.get(row.id))
        item.status = str(shown.status)
        if shown.status not in _APPLIES[change.action]:
            unfit = RunEndedError if shown.status in ENDED else RunStatusError
            raise unfit(f"it is {run_label(shown.status)}.", run=row.id)
        if plan:
            item.text = await change.describe(service, shown)
        else:
            item.made = await change.apply(service, shown)
    except StoreError:
        raise
    except HoldfastError as error:
        item.code, item.why = error.code, error.message
        return item
    item.done = True
    return item


class _Progress:
    """A line in a terminal, else one on stderr every two seconds: nothing for what is quick."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._at = time.monotonic()
        console = status_console()
        self._status = None if console is None else console.status("", spinner="dots")
        self._started = False

    def show(self, count: int) -> None:
        if time.monotonic() - self._at < PATIENCE and not self._started:
            return
        text = f"{count} of {self._total} runs"
        if self._status is None:
            self._at = time.monotonic()
            print_note(text)
            return
        self._status.update(text)
        if not self._started:
            self._started = True
            self._status.start()

    def end(self) -> None:
        if self._status is not None and self._started:
            self._status.stop()


def _print(change: RunChange, items: Sequence[ManyItem], *, plan: bool) -> None:
    if not items:
        print_line("No matching runs.")
        return
    for item in items:
        word = _word(change, item, plan=plan)
        label = run_label(RunStatus(item.status))
        print_line(f"{item.run[:8]}  {item.flow}  {label}  {word}", style="" if item.done else "red")
        for line in (item.why, *item.text):
            if line:
                print_line(f"    {line}")
    done = sum(item.done for item in items)
    print_line(f"{done} of {len(items)} runs {'would be ' if plan else ''}{_DONE[change.action]}.")
    if plan:
        print_note("This was a plan: nothing has changed.")


def _word(change: RunChange, item: ManyItem, *, plan: bool) -> str:
    if not item.done:
        return "left out"
    return f"would be {_DONE[change.action]}" if plan else item.made or _DONE[change.action]
