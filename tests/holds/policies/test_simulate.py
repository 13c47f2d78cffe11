"""Past decisions replayed under other rules."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.cli.main import run as cli
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.rules import Rule
from holdfast.holds.policies.simulate import simulate
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.terms import ApprovalTerms
from tests.holds.policies.conftest import MakeHoldfast
from tests.holds.policies.flows import decide, given, refund


async def decided(hf: Holdfast, *asked: tuple[int, str]) -> list[str]:
    """Holds of these amounts, decided so by a person."""
    found: list[str] = []
    for amount, decision in asked:
        result = await refund(timeout="1d").run(given(amount), on=hf)
        await decide(hf, result.holds[0].id, decision)
        found.append(result.holds[0].id)
    return found


@pytest.mark.anyio
@pytest.mark.covers("HOLD-POL-04")
async def test_a_changed_rule_shows_what_would_have_gone_otherwise(make_hf: MakeHoldfast) -> None:
    hf = await make_hf()
    small, odd, large, _kept = await decided(
        hf, (7, "approve"), (30, "reject"), (5000, "approve"), (300, "approve")
    )
    rules = Policy(
        "new",
        Rule(name="small", when="amount < 50", decide="approve"),
        Rule(name="large", when="amount > 1000", assign="role:cfo", priority="high", timeout="4h",
             approval=ApprovalTerms(mode="quorum", need=2, of=("role:cfo",))),
    )  # fmt: skip
    store = await hf.open()
    before = await store.audit_head("default")
    done = await simulate(store, [rules])
    assert (done.looked_at, done.automatic, done.agreeing, done.overturned) == (4, 2, 1, 1)
    assert done.rules == {"new/small": 2, "new/large": 1}
    found = {each.hold: {d.field: (d.was, d.would_be) for d in each.differences} for each in done.differing}
    assert found == {
        small: {"rule": ("(none)", "new/small")},
        odd: {"rule": ("(none)", "new/small"), "outcome": ("reject", "approve")},
        large: {
            "rule": ("(none)", "new/large"),
            "assignee": ("group:finance", "role:cfo"),
            "approval": ("one person", "2 of role:cfo"),
            "deadline": ("1d", "4h"),
            "priority": ("normal", "high"),
        },
    }
    assert {each.hold: each.agrees for each in done.differing} == {small: True, odd: False, large: None}
    # It only looks.
    assert await store.audit_head("default") == before


@pytest.mark.anyio
@pytest.mark.covers("HOLD-POL-04")
async def test_rules_are_replayed_on_what_the_flow_asked_not_on_what_rules_made_of_it(
    make_hf: MakeHoldfast,
) -> None:
    old = Policy(
        "old", Rule(name="all", assign="role:lead", priority="critical", tags=("routed",), timeout="2h")
    )
    hf = await make_hf(policies=old)
    (hold,) = await decided(hf, (7, "approve"))
    store = await hf.open()
    assert (await simulate(store, [old])).differing == ()
    seen: list[Any] = []
    nothing = Policy("none", Rule(name="look", when=lambda facts: seen.append(facts)))
    (back,) = (await simulate(store, [nothing])).differing
    assert back.hold == hold
    assert {d.field: (d.was, d.would_be) for d in back.differences} == {
        "rule": ("old/all", "(none)"),
        "assignee": ("role:lead", "group:finance"),
        "deadline": ("2h", "1d"),
        "priority": ("critical", "normal"),
    }
    assert (seen[0]["priority"], seen[0]["tags"], seen[0]["assignee"]) == ("normal", [], "group:finance")


@pytest.mark.anyio
@pytest.mark.covers("HOLD-POL-04")
async def test_what_rules_decided_would_go_back_to_people_without_them(make_hf: MakeHoldfast) -> None:
    hf = await make_hf(policies=Policy("old", Rule(name="all", decide="approve")))
    await refund().run(given(7), on=hf)
    (back,) = (await simulate(await hf.open(), [])).differing
    assert ("outcome", "approve", "(people)") in [(d.field, d.was, d.would_be) for d in back.differences]
    judged = Policy("new", Rule(name="j", judge="x"), judges={"x": lambda _: 1 / 0})
    (back,) = (await simulate(await hf.open(), [judged])).differing
    assert ("outcome", "approve", "(a judge)") in [(d.field, d.was, d.would_be) for d in back.differences]


@pytest.mark.anyio
@pytest.mark.covers("HOLD-POL-04")
async def test_only_what_is_asked_for_is_replayed(make_hf: MakeHoldfast, clock: FakeClock) -> None:
    hf = await make_hf()
    await decided(hf, (7, "approve"))
    clock.advance(days=40)
    await decided(hf, (8, "approve"))
    await refund().run(given(9), on=hf)
    store, rules = await hf.open(), [Policy("new", Rule(name="all", decide="approve"))]
    month = store.now() - 30 * 24 * 3600 * MICROS
    assert (await simulate(store, rules)).looked_at == 2
    assert (await simulate(store, rules, since=month)).looked_at == 1
    assert (await simulate(store, rules, limit=1)).looked_at == 1
    assert (await simulate(store, rules, flows=("other",))).looked_at == 0
    assert (await simulate(store, rules, tenant="other")).looked_at == 0


RULES = """
name = "new"

[[rules]]
name = "small"
when = "amount < 50"
decide = "approve"
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    address = f"sqlite:{tmp_path / 's.db'}"

    async def fill() -> None:
        async with Holdfast(address) as hf:
            await decided(hf, (7, "reject"), (70, "approve"))

    asyncio.run(fill())
    return address


@pytest.mark.covers("HOLD-POL-04")
def test_simulate_lists_what_would_differ(
    tmp_path: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.toml").write_text(RULES)
    assert cli(["policy", "simulate", str(tmp_path / "rules.toml"), "--store", store, "--since", "1d"]) == 0
    shown = capsys.readouterr().out
    assert "Refund 7 to c-9?" in shown
    assert "Refund 70" not in shown
    assert "2 decisions replayed; 1 would differ." in shown
    assert "1 would be decided without a person: 0 as people decided, 1 against it." in shown
    assert cli(["policy", "simulate", str(tmp_path / "rules.toml"), "--store", store, "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["overturned"] == 1
    (other,) = done["differing"]
    assert {"field": "outcome", "was": "reject", "would_be": "approve"} in other["differences"]


@pytest.mark.covers("HOLD-POL-04")
def test_simulate_names_rules_that_matched_nothing(
    tmp_path: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(
        f"""{RULES}
[[rules]]
name = "two people"
when = "flow == 'refnud'"
approval = {{mode = "quorum", need = 2}}
"""
    )
    assert cli(["policy", "simulate", str(file), "--store", store]) == 0
    assert "These rules matched none of the decisions: two people." in capsys.readouterr().out


@pytest.mark.covers("HOLD-POL-04", "HOLD-POL-01", "SAFE-CHECK-16")
@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("prioritty == 'high'", "'prioritty' is no fact; did you mean 'priority'?"),
        ("flows == 'refund'", "'flows' is no fact; did you mean 'flow'?"),
        ("priority == 'urgent'", "`priority` is never 'urgent'"),
        ("amount > 5 and priority in ['high', 'hihg']", "`priority` is never 'hihg'"),
        ("context.flows == 'refund' and amount > 5", None),
        ("priority in ['high', 'critical'] and flow == 'refund'", None),
    ],
)
def test_check_finds_a_condition_that_never_holds_because_a_fact_is_misspelt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], when: str, problem: str | None
) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(RULES.replace("amount < 50", when))
    assert cli(["policy", "check", str(file)]) == (2 if problem else 0)
    assert (problem or "no problems") in capsys.readouterr().out


@pytest.mark.covers("HOLD-POL-04", "HOLD-POL-01")
def test_check_lists_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(RULES)
    bad.write_text(RULES.replace("amount < 50", "amount <") + 'assign = " "\n')
    assert cli(["policy", "check", str(good)]) == 0
    assert "1 rule, no problems" in capsys.readouterr().out
    assert cli(["policy", "check", str(good), str(bad)]) == 2
    shown = capsys.readouterr().out
    assert "line 6: rule 'small', when" in shown
    assert "line 8: rule 'small', assign" in shown
    assert cli(["policy", "check", str(bad), "--json"]) == 2
    (text,) = json.loads(capsys.readouterr().out)["items"]
    assert [(each["line"], each["field"]) for each in text["problems"]] == [(6, "when"), (8, "assign")]
    assert cli(["policy", "simulate", str(bad)]) == 2
    assert cli(["policy", "check", str(tmp_path / "none.toml")]) == 2


@pytest.mark.covers("HOLD-POL-01")
def test_a_policy_is_kept_in_the_store(
    tmp_path: Path, store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.toml").write_text(RULES)

    def said(*words: str, code: int = 0) -> Any:
        capsys.readouterr()
        assert cli(["policy", *words, "--store", store]) == code
        return json.loads(capsys.readouterr().out) if "--json" in words else None

    assert said("list", "--json") == {"items": [], "next": None}
    assert said("set", str(tmp_path / "rules.toml"), "--json") == {"name": "new", "revision": 1}
    assert said("set", str(tmp_path / "rules.toml"), "--by", "user:dana", "--json")["revision"] == 2
    (kept,) = said("list", "--json")["items"]
    assert [rule["name"] for rule in kept["rules"]] == ["small"]
    assert said("list", "--tenant", "other", "--json")["items"] == []

    async def audited() -> list[tuple[str, str]]:
        async with Holdfast(store, policies="store") as hf:
            assert (await refund().run(given(7), on=hf)).completed
            found = await (await hf.open()).audit("default")
            return [(each.actor, each.action) for each in found if each.action.startswith("policy")]

    assert asyncio.run(audited()) == [("user:local", "policy_written"), ("user:dana", "policy_written")]
    said("delete", "new")
    said("delete", "new", code=2)
    assert said("list", "--json") == {"items": [], "next": None}
