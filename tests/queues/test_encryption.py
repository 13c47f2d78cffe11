"""In an encrypted store neither payloads nor results nor errors are on the disk in the clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from holdfast.runs.encryption.reencrypt import reencrypt
from holdfast.types.queue_message import MessageState
from holdfast.types.terms import Actor
from tests.storage.canary import CANARY, found_on_disk, ring, turned

pytestmark = pytest.mark.anyio
PLACE = ("support", "reviews")


@pytest.mark.covers("QU-1")
async def test_content_of_messages_is_encrypted_and_survives_a_new_key(tmp_path: Path) -> None:
    keys, path = ring(), tmp_path / "q.db"
    async with Holdfast(f"sqlite:{path}", keys=keys) as hf:
        queues = await hf.queues()
        given = {"secret": CANARY}
        await queues.publish(*PLACE, given, id="m1")
        row = await queues.publish(*PLACE, given, id="m1")  # compared with what is stored
        mine = await queues.claim_one(Actor(id="w"), *PLACE, "m1")
        await queues.release(*PLACE, "m1", mine.claim_token, delay=0, error=f"{CANARY} failed")
        mine = await queues.claim_one(Actor(id="w"), *PLACE, "m1")
        await queues.complete(Actor(id="user:dana"), *PLACE, "m1", mine.claim_token, [CANARY])
        flow = Flow("ask", effect="pure")
        flow.hold("ask", prompt="May {{word}} go?", options=["yes"], queue="support/reviews")
        (hold,) = (await flow.run({"word": CANARY}, on=hf)).holds
        await queues.work()
        assert CANARY in row.payload.decode()
    assert not found_on_disk(tmp_path, CANARY)
    newer = turned(keys)
    async with Holdfast(f"sqlite:{path}", keys=newer) as hf:
        await reencrypt(await hf.service())
        queues = await hf.queues()
        done = await queues.get(*PLACE, "m1")
        assert (done.state, done.result) == (MessageState.completed, f'["{CANARY}"]'.encode())
        (asked,) = await queues.list(*PLACE, states=(MessageState.ready,))
        assert (asked.hold, CANARY in asked.payload.decode()) == (hold.id, True)
    assert not found_on_disk(tmp_path, CANARY)
