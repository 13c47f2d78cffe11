"""Names: python tools/names.py [modules | classes | knots | docs | comments | words | errors]

modules   module names are nouns or the verb of their one entry point: no gerunds, no `a__b`
classes   a public class name means one thing in src (the generated client apart)
knots     no large group of modules that all have to know each other; imports for type hints count
docs      the documentation names only modules and files that exist
comments  so do docstrings and comments in src, in backticks
words     no metaphors as names, no "whoever" as a subject, no variable or function named `told`
errors    messages of errors begin with a small letter: they stand behind "holdfast: " and inside of others

Without an argument: all of them. Changes nothing; each finding says where it is and what to do.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "holdfast"
GENERATED = "holdfast.client"

# ---- modules

GERUND = re.compile(r"(?:^|_)[a-z]{2,}ing$")
GERUNDS_THAT_ARE_NOUNS = frozenset(
    {"encoding", "finding", "mapping", "ordering", "ring", "routing", "setting", "string", "wiring"}
)
PACKAGES_THAT_ARE_NOUNS = frozenset({"coding", "drawing", "testing", "timing"})

# ---- knots

LARGEST_KNOT = 11

# ---- words

METAPHORS = (
    "house",
    "desk",
    "office",
    "porter",
    "clerk",
    "witness",
    "vault",
    "parcel",
    "shelf",
    "scribe",
    "attendant",
    "theatre",
)
# DOT's own shape, other products, and the files of an office suite.
ORDINARY = re.compile(
    r"shape=\"?house|\"house\"|'house'|inv(?:ert)?house|HashiCorp Vault|_OFFICE|officedocument"
)
# Words that are gone as names of variables and functions; in sentences they are ordinary verbs.
NAMES_ONLY = ("told", "hands")

# ---- errors

# Names (NATS, HOLDFAST_LOG, PostgreSQL) keep their capitals.
CAPITAL = re.compile(r"(?:A|[A-Z][a-z]+)(?![-\w])")

# ---- docs

# History: what was true when it was written stays as it is.
HISTORY = ("docs/adr/", "docs/ledger/", "CHANGELOG.md")
DOTTED = re.compile(r"(?<![\w./@:-])holdfast((?:\.[A-Za-z_]\w*)+)")
PATH = re.compile(r"(?<![\w./-])((?:src|tests|tools|docs|examples|bench|deploy|requirements)/[\w./-]*\w)")
# As CONTRIBUTING writes it: `runs/driver`, `engine/step.py`.
SHORT_PATH = re.compile(r"`(([a-z_]+)/[\w/-]*\w(?:\.py)?)/?`")
# In docstrings and comments, as `store.protocols`. Settings and groups of the client look alike.
QUOTED = re.compile(r"`((?!config\.|client\.)[a-z_]+(?:\.[A-Za-z_]\w*)+)`")
# A file beside modules: `holdfast.db`, `holdfast.d.ts`.
FILE_ENDINGS = frozenset(
    {"db", "js", "json", "lock", "log", "md", "py", "service", "toml", "ts", "yaml", "yml"}
)
# PostgreSQL's schema may be called holdfast.
TABLES = frozenset({"checkpoints", "runs", "threads"})


@dataclass(frozen=True)
class Finding:
    place: str
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}. {self.fix}"


class Source:
    """The modules below `src/holdfast`, parsed once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.folder = root / "src" / PACKAGE

    @cached_property
    def modules(self) -> dict[str, Path]:
        return {self._name(path): path for path in sorted(self.folder.rglob("*.py"))}

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.folder).with_suffix("").parts
        return ".".join((PACKAGE, *(part for part in parts if part != "__init__")))

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        # A million nodes that all stay: the collector would walk through them again and again.
        gc.disable()
        try:
            return {name: ast.parse(path.read_text()) for name, path in self.modules.items()}
        finally:
            gc.enable()

    @cached_property
    def _texts(self) -> str:
        return "\n".join(path.read_text() for path in self.modules.values())

    def says(self, text: str, marks: str = "\"'`") -> bool:
        """As a text of its own, between these marks: the name of a span, a metric or an attribute."""
        return re.search(rf"""[{marks}]{re.escape(text)}[{marks}.{{]""", self._texts) is not None

    def place(self, module: str, line: int = 1) -> str:
        return f"{self.modules[module].relative_to(self.root)}:{line}"

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """By module, the own modules that it imports anywhere: at the top, in functions, for type hints."""
        return {name: set(self._imported(name, tree)) - {name} for name, tree in self.trees.items()}

    def _imported(self, name: str, tree: ast.Module) -> Iterator[str]:
        for node in statements(tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.modules)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    found = whole if whole in self.modules else node.module
                    # The facade's table of public names is no knowledge of the modules that import it.
                    if found in self.modules and found != PACKAGE:
                        yield found


def statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Also those inside of others. Expressions, which are most of a tree, have none."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, field, ())
        if isinstance(node, ast.stmt):
            yield node


def bad_modules(source: Source) -> Iterator[Finding]:
    for name in source.modules:
        last = name.rpartition(".")[2]
        if last == "__main__":
            continue
        if "__" in last:
            yield Finding(source.place(name), f"{last} joins two names", "Merge it, or give it one noun.")
            continue
        is_module = source.modules[name].stem == last
        allowed = GERUNDS_THAT_ARE_NOUNS if is_module else PACKAGES_THAT_ARE_NOUNS
        if GERUND.search(last) and last not in allowed:
            yield Finding(
                source.place(name),
                f"the {'module' if is_module else 'package'} name {last} is a gerund",
                "Use a noun, or the verb of its one entry point.",
            )


def doubled_classes(source: Source) -> Iterator[Finding]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, tree in source.trees.items():
        if name == GENERATED or name.startswith(f"{GENERATED}."):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(source.place(name, node.lineno))
    for name, found in sorted(places.items()):
        if len(found) > 1:
            others = ", ".join(found[1:])
            yield Finding(
                found[0], f"class {name} is defined also in {others}", "Say in each name what it is."
            )


def large_knots(source: Source, largest: int = LARGEST_KNOT) -> Iterator[Finding]:
    for knot in components(source.imports):
        if len(knot) > largest:
            yield Finding(
                source.place(knot[0]),
                f"{len(knot)} modules import each other in circles (at most {largest}): {', '.join(knot)}",
                "Give what they share a module of its own, or pass it in.",
            )


def components(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups in which every module reaches every other (Tarjan's algorithm, without recursion)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []
    for start in edges:
        work = [] if start in order else [(start, iter(sorted(edges[start])))]
        while work:
            node, rest = work[-1]
            if node not in order:
                order[node] = low[node] = len(order)
                stack.append(node)
            following = next((each for each in rest if each in edges), None)
            if following is None:
                work.pop()
                if low[node] == order[node]:
                    at = stack.index(node)
                    groups.append(sorted(stack[at:]))
                    for member in stack[at:]:
                        low[member] = len(edges) + 1  # left the stack: it lowers no other
                    del stack[at:]
                if work:
                    above = work[-1][0]
                    low[above] = min(low[above], low[node])
            elif following not in order:
                work.append((following, iter(sorted(edges[following]))))
            elif low[following] <= len(edges):
                low[node] = min(low[node], order[following])
    return sorted((group for group in groups if len(group) > 1), key=len, reverse=True)


def pages(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """(path, text) of the documentation that speaks of today."""
    for path in sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md"), *root.glob("examples/*.md")]):
        name = str(path.relative_to(root))
        if not name.startswith(HISTORY):
            yield name, path.read_text()


def unknown_in_docs(source: Source, given: Iterable[tuple[str, str]] | None = None) -> Iterator[Finding]:
    packages = {name.split(".")[1] for name in source.modules if "." in name}
    for page, text in pages(source.root) if given is None else given:
        for number, line in enumerate(text.splitlines(), 1):
            for match in DOTTED.finditer(line):
                if not _exists(source, match[1].split(".")[1:], packages) and not source.says(match[0]):
                    yield Finding(
                        f"{page}:{number}", f"there is no {match[0]}", "Write the name that it has now."
                    )
            paths = [path for path in PATH.findall(line) if not _is_path(source.root, path)]
            for path in (*paths, *_unknown_below(source, line, packages)):
                yield Finding(f"{page}:{number}", f"there is no {path}", "Write the path that it has now.")


def _unknown_below(source: Source, line: str, packages: set[str]) -> Iterator[str]:
    for path, package in SHORT_PATH.findall(line):
        known = (source.folder / path).exists() or (source.folder / f"{path}.py").exists()
        if package in packages and not known and not _is_path(source.root, path):
            yield path


def unknown_in_source(source: Source) -> Iterator[Finding]:
    packages = {name.split(".")[1] for name in source.modules if "." in name}
    for name, path in source.modules.items():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in QUOTED.finditer(line):
                parts = match[1].split(".")
                named = parts[0] in packages and parts[-1] not in FILE_ENDINGS
                if named and not _exists(source, parts, packages) and not source.says(match[1], "\"'"):
                    yield Finding(
                        source.place(name, number),
                        f"there is no {match[1]}",
                        "Write the name that it has now.",
                    )
            for path in _unknown_below(source, line, packages):
                yield Finding(
                    source.place(name, number), f"there is no {path}", "Write the path that it has now."
                )


def _exists(source: Source, parts: list[str], packages: set[str]) -> bool:
    if parts[0] not in packages:
        ordinary = parts[-1] in FILE_ENDINGS or parts[0] in TABLES or parts[0].startswith("__")
        return ordinary or parts[0] in _names(source.trees[PACKAGE])
    module = PACKAGE
    for part in parts:
        below = f"{module}.{part}"
        if below not in source.modules:
            return part in _names(source.trees[module])
        module = below
    return True


def _names(tree: ast.Module) -> set[str]:
    """What a module defines or imports at its top level, also for type hints."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def _is_path(root: Path, name: str) -> bool:
    """Upper case stands for any name; a page about tests may leave `tests/` out."""
    if re.search(r"/[A-Z]+\b", name):
        return True
    return any(
        (root / above / f"{name}{ending}").exists() for above in ("", "tests") for ending in ("", ".py")
    )


def word_places(text: str, word: str) -> list[int]:
    """Lines in which it is a word or part of a name: `house`, `open_house`, `OpenHouse`; not `warehouse`."""
    if word not in text.lower():
        return []
    ending = "(?:s|es|'s)?(?![a-z])"
    pattern = re.compile(rf"(?:(?<![A-Za-z]){word}|{word.capitalize()}|(?<![A-Z]){word.upper()}){ending}")
    return [
        number for number, line in enumerate(text.splitlines(), 1) if pattern.search(ORDINARY.sub("", line))
    ]


def name_places(text: str, word: str) -> list[int]:
    """Lines with an identifier that has the word: `told`, `_told`, `told_late`; not texts and comments."""
    if word not in text:
        return []
    pattern = re.compile(rf"(?:^|_){word}(?:_|$)")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sorted({t.start[0] for t in tokens if t.type == tokenize.NAME and pattern.search(t.string)})


def bad_words(source: Source) -> Iterator[Finding]:
    texts = {str(path.relative_to(source.root)): path.read_text() for path in source.modules.values()}
    for word in METAPHORS:
        yield from _words(texts, word, "Use the noun of the field (CONTRIBUTING.md, Names).")
    subject = "Name the subject: the caller, the worker, the assignee."
    yield from _words({**texts, **dict(pages(source.root))}, "whoever", subject)
    for word in NAMES_ONLY:
        yield from _words(texts, word, "Name it by what it is.", find=name_places)


def _words(
    texts: Mapping[str, str], word: str, fix: str, find: Callable[[str, str], list[int]] = word_places
) -> Iterator[Finding]:
    for name, text in texts.items():
        yield from (Finding(f"{name}:{line}", f'the word "{word}"', fix) for line in find(text, word))


def bad_messages(source: Source) -> Iterator[Finding]:
    for name, tree in source.trees.items():
        for node in statements(tree):
            value = node.exc if isinstance(node, ast.Raise) else getattr(node, "value", None)
            if isinstance(value, ast.Call) and _is_error(value.func) and CAPITAL.match(_message(value)):
                problem = "the message of an error begins with a capital"
                yield Finding(source.place(name, node.lineno), problem, "Begin it with a small letter.")


def _is_error(called: ast.expr) -> bool:
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name.endswith("Error")


def _message(error: ast.Call) -> str:
    """Up to its first value."""
    # Of an HttpError the status is first.
    texts = [each for each in error.args[:2] if isinstance(each, (ast.JoinedStr, ast.Constant))]
    text = next((each for each in texts if not isinstance(getattr(each, "value", None), int)), None)
    first = text.values[0] if isinstance(text, ast.JoinedStr) and text.values else text
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


CHECKS: dict[str, Callable[[Source], Iterator[Finding]]] = {
    "modules": bad_modules,
    "classes": doubled_classes,
    "knots": large_knots,
    "docs": unknown_in_docs,
    "comments": unknown_in_source,
    "words": bad_words,
    "errors": bad_messages,
}


def main(wanted: list[str]) -> int:
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        print(f"no check named {', '.join(unknown)}; there are {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    source = Source()
    found = {name: list(CHECKS[name](source)) for name in wanted or CHECKS}
    for findings in found.values():
        for finding in findings:
            print(finding)
    counts = Counter({name: len(findings) for name, findings in found.items() if findings})
    if counts:
        print(f"\n{sum(counts.values())} findings: {', '.join(f'{name} {n}' for name, n in counts.items())}")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
