"""What the groups of methods share."""

# Written by tools/client.py from src/holdfast/client/aio/group.py. Do not change it here.

from __future__ import annotations

from typing import TypeVar

from holdfast.client.page import Page
from holdfast.client.requests import Request, read
from holdfast.client.sync.pages import Pages
from holdfast.client.sync.streams import EventStream
from holdfast.client.sync.transport import Transport

T = TypeVar("T")
Listing = list[T]
"""A whole list. Groups have a method named `list`."""


class Group:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _json(self, request: Request, shape: type[T]) -> T:
        return read(self._transport.send(request), shape, request)

    def _list(self, request: Request, shape: type[T]) -> list[T]:
        return (self._json(request, Page[shape])).items

    def _none(self, request: Request) -> None:
        self._transport.send(request)

    def _bytes(self, request: Request) -> bytes:
        return (self._transport.send(request)).body

    def _text(self, request: Request) -> str:
        return (self._bytes(request)).decode()

    def _pages(self, request: Request, shape: type[T], limit: int | None, cursor: str | None) -> Pages[T]:
        return Pages(self._transport, request, shape, limit, cursor)

    def _stream(self, request: Request) -> EventStream:
        return EventStream(self._transport, request)
