"""Documents: named things of a tenant, written over the revision that was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.types.document import Document

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit


def named(name: str, body: bytes = b"{}", *, kind: str = "group", tenant: str = "default") -> Document:
    return Document(tenant=tenant, kind=kind, name=name, body=body)


@pytest.mark.anyio
class DocumentSuite:
    async def test_document_comes_back_as_it_was_put(self, kit: StoreKit) -> None:
        put = await kit.store.put_document(named("Größe", b"\x00\xff"))
        assert put is not None
        assert (put.body, put.revision, put.updated_at) == (b"\x00\xff", 1, kit.clock.now())
        assert await kit.store.document("default", "group", "Größe") == put

    async def test_documents_are_known_by_tenant_kind_and_name(self, kit: StoreKit) -> None:
        for tenant, kind, name in (("a", "k", "n"), ("b", "k", "n"), ("a", "l", "n"), ("a", "k", "N")):
            await kit.store.put_document(
                named(name, f"{tenant}{kind}{name}".encode(), kind=kind, tenant=tenant)
            )
        found = await kit.store.document("a", "k", "n")
        assert found is not None
        assert (found.body, found.revision) == (b"akn", 1)
        assert await kit.store.document("b", "l", "n") is None

    async def test_revision_grows_with_each_write(self, kit: StoreKit) -> None:
        await kit.store.put_document(named("a", b"1"))
        kit.clock.advance(seconds=1)
        again = await kit.store.put_document(named("a", b"2"))
        assert again is not None
        assert (again.body, again.revision, again.updated_at) == (b"2", 2, kit.clock.now())

    async def test_write_over_another_revision_is_not_made(self, kit: StoreKit) -> None:
        put = kit.store.put_document
        assert await put(named("a", b"1"), expect=1) is None
        assert await kit.store.document("default", "group", "a") is None
        assert await put(named("a", b"1"), expect=0) is not None
        assert await put(named("a", b"2"), expect=0) is None
        assert await put(named("a", b"2"), expect=1) is not None
        assert await put(named("a", b"3"), expect=1) is None
        found = await kit.store.document("default", "group", "a")
        assert found is not None
        assert (found.body, found.revision) == (b"2", 2)

    async def test_one_of_many_writes_over_what_all_read(self, kit: StoreKit) -> None:
        await kit.store.put_document(named("a"))

        async def contend(store: Store, number: int) -> bool:
            return await store.put_document(named("a", b"%d" % number), expect=1) is not None

        won = await kit.race(6, contend)
        assert sum(won) == 1
        found = await kit.store.document("default", "group", "a")
        assert found is not None
        assert found.body == b"%d" % won.index(True)

    async def test_documents_are_listed_by_name(self, kit: StoreKit) -> None:
        for name in ("b", "a", "c/2", "c/1", "d"):
            await kit.store.put_document(named(name))
        await kit.store.put_document(named("x", kind="role"))
        await kit.store.put_document(named("y", tenant="acme"))

        async def names(**how: Any) -> list[str]:
            return [d.name for d in await kit.store.documents("default", "group", **how)]

        assert await names() == ["a", "b", "c/1", "c/2", "d"]
        assert await names(prefix="c/") == ["c/1", "c/2"]
        assert await names(prefix="c/", after="c/1") == ["c/2"]
        assert await names(after="a", limit=2) == ["b", "c/1"]
        assert await names(prefix="nothing") == []

    async def test_documents_are_listed_with_the_heads_of_their_bodies(self, kit: StoreKit) -> None:
        for name, body in (("a", b"\x00\xff" + b"x" * 5000), ("b", b"y"), ("c", b"")):
            await kit.store.put_document(named(name, body))
        found = await kit.store.documents("default", "group", after="", limit=2, head=3)
        assert [(each.name, each.body, each.revision) for each in found] == [
            ("a", b"\x00\xffx", 1),
            ("b", b"y", 1),
        ]

    async def test_document_that_changed_is_not_dropped(self, kit: StoreKit) -> None:
        await kit.store.put_document(named("a"))
        await kit.store.put_document(named("a", b"new"))
        assert not await kit.store.drop_document("default", "group", "a", expect=1)
        assert await kit.store.document("default", "group", "a") is not None
        assert await kit.store.drop_document("default", "group", "a", expect=2)
        assert not await kit.store.drop_document("default", "group", "a", expect=2)

    async def test_dropped_document_is_gone_and_new_when_put_again(self, kit: StoreKit) -> None:
        await kit.store.put_document(named("a"))
        assert await kit.store.drop_document("default", "group", "a")
        assert not await kit.store.drop_document("default", "group", "a")
        assert await kit.store.document("default", "group", "a") is None
        assert await kit.store.documents("default", "group") == []
        assert await kit.store.put_document(named("a", b"new"), expect=0) is not None
