"""`holdfast models`: the models that are known here, their prices, and whose key is set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import Json, app
from holdfast.cli.main import Exit
from holdfast.cli.output.console import print_note
from holdfast.cli.output.json_output import print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.agents.prices import Prices
    from holdfast.attractor.providers import Providers

_HEADS = ("provider", "model", "context", "input", "output", "cached", "written", "")


@app.command(
    epilog="Examples:  holdfast models   ·   holdfast models anthropic   ·   holdfast models --all --json"
)
def models(
    provider: Annotated[str, typer.Argument(help="Only models of this provider", metavar="PROVIDER")] = "",
    every: Annotated[
        bool, typer.Option("--all", help="Include providers without a key, and deprecated models")
    ] = False,
    json: Json = False,
) -> int:
    """List models with their context window and prices.

    Prices are per million tokens. All come from the file of HOLDFAST_MODELS and from a catalogue that
    is part of the installation. Other names are passed on to the provider as they are. Nothing is sent over
    the network.
    """
    from holdfast.attractor.providers import Providers

    providers = Providers()
    if provider and provider not in providers.known:
        raise InputError(
            f"the provider {provider!r} is not known.", hint=f"Known: {', '.join(providers.known)}."
        )
    rows = [row for row in rows_of(providers, every=every) if provider in ("", row["provider"])]
    if json:
        print_list(rows)
        return Exit.ok
    if rows:
        print_table(_HEADS, [_cells(row) for row in rows])
    else:
        print_note("No provider has a key here; --all lists the catalogue." if not every else "No models.")
    return Exit.ok


def rows_of(providers: Providers, *, every: bool) -> list[dict[str, Any]]:
    """The default first, then by provider and name."""
    from datetime import UTC, datetime

    from holdfast.agents.catalogue import known_models

    settings = providers.settings
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for known in known_models(datetime.now(UTC)):
        usable = providers.is_usable(known.provider)
        if every or (usable and not known.deprecated):
            chosen = not settings.model and known.is_default and known.provider == providers.default
            prices = providers.prices_of(known.name, known.provider)
            rows[known.provider, known.name] = {
                **_row(known.provider, known.name, prices, default=chosen),
                "context_window": known.context_window,
                "deprecated": known.deprecated,
                "usable": usable,
            }
    declared = {*settings.prices, *([settings.model] if settings.model else [])}
    for name in declared - {name for _, name in rows}:
        owner = providers.owner_of(name)
        row = _row(owner, name, providers.prices_of(name), default=name == settings.model)
        rows[owner, name] = {**row, "usable": bool(owner) and providers.is_usable(owner)}
    return sorted(rows.values(), key=lambda row: (not row["default"], row["provider"], row["model"]))


def _row(provider: str, name: str, prices: Prices | None, *, default: bool) -> dict[str, Any]:
    return {
        "provider": provider,
        "model": name,
        "default": default,
        "context_window": None,
        "prices": None if prices is None else prices.to_plain(),
        "deprecated": False,
    }


def _cells(row: dict[str, Any]) -> list[str]:
    prices: dict[str, str] = row["prices"] or {}
    notes = [word for word in ("default", "deprecated") if row[word]]
    if not row["usable"]:
        notes.append("no key")
    window = row["context_window"]
    return [
        row["provider"] or "-",
        row["model"],
        f"{window:,}" if window else "-",
        *(prices.get(name, "-") for name in ("input", "output", "cached", "written")),
        ", ".join(notes),
    ]
