"""Points for a purchase: one flow that is not safe against crashes, and the fix.

holdfast torture examples/loyalty.py:careless --effects ledger.txt
holdfast torture examples/loyalty.py:careful --effects ledger.txt
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast import Context, Flow


@dataclass
class Purchase:
    order: str = "A17"
    customer: str = "c-9"
    amount: int = 40
    total: int = 0
    letter: str = ""


careless = Flow("careless", state=Purchase)
careful = Flow("careful", state=Purchase)

LEDGER = Path("ledger.txt")  # represents an external service


def book(line: str) -> int:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{line}\n")
    return len(LEDGER.read_text().splitlines())


def book_once(line: str, key: str) -> int:
    """A service that understands keys: a second call with the same key changes nothing."""
    known = LEDGER.read_text().splitlines() if LEDGER.exists() else []
    return len(known) if f"{line} {key}" in known else book(f"{line} {key}")


@careless.node(effect="pure", id="credit")
async def credit_carelessly(s: Purchase) -> dict[str, int]:
    # It is declared `pure`, so it runs again after a crash: the points are booked twice.
    return {"total": book(f"{s.customer} +{s.amount // 10}")}


@careful.node(effect="external", idempotency_key="credit-{{order}}", id="credit")
async def credit_carefully(s: Purchase, ctx: Context) -> dict[str, int]:
    return {"total": book_once(f"{s.customer} +{s.amount // 10}", ctx.idempotency_key)}


for flow, credit in ((careless, credit_carelessly), (careful, credit_carefully)):

    @flow.node(effect="pure")
    async def write(s: Purchase) -> dict[str, str]:
        return {"letter": f"Dear {s.customer}, your bookings: {s.total}."}

    flow.chain(credit, write)


if __name__ == "__main__":
    print(careful.run_sync({"customer": "c-9", "amount": 40}).expect().state.letter)
