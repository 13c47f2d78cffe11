"""The value of a step whose key says that it is private stays in the journal: no client gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.local_token import LocalToken
from holdfast.api.pages.all import PAGES
from holdfast.api.routes.all import THEMES
from holdfast.types.record import PRIVATE
from tests.api.test_matrix import filled
from tests.flows.places import told

pytestmark = pytest.mark.anyio
MARK = "kept-in-the-journal-9f81c2"


def a_flow() -> Flow:
    flow = Flow("private")

    @flow.script(id="work")
    async def work(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        kept = await ctx.step(
            "run_state", lambda: {"state": MARK}, key=f"{PRIVATE}agent/state", effect="pure"
        )
        await ctx.step("open_step", lambda: "open-value", key="agent/open", effect="read")
        reply = await ctx.ask("Go on?", options=["yes"], key="ask")
        assert kept["state"] == MARK
        return {"answer": reply.decision}

    flow.start(work)
    return flow


async def answers(hf: Holdfast, run: str, hold: str) -> dict[str, str]:
    """What the server says about a run, by route."""
    own = LocalToken()
    app = build(hf, Authenticator(hf, local=own), ApiSettings(pace=0), THEMES)
    headers = {"Authorization": f"Bearer {own.token}"}
    found: dict[str, str] = {}
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url="http://localhost", headers=headers
    ) as client:
        for route in [*(each for theme in THEMES for each in theme.found), *PAGES]:
            if route.method != "GET" or "stream" in route.path or "/events" in route.path:
                continue
            if route.path.endswith("/export"):  # a copy of the journal, with which the run is resumed
                continue
            names = {"run": run, "hold": hold, "flow": "private", "checkpoint": hold, "id": "latest"}
            accept = "text/html" if route.tag == "pages" else "application/json"
            params = {"to": run} if route.path.endswith("/diff") else {}
            path = filled(route.path, version="latest", **names)
            found[route.path] = (await client.get(path, headers={"Accept": accept}, params=params)).text
    return found


@pytest.mark.covers("IN-62")
async def test_no_answer_of_the_server_has_the_value_of_a_private_step(tmp_path: Path) -> None:
    flow = a_flow()
    async with Holdfast(f"sqlite:{tmp_path / 'x.db'}") as hf:
        result = await flow.run({}, on=hf)
        (hold,) = result.holds
        shown = await answers(hf, result.run_id, hold.id)
        await (await hf.service()).answer(hold.id, "yes")
        result = await flow.resume(result.run_id, on=hf)
        assert result.completed, result
        shown |= {f"{path} later": text for path, text in (await answers(hf, result.run_id, hold.id)).items()}
        shown["events"] = repr(await told(hf, result))
    assert any("open-value" in text for text in shown.values()), "values of other steps are shown"
    assert any("run_state" in text for text in shown.values()), "the step itself is shown"
    assert [path for path, text in shown.items() if MARK in text] == []
