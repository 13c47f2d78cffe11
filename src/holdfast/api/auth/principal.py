"""The caller of a request, as its credential says."""

from __future__ import annotations

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.types.terms import Actor


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of a request and their tenant, from the credential."""

    actor: Actor
    rights: frozenset[Right]  # with all that they imply
    method: str  # token, session, local, link
    credential: str = ""  # the public id of the token or session, for logs and audit; never the secret
    csrf: str | None = None  # of a session: required for every change

    @property
    def tenant(self) -> str:
        return self.actor.tenant

    def may(self, right: Right) -> bool:
        return right in self.rights
