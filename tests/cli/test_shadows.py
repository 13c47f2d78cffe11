"""`holdfast holds shadows`, and the line of `holds show`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast, Judgement
from tests.cli.conftest import Cli


def ask(store: str, decision: str, *, by_amount: bool) -> str:
    """A refund that is decided: its hold."""

    def judge(_facts: object) -> Judgement:
        return Judgement("approve", 0.9, "Small amount.")

    def other(_facts: object) -> Judgement:
        return Judgement("reject", 0.6, "Large amount.")

    async def run() -> str:
        async with Holdfast(store) as hf:
            flow = Flow("refund", effect="pure")
            chosen = judge if by_amount else other
            flow.hold("approve", prompt="Refund?", options=["approve", "reject"], shadow=chosen)
            result = await flow.run({}, on=hf)
            if decision:
                await (await hf.service()).answer(result.holds[0].id, decision)
            return str(result.holds[0].id)

    return asyncio.run(run())


@pytest.mark.covers("USERS-SHADOW")
def test_versions_of_a_judge_are_compared_with_people(cli: Cli, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'h.db'}"
    ask(store, "", by_amount=True)
    assert "No decided hold has a shadow answer" in cli("holds", "shadows", "--store", store).err
    for decision in ("approve", "approve", "reject"):
        ask(store, decision, by_amount=True)
    last = ask(store, "approve", by_amount=False)
    rows = cli("holds", "shadows", "--store", store, "--json").items
    assert [(row["decided"], row["agreed"], row["failed"]) for row in rows] == [(3, 2, 0), (1, 0, 0)]
    assert rows[0]["version"] != rows[1]["version"]
    assert rows[1]["last"] == last
    assert "67%" in cli("holds", "shadows", "--store", store, "--flow", "refund").out
    assert cli("holds", "shadows", "--store", store, "--flow", "other", "--json").items == []


@pytest.mark.covers("USERS-SHADOW")
def test_a_hold_shows_its_judge_only_after_the_decision(cli: Cli, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'h.db'}"
    hold = ask(store, "", by_amount=True)
    before = cli("holds", "show", hold, "--store", store).out
    assert "refund/approve has answered; shown after the decision (sealed " in before
    assert "Small" not in before
    assert "Small" not in cli("holds", "show", hold, "--store", store, "--json").out
    cli("holds", "resolve", hold, "reject", "--store", store)
    after = cli("holds", "show", hold, "--store", store).out
    assert "refund/approve: approve (90% sure), unlike the people. Small amount." in after
