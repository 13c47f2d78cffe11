"""What a person has chosen for themselves: language, time zone, theme, keys, notifications."""

from __future__ import annotations

from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from holdfast.api.auth.rights import Access
from holdfast.api.routing import ApiCall, ApiReply, Routes
from holdfast.errors import ConflictError, InputError
from holdfast.holds.notify.choices import KIND, NoticeChoices
from holdfast.holds.permissions.assignees import person_key
from holdfast.types.document import Document

routes = Routes("session")

Language = Annotated[str, msgspec.Meta(pattern=r"^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$", max_length=35)]


class Preferences(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """None: what the browser says. `shortcuts`: whether single letters are keys."""

    language: Language | None = None
    time_zone: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    theme: Literal["system", "light", "dark"] = "system"
    shortcuts: bool = True
    notifications: NoticeChoices = msgspec.field(default_factory=NoticeChoices)


@routes.get("/me/preferences", needs=Access.signed_in)
async def get_preferences(call: ApiCall) -> ApiReply[Preferences]:
    """Your own. Its ETag changes with each of your changes."""
    found, revision = await _read(call)
    return ApiReply(body=found, etag=str(revision))


@routes.put("/me/preferences", needs=Access.signed_in, guarded=True, raises=(InputError, ConflictError))
async def put_preferences(call: ApiCall, body: Preferences) -> ApiReply[Preferences]:
    """All of them at once; what is left out gets its default."""
    _require_zone(body.time_zone)
    _, revision = await _read(call)
    call.require_match(str(revision))
    kept = Document(
        tenant=call.tenant, kind=KIND, name=person_key(call.actor.id), body=msgspec.json.encode(body)
    )
    store = await call.hf.open()
    stored = await store.put_document(kept, expect=revision)
    if stored is None:
        raise ConflictError("your preferences were changed elsewhere meanwhile.", hint="Read them again.")
    return ApiReply(body=body, etag=str(stored.revision))


def _require_zone(name: str | None) -> None:
    try:
        ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"{name!r} is not a time zone.", hint="Write a name such as Europe/Berlin."
        ) from None


async def _read(call: ApiCall) -> tuple[Preferences, int]:
    store = await call.hf.open()
    kept = await store.document(call.tenant, KIND, person_key(call.actor.id))
    if kept is None:
        return Preferences(), 0
    return msgspec.json.decode(kept.body, type=Preferences), kept.revision
