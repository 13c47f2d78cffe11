"""Bad documents over HTTP: each is refused with rule, place and fix, and nothing of it is stored."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Holdfast
from holdfast.frontends.document.yaml_text import read_yaml
from tests.api.conftest import Server, server, serving
from tests.api.documents import REFUND, YAML, deploy
from tests.documents.rule_examples import EXAMPLES, flow, hold, review
from tests.documents.test_schema import CORPUS, damaged

__all__ = ["server"]

BOMB: Final = "\n".join(
    ["ui:", "  a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    + [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
)
BAD: Final[dict[str, tuple[str, str]]] = {
    "an unknown node type": (EXAMPLES["type-unknown"][0], "type-unknown"),
    "a missing queue": (review("prompt: Go"), "required"),
    "a missing scope": (review("queue: r", head=""), "scope-missing"),
    "duplicate ids": (EXAMPLES["node-duplicate"][0], "node-duplicate"),
    "a template that does not parse": (hold('prompt: "Go {{n"'), "template"),
    "a filter that there is not": (hold('prompt: "Go {{n | shout}}"'), "template"),
    "an expression that does not parse": (EXAMPLES["expression"][0], "expression"),
    "a missing variable": (hold('prompt: "Go {{nowhere}}"'), "variable-unknown"),
    "a YAML tag": (EXAMPLES["tag"][0], "tag"),
    "a YAML tag of Python": (flow("{id: m, type: set, config: {values: {x: !!python/name:os.x }}}"), "tag"),
    "aliases that explode": (REFUND + BOMB, "alias"),
    "a duplicate key": (EXAMPLES["duplicate-key"][0], "duplicate-key"),
    "no YAML": ("holdfast: [", "yaml"),
}  # fmt: skip


async def kept(server: Server) -> tuple[int, int]:
    """How many graphs, and how many records of documents, are stored."""
    store = await server.hf.open()
    records = [await store.documents("default", kind, limit=1000) for kind in KINDS]
    return len(await store.flows()), sum(map(len, records))


KINDS = ("flow_version", "flow_source", "flow_current", "flow_layout")


@pytest.mark.anyio
@pytest.mark.covers("PLATFORM-BAD-01")
@pytest.mark.parametrize("what", BAD)
async def test_bad_document_is_refused_with_place_and_fix_and_nothing_is_stored(
    server: Server, what: str
) -> None:
    text, rule = BAD[what]
    refused = await deploy(server, text, 422)
    assert refused["code"] == "flow_invalid"
    found = [each for each in refused["errors"] if each["rule"] == rule]
    assert found, refused["errors"]
    for each in found:
        assert each["fix"]
        assert each["line"] >= 1
        assert each["column"] >= 1
    checked = await server.json("POST", "/v1/flows/validate", content=text.encode(), headers=YAML)
    assert (checked["valid"], rule in {each["rule"] for each in checked["problems"]}) == (False, True)
    assert await kept(server) == (0, 0)


@asynccontextmanager
async def one_server() -> AsyncIterator[Server]:
    async with Holdfast("memory:") as hf, serving(hf) as found:
        yield found


WHOLE: Final = [read_yaml(path.read_text("utf-8")) for path in sorted(CORPUS.glob("*.yaml"))]
TEXTS: Final = [REFUND, *(fixed for _, fixed in EXAMPLES.values())]
SCALARS: Final = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=20)
)
ANYTHING: Final = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn) -> tuple[bytes, str]:
    """A request that deploys something like a document, and its media type."""
    kind = draw(st.sampled_from(["damaged", "damaged", "cut", "anything"]))
    if kind == "cut":
        text = draw(st.sampled_from(TEXTS)).encode()
        at, size = draw(st.integers(0, len(text))), draw(st.integers(0, 20))
        return text[:at] + draw(st.binary(max_size=8)) + text[at + size :], "application/yaml"
    data: Any = draw(ANYTHING)
    if kind == "damaged":
        choose = random.Random(draw(st.integers(0, 2**32)))
        data = damaged(draw(st.sampled_from(WHOLE)), choose)
    return msgspec.json.encode({"document": data}), "application/json"


async def post(server: Server, body: bytes, media: str) -> None:
    before = await kept(server)
    answer = await server.client.post("/v1/flows", content=body, headers={"Content-Type": media})
    after = await kept(server)
    assert answer.status_code in (200, 201, 409, 422), answer.text
    if answer.status_code != 201:
        assert after == before, answer.text
        return
    sent = answer.json()
    base = f"/v1/flows/{sent['name']}/versions/{sent['version']}"
    for path in (base, f"{base}/document?format=yaml", f"{base}/document?format=source", f"{base}/drawing"):
        assert (await server.client.get(path)).status_code == 200, path
    again = await server.client.post("/v1/flows", content=body, headers={"Content-Type": media})
    assert (again.status_code, again.json()["version"]) == (200, sent["version"])


def fuzz(examples: int) -> None:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(one_server()) as server:

        @settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
        @given(bodies())
        def send(body: tuple[bytes, str]) -> None:
            portal.call(post, server, *body)

        send()


@pytest.mark.covers("CV-51")
def test_document_made_at_random_is_stored_whole_or_refused_and_never_breaks_the_server() -> None:
    fuzz(60)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_documents_made_at_random_are_stored_whole_or_refused() -> None:
    fuzz(int(os.environ.get("HOLDFAST_FUZZED_DOCUMENTS", "10000")))
