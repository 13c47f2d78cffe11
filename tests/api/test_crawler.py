"""Whoever follows every link, by GET and by HEAD, decides nothing: previews, scanners, crawlers, prefetch."""

from __future__ import annotations

import re
from html import unescape
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2
import pytest

from holdfast import Flow
from holdfast.api.pages.all import PAGES
from holdfast.api.routes.all import THEMES
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant
from holdfast.store.rows import RunFilter
from holdfast.types.terms import operator
from tests.api.conftest import Server

pytestmark = pytest.mark.anyio
HTML = {"Accept": "text/html"}
LOOKED = frozenset({"link_opened", "refused", "access_refused"})
"""What the audit says of somebody who only looked."""


async def everything(server: Server) -> tuple[Any, ...]:
    """All that a decision or an act would change."""
    service = await server.hf.service()
    holds = await service.store.holds(run=None, status=None, limit=1000)
    runs = await service.store.list_runs(RunFilter(), after=None, limit=1000)
    notes = [await service.store.hold_notes(row.id) for row in holds]
    audit = [row for row in await service.store.audit("default") if row.action not in LOOKED]
    assert holds, "there is something that could be decided"
    assert audit
    return holds, runs, notes, audit


async def crawl(client: httpx2.AsyncClient, starts: list[str]) -> dict[str, int]:
    """Every address that can be reached, each asked by HEAD and by GET, with its status."""
    seen: dict[str, int] = {}
    waiting = list(starts)
    while waiting and len(seen) < 400:
        path = waiting.pop()
        if path in seen:
            continue
        await client.head(path, headers=HTML)
        answer = await client.get(path, headers=HTML)
        await client.head(path, headers=HTML)
        seen[path] = answer.status_code
        found = [answer.headers["location"]] if "location" in answer.headers else []
        if answer.headers.get("content-type", "").startswith("text/html"):
            found += [unescape(each) for each in re.findall(r'(?:href|src|action)="([^"]+)"', answer.text)]
        for each in found:
            parts = urlsplit(urljoin(f"http://x{path}", each))
            if parts.netloc == "x":
                waiting.append(f"{parts.path}{f'?{parts.query}' if parts.query else ''}")
    return seen


async def asked(server: Server) -> list[str]:
    """Three questions of three runs, one of them with a form."""
    found: list[str] = []
    for name, more in (
        ("plain", {"options": ["yes", "no"], "assignee": "user:dana"}),
        ("formal", {"sections": [{"type": "input", "field": "why"}], "assignee": "user:local"}),
        ("undone", {"options": ["yes", "no"], "undo": 30}),
    ):
        flow = Flow(name, effect="pure")
        flow.hold("ask", prompt=f"{name}?", **more)
        result = await flow.run({}, on=server.hf)
        found.append((await (await server.hf.service()).holds(result.run_id))[0].id)
    return found


@pytest.mark.covers("SERVER-PROOF-03", "SERVER-PAGE-02", "SERVER-PAGE-03")
async def test_get_and_head_to_every_link_decide_nothing(server: Server) -> None:
    holds = await asked(server)
    people = await server.hf.holds()
    rows = [await people.get(operator(), hold) for hold in holds]
    links = [await Links(people.ctx).make(row, LinkGrant(to="user:dana", purpose="decide")) for row in rows]
    before = await everything(server)
    seen = await crawl(server.client, ["/", *(f"/l/{token}" for token in links)])
    async with httpx2.AsyncClient(base_url=server.serving.address) as stranger:
        by_link = await crawl(stranger, [f"/l/{token}" for token in links])
    assert await everything(server) == before
    for hold in holds:
        assert seen[f"/holds/{hold}"] == 200
        assert by_link[f"/link/{hold}"] == 200
    kinds = {re.sub(r"[0-9a-f-]{36}", "ID", path).partition("?")[0] for path in seen}
    assert {
        "/",
        "/holds",
        "/runs",
        "/runs/ID",
        "/runs/ID/drawing.svg",
        "/flows",
        "/static/pages.css",
    } <= kinds
    assert not [path for path, status in (*seen.items(), *by_link.items()) if status >= 500]


@pytest.mark.covers("SERVER-PROOF-03")
async def test_get_and_head_to_every_route_change_nothing(server: Server) -> None:
    """Also those that no page leads to, filled in with what there is."""
    holds = await asked(server)
    run = (await (await server.hf.holds()).get(operator(), holds[0])).run
    before = await everything(server)
    fillings = {"hold": holds[0], "checkpoint": holds[0], "run": run, "flow": "plain", "name": "pages.css"}
    paths: set[str] = set()
    for route in (*PAGES, *(route for theme in THEMES for route in theme.found)):
        # Streams have no end; that somebody took evidence is in the audit, as it should be.
        if "stream" not in route.path and not route.path.endswith("/evidence"):
            paths.add(re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: fillings.get(found[1], "x"), route.path))
    for path in sorted(paths):
        for method in ("GET", "HEAD"):
            answer = await server.client.request(method, path, headers=HTML if "/v" not in path else {})
            assert answer.status_code < 500, (method, path, answer.text)
    assert await everything(server) == before
