"""Slips around the questions of a script: what weakens an approval, as far as its source shows it.

The same as the checks of holds say of a graph: a timeout or an error that counts as an approval, a test of
the answer after which the code continues either way, assignees that nobody is, and a form that is not read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from holdfast.frontends.python.code_unread_answers import acts_outside, calls
from holdfast.model.checks.names import QuestionSlip
from holdfast.model.hold_declaration import kind_fault
from holdfast.model.hold_terms import seatless_veto
from holdfast.types.decision_words import YES
from holdfast.types.terms import ApprovalTerms

_LEAVES: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_SETS: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.NamedExpr, ast.Await, ast.Yield, ast.Delete)
_DEFAULTS: Final = ("default", "default_option", "accept")
_DATA: Final = ("data", "response_data")

IsContext = Callable[[ast.expr], bool]


class AskCall(msgspec.Struct, frozen=True):
    """A `ctx.ask` with several options. `name`: the variable that gets its answer."""

    call: ast.Call
    name: str | None

    def given(self, name: str) -> Any:
        """The value of an argument that the source shows; None for another."""
        found = next((each.value for each in self.call.keywords if each.arg == name), None)
        try:
            return None if found is None else ast.literal_eval(found)
        except ValueError:
            return None

    @property
    def options(self) -> tuple[str, ...]:
        """Their ids, if the source shows them."""
        listed = self.given("options")
        each = [o.get("id") if isinstance(o, dict) else o for o in listed] if isinstance(listed, list) else []  # type: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return tuple(str(name) for name in each)  # type: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def question_slips(tree: ast.AST, is_context: IsContext) -> tuple[QuestionSlip, ...]:
    acts = [node.lineno for node in calls(tree, "step", is_context) if acts_outside(node)]
    found: list[QuestionSlip] = []
    for asked in _questions(tree, is_context):
        if len(asked.options) > 1:
            found += _terms(asked)
            if any(line > asked.call.lineno for line in acts):
                found += (*_either_way(tree, asked, acts, is_context), *_form(tree, asked))
    found += _handlers(tree, is_context)
    return tuple(found)


def _questions(tree: ast.AST, is_context: IsContext) -> list[AskCall]:
    names = {
        id(node.value.value): target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Await)
        for target in node.targets[:1]
        if isinstance(target, ast.Name)
    }
    return [AskCall(call, names.get(id(call))) for call in calls(tree, "ask", is_context)]


def _terms(asked: AskCall) -> Iterator[QuestionSlip]:
    line, assignee = asked.call.lineno, asked.given("assignee")
    fault = kind_fault(assignee) if isinstance(assignee, str) else None
    if fault is not None:
        problem, _, fix = fault.partition(": ")
        text = f"its question (line {line} of the function) is for the person {assignee!r}, because {problem}"
        yield QuestionSlip("assignee", text, fix)
    try:
        approval = msgspec.convert(asked.given("approval") or {}, ApprovalTerms)
    except msgspec.ValidationError:
        approval = ApprovalTerms()  # refused when it is asked
    alone = seatless_veto(approval, assignee if isinstance(assignee, str) else None)
    if alone is not None:
        text = f"{alone!r} has a veto and no seat in its question (line {line} of the function)"
        yield QuestionSlip("veto-seat", text, "name them in `of` too, so that they are asked")
    lapse, default = asked.given("on_timeout"), asked.given("default_option")
    if default in asked.options and str(default).casefold() in YES and lapse in _DEFAULTS:
        text = f"the timeout of its question (line {line} of the function) answers {default!r}"
        yield QuestionSlip("approving-default", text, "let it answer with a refusal, or fail")


def _either_way(
    tree: ast.AST, asked: AskCall, acts: list[int], is_context: IsContext
) -> Iterator[QuestionSlip]:
    """`if reply.decision == "reject": log(...)`, and what acts follows: the test decides nothing."""
    tests = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _names(node.test, asked.name)]
    inside = {id(each) for node in tests for each in ast.walk(node.test)}
    read = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == asked.name]
    loads = [each for each in read if isinstance(each.ctx, ast.Load)]
    if not tests or any(id(each) not in inside for each in loads) or not all(map(_falls_through, tests)):
        return
    last = max(node.end_lineno or node.lineno for node in tests)
    if any(line > last for line in acts):
        line = tests[0].lineno
        text = f"it tests the answer (line {line} of the function), and the step behind runs either way"
        yield QuestionSlip("decision-unread", text, "return after a refusal, or put the step under the test")


def _falls_through(test: ast.If) -> bool:
    inner = [each for branch in (test.body, test.orelse) for stmt in branch for each in ast.walk(stmt)]
    return not any(isinstance(each, (*_LEAVES, *_SETS)) for each in inner)


def _names(node: ast.AST, name: str | None) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def _form(tree: ast.AST, asked: AskCall) -> Iterator[QuestionSlip]:
    """A field of the form is read where it was before the question, and the form is not."""
    form = asked.given("form")
    fields: Any = form.get("properties") if isinstance(form, dict) else None  # type: ignore[reportUnknownMemberType]
    if not isinstance(fields, dict) or asked.name is None:
        return
    parts = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and _is(n.value, asked.name)]
    handed = sum(_is(each, asked.name) for each in ast.walk(tree)) > len(parts)
    if handed or any(each.attr in _DATA for each in parts):
        return
    old = next(
        (n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and _is_old(n, asked, fields)), None
    )
    if old is not None:
        where = f"(line {old.lineno} of the function)"
        text = f"it reads {ast.unparse(old)} {where} as it was before the question that fills it in"
        yield QuestionSlip("form-unread", text, f"read what was filled in: {asked.name}.data")


def _is_old(node: ast.Attribute, asked: AskCall, fields: Any) -> bool:
    return node.attr in fields and isinstance(node.value, ast.Name) and node.lineno > asked.call.lineno


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _handlers(tree: ast.AST, is_context: IsContext) -> Iterator[QuestionSlip]:
    """`except Exception: decision = "approve"`: a question that has expired counts as an approval."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try):
            continue
        body = ast.Module(body=node.body, type_ignores=[])
        offered = {each for asked in _questions(body, is_context) for each in asked.options}
        for stmt in (each for handler in node.handlers for each in ast.walk(handler)):
            if not isinstance(stmt, (ast.Assign, ast.AnnAssign, ast.Return)):
                continue
            value = stmt.value
            answer = value.value if isinstance(value, ast.Constant) else None
            if answer in offered and str(answer).casefold() in YES:
                where = f"(line {stmt.lineno} of the function)"
                text = f"an error of its question, as its timeout, counts as {answer!r} {where}"
                yield QuestionSlip("approving-default", text, "take a refusal there, or let the error pass")
