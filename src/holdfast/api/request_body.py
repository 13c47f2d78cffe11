"""Reads the body of a request: JSON of a declared shape, raw bytes, or a form. Each has a maximum size, and a
field that the operation does not have is an error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec
import msgspec.inspect as shapes
from starlette.datastructures import FormData
from starlette.requests import Request

from holdfast.api.problems import HttpError
from holdfast.api.strict_json import decode_strictly

T = TypeVar("T")
MOST_FILES: Final = 50
MOST_FIELDS: Final = 1000
TYPED_FIELD: Final = "f."
"""Prefix of the form fields that a hold asks for; those of a choice of several may be repeated."""


async def read_body(request: Request, shape: type[T], most: int) -> T:
    """JSON, at most `most` bytes. Raises HttpError."""
    data = await read_bytes(request, most)
    try:
        # A missing body is an empty object, so that routes whose
        # fields are all optional can be called without one.
        found = decode_strictly(data or b"{}", shape)
    except msgspec.ValidationError as error:
        raise invalid_input(error, "the body", shape) from error
    if any(_lenient_structs(shape)):
        _require_known_fields(msgspec.json.decode(data or b"{}"), shape)
    return found


def has_no_body(request: Request) -> bool:
    return request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers


async def require_no_body(request: Request, most: int) -> None:
    """An empty object counts as none. Raises HttpError: what is sent to an operation that reads no body would
    be ignored without a word."""
    if has_no_body(request):
        return
    data = (await read_bytes(request, most)).strip()
    if data in (b"", b"{}"):
        return
    raise HttpError(
        422,
        "this operation has no body, and the request has one.",
        code="invalid_input",
        hint="Send the request without a body.",
        errors=[{"field": "", "code": "unknown", "message": "This operation has no body."}],
    )


async def read_bytes(request: Request, most: int) -> bytes:
    """The raw body; refused as soon as it is too long."""
    length = request.headers.get("content-length", "")
    # Before the first byte is read: the client learns it without sending the whole body.
    if length.isdigit() and int(length) > most:
        raise _too_large("body", most)
    # Counted as well: a chunked body has no length.
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large("body", most)
        parts.append(part)
    return b"".join(parts)


async def read_form(request: Request, most: int) -> FormData:
    """A form of a page; a second call returns the same. Raises HttpError if it is too large or cannot be
    parsed."""
    length = request.headers.get("content-length", "")
    # The parser writes files to the disk, so the size must be known before the first byte is read.
    if not length.isdigit():
        raise HttpError(411, "a form needs its Content-Length.", code="length_required")
    if int(length) > most:
        raise _too_large("form", most)
    try:
        form = await request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS)
    except Exception as error:  # the parser has errors of several libraries
        raise HttpError(400, "the form cannot be read.", code="bad_form") from error
    repeated = repeated_name(name for name, _ in form.multi_items() if not name.startswith(TYPED_FIELD))
    if repeated is not None:
        raise _repeated_field(repeated)
    return form


def single_text(form: FormData, name: str) -> str:
    """The text of a field that has one value. Raises HttpError if the form has it twice."""
    require_single_field(form, name)
    return str(form.get(name) or "")


def require_single_field(form: FormData, name: str) -> None:
    """Raises HttpError."""
    if len(form.getlist(name)) > 1:
        raise _repeated_field(name)


def repeated_name(names: Iterable[str]) -> str | None:
    """The first name that occurs twice."""
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)


def _repeated_field(name: str) -> HttpError:
    return HttpError(
        422,
        f"the form has the field {name!r} more than once.",
        code="repeated_field",
        hint="Send each field once.",
        errors=[{"field": name, "code": "repeated", "message": "The field is repeated."}],
    )


def require_strict(shape: Any, where: str) -> None:
    """Raises TypeError for the body of a route that would ignore a field that it does not know."""
    found = None if shape in (None, bytes) else shapes.type_info(shape)
    if isinstance(found, shapes.StructType) and not found.forbid_unknown_fields:
        raise TypeError(f"{where}: {found.cls.__name__} needs forbid_unknown_fields=True")


def invalid_input(error: msgspec.ValidationError, what: str, shape: Any) -> HttpError:
    """`shape`: what was expected, of which the hint names the fields or values."""
    problem, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    kinds = list(_kinds_at(shapes.type_info(shape), _STEP.findall(field)))
    hint = None
    if problem.startswith("Object contains unknown field"):
        problem = problem.replace("Object contains unknown", "unknown")
        hint = _known(each.encode_name for kind in kinds for each in getattr(kind, "fields", ()))
    elif problem.startswith("Invalid enum value"):
        problem = problem.replace("Invalid enum", "unknown")
        hint = _known(value for kind in kinds for value in _values_of(kind))
    problem = problem[:1].lower() + problem[1:]
    return HttpError(
        422,
        f"{what} does not fit: {problem}{f' (at {field})' if field else ''}.",
        code="invalid_input",
        hint=hint,
        errors=[{"field": field, "code": "invalid", "message": problem}],
    )


_STEP: Final = re.compile(r"[^.\[\]]+|\[[^\]]*\]")


def _kinds_at(kind: shapes.Type, path: list[str]) -> Iterator[shapes.Type]:
    """What may be at this place of a value: of `items[0].name`, what a name is."""
    if isinstance(kind, shapes.Metadata):
        yield from _kinds_at(kind.type, path)
    elif isinstance(kind, shapes.UnionType):
        for each in kind.types:
            yield from _kinds_at(each, path)
    elif not path:
        yield kind
    elif isinstance(kind, shapes.StructType):
        for field in kind.fields:
            if field.encode_name == path[0]:
                yield from _kinds_at(field.type, path[1:])
    else:
        for inner in _inner(kind):
            yield from _kinds_at(inner, path[1:])


def _values_of(kind: shapes.Type) -> Iterable[object]:
    if isinstance(kind, shapes.EnumType):
        return [each.value for each in kind.cls]
    return kind.values if isinstance(kind, shapes.LiteralType) else ()


def _known(found: Iterable[object]) -> str | None:
    texts = sorted({str(each) for each in found})
    return f"Known: {', '.join(texts)}." if texts else None


def _too_large(what: str, most: int) -> HttpError:
    return HttpError(
        413,
        f"the {what} is larger than {most:,} bytes.",
        code="too_large",
        hint="Send less, or a separate file.",
    )


# ---------------------------------------------------------------------- fields that the shape does not have


@cache
def _lenient_structs(shape: Any) -> tuple[type, ...]:
    """Structs in a body that ignore unknown fields: they are also stored, and a newer release may have added
    a field."""
    return tuple({each.cls for each in _structs(shapes.type_info(shape)) if not each.forbid_unknown_fields})


def _structs(kind: shapes.Type, seen: tuple[type, ...] = ()) -> Iterator[shapes.StructType]:
    if isinstance(kind, shapes.StructType):
        if kind.cls in seen:
            return
        yield kind
        seen = (*seen, kind.cls)
    for inner in _inner(kind):
        yield from _structs(inner, seen)


def _inner(kind: shapes.Type) -> list[shapes.Type]:
    if isinstance(kind, shapes.Metadata):
        return [kind.type]
    if isinstance(kind, shapes.StructType):
        return [field.type for field in kind.fields]
    if isinstance(kind, shapes.UnionType):
        return list(kind.types)
    if isinstance(kind, shapes.CollectionType):
        return [kind.item_type]
    return [kind.value_type] if isinstance(kind, shapes.DictType) else []


def _require_known_fields(value: Any, shape: Any) -> None:
    """Raises HttpError. `value` is the plain form of a body that fits `shape`."""
    for place in _unknown(value, shapes.type_info(shape), ""):
        problem = f"unknown field `{place.rpartition('.')[2]}`"
        raise HttpError(
            422,
            f"the body does not fit: {problem} (at {place}).",
            code="invalid_input",
            errors=[{"field": place, "code": "unknown", "message": problem}],
        )


def _unknown(value: Any, kind: shapes.Type, place: str) -> Iterator[str]:
    if isinstance(kind, shapes.StructType) and isinstance(value, dict):
        known = {field.encode_name: field.type for field in kind.fields}
        for name, inner in cast("dict[str, Any]", value).items():
            below = f"{place}.{name}" if place else name
            if name not in known:
                yield below
            else:
                yield from _unknown(inner, known[name], below)
    elif isinstance(kind, shapes.DictType) and isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _unknown(inner, kind.value_type, f"{place}.{name}")
    elif isinstance(kind, shapes.CollectionType) and isinstance(value, list):
        for at, inner in enumerate(cast("list[Any]", value)):
            yield from _unknown(inner, kind.item_type, f"{place}[{at}]")
    elif isinstance(kind, shapes.UnionType | shapes.Metadata):
        # At most one struct in a union, or msgspec would not have been able to decode it.
        for inner in _inner(kind):
            yield from _unknown(value, inner, place)
