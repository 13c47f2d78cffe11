"""Holds whose decision decides nothing: what acts behind one runs after a refusal too. All are warnings.

The first node that writes or acts outside is looked for behind a hold, on ways where nothing reads its
decision; a join that a refusal does not stop; a loop whose limit leads on with the refusal; `outcome`.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

import msgspec

from holdfast.errors import MissingNameError, NotComparableError
from holdfast.model.checks.conflicts import ancestors, fork_between
from holdfast.model.checks.coverage import can_hold_together
from holdfast.model.checks.effect_paths import ACTS, leads_to_act, set_by
from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.names import RESULT
from holdfast.model.checks.value_sets import UNKNOWN, Constant
from holdfast.model.expressions import MISSING, Expr, truthy
from holdfast.model.graph import Edge, EdgeKind, JoinKind, Node
from holdfast.model.hold_declaration import BRANCH, default_of
from holdfast.types.decision_words import approving_answer, refusing_answer
from holdfast.types.terms import HoldTerms

_MOST_STEPS: Final = 100_000
"""Nodes that are looked at for all holds together; beyond, nothing is said."""
_MOST_ARMS: Final = 20


def check_decisions(view: ValidationView) -> None:
    if view.walk:
        return
    for name, lines in view.facts.unread_asks.items():
        view.warn(
            "decision-unread",
            f"its code asks a question (line {lines[0]} of the function) and never reads the answer",
            node=name,
            fix="test it before the step that acts: if reply.decision == 'approve'",
        )
    for name, slips in view.facts.question_slips.items():
        for slip in slips:
            view.warn(slip.rule, slip.message, node=name, fix=slip.fix)
    holds = [node for node in view.nodes.values() if _asks_for_approval(node)]
    search = DecisionSearch(view)
    for node in view.nodes.values():
        if node.subflow is not None:
            search.unread_of_child(node)
    for node in holds:
        search.unread(node)
        search.overwritten(node)
        _loop_limit(view, node)
        _joins(view, node)
        _approved_anyway(view, node)
        _refused_acts(view, node)
        _set_by_code(view, node)


def _asks_for_approval(node: Node) -> bool:
    return node.hold is not None and node.hold.options is not None and len(node.hold.options) > 1


def _reads(text: str, names: frozenset[str]) -> bool:
    return not names.isdisjoint(re.findall(r"\w+", text))


def _names(node: Node) -> frozenset[str]:
    assert node.hold is not None
    return frozenset({node.hold.bind, node.hold.bind + RESULT})


class DecisionSearch:
    def __init__(self, view: ValidationView) -> None:
        self._view, self._steps = view, _MOST_STEPS
        self._texts: dict[str, str] = {}

    def unread(self, hold: Node) -> None:
        # What code reads is known of flows with code; documents have a check of their own.
        if not self._view.facts.reads or hold.hold is None:
            return
        act = self._first_act(hold, _names(hold))
        if act is not None:
            bind, options = hold.hold.bind, hold.hold.options or ()
            first = next((option.id for option in options), "")
            self._view.warn(
                "decision-unread",
                f"{act!r} runs whatever is decided here: nothing before it reads {bind!r}",
                node=hold.id,
                fix=f"test it on the edge: when=\"{bind} == '{first}'\", with another edge for the rest",
            )

    def overwritten(self, hold: Node) -> None:
        """Another node sets the field of the decision before anything reads it: two holds of one bind."""
        if not self._view.facts.reads or hold.hold is None or hold.hold.bind in self._view.spec.reducers:
            return
        bind, names = hold.hold.bind, _names(hold)
        todo, seen = deque(self._free(hold.id, names)), {hold.id}
        while todo and self._steps > 0:
            name = todo.popleft()
            if name in seen or name not in self._view.nodes:
                continue
            seen.add(name)
            self._steps -= 1
            if (
                bind in set_by(self._view, name)
                and not self.is_read_at(name, names)
                and self._acts_behind(name)
            ):
                self._view.warn(
                    "decision-unread",
                    f"{name!r} sets {bind!r} anew before anything reads the decision that is made here",
                    node=hold.id,
                    fix="test it on the edge that leaves it, or give each its own field: bind='verdict'",
                )
                return
            if not self.is_read_at(name, names):
                todo += self._free(name, names)

    def _acts_behind(self, name: str) -> bool:
        todo, seen = deque([name]), set[str]()
        while todo and self._steps > 0:
            each = todo.popleft()
            if each in seen or each not in self._view.nodes:
                continue
            seen.add(each)
            self._steps -= 1
            if self._view.nodes[each].effect in ACTS:
                return True
            todo += [edge.target for edge in self._view.out[each]]
        return False

    def unread_of_child(self, node: Node) -> None:
        """A sub-flow that only asks: its answer is for the flow around it."""
        child = next((each for each in self._view.spec.subgraphs if each.name == node.body), None)
        facts = self._view.facts.children.get(node.body or "")
        if child is None or facts is None or node.subflow is None:
            return
        code = [*facts.reads.values(), *facts.route_reads.values()]
        texts = [edge.when or "" for edge in child.edges]
        texts += (node.subflow.outputs or {}).values()
        for hold in filter(_asks_for_approval, child.nodes):
            names = _names(hold)
            if any(_reads(text, names) for text in texts) or any(c is None or names & c for c in code):
                continue
            act = self._first_act(node, frozenset())
            if act is not None and hold.hold is not None:
                self._view.warn(
                    "decision-unread",
                    f"{act!r} runs whatever is decided at {hold.id!r} of {child.name!r}: its decision is no "
                    "output",
                    node=node.id,
                    fix=f"outputs={{'verdict': '{hold.hold.bind}'}}, and test verdict on the edge",
                )

    def _first_act(self, hold: Node, names: frozenset[str]) -> str | None:
        return self._first_of(self._free(hold.id, names), names, {hold.id})

    def first_act_from(self, start: str, names: frozenset[str]) -> str | None:
        """The first node from there that acts, before anything reads one of these fields."""
        return self._first_of([start], names, set[str]())

    def _first_of(self, start: list[str], names: frozenset[str], seen: set[str]) -> str | None:
        todo = deque(start)
        while todo and self._steps > 0:
            name = todo.popleft()
            if name in seen or name not in self._view.nodes:
                continue
            seen.add(name)
            self._steps -= 1
            if self.is_read_at(name, names):
                continue
            if self._view.nodes[name].effect in ACTS:
                return name
            todo += self._free(name, names)
        return None

    def _free(self, name: str, names: frozenset[str]) -> list[str]:
        """What follows without a test of the decision."""
        edges = self._view.out[name]
        tested = any(edge.when is not None and _reads(edge.when, names) for edge in edges)
        chosen = self._view.facts.route_reads.get(name, frozenset())
        if tested or chosen is None or not names.isdisjoint(chosen):
            return [edge.target for edge in edges if edge.kind is EdgeKind.always]
        return [edge.target for edge in edges if edge.kind is not EdgeKind.failure]

    def is_read_at(self, name: str, names: frozenset[str]) -> bool:
        node = self._view.nodes[name]
        if node.subflow is not None and node.subflow.inputs is None:
            return True  # it is given everything
        code = self._view.facts.reads.get(name, frozenset())
        if code is None or not names.isdisjoint(code):
            return True
        if name not in self._texts:
            own = (
                node
                if node.hold is None
                else msgspec.structs.replace(node, hold=msgspec.structs.replace(node.hold, bind=""))
            )  # where its decision is put is not read
            self._texts[name] = msgspec.json.encode(own).decode()
        return _reads(self._texts[name], names)


def _loop_limit(view: ValidationView, hold: Node) -> None:
    """At its limit the loop is left although its condition holds: with the decision that leads back."""
    names, edges = _names(hold), view.out[hold.id]
    back = [e for e in edges if e.loop is not None and e.on_limit == "continue" and e.when is not None]
    if not any(_reads(edge.when or "", names) for edge in back):
        return
    for edge in edges:
        if edge.kind is EdgeKind.otherwise:
            view.warn(
                "loop-limit",
                f"it is taken after the last turn of {back[0].id!r} too, with the decision that leads back",
                edge=edge.id,
                fix="give it a condition (when=) instead of otherwise, or let the loop fail at its limit",
            )


def _joins(view: ValidationView, hold: Node) -> None:
    """Branches that run at the same time: a join waits for those that still lead to it, and a branch that
    a refusal has ended does not."""
    names = _names(hold)
    for edge in view.out[hold.id]:
        if edge.loop is not None or edge.target not in view.nodes or not _is_tested(view, edge, names):
            continue
        target = view.nodes[edge.target]
        others = [each for each in view.into[target.id] if each.source != hold.id]
        if target.join.kind is JoinKind.quorum and target.join.count > len(others):
            continue
        mine = ancestors(view, hold.id)
        beside = next((e for e in others if _is_beside(view, mine, hold.id, e)), None)
        if beside is not None:
            view.warn(
                "join-decision",
                f"it runs whatever is decided at {hold.id!r}: {beside.source!r} leads to it at the same "
                "time, and a join does not wait for a branch that has ended",
                node=target.id,
                fix=f"join=quorum({len(others) + 1}) requires every branch; or lead all of them to a node "
                "that tests the decisions on its edges",
            )
            return


def _approved_anyway(view: ValidationView, hold: Node) -> None:
    """The timeout, or a failure of the hold, leads to what follows an approval."""
    spec = hold.hold
    yes = approving_answer(spec.options) if spec is not None and spec.options else None
    if spec is None or yes is None:
        return
    edges = view.out[hold.id]
    approved = {each.target for each in edges if _is_taken_after(view, each, spec.bind, yes)}
    action = spec.on_timeout or ""
    branch = action.removeprefix(BRANCH) if action.startswith(BRANCH) else ""
    for edge in edges:
        fails = edge.kind is EdgeKind.failure
        if edge.target in approved and (fails or (edge.kind is EdgeKind.chosen and edge.target == branch)):
            why = "a failure of the hold" if fails else "its timeout"
            view.warn(
                "approving-default",
                f"{why} leads to {edge.target!r}, as {yes!r} does: the run continues as if approved",
                edge=edge.id,
                fix="lead to another node, or to an end",
            )


def _refused_acts(view: ValidationView, hold: Node) -> None:
    """Edges exchanged: a refusal leads to what acts, and an approval does not. Or: the timeout of a hold
    without a word for yes chooses what acts."""
    spec = hold.hold
    if spec is None or not spec.options:
        return
    acting = {option.id: _acting_edge(view, hold, spec.bind, option.id) for option in spec.options}
    yes, no = approving_answer(spec.options), refusing_answer(spec.options)
    edge = acting.get(no or "")
    if yes is not None and no is not None and edge is not None and acting[yes] is None:
        view.warn(
            "refusal-acts",
            f"it is taken after {no!r} and leads to what acts, and after {yes!r} nothing does",
            edge=edge.id,
            fix="exchange the edges, or the options",
        )
    default = default_of(spec.options, spec.terms or HoldTerms())
    asked = (spec.on_timeout or "").partition(":")[0] in ("default", "default_option")
    others = [each for name, each in acting.items() if name != default]
    if asked and yes is None and default != no and acting.get(default) is not None and None in others:
        view.warn(
            "approving-default",
            f"its timeout answers {default!r}, which leads to what acts, as not every option does",
            node=hold.id,
        )


def _acting_edge(view: ValidationView, hold: Node, bind: str, decision: str) -> Edge | None:
    """The edge that is taken after this decision and leads to what acts before another question."""
    for edge in view.out[hold.id]:
        if not _is_taken_after(view, edge, bind, decision):
            continue
        if leads_to_act(view, edge, hold=hold.id):
            return edge
    return None


def _set_by_code(view: ValidationView, hold: Node) -> None:
    """A node behind the question writes the approval itself."""
    spec = hold.hold
    yes = approving_answer(spec.options) if spec is not None else None
    if spec is None or yes is None or not view.facts.values:
        return
    before = ancestors(view, hold.id)
    for name, fields in view.facts.values.items():
        value = fields.get(spec.bind)
        if value is None or name in before or name == hold.id or hold.id not in ancestors(view, name):
            continue
        if any(isinstance(each, Constant) and each.value == yes for each in value(lambda _path: UNKNOWN)):
            view.warn(
                "decision-set",
                f"its code sets {spec.bind!r} to {yes!r} after {hold.id!r} was decided",
                node=name,
                fix="use a field of its own for it",
            )


def _is_taken_after(view: ValidationView, edge: Edge, bind: str, decision: str) -> bool:
    if edge.kind is not EdgeKind.when or not _reads(edge.when or "", frozenset({bind})):
        return False
    found = view.compiled(edge.when or "")
    if not isinstance(found, Expr):
        return False
    try:
        return truthy(found.evaluate(lambda path: decision if path == (bind,) else MISSING))
    except (MissingNameError, NotComparableError):
        return True  # it depends on more


def _is_tested(view: ValidationView, edge: Edge, names: frozenset[str]) -> bool:
    if edge.kind is EdgeKind.chosen:
        return True
    return edge.kind is EdgeKind.when and _reads(edge.when or "", names)


def _is_beside(view: ValidationView, mine: set[str], hold: str, last: Edge) -> bool:
    """Whether this edge to the join can be taken in a run that asks. `mine`: what is before the hold."""
    theirs = ancestors(view, last.source)
    if hold in theirs:
        return False
    if last.source not in mine and fork_between(view, mine, theirs):
        return True
    for name in mine & theirs:
        edges = [edge for edge in view.out[name] if edge.loop is None][:_MOST_ARMS]
        toward = [edge for edge in edges if edge.target in mine and edge is not last]
        aside = [last] if name == last.source else [e for e in edges if e.target in theirs - mine]
        if any(can_hold_together(view, a, b) for a in toward for b in aside if a is not b):
            return True
    return False
