"""Idempotency keys: the same over all attempts of a visit, new after a fork (D-18)."""

from __future__ import annotations

from holdfast.model.graph import Node
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, Position
from holdfast.model.template import as_text, compile_template
from holdfast.types.ids import derived_id


def idempotency_key(pos: Position, execution: Exec, node: Node) -> str:
    """From the node's own template if it has one. Raises ExpressionError if that cannot be filled."""
    if node.idempotency_key:
        tree = pos.scopes[execution.scope].tree
        shown = compile_template(node.idempotency_key).render(resolver(tree, execution.frame), strict=True)
        return str(shown.value)
    return derived_id(pos.run, *_origin(execution, node), execution.visit, -1)


def substep_key(pos: Position, execution: Exec, node: Node, ordinal: str) -> str:
    return derived_id(pos.run, *_origin(execution, node), execution.visit, ordinal)


def render(pos: Position, execution: Exec, text: str) -> str:
    """A template, filled from the state that the node sees."""
    tree = pos.scopes[execution.scope].tree
    shown = compile_template(text).render(resolver(tree, execution.frame), strict=True).value
    return shown if isinstance(shown, str) else as_text(shown)


def _origin(execution: Exec, node: Node) -> tuple[str, str]:
    """Where the execution began: a migration may have renamed its node since, and the key must not change."""
    return execution.born or (execution.scope, node.id)
