"""Memories: put once, found by their words, kept apart by tenant and scope; put by a settle or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.types.memory import Memory
from holdfast.types.record import Refusal, Side

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit


def memory(name: str, content: str, **more: Any) -> Memory:
    given: dict[str, Any] = {"tenant": "t", "scope": "global", "type": "episodic", "at": 1, **more}
    return Memory(id=name, content=content, **given)


async def found(
    kit: StoreKit, query: str = "", *, tenant: str = "t", scope: str = "global", limit: int = 9, **more: Any
) -> list[str]:
    traces = await kit.store.find_memories(tenant=tenant, scope=scope, query=query, limit=limit, **more)
    return [trace.id for trace in traces]


@pytest.mark.anyio
class MemorySuite:
    async def test_a_memory_is_read_as_it_was_put(self, kit: StoreKit) -> None:
        put = memory("a", "Mara likes ΣTEEL 100%_", strength=0.25, type="semantic", at=7)
        await kit.store.put_memory(put)
        assert await kit.store.find_memories(tenant="t", scope="global", query="", limit=9) == [put]

    @pytest.mark.covers("CORE-STORE-11")
    async def test_a_memory_stays_as_it_was_when_put_twice(self, kit: StoreKit) -> None:
        await kit.store.put_memory(memory("a", "first"))
        await kit.store.put_memory(memory("a", "second"))
        assert await found(kit, "first") == ["a"]
        assert await found(kit) == ["a"]

    async def test_memories_are_found_by_all_words_whatever_their_case(self, kit: StoreKit) -> None:
        await kit.store.put_memory(memory("a", "the Straße is long"))
        await kit.store.put_memory(memory("b", "the road is 100% long"))
        assert await found(kit, "LONG STRASSE") == ["a"]
        assert await found(kit, "%") == ["b"]
        assert await found(kit, "long") == ["b", "a"]
        assert await found(kit, "short") == []

    async def test_the_strongest_come_first_and_then_the_newest(self, kit: StoreKit) -> None:
        for name, strength in (("a", 0.5), ("b", 0.9), ("c", 0.5)):
            await kit.store.put_memory(memory(name, "x", strength=strength))
        assert await found(kit) == ["b", "c", "a"]
        assert await found(kit, limit=2) == ["b", "c"]

    @pytest.mark.covers("SAFE-READ-07")
    async def test_memories_are_found_by_their_types_and_strength(self, kit: StoreKit) -> None:
        for name, kind, strength in (("a", "semantic", 0.5), ("b", "episodic", 0.9), ("c", "semantic", 0.1)):
            await kit.store.put_memory(memory(name, f"about {name}", type=kind, strength=strength))
        assert await found(kit, types=["semantic"]) == ["a", "c"]
        assert await found(kit, types=["semantic", "episodic"]) == ["b", "a", "c"]
        assert await found(kit, types=["relational"]) == []
        assert await found(kit, min_strength=0.5) == ["b", "a"]
        assert await found(kit, min_strength=0.91) == []
        assert await found(kit, "about", types=["semantic"], min_strength=0.2, limit=1) == ["a"]

    async def test_tenants_and_scopes_are_kept_apart(self, kit: StoreKit) -> None:
        await kit.store.put_memory(memory("a", "x"))
        await kit.store.put_memory(memory("a", "x", tenant="u"))
        await kit.store.put_memory(memory("b", "x", scope="run:1"))
        assert await found(kit) == ["a"]
        assert await found(kit, tenant="u") == ["a"]
        assert await found(kit, scope="run:1") == ["b"]

    async def test_a_settle_puts_its_memories_when_it_commits_and_only_then(self, kit: StoreKit) -> None:
        old = await kit.claimed()
        new = await kit.taken_over(old)
        side = Side(memories=[memory("a", "x")])
        refused = await kit.settle(old, kit.record(1, side=side, term=old.term))
        assert refused.refusal is Refusal.fenced
        assert await found(kit) == []
        for _ in range(2):
            await kit.written(new, kit.record(1, side=side, term=new.term))
        assert await found(kit) == ["a"]
