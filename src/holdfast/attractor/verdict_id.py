"""Whose verdict a text has. Agents repeat what they read, and a request has verdicts of other stages in it.
So each attempt of a stage asks for a verdict with an id of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

FIELD: Final = "verdict_id"
_BEFORE: Final = 80
"""Characters before a verdict by which an answer is known as a part of its request."""


class VerdictRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: of the verdict that was asked for; empty if none was. `asked`: all that the agent was given.
    `strict`: whether a verdict without the id, of which the request has a copy, is no proof. `former`: ids of
    earlier visits and attempts of the stage, which an agent in one conversation may give by mistake."""

    id: str = ""
    asked: str = ""
    strict: bool = False
    former: frozenset[str] = frozenset()

    def is_own(self, fields: Mapping[str, Any], before: str, body: str) -> bool:
        """Whether the answer itself gave this verdict. `before`: the text of the answer before its `body`."""
        given = fields.get(FIELD)
        asked, own = _squeezed(self.asked), _squeezed(body)
        if given not in (None, "", self.id):
            return not self.strict and given in self.former and own not in asked
        if own not in asked:
            return True
        if given:
            # With the placeholder it would be no verdict: a stage of another run has the same id.
            return False
        around = _squeezed(before[-8 * _BEFORE :])[-_BEFORE:]
        is_part = len(around) == _BEFORE and around + own in asked
        return not (self.strict or is_part)

    def is_copy(self, fields: Mapping[str, Any], body: str) -> bool:
        """Whether it is another stage's, by its id and its words."""
        given = fields.get(FIELD)
        is_other = isinstance(given, str) and bool(given) and given not in self.former
        return is_other and _squeezed(body) in _squeezed(self.asked)


def verdict_id(stage: str, restarts: int, visit: int, attempt: int) -> str:
    """`stage`: with the branch around it."""
    return f"v{sha256(f'{stage}/{restarts}.{visit}.{attempt}'.encode()).hexdigest()[:7]}"


def _squeezed(text: str) -> str:
    """White space may be different in a copy."""
    return "".join(text.split())
