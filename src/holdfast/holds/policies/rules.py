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
from holdfast.model.expressions import Expr, Resolve, compile_expr
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
        that the hold does not have is false in a comparison, except in a rule that decides without a person:
        it does not match."""
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
            return expression.lenient(resolve)


@lru_cache(maxsize=1024)
def _compiled(when: str) -> Expr:
    return compile_expr(when)
