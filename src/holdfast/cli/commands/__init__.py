"""The commands, a module a theme; the order here is the order of `--help`.

Each command imports what it does when it is called: `--help` stays quick.
"""

from __future__ import annotations

from importlib import import_module

from holdfast.cli.app import app

THEMES = (
    "new",
    "run",
    "serve",
    "mcp",
    "tokens",
    "top",
    "inbox",
    "holds",
    "hold_actions",
    "show",
    "history",
    "torture",
    "prune",
    "promote",
    "breakpoints",
    "flows",
    "limits",
    "calendars",
    "policies",
    "skills",
    "deployments",
    "schedules",
    "dead",
    "directory",
    "evidence",
    "notify",
    "audit",
    "migrate",
    "doctor",
)

for theme in THEMES:
    import_module(f"{__name__}.{theme}")

__all__ = ["THEMES", "app"]
