"""Credentials for tests, made as an operator makes them."""

from __future__ import annotations

from typing import Any

import httpx2

from holdfast.api.auth.grants import CredentialGrant, rights_of
from holdfast.api.auth.sessions import OpenSession, Sessions
from holdfast.api.auth.tokens import ApiTokens
from tests.api.conftest import Server
from tests.deadlines import HANG


async def token(
    server: Server,
    subject: str = "user:dana",
    *roles: str,
    tenant: str = "default",
    rights: tuple[str, ...] = (),
    expires_at: int | None = None,
) -> str:
    tokens = ApiTokens(await server.hf.open())
    grant = CredentialGrant(subject=subject, tenant=tenant, roles=roles, rights=rights_of(rights))
    return (await tokens.create(grant, by="user:test", expires_at=expires_at))[1]


async def session(server: Server, subject: str = "user:dana", *roles: str) -> OpenSession:
    return await Sessions(await server.hf.open()).begin(
        CredentialGrant(subject=subject, roles=roles), how="code"
    )


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def browser(server: Server, opened: OpenSession | None = None) -> httpx2.AsyncClient:
    """Without a token, with cookies."""
    client = httpx2.AsyncClient(base_url=server.serving.address, timeout=HANG)
    if opened is not None:
        client.cookies.set("holdfast_session", opened.id, domain=server.serving.host)
    return client


async def audited(server: Server, action: str, tenant: str = "default") -> list[Any]:
    rows = await (await server.hf.open()).audit(tenant)
    return [row for row in rows if row.action == action]
