"""A rule, as it is written in code or read from a file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec

from holdfast.errors import MissingNameError, NotComparableError
from holdfast.holds.policies.facts import resolver_of
from holdfast.model.expressions import Expr, Resolve, compile_expr, truthy
from holdfast.model.expressions.compile import closure
from holdfast.model.expressions.nodes import AllOf, AnyOf, Node, Not
from holdfast.model.user_code.boundary import call_plain
from holdfast.telemetry import log
from holdfast.types.terms import ApprovalTerms, Rung
from holdfast.types.text import clean_text

Duration = str | int | float | timedelta
When = str | Callable[[Mapping[str, Any]], Any] | None

THRESHOLD: Final = 0.7
JUDGE_TIMEOUT: Final = 30.0


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What happens to the holds that it matches; fields that are not set stay as the flow declares.

    `when`: an expression over the hold's facts, or a function of them; empty matches every hold. `decide`:
    the automatic answer: the id of an option, or `approve` and `reject` for the hold's approving and
    rejecting options. `judge`: is asked first; people decide if it is not sure enough.
    """

    name: str
    when: When = None
    assign: str | None = None
    approval: ApprovalTerms | None = None
    timeout: Duration | None = None
    on_timeout: str | None = None
    default_option: str | None = None
    priority: str | None = None
    reminder: Duration | None = None
    max_reminders: int | None = None
    ladder: tuple[Rung, ...] = ()
    calendar: str | None = None
    strict_assignee: bool | None = None
    tags: tuple[str, ...] = ()
    decide: str | None = None
    reason: str = ""
    judge: str | None = None
    threshold: float = THRESHOLD
    judge_timeout: Duration = JUDGE_TIMEOUT
    guardrails: tuple[str, ...] = ()
    guarded: bool = True

    @property
    def is_automatic(self) -> bool:
        """Whether it may decide without a person."""
        return self.decide is not None or self.judge is not None

    @property
    def binds(self) -> bool:
        """Whether it says how many people must decide, or who must not."""
        approval = self.approval
        return approval is not None and (approval.mode != "any" or bool(approval.exclude))

    def matches(self, facts: Mapping[str, Any]) -> bool:
        """A condition that cannot be evaluated does not match, except in a rule that certain people must
        decide: who starts a run with a text for an amount must not lead around it. Raises nothing. A name
        that the hold does not have is false in a comparison, except in a rule that decides without a person,
        which does not match, and in one that certain people must decide and that names the flow or node,
        which applies."""
        if self.when is None:
            return True
        try:
            if isinstance(self.when, str):
                return self._holds(_compiled(self.when), resolver_of(facts)) is True
            found = call_plain(self.when, facts)
            # A text, a list or a coroutine is no answer: whether the rule applies is not known then.
            if type(found).__name__ in ("bool", "bool_"):
                return bool(found)
            close = getattr(found, "close", None) if inspect.iscoroutine(found) else None
            if close is not None:
                close()
            log.warning(
                "the condition of rule %r returned %s, which is neither True nor False",
                self.name,
                clean_text(repr(found), 200),
            )
        except (MissingNameError, NotComparableError) as error:
            outcome = "applies" if self.binds else "does not match"
            log.info("rule %r %s: %s", self.name, outcome, error.message)
        except Exception as error:
            log.warning("rule %r could not be evaluated: %s: %s", self.name, type(error).__name__, error)
            if isinstance(error, (KeyError, AttributeError)):
                return False  # a function that looks for a name: as in an expression
        # Such a rule never decides by itself (`is_for_people`), so it only makes the hold stricter.
        return self.binds

    def _holds(self, expression: Expr, resolve: Resolve) -> object:
        if not self.binds:
            return expression.evaluate(resolve) if self.is_automatic else expression.lenient(resolve)
        try:
            return expression.evaluate(resolve)
        except MissingNameError:
            if not any(path[0] in _NARROWED for path in expression.names):
                return expression.lenient(resolve)  # a rule about many flows: most holds lack the name
            # It is about this flow or node, so the name may be misspelt: it applies if it could hold.
            return _may_hold(expression.node, resolve) is not False


_NARROWED: Final = frozenset({"flow", "node"})


def _may_hold(node: Node, resolve: Resolve) -> bool | None:
    """None: that depends on names that are missing. Raises NotComparableError."""
    if isinstance(node, Not):
        found = _may_hold(node.operand, resolve)
        return None if found is None else not found
    if isinstance(node, (AllOf, AnyOf)):
        ends = isinstance(node, AnyOf)  # what one operand alone decides
        each = [_may_hold(operand, resolve) for operand in node.operands]
        return ends if ends in each else None if None in each else not ends
    try:
        return truthy(closure(node)(resolve))
    except MissingNameError:
        return None


@lru_cache(maxsize=1024)
def _compiled(when: str) -> Expr:
    return compile_expr(when)
