"""Whether the credential of a stream is still valid: sockets and streams end without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, TypeVar

from holdfast.api.live.hub import hub_of
from holdfast.errors import HoldfastError, StoreError

if TYPE_CHECKING:
    from starlette.requests import Request

    from holdfast.api.app import RequestAuthenticator
    from holdfast.api.auth.principal import Principal
    from holdfast.api.routing import ApiCall

T = TypeVar("T")


async def is_still_valid(authenticator: RequestAuthenticator, request: Request, principal: Principal) -> bool:
    """`request`: with the credential as it was shown. It has to give the same person and tenant, and no fewer
    rights."""
    try:
        found = await authenticator.authenticate(request)
    except StoreError:
        return True  # nothing new can be read either
    except HoldfastError:
        return False
    if found is None or (found.actor.id, found.tenant) != (principal.actor.id, principal.tenant):
        return False
    return found.rights >= principal.rights


async def while_valid(call: ApiCall, source: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """What the source yields until the caller's credential is revoked or signed out. Checked as a socket
    checks its own: when one of the tenant has ended, and once in each interval of keep-alive comments."""
    beat = call.settings.heartbeat
    async with aclosing(source):
        with hub_of(call.hf).credential_news(call.tenant) as news:
            # Kept while the client reads: a signal that comes meanwhile is not missed.
            ended = asyncio.ensure_future(news.wait(beat))
            batch = asyncio.ensure_future(anext(source, None))
            try:
                while True:
                    await asyncio.wait({batch, ended}, return_when=asyncio.FIRST_COMPLETED)
                    if ended.done():
                        ended = asyncio.ensure_future(news.wait(beat))
                        if not await is_still_valid(
                            call.request.app.state.authenticator, call.request, call.who
                        ):
                            return
                    if batch.done():
                        if (found := batch.result()) is None:
                            return
                        yield found
                        batch = asyncio.ensure_future(anext(source, None))
            finally:
                ended.cancel()
                batch.cancel()
                await asyncio.gather(ended, batch, return_exceptions=True)
