"""Events: numbered without gaps in the committing transaction, one feed over all runs in commit order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.errors import FeedTrimmedError
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.record import Record, Refusal, RunBatch

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit


def numbers(rows: list[Record | EventRow]) -> list[int]:
    found: list[int] = []
    for row in rows:
        if isinstance(row, Record):
            found += range(row.event_from, row.event_from + row.events)
        else:
            found.append(row.number)
    return found


async def run_with_events(kit: StoreKit) -> RunId:
    """A run with the events 1 (created), 2-4 (record 1), 5 (a message), 6 (an answer), 7-8 (record 4)."""
    lease = await kit.claimed()
    hold = kit.new_hold(1)
    await kit.written(lease, kit.record(1, events=3))
    await kit.store.send(lease.run, "note", b"", event=kit.event("noted", b"n"))
    await kit.asked(lease, hold, 2)
    await kit.decide(hold.id, event=kit.event("answered", b"a"))
    await kit.written(lease, kit.record(3, events=0), kit.record(4, events=2))
    return lease.run


@pytest.mark.anyio
class EventSuite:
    @pytest.mark.covers("D-3")
    async def test_events_of_records_and_of_others_are_numbered_in_one_row(self, kit: StoreKit) -> None:
        run = await run_with_events(kit)
        rows = await kit.store.events(run, after=0, limit=99)
        assert numbers(rows) == list(range(1, 10))
        assert (await kit.row(run)).event_seq == 9
        kinds = [row.seq if isinstance(row, Record) else row.type for row in rows]
        assert kinds == [0, 1, "noted", 2, "answered", 4]

    @pytest.mark.covers("D-3")
    async def test_events_without_a_message_are_numbered_like_all_others(self, kit: StoreKit) -> None:
        run = await run_with_events(kit)
        await kit.store.add_events(run, [kit.event("said", b"1"), kit.event("said", b"2")])
        await kit.store.add_events(run, [])
        await kit.store.add_events(RunId("nobody"), [kit.event("said", b"3")])
        rows = await kit.store.events(run, after=9, limit=99)
        assert numbers(rows) == [10, 11]
        assert [row.payload for row in rows] == [b"1", b"2"]
        assert (await kit.row(run)).event_seq == 11
        announced = [n for _, _, first, last in await kit.whole_feed() for n in range(first, last + 1)]
        assert announced == list(range(1, 12))

    @pytest.mark.covers("R-19")
    async def test_reading_goes_on_after_any_number(self, kit: StoreKit) -> None:
        run = await run_with_events(kit)
        for after in range(10):
            rows = await kit.store.events(run, after=after, limit=99)
            assert [number for number in numbers(rows) if number > after] == list(range(after + 1, 10))
            # A row that was shown whole is not shown again.
            assert all(numbers([row])[-1] > after for row in rows)
        assert await kit.store.events(run, after=99, limit=99) == []

    @pytest.mark.covers("R-19")
    async def test_reading_in_small_pages_misses_and_repeats_nothing(self, kit: StoreKit) -> None:
        run = await run_with_events(kit)
        seen: list[int] = []
        while page := await kit.store.events(run, after=seen[-1] if seen else 0, limit=2):
            assert len(page) <= 2
            seen += numbers(page)
        assert seen == list(range(1, 10))

    async def test_records_among_the_events_carry_their_payload(self, kit: StoreKit) -> None:
        run = await run_with_events(kit)
        first, second, *_ = await kit.store.events(run, after=0, limit=99)
        assert isinstance(first, Record)
        assert isinstance(second, Record)
        assert (first.payload, second.payload) == (b"record 0", b"record 1")

    @pytest.mark.covers("D-3")
    async def test_number_in_a_given_event_is_ignored(self, kit: StoreKit) -> None:
        run = (await kit.created()).id
        await kit.store.send(run, "note", b"", event=EventRow(77, 5, "späť", b"\x00"))
        (event,) = await kit.store.events(run, after=1, limit=9)
        assert event == EventRow(2, 5, "späť", b"\x00")

    @pytest.mark.covers("D-3")
    async def test_numbers_have_no_gaps_when_writers_race_on_one_run(self, kit: StoreKit) -> None:
        lease = await kit.claimed()

        async def contend(store: Store, number: int) -> None:
            for seq in range(1, 9):
                if number:
                    await store.send(lease.run, "note", b"", event=kit.event())
                else:
                    (answer,) = await store.settle([RunBatch(lease, [kit.record(seq, events=2)])])
                    assert answer.refusal is None

        await kit.race(3, contend)
        rows = await kit.store.events(lease.run, after=0, limit=999)
        assert numbers(rows) == list(range(1, 1 + 1 + 8 * 2 + 2 * 8))

    @pytest.mark.covers("D-3")
    async def test_heads_are_the_last_numbers_of_the_runs_that_are_there(self, kit: StoreKit) -> None:
        run, other = await run_with_events(kit), (await kit.created()).id
        assert await kit.store.event_heads([run, RunId("no-such-run"), other]) == {run: 9, other: 1}
        await kit.store.send(other, "note", b"", event=kit.event())
        assert await kit.store.event_heads([other, other]) == {other: 2}
        assert await kit.store.event_heads([]) == {}

    @pytest.mark.covers("D-3")
    async def test_feed_shows_each_transaction_of_each_run_in_commit_order(self, kit: StoreKit) -> None:
        one, two = await kit.claimed(), await kit.claimed()
        await kit.written(two, kit.record(1, events=2))
        await kit.written(one, kit.record(1), kit.record(2))
        await kit.store.send(two.run, "note", b"", event=kit.event())
        await kit.written(one, kit.record(3, events=0))
        await kit.store.send(one.run, "silent", b"")
        await kit.store.settle([RunBatch(one, [kit.record(4)]), RunBatch(two, [kit.record(2)])])
        feed = await kit.whole_feed()
        assert [row[1:] for row in feed[:5]] == [
            (one.run, 1, 1),
            (two.run, 1, 1),
            (two.run, 2, 3),
            (one.run, 2, 3),
            (two.run, 4, 4),
        ]
        assert sorted(row[1:] for row in feed[5:]) == sorted([(one.run, 4, 4), (two.run, 5, 5)])
        positions = [row[0] for row in feed]
        assert positions == sorted(set(positions))

    async def test_feed_goes_on_after_a_position_page_by_page(self, kit: StoreKit) -> None:
        runs = [(await kit.created()).id for _ in range(5)]
        await kit.feed_rows(5)
        seen: list[RunId] = []
        position = 0
        while page := await kit.store.feed(after=position, limit=2):
            seen += [row[1] for row in page]
            position = page[-1][0]
        assert seen == runs

    async def test_refused_range_takes_no_numbers(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert (await kit.settle(lease, kit.record(5))).refusal is Refusal.head_moved
        assert (await kit.written(lease, kit.record(1))).event_from == 2
        assert len(await kit.whole_feed()) == 2

    @pytest.mark.covers("D-3")
    async def test_follower_of_the_feed_sees_every_event_while_writers_race(self, kit: StoreKit) -> None:
        leases = [await kit.claimed() for _ in range(2)]

        async def contend(store: Store, number: int) -> list[tuple[RunId, int]]:
            if number < 2:
                for seq in range(1, 16):
                    await store.settle([RunBatch(leases[number], [kit.record(seq)])])
                return []
            seen: list[tuple[RunId, int]] = []
            position = 0
            while len(seen) < 32:
                for row in await store.feed(after=position, limit=3):
                    position, run, first, last = row
                    seen += [(run, event) for event in range(first, last + 1)]
            return seen

        seen = (await kit.race(3, contend))[2]
        for lease in leases:
            assert [event for run, event in seen if run == lease.run] == list(range(1, 17))


@pytest.mark.anyio
class FeedTrimSuite:
    """Old rows of the feed are deleted; only a reader whose position is before them gets an error."""

    async def test_feed_forgets_what_a_call_saw_before_that_instant(self, kit: StoreKit) -> None:
        for _ in range(3):
            await kit.created()
        old = await kit.feed_rows(3)
        assert await kit.store.trim_feed(before=kit.clock.now() - 1) == 0, "nobody saw them earlier"
        kit.clock.advance(hours=1)
        later = await kit.created()
        assert await kit.store.trim_feed(before=kit.clock.now() - 1) >= 2
        rows = await kit.feed_rows(1, after=old[-1][0])
        assert [row[1] for row in rows] == [later.id]

    async def test_reader_that_comes_too_late_is_reported_where_to_begin(self, kit: StoreKit) -> None:
        runs = [(await kit.created()).id for _ in range(4)]
        rows = await kit.feed_rows(4)
        await kit.store.trim_feed(before=kit.clock.now())
        for after in (0, rows[1][0]):
            with pytest.raises(FeedTrimmedError) as caught:
                await kit.store.feed(after=after, limit=9)
            assert caught.value.facts["floor"] == rows[-1][0]
        assert await kit.store.feed(after=rows[-1][0], limit=9) == []
        assert all([await kit.store.events(run, after=0, limit=9) for run in runs]), "runs keep theirs"

    async def test_reader_at_the_end_goes_on_although_all_was_forgotten(self, kit: StoreKit) -> None:
        """Positions only grow: none is used twice."""
        await kit.created()
        position = (await kit.feed_rows(1))[-1][0]
        for _ in range(3):
            await kit.store.trim_feed(before=kit.clock.now())
            fresh = await kit.created()
            ((at, run, _, _),) = await kit.feed_rows(1, after=position)
            assert (run, at > position) == (fresh.id, True)
            position = at

    async def test_feed_is_trimmed_in_small_parts_and_by_several_at_once(self, kit: StoreKit) -> None:
        for _ in range(7):
            await kit.created()
        position = (await kit.feed_rows(7))[-1][0]
        assert await kit.store.trim_feed(before=kit.clock.now(), limit=2) == 2
        with pytest.raises(FeedTrimmedError):
            await kit.store.feed(after=0, limit=9)

        async def contend(store: Store, _number: int) -> int:
            gone = 0
            while went := await store.trim_feed(before=kit.clock.now(), limit=2):
                gone += went
            return gone

        assert sum(await kit.race(3, contend)) in (4, 5), "a store may need to keep the last"
        assert await kit.store.feed(after=position, limit=9) == []

    async def test_feed_of_deleted_runs_is_trimmed_too(self, kit: StoreKit) -> None:
        run = (await kit.created()).id
        for _ in range(2):
            await kit.created()
        position = (await kit.feed_rows(3))[-1][0]
        assert await kit.store.delete_run(run)
        await kit.store.trim_feed(before=kit.clock.now())
        assert await kit.store.feed(after=position, limit=9) == []
