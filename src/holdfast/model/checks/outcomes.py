"""The words that a condition can read as `outcome`."""

from __future__ import annotations

from typing import Final

from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.value_sets import OUTCOME, UNKNOWN, ValueSet, constants, leaves, union
from holdfast.model.graph import Edge, Node, NodeKind

ENGINE_OUTCOMES: Final = ("success", "partial_success", "fail", "retry", "skipped")
"""What the engine itself calls the end of a node; code may have words of its own."""
_SHORTEST: Final = 4
_WITH_CODE: Final = (NodeKind.task, NodeKind.guardrail)


def outcomes_of(view: ValidationView, edge: Edge) -> ValueSet:
    """Of the node before the edge; in a walk of every node, because a routing node passes the last one on."""
    source = view.nodes.get(edge.source)
    if view.walk:
        return union(_outcomes(view, node) for node in view.spec.nodes)
    return UNKNOWN if source is None else _outcomes(view, source)


def _outcomes(view: ValidationView, node: Node) -> ValueSet:
    own = view.facts.outcomes.get(node.id)
    words = constants((*ENGINE_OUTCOMES, *(own or ())), OUTCOME, "outcome")
    return words | UNKNOWN if node.kind in _WITH_CODE and own is None else words


def is_near_outcome(value: object, values: ValueSet) -> bool:
    """Whether it is a misspelt outcome, although code may have a word like that."""
    words = [each.value for each in leaves(values) if each.source == OUTCOME]
    if not isinstance(value, str) or value in words or len(value) < _SHORTEST:
        return False
    return any(_is_near(value.lower(), word) for word in words)


def _is_near(given: str, word: str) -> bool:
    """Letters swapped, one too many or too few, or another ending. Not another letter: `shipped` is no slip
    of `skipped`."""
    if sorted(given) == sorted(word) or given.startswith(word) or word.startswith(given):
        return True
    longer, shorter = (given, word) if len(given) > len(word) else (word, given)
    return any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))
