"""Commands that pages and messages name can be typed: the command exists, and so do its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from holdfast.cli.app import command_line

ROOT = Path(__file__).parent.parent.parent
# A line of a shell, or words in backticks or quotes; up to a pipe, a comment or a separator of examples.
COMMAND = re.compile(r"(?:`|^\$ |['\"])(?:[A-Z_]+=\S+ )*holdfast ([a-z][^`\n|#&>·]*)", re.MULTILINE)
OPTION = re.compile(r"(--[a-z][a-z-]*)(?:=.*)?$")


def places() -> Iterator[tuple[str, str]]:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for path in [*pages, *(ROOT / "src").rglob("*.py")]:
        name = str(path.relative_to(ROOT))
        if not name.startswith(("docs/adr/", "docs/ledger/")):
            yield name, path.read_text()


def problem(words: list[str]) -> str | None:
    command: Any = command_line()
    known = _options(command)
    while words and hasattr(command, "commands") and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        if words[0] not in command.commands:
            return f"no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    named = [match[1] for word in words if (match := OPTION.match(word.rstrip(".,;:)")))]
    missing = [option for option in named if option not in known | _options(command)]
    return f"no option {', '.join(missing)}" if missing else None


def _options(command: click.Command) -> set[str]:
    return {"--help", *(name for each in command.params for name in (*each.opts, *each.secondary_opts))}


def test_every_command_and_option_that_a_page_or_message_names_exists() -> None:
    wrong, seen = list[str](), 0
    for name, text in places():
        for match in COMMAND.finditer(text):
            # Within the quotes of a shell are arguments, and commands of others.
            words = re.sub(r"\"[^\"]*\"|'[^']*'", "X", match[1]).split()
            # Python spells texts that are no commands too: "holdfast has ...".
            page = name.endswith(".md") or (words and words[0] in command_line().commands)  # type: ignore[attr-defined]
            if words and page and (found := problem(words)):
                line = text.count("\n", 0, match.start()) + 1
                wrong.append(f"{name}:{line}: {found}: holdfast {match[1][:60]}")
            seen += 1
    assert seen > 1_000
    assert wrong == []


def test_no_line_of_a_list_of_commands_is_cut() -> None:
    cut = []
    top: Any = command_line()
    for name, command in top.commands.items():
        listed = getattr(command, "commands", {})
        width = 80 - 6 - max(map(len, listed), default=0)
        cut += [
            f"{name} {each}: {line}"
            for each, inner in listed.items()
            if (line := inner.get_short_help_str(width)).endswith("...")
        ]
    assert cut == []
