"""What `holdfast fork` and `holdfast rewind` share: a new run from a checkpoint of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
import typer

from holdfast.cli.app import Text
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.output import OutputOptions
from holdfast.cli.options.store import open_store_for_command, recall_source, remember_source
from holdfast.cli.output.console import print_note
from holdfast.cli.output.json_output import print_json
from holdfast.cli.output.results import command, print_holds, row_json, shown_run
from holdfast.cli.output.tables import print_fields
from holdfast.errors import FlowNotFoundError, InputError
from holdfast.runs.engine_report import is_of_engine
from holdfast.types.status import RunStatus, run_label

if TYPE_CHECKING:
    from holdfast.runs.fork.patch import Set
    from holdfast.runs.service import RunService
    from holdfast.store.rows import RunRow

Moment = Annotated[
    str,
    typer.Argument(
        help="Checkpoint id, RUN, RUN@12 (a record) or RUN@node (its latest checkpoint)", metavar="REF"
    ),
]
Patch = Annotated[
    Text,
    typer.Option(
        help="Changes to the state, or to state, input, artifacts, diagnostics: JSON, @file or -",
        metavar="JSON",
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Set one value: amount=250, customer.name=Ada; may be repeated", metavar="PATH=VALUE"
    ),
]
Input = Annotated[Text, typer.Option("--input", help="Replace the input: JSON, @file or -", metavar="JSON")]
Resume = Annotated[bool, typer.Option("--resume", help="Advance the new run in this process")]


class BranchOptions(msgspec.Struct, frozen=True):
    """The command line of `fork` and `rewind`."""

    ref: str
    patch: str | None
    sets: tuple[str, ...]
    input: str | None
    resume: bool
    flow: str | None
    rewinds: bool


async def create_branch(wanted: BranchOptions, *, store: str | None, json: bool) -> Exit:
    from holdfast.cli.commands.resume import resume_run
    from holdfast.runs.fork.patch import with_sets
    from holdfast.runs.history.versions import version_at

    patch = read_patch(read_json(wanted.patch, "--patch"))
    given = read_json(wanted.input, "--input")
    sets = [read_set(text) for text in wanted.sets]
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        source, seq = await service.find(wanted.ref)
        load_code(service, source.flow, await version_at(service, source, seq), wanted.flow, store)
        if sets:
            patch = with_sets(patch, sets, await checkpoint_parts(service, source, seq))
        make = service.rewind if wanted.rewinds else service.fork
        made = await make(source.id, seq, patch=patch, input=given)
        if not wanted.resume:
            await _print_branch(service, await service.get(source.id), seq, made, wanted, store, json=json)
            return Exit.ok
    if not json:
        print_note(f"{_verb(wanted)} run {source.id} after record {seq}.")
    return await resume_run(made.id, wanted.flow, OutputOptions(store, False, json))


def _verb(wanted: BranchOptions) -> str:
    return "Rewound" if wanted.rewinds else "Forked"


def read_patch(given: Any) -> dict[str, Any] | None:
    """`{"state": ...}` is the state that nodes see; a patch without a partition changes the state."""
    from holdfast.runs.fork.patch import PARTITIONS

    if given is None:
        return None
    if not isinstance(given, dict):
        raise InputError("--patch is not an object.", hint='Write {"amount": 80}.')
    named = cast("dict[str, Any]", given)
    parts = {"scratch" if name == "state" else name: part for name, part in named.items()}
    return parts if any(name in PARTITIONS for name in parts) else {"scratch": named}


def read_set(text: str) -> Set:
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise InputError(f"--set {text!r} is not PATH=VALUE.", hint="Write --set amount=250.")
    try:
        return path.strip(), msgspec.json.decode(value)
    except msgspec.DecodeError:
        return path.strip(), value


def load_code(service: RunService, flow: str, version: str, given: str | None, store: str | None) -> None:
    """The code of exactly that version if it is found; else the stored graph is used for the checks."""
    from holdfast.app.loader import load_flow

    if given is not None:
        program = load_flow(given).program()
        service.runtime.register(program)
        remember_source(store, program.version, given)
        return
    try:
        program = load_flow(recall_source(store, flow, version)).program()
    except (FlowNotFoundError, InputError):
        return
    if program.version == version:
        service.runtime.register(program)


async def checkpoint_parts(service: RunService, source: RunRow, seq: int) -> dict[str, Any]:
    there = await service.checkpoint(source.id, seq)
    return {"scratch": there.state, "input": there.input, "artifacts": there.artifacts, "diagnostics": {}}


async def _print_branch(
    service: RunService,
    source: RunRow,
    seq: int,
    made: RunRow,
    wanted: BranchOptions,
    store: str | None,
    *,
    json: bool,
) -> None:
    if json:
        print_json({**row_json(await shown_run(service.store, made)), "source": source.id, "seq": seq,
                    "superseded_by": source.superseded_by})  # fmt: skip
        return
    print_fields(
        [
            ("run", made.id),
            ("status", run_label(made.status)),
            ("rewinds" if wanted.rewinds else "forked from", f"{source.id} after record {seq}"),
            ("checkpoint", made.forked_from or ""),
            ("superseded", f"{source.id} is {run_label(source.status)}" if wanted.rewinds else ""),
        ]
    )
    print_holds(await service.holds(made.id), store)
    if source.status is RunStatus.completed and seq == source.head:
        print_note(
            "It starts where its source ended: nothing is left to run. Name an earlier checkpoint: RUN@node."
        )
    if is_of_engine(made.worker):
        print_note(f"A worker of {made.worker} advances it.")
    else:
        print_note(f"Resume it: {command('resume', made.id[:8], store)}")
