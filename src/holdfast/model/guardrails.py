"""What a guardrail returns when it rejects the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

_UNNAMED: Final = "the guardrail was violated"


class Violation(msgspec.Struct, frozen=True):
    """`replace`: new values for the rejected fields, for a guardrail that sanitizes."""

    reason: str
    replace: Mapping[str, Any] | None = None


def to_violation(result: Any) -> Violation:
    """Of what a check returned. A text is the reason; its method `replace` is no replacement."""
    reason = result if isinstance(result, str) else getattr(result, "reason", None)
    replace = getattr(result, "replace", None)
    return Violation(str(reason or _UNNAMED), None if callable(replace) else replace)
