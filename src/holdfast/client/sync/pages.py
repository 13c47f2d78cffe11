"""Reads the pages of a list as one sequence."""

# Written by tools/client.py from src/holdfast/client/aio/pages.py. Do not change it here.

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from holdfast.client.page import Page
from holdfast.client.requests import Request, read
from holdfast.client.sync.transport import Transport

T = TypeVar("T")
AT_ONCE = 100


class Pages(Generic[T]):
    """`for item in pages` requests the next page when needed. `limit`: maximum number of items."""

    def __init__(
        self,
        transport: Transport,
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

    def page(self, cursor: str | None = None, size: int | None = None) -> Page[T]:
        """One page; its `next` is the cursor of the next one."""
        place = self._cursor if cursor is None else cursor
        more = [("limit", str(size or self._size(self._limit)))]
        more += [("cursor", place)] if place is not None else []
        request = msgspec.structs.replace(self._request, query=[*self._request.query, *more])
        return read(self._transport.send(request), Page[self._shape], request)

    def __iter__(self) -> Iterator[T]:
        left, cursor = self._limit, self._cursor
        while left is None or left > 0:
            page = self.page(cursor, self._size(left))
            yield from page.items[:left]
            cursor = page.next
            left = None if left is None else left - len(page.items)
            if cursor is None:
                return

    def all(self) -> list[T]:
        return list(self)

    def first(self) -> T | None:
        """The first item, if there is one."""
        page = self.page(size=1)
        return page.items[0] if page.items else None

    def _size(self, left: int | None) -> int:
        return AT_ONCE if left is None else max(1, min(left, AT_ONCE))
