"""Files as forms of browsers send them (multipart/form-data, RFC 7578), out of a body that is here whole."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from holdfast.api.problems import HttpError

MOST_PARTS: Final = 100
LONGEST_BOUNDARY: Final = 70
_PARAMETER = re.compile(r';\s*([A-Za-z*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))')


class FormPart(msgspec.Struct, frozen=True, kw_only=True):
    """`file`: the name that the sender gave; none: a plain field."""

    name: str
    file: str | None
    media_type: str | None
    data: bytes


def parts_of(content_type: str, body: bytes) -> list[FormPart]:
    """In the order in which they came. Raises HttpError 415 for another type, 422 for what cannot be read."""
    kind, asked = _valued(content_type)
    if kind != "multipart/form-data":
        raise HttpError(
            415,
            "This takes multipart/form-data.",
            code="unsupported_media_type",
            hint="Send fields and files as a form of a browser does.",
        )
    boundary = asked.get("boundary", "")
    if not 0 < len(boundary) <= LONGEST_BOUNDARY or not boundary.isascii():
        raise _broken("its boundary is missing")
    pieces = (b"\r\n" + body).split(b"\r\n--" + boundary.encode())
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise _broken("its end is missing")
    if len(pieces) - 2 > MOST_PARTS:
        raise _broken(f"it has more than {MOST_PARTS} parts")
    return [_part(piece) for piece in pieces[1:-1]]


def _part(piece: bytes) -> FormPart:
    # What follows the boundary on its own line is padding.
    _, line, rest = piece.partition(b"\r\n")
    head, gap, data = rest.partition(b"\r\n\r\n")
    if not line or not gap:
        raise _broken("a part has no head")
    fields = _fields(head)
    kind, said = _valued(fields.get("content-disposition", ""))
    if kind != "form-data" or not said.get("name"):
        raise _broken("a part is no field of a form")
    media = fields.get("content-type")
    return FormPart(
        name=said["name"],
        file=said.get("filename"),
        media_type=None if media is None else _valued(media)[0],
        data=data,
    )


def _fields(head: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in head.decode("utf-8", "replace").split("\r\n"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _valued(header: str) -> tuple[str, dict[str, str]]:
    """The value of a header, and its parameters."""
    found = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(header)}
    # Browsers write a quote in a name as %22.
    given = {name: value.replace('\\"', '"').replace("%22", '"') for name, value in found.items()}
    return header.partition(";")[0].strip().lower(), given


def _broken(why: str) -> HttpError:
    return HttpError(422, f"The form cannot be read: {why}.", code="invalid_input")
