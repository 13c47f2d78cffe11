"""What a guardrail answers when it does not let the state pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Violation(msgspec.Struct, frozen=True):
    """`replace`: the fields to put in place of what was refused, for a guardrail that sanitizes."""

    reason: str
    replace: Mapping[str, Any] | None = None
