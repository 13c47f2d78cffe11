"""`holdfast tokens`: API tokens, made on the machine that has the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.app import Json, Roles, Store, Tenant, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note, print_raw
from holdfast.cli.output.json_output import print_json, print_list
from holdfast.cli.output.tables import print_table
from holdfast.errors import InputError
from holdfast.types.clock import iso, micros
from holdfast.types.duration import DurationError, parse_duration

if TYPE_CHECKING:
    from holdfast.api.auth.tokens import ApiToken

_HEADS = ("token", "who", "tenant", "may", "status", "expires", "last used", "note")
tokens = typer.Typer(
    no_args_is_help=True,
    help="Create, list and revoke API tokens.\n\nPrograms and people use a server with them.",
    epilog="Examples:  holdfast tokens create service:billing --role operator --expires 90d"
    "   ·   holdfast tokens list   ·   holdfast tokens revoke ID",
)
app.add_typer(tokens, name="tokens")


@tokens.command(
    epilog="Examples:  holdfast tokens create user:dana@acme.com --role operator"
    "   ·   holdfast tokens create service:reports --right runs:read --right audit:read --expires 30d"
    "   ·   holdfast tokens create user:root --role admin --right holds:override"
)
def create(
    subject: Annotated[
        str, typer.Argument(help="user:NAME for a person, service:NAME for a program", metavar="WHO")
    ],
    role: Roles = None,
    right: Annotated[
        list[str] | None, typer.Option(help="Grant this right; may be repeated", metavar="RIGHT")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(help="Add to this group; may be repeated", metavar="GROUP"),
    ] = None,
    tenant: Tenant = "default",
    expires: Annotated[Text, typer.Option(help="Lifetime: 90d, 12h, or never", metavar="DURATION")] = "90d",
    note: Annotated[str, typer.Option(help="Note")] = "",
    store: Store = None,
    json: Json = False,
) -> int:
    """Create a token. It is printed once; the store keeps only a digest."""
    return run_async(
        create_token(
            subject,
            roles=role or [],
            rights=right or [],
            groups=group or [],
            tenant=tenant,
            expires=expires,
            note_=note,
            store=store,
            json=json,
        )
    )


@tokens.command(
    "list", epilog="Examples:  holdfast tokens list   ·   holdfast tokens list --tenant acme --all"
)
def list_(
    tenant: Annotated[Text, typer.Option(help="Only tokens of this tenant")] = None,
    every: Annotated[bool, typer.Option("--all", help="Also expired and revoked tokens")] = False,
    store: Store = None,
    json: Json = False,
) -> int:
    """List tokens with rights and last use (to five minutes)."""
    return run_async(list_tokens(tenant=tenant, every=every, store=store, json=json))


@tokens.command(epilog="Example:  holdfast tokens revoke k3v9q2m8x1ab")
def revoke(
    name: Annotated[
        str, typer.Argument(help="Token id, as shown by `list` (not the token itself)", metavar="ID")
    ],
    store: Store = None,
    json: Json = False,
) -> int:
    """Revoke a token and its sessions. Servers apply it within five seconds."""
    return run_async(revoke_token(name, store=store, json=json))


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
    from holdfast.api.auth.grants import CredentialGrant, rights_of
    from holdfast.api.auth.tokens import ApiTokens

    if not roles and not rights:
        raise InputError(
            "a token needs a role or a right.",
            hint="Give --role operator, or --right runs:read.",
        )
    grant = CredentialGrant(
        subject=subject, tenant=tenant, roles=tuple(roles), rights=rights_of(rights), groups=tuple(groups)
    )
    async with open_store_for_command(store, must_exist=False) as hf:
        tokens = ApiTokens(await hf.open())
        until = None if expires in (None, "never") else tokens.store.now() + _length(expires)
        token, text = await tokens.create(grant, by="user:local", expires_at=until, note=note_[:200])
        reply = _token_json(token, None, tokens.store.now())
    if json:
        print_json({**reply, "token": text})
        return Exit.ok
    print_raw(f"{text}\n")
    print_note(f"Shown only now. For {subject} in tenant {tenant}; {_until(until)}.")
    return Exit.ok


async def list_tokens(*, tenant: str | None, every: bool, store: str | None, json: bool) -> Exit:
    """`every`: also expired and revoked tokens."""
    from holdfast.api.auth.tokens import ApiTokens

    async with open_store_for_command(store, must_exist=True) as hf:
        tokens = ApiTokens(await hf.open())
        now = tokens.store.now()
        found = [pair for pair in await tokens.list(tenant) if every or pair[0].is_valid(now)]
    lines = [_token_json(token, used, now) for token, used in found]
    if json:
        print_list(lines)
    elif lines:
        print_table(_HEADS, [_cells(each) for each in lines])
    else:
        print_line("No tokens. Create one: holdfast tokens create user:dana --role operator")
    return Exit.ok


async def revoke_token(name: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.api.auth.tokens import ApiTokens

    async with open_store_for_command(store, must_exist=True) as hf:
        tokens = ApiTokens(await hf.open())
        token = await tokens.revoke(name, by="user:local")
        reply = _token_json(token, None, tokens.store.now())
    if json:
        print_json(reply)
    else:
        print_line(
            f"Token {token.id} of {token.grant.subject} is revoked; servers refuse it within five seconds."
        )
    return Exit.ok


def _length(text: str | None) -> int:
    try:
        return micros(parse_duration(text or ""))
    except DurationError as error:
        raise InputError(f"--expires: {error}.", hint="Write 90d, 12h or never.") from error


def _until(until: int | None) -> str:
    return "it does not expire" if until is None else f"valid until {iso(until)}"


def _token_json(token: ApiToken, used: int | None, now: int) -> dict[str, Any]:
    grant = token.grant
    return {
        "id": token.id,
        "subject": grant.subject,
        "tenant": grant.tenant,
        "roles": list(grant.roles),
        "rights": [str(right) for right in grant.rights],
        "groups": list(grant.groups),
        "status": token.status_at(now),
        "note": token.note,
        "created_at": iso(token.made_at),
        "created_by": token.made_by,
        "expires_at": None if token.expires_at is None else iso(token.expires_at),
        "last_used_at": None if used is None else iso(used),
    }


def _cells(shown: dict[str, Any]) -> tuple[str, ...]:
    may = ", ".join([*shown["roles"], *shown["rights"]])
    expires, used = shown["expires_at"] or "never", shown["last_used_at"] or "never"
    who = (f"hf_{shown['id']}_…", shown["subject"], shown["tenant"])
    return (*who, may, shown["status"], expires, used, shown["note"])
