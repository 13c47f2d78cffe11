"""`holdfast skills`: versioned instructions and tools for agents."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.errors import InputError
from holdfast.types.human_time import clock_time
from holdfast.types.skill import Skill

if TYPE_CHECKING:
    from holdfast.holds.deployments.skills import SkillRegistry

FIELDS = ("name", "version", "instructions", "tools", "description", "data")
group = typer.Typer(
    no_args_is_help=True,
    help="Publish, list, show and yank skills.\n\n"
    "A skill has instructions and tools under a name and a version; deployments bind it.",
    epilog="Examples:  holdfast skills publish refunds.md --name refunds --version 1.0.0   ·   "
    "holdfast skills list   ·   holdfast skills yank refunds@1.0.0 --reason 'wrong limit'",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="skills")
Named = Annotated[str, typer.Argument(help="Skill and version", metavar="NAME@VERSION")]
Whose = Annotated[str, typer.Option("--tenant", help="Tenant")]


@group.command(
    epilog="Examples:  holdfast skills publish refunds.toml   ·   "
    "holdfast skills publish refunds.md --name refunds --version 1.1.0 --tool look_up"
)
def publish(
    file: Annotated[
        str,
        typer.Argument(
            help="TOML or JSON with the whole skill, or a text file with the instructions", metavar="FILE"
        ),
    ],
    name: Annotated[
        Text, typer.Option(help="Skill name, if the file does not have it", metavar="NAME")
    ] = None,
    version: Annotated[Text, typer.Option(help="Skill version: 1.2.0")] = None,
    tool: Annotated[
        list[str] | None, typer.Option("--tool", help="Tool that the skill provides; may be repeated")
    ] = None,
    description: Annotated[Text, typer.Option(help="One-line description")] = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Publish a version. Later runs use it; existing runs keep theirs."""
    fields = {"name": name, "version": version, "tools": tool, "description": description}
    wanted = SkillPublishOptions(file, {key: value for key, value in fields.items() if value}, by, tenant)
    return run_async(publish_skill(wanted, store=store, json=json))


@group.command("list", epilog="Examples:  holdfast skills list   ·   holdfast skills list refunds --json")
def list_(
    name: Annotated[Text, typer.Argument(help="Only versions of this skill")] = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """List all versions, including yanked ones."""
    return run_async(list_skills(name, tenant, store=store, json=json))


@group.command(epilog="Examples:  holdfast skills show refunds   ·   holdfast skills show refunds@^1 --json")
def show(
    which: Annotated[
        str, typer.Argument(help="Skill, with an optional version or range", metavar="NAME[@RANGE]")
    ],
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Show a version; by default the newest that a run would get."""
    return run_async(show_skill(which, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast skills yank refunds@1.0.0 --reason 'wrong limit'")
def yank(
    which: Named,
    reason: Annotated[str, typer.Option(help="Reason, shown for runs that are pinned to the version")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Undo the yank")] = False,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Withdraw a version from new runs. Pinned runs keep it and are warned."""
    return run_async(yank_skill(which, reason, by, tenant, undo=undo, store=store, json=json))


class SkillPublishOptions(msgspec.Struct, frozen=True):
    """The command line of `publish`; `fields` overrides the file."""

    file: str
    fields: dict[str, Any]
    by: str
    tenant: str


async def publish_skill(wanted: SkillPublishOptions, *, store: str | None, json: bool) -> Exit:
    fields = {**_read(Path(wanted.file)), **wanted.fields}
    missing = [name for name in ("name", "version") if not fields.get(name)]
    if missing:
        named = " and ".join(f"--{name}" for name in missing)
        raise InputError(f"{wanted.file} has no {' and '.join(missing)}.", hint=f"Give {named}.")
    async with open_store_for_command(store, must_exist=False) as hf:
        registry = await hf.skills()
        skill = await registry.publish(
            fields.pop("name"), fields.pop("version"), **fields, by=wanted.by, tenant=wanted.tenant
        )
    if json:
        print_json(skill)
    else:
        print_line(f"Published {skill.name}@{skill.version}, {skill.digest[:19]}…")
    return Exit.ok


def _read(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(f"{file} cannot be read: {why}.", hint="Name a text file, TOML or JSON.") from error
    if file.suffix not in (".toml", ".json"):
        return {"instructions": text}
    try:
        toml = file.suffix == ".toml"
        found = tomllib.loads(text) if toml else msgspec.json.decode(text, type=dict[str, Any])
    except ValueError as error:
        raise InputError(f"{file} cannot be read: {error}.") from error
    unknown = sorted(set(found) - set(FIELDS))
    if unknown:
        raise InputError(
            f"{file} has unknown fields: {', '.join(unknown)}.", hint=f"Known: {', '.join(FIELDS)}."
        )
    return found


async def list_skills(name: str | None, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.skills()).list(name, tenant=tenant)
    if json:
        print_list(found)
    elif not found:
        print_line("No skills.")
        print_note("Publish one: holdfast skills publish FILE")
    else:
        print_table(("skill", "version", "published", "by", ""), [_line(skill) for skill in found])
    return Exit.ok


def _line(skill: Skill) -> tuple[str, ...]:
    text = f"yanked: {skill.yanked_reason}" if skill.is_yanked else skill.description
    return skill.name, skill.version, clock_time(skill.published_at), skill.published_by, text


async def show_skill(which: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        skill = await _find_skill(await hf.skills(), which, tenant)
    if json:
        print_json(skill)
        return Exit.ok
    tools = ", ".join(tool.name for tool in skill.tools)
    yanked = (
        f"{clock_time(skill.yanked_at)} by {skill.yanked_by}: {skill.yanked_reason}"
        if skill.yanked_at
        else ""
    )
    result = (
        ("skill", f"{skill.name}@{skill.version}"),
        ("digest", skill.digest),
        ("published", f"{clock_time(skill.published_at)} by {skill.published_by}"),
        ("yanked", yanked),
        ("about", skill.description),
        ("tools", tools),
    )
    print_fields([(name, value) for name, value in result if value])
    if skill.instructions:
        print_line()
        print_line(skill.instructions)
    return Exit.ok


async def _find_skill(registry: SkillRegistry, which: str, tenant: str) -> Skill:
    from holdfast.holds.deployments.skills import parse_binding
    from holdfast.holds.deployments.version_ranges import is_exact

    wanted = parse_binding(which)
    if is_exact(wanted.versions):
        return await registry.get(wanted.skill, wanted.versions, tenant=tenant)
    return await registry.resolve(wanted.skill, wanted.versions, tenant=tenant)


async def yank_skill(
    which: str, reason: str, by: str, tenant: str, *, undo: bool, store: str | None, json: bool
) -> Exit:
    from holdfast.holds.deployments.skills import parse_binding
    from holdfast.holds.deployments.version_ranges import is_exact

    wanted = parse_binding(which)
    if not is_exact(wanted.versions):
        raise InputError(f"{which!r} does not name one version.", hint="Write NAME@1.2.0.")
    async with open_store_for_command(store, must_exist=True) as hf:
        registry = await hf.skills()
        if undo:
            skill = await registry.restore(wanted.skill, wanted.versions, tenant=tenant)
        else:
            skill = await registry.yank(wanted.skill, wanted.versions, reason=reason, by=by, tenant=tenant)
    if json:
        print_json(skill)
    else:
        what = "available again" if undo else "yanked: no new run gets it"
        print_line(f"{skill.name}@{skill.version} is {what}.")
    return Exit.ok
