"""Encryption of a hold's later life: comments, decisions, the audit, messages, documents (D-38)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast
from holdfast.checkpoint.keys import StaticKeys
from holdfast.errors import InputError, KeyMissingError
from holdfast.runs.encryption import store as encrypted
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.store.protocols import Store
from holdfast.testing.conformance.audit import require_whole
from holdfast.types.audit import NewAudit
from holdfast.types.document import Document
from holdfast.types.hold import HoldChange, HoldFilter, HoldId, HoldKey, HoldRow, Note
from holdfast.types.outbox import OutboxMessage
from tests.storage.canary import CANARY, found_on_disk, ring, turned, without

pytestmark = pytest.mark.anyio

SAID = f'{{"text":"{CANARY}"}}'.encode()


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'h.db'}"


def asking() -> Flow:
    flow = Flow("asking", effect="pure")

    async def read(s: dict[str, Any]) -> dict[str, Any]:
        return {}

    flow.edge(flow.node()(read), flow.hold("ask", prompt="May {{text}} go?", options=["yes", "no"]))
    return flow


async def asked(hf: Holdfast, text: str = CANARY) -> HoldId:
    return HoldId((await asking().run({"text": text}, on=hf)).holds[0].id)


async def lived(store: Store, hold: HoldId) -> None:
    """Everything that can happen to a hold, each with the word."""
    row = await store.hold(hold)
    assert row is not None
    note = Note(hold=hold, kind="comment", slot="1", person="user:ada", at=1, body=SAID)
    said = NewAudit(at=1, actor="user:ada", action="commented", hold=hold, run=row.run, data=SAID)
    placed = HoldChange(
        hold=hold,
        version=row.version,
        at=1,
        fields={"placed": SAID, "placed_by": "user:ada", "placed_until": 9},
        notes=(note,),
        audit=(said,),
        outbox=(OutboxMessage("hold.reminded", f"{hold}:x", SAID, hold),),
        key=HoldKey("user:ada", "k", CANARY),
    )
    row = await store.change_hold(placed)
    assert isinstance(row, HoldRow)
    await store.append_audit("default", [said])
    await store.put_document(Document(tenant="default", kind="skill", name="s", body=SAID))


async def told(store: Store, hold: HoldId) -> list[Any]:
    """All that can be read of it, but for the audit."""
    return [
        await store.hold(hold),
        await store.hold_notes(hold),
        await store.hold_key(hold, "user:ada", "k"),
        [(row.topic, row.payload) for row in await store.list_outbox(hold=hold)],
        await store.document("default", "skill", "s"),
        await store.documents("default", "skill"),
    ]


async def opened(hf: Holdfast) -> Store:
    return (await hf.service()).store


async def chain_of(store: Store) -> list[Any]:
    chain = await store.audit("default")
    require_whole(chain, await store.audit_head("default"))
    return chain


@pytest.mark.covers("TOOL-KEEP-05", "D-38")
async def test_nothing_that_people_said_is_on_the_disk_in_the_clear(address: str, tmp_path: Path) -> None:
    async with Holdfast(address, keys=ring()) as hf:
        store, hold = await opened(hf), await asked(hf)
        await lived(store, hold)
        service = await hf.service()
        other = await asked(hf)
        await service.answer(other, "no", comment=CANARY)
        row, notes, key, messages, document, _ = await told(store, hold)
        assert (row.placed, notes[0].body, key.digest, document.body) == (SAID, SAID, CANARY, SAID)
        assert messages[-1] == ("hold.reminded", SAID)
        await service.cancel(row.run, reason=CANARY)
        assert not found_on_disk(tmp_path)
        assert SAID in [row.data for row in await chain_of(store)]
    assert not found_on_disk(tmp_path)


@pytest.mark.covers("TOOL-KEEP-06")
async def test_everything_but_the_audit_is_under_the_new_key_after_reencrypting(address: str) -> None:
    old = ring()
    new = turned(old)
    async with Holdfast(address, keys=old) as hf:
        hold = await asked(hf)
        await lived(await opened(hf), hold)
        before = await told(await opened(hf), hold)
        audit = await chain_of(await opened(hf))
    async with Holdfast(address, keys=new) as hf:
        assert await told(await opened(hf), hold) == before
        done = await reencrypt(await hf.service())
        assert not done.unreadable
        assert await chain_of(await opened(hf)) == audit
    only_new = without(new, old.file.scopes["*"].current)
    async with Holdfast(address, keys=only_new) as hf:
        store = await opened(hf)
        assert await told(store, hold) == before
        # The chain is over what was written: it holds, and its entries say which key they need.
        chain = await chain_of(store)
        assert [(row.action, row.hash) for row in chain] == [(row.action, row.hash) for row in audit]
        needs = f'{{"encrypted_under":"{old.file.scopes["*"].current}"}}'.encode()
        assert {row.data for row in chain} == {needs}


async def test_holds_from_before_there_were_keys_are_encrypted_by_reencrypting(
    address: str, tmp_path: Path
) -> None:
    async with Holdfast(address) as hf:
        hold = await asked(hf)
        await lived(await opened(hf), hold)
        before = await told(await opened(hf), hold)
        audit = await chain_of(await opened(hf))
    keys = ring()
    async with Holdfast(address, keys=keys) as hf:
        store = await opened(hf)
        assert await told(store, hold) == before
        await store.append_audit("default", [NewAudit(at=2, actor="a", action="b", data=SAID)])
        await reencrypt(await hf.service())
        assert await told(store, hold) == before
        assert (await chain_of(store))[:-1] == audit, "what was written in the clear stays so"


@pytest.mark.covers("D-38")
async def test_hold_whose_key_is_gone_is_listed_and_cannot_be_decided(address: str) -> None:
    keys = ring()
    async with Holdfast(address, keys=keys) as hf:
        hold = await asked(hf)
    async with Holdfast(address, keys=ring()) as hf:
        store = await opened(hf)
        ((row, _),) = await store.list_holds(HoldFilter())
        assert (row.id, row.prompt) == (hold, _needs(keys))
        with pytest.raises(KeyMissingError):
            await (await hf.service()).answer(hold, "yes")
        assert await store.claim_outbox(limit=9, lease=1) != [], "what the store wrote itself has no content"


def _needs(keys: StaticKeys) -> str:
    return f"(encrypted under key {keys.file.scopes['*'].current}, which is not here)"


async def test_message_whose_key_is_gone_waits_and_holds_up_no_other(address: str) -> None:
    first, second = ring("acme", "default"), ring("default")
    async with Holdfast(address, keys=first) as hf:
        hold = await asked(hf)
        await lived(await opened(hf), hold)
    async with Holdfast(address, keys=second) as hf:
        store = await opened(hf)
        claimed = await store.claim_outbox(limit=9, lease=1)
        assert [row.topic for row in claimed] == ["hold.created"]
    async with Holdfast(address, keys=first) as hf:
        waiting = (await (await opened(hf)).list_outbox(hold=hold))[-1]
        assert waiting.payload == SAID
        assert waiting.error is not None
        assert first.file.scopes["default"].current in waiting.error


async def test_encrypted_prompts_are_searched_and_too_many_are_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Holdfast(address, keys=ring()) as hf:
        store = await opened(hf)
        holds = [await asked(hf, text) for text in ("Ältere Sachen", "this", "ÄLTERE", "that")]
        found = await store.list_holds(HoldFilter(text="ältere"))
        assert [row.id for row, _ in found] == [holds[0], holds[2]]
        assert await store.count_holds(HoldFilter(text="ältere")) == 2
        monkeypatch.setattr(encrypted, "READ_AT_MOST", 2)
        monkeypatch.setattr(encrypted, "_PAGE", 1)
        assert len(await store.list_holds(HoldFilter(text="ältere"), limit=1)) == 1
        with pytest.raises(InputError, match="encrypted") as refused:
            await store.list_holds(HoldFilter(text="that"))
        assert "Narrow" in (refused.value.hint or "")
