"""What a library does is not done by code of ours beside it (ADR 55), and what stays ours knows more."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from holdfast.api.schemas import multipart
from holdfast.api.schemas.multipart import parts_of
from holdfast.holds.forms import json_schema
from holdfast.holds.forms.file_types import sniff_media_type
from holdfast.holds.forms.schema_budget import schema_budget

SOURCE = Path(__file__).resolve().parents[3] / "src/holdfast"


@cache
def texts() -> dict[str, str]:
    return {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}


def importing(*packages: str) -> list[str]:
    """The modules that import one of these, functions included."""
    wanted = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(packages)})\b", re.M)
    return sorted(name for name, text in texts().items() if wanted.search(text))


@pytest.mark.covers("PLAIN-LIB-01")
def test_json_schema_is_checked_by_the_library_but_for_what_the_decision_names() -> None:
    made = json_schema._validator()
    theirs = jsonschema.Draft202012Validator.VALIDATORS
    ours = {name for name, check in made.VALIDATORS.items() if check is not theirs[name]}
    with schema_budget():
        assert type(made({})).__module__.split(".")[0] in ("jsonschema", "abc")
    assert ours == {
        "required", "additionalProperties", "items", "prefixItems", "properties", "uniqueItems",
        "multipleOf", "pattern", "enum", "const", "anyOf", "oneOf",
    }  # fmt: skip
    assert len(made.VALIDATORS) > 2 * len(ours)


@pytest.mark.covers("PLAIN-LIB-01")
def test_every_problem_with_an_answer_is_an_error_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    made = json_schema._validator()

    class Watched:
        def __init__(self, schema: Any) -> None:
            self.own = made(schema)

        def iter_errors(self, value: Any) -> Any:
            asked.append(value)
            return self.own.iter_errors(value)

    monkeypatch.setattr(json_schema, "_validator", lambda: Watched)
    assert json_schema.problems_in({"age": -1}, {"properties": {"age": {"minimum": 0}}}) != []
    assert asked == [{"age": -1}]


BODY = b'--x\r\nContent-Disposition: form-data; name="a"; filename="f.txt"\r\n\r\nhello\r\n--x--\r\n'


@pytest.mark.anyio
@pytest.mark.covers("PLAIN-LIB-03")
async def test_multipart_bodies_are_read_by_the_parser_of_starlette(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    class Watched(multipart.MultiPartParser):
        def __init__(self, headers: Any, stream: AsyncIterator[bytes], **limits: Any) -> None:
            async def seen() -> AsyncIterator[bytes]:
                async for piece in stream:
                    read.append(piece)
                    yield piece

            super().__init__(headers, seen(), **limits)  # type: ignore[arg-type]

    assert multipart.MultiPartParser.__module__ == "starlette.formparsers"
    monkeypatch.setattr(multipart, "MultiPartParser", Watched)
    (part,) = await parts_of("multipart/form-data; boundary=x", BODY)
    assert (part.name, part.file, part.data) == ("a", "f.txt", b"hello")
    assert b"".join(read) == BODY


@pytest.mark.covers("PLAIN-LIB-03")
def test_no_module_takes_multipart_bodies_apart_itself() -> None:
    texts = {path.name: path.read_text("utf-8") for path in (SOURCE / "api").rglob("*.py")}
    assert [
        name for name, text in texts.items() if re.search(r"split\(.*boundary|partition\(.*boundary", text)
    ] == []
    assert [name for name, text in texts.items() if "formparsers" in text] == ["multipart.py"]


@pytest.mark.covers("PLAIN-LIB-04")
def test_no_module_reads_http_from_a_socket_itself() -> None:
    calls = re.compile(r"asyncio\.start_server\(|BaseHTTPRequestHandler|socketserver")
    assert [name for name, text in texts().items() if calls.search(text)] == []
    assert "runs/worker/health_server.py" in importing("uvicorn")
    assert "runs/worker/health_server.py" in importing("starlette")


@pytest.mark.covers("PLAIN-LIB-05")
@pytest.mark.parametrize(
    ("content", "found"),
    [
        # What `filetype` 1.2 does not know, and what decides whether a file is dangerous.
        (b"\xcf\xfa\xed\xfe" + bytes(40), "application/x-executable"),
        (b"\xca\xfe\xba\xbe" + bytes(40), "application/x-executable"),
        (b"#!/bin/sh\nrm -r .\n", "text/x-shellscript"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(40), "application/x-ole-storage"),
        (b"\x00\x00\x00\x18ftypzzzz" + bytes(40), "video/mp4"),
        (b"  <!doctype html><p>", "text/html"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"plain words\n", "text/plain"),
    ],
)
def test_kinds_of_files_are_found_by_signatures_of_ours(content: bytes, found: str) -> None:
    assert sniff_media_type(content) == found
    assert importing("filetype", "puremagic", "magic") == []


@pytest.mark.covers("PLAIN-LIB-06")
def test_tokens_are_checked_by_the_library_and_no_module_signs_or_verifies_them_itself() -> None:
    assert importing("jwt") == []
    assert importing("authlib", "joserfc") == ["api/auth/oidc/provider.py"]
