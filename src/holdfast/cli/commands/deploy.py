"""`holdfast deploy`: stores a flow document, so that any worker can run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from holdfast.cli.app import By, Functions, Json, OfTenant, Store, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line
from holdfast.cli.output.json_output import print_json
from holdfast.errors import FlowInvalidError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.documents.deploy import DeployResult
    from holdfast.frontends.document.problem import DocumentProblem


class DeployOptions(msgspec.Struct, frozen=True, kw_only=True):
    dry_run: bool
    activate: bool | None
    functions: tuple[str, ...]
    tenant: str
    by: str


@app.command(
    epilog="Examples:  holdfast deploy refund.yaml   ·   holdfast deploy refund.yaml --dry-run --json   ·   "
    "holdfast deploy refund.yaml --no-activate"
)
def deploy(
    file: Annotated[str, typer.Argument(help="file.yaml or file.json", metavar="FILE")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check it and store nothing")] = False,
    activate: Annotated[
        bool | None,
        typer.Option("--activate/--no-activate", help="New runs start on it (default: if it is new)"),
    ] = None,
    functions: Functions = None,
    tenant: OfTenant = "default",
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Deploy a flow document, so that any worker can run it.

    Every problem is reported. Exit code 1: it has errors, and nothing was stored. The same document again
    changes nothing; with --activate it becomes the current version.
    """
    options = DeployOptions(
        dry_run=dry_run,
        activate=activate,
        functions=tuple(functions or ()),
        tenant=tenant,
        by=by,
    )
    return run_async(deploy_file(file, options, store=store, json=json))


async def deploy_file(file: str, options: DeployOptions, *, store: str | None, json: bool) -> Exit:
    from holdfast.cli.document_run import is_document, read_file, site_with
    from holdfast.documents.deploy import DeployedFlows, SentDocument
    from holdfast.frontends.document.read import format_of

    if not is_document(file):
        raise InputError(
            f"{file} is not a document.",
            hint="Documents are *.yaml or *.json; flows of code are served by `holdfast worker FILE.py`.",
        )
    sent = SentDocument(raw=read_file(file), format=format_of(file))
    functions = site_with(options.functions).functions if options.functions else None
    async with open_store_for_command(store, must_exist=False) as hf:
        deployed = DeployedFlows(await hf.service(), options.tenant, functions)
        try:
            result = await deployed.deploy(
                sent, by=options.by, dry_run=options.dry_run, activate=options.activate
            )
        except FlowInvalidError as error:
            problems: list[DocumentProblem] = error.facts["problems"]  # pyright: ignore[reportAssignmentType]
            return _refuse(file, problems, json=json)
    _print(file, result, json=json)
    return Exit.ok


def _refuse(file: str, problems: list[DocumentProblem], *, json: bool) -> Exit:
    if json:
        print_json({"file": file, "valid": False, "stored": False, "problems": msgspec.to_builtins(problems)})
        return Exit.run_failed
    _print_problems(file, problems)
    print_line(f"{file}: not deployed", style="red")
    return Exit.run_failed


def _print_problems(file: str, problems: Iterable[DocumentProblem]) -> None:
    for each in problems:
        print_line(f"{file}:{each}")


def _print(file: str, result: DeployResult, *, json: bool) -> None:
    about = result.version
    if json:
        shown = {
            "file": file, "valid": True, "flow": about.flow, "version": about.version, "new": result.new,
            "stored": result.stored, "current": result.current,
            "problems": msgspec.to_builtins(result.problems),
        }  # fmt: skip
        print_json(shown)
        return
    _print_problems(file, result.problems)
    if not result.stored:
        print_line(f"{file}: valid; nothing was stored. It is {about.flow}@{about.version}.")
        return
    known = "deployed" if result.new else "known already"
    current = "new runs start on it" if result.current else "it is not the current version (see --activate)"
    print_line(f"{about.flow}@{about.version}: {known}; {current}.")
