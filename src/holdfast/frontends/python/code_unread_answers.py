"""Questions of a script whose answer its source never reads, although something acts behind them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Final, cast

from holdfast.types.status import Effect

_HARMLESS: Final = {str(Effect.pure), str(Effect.read)}


def unread_asks(
    tree: ast.AST, is_context: Callable[[ast.expr], bool], chooses: Callable[[ast.Call], bool]
) -> tuple[int, ...]:
    """Their lines. `chooses`: whether a question has several options."""
    acts = [node.lineno for node in calls(tree, "step", is_context) if acts_outside(node)]
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    found: list[int] = []
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Await(value=ast.Call() as asked)):
                pass
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Await(value=ast.Call() as asked)):
                if name in read:
                    continue
            case _:
                continue
        is_ask = isinstance(asked.func, ast.Attribute) and asked.func.attr == "ask"
        if is_ask and is_context(asked.func.value) and chooses(asked):  # type: ignore[attr-defined]
            found += [asked.lineno] if any(line > asked.lineno for line in acts) else []
    return tuple(found)


def asks(tree: ast.AST, is_context: Callable[[ast.expr], bool]) -> bool:
    return any(True for _ in calls(tree, "ask", is_context))


def calls(tree: ast.AST, name: str, is_context: Callable[[ast.expr], bool]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr == name and is_context(called.value):
            yield cast("ast.Call", node)


def acts_outside(step: ast.Call) -> bool:
    """Without an effect, or with one that is not shown, it counts as one that acts."""
    effect = next((each.value for each in step.keywords if each.arg == "effect"), None)
    return not (isinstance(effect, ast.Constant) and effect.value in _HARMLESS)
