"""docs/reference/commands.md: every command of `holdfast` with its options and examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

TOP = """# Commands

<!-- Made by tools/docs.py of the command line itself. -->

What `holdfast COMMAND --help` says. How they work together, exit codes and the environment are told in
[the command line](cli.md).

"""


def page() -> str:
    import typer

    from holdfast.cli.app import app

    root = typer.main.get_command(app)
    return TOP + "\n".join(_section("holdfast", name, found) for name, found in commands(root))


def commands(root: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Whatever does something by itself, with its whole name, in the order of `--help`."""
    for name, found in root.commands.items():
        if found.hidden:
            continue
        if hasattr(found, "commands"):
            if found.invoke_without_command:
                yield f"{before}{name}", found
            yield from commands(found, f"{before}{name} ")
        else:
            yield f"{before}{name}", found


def _section(program: str, name: str, found: Any) -> str:
    words = " ".join(_usage(found))
    lines = [f"## {name}\n", f"```text\n{program} {name} {words}".rstrip() + "\n```\n", _text(found.help), ""]
    rows = list(_rows(found))
    if rows:
        lines += ["| | |", "|---|---|", *rows, ""]
    lines += [f"- `{example}`" for example in examples(found)]
    return "\n".join(lines) + "\n"


def _usage(found: Any) -> Iterator[str]:
    if any(one.param_type_name == "option" for one in found.params):
        yield "[OPTIONS]"
    for one in found.params:
        if one.param_type_name == "argument":
            text = (one.metavar or one.name or "").upper().strip("{}[]")
            yield text if one.required else f"[{text}]"


def _rows(found: Any) -> Iterator[str]:
    for one in found.params:
        if getattr(one, "hidden", False) or one.name == "help":
            continue
        argument = one.param_type_name == "argument"
        names = (one.metavar or one.name or "").upper().strip("{}[]") if argument else ", ".join(one.opts)
        takes = "" if argument or getattr(one, "is_flag", False) else f" {_metavar(one)}"
        yield f"| `{names}{takes}` | {_text(getattr(one, 'help', '') or '')} |"


def _metavar(one: Any) -> str:
    return (one.metavar or one.name or "VALUE").upper()


def examples(found: Any) -> list[str]:
    """What the epilog shows: one command line each."""
    said = re.sub(r"^Examples?:", "", (found.epilog or "").strip())
    return [" ".join(part.split()) for part in said.split("·") if part.strip()]


def _text(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")
