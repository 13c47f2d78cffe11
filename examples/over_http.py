"""A client program, possibly on another machine: it starts a run over HTTP, follows it and answers it.

holdfast serve examples/refund.py         # prints a token
HOLDFAST_TOKEN=... python examples/over_http.py
"""

from __future__ import annotations

import asyncio

from holdfast.client import AsyncClient


async def main() -> None:
    async with AsyncClient() as client:  # HOLDFAST_URL, or this machine
        run = await client.start("refund", {"order_id": "C3", "customer": "c-1", "amount": 900})
        async for event in run.follow():
            print(event.number, event.type, event.data["node"])
            if event.type == "hold.opened":
                print(event.data["data"]["prompt"])
                await run.answer("approve")
        result = await run.result()
        print(result.status, result.state.get("receipt"))


if __name__ == "__main__":
    asyncio.run(main())
