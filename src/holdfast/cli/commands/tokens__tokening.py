"""`tokens` and `sign-in`: credentials, made on the machine that has the store."""

from __future__ import annotations

from typing import Any

from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.first_token import sign_in_address
from holdfast.api.auth.grants import CredentialGrant, rights_of
from holdfast.api.auth.sessions import Sessions
from holdfast.api.auth.settings import sign_in_from_environment
from holdfast.api.auth.tokens import ApiToken, ApiTokens
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.screen import print_json, print_line, print_note, print_raw, print_table
from holdfast.errors import InputError
from holdfast.types.clock import iso, micros
from holdfast.types.duration import DurationError, parse_duration

_HEADS = ("token", "who", "tenant", "may", "status", "expires", "last used", "note")


async def create_token(
    subject: str,
    *,
    roles: list[str],
    rights: list[str],
    groups: list[str],
    tenant: str,
    expires: str | None,
    note_: str,
    store: str | None,
    json: bool,
) -> Exit:
    if not roles and not rights:
        raise InputError(
            "A token without a role or a right may do nothing.",
            hint="Give --role operator, or --right runs:read.",
        )
    grant = CredentialGrant(
        subject=subject, tenant=tenant, roles=tuple(roles), rights=rights_of(rights), groups=tuple(groups)
    )
    async with open_store_for_command(store, must_exist=False) as hf:
        tokens = ApiTokens(await hf.open())
        until = None if expires in (None, "never") else tokens.store.now() + _length(expires)
        token, text = await tokens.create(grant, by="user:local", expires_at=until, note=note_[:200])
        told = _token_json(token, None, tokens.store.now())
    if json:
        print_json({**told, "token": text})
        return Exit.ok
    print_raw(f"{text}\n")
    print_note(f"Shown only now. For {subject} in tenant {tenant}; {_until(until)}.")
    return Exit.ok


async def list_tokens(*, tenant: str | None, every: bool, store: str | None, json: bool) -> Exit:
    """`every`: those that are good no more too."""
    async with open_store_for_command(store, must_exist=True) as hf:
        tokens = ApiTokens(await hf.open())
        now = tokens.store.now()
        found = [pair for pair in await tokens.list(tenant) if every or pair[0].is_valid(now)]
    told = [_token_json(token, used, now) for token, used in found]
    if json:
        print_json(told)
    elif told:
        print_table(_HEADS, [_cells(each) for each in told])
    else:
        print_line("No tokens. Make one: holdfast tokens create user:dana --role operator")
    return Exit.ok


async def revoke_token(name: str, *, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        tokens = ApiTokens(await hf.open())
        token = await tokens.revoke(name, by="user:local")
        told = _token_json(token, None, tokens.store.now())
    if json:
        print_json(told)
    else:
        print_line(
            f"Token {token.id} of {token.grant.subject} is revoked; servers refuse it within five seconds."
        )
    return Exit.ok


async def make_sign_in(
    *, subject: str, tenant: str, roles: list[str], address: str, store: str | None, json: bool
) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        settings = sign_in_from_environment()
        where = await sign_in_address(
            Authenticator(hf, settings),
            settings.public_url or address,
            subject=subject,
            tenant=tenant,
            roles=tuple(roles) or ("admin",),
        )
    if json:
        print_json({"sign_in": where})
    else:
        print_raw(f"{where}\n")
        print_note("Good once, for ten minutes.")
    return Exit.ok


async def end_sessions(subject: str, *, tenant: str, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        ended = await Sessions(await hf.open()).end_all(subject, tenant, by="user:local")
    if json:
        print_json({"ended": ended})
    else:
        print_line(
            f"{ended} {'session' if ended == 1 else 'sessions'} of {subject} ended. Tokens are revoked apart."
        )
    return Exit.ok


def _length(text: str | None) -> int:
    try:
        return micros(parse_duration(text or ""))
    except DurationError as error:
        raise InputError(f"--expires: {error}.", hint="Write 90d, 12h or never.") from error


def _until(until: int | None) -> str:
    return "it does not expire" if until is None else f"good until {iso(until)}"


def _token_json(token: ApiToken, used: int | None, now: int) -> dict[str, Any]:
    grant = token.grant
    return {
        "id": token.id,
        "subject": grant.subject,
        "tenant": grant.tenant,
        "roles": list(grant.roles),
        "rights": [str(right) for right in grant.rights],
        "groups": list(grant.groups),
        "status": token.standing(now),
        "note": token.note,
        "created_at": iso(token.made_at),
        "created_by": token.made_by,
        "expires_at": None if token.expires_at is None else iso(token.expires_at),
        "last_used_at": None if used is None else iso(used),
    }


def _cells(told: dict[str, Any]) -> tuple[str, ...]:
    may = ", ".join([*told["roles"], *told["rights"]])
    expires, used = told["expires_at"] or "never", told["last_used_at"] or "never"
    who = (f"hf_{told['id']}_…", told["subject"], told["tenant"])
    return (*who, may, told["status"], expires, used, told["note"])
