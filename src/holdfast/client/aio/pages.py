"""Reads the pages of a list as one sequence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

import msgspec

from holdfast.client.aio.transport import AsyncTransport
from holdfast.client.page import Page
from holdfast.client.requests import Request, read

T = TypeVar("T")
AT_ONCE = 100


class AsyncPages(Generic[T]):
    """`async for item in pages` requests the next page when needed. `limit`: maximum number of items."""

    def __init__(
        self,
        transport: AsyncTransport,
        request: Request,
        shape: type[T],
        limit: int | None,
        cursor: str | None,
    ) -> None:
        self._transport = transport
        self._request = request
        self._shape = shape
        self._limit = limit
        self._cursor = cursor

    async def page(self, cursor: str | None = None, size: int | None = None) -> Page[T]:
        """One page; its `next` is the cursor of the next one."""
        place = self._cursor if cursor is None else cursor
        more = [("limit", str(size or self._size(self._limit)))]
        more += [("cursor", place)] if place is not None else []
        request = msgspec.structs.replace(self._request, query=[*self._request.query, *more])
        return read(await self._transport.send(request), Page[self._shape], request)

    async def __aiter__(self) -> AsyncIterator[T]:
        left, cursor = self._limit, self._cursor
        while left is None or left > 0:
            page = await self.page(cursor, self._size(left))
            for item in page.items[:left]:
                yield item
            cursor = page.next
            left = None if left is None else left - len(page.items)
            if cursor is None:
                return

    async def all(self) -> list[T]:
        return [item async for item in self]

    async def first(self) -> T | None:
        """The first item, if there is one."""
        page = await self.page(size=1)
        return page.items[0] if page.items else None

    def _size(self, left: int | None) -> int:
        return AT_ONCE if left is None else max(1, min(left, AT_ONCE))
