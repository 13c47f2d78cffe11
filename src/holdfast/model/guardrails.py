"""What a guardrail returns when it rejects the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Violation(msgspec.Struct, frozen=True):
    """`replace`: new values for the rejected fields, for a guardrail that sanitizes."""

    reason: str
    replace: Mapping[str, Any] | None = None
