"""Signals that a run or a question may have changed, by the hub that all streams of a server share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from holdfast.api.live.channel import StreamSignal
from holdfast.api.live.hub import hub_of
from holdfast.api.routing import ApiCall

T = TypeVar("T")


@asynccontextmanager
async def run_signal(call: ApiCall, run: str) -> AsyncGenerator[StreamSignal]:
    """Signals on each event of the run. Raises RunNotFoundError."""
    hub, service = hub_of(call.hf), await call.runs()
    channel = hub.join(service, await service.get(run, tenant=call.tenant))
    try:
        yield channel.signal
    finally:
        hub.leave(channel)


@asynccontextmanager
async def questions_signal(call: ApiCall) -> AsyncGenerator[StreamSignal]:
    """Signals on each change of a hold of the tenant."""
    hub = hub_of(call.hf)
    bell = hub.join_tenant(call.tenant)
    try:
        yield bell
    finally:
        hub.leave_tenant(call.tenant)


async def poll_then_wait(
    bell: StreamSignal, look: Callable[[], Awaitable[T | None]], seconds: float
) -> T | None:
    """The result of a look. Without one, looks again after a signal (also one during the look) or a pause."""
    ringing = asyncio.ensure_future(bell.wait(seconds))
    try:
        await asyncio.sleep(0)  # lets the listener subscribe before the first look
        seen = await look()
        if seen is None and seconds > 0:
            await ringing
        return seen
    finally:
        ringing.cancel()
