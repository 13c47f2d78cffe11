"""How sure the machine is of a value, as far as it can be read."""

from __future__ import annotations

import math
from typing import Any


def confidence_of(given: Any) -> float | None:
    """0..1 from 0.87, 87, "87%" or "0.87"; None where it is nothing of the kind, and is not shown."""
    percent = isinstance(given, str) and given.strip().endswith("%")
    text = given.strip().removesuffix("%") if isinstance(given, str) else given
    if isinstance(text, bool) or not isinstance(text, (str, int, float)) or len(str(text)) > 40:
        return None
    try:
        number = float(text)
    except (ValueError, OverflowError):
        return None
    if percent or number > 1:
        number /= 100
    return round(number, 6) if math.isfinite(number) and 0 <= number <= 1 else None
