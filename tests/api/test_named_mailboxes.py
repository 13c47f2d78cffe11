"""Without a directory an assignee is only a name: who writes it through a server may be its mailbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast import Context, Flow
from holdfast.types.status import HoldStatus
from tests.api.harness import Harness, harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-08"), pytest.mark.covers("SAFE-CHAIN-09")]

# Not written as one text: what the module of a flow contains, the program says.
MINE = "@".join(("ada", "evil.example"))
NOT_HER: dict[str, Any] = {"approval": {"exclude": ["initiator"]}}
BOSS: dict[str, Any] = {"assignee": "user:boss@acme", **NOT_HER}


async def deployed(harness: Harness, **defaults: str) -> None:
    await harness.ask("ada", "PUT", "/v1/deployments/till", {"flow": "refund", "defaults": defaults})


async def ruled(harness: Harness, **rule: Any) -> None:
    await harness.ask("ada", "PUT", "/v1/policies/hers", {"rules": [{"name": "all", **rule}]})


async def by_default(harness: Harness) -> str:
    await deployed(harness, assignee=f"user:{MINE}")
    return (await harness.asks(deployment="till", **NOT_HER)).id


async def by_escalation(harness: Harness) -> str:
    await deployed(harness, timeout="1m", on_timeout=f"escalate:user:{MINE}")
    return (await harness.asks(deployment="till", **BOSS)).id


async def by_delegation(harness: Harness) -> str:
    await deployed(harness)
    await harness.ask("ada", "PUT", "/v1/deployments/till/delegation", {"to": f"user:{MINE}"})
    return (await harness.asks(deployment="till", assignee="delegated_user", **NOT_HER)).id


async def by_rule(harness: Harness) -> str:
    await ruled(harness, assign=f"user:{MINE}")
    return (await harness.asks(**NOT_HER)).id


async def by_rung(harness: Harness) -> str:
    await ruled(harness, timeout="1m", ladder=[{"to": f"user:{MINE}", "after": "1m"}])
    return (await harness.asks(**BOSS)).id


async def by_voters(harness: Harness) -> str:
    await ruled(harness, approval={"mode": "quorum", "need": 1, "of": [f"user:{MINE}"]})
    return (await harness.asks(**NOT_HER)).id


async def by_reassignment(harness: Harness) -> str:
    hold = (await harness.asks(**BOSS)).id
    await harness.ask("ada", "POST", f"/v1/holds/{hold}/reassign", {"assignee": f"user:{MINE}"})
    return hold


async def by_input(harness: Harness, **asked: Any) -> str:
    flow = Flow("named", effect="pure")
    flow.hold(
        "approve",
        prompt="Pay?",
        options=["approve", "reject"],
        **(asked or {"assignee": "user:{{boss}}"}),
        **NOT_HER,
    )
    harness.hf.register(flow.program())
    body = {"flow": "named", "input": {"boss": MINE}}
    run = (await harness.ask("ada", "POST", "/v1/runs", body, status=201))["id"]
    (hold,) = (await flow.resume(run, on=harness.hf)).holds
    return str(hold.id)


async def by_input_of_a_rung(harness: Harness) -> str:
    return await by_input(
        harness, assignee="user:boss@acme", timeout="1m", on_timeout="escalate:user:{{boss}}"
    )


def asking(manner: Callable[[dict[str, Any]], dict[str, Any]]) -> Flow:
    """It asks in the middle of a node."""
    flow = Flow("named", effect="pure")

    @flow.script
    async def gate(s: dict[str, Any], ctx: Context) -> None:
        await ctx.ask("Pay?", options=["approve", "reject"], **NOT_HER, **manner(s))

    flow.start(gate)
    return flow


async def started(harness: Harness, flow: Flow, given: dict[str, Any]) -> str:
    harness.hf.register(flow.program())
    body = {"flow": "named", "input": given}
    run = (await harness.ask("ada", "POST", "/v1/runs", body, status=201))["id"]
    (hold,) = (await flow.resume(run, on=harness.hf)).holds
    return str(hold.id)


async def by_ask(harness: Harness) -> str:
    return await started(harness, asking(lambda s: {"assignee": s["boss"]}), {"boss": MINE})


async def by_ask_with_parts(harness: Harness) -> str:
    user, _, domain = MINE.partition("@")
    flow = asking(lambda s: {"assignee": f"user:{s['name']}@{s['domain']}"})
    return await started(harness, flow, {"name": user, "domain": domain})


async def by_ask_backwards(harness: Harness) -> str:
    return await started(harness, asking(lambda s: {"assignee": s["boss"][::-1]}), {"boss": MINE[::-1]})


async def by_rung_of_ask(harness: Harness) -> str:
    def manner(s: dict[str, Any]) -> dict[str, Any]:
        return {"assignee": "user:boss@acme", "timeout": "1m", "on_timeout": f"escalate:user:{s['boss']}"}

    return await started(harness, asking(manner), {"boss": MINE})


async def by_ask_in_a_fork(harness: Harness) -> str:
    hold = await started(harness, asking(lambda s: {"assignee": s["boss"]}), {"boss": "user:boss@acme"})
    run = (await harness.row(hold)).run
    body = {"seq": 0, "patch": {"input": {"boss": MINE}}}
    made = await harness.ask("ada", "POST", f"/v1/runs/{run}/fork", body, status=201)
    flow = asking(lambda s: {"assignee": s["boss"]})
    (hold,) = (await flow.resume(made["id"], on=harness.hf)).holds
    return str(hold.id)


Way = Callable[[Harness], Awaitable[str]]
WAYS: dict[str, Way] = {
    each.__name__: each
    for each in (
        by_default, by_escalation, by_delegation, by_rule, by_rung, by_voters, by_reassignment, by_input,
        by_input_of_a_rung, by_ask, by_ask_with_parts, by_ask_backwards, by_rung_of_ask, by_ask_in_a_fork,
    )
}  # fmt: skip


async def arrives(harness: Harness) -> list[str]:
    """The links in her mailbox, after the deadlines."""
    harness.clock.advance(minutes=2)
    sweeper = (await harness.hf.service()).runtime.sweeper
    assert sweeper is not None
    await sweeper.sweep()
    await harness.delivers()
    return harness.mail.links(MINE)


@pytest.mark.parametrize("way", WAYS)
async def test_a_starter_does_not_approve_by_a_mailbox_when_she_named_it(way: str) -> None:
    async with harness_of(directory=None, policies="store") as harness:
        hold = await WAYS[way](harness)
        links = await arrives(harness)
        assert links or way == "by_delegation"
        for link in links:
            assert not await harness.decide_by_link(link)
        assert (await harness.row(hold)).status is HoldStatus.pending


async def test_a_person_named_in_the_input_decides_when_they_sign_in() -> None:
    """A token of the operator proves who they are, whoever wrote their name."""
    async with harness_of(directory=None) as harness:
        flow = Flow("named", effect="pure")
        flow.hold("approve", prompt="Pay?", options=["approve"], assignee="user:{{boss}}", **NOT_HER)
        harness.hf.register(flow.program())
        body = {"flow": "named", "input": {"boss": "dana"}}
        run = (await harness.ask("ada", "POST", "/v1/runs", body, status=201))["id"]
        (hold,) = (await flow.resume(run, on=harness.hf)).holds
        assert (await harness.decide("dana", hold.id)).status_code == 200


async def test_a_mailbox_named_by_the_flow_decides() -> None:
    async with harness_of(directory=None) as harness:
        hold = await harness.asks(**BOSS)
        await harness.delivers()
        (link,) = harness.mail.links("boss@acme")
        assert await harness.decide_by_link(link)
        assert (await harness.row(hold.id)).status is HoldStatus.resolved


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
    async with harness_of(directory=None) as harness:
        hold = await started(harness, PROGRAMS[program](), {"company": "acme"})
        await harness.delivers()
        (link,) = harness.mail.links("boss@acme")
        assert await harness.decide_by_link(link)
        assert (await harness.row(hold)).status is HoldStatus.resolved
