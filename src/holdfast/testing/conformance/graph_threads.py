"""Threads of graphs: put once, found by place and metadata, copies share values, one owner at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.types.clock import MICROS
from holdfast.types.graph_thread import (
    GraphBatch,
    GraphCheckpointRow,
    GraphClaim,
    GraphClaimRequest,
    GraphCopy,
    GraphDrop,
    GraphExtension,
    GraphFilter,
    GraphRefusal,
    GraphValueRow,
    GraphWriteRow,
    facet_of,
    facets_of,
)

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit

TTL = 30 * MICROS


def checkpoint(name: str, parent: str | None = None, **more: Any) -> GraphCheckpointRow:
    given: dict[str, Any] = {"ns": "", "body": b"body", "digest": name.encode(), **more}
    return GraphCheckpointRow(id=name, parent=parent, **given)


def value(number: int, base: int | None = None, data: bytes = b"v") -> GraphValueRow:
    return GraphValueRow(number=number, channel="c", data=data, base=base)


def write(checkpoint_id: str, idx: int, data: bytes, **more: Any) -> GraphWriteRow:
    given: dict[str, Any] = {"ns": "", "task": "t", "path": "", "channel": "c", **more}
    return GraphWriteRow(checkpoint=checkpoint_id, idx=idx, data=data, **given)


async def put(kit: StoreKit, *rows: Any, thread: str = "a", **more: Any) -> GraphRefusal | None:
    given: dict[str, Any] = {"tenant": "t", **more}
    return await kit.store.put_graph_rows(
        GraphBatch(
            thread=thread,
            checkpoints=tuple(row for row in rows if isinstance(row, GraphCheckpointRow)),
            values=tuple(row for row in rows if isinstance(row, GraphValueRow)),
            writes=tuple(row for row in rows if isinstance(row, GraphWriteRow)),
            **given,
        )
    )


async def listed(kit: StoreKit, **where: Any) -> list[str]:
    given: dict[str, Any] = {"tenant": "t", "thread": "a", **where}
    return [row.id for row in await kit.store.graph_checkpoints(GraphFilter(**given))]


async def stored(kit: StoreKit, *numbers: int, thread: str = "a") -> list[int]:
    return sorted(v.number for v in await kit.store.graph_values("t", thread, numbers))


async def claimed(kit: StoreKit, owner: str, thread: str = "a") -> GraphClaim | GraphRefusal:
    want = GraphClaimRequest(tenant="t", thread=thread, owner=owner, ttl=TTL)
    return await kit.store.claim_graph_thread(want)


@pytest.mark.anyio
class GraphThreadSuite:
    @pytest.mark.covers("IN-13")
    async def test_a_checkpoint_is_read_as_it_was_put(self, kit: StoreKit) -> None:
        row = checkpoint("1", values=(5,), facets=facets_of({"step": 1}), run_id="r", body=bytes(range(256)))
        assert await put(kit, row, value(5, data=b"\x00five")) is None
        found = await kit.store.graph_checkpoint("t", "a", "")
        assert found is not None
        assert (found.id, found.parent, found.values, found.run_id) == ("1", None, (5,), "r")
        assert (found.body, found.facets, found.thread) == (row.body, row.facets, "a")
        assert [v.data for v in await kit.store.graph_values("t", "a", [5])] == [b"\x00five"]
        assert await kit.store.graph_checkpoint("t", "a", "", "2") is None
        assert await kit.store.graph_checkpoint("u", "a", "") is None
        assert await kit.store.graph_values("t", "b", [5]) == []

    async def test_the_newest_is_that_with_the_greatest_id_of_its_namespace(self, kit: StoreKit) -> None:
        await put(kit, checkpoint("2", "1"), checkpoint("1"), checkpoint("3", ns="sub"))
        found = await kit.store.graph_checkpoint("t", "a", "")
        assert found is not None
        assert found.id == "2"
        assert await listed(kit) == ["3", "2", "1"]
        assert await listed(kit, ns="sub") == ["3"]
        assert await listed(kit, before="2") == ["1"]

    async def test_a_repeated_put_adds_nothing_and_another_one_replaces(self, kit: StoreKit) -> None:
        await put(kit, checkpoint("1", values=(5,)), value(5))
        await put(kit, checkpoint("1", values=(6,)), value(6))
        assert await stored(kit, 5, 6) == [5]
        await put(kit, checkpoint("1", values=(7,), digest=b"other"), value(7))
        found = await kit.store.graph_checkpoint("t", "a", "", "1")
        assert found is not None
        assert found.values == (7,)

    async def test_the_first_write_of_a_number_stays_and_special_ones_are_replaced(
        self, kit: StoreKit
    ) -> None:
        await put(kit, write("1", 0, b"first"), write("1", -1, b"error"), write("1", 1, b"x", path="b"))
        await put(kit, write("1", 0, b"second"), write("1", -1, b"again"), write("1", 0, b"y", task="s"))
        await put(kit, checkpoint("1"))
        found = await kit.store.graph_checkpoint("t", "a", "")
        assert found is not None
        assert [(w.task, w.idx, w.data) for w in found.writes] == [
            ("s", 0, b"y"), ("t", -1, b"again"), ("t", 0, b"first"), ("t", 1, b"x"),
        ]  # fmt: skip

    @pytest.mark.parametrize("key", ["step", "it's", 'a "quote"', "a.b", "$[0]", "é%_", "\\"])
    async def test_checkpoints_are_found_by_their_metadata(self, kit: StoreKit, key: str) -> None:
        for name, metadata in (("1", {key: 1}), ("2", {key: "1"}), ("3", {"other": 1, key: None}), ("4", {})):
            await put(kit, checkpoint(name, facets=facets_of(metadata)))
        assert await listed(kit, facets=(facet_of(key, 1),)) == ["1"]
        assert await listed(kit, facets=(facet_of(key, "1"),)) == ["2"]
        assert await listed(kit, absent=(key,)) == ["4", "3"]
        assert await listed(kit, facets=(facet_of("other", 1.0),), absent=(key,)) == ["3"]

    async def test_a_page_continues_after_the_last_row(self, kit: StoreKit) -> None:
        await put(kit, *(checkpoint(str(n), run_id=f"r{n % 2}") for n in range(5)))
        first = await kit.store.graph_checkpoints(GraphFilter(tenant="t"), limit=2)
        assert [row.id for row in first] == ["4", "3"]
        rest = await kit.store.graph_checkpoints(
            GraphFilter(tenant="t"), after=(first[-1].id, first[-1].number), limit=9
        )
        assert [row.id for row in rest] == ["2", "1", "0"]
        assert await listed(kit, run_ids=("r1",)) == ["3", "1"]

    async def test_values_are_read_with_all_that_they_are_built_from(self, kit: StoreKit) -> None:
        rows = [
            checkpoint("1", values=(5,)),
            checkpoint("2", "1", values=(6,)),
            checkpoint("3", "2", values=(7, 8)),
        ]
        await put(kit, *rows, value(5), value(6, 5), value(7, 6), value(8))
        assert await stored(kit, 7) == [5, 6, 7]
        assert await stored(kit, 8) == [8]

    async def test_ancestors_follow_the_parents_whether_listed_or_not(self, kit: StoreKit) -> None:
        await put(kit, checkpoint("1"), checkpoint("2", "1"), checkpoint("3", "2"), checkpoint("4", "2"))
        await put(kit, write("2", 0, b"w"))
        await kit.store.drop_graph_rows(GraphDrop(tenant="t", thread="a", places=(), unlisted=(("", "2"),)))
        found = await kit.store.graph_ancestors("t", "a", "", "4")
        assert [(row.id, row.listed, len(row.writes)) for row in found] == [("2", False, 1), ("1", True, 0)]
        assert [row.id for row in await kit.store.graph_ancestors("t", "a", "", "4", limit=1)] == ["2"]
        assert await listed(kit) == ["4", "3", "1"]
        assert await kit.store.graph_checkpoint("t", "a", "", "2") is None

    async def test_dropped_checkpoints_leave_the_values_that_others_need(self, kit: StoreKit) -> None:
        rows = [checkpoint("1", values=(5, 8)), checkpoint("2", "1", values=(6,))]
        await put(kit, *rows, value(5), value(6, 5), value(8), write("1", 0, b"w"))
        for _ in range(2):
            await kit.store.drop_graph_rows(GraphDrop(tenant="t", thread="a", places=(("", "1"),)))
        assert await listed(kit) == ["2"]
        assert await stored(kit, 5, 6, 8) == [5, 6]
        await kit.store.drop_graph_rows(GraphDrop(tenant="t", thread="a"))
        assert await kit.store.graph_threads("t") == []
        assert await listed(kit) == []

    async def test_a_copy_shares_values_until_the_last_thread_is_deleted(self, kit: StoreKit) -> None:
        await put(kit, checkpoint("1", values=(5,), body=b"one"), value(5), write("1", 0, b"w"))
        assert await kit.store.copy_graph_thread(GraphCopy(tenant="t", source="a", target="b")) is None
        again = await kit.store.copy_graph_thread(GraphCopy(tenant="t", source="a", target="b"))
        assert again == GraphRefusal(exists=True)
        await kit.store.drop_graph_rows(GraphDrop(tenant="t", thread="a"))
        found = await kit.store.graph_checkpoint("t", "b", "")
        assert found is not None
        assert (found.body, [w.data for w in found.writes]) == (b"one", [b"w"])
        assert await stored(kit, 5, thread="b") == [5]
        assert [row.thread for row in await kit.store.graph_threads("t")] == ["b"]

    async def test_one_owner_writes_at_a_time(self, kit: StoreKit) -> None:
        first = await claimed(kit, "one")
        assert isinstance(first, GraphClaim)
        assert await claimed(kit, "two") == GraphRefusal(first)
        assert await put(kit, checkpoint("1")) == GraphRefusal(first)
        assert await put(kit, checkpoint("1"), claim=first) is None
        assert await put(kit, checkpoint("2"), fenced=False) is None
        assert await put(kit, checkpoint("1"), thread="other") is None
        refused = await kit.store.drop_graph_rows(GraphDrop(tenant="t", thread="a"))
        assert refused == GraphRefusal(first)
        copied = await kit.store.copy_graph_thread(GraphCopy(tenant="t", source="a", target="b"))
        assert copied == GraphRefusal(first)

    async def test_a_superseded_owner_writes_nothing(self, kit: StoreKit) -> None:
        old = await claimed(kit, "one")
        assert isinstance(old, GraphClaim)
        kit.clock.advance(seconds=31)
        new = await claimed(kit, "two")
        assert isinstance(new, GraphClaim)
        assert new.term == old.term + 1
        assert await put(kit, checkpoint("1"), write("1", 0, b"w"), claim=old) == GraphRefusal(new, lost=True)
        assert await listed(kit) == []
        both = [GraphExtension(tenant="t", thread="a", claim=claim) for claim in (old, new)]
        assert await kit.store.extend_graph_claims(both, TTL) == [False, True]
        assert [await kit.store.release_graph_claim(claim) for claim in both] == [False, True]
        # Nothing was written to it, so it is gone.
        assert await kit.store.graph_threads("t") == []
        assert isinstance(await put(kit, checkpoint("1"), claim=new), GraphRefusal)

    async def test_a_claim_that_expired_is_still_good_until_another_one_is_made(self, kit: StoreKit) -> None:
        mine = await claimed(kit, "one")
        assert isinstance(mine, GraphClaim)
        kit.clock.advance(seconds=31)
        assert await put(kit, checkpoint("1"), claim=mine) is None
        extension = GraphExtension(tenant="t", thread="a", claim=mine)
        assert await kit.store.extend_graph_claims([extension], TTL) == [True]
        assert isinstance(await claimed(kit, "two"), GraphRefusal)
        assert isinstance(await claimed(kit, "one"), GraphClaim)
        assert await kit.store.release_graph_claim(extension) is True
        assert isinstance(await claimed(kit, "two"), GraphClaim)
