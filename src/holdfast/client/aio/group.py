"""What the groups of methods share."""

from __future__ import annotations

from typing import TypeVar

from holdfast.client.aio.pages import AsyncPages
from holdfast.client.aio.streams import AsyncEventStream
from holdfast.client.aio.transport import AsyncTransport
from holdfast.client.page import Page
from holdfast.client.requests import Request, read

T = TypeVar("T")
Listing = list[T]
"""A whole list. Groups have a method named `list`."""


class AsyncGroup:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def _json(self, request: Request, shape: type[T]) -> T:
        return read(await self._transport.send(request), shape, request)

    async def _list(self, request: Request, shape: type[T]) -> list[T]:
        return (await self._json(request, Page[shape])).items

    async def _none(self, request: Request) -> None:
        await self._transport.send(request)

    async def _bytes(self, request: Request) -> bytes:
        return (await self._transport.send(request)).body

    async def _text(self, request: Request) -> str:
        return (await self._bytes(request)).decode()

    def _pages(
        self, request: Request, shape: type[T], limit: int | None, cursor: str | None
    ) -> AsyncPages[T]:
        return AsyncPages(self._transport, request, shape, limit, cursor)

    def _stream(self, request: Request) -> AsyncEventStream:
        return AsyncEventStream(self._transport, request)
