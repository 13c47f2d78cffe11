"""`holdfast flows`: versions of flows, and migrating runs between them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import By, Engine, Json, OfTenant, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command, remember_source
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import iso_times, print_json, print_list
from holdfast.cli.output.results import command, version_text
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError
from holdfast.types.human_time import clock_time
from holdfast.types.status import ENDED, RunStatus, label_for

if TYPE_CHECKING:
    from holdfast.app.flow import Flow
    from holdfast.cli.options.flow_sources import Sources
    from holdfast.runs.migrate.check import MigrationReport
    from holdfast.runs.service import RunService

_BATCH = 500
group = typer.Typer(
    no_args_is_help=True,
    help="List versions of flows, check new ones, migrate runs.\n\n"
    "A new version is checked against the active runs.",
    epilog="Examples:  holdfast flows list   ·   holdfast flows check refund.py   ·   "
    "holdfast flows migrate refund.py --dry-run",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="flows")
New = Annotated[
    str,
    typer.Argument(help="New version: path/to/file.py[:name] or package.module[:name]", metavar="NEW"),
]
Which = Annotated[Text, typer.Option("--flow", help="Flow name, if NEW has several flows", metavar="NAME")]


@group.command("list", epilog="Examples:  holdfast flows list   ·   holdfast flows list --flow refund --json")
def list_(
    flow: Annotated[Text, typer.Option(help="Only this flow")] = None,
    tenant: Annotated[
        str, typer.Option(help="Tenant whose current versions of deployed documents are marked")
    ] = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """List versions of flows with runs, use and code location."""
    return run_async(list_flows(flow, tenant, store=store, json=json))


@group.command(
    epilog="Examples:  holdfast flows check refund.py   ·   holdfast flows check shop.flows:refund --json"
)
def check(
    new: New, flow: Which = None, engine: Engine = None, store: Store = None, json: Json = False
) -> int:
    """Check whether active runs fit NEW.

    Those of other versions, and those that wait inside of a script whose code has changed. It says why a run
    does not fit, and changes nothing. With an engine it notes what differs there. Exit code 1: at least one
    run does not fit.
    """
    return run_async(check_flow(new, flow, engine=engine, store=store, json=json))


@group.command(
    epilog="Examples:  holdfast flows migrate refund.py --dry-run   ·   "
    "holdfast flows migrate refund.py --run 3fa9c1"
)
def migrate(
    new: New,
    flow: Which = None,
    run: Annotated[
        list[str] | None, typer.Option("--run", help="Only this run; may be repeated", metavar="RUN")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Migrate copies in memory and show what each run would do next")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="With --run: migrate in spite of refusals you accept; the event records them"
        ),
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Migrate active runs to NEW, as it declares with `migrate(...)`.

    A run that does not fit is not changed. Holds keep their ids and answers. Exit code 1: some run was
    not migrated.
    """
    return run_async(
        migrate_runs(FlowMigrateOptions(new, flow, run or [], dry_run, force), store=store, json=json)
    )


@group.command(
    epilog="Examples:  holdfast flows document refund > refund.yaml   ·   "
    "holdfast flows document refund --version canvas-1f0c9a --format json"
)
def document(
    name: Annotated[str, typer.Argument(help="Name of a deployed flow", metavar="NAME")],
    version: Annotated[
        Text, typer.Option(help="Version or a prefix of it (default: the current one)")
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="source (as it was sent), json or yaml", metavar="FORM")
    ] = "source",
    tenant: OfTenant = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Print the document of a deployed flow."""
    from holdfast.cli.deployed_run import show_document

    if form not in ("source", "json", "yaml"):
        raise InputError(f"unknown --format {form!r}.", hint="Use one of: source, json, yaml.")
    return run_async(show_document(name, version, form, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast flows activate refund canvas-1f0c9a")
def activate(
    name: Annotated[str, typer.Argument(help="Name of a deployed flow", metavar="NAME")],
    version: Annotated[str, typer.Argument(help="Version or a prefix of it", metavar="VERSION")],
    tenant: OfTenant = "default",
    by: By = "user:local",
    store: Store = None,
    json: Json = False,
) -> int:
    """Make a version of a deployed flow current, for new runs."""
    from holdfast.cli.deployed_run import activate_version

    return run_async(activate_version(name, version, tenant, by=by, store=store, json=json))


class VersionUse(msgspec.Struct):
    """The use of a version."""

    statuses: Counter[RunStatus]
    first: int
    last: int

    @property
    def live(self) -> int:
        return sum(count for status, count in self.statuses.items() if status not in ENDED)


async def list_flows(flow: str | None, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.cli.options.flow_sources import Sources

    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        rows = [row for row in await service.store.flows() if flow in (None, row.name)]
        uses = await version_uses(service, flow)
        names = await labels(service)
        current = await _current(service, {row.name for row in rows}, tenant)
    sources = Sources(store)
    found = [
        _listed(row.name, row.version, row.created_at, names, uses, sources)
        | {"current": current.get(row.name) == row.version}
        for row in rows
    ]
    if json:
        print_list([iso_times(entry) for entry in found])
    elif not found:
        print_note("No flows." if flow is None else f"No flow {flow!r} in this store.")
    else:
        heads = ("flow", "version", "runs", "first used", "last used", "code")
        print_table(heads, [_cells(entry) for entry in found])
    return Exit.ok


async def _current(service: RunService, flows: set[str], tenant: str) -> dict[str, str]:
    """The version of each deployed document on which new runs start."""
    from holdfast.documents.deploy import DeployedFlows

    deployed = DeployedFlows(service, tenant)
    found = {flow: await deployed.current(flow) for flow in flows}
    return {flow: version for flow, version in found.items() if version is not None}


def _listed(
    name: str,
    version: str,
    stored: int,
    names: dict[str, str],
    uses: dict[tuple[str, str], VersionUse],
    sources: Sources,
) -> dict[str, Any]:
    use = uses.get((name, version)) or VersionUse(Counter(), stored, stored)
    known = sources.of(version)
    return {
        "flow": name,
        "version": version,
        "label": names.get(version, ""),
        "runs": {str(status): count for status, count in sorted(use.statuses.items())},
        "live": use.live,
        "first_used_at": use.first,
        "last_used_at": use.last,
        "code": {"here": known.here, "place": known.place, "why": known.why},
    }


def _cells(entry: dict[str, Any]) -> tuple[str, ...]:
    runs = ", ".join(f"{count} {label_for(status)}" for status, count in entry["runs"].items())
    code = entry["code"]
    return (
        entry["flow"],
        version_text(entry["label"], entry["version"]) + (" (current)" if entry["current"] else ""),
        runs or "none",
        clock_time(entry["first_used_at"]),
        clock_time(entry["last_used_at"]),
        code["place"] if code["here"] else code["why"],
    )


async def version_uses(service: RunService, flow: str | None = None) -> dict[tuple[str, str], VersionUse]:
    from holdfast.store.rows import RunFilter

    found: dict[tuple[str, str], VersionUse] = {}
    after: tuple[int, int] | None = None
    while rows := await service.store.list_runs(RunFilter(flow=flow), after=after, limit=_BATCH):
        after = (rows[-1].created_at, rows[-1].key)
        for row in rows:
            use = found.setdefault(
                (row.flow, row.version), VersionUse(Counter(), row.created_at, row.updated_at)
            )
            use.statuses[row.status] += 1
            use.first, use.last = min(use.first, row.created_at), max(use.last, row.updated_at)
    return found


async def labels(service: RunService) -> dict[str, str]:
    from holdfast.model.fingerprint import decode_graph
    from holdfast.model.graph import Graph

    return {row.version: Graph(decode_graph(row.graph)).label for row in await service.store.flows()}


async def check_flow(
    new: str, name: str | None, *, engine: str | None, store: str | None, json: bool
) -> Exit:
    from holdfast.cli.doctor.fleet import served_versions
    from holdfast.cli.options.flow_sources import Sources

    flow = _flow(new, name)
    async with open_store_for_command(store, must_exist=True, engine=engine) as hf:
        service = await hf.service()
        notes = await _engine_notes(service, flow)
        verdicts = await service.check(flow.program())
        names = await labels(service)
        versions = await served_versions(service)
    sources = Sources(store)
    for verdict in verdicts:
        verdict.served = sources.of(verdict.version).here or verdict.version in (versions or ())
    breaks = sum(not verdict.fits for verdict in verdicts)
    if json:
        print_json({**_report(flow, verdicts, names), "engine": notes})
    else:
        for note in notes:
            print_note(note)
        _print_verdicts(flow, verdicts, names, tried=False)
        _print_totals(verdicts, breaks, new, store)
        _print_unserved(verdicts, versions)
    return Exit.run_failed if breaks else Exit.ok


async def _engine_notes(service: RunService, flow: Flow) -> list[str]:
    """What differs on the engine, and where its runs have no worker."""
    engine = service.runtime.engine
    if engine is None:
        return []
    notes = engine.notes(flow.program())
    found = [each async for each in engine.findings() if each.check == "task queues"]
    return notes + [f"{each.wrong}: {place}" for each in found for place in each.about]


class FlowMigrateOptions(msgspec.Struct, frozen=True):
    """The command line of `flows migrate`."""

    new: str
    flow: str | None
    runs: list[str]
    dry_run: bool
    force: bool


async def migrate_runs(move: FlowMigrateOptions, *, store: str | None, json: bool) -> Exit:
    from holdfast.app.loader import address_in

    flow, dry_run = _flow(move.new, move.flow), move.dry_run
    async with open_store_for_command(store, must_exist=True) as hf:
        service = await hf.service()
        verdicts = await service.migrate(flow.program(), runs=move.runs, dry_run=dry_run, force=move.force)
        names = await labels(service)
    if not dry_run:
        remember_source(store, flow.program().version, address_in(move.new, flow))
    stayed = [v for v in verdicts if v.misfits or v.refused]
    if json:
        print_json({**_report(flow, verdicts, names), "dry_run": dry_run})
    else:
        _print_verdicts(flow, verdicts, names, tried=dry_run)
        moved = sum(verdict.migrated for verdict in verdicts)
        would = "would be migrated" if dry_run else "migrated"
        count = len(verdicts) - len(stayed) if dry_run else moved
        print_line(f"{count} of {len(verdicts)} runs {would} to {flow.name} {_name_of(flow)}.")
        if dry_run:
            print_note("This was a dry run: nothing has changed.")
    return Exit.run_failed if stayed else Exit.ok


def _flow(new: str, name: str | None) -> Flow:
    from holdfast.app.loader import load_flow

    return load_flow(f"{new}:{name}" if name else new)


def _name_of(flow: Flow) -> str:
    return version_text(flow.label, flow.program().version)


def _print_verdicts(
    flow: Flow, verdicts: list[MigrationReport], names: dict[str, str], *, tried: bool
) -> None:
    if not verdicts:
        print_line(f"No active run of {flow.name} is on a version other than {_name_of(flow)}.")
        return
    for verdict in verdicts:
        word, style = _word(verdict, tried=tried)
        was = version_text(names.get(verdict.version, ""), verdict.version)
        print_line(f"{verdict.run[:8]}  {label_for(verdict.status):17}  {was}  {word}", style=style)
        for blocker in verdict.misfits:
            print_line(f"    {blocker.why}")
            if blocker.fix:
                print_line(f"    -> {blocker.fix}", style="dim")
        forced = [f"forced, although {why}" for why in verdict.forced]
        for line in (verdict.refused, *forced, *verdict.next, *_renames(verdict)):
            if line:
                print_line(f"    {line}")


def _renames(verdict: MigrationReport) -> list[str]:
    return [f"{old} is renamed to {new}" for old, new in verdict.renamed.items()]


def _word(verdict: MigrationReport, *, tried: bool) -> tuple[str, str]:
    if verdict.misfits:
        return "breaks", "red"
    if verdict.refused:
        return "not moved", "red"
    if verdict.migrated:
        return "moved", "green"
    return ("would be migrated" if tried else "fits"), "green"


def _print_totals(verdicts: list[MigrationReport], breaks: int, new: str, store: str | None) -> None:
    if not verdicts:
        return
    print_line()
    if breaks:
        print_line(f"{breaks} of {len(verdicts)} active runs do not fit. They continue on their own code.")
    else:
        print_line(f"All {len(verdicts)} active runs on other versions fit.")
    lost = sum(not verdict.served for verdict in verdicts)
    if lost:
        print_line(f"{lost} are on a version whose code is not available here: they cannot be resumed here.")
    if any(not verdict.misfits and not verdict.refused for verdict in verdicts):
        print_note(f"Migrate those that fit: {command('flows migrate', new, store)}")


def _print_unserved(verdicts: list[MigrationReport], versions: set[str] | None) -> None:
    """Only if workers are alive: without workers, `holdfast resume` advances runs wherever the code is."""
    count = sum(verdict.version not in (versions or ()) for verdict in verdicts)
    if versions is not None and count:
        print_line(f"{count} are on a version that no worker serves: they wait until a worker does.")


def _report(flow: Flow, verdicts: list[MigrationReport], names: dict[str, str]) -> dict[str, Any]:
    return {
        "flow": flow.name,
        "version": flow.program().version,
        "label": flow.label,
        "breaks": sum(not verdict.fits for verdict in verdicts),
        "runs": [_verdict(verdict, names) for verdict in verdicts],
    }


def _verdict(verdict: MigrationReport, names: dict[str, str]) -> dict[str, Any]:
    result = msgspec.to_builtins(verdict)
    run = result.pop("run")
    return {"run": run, **result, "label": names.get(verdict.version, "")}
