"""`holdfast holds`: one module for each kind of action. Importing the package registers all of them."""

from __future__ import annotations

from holdfast.cli.commands.holds import assign, decide, discuss, files, list, shadows, show  # noqa: A004

__all__ = ["assign", "decide", "discuss", "files", "list", "shadows", "show"]
