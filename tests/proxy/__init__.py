"""A TCP proxy that strikes: between a process and its store, it delays, swallows, cuts and refuses.

    async with Proxy("127.0.0.1:5432") as proxy:
        hf = Holdfast(proxy.between("postgresql://postgres@127.0.0.1:5432/holdfast"))
        proxy.delay(0.2, jitter=0.1)            # each piece arrives later, in order
        proxy.swallow()                         # nothing arrives and nobody is told: a cable pulled out
        proxy.cut()                             # every connection is reset, now
        struck = proxy.cut_after(0, "down")     # the next question arrives, its answer does not
        proxy.refuse()                          # nobody new is let in: connection refused
        proxy.switch("127.0.0.1:5433")          # new connections go elsewhere
        proxy.clear()                           # all is well again; what was swallowed arrives now

As a process of its own it lives on when the one under test is killed or blocked: `ProxyProcess`, or
`python -m tests.proxy LISTEN TARGET` with one command a line on its standard input.
"""

from __future__ import annotations

from tests.proxy.process import ProxyProcess
from tests.proxy.proxy import Proxy
from tests.proxy.wire import Counts

__all__ = ["Counts", "Proxy", "ProxyProcess"]
