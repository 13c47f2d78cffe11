"""Threads of graphs: put once, found by place and metadata, copies share values, one owner at a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

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


async def claim_of(kit: StoreKit, owner: str, thread: str = "a") -> GraphClaim | GraphRefusal:
    want = GraphClaimRequest(tenant="t", thread=thread, owner=owner, ttl=TTL)
    return await kit.store.claim_graph_thread(want)


async def claimed(kit: StoreKit, owner: str, thread: str = "a") -> GraphClaim | GraphRefusal:
    """As it is stored."""
    found = await claim_of(kit, owner, thread)
    return replace(found, new_thread=False) if isinstance(found, GraphClaim) else found


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

    @pytest.mark.covers("IN-14")
    async def test_a_blob_is_kept_while_a_value_of_a_thread_refers_to_it(self, kit: StoreKit) -> None:
        blob = bytes(32)
        row, of_blob = checkpoint("1", values=(-5,)), replace(value(-5), blob_digest=blob)
        assert await put(kit, row, of_blob) == GraphRefusal(missing=True), "a blob goes first"
        assert await listed(kit) == []
        await kit.store.put_blob(blob, 3, b"abc")
        assert await put(kit, row, of_blob) is None
        assert await kit.store.graph_values("t", "a", [-5]) == [of_blob]
        kit.clock.advance(days=2)
        old = kit.clock.now() - MICROS
        assert await kit.store.condemn_blobs(older_than=old, limit=9) == []
        facts = await kit.store.examine(deep=False)
        assert (facts.unreferenced, facts.missing) == (0, [])
        await kit.store.drop_graph_rows(GraphDrop(tenant="t", thread="a"))
        assert (await kit.store.examine(deep=False)).unreferenced == 1
        assert await kit.store.condemn_blobs(older_than=old, limit=9) == [blob]
        assert await put(kit, row, of_blob) == GraphRefusal(missing=True), "condemned: it must be put again"

    @pytest.mark.covers("IN-22")
    async def test_a_claim_says_whether_it_made_the_thread(self, kit: StoreKit) -> None:
        first = await claim_of(kit, "me")
        assert isinstance(first, GraphClaim)
        assert first.new_thread
        again = await claim_of(kit, "me")
        assert isinstance(again, GraphClaim)
        assert not again.new_thread
        await put(kit, checkpoint("1"), thread="b")
        there = await claim_of(kit, "me", "b")
        assert isinstance(there, GraphClaim)
        assert not there.new_thread

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

    @pytest.mark.covers("IN-12")
    @pytest.mark.parametrize("under_claim", [False, True])
    async def test_a_put_that_relies_on_a_deleted_value_is_refused_and_writes_nothing(
        self, kit: StoreKit, under_claim: bool
    ) -> None:
        await put(kit, checkpoint("1", values=(5, 8)), value(5), value(8))
        await kit.store.copy_graph_thread(GraphCopy(tenant="t", source="a", target="b"))
        claim = await claimed(kit, "one") if under_claim else None
        drop = GraphDrop(tenant="t", thread="a", places=(("", "1"),), claim=as_claim(claim))
        for thread in ("b", "a"):
            gone = GraphDrop(tenant="t", thread=thread) if thread == "b" else drop
            assert await kit.store.drop_graph_rows(gone) is None
        kept = checkpoint("2", "1", values=(5, 9))
        built = checkpoint("2", "1", values=(9,))
        for row, new in ((kept, value(9)), (built, value(9, base=8)), (checkpoint("2", values=(9,)), None)):
            rows = [row, *([] if new is None else [new]), write("2", 0, b"w")]
            assert await put(kit, *rows, claim=claim) == GraphRefusal(missing=True)
        assert await listed(kit) == []
        assert await put(kit, checkpoint("2", values=(9,)), value(9), claim=claim) is None
        assert await stored(kit, 9) == [9]
        assert (await kit.store.graph_checkpoints(GraphFilter(tenant="t")))[0].writes == ()
        # What is there may be referred to and built from.
        assert await put(kit, checkpoint("3", values=(9, 7)), value(7, base=9), claim=claim) is None
        assert await stored(kit, 7) == [7, 9]

    async def test_a_put_that_is_refused_makes_no_thread(self, kit: StoreKit) -> None:
        assert await put(kit, checkpoint("1", values=(5,))) == GraphRefusal(missing=True)
        assert await kit.store.graph_threads("t") == []

    @pytest.mark.covers("IN-22")
    async def test_deleting_a_part_of_a_thread_ends_a_claim_that_has_expired(self, kit: StoreKit) -> None:
        claim = await claimed(kit, "one")
        await put(kit, checkpoint("1"), checkpoint("2"), claim=claim)
        kit.clock.advance(seconds=31)
        drop = GraphDrop(tenant="t", thread="a", places=(("", "1"),))
        assert await kit.store.drop_graph_rows(drop) is None
        assert await put(kit, checkpoint("3"), claim=claim) == GraphRefusal(lost=True)
        assert await listed(kit) == ["2"]

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

    @pytest.mark.covers("IN-23")
    async def test_a_released_thread_stays_if_it_has_a_checkpoint_or_a_write(self, kit: StoreKit) -> None:
        # Numbers of threads and of checkpoints are not the same any more.
        await put(kit, checkpoint("1"), checkpoint("2", "1"), thread="first")
        await kit.store.drop_graph_rows(GraphDrop(tenant="t", thread="first"))
        kept = (("a", checkpoint("1")), ("b", write("1", 0, b"w")))
        for thread, row in (*kept, ("c", None)):
            mine = await claimed(kit, "one", thread)
            assert isinstance(mine, GraphClaim)
            await put(kit, *([] if row is None else [row]), thread=thread, claim=mine)
            gone = GraphExtension(tenant="t", thread=thread, claim=mine)
            assert await kit.store.release_graph_claim(gone) is True
        assert [row.thread for row in await kit.store.graph_threads("t")] == ["a", "b"]
        assert await listed(kit) == ["1"]

    @pytest.mark.covers("IN-12")
    async def test_calls_made_at_once_are_each_done_or_refused(self, kit: StoreKit) -> None:
        names = [f"t{n}" for n in range(6)]
        claims = await asyncio.gather(*(claimed(kit, f"o-{name}", name) for name in names))
        assert not [each for each in claims if isinstance(each, GraphRefusal)]
        lost, again = replace_owner(claims[1]), claims[2]
        given = dict(zip(names, claims, strict=True)) | {"t1": lost}
        answers = await asyncio.gather(
            *(
                put(
                    kit, checkpoint("1", values=(n,)), value(n), write("1", 0, b"w"), thread=t, claim=given[t]
                )
                for n, t in enumerate(names)
            ),
            # The same checkpoint once more, with the value under another number.
            put(kit, checkpoint("1", values=(99,)), value(99), thread="t2", claim=again),
            put(kit, write("1", 0, b"x"), write("1", -1, b"e"), thread="t3", claim=claims[3]),
            put(kit, write("1", -1, b"e"), thread="t3", claim=claims[3]),
        )
        assert answers == [None, GraphRefusal(replace(lost, owner="o-t1"), lost=True), *[None] * 7]
        for n, name in enumerate(names):
            assert await listed(kit, thread=name) == ([] if n == 1 else ["1"])
            # Two equal puts at once may both write their value; one checkpoint refers to one of them.
            assert set(await stored(kit, n, 99, thread=name)) - {99} == (set() if n == 1 else {n})
        found = await kit.store.graph_checkpoint("t", "t3", "")
        assert found is not None
        # The first write of a number stays; which of two at once is first, no one says.
        assert [(w.idx, w.data) for w in found.writes] in (
            [(-1, b"e"), (0, b"w")],
            [(-1, b"e"), (0, b"x")],
        )

    @pytest.mark.covers("IN-12", "IN-22")
    async def test_what_a_former_owner_writes_at_once_does_not_replace_what_the_owner_writes(
        self, kit: StoreKit
    ) -> None:
        claim = await claimed(kit, "o")
        assert isinstance(claim, GraphClaim)
        lost = replace_owner(claim)
        await put(kit, checkpoint("1"), claim=claim)
        # The first call is sent alone: those behind it are a group.
        answers = await asyncio.gather(
            put(kit, write("1", 9, b"first"), claim=claim),
            put(kit, write("1", 0, b"of the former"), claim=lost),
            put(kit, write("1", 0, b"of the owner"), write("1", -1, b"of the owner"), claim=claim),
            put(kit, write("1", -1, b"of the former"), claim=lost),
        )
        assert [each is None for each in answers] == [True, False, True, False]
        found = await kit.store.graph_checkpoint("t", "a", "")
        assert found is not None
        written = [(w.idx, w.data) for w in found.writes]
        assert written == [(-1, b"of the owner"), (0, b"of the owner"), (9, b"first")]

    async def test_of_claims_made_at_once_one_of_a_thread_is_given(self, kit: StoreKit) -> None:
        asked = [(f"o{n}", f"t{n % 3}") for n in range(9)]
        answers = await asyncio.gather(*(claimed(kit, owner, thread) for owner, thread in asked))
        made = [each for each in answers if isinstance(each, GraphClaim)]
        assert len(made) == 3
        assert all(each.claim in made for each in answers if isinstance(each, GraphRefusal))
        threads = dict(asked)
        held = [GraphExtension(tenant="t", thread=threads[each.owner], claim=each) for each in made]
        await put(kit, checkpoint("1"), thread=held[0].thread, claim=held[0].claim)
        wrong = [replace(held[1], claim=replace_owner(held[1].claim)), replace(held[2], tenant="u")]
        released = await asyncio.gather(*(kit.store.release_graph_claim(each) for each in [*wrong, *held]))
        assert released == [False, False, True, True, True]
        # The others are empty.
        assert [(row.thread, row.claim) for row in await kit.store.graph_threads("t")] == [
            (held[0].thread, None)
        ]


def as_claim(claim: GraphClaim | GraphRefusal | None) -> GraphClaim | None:
    assert not isinstance(claim, GraphRefusal)
    return claim


def replace_owner(claim: GraphClaim | GraphRefusal) -> GraphClaim:
    assert isinstance(claim, GraphClaim)
    return replace(claim, owner="nobody")
