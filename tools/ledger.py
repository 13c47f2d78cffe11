"""The ledger: which line of the specification is proven by which test (docs/ledger/README.md).

python tools/ledger.py                        counts, then every open line
python tools/ledger.py list D- G-1            lines whose code starts so
python tools/ledger.py sync                   write status and tests from the covers markers
python tools/ledger.py sync --check           change nothing, fail if sync would change something
python tools/ledger.py claim CODE... TEST...  name tests that cannot carry a marker
"""

from __future__ import annotations

import ast
import fcntl
import fnmatch
import json
import os
import re
import sys
import tomllib
from collections import Counter, defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ROOT = Path(__file__).resolve().parent.parent
TEST_FOLDERS = ("tests", "src/holdfast/testing")  # the conformance kits are tests, too
BLOCK = re.compile(r"^\[([A-Za-z0-9_-]+)\]$", re.MULTILINE)
DEFINITION = re.compile(r'^- <a id="([^"]+)"></a>\*\*\1 ', re.MULTILINE)
# One parametrised test walks all crash points; anywhere else a pattern would claim more than it proves.
MAY_BE_PATTERN = "CRASH-"


class LedgerError(Exception):
    """A mistake in a ledger file, a marker or a command; the text says where."""


@dataclass
class Entry:
    code: str
    text: str
    later: str = ""
    claimed: list[str] = field(default_factory=list[str])
    bench: list[str] = field(default_factory=list[str])
    """Targets of the benchmark (`bench.targets`) that a line is measured by."""
    status: str = "open"
    tests: list[str] = field(default_factory=list[str])
    tail: str = "\n"
    """Blank lines and comments up to the next entry, kept as they are."""

    def prove(self, tests: Iterable[str]) -> None:
        self.tests = sorted({*tests, *self.claimed})
        self.status = "done" if self.tests else self.unproven

    @property
    def unproven(self) -> str:
        if self.bench:
            return "measured"
        if not self.later:
            return "open"
        return "out" if self.later == "out" else f"later:{self.later}"


@dataclass
class LedgerFile:
    path: Path
    head: str
    entries: list[Entry]

    def render(self) -> str:
        return self.head + "".join(map(_render_entry, self.entries))

    def write(self) -> None:
        draft = self.path.with_suffix(f".{os.getpid()}.tmp")
        draft.write_text(self.render(), encoding="utf-8")
        draft.replace(self.path)


# ---- ledger files


def read_files(root: Path = ROOT) -> list[LedgerFile]:
    return [_parse(path) for path in sorted((root / "docs/ledger").glob("*.toml"))]


def entries_by_code(files: Iterable[LedgerFile]) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for file in files:
        for entry in file.entries:
            if entry.code in found:
                raise LedgerError(f"{file.path.name}: {entry.code} is in the ledger twice")
            found[entry.code] = entry
    return found


def _parse(path: Path) -> LedgerFile:
    source = path.read_text(encoding="utf-8")
    try:
        values = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise LedgerError(f"{path.name}: {error}") from error
    head, *pieces = BLOCK.split(source)
    blocks = zip(pieces[::2], pieces[1::2], strict=True)
    return LedgerFile(path, head, [_entry(code, values[code], body) for code, body in blocks])


def _entry(code: str, values: dict[str, object], body: str) -> Entry:
    try:
        return Entry(code, tail=_tail(body), **values)  # type: ignore[arg-type]
    except TypeError as error:
        raise LedgerError(f"{code}: {error}") from error


def _tail(body: str) -> str:
    lines = body.splitlines(keepends=True)
    while lines and (not lines[0].strip() or not _only_layout(lines)):
        lines.pop(0)
    return "".join(["\n", *lines]) if lines else _blank_end(body)


def _only_layout(lines: list[str]) -> bool:
    return all(not line.strip() or line.startswith("#") for line in lines)


def _blank_end(body: str) -> str:
    return "\n" if body.endswith("\n\n") else ""


def _render_entry(entry: Entry) -> str:
    lines = [f"[{entry.code}]", f"text = {_quoted(entry.text)}"]
    if entry.later:
        lines.append(f"later = {_quoted(entry.later)}")
    if entry.claimed:
        lines.append(f"claimed = {_listed(entry.claimed)}")
    if entry.bench:
        lines.append(f"bench = {_listed(entry.bench)}")
    lines += [f"status = {_quoted(entry.status)}", f"tests = {_listed(entry.tests)}"]
    return "\n".join(lines) + "\n" + entry.tail


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _listed(items: list[str]) -> str:
    """One item a line, so that two people's additions seldom meet in a merge."""
    return "[]" if not items else "[\n" + "".join(f"    {_quoted(item)},\n" for item in items) + "]"


@contextmanager
def locked(root: Path = ROOT) -> Iterator[None]:
    """The folder itself is the lock, so that no lock file is left in the tree."""
    handle = os.open(root / "docs/ledger", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


# ---- markers in the tests


@dataclass(frozen=True)
class MarkedTest:
    test: str
    codes: frozenset[str]


def collect_tests(root: Path = ROOT) -> list[MarkedTest]:
    """Every test function of the tree with the codes that it names, read without importing anything."""
    return [marked for path in _test_files(root) for marked in _tests_of(path, root)]


def _test_files(root: Path) -> list[Path]:
    return sorted(path for folder in TEST_FOLDERS for path in (root / folder).rglob("*.py"))


def _tests_of(path: Path, root: Path) -> Iterator[MarkedTest]:
    yield from _tests_in(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())


@cache
def _tests_in(text: str, name: str) -> tuple[MarkedTest, ...]:
    """Parsed once, because the tests of the ledger ask several times."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise LedgerError(f"{name}:{error.lineno}: {error.msg}") from error
    return tuple(_walk(tree.body, name, _covers(_pytestmarks(tree.body), name)))


def _walk(body: list[ast.stmt], prefix: str, inherited: frozenset[str]) -> Iterator[MarkedTest]:
    for item in body:
        if not isinstance(item, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if _has_mark(item.decorator_list, "skip", "xfail"):
            continue  # what does not run proves nothing
        name = f"{prefix}::{item.name}"
        codes = inherited | _covers(item.decorator_list, name)
        if isinstance(item, ast.ClassDef):
            yield from _walk(item.body, name, codes | _covers(_pytestmarks(item.body), name))
        elif item.name.startswith("test"):
            yield MarkedTest(name, codes)


def _pytestmarks(body: list[ast.stmt]) -> list[ast.expr]:
    assigned = (item for item in body if isinstance(item, ast.Assign))
    return [item.value for item in assigned if ast.unparse(item.targets[0]) == "pytestmark"]


def _has_mark(decorators: list[ast.expr], *names: str) -> bool:
    marks = (node.func if isinstance(node, ast.Call) else node for node in decorators)
    return any(isinstance(mark, ast.Attribute) and mark.attr in names for mark in marks)


def _covers(expressions: list[ast.expr], where: str) -> frozenset[str]:
    """Looks inside the expressions as well: a `pytest.param` may carry its own marker."""
    codes: set[str] = set()
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and _has_mark([node], "covers"):
                codes.update(_literal(argument, where) for argument in node.args)
    return frozenset(codes)


def _literal(argument: ast.expr, where: str) -> str:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    raise LedgerError(f"{where}: covers() takes plain strings, not {ast.unparse(argument)}")


def matching(code: str, known: Iterable[str]) -> list[str]:
    """The ledger lines that a marker's code means; none if it is unknown."""
    if code.startswith(MAY_BE_PATTERN) and "*" in code:
        return fnmatch.filter(known, code)
    return [code] if code in known else []


def unknown_codes(tests: Iterable[MarkedTest], known: Mapping[str, Entry]) -> list[str]:
    return sorted(
        f"{marked.test}: {code}" for marked in tests for code in marked.codes if not matching(code, known)
    )


# ---- commands


def synced(root: Path = ROOT) -> tuple[list[LedgerFile], list[str]]:
    """The ledger as the markers want it, and the markers that name no line of it."""
    files, tests = read_files(root), collect_tests(root)
    entries = entries_by_code(files)
    proofs: defaultdict[str, set[str]] = defaultdict(set)
    for marked in tests:
        for code in marked.codes:
            for line in matching(code, entries):
                proofs[line].add(marked.test)
    for entry in entries.values():
        entry.prove(proofs[entry.code])
    return files, unknown_codes(tests, entries)


def stale_files(files: Iterable[LedgerFile]) -> list[LedgerFile]:
    return [file for file in files if file.render() != file.path.read_text(encoding="utf-8")]


def sync(root: Path = ROOT, *, check: bool = False) -> None:
    with locked(root):
        files, unknown = synced(root)
        stale = stale_files(files)
        for file in stale:
            if not check:
                file.write()
    if unknown:
        raise LedgerError("no such line in the ledger:\n  " + "\n  ".join(unknown))
    if check and stale:
        raise LedgerError("the ledger is behind its tests: run python tools/ledger.py sync")


def claim(words: list[str], root: Path = ROOT) -> None:
    tests = [_without_parameters(word) for word in words if "::" in word]
    codes = [word for word in words if "::" not in word]
    if not tests or not codes:
        raise LedgerError("claim takes at least one code and one test (file.py::test_name)")
    missing = set(tests) - {marked.test for marked in collect_tests(root)}
    if missing:
        raise LedgerError(f"no such test: {', '.join(sorted(missing))}")
    with locked(root):
        _claim(codes, tests, root)


def _claim(codes: list[str], tests: list[str], root: Path) -> None:
    files = read_files(root)
    entries = entries_by_code(files)
    unknown = [code for code in codes if code not in entries]
    if unknown:
        raise LedgerError(f"no such line in the ledger: {', '.join(unknown)}")
    for code in codes:
        entry = entries[code]
        entry.claimed = sorted({*entry.claimed, *tests})
        entry.prove(entry.tests)
    for file in stale_files(files):
        file.write()


def _without_parameters(test: str) -> str:
    return test.split("[", 1)[0]


def defined_codes(root: Path = ROOT) -> set[str]:
    """The codes that the reference pages define."""
    pages = (root / "docs/reference").rglob("*.md")
    return {code for page in pages for code in DEFINITION.findall(page.read_text(encoding="utf-8"))}


def report(prefixes: list[str], root: Path = ROOT) -> str:
    entries = [entry for file in read_files(root) for entry in file.entries]
    if prefixes:
        return "\n".join(_line(entry) for entry in entries if entry.code.startswith(tuple(prefixes)))
    unproven = [_line(entry) for entry in entries if entry.status == "open"]
    return "\n".join([*_counts(entries), "", *unproven])


def _line(entry: Entry) -> str:
    return f"{entry.code:<34} {entry.status:<13} {entry.text}"


def _counts(entries: list[Entry]) -> list[str]:
    areas: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        areas[_area(entry.code)][entry.status.split(":")[0]] += 1
    areas["all"] = sum(areas.values(), Counter[str]())
    columns = ("done", "measured", "open", "later", "out")
    rows = [f"{area:<14}" + "".join(f"{areas[area][column]:>9}" for column in columns) for area in areas]
    return [f"{'area':<14}" + "".join(f"{column:>9}" for column in columns), *rows]


def _area(code: str) -> str:
    parts = code.split("-")
    if parts[0] in ("CORE", "RS"):
        return "-".join(parts[:2])
    return parts[0] if "-" in code else "faults"


def main(words: list[str]) -> int:
    command, rest = (words[0], words[1:]) if words else ("list", [])
    try:
        if command == "list":
            print(report(rest))
        elif command == "sync" and set(rest) <= {"--check"}:
            sync(check="--check" in rest)
        elif command == "claim":
            claim(rest)
        else:
            print(__doc__)
            return 2
    except BrokenPipeError:
        # The reader has seen enough (| head); keep the interpreter from complaining while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except LedgerError as error:
        print(f"ledger: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
