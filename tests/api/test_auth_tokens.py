from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from inspect import signature
from pathlib import Path

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.api.auth import tokens
from holdfast.api.auth.grants import SERVER, CredentialGrant, require_within
from holdfast.api.auth.rights import ROLES
from holdfast.api.auth.tokens import KIND, ApiTokens
from holdfast.cli.commands.tokens import create
from holdfast.cli.main import run
from holdfast.errors import ForbiddenError
from holdfast.types.terms import MANAGE, Actor
from tests.api.conftest import Server, serving
from tests.api.sign_in import audited, bearer, token
from tests.services import postgres

pytestmark = pytest.mark.anyio


@pytest.mark.covers("SERVER-AUTH-01")
async def test_token_says_who_asks_and_what_they_may(server: Server) -> None:
    text = await token(server, "user:dana", "viewer", tenant="acme")
    said = await server.json("GET", "/v1/session", headers=bearer(text))
    assert (said["subject"], said["tenant"], said["method"]) == ("user:dana", "acme", "token")
    assert set(said["rights"]) == ROLES["viewer"]
    assert said["csrf"] is None


@pytest.mark.covers("SERVER-AUTH-01", "SERVER-SEED-04")
@pytest.mark.covers("PLAIN-WIRE-03")
async def test_stored_token_with_the_older_names_of_rights_keeps_them(server: Server) -> None:
    text = await token(server, "user:dana", rights=("holds:manage", "holds:override", "admin:manage"))
    store = await server.hf.open()
    (kept,) = await store.documents(SERVER, KIND)
    older = kept.body.replace(b"holds:manage", b"scaicore:manage").replace(b"admin:manage", b"admin")
    older = older.replace(b"holds:override", b"scaicore:checkpoint_override")
    assert older != kept.body
    await store.put_document(msgspec.structs.replace(kept, body=older))
    said = await server.json("GET", "/v1/session", headers=bearer(text))
    assert {"holds:manage", "holds:resolve", "holds:override", "admin:manage"} <= set(said["rights"])
    assert not [right for right in said["rights"] if right.startswith("scaicore")]
    made = await server.json(
        "POST",
        "/v1/tokens",
        201,
        headers=bearer(text),
        json={"subject": "user:sam", "rights": ["scaicore:manage"]},
    )
    assert made["rights"] == ["holds:manage", "holds:read", "holds:resolve", "holds:write", "runs:read"]


def test_actor_in_python_may_have_a_right_by_its_older_name() -> None:
    assert Actor(id="user:ada", rights=frozenset({"scaicore:manage", "x"})).rights == {MANAGE, "x"}


@pytest.mark.covers("SERVER-AUTH-01")
async def test_store_keeps_no_token_only_a_digest(server: Server) -> None:
    text = await token(server, "user:dana", "viewer")
    secret = text.rpartition("_")[2]
    store = await server.hf.open()
    (kept,) = await store.documents(SERVER, KIND)
    assert secret.encode() not in kept.body
    assert not [row for row in await store.audit("default") if secret.encode() in row.data]


@pytest.mark.covers("SERVER-AUTH-01")
async def test_whatever_is_not_the_token_is_refused(server: Server) -> None:
    text = await token(server, "user:dana", "admin")
    _, name, secret = text.split("_")
    wrong = [
        f"Bearer hf_{name}_{secret[:-1]}{'a' if secret[-1] != 'a' else 'b'}",
        f"Bearer hf_{'0' * 12}_{secret}",
        f"Bearer hf_{name}_",
        "Bearer \u00e9",
        "Bearer",
        f"Basic {text}",
        text,
    ]
    for each in wrong:
        answer = await server.client.get("/v1/session", headers={"Authorization": each.encode("latin-1")})
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), each
        assert secret not in answer.text
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.covers("SERVER-AUTH-01")
async def test_token_ends_when_it_expires(server: Server) -> None:
    store = await server.hf.open()
    over = await token(server, "user:dana", "admin", expires_at=store.now() - 1)
    soon = await token(server, "user:dana", "admin", expires_at=store.now() + 60_000_000)
    await server.json("GET", "/v1/session", 401, headers=bearer(over))
    await server.json("GET", "/v1/session", 200, headers=bearer(soon))


@pytest.mark.covers("SAFE-EDGE-03")
async def test_token_made_over_http_expires_after_90_days_unless_said(server: Server) -> None:
    who = {"subject": "service:bot", "roles": ["viewer"]}
    for given in ({}, {"expires_at": None}, {"never_expires": False}):
        made = await server.json("POST", "/v1/tokens", 201, json={**who, **given})
        life = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
        assert timedelta(days=89) < life <= timedelta(days=90)
    later = {"expires_at": "2999-01-01T00:00:00Z"}
    made = await server.json("POST", "/v1/tokens", 201, json={**who, **later})
    assert datetime.fromisoformat(made["expires_at"]) == datetime(2999, 1, 1, tzinfo=UTC)
    made = await server.json("POST", "/v1/tokens", 201, json={**who, "never_expires": True})
    assert made.get("expires_at") is None
    await server.json("POST", "/v1/tokens", 422, json={**who, **later, "never_expires": True})
    # The command line has the same default.
    assert signature(create).parameters["expires"].default == "90d"


@pytest.mark.covers("SERVER-AUTH-01")
async def test_token_revoked_here_ends_at_once_and_elsewhere_within_seconds(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = await token(server, "user:dana", "admin")
    here = await server.json("POST", "/v1/tokens", 201, json={"subject": "service:bot", "roles": ["viewer"]})
    for each in (text, here["token"]):
        await server.json("GET", "/v1/session", headers=bearer(each))
    await server.json("DELETE", f"/v1/tokens/{here['id']}")
    await server.json("GET", "/v1/session", 401, headers=bearer(here["token"]))
    await ApiTokens(await server.hf.open()).revoke(text, by="user:test")  # as another process would
    monkeypatch.setattr(tokens, "FRESH", 0.0)
    await server.json("GET", "/v1/session", 401, headers=bearer(text))
    assert [row.actor for row in await audited(server, "token_revoked")] == ["user:local", "user:test"]


@pytest.mark.covers("SERVER-AUTH-01")
async def test_nobody_gives_more_than_they_have(server: Server) -> None:
    mine = bearer(await token(server, "user:dana", "admin"))
    more = {"subject": "user:eve", "rights": ["scaicore:checkpoint_override"]}
    said = await server.json("POST", "/v1/tokens", 403, headers=mine, json=more)
    assert "holds:override" in said["detail"]
    await server.json("POST", "/v1/tokens", 422, headers=mine, json={"subject": "system:expiry"})
    await server.json("POST", "/v1/tokens", 422, headers=mine, json={"subject": "user:eve", "roles": ["god"]})
    assert (await server.json("GET", "/v1/tokens", headers=mine))["items"][0]["subject"] == "user:dana"


@pytest.mark.covers("SERVER-AUTH-04")
async def test_tokens_of_another_tenant_are_not_there(server: Server) -> None:
    acme = bearer(await token(server, "user:dana", "admin", tenant="acme"))
    mine = await server.json("POST", "/v1/tokens", 201, json={"subject": "user:lea", "roles": ["viewer"]})
    assert [each["tenant"] for each in (await server.json("GET", "/v1/tokens", headers=acme))["items"]] == [
        "acme"
    ]
    await server.json("DELETE", f"/v1/tokens/{mine['id']}", 404, headers=acme)
    made = await server.json("POST", "/v1/tokens", 201, headers=acme, json={"subject": "user:bo"})
    assert made["tenant"] == "acme"


async def test_last_use_is_reported_coarsely(server: Server) -> None:
    text = await token(server, "user:dana", "admin")
    assert (await server.json("GET", "/v1/tokens"))["items"][0]["last_used_at"] is None
    for _ in range(3):
        await server.json("GET", "/v1/session", headers=bearer(text))
    store = await server.hf.open()
    assert (await store.document(SERVER, tokens.USED, text.split("_")[1])).revision == 1
    assert (await server.json("GET", "/v1/tokens"))["items"][0]["last_used_at"]


async def test_no_log_has_a_token(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    good = await token(server, "user:dana", "viewer")
    for each in (good, f"{good}x"):
        await server.client.get("/v1/runs", headers=bearer(each))
        await server.client.post("/v1/tokens", headers=bearer(each), json={"subject": each})
    assert caplog.records
    assert good.rpartition("_")[2] not in "".join(map(str, (record.__dict__ for record in caplog.records)))


@pytest.mark.covers("SERVER-AUTH-01")
async def test_tokens_on_postgres_are_those_of_every_server(anyio_backend: str) -> None:
    address = postgres.with_setting(postgres.database(), schema="tokens")
    async with (
        Holdfast(address) as one,
        Holdfast(address) as other,
        serving(one) as first,
        serving(other) as second,
    ):
        text = await token(first, "service:bot", "viewer")
        await second.json("GET", "/v1/session", headers=bearer(text))
        await second.json("DELETE", f"/v1/tokens/{text.split('_')[1]}")
        await second.json("GET", "/v1/session", 401, headers=bearer(text))


# ---------------------------------------------------------------------- the command line


@pytest.mark.covers("SERVER-AUTH-01")
def test_command_makes_lists_and_revokes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", f"sqlite:{tmp_path / 'c.db'}"]
    assert run(["tokens", "create", "service:bot", "--role", "operator", "--expires", "1d", *store]) == 0
    text = capsys.readouterr().out.strip()
    assert text.startswith("hf_")
    assert run(["tokens", "list", "--json", *store]) == 0
    (kept,) = json.loads(capsys.readouterr().out)["items"]
    assert (kept["subject"], kept["roles"], kept["status"]) == ("service:bot", ["operator"], "active")
    assert text.rpartition("_")[2] not in json.dumps(kept)
    assert run(["tokens", "revoke", kept["id"], *store]) == 0
    capsys.readouterr()
    assert run(["tokens", "list", "--json", *store]) == 0
    assert json.loads(capsys.readouterr().out)["items"] == []


WRONG = [
    ["create", "dana", "--role", "viewer"],
    ["create", "user:dana"],
    ["create", "user:dana", "--role", "king"],
    ["create", "user:dana", "--right", "fly"],
    ["create", "user:dana", "--role", "viewer", "--tenant", "_server"],
    ["create", "user:dana", "--role", "viewer", "--expires", "soon"],
    ["revoke", "nobody"],
]


def test_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", f"sqlite:{tmp_path / 'c.db'}"]
    assert run(["tokens", "create", "user:one", "--role", "viewer", *store]) == 0
    for words in WRONG:
        capsys.readouterr()
        assert run(["tokens", *words, *store]) == 2, words
        said = capsys.readouterr()
        assert said.out == ""
        assert "Traceback" not in said.err
        assert len(said.err.strip()) > 20


def test_rights_of_a_role_are_looked_up_at_each_use() -> None:
    assert (
        CredentialGrant(subject="user:a", roles=("viewer", "of another version")).all_rights
        == ROLES["viewer"]
    )


def test_nobody_gives_in_another_tenant() -> None:
    giver = CredentialGrant(subject="user:a", tenant="acme", roles=("admin",)).principal(
        method="token", credential="x", channel="api"
    )
    require_within(CredentialGrant(subject="user:b", tenant="acme", roles=("viewer",)), giver)
    with pytest.raises(ForbiddenError):
        require_within(CredentialGrant(subject="user:b", tenant="other", roles=("viewer",)), giver)
