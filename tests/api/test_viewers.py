"""What the role `viewer` sees of holds: all that are assigned, and decides and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow
from holdfast.api.pages.negotiation import TAG
from tests.api.conftest import Server
from tests.api.sign_in import bearer, token
from tests.api.test_matrix import ROUTES, SAFE, filled

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-EDGE-08")]


def _flow() -> Flow:
    flow = Flow("shown", effect="pure")
    flow.hold("approve", prompt="Pay {{amount}}?", options=["approve", "reject"], assignee="{{whom}}")
    return flow


async def _holds(server: Server) -> dict[str, str]:
    found: dict[str, str] = {}
    for whom in ("user:dana", "group:finance", "role:cfo"):
        done = await _flow().run({"amount": 7, "whom": whom}, on=server.hf)
        found[whom] = done.holds[0].id
    lost = Flow("lost", effect="pure")
    lost.hold("approve", prompt="Whose?", options=["approve", "reject"])
    found["unassigned"] = (await lost.run({}, on=server.hf)).holds[0].id
    return found


async def test_viewer_sees_every_assigned_hold_and_decides_none(server: Server) -> None:
    holds = await _holds(server)
    viewer = bearer(await token(server, "user:vic", "viewer"))
    page = await server.json("GET", "/v1/holds?view=all", headers=viewer)
    assert {each["id"] for each in page["items"]} == set(holds.values()) - {holds["unassigned"]}
    for whom, hold in holds.items():
        seen = await server.client.get(f"/v1/holds/{hold}", headers=viewer)
        assert seen.status_code == (403 if whom == "unassigned" else 200), whom
    for route in ROUTES:
        if route.tag == TAG or route.method in SAFE or route.path.endswith(("presence", "consequences")):
            continue
        if "{hold}" in route.path:
            path = filled(route.path, hold=holds["user:dana"])
            answer = await server.client.request(route.method, path, headers=viewer, json={})
            assert answer.status_code in (403,), (route.path, answer.status_code)


@pytest.mark.parametrize(("role", "rights"), [("member", ()), ("", ("holds:read",)), ("", ("holds:write",))])
async def test_others_see_their_own_holds_only(server: Server, role: str, rights: Any) -> None:
    holds = await _holds(server)
    roles = (role,) if role else ()
    dana = bearer(await token(server, "user:dana", *roles, rights=rights))
    page = await server.json("GET", "/v1/holds?view=all", headers=dana)
    assert {each["id"] for each in page["items"]} == {holds["user:dana"]}
    other = await server.client.get(f"/v1/holds/{holds['role:cfo']}", headers=dana)
    assert other.status_code == 403


async def test_viewer_who_is_a_member_too_comments_only_where_they_take_part(server: Server) -> None:
    holds = await _holds(server)
    both = bearer(await token(server, "user:dana", "viewer", "member"))
    for whom, status in (("user:dana", 201), ("role:cfo", 403)):
        path = f"/v1/holds/{holds[whom]}/comments"
        answer = await server.client.post(path, headers=both, json={"text": "hm"})
        assert answer.status_code == status, (whom, answer.text)


async def test_labels_of_options_are_templates_wherever_options_are(server: Server) -> None:
    """Of a hold, of the decision and of a field of its form; ids are not, and `ctx.ask` has none."""
    flow = Flow("labels", effect="pure")
    options = [{"id": "yes", "label": "Pay {{amount}}"}, {"id": "no", "label": "No"}]
    flow.hold("plain", prompt="?", options=options, assignee="user:dana")
    plain = (await flow.run({"amount": 7}, on=server.hf)).holds[0]
    sectioned = Flow("labels-2", effect="pure")
    fields = [{"type": "input", "field": "a", "kind": "select", "options": options},
              {"type": "decision", "options": options}]  # fmt: skip
    sectioned.hold("form", prompt="?", sections=fields, into="form", assignee="user:dana")
    form = (await sectioned.run({"amount": 7}, on=server.hf)).holds[0]
    for hold in (plain, form):
        wire = await server.json("GET", f"/v1/holds/{hold.id}")
        shown = [(each["id"], each["label"]) for each in wire["options"]]
        assert shown == [("yes", "Pay 7"), ("no", "No")]
        page = (await server.client.get(f"/holds/{hold.id}", headers={"Accept": "text/html"})).text
        assert "Pay 7" in page
        assert "Pay {{" not in page
    asks = Flow("asks")

    @asks.script
    async def ask(ctx: Any) -> None:
        await ctx.ask("{{amount}}?", options=options, assignee="user:dana")

    asked = (await asks.run({"amount": 7}, on=server.hf)).holds[0]
    assert asked.prompt == "{{amount}}?"
    assert [each.label for each in asked.options or ()] == ["Pay {{amount}}", "No"]


def test_template_in_a_label_is_checked_when_the_flow_is_built() -> None:
    flow = Flow("wrong", effect="pure")
    options = [{"id": "a", "label": "{{ amount"}, "{{amount}}"]
    flow.hold("ask", prompt="?", options=options, assignee="user:dana")
    said = " ".join(str(each) for each in flow.problems())
    assert "the label of its option 'a'" in said
    assert "'{{amount}}' must not have placeholders" in said
