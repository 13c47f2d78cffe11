"""A worker inside your own program. It serves runs of this and other processes on the store."""

from __future__ import annotations

import asyncio

from refund import refund

from holdfast import Holdfast, Worker


async def main(address: str = "sqlite:.holdfast/background.db") -> None:
    async with Holdfast(address) as hf, Worker(refund, on=hf, concurrency=5):
        service = await hf.service()
        run = await refund.submit({"order_id": "B2", "customer": "c-1", "amount": 900}, on=hf)
        async for event in service.stream(run, poll=0.05):
            print(event.number, event.type, event.node)
            if event.type == "hold.opened":
                print(event.data["prompt"])
                await service.answer(event.data["hold_id"], "approve", by="user:you")


if __name__ == "__main__":
    asyncio.run(main())
