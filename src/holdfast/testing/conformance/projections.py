"""Projections: written once, never without their record, and gone with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.types.ids import new_run_id
from holdfast.types.projection import Projection

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.ids import RunId


def projection(run: RunId, seq: int, **more: Any) -> Projection:
    return Projection(run=run, seq=seq, checkpoint=f"c{seq}", completed='["a"]', **more)


async def written(kit: StoreKit, run: RunId) -> list[tuple[int, str, str]]:
    """By what every store keeps; an encrypted one keeps no content."""
    return [(row.seq, row.checkpoint, row.completed) for row in await kit.store.projections(run)]


@pytest.mark.anyio
class ProjectionSuite:
    async def test_a_projection_is_written_once_for_its_record(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1))
        for states in ("{}", '{"a":1}'):
            row = projection(lease.run, 1, node_states=states, original_input="{}", output="[]")
            await kit.store.put_projections([row], upto=7)
        assert await written(kit, lease.run) == [(1, "c1", '["a"]')]
        assert [row.node_states for row in await kit.store.projections(lease.run)] in (["{}"], [None])

    async def test_the_position_never_goes_back(self, kit: StoreKit) -> None:
        assert await kit.store.projected_to() == 0
        for upto in (5, 3):
            await kit.store.put_projections([], upto=upto)
        assert await kit.store.projected_to() == 5

    async def test_nothing_is_written_for_a_record_that_is_not_there(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.put_projections([projection(lease.run, 9), projection(new_run_id(), 0)], upto=1)
        assert await written(kit, lease.run) == []

    async def test_it_goes_with_its_record_and_with_its_run(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1), kit.record(2))
        await kit.store.put_projections([projection(lease.run, seq) for seq in (0, 2)], upto=1)
        await kit.store.prune(lease.run, horizon=2, replace=None)
        assert await written(kit, lease.run) == [(2, "c2", '["a"]')]
        await kit.store.put_projections([projection(lease.run, 1)], upto=2)
        assert await written(kit, lease.run) == [(2, "c2", '["a"]')]
        kit.clock.advance(hours=1)
        assert await kit.store.delete_run(lease.run)
        assert await written(kit, lease.run) == []

    async def test_content_goes_when_it_is_blanked(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.put_projections([projection(lease.run, 0, node_states="{}")], upto=1)
        await kit.store.blank_projections()
        assert [row.node_states for row in await kit.store.projections(lease.run)] == [None]
        assert await written(kit, lease.run) == [(0, "c0", '["a"]')]
