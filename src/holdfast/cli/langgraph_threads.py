"""`holdfast import langgraph`, `holdfast export langgraph`: threads from and for LangGraph's own savers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json
from holdfast.errors import InputError, SettingsError
from holdfast.types.ids import DEFAULT_TENANT

if TYPE_CHECKING:
    from holdfast.integrations.langgraph.transfer import ThreadReport


def _require_langgraph() -> None:
    try:
        import_module("holdfast.integrations.langgraph")
    except ImportError as error:
        raise SettingsError(str(error)) from error


async def import_langgraph(
    source: str,
    *,
    threads: list[str],
    tenant: str | None,
    serde: str | None,
    dry_run: bool,
    store: str | None,
    json: bool,
) -> Exit:
    _require_langgraph()
    from holdfast.integrations.langgraph import HoldfastSaver
    from holdfast.integrations.langgraph.transfer import import_threads, serializer_of

    reader = serializer_of(serde)
    async with open_store_for_command(store, must_exist=False) as hf:
        saver = HoldfastSaver(hf, tenant=tenant or DEFAULT_TENANT, serde=reader)
        try:
            reports = await import_threads(saver, source, threads=threads, dry_run=dry_run)
        finally:
            await saver.aclose()
    if json:
        print_json({"dry_run": dry_run, "threads": [msgspec.structs.asdict(each) for each in reports]})
    else:
        _print_reports(reports, dry_run=dry_run)
    return Exit.ok if all(each.equal for each in reports) else Exit.store_trouble


def _print_reports(reports: list[ThreadReport], *, dry_run: bool) -> None:
    for each in reports:
        print_line(
            f"{each.thread}: {each.checkpoints} checkpoints, {each.writes} writes, {each.added} new, "
            f"digest {each.digest[:16]}"
        )
        if not each.equal:
            print_note(f"{each.thread}: the store does not give what the source has. Do not use this thread.")
        if each.changed:
            print_note(f"{each.thread} changed while it was read: import again for what is new.")
    what = "Nothing was imported." if dry_run else "Counts and digests are those of the source."
    if all(each.equal for each in reports):
        print_note(f"{len(reports)} threads. {what}")


async def export_langgraph(
    file: str,
    *,
    threads: list[str],
    tenant: str | None,
    serde: str | None,
    decrypt: bool,
    store: str | None,
    json: bool,
) -> Exit:
    _require_langgraph()
    from holdfast.integrations.langgraph import HoldfastSaver
    from holdfast.integrations.langgraph.transfer import export_threads, serializer_of

    # What the program of a tenant has stored must not run code of its choice here.
    reader = serializer_of(serde)
    async with open_store_for_command(store, must_exist=True) as hf:
        named = tenant or DEFAULT_TENANT
        if (await hf.service()).runtime.blobs.of(named).encrypted is not None and not decrypt:
            raise InputError(
                "this store is encrypted, but a file of LangGraph would not be.",
                hint="Use --decrypt to write the content unencrypted.",
            )
        saver = HoldfastSaver(hf, tenant=named, serde=reader)
        try:
            done = await export_threads(saver, Path(file), threads=threads)
        finally:
            await saver.aclose()
    if json:
        print_json({"file": file, "threads": [{"thread": name, "checkpoints": n} for name, n in done]})
    else:
        print_line(f"{len(done)} threads with {sum(n for _, n in done)} checkpoints are in {file}.")
        print_note("Open it with SqliteSaver of langgraph-checkpoint-sqlite.")
    return Exit.ok
