"""Every kind of credential carries who made it and for whom, up to the decision that is made with it."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

import holdfast
from holdfast.api.auth.grants import CredentialGrant
from holdfast.api.auth.sessions import Sessions
from holdfast.types.status import HoldStatus
from tests.api.harness import SITE, Harness, harness_of
from tests.api.lone_person import LonePerson

pytestmark = pytest.mark.anyio

SOURCE = Path(holdfast.__file__).parent
AT_THE_STORE = {"types/terms.py", "cli/hold_session.py"}
"""Operators with the store itself, who need no credential."""


@pytest.fixture
async def harness(anyio_backend: str) -> AsyncIterator[Harness]:
    async with harness_of(slack=True) as found:
        yield found


@pytest.mark.covers("SAFE-CHAIN-01")
def test_every_actor_is_made_with_a_chain() -> None:
    """A new way to act has to say who made its credential."""
    without: set[str] = set()
    seen = 0
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        if "testing" in file.parts or "Actor(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Actor":
                seen += 1
                if "chain" not in {each.arg for each in node.keywords}:
                    without.add(file.relative_to(SOURCE).as_posix())
    assert seen >= 8
    assert without == AT_THE_STORE


async def by_token(harness: Harness, hold: str) -> None:
    await harness.ask("dana", "POST", f"/v1/holds/{hold}/resolve", {"decision": "approve"})


async def by_made_token(harness: Harness, hold: str) -> None:
    token = await harness.mint("ada", "user:dana")
    await harness.ask(token, "POST", f"/v1/holds/{hold}/resolve", {"decision": "approve"})


async def _in_browser(harness: Harness, hold: str, signs_in: Callable[[Any], Awaitable[Any]]) -> None:
    async with httpx2.AsyncClient(transport=harness.transport, base_url=SITE) as browser:
        browser.headers["Origin"] = SITE
        await signs_in(browser)
        csrf = (await browser.get("/v1/session")).json()["csrf"]
        said = await browser.post(
            f"/v1/holds/{hold}/resolve", json={"decision": "approve"}, headers={"X-CSRF-Token": csrf}
        )
        assert said.status_code == 200, said.text


async def by_session_of_a_token(harness: Harness, hold: str) -> None:
    token = await harness.mint("ada", "user:dana")
    await _in_browser(harness, hold, lambda browser: browser.post("/v1/session", json={"token": token}))


async def by_session_of_a_code(harness: Harness, hold: str) -> None:
    grant = CredentialGrant(subject="user:dana", roles=("member",))
    code = await Sessions(await harness.hf.open()).new_code(grant)
    await _in_browser(harness, hold, lambda browser: browser.get(f"/sign-in?code={code}"))


async def by_link(harness: Harness, hold: str) -> None:
    await harness.ask("ada", "POST", f"/v1/holds/{hold}/links", {"to": "user:dana"}, status=201)
    await harness.delivers()
    assert await harness.decide_by_link(harness.mail.links("dana@acme")[-1])


async def by_click(harness: Harness, hold: str) -> None:
    path = "/v1/inbound/slack/desk/people/U-ADA"
    await harness.ask("ada", "PUT", path, {"person": "user:dana"}, status=204)
    await LonePerson(harness, "not the starter")._click(await harness.row(hold))


OPERATOR = "system:operator"
MADE = [("token", OPERATOR, "user:ada"), ("token", "user:ada", "user:dana")]
KINDS: dict[str, tuple[Any, list[tuple[str, str, str]]]] = {
    "token of the command line": (by_token, [("token", OPERATOR, "user:dana")]),
    "token made over HTTP": (by_made_token, MADE),
    "session of that token": (by_session_of_a_token, [*MADE, ("session", "user:dana", "user:dana")]),
    "session of a code": (by_session_of_a_code, [("session", OPERATOR, "user:dana")]),
    "link": (by_link, [("link", "system:notify", "user:dana@acme")]),
    "chat account": (by_click, [("slack", "user:ada", "user:dana")]),
}


@pytest.mark.covers("SAFE-CHAIN-01")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_decision_names_who_made_the_credential_and_for_whom(harness: Harness, kind: str) -> None:
    decide, expected = KINDS[kind]
    hold = await harness.asks(assignee="user:dana", started_by="user:kim")
    await decide(harness, hold.id)
    row = await harness.row(hold.id)
    assert row.status is HoldStatus.resolved
    said = msgspec.json.decode(row.resolution or b"{}")
    found = [
        (each["kind"], each["by"], each["to"]) for each in said["chain"] if each["by"] != "user:ada@acme"
    ]
    # The maker's own credential stands before what they made with it.
    assert found[-len(expected) :] == expected
    assert ("ada" in said["took_part"]) == any(by == "user:ada" for _, by, _ in expected)
    audited = next(each["data"] for each in await harness.audit() if each["action"] == "resolved")
    assert audited["chain"] == said["chain"]


@pytest.mark.covers("SAFE-CHAIN-01")
async def test_a_token_of_an_earlier_release_counts_as_made_by_its_maker(harness: Harness) -> None:
    """Their documents have `made_by` and no chain."""
    store = await harness.hf.open()
    token = await harness.mint("ada", "user:dana")
    name = token.split("_")[1]
    kept = await store.document("_server", "token", name)
    assert kept is not None
    old = msgspec.json.decode(kept.body)
    del old["grant"]["chain"]
    await store.put_document(msgspec.structs.replace(kept, body=msgspec.json.encode(old)))
    harness.forget_tokens()
    hold = await harness.asks(assignee="user:dana", approval={"exclude": ["initiator"]})
    refused = await harness.decide(token, hold.id)
    assert (refused.status_code, refused.json()["code"]) == (403, "excluded")
