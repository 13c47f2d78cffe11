"""Documents that people work on: saved as often as they like, deployed when they are ready."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final

import msgspec

from holdfast.documents.deploy import CURRENT, DeployedFlows, SentDocument, checks
from holdfast.errors import DocumentChangedError, FlowNotFoundError, InputError
from holdfast.frontends.document.document import NAME
from holdfast.frontends.document.dump import dump_document
from holdfast.frontends.document.limits import MAX_BYTES
from holdfast.frontends.document.source import Format
from holdfast.types.document import Document

DRAFT: Final = "flow_draft"
MOST_DRAFTS: Final = 500
"""Of a tenant."""
MOST_OF_PERSON: Final = 200
"""Drafts that one person saved last: one alone must not use up what the tenant has."""
MOST_BYTES: Final = 100_000_000
"""Of all drafts of a tenant."""
_LENGTH: Final = 2
_HEAD: Final = 4000
"""Bytes that the head of every draft has at most; an actor has at most a few hundred."""


class WorkingDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The text that people edit. `revision` 0: nothing is saved, it is the text of the current version.
    `version`: the version that new runs start on; None: it was never deployed."""

    name: str
    raw: bytes
    format: Format
    revision: int
    saved_by: str | None
    saved_at: int | None
    version: str | None

    @property
    def etag(self) -> str:
        """With a digest: a draft that was discarded and saved again has an old number."""
        return f"{self.revision}-{sha256(self.raw).hexdigest()[:16]}"


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a draft without its text."""

    format: Format
    by: str
    size: int


def _body(head: _Head, raw: bytes) -> bytes:
    """The head before the text, so that a list reads only the head."""
    known = msgspec.json.encode(head)
    return len(known).to_bytes(_LENGTH, "big") + known + raw


def _head_of(row: Document) -> _Head:
    end = _LENGTH + int.from_bytes(row.body[:_LENGTH], "big")
    return msgspec.json.decode(row.body[_LENGTH:end], type=_Head)


def _text_of(row: Document) -> bytes:
    return row.body[_LENGTH + int.from_bytes(row.body[:_LENGTH], "big") :]


class Drafts:
    """The drafts of one tenant, one for each name: people of a team work on the same one."""

    def __init__(self, deployed: DeployedFlows) -> None:
        self._deployed = deployed
        self._store = deployed.store
        self._tenant = deployed.tenant

    async def page(self, *, after: str = "", limit: int) -> list[WorkingDocument]:
        """By name, without their texts: those that are saved, and those that are deployed."""
        drafts = await self._store.documents(self._tenant, DRAFT, after=after, limit=limit, head=_HEAD)
        deployed = await self._store.documents(self._tenant, CURRENT, after=after, limit=limit)
        saved, current = ({each.name: each for each in rows} for rows in (drafts, deployed))
        names = sorted({*saved, *current})[:limit]
        return [await self._listed(name, saved.get(name), current.get(name)) for name in names]

    async def _listed(self, name: str, row: Document | None, current: Document | None) -> WorkingDocument:
        version = None if current is None else msgspec.json.decode(current.body)["version"]
        if row is not None:
            return _working(name, row, b"", version)
        assert current is not None
        form = await self._deployed.format_of(name, current)
        return WorkingDocument(
            name=name, raw=b"", format=form, revision=0, saved_by=None, saved_at=None, version=version
        )

    async def get(self, name: str) -> WorkingDocument:
        """The saved draft, else the document of the current version. Raises FlowNotFoundError."""
        found = await self._about(name, await self._store.document(self._tenant, DRAFT, name))
        if found.revision == 0 and found.version is None:
            raise FlowNotFoundError(
                f"there is no document {name!r} here.", hint="GET /v1/documents lists them.", flow=name
            )
        return found

    async def _about(self, name: str, row: Document | None) -> WorkingDocument:
        version = await self._deployed.current(name)
        if row is not None:
            return _working(name, row, _text_of(row), version)
        raw, form = (b"", "yaml") if version is None else await self._deployed_text(name, version)
        return WorkingDocument(
            name=name, raw=raw, format=form, revision=0, saved_by=None, saved_at=None, version=version
        )

    async def _deployed_text(self, name: str, version: str) -> tuple[bytes, Format]:
        """The bytes that were sent; written anew if its layout was changed since."""
        sent = await self._deployed.sent(name, version)
        assert sent is not None, "what is current was deployed"
        if not await self._deployed.layout_revision(name, version):
            return sent.raw, sent.format
        document = await self._deployed.document(name, version)
        text = await checks.run(self._tenant, dump_document, document, sent.format)
        return text.encode(errors="surrogatepass"), sent.format

    async def put(self, name: str, sent: SentDocument, *, by: str, expect: int) -> WorkingDocument:
        """Saves the text as it is, with all of its problems: it is work that is not done. Raises InputError
        if it has another name, is too long or one too many, DocumentChangedError if another writer was
        first, RateLimitedError if too many documents of the tenant are being read."""
        if len(sent.raw) > MAX_BYTES:
            raise InputError(f"a document has at most {MAX_BYTES:,} bytes.", hint="Split it into sub-flows.")
        if not re.fullmatch(NAME, name):
            raise InputError(
                f"{name!r} cannot be the name of a document.",
                hint="Use lower-case letters, digits, . _ and -.",
            )
        document = (await checks.run(self._tenant, sent.read)).document
        own = name if document is None else document.data.get("name", name)
        if own != name:
            raise InputError(
                f"the document is named {own!r}, and would be saved as {name!r}.",
                hint="Change its `name`, or save it under that name.",
            )
        head = _Head(format=sent.format, by=by, size=len(sent.raw))
        await self._require_room(name, head)
        row = Document(tenant=self._tenant, kind=DRAFT, name=name, body=_body(head, sent.raw))
        kept = await self._store.put_document(row, expect=expect)
        if kept is None:
            raise DocumentChangedError(
                f"the document {name!r} was saved by another person meanwhile.", hint="Read it again."
            )
        return await self._about(name, kept)

    async def _require_room(self, name: str, head: _Head) -> None:
        """Raises InputError. Of two who save at the same moment, both may pass."""
        rows = await self._store.documents(self._tenant, DRAFT, limit=MOST_DRAFTS + 1, head=_HEAD)
        others = {row.name: _head_of(row) for row in rows}
        before = others.pop(name, None)
        own = sum(each.by == head.by for each in others.values())
        problem = ""
        if before is None and len(others) >= MOST_DRAFTS:
            problem = f"a tenant has at most {MOST_DRAFTS} drafts."
        elif (before is None or before.by != head.by) and own >= MOST_OF_PERSON:
            problem = f"a person has at most {MOST_OF_PERSON} drafts."
        elif sum(each.size for each in others.values()) + head.size > MOST_BYTES:
            problem = f"the drafts of a tenant have at most {MOST_BYTES:,} bytes together."
        if problem:
            raise InputError(problem, hint="Discard drafts that are not needed: DELETE /v1/documents/{name}.")

    async def delete(self, name: str, *, expect: int | None = None) -> None:
        """What is deployed stays. Raises FlowNotFoundError, DocumentChangedError if it is not revision
        `expect` any more."""
        if await self._store.drop_document(self._tenant, DRAFT, name, expect=expect):
            return
        if expect is not None and await self._store.document(self._tenant, DRAFT, name) is not None:
            raise DocumentChangedError(
                f"the document {name!r} was saved by another person meanwhile.", hint="Read it again."
            )
        raise FlowNotFoundError(f"there is no draft of {name!r} here.", flow=name)


def _working(name: str, row: Document, raw: bytes, version: str | None) -> WorkingDocument:
    head = _head_of(row)
    return WorkingDocument(
        name=name, raw=raw, format=head.format, revision=row.revision, saved_by=head.by,
        saved_at=row.updated_at, version=version,
    )  # fmt: skip
