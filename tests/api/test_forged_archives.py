"""A file of a run that its sender has written proves no decision: neither of a hold that a policy binds to
certain people, nor of a question in the middle of a node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Context, Flow, Policy, Rule
from holdfast.runs.service import RunService
from holdfast.runs.transfer.archive import Archive, pack
from holdfast.runs.transfer.import_run import read_archive
from holdfast.types.hold import HoldRow
from holdfast.types.terms import ApprovalTerms
from tests.api.harness import Harness, harness_of

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHAIN-04")]

OPTIONS = ["approve", "reject"]
TWO: dict[str, Any] = {"assignee": "group:finance", "approval": {"mode": "quorum", "need": 2}}
FOUR_EYES = Policy(
    "four-eyes",
    Rule(name="all", when="true", assign="group:finance", approval=ApprovalTerms(mode="quorum", need=2)),
)
MEDIA = {"Content-Type": "application/octet-stream"}


def asks_inside(paid: list[str]) -> Flow:
    flow = Flow("asks-inside", effect="pure")

    @flow.node(effect="pure")
    async def gate(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"said": (await ctx.ask("Pay?", options=OPTIONS, **TWO)).decision}

    return _paying(flow, gate, paid)


def asks_in_a_subflow(paid: list[str]) -> Flow:
    inner = Flow("inner", effect="pure")

    @inner.node(effect="pure")
    async def gate(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return {"said": (await ctx.ask("Pay?", options=OPTIONS, **TWO)).decision}

    flow = Flow("asks-in-a-subflow", effect="pure")
    return _paying(flow, flow.subflow("child", inner, outputs={"said": "state.said"}), paid)


def bound_by_a_policy(paid: list[str]) -> Flow:
    flow = Flow("bound-by-a-policy", effect="pure")
    return _paying(flow, flow.hold("gate", prompt="Pay?", options=OPTIONS, bind="said"), paid)


def _paying(flow: Flow, gate: Any, paid: list[str]) -> Flow:
    @flow.node(effect="pure")
    async def pay(s: dict[str, Any]) -> None:
        if s["said"] == "approve":
            paid.append("paid")

    flow.chain(gate, pay)
    return flow


FLOWS = {each.__name__: each for each in (asks_inside, asks_in_a_subflow, bound_by_a_policy)}


def _free(hold: HoldRow) -> HoldRow:
    terms = msgspec.structs.replace(hold.terms, approval=ApprovalTerms(), strict_assignee=False)
    return msgspec.structs.replace(hold, terms=terms)


def _with_holds(archive: Archive, holds: list[HoldRow]) -> Archive:
    return msgspec.structs.replace(archive, history=msgspec.structs.replace(archive.history, holds=holds))


FORGERIES = {
    "as it was": lambda archive: archive,
    "without its questions": lambda archive: _with_holds(archive, []),
    "with easier questions": lambda archive: _with_holds(
        archive, [_free(hold) for hold in archive.history.holds]
    ),
}


async def decided(harness: Harness, flow: Flow) -> tuple[str, Archive]:
    asked = await flow.run({}, on=harness.hf, started_by="user:kim")
    for name in ("dana", "sam"):
        assert (await harness.decide(name, asked.holds[0].id)).status_code == 200
    assert (await flow.resume(asked.run_id, on=harness.hf)).status == "completed"
    return asked.run_id, read_archive(
        (await harness.send("ada", "GET", f"/v1/runs/{asked.run_id}/export")).content
    )


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.parametrize("kind", FLOWS)
async def test_a_caller_is_asked_again_when_the_file_says_that_people_agreed(kind: str, forgery: str) -> None:
    async with harness_of(policies=[FOUR_EYES] if kind == "bound_by_a_policy" else None) as harness:
        paid: list[str] = []
        flow = FLOWS[kind](paid)
        run, archive = await decided(harness, flow)
        assert paid.pop() == "paid"
        await RunService.delete(await harness.hf.service(), run)
        file = pack(FORGERIES[forgery](archive))
        more: dict[str, Any] = {"content": file, "headers": MEDIA}
        made = await harness.ask(
            "ada", "POST", "/v1/runs/import", status=201, params={"as_new_run": "true"}, **more
        )
        branches = [made["id"]]
        for seq in range(archive.history.run.head + 1):
            forked = await harness.ask("ada", "POST", f"/v1/runs/{run}/fork", {"seq": seq}, status=201)
            branches.append(forked["id"])
        for branch in branches:
            assert (await flow.resume(branch, on=harness.hf)).status == "pending_input"
        assert paid == []


@pytest.mark.parametrize("kind", FLOWS)
async def test_a_caller_cannot_branch_when_the_run_with_the_questions_is_deleted(kind: str) -> None:
    async with harness_of(policies=[FOUR_EYES] if kind == "bound_by_a_policy" else None) as harness:
        paid: list[str] = []
        flow = FLOWS[kind](paid)
        run, archive = await decided(harness, flow)
        # An operator with the store takes the decision along, and may.
        taken = await (await harness.hf.service()).fork(run, archive.history.run.head - 1)
        await harness.ask("ada", "DELETE", f"/v1/runs/{run}", status=204)
        refused = await harness.send("ada", "POST", f"/v1/runs/{taken.id}/fork", {})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")


async def test_a_caller_goes_on_from_the_end_of_a_file_when_its_flow_asks_nobody() -> None:
    async with harness_of() as harness:
        flow, ran = Flow("plain", effect="pure"), list[str]()

        @flow.node(effect="pure")
        async def first(s: dict[str, Any]) -> dict[str, Any]:
            ran.append("first")
            return {"seen": 1}

        @flow.node(effect="pure")
        async def second(s: dict[str, Any]) -> dict[str, Any]:
            return {"seen": s["seen"] + 1}

        flow.chain(first, second)
        done = await flow.run({}, on=harness.hf)
        data = (await harness.send("ada", "GET", f"/v1/runs/{done.run_id}/export")).content
        made = await harness.ask(
            "ada",
            "POST",
            "/v1/runs/import",
            status=201,
            params={"as_new_run": "true"},
            content=data,
            headers=MEDIA,
        )
        assert (await flow.resume(made["id"], on=harness.hf)).state["seen"] == 2
        assert ran == ["first"]
