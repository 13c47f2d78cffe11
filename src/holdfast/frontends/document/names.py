"""Which names the texts of a document may read: input, variables, and what earlier nodes set (CV-22)."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.frontends.document.conditions import Condition, RunConditions, implies
from holdfast.frontends.document.document import FlowDocument, Json
from holdfast.frontends.document.node_type import ERROR, EXPRESSION, DocumentNode, texts_of
from holdfast.frontends.document.problem import Path, ProblemReport
from holdfast.frontends.document.topology import UNREADABLE
from holdfast.model.expressions import PARTITIONS, ExprSyntaxError, compile_expr, required_names
from holdfast.model.template import Placeholder, TemplateSyntaxError, compile_template

_EDGE_NAMES = frozenset({"outcome", "output"})


class ReadText(msgspec.Struct, frozen=True, kw_only=True):
    """An expression or template that could be read. `names`: the first parts of what it reads; `needed`:
    those without which it cannot be evaluated. `node`: where it is evaluated."""

    path: Path
    node: str
    edge: str | None
    names: frozenset[str]
    needed: frozenset[str]
    inputs: frozenset[str] = frozenset()
    text: str = ""

    def offset(self, name: str) -> int:
        """Where the name stands in the text, from 1."""
        found = re.search(rf"(?<![\w.'\"]){re.escape(name)}\b", self.text)
        return found.start() + 1 if found else 0


def read_texts(nodes: Mapping[str, DocumentNode], report: ProblemReport) -> list[ReadText]:
    """Every text of the document; a syntax error is reported at its column."""
    return [text for node in nodes.values() for text in (*_of_config(node, report), *_of_edges(node, report))]


def _of_config(node: DocumentNode, report: ProblemReport) -> Iterator[ReadText]:
    for text in texts_of(node.config):
        if node.is_broken(text.path):
            continue
        path = node.at(*text.path)
        about = {"node": node.id}
        read = _expression if text.language == EXPRESSION else _template
        found = read(text.text, path, about, report)
        if found is not None:
            yield msgspec.structs.replace(found, node=node.id)


def _of_edges(node: DocumentNode, report: ProblemReport) -> Iterator[ReadText]:
    for edge in node.leaving:
        if edge.edge.when is not None:
            found = _expression(edge.edge.when, (*edge.path, "when"), {"edge": edge.id}, report)
            if found is not None:
                yield msgspec.structs.replace(found, node=node.id, edge=edge.id)


def _expression(text: str, path: Path, about: Json, report: ProblemReport) -> ReadText | None:
    try:
        found = compile_expr(text)
    except ExprSyntaxError as error:
        fix = error.hint or "docs/reference/expressions.md has the grammar"
        report.error(path, "expression", str(error.message), fix, offset=error.column, **about)
        return None
    needed = required_names(found.node)
    return _read(text, path, found.names, needed)


def _template(text: str, path: Path, about: Json, report: ProblemReport) -> ReadText | None:
    try:
        found = compile_template(text)
    except TemplateSyntaxError as error:
        fix = error.hint or "write {{name}}, or {{name | filter}}"
        report.error(path, "template", str(error.message), fix, offset=error.column, **about)
        return None
    needed = {part.path for part in found.parts if isinstance(part, Placeholder) and not part.may_miss}
    return _read(text, path, found.names, needed)


def _read(
    text: str, path: Path, names: Iterable[tuple[str, ...]], needed: Iterable[tuple[str, ...]]
) -> ReadText:
    return ReadText(
        path=path,
        node="",
        edge=None,
        text=text,
        names=frozenset(root for each in names if (root := _root(each))),
        needed=frozenset(root for each in needed if (root := _root(each))),
        inputs=frozenset(each[1] for each in names if each[0] == "input" and len(each) > 1),
    )


def _root(path: Sequence[str]) -> str:
    """The variable that a path begins with; empty for one of another partition."""
    parts = list(path[1:] if path[0] == "state" and len(path) > 1 else path)
    if parts[0] == "scratch" and len(parts) > 1:
        return parts[1]
    return "" if parts[0] in PARTITIONS and len(parts) > 1 else parts[0]


def input_names(document: FlowDocument) -> dict[str, bool]:
    """The declared names of the input, and whether each is always there."""
    schema: Any = document.fields.input or {}
    declared: Any = schema.get("properties")
    if not isinstance(declared, dict):
        return {}
    required: Any = schema.get("required")
    needed = set(cast("list[Any]", required)) if isinstance(required, list) else set[Any]()
    return {name: name in needed for name in cast("Json", declared)}


def check_names(
    document: FlowDocument,
    nodes: Mapping[str, DocumentNode],
    texts: Iterable[ReadText],
    report: ProblemReport,
) -> None:
    given = {**input_names(document), **dict.fromkeys(document.variables, True)}
    unsure = {name: _may_set(node) for name, node in nodes.items()}
    writers = {name: (*node.writes, *unsure[name]) for name, node in nodes.items()}
    everything = {*given, *(each for names in writers.values() for each in names)}
    sets = _NameSets(sorted(everything))
    before = _set_before(nodes, writers, sets)
    paths = _SomePaths(nodes, writers)
    for text in texts:
        around = [text.node, *_parents(text.node, nodes)]
        free = {
            *given,
            "run",
            *(name for each in around for name in nodes[each].type.scope_names(nodes[each])),
            *(name for each in around for name in unsure[each]),
        }
        if text.edge is not None:
            free.update(writers[text.node], _EDGE_NAMES)
        for name in sorted(text.names - free):
            if not sets.bits.get(name, 0) & before[text.node]:
                _unknown(name, text, everything, report)
            elif name in text.needed and paths.may_miss(name, text.node):
                _maybe(name, text, report)


def check_unreached_names(
    document: FlowDocument,
    nodes: Iterable[DocumentNode],
    texts: Iterable[ReadText],
    report: ProblemReport,
) -> None:
    """Of nodes that no way leads to: what nothing in the document sets. What would be set before them depends
    on the ways that are missing."""
    known = {"run", *input_names(document), *document.variables, *_EDGE_NAMES}
    for node in nodes:
        known.update(node.writes, _may_set(node), node.type.scope_names(node))
    for text in texts:
        for name in sorted(text.names - known):
            _unknown(name, text, known - {"run"}, report)


_SET_BY_DEFAULT: Final = ("decision", "decision_result", "item")


def _may_set(node: DocumentNode) -> tuple[str, ...]:
    """Of a node that could not be read as a whole: the names that stand anywhere in what could not be read.
    It may be what sets one of them; any other name is not known, whatever its config was to say."""
    if not node.broken and node.type is not UNREADABLE:
        return ()
    found = list[str](_SET_BY_DEFAULT)
    if node.bind:
        found += [node.bind, f"{node.bind}_response"]
    todo: list[Any] = [node.given] if node.type is UNREADABLE else [_at(node.given, p) for p in node.broken]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            found += cast("Json", value)
            todo += cast("Json", value).values()
        elif isinstance(value, list):
            todo += cast("list[Any]", value)
        elif isinstance(value, str):
            found.append(value)
    return tuple(each for each in dict.fromkeys(found) if len(each) < 100 and each.isidentifier())


def _at(value: Any, path: Path) -> Any:
    """None: nothing is there."""
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


class _SomePaths:
    """Whether a node can run without a name having been set."""

    def __init__(self, nodes: Mapping[str, DocumentNode], writers: Mapping[str, tuple[str, ...]]) -> None:
        self._setters: dict[str, list[str]] = {}
        for node, names in writers.items():
            for name in names:
                self._setters.setdefault(name, []).append(node)
        self._conditions = RunConditions(nodes)
        self._errors = {node.error_name: name for name, node in nodes.items() if node.error_name}

    def may_miss(self, name: str, node: str) -> bool:
        here = self._conditions.of(node)
        others = [self._after(each, name) for each in self._setters.get(name, ()) if each != node]
        setters = self._conditions.any_of(others)
        return here is not None and setters is not None and not implies(here, setters)

    def _after(self, node: str, name: str) -> Condition | None:
        """That the node has set the name."""
        if self._errors.get(name) == node:
            return self._conditions.of_failure(node)
        return self._conditions.of_success(node)


def _maybe(name: str, text: ReadText, report: ProblemReport) -> None:
    about: Json = {"edge": text.edge} if text.edge else {"node": text.node}
    message = f"reads {name!r}, which is set on some paths only"
    fix = f"write {name} | default(...), or declare a variable with a default"
    report.warn(text.path, "variable-maybe", message, fix, offset=text.offset(name), **about)


def _unknown(name: str, text: ReadText, everything: set[str], report: ProblemReport) -> None:
    about: Json = {"edge": text.edge} if text.edge else {"node": text.node}
    if name == "secret":
        message = "secrets cannot be read in texts"
        fix = "write {secret: NAME} as a header or query value"
        report.error(text.path, "secret-literal", message, fix, offset=text.offset(name), **about)
        return
    later = name in everything
    message = (
        f"reads {name!r}, which is set only by a later node"
        if later
        else f"reads {name!r}, which nothing sets"
    )
    if not later and (name == ERROR or name.endswith(f"_{ERROR}")):
        message += f"; the error of a node is in NODE_{ERROR}, if its port {ERROR!r} leads on"
    fix = (
        report.near(name, everything - {name})
        or f"declare it under variables or input, or write input.{name}"
    )
    report.error(text.path, "variable-unknown", message, fix, offset=text.offset(name), **about)


def _parents(name: str, nodes: Mapping[str, DocumentNode]) -> list[str]:
    found: list[str] = []
    parent = nodes[name].node.parent
    while parent is not None and parent in nodes and parent not in found:
        found.append(parent)
        parent = nodes[parent].node.parent
    return found


class _NameSets:
    """Sets of names as numbers: one bit for each, so that thousands of nodes cost little."""

    def __init__(self, names: Iterable[str]) -> None:
        self.bits = {name: 1 << at for at, name in enumerate(dict.fromkeys(names))}

    def of(self, names: Iterable[str]) -> int:
        found = 0
        for name in names:
            found |= self.bits[name]
        return found


def _set_before(
    nodes: Mapping[str, DocumentNode], writers: Mapping[str, tuple[str, ...]], sets: _NameSets
) -> dict[str, int]:
    """For each node, the names that nodes set which can run before it; in a cycle, those of all its nodes."""
    after: dict[str, list[str]] = {
        name: [edge.target for edge in node.leaving if edge.target in nodes] for name, node in nodes.items()
    }
    for name, node in nodes.items():
        parent = node.node.parent
        if parent is not None and parent in nodes:
            # What is inside of a node runs after what is before it; what a loop sets stays set.
            after[parent].append(name)
            if nodes[parent].node.type == "loop":
                after[name].append(parent)
    own = {name: sets.of(names) for name, names in writers.items()}
    found = dict.fromkeys(nodes, 0)
    todo = deque(nodes)
    while todo:
        name = todo.popleft()
        given = found[name] | own[name]
        for target in after[name]:
            if given & ~found[target]:
                found[target] |= given
                todo.append(target)
    return found
