"""`prune`, `export`, `import`, `keys`: what is kept, what goes, and what is taken along."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Json, Run, Store, Text, app, run_async


@app.command(
    epilog="Examples:  holdfast prune --dry-run   ·   holdfast prune --older 30d --flow refund --yes"
    "   ·   holdfast prune 3fa9c1 --keep 3"
)
def prune(
    runs: Annotated[
        list[str] | None, typer.Argument(help="Only these; else all that have ended", metavar="RUN")
    ] = None,
    keep: Annotated[
        int | None, typer.Option(help="So many checkpoints are kept of each run (10)", min=1)
    ] = None,
    older: Annotated[
        Text, typer.Option(help="Runs that ended longer ago go wholly: 30d, 12h", metavar="AGE")
    ] = None,
    flow: Annotated[Text, typer.Option(help="Only runs of this flow")] = None,
    blobs: Annotated[
        bool, typer.Option("--blobs", help="Also large values that no run names any more")
    ] = False,
    grace: Annotated[str, typer.Option(help="Only blobs that are older", metavar="AGE")] = "24h",
    feed: Annotated[
        Text, typer.Option(help="Also what the feed over all runs told longer ago: 7d", metavar="AGE")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go, change nothing")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Forget the past of ended runs. Runs that live or wait are never touched, and forks stay whole."""
    from holdfast.cli.commands.prune__keeping import PruneOptions, prune_runs

    wanted = PruneOptions(runs or [], keep, older, flow, blobs, grace, dry_run, yes, feed)
    return run_async(prune_runs(wanted, store=store, json=json))


@app.command(
    epilog="Examples:  holdfast export 3fa9c1   ·   holdfast export 3fa9c1 -o - | ssh box holdfast import -"
    "   ·   holdfast export --attractor 3fa9c1 -o logs/",
    short_help="One run with its whole history as a file.",
)
def export(
    run: Run,
    out: Annotated[
        Text, typer.Option("--out", "-o", help="The file; - for stdout; else RUN.hfrun", metavar="FILE|-")
    ] = None,
    decrypt: Annotated[
        bool, typer.Option("--decrypt", help="Write the content of an encrypted store in the clear")
    ] = False,
    attractor: Annotated[
        bool,
        typer.Option("--attractor", help="Of a pipeline: its run directory, made from the journal alone"),
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """One run with its whole history as a file, for another machine or store. The run stays as it is."""
    from holdfast.cli.commands.transfer import export_run

    if attractor:
        from holdfast.cli.commands.run_directory import export_attractor

        return run_async(export_attractor(run, out, decrypt=decrypt, store=store, json=json))
    return run_async(export_run(run, out, decrypt=decrypt, store=store, json=json))


@app.command(
    "import",
    epilog="Examples:  holdfast import run.hfrun   ·   holdfast import run.hfrun --as-new-run --resume",
    short_help="Take in an exported run.",
)
def import_(
    file: Annotated[str, typer.Argument(help="What `holdfast export` wrote; - for stdin", metavar="FILE")],
    as_new_run: Annotated[
        bool, typer.Option("--as-new-run", help="Also a fork that goes on from its last checkpoint")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with that fork here and now")] = False,
    flow: Annotated[Text, typer.Option(help="Where the flow's code is, for --as-new-run")] = None,
    tenant: Annotated[Text, typer.Option(help="Whose it is here; else as in the file")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the file, say what is in it, change nothing")
    ] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """Take in an exported run: as read-only history under its own id, or as a new run that goes on."""
    from holdfast.cli.commands.transfer import ImportOptions, import_run

    wanted = ImportOptions(file, as_new_run or resume, resume, flow, tenant, dry_run)
    return run_async(import_run(wanted, store=store, json=json))


keys = typer.Typer(
    no_args_is_help=True,
    help="Keys for encryption at rest: a file that HOLDFAST_KEYS names.",
    epilog="Examples:  holdfast keys new --file keys.json   ·   holdfast keys rotate",
)
app.add_typer(keys, name="keys")

File = Annotated[Text, typer.Option("--file", help="The key file; else HOLDFAST_KEYS", metavar="FILE")]
Whose = Annotated[Text, typer.Option("--tenant", help="Of this tenant alone; else of all that have none")]


@keys.command(epilog="Examples:  holdfast keys new --file keys.json   ·   holdfast keys new --tenant acme")
def new(file: File = None, tenant: Whose = None, json: Json = False) -> int:
    """Make a key file, or a key of a tenant's own in it. Keep a copy: without it nothing can be read."""
    from holdfast.cli.commands.keys import new_key

    return new_key(file, tenant, json=json)


@keys.command("list", epilog="Example:  holdfast keys list")
def list_(file: File = None, json: Json = False) -> int:
    """Which keys there are, and which are current. Secrets are not shown."""
    from holdfast.cli.commands.keys import list_keys

    return list_keys(file, json=json)


@keys.command(epilog="Example:  holdfast keys rotate && holdfast keys reencrypt")
def rotate(file: File = None, tenant: Whose = None, json: Json = False) -> int:
    """A new key for all that is written from now on; the older ones stay to read by."""
    from holdfast.cli.commands.keys import rotate_key

    return rotate_key(file, tenant, json=json)


@keys.command(epilog="Example:  holdfast keys reencrypt --store sqlite:runs.db")
def reencrypt(file: File = None, store: Store = None, json: Json = False) -> int:
    """Bring everything in a store under the current keys; runs go on meanwhile. May be repeated."""
    from holdfast.cli.commands.keys import reencrypt_store

    return run_async(reencrypt_store(file, store=store, json=json))
