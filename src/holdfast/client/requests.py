"""Builds requests and decodes answers; there is no network access here."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

import msgspec

from holdfast.client.model import Model, set_etag
from holdfast.client.problems import AnswerUnreadableError
from holdfast.errors import InputError

T = TypeVar("T")
JSON: Final = "application/json"
Query = Mapping[str, Any]
Files = Mapping[str, bytes | tuple[str, bytes] | tuple[str, bytes, str]]
"""The parts of a form: its bytes, or (file's name, bytes[, media type])."""


class Request(msgspec.Struct, kw_only=True):
    """`keyed`: it has an idempotency key. `longer`: seconds that the server was asked to wait."""

    method: str
    path: str
    query: list[tuple[str, str]] = []
    headers: dict[str, str] = {}
    content: bytes | None = None
    files: Files | None = None
    keyed: bool = False
    longer: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def repeatable(self) -> bool:
        """Whether it can be repeated if its result is unknown. A deletion cannot: the second one would fail
        with not found."""
        guarded = "If-Match" in self.headers
        return self.keyed or self.method in ("GET", "HEAD") or (self.method == "PUT" and not guarded)


class Reply(msgspec.Struct, kw_only=True):
    status: int
    headers: dict[str, str]
    body: bytes


def path_of(template: str, **parts: str) -> str:
    """Raises InputError for a part that would change the path: an empty one, or only dots."""
    for name, value in parts.items():
        if str(value) in ("", ".", ".."):
            text = repr(value) if value else "empty"
            raise InputError(f"{name} is {text}.", hint="Give the id or name.")
    try:
        return template.format(**{name: quote(str(value), safe="") for name, value in parts.items()})
    except UnicodeEncodeError as error:
        raise InputError(f"this cannot be part of an address: {error}.") from error


def query_of(given: Query) -> list[tuple[str, str]]:
    """A parameter that is None is left out; a list is repeated for each item."""
    found: list[tuple[str, str]] = []
    for name, value in given.items():
        many: Sequence[Any] = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)  # pyright: ignore[reportUnknownVariableType, reportAssignmentType]
        found += [(name, _word(each)) for each in many if each is not None]
    return found


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _instant(value) if isinstance(value, datetime) else str(value)


def _instant(value: datetime) -> str:
    if value.tzinfo is None:
        raise InputError(f"{value.isoformat()} has no time zone.", hint="Use one: datetime.now(UTC).")
    return value.isoformat()


def body_of(given: Mapping[str, Any], dropped: Mapping[str, Any]) -> bytes:
    """The JSON body. `dropped`: fields that are left out if they are None, so that the server's default
    applies; those in `given` are sent unchanged, except UNSET."""
    kept = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    kept |= {name: value for name, value in dropped.items() if value is not None}
    return json_of(kept)


def json_of(value: Any) -> bytes:
    try:
        body = msgspec.json.encode(value, enc_hook=_refused)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"this cannot be sent as JSON: {error}.") from error
    if b"null" in body and (odd := _non_finite(value)) is not None:
        raise InputError(
            f"this cannot be sent as JSON: {odd} is not a JSON number.", hint="Send None, or a text."
        )
    return body


def _non_finite(value: Any) -> float | None:
    """A number that JSON does not have (NaN, infinity), and that would silently become null."""
    if isinstance(value, float):
        return None if isfinite(value) else value
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = cast("Mapping[Any, Any]", value).values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = cast("Sequence[Any]", value)
    return next((odd for each in parts if (odd := _non_finite(each)) is not None), None)


def _refused(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def read(reply: Reply, shape: type[T], request: Request) -> T:
    """Raises AnswerUnreadableError."""
    try:
        found = msgspec.json.decode(reply.body, type=shape)
    except msgspec.DecodeError as error:
        raise AnswerUnreadableError(
            f"the answer to {request.name} cannot be read: {error}.",
            hint="Check that it is a Holdfast server of this version or a newer one.",
            http=reply.status,
        ) from error
    if isinstance(found, Model) and (tag := reply.headers.get("etag")):
        set_etag(found, tag)
    return found


def _require_header(name: str, value: str | None) -> None:
    if value and not (value.isascii() and value.isprintable()):
        raise InputError(f"{name} {value!r} is not valid.", hint="Use printable ASCII characters.")


def fresh_key() -> str:
    return str(uuid.uuid4())


def request_of(
    method: str,
    template: str,
    parts: Mapping[str, str] | None = None,
    *,
    query: Query | None = None,
    sent: Mapping[str, Any] | None = None,
    maybe: Mapping[str, Any] | None = None,
    whole: Any = None,
    content: bytes | None = None,
    media: str | None = None,
    files: Files | None = None,
    headers: Mapping[str, str] | None = None,
    keyed: bool = False,
    key: str | None = None,
    if_match: str | None = None,
    wait: float | None = None,
) -> Request:
    """`sent` and `maybe`: the fields of a JSON body, see `body_of`; `whole`: a body that is one value;
    `content`: raw bytes. `keyed`: it has an idempotency key, a new one if the caller gives none."""
    given = dict(headers or {})
    if sent is not None or maybe is not None:
        content, media = body_of(sent or {}, maybe or {}), JSON
    elif whole is not None:
        content, media = json_of(whole), JSON
    if content is not None and media is not None:
        given.setdefault("Content-Type", media)
    if keyed:
        _require_header("idempotency_key", key)
        given["Idempotency-Key"] = key or fresh_key()
    if if_match is not None:
        _require_header("if_match", if_match)
        given["If-Match"] = if_match if if_match.endswith('"') or if_match == "*" else f'"{if_match}"'
    return Request(
        method=method,
        path=path_of(template, **(parts or {})),
        query=query_of(query or {}),
        headers=given,
        content=content,
        files=files,
        keyed=keyed,
        longer=wait or 0.0,
    )
