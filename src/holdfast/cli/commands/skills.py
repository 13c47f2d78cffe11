"""`skills`: named, versioned instructions and tools that deployments bind."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async

group = typer.Typer(
    no_args_is_help=True,
    help="Skills: instructions and tools under a name and a version, which deployments bind.",
    epilog="Examples:  holdfast skills publish refunds.md --name refunds --version 1.0.0   ·   "
    "holdfast skills list   ·   holdfast skills yank refunds@1.0.0 --reason 'wrong limit'",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="skills", short_help="Skills: publish, list, show, yank.")

Named = Annotated[str, typer.Argument(help="A skill and its version", metavar="NAME@VERSION")]
Whose = Annotated[str, typer.Option("--tenant", help="Whose skills")]


@group.command(
    epilog="Examples:  holdfast skills publish refunds.toml   ·   "
    "holdfast skills publish refunds.md --name refunds --version 1.1.0 --tool look_up"
)
def publish(
    file: Annotated[
        str, typer.Argument(help="TOML or JSON with all of it, or the instructions as text", metavar="FILE")
    ],
    name: Annotated[Text, typer.Option(help="Its name, if the file does not say it")] = None,
    version: Annotated[Text, typer.Option(help="Its version: 1.2.0")] = None,
    tool: Annotated[
        list[str] | None, typer.Option("--tool", help="A tool that it hands out; may be repeated")
    ] = None,
    description: Annotated[Text, typer.Option(help="One line about it")] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Publish a version, for good: later runs use it, runs that wait keep theirs."""
    from holdfast.cli.commands.skills__skilling import SkillPublishOptions, publish_skill

    said = {"name": name, "version": version, "tools": tool, "description": description}
    wanted = SkillPublishOptions(file, {key: value for key, value in said.items() if value}, by, tenant)
    return run_async(publish_skill(wanted, store=store, json=json))


@group.command("list", epilog="Examples:  holdfast skills list   ·   holdfast skills list refunds --json")
def list_(
    name: Annotated[Text, typer.Argument(help="Only versions of this skill")] = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Every version, with those that were yanked."""
    from holdfast.cli.commands.skills__skilling import list_skills

    return run_async(list_skills(name, tenant, store=store, json=json))


@group.command(epilog="Examples:  holdfast skills show refunds   ·   holdfast skills show refunds@^1 --json")
def show(
    which: Annotated[str, typer.Argument(help="A skill, a version or a range", metavar="NAME[@RANGE]")],
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """One version in full; without one, the newest that a run would get."""
    from holdfast.cli.commands.skills__skilling import show_skill

    return run_async(show_skill(which, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast skills yank refunds@1.0.0 --reason 'wrong limit'")
def yank(
    which: Named,
    reason: Annotated[str, typer.Option(help="Told to those whose runs are pinned to it")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Offer it again")] = False,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Offer a version to no new run. Runs that are pinned to it go on with it, and are warned."""
    from holdfast.cli.commands.skills__skilling import yank_skill

    return run_async(yank_skill(which, reason, by, tenant, undo=undo, store=store, json=json))
