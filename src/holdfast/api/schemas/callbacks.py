"""Callbacks on the wire."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from holdfast.api.schemas.common import moment
from holdfast.holds.callbacks import MAX_MESSAGE, callback_name, callback_status
from holdfast.types.hold import HoldRow

Message = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_MESSAGE)]


class CompleteCallback(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`result`: what the run gets. Or `error`: what went wrong; the run gets an error with it and `data`."""

    result: Any = None
    error: Message | None = None
    data: Any = None


class CallbackWire(msgspec.Struct, kw_only=True):
    """`status`: waiting, completed or failed. `expires_at`: then the run gives it up; a heartbeat makes it
    later where the run asks for heartbeats."""

    name: str
    status: str
    expires_at: str | None


class OpenCallback(CallbackWire, kw_only=True):
    """`url`: to POST to; it, or `token`, is all that the sender needs."""

    hold: str
    node: str
    token: str
    url: str


class OpenCallbacks(msgspec.Struct, kw_only=True):
    items: list[OpenCallback]


def callback_wire(row: HoldRow) -> CallbackWire:
    return CallbackWire(
        name=callback_name(row), status=callback_status(row), expires_at=moment(row.expires_at)
    )
