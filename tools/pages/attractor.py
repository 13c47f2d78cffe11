"""docs/reference/attractor.md: each line of the pipelines' checklist, how it is read, and what proves it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tools import ledger

FILE = "attractor.toml"
CHECKLIST = ledger.ROOT / "docs" / "reference" / "behaviours" / "attractor.md"
PARTS = re.compile(r"^## (.+)$|^- <a id=\"(AT-[^\"]+)\"></a>", re.MULTILINE)

TOP = """# Attractor: lines, readings, tests

<!-- Made by tools/docs.py of docs/ledger/attractor.toml. -->

Holdfast runs the pipelines of the [Attractor specification](https://github.com/strongdm/attractor). This page
is the proof: each line of the [checklist](behaviours/attractor.md), the reading that it is taken by where the
specification contradicts itself or is silent, and the tests that fail without it.
[How a pipeline runs](../explanation/attractor.md) tells what stands behind it and what is different here.

{counts}
"""

# Which readings say how a line is taken.
READ_BY: dict[str, tuple[int, ...]] = {
    "A1": (81, 174),
    "A2": (68, 71, 74),
    "A3": (94, 98, 104),
    "A4": (42,),
    "A5": (41,),
    "A6": (138, 253),
    "A7": (158, 161),
    "A8": (162, 185),
    "A9": (158,),
    "A10": (112, 114, 117),
    "A11": (99, 112, 247),
    "A12": (100, 151),
    "A13": (246, 247),
    "A14": (129,),
    "A15": (129, 179),
    "A16": (81, 113),
    "A17": (80, 81),
    "A18": (130, 133),
    "A19": (83, 84, 90, 92),
    "A20": (78, 85, 89),
    "A21": (186, 192, 193),
    "A22": (189, 198),
    "A23": (132, 187),
    "A24": (66, 69),
    "A25": (195,),
    "A26": (26, 206),
    "A27": (18, 20),
    "A28": (16, 35),
    "A29": (15, 35),
    "A30": (220,),
    "A31": (128,),
    "A32": (202,),
}


def page() -> str:
    entries = {entry.code: entry for entry in _file().entries}
    listed = [code for _, codes in sections() for code in codes]
    claims = [entry for entry in entries.values() if entry.code.startswith("ATTRACTOR-")]
    lines = [entries[code] for code in listed]
    parts = [TOP.format(counts=_counts(lines, claims))]
    parts += [_section(title, [entries[code] for code in codes]) for title, codes in sections()]
    parts.append(_section("Promises of the whole", claims))
    return "\n".join(parts)


def sections() -> list[tuple[str, list[str]]]:
    """The checklist's parts with the codes of their lines, in its order."""
    found: list[tuple[str, list[str]]] = []
    for title, code in PARTS.findall(CHECKLIST.read_text("utf-8")):
        if title:
            found.append((title, []))
        else:
            found[-1][1].append(code)
    return found


def readings_of(code: str) -> list[str]:
    return [name for name, lines in READ_BY.items() if code in {f"AT-{line}" for line in lines}]


def _file() -> ledger.LedgerFile:
    return next(file for file in ledger.read_files() if file.path.name == FILE)


def _counts(lines: list[ledger.Entry], claims: list[ledger.Entry]) -> str:
    measured = sum(entry.status == "measured" for entry in (*lines, *claims))
    return (
        f"{_proven(lines)} lines and readings, {_proven(claims)} promises of the whole are proven by tests; "
        f"{measured} more are measured by `make bench`, which says whether their targets are met."
    )


def _proven(entries: Iterable[ledger.Entry]) -> str:
    found = list(entries)
    return f"{sum(entry.status == 'done' for entry in found)} of {len(found)}"


def _section(title: str, entries: list[ledger.Entry]) -> str:
    return f"## {title}\n\n| line | what must hold | reading | proven by |\n|---|---|---|---|\n" + "".join(
        map(_row, entries)
    )


def _row(entry: ledger.Entry) -> str:
    cells = (_code(entry.code), _cell(entry.text), _readings(entry.code), _proof(entry))
    return f"| {' | '.join(cells)} |\n"


def _code(code: str) -> str:
    return f"[{code}](behaviours/attractor.md#{code})" if code.startswith("AT-") else code


def _readings(code: str) -> str:
    """The readings of a line; of a reading, its lines."""
    own = READ_BY.get(code.removeprefix("AT-"))
    names = readings_of(code) if own is None else [str(line) for line in own]
    return ", ".join(f"[{name}](behaviours/attractor.md#AT-{name})" for name in names)


def _proof(entry: ledger.Entry) -> str:
    """Tests by file; the benchmark's targets where only it can judge."""
    if entry.tests:
        return "<br>".join(f"`{_short(test)}`" for test in entry.tests)
    if entry.bench:
        return "`make bench`: " + ", ".join(f"`{target}`" for target in entry.bench)
    return "open"


def _short(test: str) -> str:
    return test.removeprefix("tests/").replace(".py::", "::")


def _cell(text: str) -> str:
    """A table's cell: no bar ends it, and what looks like HTML is shown."""
    return text.replace("|", "\\|").replace("<", "&lt;")
