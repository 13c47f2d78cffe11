"""Delegated users among those who vote, and as starters of the run; traces of who was let decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from holdfast import Away, Flow
from holdfast.errors import ExcludedError
from holdfast.holds.notify.channels import Channels
from holdfast.holds.notify.digest import Digest
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus
from tests.holds.scenarios.firm import Channel, Firm, person

pytestmark = pytest.mark.anyio


async def asked(firm: Firm, *, by: str | None = None, **terms: Any) -> HoldRow:
    """Under a deployment that is delegated to Bob."""
    flow = Flow("refund", effect="pure")
    flow.hold("approve", prompt="Pay?", options=["approve", "reject"], **terms)
    await firm.hf.deploy("desk", flow, on_behalf_of="user:bob@acme")
    result = await flow.run({}, on=firm.hf, deployment="desk", started_by=by)
    return await firm.row(result.holds[0].id)


@pytest.mark.covers("AS-9", "HOLD-AUTH-05")
async def test_delegated_user_has_a_vote_where_they_are_named_for_it(firm: Firm) -> None:
    two = {"mode": "quorum", "need": 2, "of": ["delegated_user", "group:finance"]}
    row = await asked(firm, approval=two)
    assert row.assignee_type == "delegated_user"
    assert [each.id for each in (await firm.holds.list(person("bob"), view="mine")).rows] == [row.id]
    await firm.holds.resolve(person("bob"), row.id, "approve")
    done = await firm.holds.resolve(person("sam"), row.id, "approve")
    assert done.row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-SEC-10", "AS-9")
async def test_starter_to_whom_it_is_delegated_later_does_not_decide_it(firm: Firm) -> None:
    row = await asked(firm, assignee="delegated_user", by="user:kim")
    await (await firm.hf.deployments()).delegate("desk", "user:kim@acme")
    with pytest.raises(ExcludedError, match="only after the hold was opened"):
        await firm.holds.resolve(person("kim"), row.id, "approve")


@pytest.mark.covers("HOLD-SEC-10", "AS-9")
async def test_starter_who_is_the_delegated_user_already_decides(firm: Firm) -> None:
    row = await asked(firm, assignee="delegated_user", by="user:bob")
    done = await firm.holds.resolve(person("bob@acme"), row.id, "approve")
    assert done.row.status is HoldStatus.resolved


@pytest.mark.covers("HOLD-SEC-13")
async def test_who_may_decide_is_changed_by_nobody_without_a_trace(firm: Firm) -> None:
    store = firm.holds.store
    before, _ = await store.audit_head("default")
    await firm.people.join("default", "group:board", "sam")
    await firm.people.leave("default", "group:board", "sam")
    await firm.people.put_away("default", "dana", Away(substitute="kim"))
    await firm.people.delete_person("default", "bob")
    await firm.hf.deploy("desk", "refund", assignee="group:board", by="user:ada")
    result = await store.audit("default", after=before)
    assert [each.action for each in result] == [
        "circle_kept", "circle_kept", "away", "person_dropped", "deployed"
    ]  # fmt: skip
    assert msgspec.json.decode(result[0].data) == {
        "circle": "group:board",
        "members": ["dana", "kim", "sam"],
    }
    assert result[-1].actor == "user:ada"
    assert msgspec.json.decode(result[-1].data)["defaults"]["assignee"] == "group:board"
    assert (await firm.holds.verify_audit("default")).whole


@pytest.mark.covers("AS-9", "HOLD-AUTH-07")
async def test_delegated_user_has_a_veto_where_they_are_named_for_it(firm: Firm) -> None:
    two = {"mode": "quorum", "need": 2, "veto": ["delegated_user"]}
    row = await asked(firm, assignee="group:finance", approval=two)
    done = await firm.holds.resolve(person("bob"), row.id, "reject")
    assert done.row.status is HoldStatus.resolved


class Reading(Channel):
    async def admins(self) -> Sequence[str]:
        return ("ops",)


@pytest.mark.covers("AS-9", "NO-6")
async def test_digest_has_what_waits_for_a_delegation_that_was_revoked(firm: Firm) -> None:
    row = await asked(firm, assignee="delegated_user")
    reading = Reading()
    channels = Channels(firm.holds.store, firm.clock, given=[reading])
    digest = Digest(firm.holds.store, channels)
    assert await digest.send("default") == 0
    await (await firm.hf.deployments()).revoke("desk")
    assert await digest.send("default") == 1
    assert row.id in reading.told[0].prompt
