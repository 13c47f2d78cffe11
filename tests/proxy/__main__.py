"""`python -m tests.proxy LISTEN TARGET`: one command a line comes in, the counts go out."""

from __future__ import annotations

import asyncio
import contextlib
import sys

from tests.proxy.process import execute_command
from tests.proxy.proxy import Proxy
from tests.proxy.wire import place


async def _serve(listen: str, target: str) -> None:
    host, port = place(listen)
    async with Proxy(target, host=host, port=port) as proxy:
        print(proxy.address, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(execute_command(proxy, line), flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("python -m tests.proxy LISTEN TARGET, each as host:port; port 0: a free one")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(sys.argv[1], sys.argv[2]))
