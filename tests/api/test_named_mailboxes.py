"""Without a directory an assignee is only a name: who writes it through a server may be its mailbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Context, Flow
from holdfast.types.status import HoldStatus
from tests.api.office import Office, office_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-08"), pytest.mark.covers("SAFE-CHAIN-09")]

# Not written as one text: what the module of a flow contains, the program says.
MINE = "@".join(("ada", "evil.example"))
NOT_HER: dict[str, Any] = {"approval": {"exclude": ["initiator"]}}
BOSS: dict[str, Any] = {"assignee": "user:boss@acme", **NOT_HER}


async def deployed(office: Office, **defaults: str) -> None:
    await office.ask("ada", "PUT", "/v1/deployments/till", {"flow": "refund", "defaults": defaults})


async def ruled(office: Office, **rule: Any) -> None:
    await office.ask("ada", "PUT", "/v1/policies/hers", {"rules": [{"name": "all", **rule}]})


async def by_default(office: Office) -> str:
    await deployed(office, assignee=f"user:{MINE}")
    return (await office.asks(deployment="till", **NOT_HER)).id


async def by_escalation(office: Office) -> str:
    await deployed(office, timeout="1m", on_timeout=f"escalate:user:{MINE}")
    return (await office.asks(deployment="till", **BOSS)).id


async def by_delegation(office: Office) -> str:
    await deployed(office)
    await office.ask("ada", "PUT", "/v1/deployments/till/delegation", {"to": f"user:{MINE}"})
    return (await office.asks(deployment="till", assignee="delegated_user", **NOT_HER)).id


async def by_rule(office: Office) -> str:
    await ruled(office, assign=f"user:{MINE}")
    return (await office.asks(**NOT_HER)).id


async def by_rung(office: Office) -> str:
    await ruled(office, timeout="1m", ladder=[{"to": f"user:{MINE}", "after": "1m"}])
    return (await office.asks(**BOSS)).id


async def by_voters(office: Office) -> str:
    await ruled(office, approval={"mode": "quorum", "need": 1, "of": [f"user:{MINE}"]})
    return (await office.asks(**NOT_HER)).id


async def by_reassignment(office: Office) -> str:
    hold = (await office.asks(**BOSS)).id
    await office.ask("ada", "POST", f"/v1/holds/{hold}/reassign", {"assignee": f"user:{MINE}"})
    return hold


async def by_input(office: Office, **asked: Any) -> str:
    flow = Flow("named", effect="pure")
    flow.hold(
        "approve",
        prompt="Pay?",
        options=["approve", "reject"],
        **(asked or {"assignee": "user:{{boss}}"}),
        **NOT_HER,
    )
    office.hf.register(flow.program())
    body = {"flow": "named", "input": {"boss": MINE}}
    run = (await office.ask("ada", "POST", "/v1/runs", body, status=201))["id"]
    (hold,) = (await flow.resume(run, on=office.hf)).holds
    return str(hold.id)


async def by_input_of_a_rung(office: Office) -> str:
    return await by_input(
        office, assignee="user:boss@acme", timeout="1m", on_timeout="escalate:user:{{boss}}"
    )


def asking(manner: Callable[[dict[str, Any]], dict[str, Any]]) -> Flow:
    """It asks in the middle of a node."""
    flow = Flow("named", effect="pure")

    @flow.script
    async def gate(s: dict[str, Any], ctx: Context) -> None:
        await ctx.ask("Pay?", options=["approve", "reject"], **NOT_HER, **manner(s))

    flow.start(gate)
    return flow


async def started(office: Office, flow: Flow, given: dict[str, Any]) -> str:
    office.hf.register(flow.program())
    body = {"flow": "named", "input": given}
    run = (await office.ask("ada", "POST", "/v1/runs", body, status=201))["id"]
    (hold,) = (await flow.resume(run, on=office.hf)).holds
    return str(hold.id)


async def by_ask(office: Office) -> str:
    return await started(office, asking(lambda s: {"assignee": s["boss"]}), {"boss": MINE})


async def by_ask_with_parts(office: Office) -> str:
    user, _, domain = MINE.partition("@")
    flow = asking(lambda s: {"assignee": f"user:{s['name']}@{s['domain']}"})
    return await started(office, flow, {"name": user, "domain": domain})


async def by_ask_backwards(office: Office) -> str:
    return await started(office, asking(lambda s: {"assignee": s["boss"][::-1]}), {"boss": MINE[::-1]})


async def by_rung_of_ask(office: Office) -> str:
    def manner(s: dict[str, Any]) -> dict[str, Any]:
        return {"assignee": "user:boss@acme", "timeout": "1m", "on_timeout": f"escalate:user:{s['boss']}"}

    return await started(office, asking(manner), {"boss": MINE})


async def by_ask_in_a_fork(office: Office) -> str:
    hold = await started(office, asking(lambda s: {"assignee": s["boss"]}), {"boss": "user:boss@acme"})
    run = (await office.row(hold)).run
    body = {"seq": 0, "patch": {"input": {"boss": MINE}}}
    made = await office.ask("ada", "POST", f"/v1/runs/{run}/fork", body, status=201)
    flow = asking(lambda s: {"assignee": s["boss"]})
    (hold,) = (await flow.resume(made["id"], on=office.hf)).holds
    return str(hold.id)


Way = Callable[[Office], Awaitable[str]]
WAYS: dict[str, Way] = {
    each.__name__: each
    for each in (
        by_default, by_escalation, by_delegation, by_rule, by_rung, by_voters, by_reassignment, by_input,
        by_input_of_a_rung, by_ask, by_ask_with_parts, by_ask_backwards, by_rung_of_ask, by_ask_in_a_fork,
    )
}  # fmt: skip


async def arrives(office: Office) -> list[str]:
    """The links in her mailbox, after the deadlines."""
    office.clock.advance(minutes=2)
    sweeper = (await office.hf.service()).runtime.sweeper
    assert sweeper is not None
    await sweeper.sweep()
    await office.delivers()
    return office.mail.links(MINE)


@pytest.mark.parametrize("way", WAYS)
async def test_a_starter_does_not_approve_by_a_mailbox_when_she_named_it(way: str) -> None:
    async with office_of(directory=None, policies="store") as office:
        hold = await WAYS[way](office)
        links = await arrives(office)
        assert links or way == "by_delegation"
        for link in links:
            assert not await office.decide_by_link(link)
        assert (await office.row(hold)).status is HoldStatus.pending


async def test_a_person_named_in_the_input_decides_when_they_sign_in() -> None:
    """A token of the operator proves who they are, whoever wrote their name."""
    async with office_of(directory=None) as office:
        flow = Flow("named", effect="pure")
        flow.hold("approve", prompt="Pay?", options=["approve"], assignee="user:{{boss}}", **NOT_HER)
        office.hf.register(flow.program())
        body = {"flow": "named", "input": {"boss": "dana"}}
        run = (await office.ask("ada", "POST", "/v1/runs", body, status=201))["id"]
        (hold,) = (await flow.resume(run, on=office.hf)).holds
        assert (await office.decide("dana", hold.id)).status_code == 200


async def test_a_mailbox_named_by_the_flow_decides() -> None:
    async with office_of(directory=None) as office:
        hold = await office.asks(**BOSS)
        await office.delivers()
        (link,) = office.mail.links("boss@acme")
        assert await office.decide_by_link(link)
        assert (await office.row(hold.id)).status is HoldStatus.resolved


BOSSES = {"acme": "boss@acme"}


def given_boss(boss: str) -> Flow:
    return asking(lambda _: {"assignee": boss})


PROGRAMS: dict[str, Callable[[], Flow]] = {
    "a literal": lambda: asking(lambda _: {"assignee": "user:boss@acme"}),
    "a constant": lambda: asking(lambda s: {"assignee": f"user:{BOSSES[s['company']]}"}),
    "a variable around it": lambda: given_boss("boss@" + BOSSES["acme"].partition("@")[2]),
}


@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_mailbox_named_by_a_program_decides(program: str) -> None:
    async with office_of(directory=None) as office:
        hold = await started(office, PROGRAMS[program](), {"company": "acme"})
        await office.delivers()
        (link,) = office.mail.links("boss@acme")
        assert await office.decide_by_link(link)
        assert (await office.row(hold)).status is HoldStatus.resolved
