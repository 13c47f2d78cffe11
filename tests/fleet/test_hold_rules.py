"""`doctor` finds workers that open holds by different rules: one was not given the policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Policy, Rule, Worker
from holdfast.cli.doctor.finding import OK, WARN, Finding
from holdfast.cli.doctor.fleet import fleet_findings

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-CHECK-16")]
RULES: dict[str, Any] = {"policies": [Policy("refunds", Rule(name="all", assign="role:cfo")), "store"]}


async def _found(folder: Path, *given: dict[str, Any]) -> Finding:
    flow = Flow("pay", effect="pure")
    flow.hold("ask", prompt="Pay?", options=["approve", "reject"])
    address = f"sqlite:{folder / 's.db'}"
    async with (
        Holdfast(address, **given[0]) as first,
        Holdfast(address, **given[1]) as second,
        Worker(flow, on=first, name="one"),
        Worker(flow, on=second, name="two"),
    ):
        found = {each.check: each async for each in fleet_findings(await first.service())}
    return found["hold rules"]


async def test_workers_with_different_policies_are_named(tmp_path: Path) -> None:
    found = await _found(tmp_path, RULES, {})
    assert found.state == WARN
    assert found.about == ["one: policies of the store, policy refunds", "two: none"]


async def test_workers_with_and_without_people_are_named(tmp_path: Path) -> None:
    found = await _found(tmp_path, {"directory": "store"}, {})
    assert found.about == ["one: a directory", "two: none"]


async def test_workers_with_the_same_rules_are_all_right(tmp_path: Path) -> None:
    assert (await _found(tmp_path, RULES, RULES)).state == OK
