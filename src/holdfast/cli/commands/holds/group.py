"""The group `holdfast holds` and the options that its commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.app import Text, app

group = typer.Typer(
    no_args_is_help=True,
    help="List, show, decide and reassign holds.\n\nA hold is a question to a person at which a run waits.",
    epilog="Examples:  holdfast holds list 'priority>=high due<2d'   ·   holdfast holds show 3fa9c1d2   ·   "
    "holdfast holds resolve 3fa9c1d2 approve --as user:dana@acme",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="holds")
Hold = Annotated[
    str, typer.Argument(help="Hold id or a prefix of it, or a run with exactly one hold", metavar="HOLD")
]
As = Annotated[
    Text,
    typer.Option(
        "--as",
        help="Act as this person; with a directory only with that person's rights",
        metavar="WHO",
    ),
]
Whose = Annotated[str, typer.Option("--tenant", help="Tenant")]
Data = Annotated[Text, typer.Option(help="Form data: JSON, @file or -", metavar="JSON")]
Comment = Annotated[Text, typer.Option("--comment", "-m", help="Comment")]
