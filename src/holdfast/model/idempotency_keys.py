"""Idempotency keys: the same over all attempts of a visit, new after a fork (D-18)."""

from __future__ import annotations

from collections.abc import Sized
from typing import Final

from holdfast.model.expressions import Resolve
from holdfast.model.graph import Node
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, Position
from holdfast.model.template import Template, TemplateRenderError, as_text, compile_template
from holdfast.types.ids import derived_id

_EMPTY: Final = frozenset({"", "null", "[]", "{}", '""'})
"""Texts of an empty value, also as the filter `json` writes it."""


def idempotency_key(pos: Position, execution: Exec, node: Node) -> str:
    """From the node's own template if it has one. Raises ExpressionError if that cannot be filled."""
    if node.idempotency_key:
        tree = pos.scopes[execution.scope].tree
        return str(key_value(node.idempotency_key, resolver(tree, execution.frame)))
    return derived_id(pos.run, *_origin(execution, node), execution.visit, -1)


def substep_key(pos: Position, execution: Exec, node: Node, ordinal: str) -> str:
    return derived_id(pos.run, *_origin(execution, node), execution.visit, ordinal)


def key_value(text: str, resolve: Resolve) -> object:
    """A template of a key, filled. Raises TemplateRenderError where a part has no value, null or an empty
    text: all runs without a value would have one key, and the callee would drop every call but the first.
    A part that has a default may be empty."""
    template = compile_template(text)
    found = template.render(resolve, strict=True).value
    for part in template.parts:
        if isinstance(part, str) or part.may_miss:
            continue
        if _is_empty(Template(text, (part,)).render(resolve).value):
            name = ".".join(part.path)
            raise TemplateRenderError(
                "it is empty, so that this key would be the same for other runs",
                path=part.path,
                text=text,
                column=part.column,
                hint=f"set it before this point; write {{{{{name} | default('')}}}} if it may be empty",
            )
    return found


def _is_empty(value: object) -> bool:
    if isinstance(value, str):
        return value.strip() in _EMPTY
    return value is None or (isinstance(value, Sized) and not len(value))


def item_key(pos: Position, execution: Exec, text: str) -> str:
    """The key of an item of a map, from its own template. Raises ExpressionError."""
    return as_text(key_value(text, resolver(pos.scopes[execution.scope].tree, execution.frame)))


def render(pos: Position, execution: Exec, text: str) -> str:
    """A template, filled from the state that the node sees."""
    tree = pos.scopes[execution.scope].tree
    shown = compile_template(text).render(resolver(tree, execution.frame), strict=True).value
    return shown if isinstance(shown, str) else as_text(shown)


def _origin(execution: Exec, node: Node) -> tuple[str, str]:
    """Where the execution began: a migration may have renamed its node since, and the key must not change."""
    return execution.born or (execution.scope, node.id)
