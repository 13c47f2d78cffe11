"""Accounts of a NATS server by signed tokens (operator, account, user), as `nsc` makes them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import nkeys

_LIMITS = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
_JETSTREAM = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)


class _Keys:
    def __init__(self, prefix: int) -> None:
        self.seed: bytes = nkeys.encode_seed(os.urandom(32), prefix)
        self.pair = nkeys.from_seed(bytearray(self.seed))
        self.public: str = self.pair.public_key.decode()

    def signed(self, about: _Keys, kind: str, **claims: Any) -> str:
        body = {
            "iat": int(time.time()), "iss": self.public, "sub": about.public, "name": kind,
            "nats": {"type": kind, "version": 2, **claims},
        }  # fmt: skip
        body["jti"] = (
            base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        )
        parts = [_text({"typ": "JWT", "alg": "ed25519-nkey"}), _text(body)]
        return ".".join([*parts, _plain(self.pair.sign(".".join(parts).encode()))])


def _text(value: dict[str, Any]) -> str:
    return _plain(json.dumps(value).encode())


def _plain(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class NatsAccounts(NamedTuple):
    """`config`: of a server that lets in only users of one account. `credentials`: the file of one of them;
    `foreign`: that of a user whom another account has signed."""

    config: Path
    credentials: Path
    foreign: Path


def make_accounts(folder: Path) -> NatsAccounts:
    folder.mkdir(parents=True, exist_ok=True)
    operator, system, account, stranger = (
        _Keys(prefix) for prefix in (nkeys.PREFIX_BYTE_OPERATOR, *[nkeys.PREFIX_BYTE_ACCOUNT] * 3)
    )
    signed = {
        system.public: operator.signed(system, "account", limits=_LIMITS),
        account.public: operator.signed(account, "account", limits={**_LIMITS, **_JETSTREAM}),
    }
    preload = "\n".join(f"  {name}: {text}" for name, text in signed.items())
    config = folder / "accounts.conf"
    config.write_text(
        f"operator: {operator.signed(operator, 'operator')}\nsystem_account: {system.public}\n"
        f"resolver: MEMORY\nresolver_preload: {{\n{preload}\n}}\n"
    )
    return NatsAccounts(
        config, _credentials(folder / "user.creds", account), _credentials(folder / "x.creds", stranger)
    )


def _credentials(path: Path, account: _Keys) -> Path:
    user = _Keys(nkeys.PREFIX_BYTE_USER)
    token = account.signed(user, "user", subs=-1, data=-1, payload=-1)
    path.write_text(
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
    )
    path.chmod(0o600)
    return path
