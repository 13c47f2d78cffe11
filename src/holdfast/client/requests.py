"""One request as it is sent, and one answer as it came: nothing here touches a network."""

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
    """`keyed`: it does the same only once. `longer`: seconds that the server was asked to wait."""

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
        """Whether it can be sent again when it is unknown whether it was done. A deletion is not: the second
        one would say that there is no such thing."""
        guarded = "If-Match" in self.headers
        return self.keyed or self.method in ("GET", "HEAD") or (self.method == "PUT" and not guarded)


class Reply(msgspec.Struct, kw_only=True):
    status: int
    headers: dict[str, str]
    body: bytes


def path_of(template: str, **parts: str) -> str:
    """Raises InputError for a part that would lead to another path: an empty one, or dots alone."""
    for name, value in parts.items():
        if str(value) in ("", ".", ".."):
            said = repr(value) if value else "empty"
            raise InputError(f"{name} is {said}.", hint="Name what the request is about.")
    try:
        return template.format(**{name: quote(str(value), safe="") for name, value in parts.items()})
    except UnicodeEncodeError as error:
        raise InputError(f"this cannot be part of an address: {error}.") from error


def query_of(given: Query) -> list[tuple[str, str]]:
    """A parameter that is None is left out; one of a list comes as often as it has items."""
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
        raise InputError(f"{value.isoformat()} has no zone.", hint="Give it one: datetime.now(UTC).")
    return value.isoformat()


def body_of(given: Mapping[str, Any], dropped: Mapping[str, Any]) -> bytes:
    """JSON of what was given. `dropped`: fields that are left out where they are None, so that the server's
    own default counts; those in `given` are sent as they are, but for UNSET."""
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
            f"this cannot be sent as JSON: {odd} is no number there.", hint="Send None, or a text."
        )
    return body


def _non_finite(value: Any) -> float | None:
    """A number that JSON has no word for, and that would go as null without a sound."""
    if isinstance(value, float):
        return None if isfinite(value) else value
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = cast("Mapping[Any, Any]", value).values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = cast("Sequence[Any]", value)
    return next((odd for each in parts if (odd := _non_finite(each)) is not None), None)


def _refused(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def read(reply: Reply, shape: type[T], request: Request) -> T:
    """Raises AnswerUnreadableError."""
    try:
        found = msgspec.json.decode(reply.body, type=shape)
    except msgspec.DecodeError as error:
        raise AnswerUnreadableError(
            f"the answer to {request.name} cannot be read: {error}.",
            hint="Is that a Holdfast server, of this version or a newer one?",
            http=reply.status,
        ) from error
    if isinstance(found, Model) and (tag := reply.headers.get("etag")):
        set_etag(found, tag)
    return found


def _require_header(name: str, value: str | None) -> None:
    if value and not (value.isascii() and value.isprintable()):
        raise InputError(f"{name} is {value!r}.", hint="Only printable ASCII can be sent in its place.")


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
    `content`: bytes as they are. `keyed`: it goes under a key, a new one where the caller has none."""
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
