"""A token for one server process: created at its start, valid until its end."""

from __future__ import annotations

import hmac
import secrets

import msgspec
from starlette.requests import Request

from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import Right, with_implied
from holdfast.api.problems import HttpError
from holdfast.types.terms import OPERATOR, ChainLink, operator


class LocalToken:
    """Its holder may do everything that an operator may on their own machine."""

    def __init__(self, token: str | None = None) -> None:
        self.token = token or f"hf_{secrets.token_urlsafe(24)}"
        actor = operator(channel="api")
        made = ChainLink(kind="token", by=OPERATOR, to=actor.id)
        self._principal = Principal(
            actor=msgspec.structs.replace(actor, chain=(made,), signed_in_at=None),
            rights=with_implied(frozenset({Right.admin})),
            method="local",
        )

    def by_token(self, given: str) -> Principal | None:
        return self._principal if hmac.compare_digest(given.encode(), self.token.encode()) else None

    async def authenticate(self, request: Request) -> Principal | None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if not scheme:
            return None
        found = self.by_token(given.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise HttpError(401, "this token is not valid.", code="unauthenticated")
        return found

    async def note_refusal(
        self, request: Request, path: str, principal: Principal | None, error: HttpError, request_id: str
    ) -> None:
        """Refusals are not recorded: the only user is the owner."""
