"""An agent's question on its page: the call in words, and a field for each argument of the tool."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import msgspec
import pytest

from holdfast import Scripted, tool_call
from holdfast.api.pages.tool_arguments import argument_data, argument_sections
from holdfast.holds.queries.decided_values import argument_values
from holdfast.types.hold import HoldRow
from holdfast.types.terms import operator
from tests.agents.helpers import World, a_flow
from tests.api.conftest import Server

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-PAGE-02")]
HTML = {"Accept": "text/html"}


async def asked(server: Server) -> HoldRow:
    model = Scripted(tool_call("pay", amount=250, to="c-9"), "Paid.")
    flow = a_flow(model, World().pays(approval=True))
    (hold,) = (await flow.run({"prompt": "Pay"}, on=server.hf)).holds
    return hold


async def page(server: Server, hold: HoldRow) -> str:
    return unescape((await server.client.get(f"/holds/{hold.id}", headers=HTML)).text)


async def answer(server: Server, hold: HoldRow, **fields: str) -> Any:
    shown = await page(server, hold)
    found = re.search(r'name="request_hash" value="([^"]*)"', shown)
    assert found
    form = {"decision": "approve", "request_hash": found[1], **fields}
    reply = await server.client.post(f"/holds/{hold.id}", data=form, headers=HTML)
    assert reply.status_code == 303, reply.text
    row = await (await server.hf.holds()).get(operator(), hold.id)
    return msgspec.json.decode(row.resolution or b"")["response_data"]


async def test_arguments_of_a_tool_have_fields_of_their_own(server: Server) -> None:
    hold = await asked(server)
    shown = await page(server, hold)
    assert "The agent wants to run pay: amount 250, to c-9. Allow it?" in shown
    assert "As JSON" not in shown
    for name, value in (("amount", "250"), ("to", "c-9")):
        assert re.search(rf'name="f\.{name}"[^>]*value="{value}"', shown)


async def test_call_is_approved_as_it_was_asked_when_no_field_is_changed(server: Server) -> None:
    fields = {"f.amount": "250", "f.to": "c-9", "f.holdfast.instructions": ""}
    assert not await answer(server, await asked(server), **fields)


async def test_changed_argument_and_message_reach_the_agent(server: Server) -> None:
    fields = {"f.amount": "200", "f.to": "c-9", "f.holdfast.instructions": "Round down.\r\n"}
    assert await answer(server, await asked(server), **fields) == {
        "arguments": {"amount": 200, "to": "c-9"},
        "modifications": {"instructions": "Round down."},
    }


async def test_fields_are_of_the_kind_of_their_argument_and_empty_ones_say_nothing(server: Server) -> None:
    row = await asked(server)
    properties = {
        "how": {"type": "string", "enum": ["fast", "slow"]},
        "sure": {"type": "boolean"},
        "text": {"type": "string"},
        "parts": {"type": "array"},
        "rate": {"type": "number"},
    }
    row = msgspec.structs.replace(
        row,
        schema=msgspec.json.encode({"properties": {"arguments": {"properties": properties}}}),
        context=msgspec.json.encode({"tool": "x", "arguments": {"text": "a\nb", "rate": 0, "extra": 1}}),
    )
    kinds = {each["field"]: each["kind"] for each in argument_sections(row)}
    kinds.pop("holdfast.instructions")
    assert kinds == {
        "how": "select",
        "sure": "boolean",
        "text": "textarea",
        "parts": "json",
        "rate": "number",
    }
    same = {"how": None, "sure": None, "text": "a\nb", "parts": None, "rate": 0}
    assert argument_data(row, same) is None
    changed = argument_data(row, {**same, "sure": True, "rate": None})
    assert changed == {"arguments": {"text": "a\nb", "sure": True, "extra": 1}}
    assert argument_values(changed) == {"text": "a\nb", "sure": True, "extra": 1}


@pytest.mark.covers("SAFE-READ-10")
async def test_decided_call_shows_its_arguments_and_what_was_changed(server: Server) -> None:
    hold = await asked(server)
    await answer(server, hold, **{"f.amount": "200", "f.to": "c-9", "f.holdfast.instructions": "Round down."})
    shown = " ".join(re.sub(r"<[^>]+>", " ", await page(server, hold)).split())
    assert (
        "Decided values Amount 200 changed; proposed was 250 To c-9 Message to the agent Round down." in shown
    )


@pytest.mark.covers("SAFE-READ-10")
async def test_call_that_was_approved_as_asked_shows_its_arguments_unchanged(server: Server) -> None:
    hold = await asked(server)
    await answer(server, hold, **{"f.amount": "250", "f.to": "c-9"})
    shown = " ".join(re.sub(r"<[^>]+>", " ", await page(server, hold)).split())
    assert "Decided values Amount 250 To c-9" in shown
    assert "changed" not in shown.partition("Decided values")[2].partition("Comments")[0]
