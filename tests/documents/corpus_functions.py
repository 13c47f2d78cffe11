"""What the documents of the corpus call."""

from __future__ import annotations

from typing import Any

from holdfast import Violation


def add(of: float, more: float = 1) -> float:
    return of + more


async def lookup(customer: str) -> dict[str, Any]:
    return {"customer": customer, "risk": len(customer) / 10}


def fail(why: str = "no line") -> None:
    raise RuntimeError(why)


def small(state: Any) -> Violation | None:
    return Violation("too much", replace={"n": 9}) if state.get("n", 0) > 9 else None


FUNCTIONS = {"add": add, "lookup": lookup, "fail": fail, "small": small}
