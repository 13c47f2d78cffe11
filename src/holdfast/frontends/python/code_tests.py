"""Where the source of a function tests something: patterns, truths, and literals beside comparisons."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from holdfast.model.checks.names import CONSTANT, FALLBACK

Compared = tuple[str, ast.expr, ast.expr, int]
"""Operator, both sides, line."""


def looked_into(node: ast.AST) -> list[ast.expr]:
    """`s` of `getattr(s, "decision")` and `"decision" in s`."""
    match node:
        case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[first, ast.Constant(), *_]):
            return [first]
        case ast.Compare(left=ast.Constant(), ops=[ast.In() | ast.NotIn()], comparators=[right]):
            return [right]
        case _:
            return []


def matched(subject: ast.expr, pattern: ast.pattern) -> Iterator[Compared]:
    """`case "reject"`, and inside of `case Order(decision="reject")` and `case {"decision": "reject"}`."""
    match pattern:
        case ast.MatchValue():
            yield "==", subject, pattern.value, pattern.lineno
        case ast.MatchClass():
            for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                part = ast.copy_location(ast.Attribute(subject, name, ast.Load()), pattern)
                yield from matched(part, inner)
        case ast.MatchMapping():
            for key, inner in zip(pattern.keys, pattern.patterns, strict=True):
                yield from matched(ast.copy_location(ast.Subscript(subject, key, ast.Load()), key), inner)
        case ast.MatchOr():
            for inner in pattern.patterns:
                yield from matched(subject, inner)
        case ast.MatchAs(pattern=inner) if inner is not None:
            yield from matched(subject, inner)
        case _:
            return


def constant_operands(node: ast.BoolOp) -> Iterator[Compared]:
    """`decision == "approve" or "approved"`: the second half was meant to be a comparison."""
    compared = [each for each in node.values if isinstance(each, ast.Compare)]
    for each in node.values:
        if compared and isinstance(each, ast.Constant) and type(each.value) in (str, int):
            yield CONSTANT, compared[0].left, each, each.lineno


def fallbacks(node: ast.AST) -> Iterator[Compared]:
    """`s.decision or "approve"`, `s.get("decision", "approve")` and `getattr(s, "decision", "approve")`."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=[*firsts, ast.Constant() as last]):
            for first in firsts:
                yield FALLBACK, first, last, last.lineno
        case (
            ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(), ast.Constant() as last])
            | ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(), ast.Constant() as last])
        ):
            yield FALLBACK, node, last, last.lineno
        case _:
            return


def asked_for_truth(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions of which only the truth counts: `if x`, `not x`, `x and ...`, `bool(x)`."""
    match node:
        case ast.If() | ast.IfExp() | ast.While() | ast.Assert():
            yield from _operands_of(node.test)
        case ast.UnaryOp(op=ast.Not()):
            yield from _operands_of(node.operand)
        case ast.comprehension():
            for each in node.ifs:
                yield from _operands_of(each)
        case ast.Call(func=ast.Name(id="bool"), args=[only]):
            yield from _operands_of(only)
        case _:
            return


def _operands_of(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for each in test.values:
            yield from _operands_of(each)
    elif isinstance(test, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Await, ast.NamedExpr)):
        yield test
