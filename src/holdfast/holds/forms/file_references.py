"""Files of an answer: references to content that is stored elsewhere, with limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, cast

from holdfast.holds.forms.field_error import FieldValueError
from holdfast.holds.forms.file_types import ACTIVE, agrees, media_type_for_name, sniff_media_type
from holdfast.model.forms.visible_text import show_invisible

MAX_FILE: Final = 25 * 2**20
PARTS: Final = {"sha256", "size", "name", "media_type"}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[^/\\\x00-\x1f\x7f]{1,255}")
_MEDIA = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,100}")

Field = Mapping[str, Any]
Reference = dict[str, Any]
"""`{sha256, size, name, media_type}`: the form of a file in an answer."""


def read_file(field: Field, value: Any) -> Reference:
    """A reference to content that is stored already, with the hash that the decision records."""
    if not isinstance(value, Mapping):
        raise FieldValueError("type", "is not a reference to a file")
    parts = cast("Mapping[str, Any]", value)
    if set(parts) != PARTS:
        raise FieldValueError("type", "a file must have only sha256, size, name and media_type")
    digest, size, name, media = (parts[each] for each in ("sha256", "size", "name", "media_type"))
    if not isinstance(digest, str) or _SHA256.fullmatch(digest) is None:
        raise FieldValueError("format", "its sha256 is not 64 hexadecimal digits")
    _require_size(field, size)
    _require_name(name)
    if not isinstance(media, str) or not _accepted(media, field.get("accept")):
        raise FieldValueError("media_type", f"is of type {str(media)[:100]!r}, which is not accepted")
    return dict(parts)


def file_reference_for(field: Field, name: Any, data: bytes, media_type: Any = None) -> Reference:
    """The reference to a file with this content. Raises FieldValueError if the field does not accept it: too
    large, of another type, or of a type that differs from its name or from what the sender declared."""
    _require_name(name)
    _require_size(field, len(data))
    if not data:
        raise FieldValueError("size", "is empty")
    media = _type_of(name, data, media_type)
    if media in ACTIVE and media not in field.get("accept", ()):
        raise FieldValueError("media_type", f"is {media}, which may run code when it is opened")
    digest = sha256(data).hexdigest()
    return read_file(field, {"sha256": digest, "size": len(data), "name": name, "media_type": media})


def _type_of(name: str, data: bytes, media_type: Any) -> str:
    """By its content; the name, and then the sender, may give a more exact type."""
    found = sniff_media_type(data)
    if media_type is not None and (not isinstance(media_type, str) or not _MEDIA.fullmatch(media_type)):
        raise FieldValueError(
            "media_type", f"{str(media_type)[:100]!r} is not a media type such as image/png"
        )
    for claimed, who in (
        (media_type_for_name(name), f"its name {name!r} says"),
        (media_type, "it is said to be"),
    ):
        if claimed is not None and not agrees(claimed, found):
            raise FieldValueError("media_type", f"{who} {claimed}, and its content is {found}")
    return media_type_for_name(name) or media_type or found


def _require_size(field: Field, size: Any) -> None:
    most = min(field.get("max_size", MAX_FILE), MAX_FILE)
    if type(size) is not int or not 0 <= size <= most:
        raise FieldValueError("size", f"is larger than {most:,} bytes")


def _require_name(name: Any) -> None:
    """Not a path, and without characters that make it look like another name (`gnp.exe` reversed)."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        raise FieldValueError("format", "its name is not a plain file name")
    if show_invisible(name) != name or not _is_text(name):
        raise FieldValueError("format", f"its name has invisible characters: {show_invisible(name)!r}")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _accepted(media: str, wanted: Any) -> bool:
    return not wanted or any(
        media == each or (each.endswith("/*") and media.startswith(each[:-1])) for each in wanted
    )


# ---------------------------------------------------------------------- file fields of a form


def file_field(form: Mapping[str, Any], name: str) -> Field | None:
    """A file field of a form by its name; `items.invoice` is a column of a table."""
    outer, _, column = name.partition(".")
    for section in form["sections"]:
        if section["type"] == "input" and section["field"] == outer:
            columns: list[Field] = section.get("columns", []) if column else [section]
            return next((each for each in columns if _takes_files(each, column or outer)), None)
    return None


def _takes_files(field: Field, name: str) -> bool:
    return field.get("field") == name and field.get("kind") == "file"


def files_in(form: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[tuple[str, Field, Reference]]:
    """The files in an answer: the field's name, its declaration, and the reference."""
    for section in form["sections"]:
        given = values.get(section.get("field", ""))
        if given is None:
            continue
        if section.get("kind") == "file":
            yield section["field"], section, given
        for column in section.get("columns", ()):
            if column["kind"] == "file":
                name = f"{section['field']}.{column['field']}"
                yield from ((name, column, row[column["field"]]) for row in given if column["field"] in row)
