"""ID tokens that must not be believed, from a provider whose keys the test has."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import jwt
import msgspec
import pytest

from holdfast.api.auth.oidc import provider as module
from holdfast.api.auth.oidc.flow import grant_of
from holdfast.api.auth.oidc.provider import Provider
from holdfast.api.auth.settings import OidcSettings, parse_sign_in, read_sign_in
from holdfast.api.problems import HttpError
from holdfast.errors import SettingsError
from tests.api.issuer import NONCE, Issuer, issuer_served, private_key

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-AUTH-02")]


@pytest.fixture(scope="module")
async def issuer(anyio_backend: str) -> AsyncIterator[Issuer]:
    async with issuer_served() as made:
        yield made


def provider(issuer: Issuer, **more: Any) -> Provider:
    return Provider(OidcSettings(issuer=issuer.address, client_id="holdfast", **more))


def unsigned(issuer: Issuer) -> str:
    head, body = ({"alg": "none", "kid": "one"}, issuer.claims())
    parts = [jwt.utils.base64url_encode(msgspec.json.encode(each)).decode() for each in (head, body)]
    return f"{'.'.join(parts)}."


def confused(issuer: Issuer) -> str:
    """The public key as a shared secret."""
    head, body = ({"alg": "HS256", "kid": "one"}, issuer.claims())
    parts = [jwt.utils.base64url_encode(msgspec.json.encode(each)) for each in (head, body)]
    import hmac

    sign = hmac.digest(issuer.public(), b".".join(parts), "sha256")
    return b".".join([*parts, jwt.utils.base64url_encode(sign)]).decode()


FORGED: dict[str, Callable[[Issuer], str]] = {
    "unsigned": unsigned,
    "a public key as a secret": confused,
    "somebody else's key": lambda it: it.token(key=it.stranger),
    "an algorithm that is not allowed": lambda it: it.token(alg="RS384"),
    "another issuer": lambda it: it.token(iss="https://evil.example"),
    "another audience": lambda it: it.token(aud="another"),
    "several audiences, none named": lambda it: it.token(aud=["holdfast", "another"]),
    "another party": lambda it: it.token(azp="another"),
    "expired": lambda it: it.token(exp=int(time.time()) - 61),
    "no end": lambda it: it.token(exp=None),
    "no subject": lambda it: it.token(sub=None),
    "of the future": lambda it: it.token(iat=int(time.time()) + 600),
    "another nonce": lambda it: it.token(nonce="another"),
    "no nonce": lambda it: it.token(nonce=None),
    "no token": lambda it: "abc",
    "changed after it was signed": lambda it: it.token()[:-6] + "AAAAAA",
}


@pytest.mark.parametrize("how", FORGED)
async def test_forged_token_is_refused(issuer: Issuer, how: str) -> None:
    with pytest.raises(HttpError) as refused:
        await provider(issuer).claims(FORGED[how](issuer), NONCE)
    assert refused.value.given_status == 401


async def test_good_token_is_believed_and_new_keys_are_found(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = provider(issuer)
    assert (await known.claims(issuer.token(), NONCE))["sub"] == "1"
    assert (await known.claims(issuer.token(aud=["holdfast"], azp="holdfast"), NONCE))["sub"] == "1"
    asked = issuer.asked
    issuer.keys["two"] = private_key("two")
    with pytest.raises(HttpError):  # it has asked just now, and does not at each stranger's word
        await known.claims(issuer.token(kid="two"), NONCE)
    assert issuer.asked == asked
    monkeypatch.setattr(module, "REFETCH_SECONDS", 0.0)
    assert (await known.claims(issuer.token(kid="two"), NONCE))["sub"] == "1"
    assert issuer.asked == asked + 1


@pytest.mark.covers("PLAIN-LIB-06")
async def test_signature_and_claims_are_checked_by_the_libraries(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from authlib.oidc.core import CodeIDToken
    from joserfc import jwt as theirs

    asked: list[str] = []
    decode, validate = theirs.decode, CodeIDToken.validate

    def decoded(*args: Any, **more: Any) -> Any:
        asked.append("signature")
        return decode(*args, **more)

    def validated(self: Any, *args: Any, **more: Any) -> Any:
        asked.append("claims")
        return validate(self, *args, **more)

    monkeypatch.setattr(theirs, "decode", decoded)
    monkeypatch.setattr(CodeIDToken, "validate", validated)
    await provider(issuer).claims(issuer.token(), NONCE)
    assert asked == ["signature", "claims"]


async def test_provider_that_calls_itself_otherwise_is_not_believed(issuer: Issuer) -> None:
    issuer.lies = {"issuer": "https://evil.example"}
    try:
        with pytest.raises(HttpError) as refused:
            await provider(issuer).about()
    finally:
        issuer.lies = {}
    assert refused.value.given_status == 502


async def test_what_is_reported_about_somebody_else_is_not_believed(issuer: Issuer) -> None:
    issuer.lies = {"userinfo_endpoint": f"{issuer.address}/userinfo"}
    try:
        known = provider(issuer)
        assert (await known.userinfo("one", "one"))["groups"] == ["a"]
        with pytest.raises(HttpError) as refused:
            await known.userinfo("two", "one")
    finally:
        issuer.lies = {}
    assert refused.value.given_status == 401


# ---------------------------------------------------------------------- claims and settings


def test_claims_become_who_one_is_here() -> None:
    settings = OidcSettings(
        issuer="https://i.example",
        client_id="holdfast",
        user="preferred_username",
        groups="realm_access.roles",
        titles="titles",
        roles={"operator": ("ops", "sre"), "admin": ("root",)},
    )
    claims = {"preferred_username": "Dana", "realm_access": {"roles": ["sre", 7]}, "titles": "cfo"}
    grant = grant_of(settings, claims)
    assert (grant.subject, grant.tenant) == ("user:Dana", "default")
    assert (grant.roles, grant.groups, grant.titles) == (("member", "operator"), ("sre",), ("cfo",))
    for wrong in ({}, {"preferred_username": ["x"]}, {"preferred_username": "a\nb"}):
        with pytest.raises(HttpError):
            grant_of(settings, wrong)


@pytest.mark.parametrize(
    "raw",
    [
        {"oidc": {"issuer": "http://login.example", "client_id": "x"}},
        {"oidc": {"issuer": "https://login.example"}},
        {"oidc": {"issuer": "https://i.example", "client_id": "x", "algorithms": ["HS256"]}},
        {"oidc": {"issuer": "https://i.example", "client_id": "x", "algorithms": ["none"]}},
        {"oidc": {"issuer": "https://i.example", "client_id": "x", "roles": {"king": ["a"]}}},
        {"oidc": {"issuer": "https://i.example", "client_id": "x", "client_secret": "${NOT_SET}"}},
        {"oidc": {"issuer": "https://i.example", "client_id": "x", "tenants": {"a": "b"}}},
        {"sessions": {"idle": "soon"}},
        {"public_url": "holdfast.example"},
        {"unknown": 1},
    ],
)
def test_settings_that_mean_nothing_or_harm_are_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        parse_sign_in(raw, environment={})


def test_settings_come_from_a_file_without_its_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TEST_SECRET", "s3cret")
    file = tmp_path / "sign-in.toml"
    file.write_text(
        '[oidc]\nissuer = "https://i.example"\nclient_id = "x"\nclient_secret = "${HF_TEST_SECRET}"\n'
    )
    found = read_sign_in(file)
    assert found.oidc is not None
    assert found.oidc.client_secret == "s3cret"
    with pytest.raises(SettingsError, match="cannot be read"):
        read_sign_in(tmp_path / "none.toml")
