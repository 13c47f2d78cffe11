"""Parses multipart/form-data (RFC 7578) from a body that was already read.

With Starlette's parser, not with `request.form()`: the body is read before, with its own limit.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import msgspec
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from holdfast.api.problems import HttpError

MOST_PARTS: Final = 100


class FormPart(msgspec.Struct, frozen=True, kw_only=True):
    """`file`: the file name from the sender; none: a plain field."""

    name: str
    file: str | None
    media_type: str | None
    data: bytes


async def parts_of(content_type: str, body: bytes) -> list[FormPart]:
    """In their order. Raises HttpError 415 for another type, 422 if it cannot be parsed."""
    if content_type.partition(";")[0].strip().lower() != "multipart/form-data":
        raise HttpError(
            415,
            "the body must be multipart/form-data.",
            code="unsupported_media_type",
            hint="Send fields and files like a browser's form.",
        )
    # The parser does not report a truncated form, so its end is checked here.
    if not body.rstrip(b"\r\n").endswith(b"--"):
        raise _broken("its end is missing")
    parser = MultiPartParser(
        Headers({"content-type": content_type}), _pieces(body), max_files=MOST_PARTS, max_fields=MOST_PARTS
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        # KeyError: a part without a Content-Disposition, or a form without a boundary.
        raise _broken(str(getattr(error, "message", error)).rstrip(".")) from error
    try:
        found = [await _part(name, value) for name, value in form.multi_items()]
    finally:
        await form.close()
    if len(found) > MOST_PARTS:
        raise _broken(f"it has more than {MOST_PARTS} parts")
    return found


async def _part(name: str, value: UploadFile | str) -> FormPart:
    if isinstance(value, str):
        return FormPart(name=name, file=None, media_type=None, data=value.encode())
    # Browsers write a quote in a name as %22.
    file = (value.filename or "").replace("%22", '"')
    media = value.content_type
    return FormPart(
        name=name,
        file=file,
        media_type=None if media is None else media.partition(";")[0].strip().lower(),
        data=await value.read(),
    )


async def _pieces(body: bytes) -> AsyncGenerator[bytes]:
    yield body


def _broken(why: str) -> HttpError:
    return HttpError(422, f"the form cannot be read: {why}.", code="invalid_input")
