"""`holdfast policy`: rules that decide or route holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError
from holdfast.types.clock import micros
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from holdfast.holds.policies.policy import Policy
    from holdfast.holds.policies.rules import Rule
    from holdfast.holds.policies.simulate import Replayed, Simulation

SHOWN = 60
group = typer.Typer(
    no_args_is_help=True,
    help="Check, simulate and store policies for holds.\n\n"
    "Simulate shows what a policy would have done with past decisions.",
    epilog="Examples:  holdfast policy check rules.toml   ·   holdfast policy simulate rules.toml",
    rich_markup_mode=app.rich_markup_mode,
)
Whose = Annotated[Text, typer.Option("--tenant", help="Tenant")]
app.add_typer(group, name="policy")


@group.command(
    epilog="Examples:  holdfast policy check rules.toml   ·   holdfast policy check a.toml b.yaml --json"
)
def check(
    files: Annotated[list[str], typer.Argument(help="Rules in TOML, JSON or YAML", metavar="FILE...")],
    json: Json = False,
) -> int:
    """Check rules and list every problem. Exit code 2: problems were found."""
    return int(check_policies(files, json=json))


@group.command(
    epilog="Examples:  holdfast policy simulate rules.toml   ·   "
    "holdfast policy simulate rules.toml --since 30d --flow refund --json"
)
def simulate(
    file: Annotated[str, typer.Argument(help="Rules in TOML, JSON or YAML", metavar="FILE")],
    since: Annotated[Text, typer.Option(help="Only holds created within this time: 30d")] = None,
    flow: Annotated[
        list[str] | None, typer.Option("--flow", help="Only holds of this flow; may be repeated")
    ] = None,
    tenant: Annotated[Text, typer.Option(help="Tenant")] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of decisions", min=1)] = 10_000,
    store: Store = None,
    json: Json = False,
) -> int:
    """Replay past decisions under FILE and list what would differ.

    It compares assignee, number of votes, deadline and outcome. It asks no judge and changes nothing.
    """
    past = SimulationOptions(since=since, tenant=tenant, flows=tuple(flow or ()), limit=limit)
    return run_async(simulate_file(file, past, store=store, json=json))


@group.command("list", epilog="Example:  holdfast policy list")
def list_(tenant: Whose = None, store: Store = None, json: Json = False) -> int:
    """List stored policies."""
    return run_async(show_policies(tenant, store=store, json=json))


@group.command("set", epilog="Example:  holdfast policy set rules.toml")
def set_(
    file: Annotated[str, typer.Argument(help="Rules in TOML, JSON or YAML", metavar="FILE")],
    by: By = "user:local",
    tenant: Whose = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Store a policy, replacing one of the same name. Open holds do not change."""
    return run_async(save_policy(file, by, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast policy delete refunds")
def delete(
    name: Annotated[str, typer.Argument(help="Policy name", metavar="NAME")],
    by: By = "user:local",
    tenant: Whose = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Delete a stored policy. Its pending decisions go to people."""
    return run_async(delete_policy(name, by, tenant, store=store, json=json))


class SimulationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of `policy simulate`."""

    since: str | None = None
    tenant: str | None = None
    flows: tuple[str, ...] = ()
    limit: int = 10_000


def check_policies(files: list[str], *, json: bool) -> Exit:
    """Every problem of every file."""
    from holdfast.holds.policies.parse import read_policy

    found: list[dict[str, Any]] = []
    for file in files:
        try:
            found.append(
                {"file": file, "problems": [], "rules": [_rule_json(r) for r in read_policy(file).rules]}
            )
        except InputError as error:
            problems = error.facts.get("problems") or [error.message]
            found.append({"file": file, "problems": problems, "error": error.message})
    if json:
        print_list(found)
    else:
        for each in found:
            _print_check(each)
    return Exit.bad_input if any(each["problems"] for each in found) else Exit.ok


def _rule_json(rule: Rule) -> dict[str, Any]:
    return msgspec.to_builtins(rule)


def _print_check(found: dict[str, Any]) -> None:
    if found["problems"]:
        place = "" if found["file"] in found["error"] else f"{found['file']}: "
        print_line(f"{place}{found['error']}")
        return
    count = len(found["rules"])
    print_line(f"{found['file']}: {'1 rule' if count == 1 else f'{count} rules'}, no problems.")


async def simulate_file(file: str, past: SimulationOptions, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.policies.parse import read_policy
    from holdfast.holds.policies.simulate import simulate

    policy: Policy = read_policy(file)
    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        done = await simulate(
            opened,
            [policy],
            tenant=past.tenant,
            since=_since(past.since, opened.now()),
            flows=past.flows,
            limit=past.limit,
            guardrails=(await hf.holds()).ctx.guardrails,
        )
    if json:
        print_json(done)
    else:
        _print_simulation(done)
        _print_unmatched(policy, done)
    return Exit.ok


async def save_policy(file: str, by: str, tenant: str | None, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.policies.parse import read_plain
    from holdfast.holds.policies.stored import put_policy

    plain = read_plain(file)
    async with open_store_for_command(store, must_exist=False) as hf:
        kept = await put_policy(await hf.open(), tenant or DEFAULT_TENANT, plain, by=by)
    if json:
        print_json({"name": kept.name, "revision": kept.revision})
    else:
        print_line(f"Policy {kept.name} is stored, revision {kept.revision}.")
        print_note('It applies where Holdfast is opened with policies="store" or HOLDFAST_POLICIES=store.')
    return Exit.ok


async def show_policies(tenant: str | None, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.policies.stored import KIND

    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.open()).documents(tenant or DEFAULT_TENANT, KIND)
    listed: list[dict[str, Any]] = [
        {**msgspec.json.decode(each.body), "revision": each.revision} for each in found
    ]
    if json:
        print_list(listed)
    elif not listed:
        print_note("No stored policies.")
    else:
        rows = [(each["name"], str(len(each["rules"])), str(each["revision"])) for each in listed]
        print_table(("policy", "rules", "revision"), rows)
    return Exit.ok


async def delete_policy(name: str, by: str, tenant: str | None, *, store: str | None, json: bool) -> Exit:
    from holdfast.holds.policies.stored import delete_policy as delete_stored

    async with open_store_for_command(store, must_exist=True) as hf:
        await delete_stored(await hf.open(), tenant or DEFAULT_TENANT, name, by=by)
    if json:
        print_json({"name": name, "deleted": True})
    else:
        print_line(f"Policy {name} is deleted.")
    return Exit.ok


def _since(age: str | None, now: int) -> int | None:
    if age is None:
        return None
    try:
        return now - micros(parse_duration(age))
    except DurationError as error:
        raise InputError(f"--since: {error}.", hint="An age is written as 30m, 12h or 30d.") from None


def _print_simulation(done: Simulation) -> None:
    if not done.looked_at:
        print_note("No hold was decided in that time.")
        return
    if done.differing:
        print_table(
            ("hold", "flow", "asks", "differs", "was", "would be"),
            [row for each in done.differing for row in _rows(each)],
        )
    print_line(f"{done.looked_at} decisions replayed; {len(done.differing)} would differ.")
    if done.automatic:
        print_line(
            f"{done.automatic} would be decided without a person: "
            f"{done.agreeing} as people decided, {done.overturned} against it."
        )


def _print_unmatched(policy: Policy, done: Simulation) -> None:
    """A rule with a misspelt flow or field matches nothing."""
    names = [rule.name for rule in policy.rules if f"{policy.name}/{rule.name}" not in done.rules]
    if names and done.looked_at:
        print_line(f"These rules matched none of the decisions: {', '.join(names)}.")


def _rows(each: Replayed) -> list[tuple[str, ...]]:
    """One line for each difference; the first one names the hold."""
    names = (each.hold[:8], each.flow, clean_text(each.prompt, SHOWN))
    return [
        (*(names if place == 0 else ("", "", "")), found.field, found.was, found.would_be)
        for place, found in enumerate(each.differences)
    ]
