"""Analyses a function's source: its fingerprint (D-34), its sub-steps (D-20), the fields that it sets."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from types import CodeType
from typing import Any, Final, cast

from holdfast.frontends.python.function_parameters import context_name
from holdfast.model.syntax_tree import parse_module

_SUBSTEPS: Final = frozenset({"step", "ask"})
_FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class FunctionSource:
    """A parsed function, with what was derived from it cached: one function may serve thousands of nodes."""

    def __init__(self, tree: _FunctionNode) -> None:
        self.tree = tree

    @cached_property
    def digest(self) -> str:
        return _digest(_normalised(self.tree))

    @cached_property
    def writes(self) -> frozenset[str]:
        return _returned_keys(self.tree)

    @cached_property
    def shows_writes(self) -> bool:
        return _shows_keys(self.tree)


def code_fingerprint(fn: Callable[..., Any], version: str | None = None) -> str:
    """The declared version, else a hash of the source without comments, docstrings, decorators and layout.

    Without source (a lambda, the console) the compiled code is hashed instead.
    """
    if version is not None:
        return f"v:{version}"
    inner = innermost(fn)
    result = getattr(inner, "code_text", None)
    if isinstance(result, str):
        # Holdfast made this function from a user's text: the text identifies it, not our code.
        return "t1-" + _digest(result)
    source = source_of(inner)
    if source is not None:
        return "c1-" + source.digest
    code = getattr(inner, "__code__", None)
    if code is not None:
        return "b1-" + _digest(_code_text(code))
    return "n1-" + _digest(
        f"{type(inner).__module__}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"
    )


Compatible = str | Callable[..., Any] | Iterable[str | Callable[..., Any]]
"""Code whose visits other code may continue: the function itself, its declared version, or its mark."""


def compatible_marks(given: Compatible | None) -> frozenset[str]:
    """The marks that are meant: a declared version is marked `v:...`."""
    if given is None:
        return frozenset()
    many = [given] if isinstance(given, str) or callable(given) else list(given)
    found: set[str] = set()
    for one in many:
        found |= {code_fingerprint(one)} if callable(one) else {one, f"v:{one}"}
    return frozenset(found)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:24]


def innermost(fn: Callable[..., Any]) -> Any:
    """The function inside partials, wrappers and bound methods, which has the code."""
    while True:
        if isinstance(fn, partial):
            fn = fn.func
        elif hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__  # type: ignore[attr-defined]
        elif inspect.ismethod(fn):
            fn = fn.__func__
        elif not hasattr(fn, "__code__") and hasattr(type(fn).__call__, "__code__"):
            return type(fn).__call__
        else:
            return fn


def source_of(fn: Any) -> FunctionSource | None:
    code = getattr(fn, "__code__", None)
    if code is None or code.co_name == "<lambda>":
        return None
    return _read(code, code.co_filename)


@lru_cache(maxsize=4096)
def _read(code: CodeType, _file: str) -> FunctionSource | None:
    """Code objects of two files can be equal, so the file is part of the key."""
    try:
        body = parse_module(textwrap.dedent(inspect.getsource(code))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    return FunctionSource(body[0]) if len(body) == 1 and isinstance(body[0], _FunctionNode) else None


def shown_tree(fn: Any) -> _FunctionNode | None:
    """The source of a function; of a lambda, as a function that returns its expression."""
    source = source_of(fn)
    if source is not None:
        return source.tree
    code = getattr(fn, "__code__", None)
    return _lambda(code, code.co_filename) if code is not None and code.co_name == "<lambda>" else None


@lru_cache(maxsize=4096)
def _lambda(code: CodeType, file: str) -> _FunctionNode | None:
    """Found by the place of its expression: several lambdas may be on one line."""
    places = {place for place in code.co_positions() if None not in place}
    found = [node for node in _lambdas(file) if any(_place(part) in places for part in _own_parts(node))]
    if len(found) != 1:
        return None
    (shown,) = found
    made = ast.FunctionDef(
        name="lambda_", args=shown.args, body=[ast.Return(shown.body)], decorator_list=[], returns=None
    )
    # Lines are counted from the function's first, as in the source of any other.
    own = deepcopy(ast.fix_missing_locations(ast.copy_location(made, shown)))
    return cast("_FunctionNode", ast.increment_lineno(own, 1 - shown.lineno))


def _own_parts(node: ast.Lambda) -> Iterator[ast.expr]:
    """Its expression and the parts of it, without those of other lambdas: of `a if b else c` and `not a in b`
    only the parts have places in the compiled code."""
    todo: list[ast.AST] = [node.body]
    while todo:
        part = todo.pop()
        if isinstance(part, ast.expr):
            yield part
        if not isinstance(part, ast.Lambda):
            todo.extend(ast.iter_child_nodes(part))


def _place(node: ast.expr) -> tuple[int | None, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


@lru_cache(maxsize=64)
def _lambdas(file: str) -> tuple[ast.Lambda, ...]:
    try:
        tree = parse_module("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Lambda))


def _normalised(tree: _FunctionNode) -> str:
    kept = _strip(tree)
    kept.decorator_list = []
    return ast.unparse(kept)


def _strip(tree: _FunctionNode) -> _FunctionNode:
    """A copy without docstrings."""
    copy = parse_module(ast.unparse(tree)).body[0]
    assert isinstance(copy, _FunctionNode)
    for node in ast.walk(copy):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return copy


def _code_text(code: CodeType) -> str:
    parts = [code.co_code.hex(), repr(code.co_names)]
    parts += [
        _code_text(const) if isinstance(const, CodeType) else _constant(const) for const in code.co_consts
    ]
    return "\n".join(parts)


def _constant(value: Any) -> str:
    if isinstance(value, frozenset):
        # Its order differs between processes, and the fingerprint must not.
        return f"frozenset({sorted(map(repr, value))})"  # type: ignore[arg-type]
    return repr(value)


def visible_substeps(fn: Callable[..., Any]) -> list[str]:
    """The calls of ctx.step and ctx.ask that the source shows, as `ctx.step (line 3 of the function)`."""
    name = context_name(fn)
    source = source_of(innermost(fn)) if name is not None else None
    if source is None:
        return []
    return [
        f"{name}.{node.func.attr} (line {node.lineno} of the function)"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _SUBSTEPS
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == name
    ]


def visible_writes(fn: Callable[..., Any]) -> frozenset[str]:
    """The fields that the function's own `return {...}` statements name."""
    source = source_of(innermost(fn))
    return source.writes if source is not None else frozenset()


def has_visible_writes_only(fn: Callable[..., Any]) -> bool:
    """Whether the source shows every field that the function sets."""
    source = source_of(innermost(fn))
    return source is not None and source.shows_writes


def _returned_keys(tree: _FunctionNode) -> frozenset[str]:
    names: set[str] = set()
    for value in returned(tree):
        update = update_of(value)
        if update is not None:
            keys = [key.value for key in update.keys if isinstance(key, ast.Constant)]
            names.update(key for key in keys if isinstance(key, str))
    return frozenset(names)


def _shows_keys(tree: _FunctionNode) -> bool:
    """A call or a variable may be a mapping of any names; a constant, an f-string or a comparison is none."""
    return all(_shows(value) for value in returned(tree))


def _shows(value: ast.expr | None) -> bool:
    if value is None or isinstance(value, (ast.Constant, ast.JoinedStr, ast.Compare)):
        return True
    call = outcome_call(value)
    if call is not None:
        plain = not any(each.arg is None for each in call.keywords)
        return plain and (update_of(value) is not None or not _has_update(call))
    return isinstance(value, ast.Dict) and all(isinstance(key, ast.Constant) for key in value.keys)


def outcome_call(value: ast.expr | None) -> ast.Call | None:
    """The call, if it is `Outcome(...)`."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "Outcome":
        return value
    return None


def _has_update(call: ast.Call) -> bool:
    return len(call.args) > 1 or any(each.arg == "update" for each in call.keywords)


def update_of(value: ast.expr | None) -> ast.Dict | None:
    """The changes of the state that are returned, if they are written out."""
    call = outcome_call(value)
    if call is not None:
        named = {each.arg: each.value for each in call.keywords}
        value = call.args[1] if len(call.args) > 1 else named.get("update")
    return value if isinstance(value, ast.Dict) else None


def returned(tree: _FunctionNode) -> Iterator[ast.expr | None]:
    """What the function's own return statements return; of a conditional expression both sides."""
    todo = [node.value for node in function_nodes(tree) if isinstance(node, ast.Return)]
    while todo:
        value = todo.pop()
        if isinstance(value, ast.IfExp):
            todo += [value.body, value.orelse]
        else:
            yield value


def function_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function's body, without those of functions and classes inside it."""
    todo: list[ast.AST] = list(getattr(tree, "body", ()))
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        yield node
        todo.extend(ast.iter_child_nodes(node))
