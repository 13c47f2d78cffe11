"""Callers that deploy and activate versions of one document at once, and those of another tenant."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from holdfast.documents.deploy import CURRENT, DeployedFlows
from holdfast.types.document import Document
from tests.api.conftest import Server, server
from tests.api.documents import OTHER, REFUND, deploy
from tests.api.sign_in import bearer, token

__all__ = ["server"]

pytestmark = pytest.mark.anyio


async def current_version(server: Server) -> str:
    found = await server.json("GET", "/v1/flows/refund")
    (current,) = [each["version"] for each in found["versions"] if each["current"]]
    return current


async def test_last_entry_of_the_audit_names_the_version_that_is_current(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = [(await deploy(server, text))["version"] for text in (REFUND, OTHER)]
    service = await server.hf.service()
    store = service.store
    deployed = DeployedFlows(service, "default")
    append = store.append_audit

    async def overtaken(*given: Any) -> Any:
        """Another caller makes its version current between our entry and our change."""
        monkeypatch.setattr(store, "append_audit", append)
        done = await append(*given)
        body = msgspec.json.encode({"version": "canvas-other"})
        await store.put_document(Document(tenant="default", kind=CURRENT, name="refund", body=body))
        return done

    monkeypatch.setattr(store, "append_audit", overtaken)
    await deployed.activate("refund", versions[0], by="user:dana")
    assert await current_version(server) == versions[0]
    entries = [row for row in await store.audit("default") if row.action == "flow_activated"]
    last = msgspec.json.decode(entries[-1].data)
    assert last == {"flow": "refund", "version": versions[0], "before": "canvas-other"}


async def test_documents_that_are_sent_at_once_are_all_stored_and_one_is_current(server: Server) -> None:
    texts = [REFUND.replace("Refund {{amount}}?", f"Refund {n}?") for n in range(6)]

    async def send(text: str) -> str:
        answer = await server.client.post(
            "/v1/flows", content=text.encode(), headers={"Content-Type": "application/yaml"}
        )
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["version"]

    made = await asyncio.gather(*(send(text) for text in [*texts, *texts]))
    assert made[:6] == made[6:]
    assert len(set(made)) == 6
    for text, version in zip(texts, made, strict=False):
        path = f"/v1/flows/refund/versions/{version}/document"
        assert (await server.client.get(path)).content == text.encode()
    assert await current_version(server) in made


async def test_tenants_with_the_same_document_have_layouts_of_their_own(server: Server) -> None:
    version = (await deploy(server))["version"]
    eve = bearer(await token(server, "user:eve@other", "admin", tenant="other"))
    at = f"/v1/flows/refund/versions/{version}"
    layout = (await server.client.get(f"{at}/layout")).json()
    sent = {**eve, "Content-Type": "application/yaml"}
    await server.json("POST", "/v1/flows", 201, content=REFUND.encode(), headers=sent)
    moved = {**layout, "nodes": {**layout["nodes"], "ask": {"position": {"x": 999, "y": 999}}}}
    answer = await server.client.put(f"{at}/layout", json=moved, headers={**eve, "If-Match": '"layout-0"'})
    assert answer.status_code == 200, answer.text
    assert (await server.client.get(f"{at}/layout")).json() == layout
