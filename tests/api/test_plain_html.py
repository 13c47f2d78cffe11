"""The plain pages are HTML without a mistake: a parser that forgives nothing reads each of them."""

from __future__ import annotations

from typing import Any

import html5lib
import httpx2
import pytest

from holdfast import Flow
from holdfast.holds.links.open import Links
from holdfast.holds.links.tokens import LinkGrant
from holdfast.types.terms import operator
from tests.api.conftest import Server
from tests.api.test_crawler import HTML, crawl
from tests.web.form_flows import SECTIONS

pytestmark = pytest.mark.anyio
MARKUP = '<script>alert(1)</script> & "x" \'</textarea></form> \u202egnp'


TEXT = f"# Title\n\n{MARKUP}\n\n- a\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |"


def parsed(text: str, path: str) -> None:
    try:
        html5lib.HTMLParser(strict=True).parse(text)
    except html5lib.html5parser.ParseError as error:
        raise AssertionError(f"{path}: {error}\n{text}") from error


def kinds_of_fields() -> Flow:
    flow = Flow("kinds", effect="pure", description=MARKUP)
    flow.hold("ask", prompt=f"Ask {{{{number}}}} {MARKUP}", assignee="user:local", sections=[
        *(each for each in SECTIONS if each["type"] != "decision"),
        {"type": "context", "title": MARKUP, "content": TEXT},
        {"type": "decision", "options": [{"id": "yes", "label": MARKUP}, {"id": "no", "variant": "danger"}]},
    ])  # fmt: skip
    return flow


@pytest.mark.covers("WB-68")
async def test_every_plain_page_is_parsed_strictly(server: Server) -> None:
    asking = kinds_of_fields()
    simple = Flow("plain", effect="pure")
    simple.hold("ask", prompt="Ship?", options=["yes", "no"], assignee="user:local")
    failing: Flow = Flow("failing", effect="pure")

    @failing.node
    def fail(s: dict[str, Any]) -> None:
        raise ValueError(MARKUP)

    given: dict[str, Any] = {"number": 1, "letter": MARKUP}
    holds: list[str] = []
    service = await server.hf.service()
    for flow in (asking, simple, simple):
        run = await flow.run(given, on=server.hf)
        holds.append((await service.holds(run.run_id))[0].id)
    await failing.run({}, on=server.hf)
    await server.json("POST", f"/v1/holds/{holds[2]}/resolve", json={"decision": "yes", "comment": MARKUP})
    people = await server.hf.holds()
    row = await people.get(operator(), holds[0])
    link = await Links(people.ctx).make(row, LinkGrant(to="user:dana", purpose="decide"))
    wrong = await server.client.post(f"/holds/{holds[0]}", data={"decision": "yes"}, headers=HTML)
    parsed(wrong.text, "a form with mistakes")
    seen = await crawl(server.client, ["/", "/nothing-here", "/sign-in", "/links", "/runs/unknown"])
    pages = 0
    async with httpx2.AsyncClient(base_url=server.serving.address) as stranger:
        by_link = await crawl(stranger, [f"/l/{link}", "/", f"/l/{link[:-3]}xxx"])
        for client, paths in ((server.client, seen), (stranger, by_link)):
            for path in paths:
                answer = await client.get(path, headers=HTML)
                if answer.headers.get("content-type", "").startswith("text/html"):
                    parsed(answer.text, path)
                    pages += 1
    assert pages > 20, sorted(seen)
