"""One effect without a flow: a refund that a person approves, and that happens once."""

from __future__ import annotations

import asyncio
import sys

from holdfast import EffectWaitingError, Holdfast

hf = Holdfast("sqlite:.holdfast/one_effect.db")


@hf.effect(key="refund-{{order}}", hold="Refund {{amount}} for order {{order}}?")
def refund(order: str, amount: int) -> str:
    print(f"the bank pays {amount} for {order}")
    return f"receipt of {order}"


async def approve(hold: str) -> None:
    """In life a person does this, in the inbox, in the web app or with `holdfast answer`."""
    await (await hf.service()).answer(hold, "approve", by="user:dana")


def main(order: str) -> None:
    try:
        refund(order, 250)
    except EffectWaitingError as waiting:
        print(waiting.message)
        asyncio.run(approve(str(waiting.facts["hold"])))
    print(refund(order, 250))  # now it happens
    print(refund(order, 250))  # and never again: the recorded result
    asyncio.run(hf.close())


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "A17")
