"""`holdfast postmortem`: a report of a run's whole history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import Json, Run, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_note, print_raw
from holdfast.cli.output.json_output import iso_times, print_json
from holdfast.errors import InputError

if TYPE_CHECKING:
    from holdfast.reports.postmortem import Postmortem


@app.command(
    epilog="Examples:  holdfast postmortem 3fa9c1   ·   holdfast postmortem 3fa9c1 --out report.html",
)
def postmortem(
    run: Run,
    form: Annotated[
        Text,
        typer.Option("--format", help="md or html (default: by the name of --out, else md)", metavar="FORM"),
    ] = None,
    out: Annotated[Text, typer.Option(help="Output file (default: stdout)", metavar="FILE")] = None,
    visits: Annotated[int, typer.Option(help="Number of visits shown in full (0 = no limit)", min=0)] = 300,
    store: Store = None,
    json: Json = False,
) -> int:
    """Write a report of a run's whole history.

    The report has each node in order, what it changed, what failed and how that was handled; as Markdown or
    HTML.
    """
    return run_async(write_postmortem(run, form, out, visits, store=store, json=json))


async def write_postmortem(
    run: str, form: str | None, out: str | None, visits: int, *, store: str | None, json: bool
) -> Exit:
    from holdfast.reports.formats import renderer
    from holdfast.reports.postmortem import build_postmortem

    render = renderer(form or _form_of(out))
    async with open_store_for_command(store, must_exist=True) as hf:
        result = await build_postmortem(await hf.service(), run, chapters=visits)
    text = None if json else render(result)
    if json:
        print_json(_plain(result))
    elif text is not None and out in (None, "-"):
        print_raw(text.rstrip("\n"))
    elif text is not None and out is not None:
        _write(Path(out), text)
        print_note(f"The post-mortem of run {result.run} is in {out}.")
    return Exit.ok


def _form_of(out: str | None) -> str:
    """The format by the file's name."""
    return "html" if Path(out or "").suffix.lower() in (".html", ".htm") else "md"


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file} cannot be written: {error.strerror}.", hint="Name another: --out FILE."
        ) from error


def _plain(result: Postmortem) -> dict[str, Any]:
    names = [name for name in result.__struct_fields__ if name not in ("picture", "names")]
    return iso_times({name: _part(getattr(result, name)) for name in names})


# Waits are left out: questions and attempts have the same in more detail.
_VISIT = (
    "node", "scope", "visit", "run", "started_at", "effect", "state", "outcome", "seq", "ended_at",
    "attempts", "duration", "tokens", "cost", "output", "error", "halts", "handed_to", "readable", "changes",
    "edges", "followed", "trials", "calls", "questions", "emitted", "notes",
)  # fmt: skip


def _part(value: Any) -> Any:
    """Without empty fields: a change without an earlier value has no `before`."""
    from holdfast.checkpoint.visit import Visit

    if isinstance(value, msgspec.Struct):
        names = _VISIT if isinstance(value, Visit) else value.__struct_fields__
        parts = {name: getattr(value, name) for name in names}
        return iso_times({name: _part(part) for name, part in parts.items() if part is not msgspec.UNSET})
    if isinstance(value, (list, tuple)):
        return [_part(part) for part in value]  # type: ignore[misc]
    return value
