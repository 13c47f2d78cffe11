"""What a review found in rules: checks that nobody waited for the end of."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import Guardrails, Holdfast, Policy, Rule
from holdfast.cli.main import run as cli
from tests.deadlines import HANG
from tests.holds.policies.flows import given, refund

pytestmark = pytest.mark.anyio


async def never(_facts: Any) -> None:
    await asyncio.sleep(60)


def sleeping(_facts: Any) -> None:
    time.sleep(0.3)


@pytest.mark.covers("HOLD-POL-03")
@pytest.mark.parametrize("check", [never, sleeping])
async def test_a_guardrail_that_does_not_answer_has_not_passed(check: Any) -> None:
    rails = Guardrails({"slow": check}, timeout=0.05)
    policy = Policy("p", Rule(name="r", decide="approve"))
    async with Holdfast("memory:", policies=policy, guardrails=rails) as hf:
        result = await refund().run(given(5), on=hf)
    assert result.state["decision"] == "reject"
    assert "took longer" in result.state["decision_result"]["veto"]["reason"]


async def test_others_go_on_while_a_guardrail_takes_its_time() -> None:
    turned = threading.Event()
    rails = Guardrails({"slow": lambda _facts: None if turned.wait(HANG) else "nobody went on"}, timeout=HANG)
    policy = Policy("p", Rule(name="r", decide="approve"))

    async def others() -> None:
        for _ in range(6):
            await asyncio.sleep(0)
        turned.set()

    async with Holdfast("memory:", policies=policy, guardrails=rails) as hf:
        beside = asyncio.create_task(others())
        assert (await refund().run(given(5), on=hf)).state["paid"]
        await beside


def test_each_file_is_informed_of_when_one_of_them_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("x = [")
    assert cli(["policy", "check", str(bad), str(tmp_path / "none.toml")]) == 2
    output = capsys.readouterr().out
    assert "not TOML" in output
    assert "cannot be read" in output
