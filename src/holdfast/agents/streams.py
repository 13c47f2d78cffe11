"""Reads the events of a provider's stream: fields are required by name, so that an invalid event gives a
clear error."""

from __future__ import annotations

from typing import Any, cast

from holdfast.agents.model_http import StreamCutError
from holdfast.errors import ModelReplyError
from holdfast.types.text import clean_text


class EventFields:
    """Reads fields of the events of one endpoint. Raises ModelReplyError that names endpoint and field."""

    def __init__(self, where: str) -> None:
        self.where = where

    def wrong(self, field: str, found: object) -> ModelReplyError:
        return ModelReplyError(
            f"{self.where} sent a reply that cannot be parsed: {field} is {clean_text(repr(found), 80)}.",
            hint="Check that the endpoint supports this provider's protocol.",
            field=field,
        )

    def record(self, event: dict[str, Any], name: str, path: str = "") -> dict[str, Any]:
        found = event.get(name)
        if not isinstance(found, dict):
            raise self.wrong(path + name, found)
        return cast("dict[str, Any]", found)

    def maybe_record(self, event: dict[str, Any], name: str, path: str = "") -> dict[str, Any]:
        return {} if event.get(name) is None else self.record(event, name, path)

    def records(self, event: dict[str, Any], name: str, path: str = "") -> list[dict[str, Any]]:
        found: Any = event.get(name) or []
        if not isinstance(found, list):
            raise self.wrong(path + name, found)
        for each in cast("list[Any]", found):
            if not isinstance(each, dict):
                raise self.wrong(f"{path}{name}[]", each)
        return cast("list[dict[str, Any]]", found)

    def text(self, event: dict[str, Any], name: str, path: str = "") -> str:
        found = event.get(name)
        if found is None:
            return ""
        if not isinstance(found, str):
            raise self.wrong(path + name, found)
        return found

    def count(self, event: dict[str, Any], name: str, path: str = "") -> int:
        found = event.get(name)
        if found is None:
            return 0
        if type(found) is not int or found < 0:
            raise self.wrong(path + name, found)
        return found

    def failed(self, event: dict[str, Any]) -> None:
        """An error in the middle of a stream: the endpoint aborted this answer."""
        error = event.get("error")
        if error is not None:
            message: Any = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error
            raise StreamCutError(f"the endpoint aborted the answer: {clean_text(message or error, 300)}")

    def ended(self, finish: str | None) -> str:
        """A stream without a final event was cut, even if the connection was closed properly."""
        if finish is None:
            raise StreamCutError("the answer ended before its final event")
        return finish
