"""What a worker tells Prometheus of queues."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast, Worker
from holdfast.integrations.prometheus import Metrics
from holdfast.types.terms import Actor
from tests.fleet.test_metrics import page_of
from tests.queues.conftest import PLACE

pytestmark = pytest.mark.anyio


@pytest.mark.covers("PLATFORM-QUEUE-03")
async def test_worker_tells_the_messages_and_the_age_of_each_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.integrations.prometheus.page.FRESH", 0.0)
    async with Holdfast(f"sqlite:{tmp_path / 'q.db'}") as hf:
        queues = await hf.queues()
        for name in ("m1", "m2", "m3", "m4"):
            await queues.publish(*PLACE, 1, id=name)
        await queues.claim(Actor(id="w"), *PLACE)
        await queues.dead(Actor(id="w"), *PLACE, "m2")
        async with Worker(on=hf, lanes=["main"], probe=(metrics := Metrics("0"))):
            page = await page_of(metrics.port)
            counted = {tuple(sorted(key)): value for key, value in page["holdfast_queue_messages"].items()}
            assert counted == {
                ("claimed", "default", "support/reviews"): 1,
                ("dead", "default", "support/reviews"): 1,
                ("default", "ready", "support/reviews"): 2,
            }
            (oldest,) = page["holdfast_queue_oldest_seconds"].items()
            assert set(oldest[0]) == {"default", "support/reviews"}
            assert oldest[1] >= 0
            for name in ("m1", "m2", "m3", "m4"):
                await queues.withdraw(*PLACE, name)
            # Its series goes on: an alert must not lose it.
            page = await page_of(metrics.port)
            assert set(page["holdfast_queue_messages"].values()) == {0}
