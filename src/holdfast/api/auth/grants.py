"""The grant of a credential: subject, tenant and rights. Stored with each token and session."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

import msgspec

from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import ROLES, Right, with_implied
from holdfast.errors import ForbiddenError, InputError
from holdfast.types.ids import DEFAULT_TENANT
from holdfast.types.terms import Actor, ChainLink
from holdfast.types.text import clean_text

SERVER: Final = "_server"
"""The tenant of the server's own documents: credentials are looked up before their tenant is known."""

_LONGEST: Final = 200


class CredentialGrant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`roles` are ours (`ROLES`), looked up at each use; `titles` are roles to which holds are assigned.
    `chain`: who made the credential and for whom, and the credential with which they did; None: made before
    this was recorded. `signed_in_at`: when a provider saw the person sign in (microseconds); None: with the
    credential itself."""

    subject: str  # user:dana@acme or service:billing-agent
    tenant: str = DEFAULT_TENANT
    roles: tuple[str, ...] = ()
    rights: tuple[Right, ...] = ()
    groups: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    chain: tuple[ChainLink, ...] | None = None
    signed_in_at: int | None = None
    tenants: tuple[str, ...] = ()  # of a session: all tenants of the person, who can switch between them

    @property
    def all_rights(self) -> frozenset[Right]:
        """With the rights of its roles and implied rights. A role unknown to this version gives none."""
        given = {right for role in self.roles for right in ROLES.get(role, frozenset[Right]())}
        return with_implied(frozenset(given | set(self.rights)))

    def principal(
        self,
        *,
        method: str,
        credential: str,
        channel: str,
        csrf: str | None = None,
        since: int | None = None,
        also: tuple[str, ...] = (),
        began_with: str = "",
    ) -> Principal:
        """`since`: the start of the session; None: it is none. `also`: further names of the subject.
        `began_with`: the token that started the session."""
        rights = self.all_rights
        actor = Actor(
            id=self.subject,
            tenant=self.tenant,
            rights=frozenset(str(right) for right in rights),
            groups=frozenset(self.groups),
            roles=frozenset(self.titles),
            channel=channel,
            auth_method=method,
            chain=self.chain or (),
            also=also,
            credential=credential if method == "token" else began_with,
            session=credential if method == "session" else "",
            signed_in_at=since if since is None or self.signed_in_at is None else self.signed_in_at,
        )
        return Principal(actor=actor, rights=rights, method=method, credential=credential, csrf=csrf)


def made_for(
    grant: CredentialGrant, kind: str, *, by: str, through: tuple[ChainLink, ...] = ()
) -> CredentialGrant:
    """The grant of a new credential. `through`: the chain of the credential with which it is made."""
    return msgspec.structs.replace(grant, chain=(*through, ChainLink(kind=kind, by=by, to=grant.subject)))


def validate_grant(grant: CredentialGrant) -> CredentialGrant:
    """Raises InputError for an invalid subject, tenant or role."""
    kind, colon, name = grant.subject.partition(":")
    if not colon or kind not in ("user", "service") or not _is_name(name):
        raise InputError(
            f"{clean_text(repr(grant.subject), 80)} is not a subject.",
            hint="Write user:NAME for a person, service:NAME for a program.",
        )
    if not _is_name(grant.tenant) or grant.tenant.startswith("_"):
        raise InputError(
            f"{clean_text(repr(grant.tenant), 80)} is not a valid tenant name.",
            hint="Use at most 200 printable characters, and no underscore at the start.",
        )
    unknown = [role for role in grant.roles if role not in ROLES]
    if unknown:
        raise InputError(
            f"there is no role {clean_text(repr(unknown[0]), 80)}.", hint=f"There are {', '.join(ROLES)}."
        )
    return grant


def rights_of(words: Iterable[str]) -> tuple[Right, ...]:
    """Raises InputError for an unknown right."""
    return tuple(dict.fromkeys(map(_right_of, words)))


def _right_of(word: str) -> Right:
    try:
        return Right(word)
    except ValueError:
        near = get_close_matches(word, [str(each) for each in Right], n=1)
        guess = f"Did you mean {near[0]}? " if near else ""
        raise InputError(
            f"there is no right {clean_text(repr(word), 80)}.",
            hint=f"{guess}There are {', '.join(Right)}.",
        ) from None


def require_within(grant: CredentialGrant, giver: Principal) -> None:
    """A caller cannot give more rights than they have, nor rights in another tenant. Raises
    ForbiddenError."""
    if grant.tenant != giver.tenant:
        raise ForbiddenError("this credential cannot create tokens in another tenant.")
    more = sorted(grant.all_rights - giver.rights)
    if more:
        raise ForbiddenError(
            f"{giver.actor.id} does not have the right {more[0]} and cannot grant it.",
            hint="A person who has the right can; so can `holdfast tokens create` on the server.",
        )


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and text.isprintable() and text == text.strip()
