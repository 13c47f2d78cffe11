"""API tokens: `hf_ID_SECRET`. The store keeps a digest of the secret; the token itself is shown once.

A server caches a token for at most `FRESH` seconds: that long a token that was revoked on another server may
still be accepted. A new token is valid at once.
"""

from __future__ import annotations

import hmac
import re
import secrets
import string
import time
from hashlib import sha256
from typing import Final

import msgspec

from holdfast.api.auth.grants import SERVER, CredentialGrant, made_for, validate_grant
from holdfast.errors import DocumentChangedError, NotFoundError
from holdfast.store.protocols import Store
from holdfast.types.audit import NewAudit, canonical
from holdfast.types.clock import MICROS
from holdfast.types.document import Document
from holdfast.types.terms import OPERATOR
from holdfast.types.text import clean_text

KIND: Final = "token"
LIFETIME: Final = 90 * 86_400 * MICROS
"""The lifetime of a token whose creator names none."""
USED: Final = "token_used"
FRESH: Final = 5.0
COARSE: Final = 300 * MICROS
"""Accuracy of a token's last use: it must not cost a write for each request."""

LOCAL: Final = "user:local"
"""In `made_by`: the command line."""
_MOST_KNOWN: Final = 10_000
_LETTERS: Final = string.ascii_letters + string.digits
_FORM: Final = re.compile(r"hf_([a-z0-9]{12})_([A-Za-z0-9]{43})\Z")


class ApiToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token without its secret. Times in microseconds."""

    id: str
    digest: str
    grant: CredentialGrant
    made_at: int
    made_by: str
    note: str = ""
    expires_at: int | None = None
    revoked_at: int | None = None

    @property
    def known_grant(self) -> CredentialGrant:
        """The grant with its chain. Tokens of earlier releases have none: `made_by` says who made them."""
        if self.grant.chain is not None:
            return self.grant
        return made_for(self.grant, KIND, by=OPERATOR if self.made_by == LOCAL else self.made_by)

    def is_valid(self, now: int) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def status_at(self, now: int) -> str:
        if self.revoked_at is not None:
            return "revoked"
        return "active" if self.is_valid(now) else "expired"


class ApiTokens:
    def __init__(self, store: Store) -> None:
        self.store = store
        self._known: dict[str, tuple[float, ApiToken]] = {}
        self._used: dict[str, int] = {}

    async def create(
        self, grant: CredentialGrant, *, by: str, expires_at: int | None = None, note: str = ""
    ) -> tuple[ApiToken, str]:
        """The token, and its text, which is not stored. A grant without a chain is made by the operator of
        the store. Raises InputError."""
        validate_grant(grant)
        if grant.chain is None:
            grant = made_for(grant, KIND, by=OPERATOR)
        name = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(12))
        secret = "".join(secrets.choice(_LETTERS) for _ in range(43))
        made = ApiToken(
            id=name,
            digest=_digest(secret),
            grant=grant,
            made_at=self.store.now(),
            made_by=by,
            note=note,
            expires_at=expires_at,
        )
        await self._audit(made, "token_created", by, rights=sorted(grant.all_rights), expires_at=expires_at)
        # `expect=0`: a new document only. A collision of ids must not replace a token.
        await self.store.put_document(_document(made), expect=0)
        return made, f"hf_{name}_{secret}"

    async def check(self, text: str) -> ApiToken | None:
        """None if it is not valid, for any reason: an attacker must not learn which."""
        form = _FORM.match(text)
        if form is None:
            return None
        name, secret = form.groups()
        found = await self.find(name)
        # Constant-time: the duration of a plain comparison tells how much of a guess is right.
        if found is None or not hmac.compare_digest(found.digest, _digest(secret)):
            return None
        if not found.is_valid(self.store.now()):
            return None
        await self._note_use(name)
        return found

    async def list(self, tenant: str | None = None) -> list[tuple[ApiToken, int | None]]:
        """With the last use of each, to five minutes; newest first. None: of all tenants."""
        used = {each.name: int(each.body) for each in await self._all(USED)}
        kept = [msgspec.json.decode(each.body, type=ApiToken) for each in await self._all(KIND)]
        mine = [each for each in kept if tenant is None or each.grant.tenant == tenant]
        return [(each, used.get(each.id)) for each in sorted(mine, key=lambda each: (-each.made_at, each.id))]

    async def revoke(self, name: str, *, by: str, tenant: str | None = None) -> ApiToken:
        """Idempotent. Raises NotFoundError if there is none in this tenant."""
        name = name.removeprefix("hf_").partition("_")[0]
        kept = await self.store.document(SERVER, KIND, name)
        token = None if kept is None else msgspec.json.decode(kept.body, type=ApiToken)
        if kept is None or token is None or (tenant is not None and token.grant.tenant != tenant):
            raise NotFoundError(
                f"there is no token {clean_text(repr(name), 80)}.", hint="`holdfast tokens list` lists them."
            )
        if token.revoked_at is not None:
            return token
        revoked = msgspec.structs.replace(token, revoked_at=self.store.now())
        # The audit entry comes first: it may describe a change that failed, but none is ever missing.
        await self._audit(token, "token_revoked", by)
        # Only the revision that was read: a concurrent change must not be overwritten.
        if await self.store.put_document(_document(revoked), expect=kept.revision) is None:
            raise DocumentChangedError("this token was changed meanwhile.", hint="Try again.")
        self._known.pop(name, None)
        return revoked

    async def valid(self, name: str) -> ApiToken | None:
        """The token, if it is still valid."""
        found = await self.find(name)
        return found if found is not None and found.is_valid(self.store.now()) else None

    async def has_valid(self) -> bool:
        now = self.store.now()
        return any(token.is_valid(now) for token, _ in await self.list())

    async def find(self, name: str) -> ApiToken | None:
        """Unknown names are not cached, so that a new token is valid at once."""
        kept = self._known.get(name)
        if kept is not None and time.monotonic() - kept[0] < FRESH:
            return kept[1]
        asked = time.monotonic()  # before the query: the answer may be as old as this
        document = await self.store.document(SERVER, KIND, name)
        if document is None:
            self._known.pop(name, None)
            return None
        found = msgspec.json.decode(document.body, type=ApiToken)
        # A bound on memory; an empty cache only costs one query per token.
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[name] = (asked, found)
        return found

    async def _note_use(self, name: str) -> None:
        now = self.store.now()
        if now - self._used.get(name, 0) >= COARSE:
            # Before the write: while it is under way, further requests must not write as well. In a separate
            # document, because writing it into the token could undo a concurrent revocation.
            self._used[name] = now
            await self.store.put_document(
                Document(tenant=SERVER, kind=USED, name=name, body=str(now).encode())
            )

    async def _all(self, kind: str) -> list[Document]:
        found: list[Document] = []
        while page := await self.store.documents(SERVER, kind, after=found[-1].name if found else ""):
            found += page
        return found

    async def _audit(self, token: ApiToken, action: str, by: str, **more: object) -> None:
        facts = {"token": token.id, "subject": token.grant.subject, "note": token.note, **more}
        if token.grant.chain:
            facts["chain"] = msgspec.to_builtins(token.grant.chain)
        entry = NewAudit(at=self.store.now(), actor=by, action=action, data=canonical(facts))
        await self.store.append_audit(token.grant.tenant, [entry])


def _digest(secret: str) -> str:
    """A plain hash is enough: a secret of 256 random bits cannot be guessed."""
    return sha256(secret.encode()).hexdigest()


def _document(token: ApiToken) -> Document:
    return Document(tenant=SERVER, kind=KIND, name=token.id, body=msgspec.json.encode(token))
