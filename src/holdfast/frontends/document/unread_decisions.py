"""Holds whose decision decides nothing: what acts behind one runs after a refusal too; and unread forms.

An edge from `out` is taken whatever was decided. That is how a document binds a decision to test it later, so
it is only a warning, for the first node behind it that writes or acts outside without a test on its way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Set
from typing import Final

from holdfast.frontends.document.names import ReadText
from holdfast.frontends.document.node_type import OUT, DocumentEdge, DocumentNode
from holdfast.frontends.document.node_types.holds import DecisionConfig, option_ids
from holdfast.frontends.document.node_types.loop import LOOP_END, NEXT
from holdfast.frontends.document.problem import ProblemReport
from holdfast.model.graph import GraphSpec
from holdfast.model.template import TemplateSyntaxError, compile_template
from holdfast.types.status import Effect

_ACTS: Final = frozenset({Effect.write, Effect.external})
_MOST_STEPS: Final = 200_000
"""Nodes that are looked at for all holds together; beyond, nothing is said."""
_APPROVAL: Final = "approval"


def check_unread_decisions(
    nodes: Mapping[str, DocumentNode], texts: Iterable[ReadText], spec: GraphSpec, report: ProblemReport
) -> None:
    holds = [node for node in nodes.values() if isinstance(node.config, DecisionConfig)]
    if not holds:
        return
    agents = {name for name, node in nodes.items() if _has_tools(node)}
    ways = _Ways(nodes, texts, _acting(spec) | agents)
    for node in holds:
        names = frozenset(node.type.writes(node))
        if _asks_for_approval(node):
            start = _undecided(node, ways, names)
            if start is not None:
                _check_free(node, start, ways.first_act(node, start, names), report)
                _check_overwritten(node, start, names, ways, report)
        _check_form(node, names - {node.config.decision_bind}, ways, report)
    for node in nodes.values():
        if node.type is LOOP_END and node.config.on_limit == "continue":
            _check_limit(node, [hold for hold in holds if ways.is_inside(hold, node)], ways, report)


def _undecided(node: DocumentNode, ways: _Ways, names: frozenset[str]) -> list[DocumentEdge] | None:
    """The edges that are taken whatever is decided, none if it decides nothing; None if its edges decide."""
    options = option_ids(node)
    free = [edge for edge in node.from_port(OUT) if not ways.tests(node, edge, names)]
    ports = [edge for edge in node.leaving if edge.port in options]
    if free or not ports:
        inside = node.node.parent is not None and not node.from_port(OUT)
        return free if free or inside else None
    reached = [{edge.target for edge in ports if edge.port == each} for each in options]
    return ports if all(each == reached[0] for each in reached) else None


def _check_limit(end: DocumentNode, holds: list[DocumentNode], ways: _Ways, report: ProblemReport) -> None:
    """A loop that asks for another turn after a refusal, and continues at its limit."""
    for hold in holds:
        names = frozenset(hold.type.writes(hold))
        act = ways.first_act(end, end.leaving, names) if ways.reads(end, names) else None
        if act is not None and _asks_for_approval(hold):
            message = f"{act!r} runs at the limit of the loop, although {hold.id!r} asked for another turn"
            fix = f"let the loop fail at its limit, or test {hold.config.decision_bind} before {act!r}"
            report.warn(end.at("on_limit"), "loop-limit", message, fix, node=end.id.removesuffix(NEXT))


def _check_free(node: DocumentNode, free: list[DocumentEdge], act: str | None, report: ProblemReport) -> None:
    if act is None:
        return
    bind = node.config.decision_bind
    message = f"{act!r} runs whatever is decided at {node.id!r}: nothing before it reads {bind!r}"
    fix = (
        f"lead from the ports {', '.join(map(repr, option_ids(node)))}"
        if option_ids(node)
        else f"give {node.id!r} options and lead from their ports"
    )
    fix += f", or test {bind} in a condition before {act!r}"
    if free:
        report.warn(free[0].path, "decision-unread", message, fix, edge=free[0].id)
    else:
        report.warn(node.path, "decision-unread", message, fix, node=node.id)


def _check_overwritten(
    node: DocumentNode, free: list[DocumentEdge], names: frozenset[str], ways: _Ways, report: ProblemReport
) -> None:
    """Another node sets the variable before anything reads it: two holds of one `decision_bind`, a `set`."""
    bind = node.config.decision_bind
    other = ways.first_that_sets(node, free, names, bind)
    if other is not None and ways.first_act(other, other.leaving, frozenset()) is not None:
        message = f"{other.id!r} sets {bind!r} anew before anything reads what {node.id!r} has decided"
        fix = "lead from its ports, or give each a variable of its own (decision_bind)"
        report.warn(node.path, "decision-unread", message, fix, node=node.id)


def _check_form(node: DocumentNode, answers: frozenset[str], ways: _Ways, report: ProblemReport) -> None:
    """A field that the person corrects, and what acts reads it as it was."""
    filled: dict[str, str] = {}
    for section in getattr(node.config, "sections", ()):
        if section.get("type") == "input":
            field = str(section.get("field"))
            filled |= dict.fromkeys((*_names_in(section.get("default")), field), field)
    act = ways.act_that_reads(node, filled.keys()) if filled and not ways.any_reads(answers) else None
    if act is not None:
        message = f"{act[0]!r} reads {act[1]!r} as it was before {node.id!r}, where a person fills it in"
        fix = f"read what was filled in: {{{{{node.bind}.{filled[act[1]]}}}}}"
        report.warn(node.path, "form-unread", message, fix, node=node.id)


def _names_in(text: object) -> Iterable[str]:
    try:
        return [path[0] for path in compile_template(text).names] if isinstance(text, str) else ()
    except TemplateSyntaxError:
        return ()  # reported


def _asks_for_approval(node: DocumentNode) -> bool:
    options = option_ids(node)
    return len(options) > 1 or (not options and node.config.type == _APPROVAL)


def _acting(spec: GraphSpec) -> set[str]:
    """Nodes that write or act outside, also inside of maps; of a sub-flow, the node that runs it."""
    found = {node.id for node in spec.nodes if node.effect in _ACTS}
    for inner in spec.subgraphs:
        inside = _acting(inner)
        found |= inside
        if inside:
            found |= {
                node.id for node in spec.nodes if node.subflow is not None and node.subflow.body == inner.name
            }
    return found


def _has_tools(node: DocumentNode) -> bool:
    return node.type.name == "agent" and bool(node.config.tools or node.config.toolkit)


def _reads_everything(node: DocumentNode) -> bool:
    """Whether its code, or the flow that it runs, is given all variables."""
    kind = node.type.name
    return kind == "guardrail" or (kind == "subflow" and node.config.inputs is None)


class _Ways:
    def __init__(
        self, nodes: Mapping[str, DocumentNode], texts: Iterable[ReadText], acting: set[str]
    ) -> None:
        self._nodes, self._acting, self._steps = nodes, acting, _MOST_STEPS
        self._reads: dict[str, set[str]] = {}
        self._tests: dict[str, frozenset[str]] = {}
        for text in texts:
            if text.edge is not None:
                self._tests[text.edge] = text.names
            else:
                # What a loop asks for another turn is asked behind its nodes.
                behind = text.path[-2:] == ("config", "while")
                self._reads.setdefault(text.node + NEXT if behind else text.node, set()).update(text.names)

    def tests(self, node: DocumentNode, edge: DocumentEdge, names: frozenset[str]) -> bool:
        """Whether its condition reads one of the names, or, if it is for the other cases, one beside it."""
        asked = node.from_port(OUT) if edge.edge.otherwise else (edge,)
        return any(not names.isdisjoint(self._tests.get(each.id, ())) for each in asked)

    def reads(self, node: DocumentNode, names: frozenset[str]) -> bool:
        return not names.isdisjoint(self._reads.get(node.id, ()))

    def is_inside(self, node: DocumentNode, end: DocumentNode) -> bool:
        """Whether it is inside of the loop with this end."""
        return end.id.removesuffix(NEXT) in self._around(node.id)

    def first_act(
        self, hold: DocumentNode, start: Iterable[DocumentEdge], names: frozenset[str]
    ) -> str | None:
        """The first node that acts, reached by these edges without anything reading these names."""
        names |= frozenset(self._nodes[each].config.into for each in self._maps_around(hold.id))
        todo = deque(edge.target for edge in start)
        todo += self._after_body(hold.id)
        seen = {hold.id}
        while todo and self._steps > 0:
            name = todo.popleft()
            if name in seen or name not in self._nodes:
                continue
            seen.add(name)
            self._steps -= 1
            node = self._nodes[name]
            if _reads_everything(node) or not names.isdisjoint(self._reads.get(name, ())):
                continue
            if name in self._acting:
                return name
            todo += [edge.target for edge in node.leaving if not self.tests(node, edge, names)]
            todo += [*(node.inside if node.type is not LOOP_END else ()), *self._after_body(name)]
        return None

    def first_that_sets(
        self, hold: DocumentNode, start: Iterable[DocumentEdge], names: frozenset[str], bind: str
    ) -> DocumentNode | None:
        """The first node that sets this variable, before anything reads one of these names."""
        todo, seen = deque(edge.target for edge in start), {hold.id}
        while todo and self._steps > 0:
            name = todo.popleft()
            node = self._nodes.get(name)
            if name in seen or node is None or not names.isdisjoint(self._reads.get(name, ())):
                continue
            seen.add(name)
            self._steps -= 1
            if bind in node.type.writes(node):
                return node
            todo += [edge.target for edge in node.leaving if not self.tests(node, edge, names)]
        return None

    def any_reads(self, names: frozenset[str]) -> bool:
        texts = (*self._reads.values(), *self._tests.values())
        return any(map(_reads_everything, self._nodes.values())) or any(names & each for each in texts)

    def act_that_reads(self, hold: DocumentNode, fields: Set[str]) -> tuple[str, str] | None:
        """A node that acts behind a question, before another one; and the field."""
        todo, seen = deque(edge.target for edge in hold.leaving), {hold.id}
        while todo and self._steps > 0:
            name = todo.popleft()
            node = self._nodes.get(name)
            if name in seen or node is None or isinstance(node.config, DecisionConfig):
                continue
            seen.add(name)
            self._steps -= 1
            read = sorted(fields & self._reads.get(name, set()))
            if read and name in self._acting:
                return name, read[0]
            todo += [edge.target for edge in node.leaving]
        return None

    def _maps_around(self, name: str) -> list[str]:
        return [each for each in self._around(name) if self._nodes[each].type.name == "map"]

    def _around(self, name: str) -> list[str]:
        found: list[str] = []
        parent = self._nodes[name].node.parent
        while parent is not None and parent in self._nodes and parent not in found:
            found.append(parent)
            parent = self._nodes[parent].node.parent
        return found

    def _after_body(self, name: str) -> list[str]:
        """What follows the map that the node is inside of."""
        return [edge.target for each in self._maps_around(name)[:1] for edge in self._nodes[each].leaving]
