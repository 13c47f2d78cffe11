"""Whose verdict a text has. Agents repeat what they read, and a request has verdicts of other stages in it.
So each attempt of a stage asks for a verdict with an id of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

FIELD: Final = "verdict_id"
_BEFORE: Final = 80
"""Characters before a verdict by which an answer is known as a part of its request."""


class VerdictRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: of the verdict that was asked for; empty if none was. `asked`: all that the agent was given.
    `strict`: whether a verdict without the id, of which the request has a copy, is no proof."""

    id: str = ""
    asked: str = ""
    strict: bool = False

    def is_own(self, fields: Mapping[str, Any], before: str, body: str) -> bool:
        """Whether the answer itself gave this verdict. `before`: the text of the answer before its `body`."""
        given = fields.get(FIELD)
        if given not in (None, "", self.id):
            return False
        asked, own = _squeezed(self.asked), _squeezed(body)
        if own not in asked:
            return True
        if given:
            # With the placeholder it would be no verdict: a stage of another run has the same id.
            return False
        around = _squeezed(before[-8 * _BEFORE :])[-_BEFORE:]
        is_part = len(around) == _BEFORE and around + own in asked
        return not (self.strict or is_part)

    def is_known(self, fields: Mapping[str, Any]) -> bool:
        """Whether it is another stage's, by its id."""
        given = fields.get(FIELD)
        return isinstance(given, str) and bool(given) and given in self.asked


def _squeezed(text: str) -> str:
    """White space may be different in a copy."""
    return "".join(text.split())
