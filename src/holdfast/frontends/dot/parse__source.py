"""From what a file holds to a text that can be read as a pipeline."""

from __future__ import annotations

from typing import Final

from holdfast.errors import PipelineSyntaxError
from holdfast.frontends.dot.document import SourceLocation
from holdfast.frontends.dot.syntax_errors import unreadable_error

LARGEST: Final = 32 * 1024 * 1024
"""Characters of one pipeline."""


def text_of(source: str | bytes, path: str) -> str:
    """Raises `PipelineSyntaxError` for what is no text, or too much of it."""
    text = source if isinstance(source, str) else _decoded(source, path)
    if len(text) > LARGEST:
        raise _too_large(path)
    at = text.find("\0")
    if at >= 0:
        raise unreadable_error(
            "this is not text: it has a NUL character", path, fix=_GIVE_TEXT, place=_place(text, at)
        )
    return text.removeprefix("\ufeff")


_GIVE_TEXT: Final = "give a DOT file, in UTF-8"


def _decoded(data: bytes, path: str) -> str:
    if len(data) > 4 * LARGEST:
        raise _too_large(path)  # whatever its characters are
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(errors="replace")
        byte = f"byte {data[error.start]:#04x}"
        raise unreadable_error(
            f"this is not UTF-8 text: invalid byte {byte}", path, fix=_GIVE_TEXT, place=_place(before)
        ) from None


def _too_large(path: str) -> PipelineSyntaxError:
    return unreadable_error(
        f"the pipeline is longer than the maximum of {LARGEST:,} characters",
        path,
        fix="put large texts into separate files and use @file",
        place=SourceLocation(1, 1),
    )


def _place(text: str, at: int | None = None) -> SourceLocation:
    at = len(text) if at is None else at
    return SourceLocation(text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
