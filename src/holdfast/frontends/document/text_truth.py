"""Conditions that ask whether a text is true: every text but the empty one is, also 'no' and 'reject'."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

from holdfast.frontends.document.document import FlowDocument, Json
from holdfast.frontends.document.names import ReadText
from holdfast.frontends.document.node_type import DocumentNode
from holdfast.frontends.document.node_types.holds import TIMEOUT, DecisionConfig, action_of, option_ids
from holdfast.frontends.document.problem import ProblemReport
from holdfast.model.checks.names import RESULT
from holdfast.model.expressions import PARTITIONS, Path, compile_expr
from holdfast.model.expressions.nodes import AllOf, AnyOf, Choose, Default, Name, Node, Not
from holdfast.model.hold_declaration import BRANCH
from holdfast.model.template import Placeholder, TemplateSyntaxError, compile_template

_ASKING: Final = frozenset({"condition", "router", "loop"})
_FIELDS: Final = frozenset({"when", "while"})
_TEXT: Final = "string"


def check_text_truth(
    document: FlowDocument,
    nodes: Mapping[str, DocumentNode],
    texts: Iterable[ReadText],
    report: ProblemReport,
) -> None:
    known = _Texts(document, nodes)
    for text in texts:
        if text.edge is None and not _asks(nodes[text.node], text):
            continue
        for path in _truths(compile_expr(text.text).node):
            _check(path, text, known, report)


def _asks(node: DocumentNode, text: ReadText) -> bool:
    return node.type.name in _ASKING and text.path[-1] in _FIELDS


def _truths(node: Node) -> Iterator[Path]:
    """The names whose own truth decides."""
    if isinstance(node, (Name, Default)):
        yield node.path
    elif isinstance(node, Not):
        yield from _truths(node.operand)
    elif isinstance(node, (AllOf, AnyOf)):
        for each in node.operands:
            yield from _truths(each)
    elif isinstance(node, Choose):
        for each in (node.test, node.then, node.otherwise):
            yield from _truths(each)


def _check(path: Path, text: ReadText, known: _Texts, report: ProblemReport) -> None:
    about: Json = {"edge": text.edge} if text.edge else {"node": text.node}
    name, offset = ".".join(path), text.offset(path[0])
    decided = known.decision(path)
    if decided is not None:
        message = f"asks whether {name!r} is true, and it is true whatever is decided"
        fix = f"compare it: {name} == {decided!r}"
        report.error(text.path, "decision-truth", message, fix, offset=offset, **about)
    elif known.is_text(path):
        message = (
            f"asks whether the text {name!r} is true: any text is but the empty one, also 'false' and 'no'"
        )
        fix = f"compare it: {name} == 'yes', or {name} != '' if any text will do"
        report.warn(text.path, "text-truth", message, fix, offset=offset, **about)


class _Texts:
    """Which names of a document have texts, as far as it says so."""

    def __init__(self, document: FlowDocument, nodes: Mapping[str, DocumentNode]) -> None:
        self._document = document
        self._input = _input_types(document)
        self._holds: dict[str, list[DocumentNode]] = {}
        self._writers: dict[str, list[bool]] = {}
        for node in nodes.values():
            if isinstance(node.config, DecisionConfig):
                self._holds.setdefault(node.config.decision_bind, []).append(node)
            for name in node.type.writes(node):
                self._writers.setdefault(name, []).append(_writes_text(node, name))

    def decision(self, path: Path) -> str | None:
        """A word to compare it with, if it is nothing but the decision of a hold."""
        name = path[0].removesuffix(RESULT) if path[1:] == ("decision",) else path[0]
        holds = self._holds.get(name, [])
        if (len(path) > 1 and name == path[0]) or not holds or name in self._input:
            return None
        if len(self._writers[name]) > len(holds) or any(map(_may_be_undecided, holds)):
            return None
        declared = self._document.variables.get(name)
        if declared is not None and not declared.default:
            return None  # it may ask whether there is a decision at all
        return next((each for hold in holds for each in option_ids(hold)), "approve")

    def is_text(self, path: Path) -> bool:
        if len(path) == 2 and path[0] == "input":
            return self._input.get(path[1]) == _TEXT
        if path[0] in ("state", "scratch") and len(path) > 1:
            path = path[1:]
        if len(path) != 1 or path[0] in PARTITIONS:
            return False
        declared = self._document.variables.get(path[0])
        if declared is not None and declared.type != "any":
            return declared.type == _TEXT
        kinds = list(self._writers.get(path[0], ()))
        if path[0] in self._input:
            kinds.append(self._input[path[0]] == _TEXT)
        if declared is not None and declared.default is not None:
            kinds.append(isinstance(declared.default, str))
        return bool(kinds) and all(kinds)


def _may_be_undecided(hold: DocumentNode) -> bool:
    """Whether the run goes on without a decision."""
    return bool(hold.from_port(TIMEOUT)) or (action_of(hold.config) or "").startswith(BRANCH)


def _input_types(document: FlowDocument) -> dict[str, Any]:
    schema: Any = document.fields.input or {}
    declared: Any = schema.get("properties")
    if not isinstance(declared, dict):
        return {}
    return {
        name: cast("Json", each).get("type") if isinstance(each, dict) else None
        for name, each in cast("Json", declared).items()
    }


def _writes_text(node: DocumentNode, name: str) -> bool:
    """Whether what it sets there is a text for sure."""
    kind = node.type.name
    if isinstance(node.config, DecisionConfig):
        return name == node.config.decision_bind
    if kind == "llm":
        return node.config.schema is None
    if kind == "agent":
        return True
    return kind == "set" and not node.broken and _is_text(node.config.values.get(name))


def _is_text(value: Any) -> bool:
    """Whether it stays a text: one placeholder alone gives its value as it is."""
    if not isinstance(value, str) or "{{" not in value:
        return isinstance(value, str)
    try:
        parts = compile_template(value).parts
    except TemplateSyntaxError:
        return False  # reported
    return not (len(parts) == 1 and isinstance(parts[0], Placeholder))
