"""A page of a list."""

from __future__ import annotations

from typing import Generic, TypeVar

from holdfast.client.model import Model

T = TypeVar("T")


class Page(Model, Generic[T], kw_only=True):
    """`next` is the cursor of the next page; without it this was the last."""

    items: list[T]
    next: str | None = None
