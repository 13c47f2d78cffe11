"""`limits`: listed, set and cleared."""

from __future__ import annotations

import msgspec

from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.screen import print_json, print_line, print_table
from holdfast.runs.limits import Limit

_HEADS = ("limit", "at once", "rate", "running", "waiting", "set by")


async def list_limits(prefix: str, *, keys: bool, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.limits()).list(prefix, keys=keys)
    if json:
        print_json([msgspec.structs.asdict(limit) for limit in found])
    elif found:
        print_table(_HEADS, [_cells(limit) for limit in found])
    else:
        print_line(
            "No limits. A flow declares them, or you do: holdfast limits set flow:NAME --concurrency 5"
        )
    return Exit.ok


async def set_limit(
    name: str, concurrency: str | None, rate: str | None, *, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        limit = await (await hf.limits()).change(name, concurrency=concurrency, rate=rate)
    _print_limit(limit, json=json)
    return Exit.ok


async def clear_limit(name: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        limit = await (await hf.limits()).clear(name)
    if limit is not None:
        _print_limit(limit, json=json)
    elif json:
        print_json(None)
    else:
        print_line(f"Nothing limits {name} any more.")
    return Exit.ok


def _print_limit(limit: Limit, *, json: bool) -> None:
    if json:
        print_json(msgspec.structs.asdict(limit))
    else:
        print_table(_HEADS, [_cells(limit)])


def _cells(limit: Limit) -> tuple[str, ...]:
    return (
        limit.name,
        "" if limit.concurrency is None else str(limit.concurrency),
        limit.rate or "",
        str(limit.running),
        str(limit.waiting),
        "operator" if limit.fixed else "flow",
    )
