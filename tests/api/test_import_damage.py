"""A damaged or forged import is a 4xx, changes nothing and tells nothing of other tenants."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
import pytest

from holdfast import Flow, Holdfast
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.tokens import ApiTokens
from holdfast.api.routes.all import THEMES
from holdfast.runs.transfer.archive import Archive, pack, unpack
from tests.services import postgres

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-06")]

MARK: Final = "only-acme-knows"
STORES: Final = ("memory", "sqlite", "postgres")
CODES: Final = ("checkpoint_corrupt", "invalid_input", "schema_too_new")
VIEWS: Final = (
    "",
    "/result",
    "/checkpoints",
    "/checkpoints/latest",
    "/timeline",
    "/events",
    "/drawing",
    "/artifacts",
)


def _flow() -> Flow:
    flow = Flow("secretive", effect="pure")
    flow.hold("approve", prompt=f"{MARK}?", options=["approve", "reject"], assignee="user:dana")
    return flow


class Shop:
    """A store with a run of the tenant acme, and a client of an administrator of the tenant other."""

    def __init__(self, hf: Holdfast, client: httpx2.AsyncClient, run: str, hold: str) -> None:
        self.hf, self.client, self.run, self.hold = hf, client, run, hold

    async def bring(self, data: bytes) -> httpx2.Response:
        return await self.client.post("/v1/runs/import", content=data)

    async def acme(self) -> Any:
        store = await self.hf.open()
        return await store.history(self.run), await store.hold(self.hold), await store.audit_head("acme")


@asynccontextmanager
async def shop(address: str = "memory:") -> AsyncIterator[Shop]:
    async with Holdfast(address) as hf:
        app = build(hf, Authenticator(hf), ApiSettings(pace=0), THEMES)
        grant = CredentialGrant(subject="user:eve", tenant="other", roles=("admin",))
        _, text = await ApiTokens(await hf.open()).create(grant, by="user:test")
        done = await _flow().run({"word": MARK}, on=hf, tenant="acme", started_by="user:dana")
        transport = httpx2.ASGITransport(app=app)
        headers = {"Authorization": f"Bearer {text}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://a", headers=headers) as client:
            yield Shop(hf, client, done.run_id, done.holds[0].id)


def _address(store: str, folder: Path) -> str:
    if store == "postgres":
        return postgres.with_setting(postgres.database(), schema="forged")
    return "memory:" if store == "memory" else f"sqlite:{folder / 'f.db'}"


async def exported() -> bytes:
    """A run of the same flow, from another machine."""
    async with Holdfast("memory:") as hf:
        run = (await _flow().run({"word": "mine"}, on=hf, tenant="other")).run_id
        return await (await hf.service()).export_run(run)


def _told(answer: httpx2.Response) -> str:
    # The question is of the flow, which both have.
    return answer.text.replace(f"{MARK}?", "")


async def test_file_with_changed_bytes_is_refused() -> None:
    data, rng = await exported(), random.Random(7)
    async with shop() as found:
        before = await found.acme()
        cuts = [data[: len(data) * at // 25] for at in range(25)]
        flips = []
        for _ in range(60):
            at = rng.randrange(len(data))
            flips.append(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
        for each in [*cuts, *flips, data + b"x", data * 2, b"", b"\x89HFRUN\r\n\xff" + data[9:]]:
            answer = await found.bring(each)
            assert 400 <= answer.status_code < 500, answer.text
            assert answer.json()["code"] in CODES, answer.text
            assert MARK not in _told(answer)
        assert await found.acme() == before
        assert (await found.client.get("/v1/runs")).json()["items"] == []
        assert (await found.bring(data)).status_code == 201


def forged(archive: Archive, foreign: tuple[str, ...]) -> Iterator[tuple[str, Archive]]:
    """Every field of everything in it with values that are of another kind, or of another tenant."""
    history = archive.history
    odd: tuple[Any, ...] = (None, -1, 2**70, "x" * 5000, "\0", b"\xff", [], {"a": 1}, *foreign)
    groups: dict[str, list[Any]] = {
        "run": [history.run], "records": history.records[:2], "events": history.events[:1],
        "holds": history.holds[:1],
    }  # fmt: skip
    for group, rows in groups.items():
        for at, row in enumerate(rows):
            for name in row.__struct_fields__:
                for value in odd:
                    changed = msgspec.structs.replace(row, **{name: value})
                    if group == "run":
                        other = msgspec.structs.replace(history, run=changed)
                    else:
                        whole = list(getattr(history, group))
                        whole[at] = changed
                        other = msgspec.structs.replace(history, **{group: whole})
                    yield (
                        f"{group}[{at}].{name}={value!r:.20}",
                        msgspec.structs.replace(archive, history=other),
                    )
    for name in ("graph",):
        for value in (b"", b"{}", b"[" * 3000, archive.graph[:-1]):
            yield f"{name}={value!r:.20}", msgspec.structs.replace(archive, **{name: value})


@pytest.mark.parametrize(
    ("store", "part"), [("memory", 0.05), *[pytest.param(each, 1, marks=pytest.mark.soak) for each in STORES]]
)
@pytest.mark.timeout(600)
async def test_file_forged_with_correct_digests_tells_nothing(
    tmp_path: Path, store: str, part: float
) -> None:
    """The digests of a file prove nothing about its author."""
    archive = unpack(await exported())
    wrong: list[str] = []
    async with shop(_address(store, tmp_path)) as found:
        before = await found.acme()
        cases = list(forged(archive, (found.run, found.hold)))
        assert len(cases) > 500
        for name, each in random.Random(3).sample(cases, int(len(cases) * part)):
            try:
                data = pack(each)
            except Exception:  # a value that cannot be written at all
                continue
            answer = await found.bring(data)
            if answer.status_code >= 500 or MARK in _told(answer):
                wrong.append(f"{name}: {answer.status_code} {answer.text[:200]}")
            elif answer.status_code == 201:
                run = answer.json()["id"]
                for view in VIEWS:
                    seen = await found.client.get(f"/v1/runs/{run}{view}")
                    if seen.status_code >= 500 or MARK in _told(seen):
                        wrong.append(f"{name} {view}: {seen.status_code} {seen.text[:200]}")
                await (await found.hf.open()).delete_run(run)
        assert await found.acme() == before
    assert not wrong, "\n".join(wrong[:30])


async def test_run_of_another_tenant_is_refused_the_same_whatever_it_is() -> None:
    """Its own file, another file with its id, and a file with the id of its hold."""
    async with shop() as found:
        own = await (await found.hf.service()).export_run(found.run)
        archive = unpack(await exported())
        history = archive.history
        run = msgspec.structs.replace(history.run, id=found.run)
        holds = [msgspec.structs.replace(each, run=found.run) for each in history.holds]
        same_id = msgspec.structs.replace(history, run=run, holds=holds)
        same_hold = msgspec.structs.replace(
            history, holds=[msgspec.structs.replace(each, id=found.hold) for each in history.holds]
        )
        before = await found.acme()
        said = set()
        for data in (own, *(pack(msgspec.structs.replace(archive, history=h)) for h in (same_id, same_hold))):
            answer = (await found.bring(data)).json()
            said.add(
                (answer["status"], answer["code"], answer["detail"].split(" ", 2)[2], answer.get("hint"))
            )
        assert said == {(409, "conflict", "is not imported: one of its ids is taken.", None)}
        assert await found.acme() == before
