"""Rules choose whom a hold goes to, how many it takes and until when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.errors import PolicyInvalidError, SettingsError
from holdfast.holds.policies.parse import read_policy
from holdfast.holds.policies.policy import Policy
from holdfast.holds.policies.rules import Rule
from holdfast.holds.policies.stored import put_policy
from holdfast.holds.timing.stored_calendars import Calendars
from holdfast.testing.clock import FakeClock
from holdfast.types.clock import MICROS
from holdfast.types.document import Document
from holdfast.types.terms import ApprovalTerms, Rung
from tests.holds.policies.conftest import MakeHoldfast
from tests.holds.policies.flows import decide, given, hold_of, refund
from tests.holds.timing.places import NINE_TO_FIVE, at

pytestmark = pytest.mark.anyio

DAY = 24 * 3600 * MICROS

TOML = """
name = "refunds"

[[rules]]
name = "large"
when = "amount >= 1000"
assign = "role:cfo"
priority = "high"
timeout = "2d"
on_timeout = "escalate:group:board"
reminder = "4h"
tags = ["large"]
approval = { mode = "quorum", need = 2, of = ["role:cfo", "group:board"] }

[[rules]]
name = "any"
when = "amount >= 0"
assign = "group:clerks"
"""
YAML = """
name: refunds
rules:
  - name: large
    when: amount >= 1000
    assign: role:cfo
    priority: high
    timeout: 2d
    on_timeout: escalate:group:board
    reminder: 4h
    tags: [large]
    approval: {mode: quorum, need: 2, of: ["role:cfo", "group:board"]}
  - name: any
    when: amount >= 0
    assign: group:clerks
"""


def in_code() -> Policy:
    quorum = ApprovalTerms(mode="quorum", need=2, of=("role:cfo", "group:board"))
    return Policy(
        "refunds",
        Rule(name="large", when=lambda facts: facts["context"]["amount"] >= 1000, assign="role:cfo",
             priority="high", timeout="2d", on_timeout="escalate:group:board", reminder="4h", tags=("large",),
             approval=quorum),
        Rule(name="any", when="amount >= 0", assign="group:clerks"),
    )  # fmt: skip


@pytest.mark.covers("HOLD-POL-01")
@pytest.mark.parametrize("form", ["code", "toml", "yaml", "variable", "store"])
async def test_a_rule_says_who_decides_how_many_and_until_when(
    make_hf: MakeHoldfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    (tmp_path / "rules.toml").write_text(TOML)
    (tmp_path / "rules.yaml").write_text(YAML)
    wanted: Any = {"code": in_code(), "variable": None, "store": "store"}.get(
        form, tmp_path / f"rules.{form}"
    )
    if form == "variable":
        monkeypatch.setenv("HOLDFAST_POLICIES", str(tmp_path / "rules.toml"))
    hf = await make_hf(policies=wanted)
    if form == "store":
        read = {"name": "refunds", "rules": _plain(tmp_path / "rules.toml")}
        await put_policy(await hf.open(), "default", read, by="user:dana")
    result = await refund().run(given(5000), on=hf)
    (hold,) = result.holds
    assert (hold.assignee, hold.assignee_type, hold.assignee_value) == ("role:cfo", "role", "cfo")
    assert (hold.priority, hold.tags, hold.reminder_interval) == ("high", ("large",), 240)
    assert hold.expires_at == hold.created_at + 2 * DAY
    assert (hold.expiry_action, hold.escalation_target) == ("escalate", "group:board")
    assert (hold.terms.approval.mode, hold.terms.approval.need) == ("quorum", 2)
    assert hold.terms.routed_by == "refunds/large"
    # The first that matches counts, and what it does not say stays as the flow says.
    (small,) = (await refund().run(given(5), on=hf)).holds
    assert (small.assignee, small.priority, small.expires_at) == ("group:clerks", "normal", None)
    assert small.terms.routed_by == "refunds/any"


def _plain(file: Path) -> Any:
    import tomllib

    return tomllib.loads(file.read_text())["rules"]


@pytest.mark.covers("HOLD-POL-01")
async def test_a_flow_has_its_own_way_where_no_rule_matches(make_hf: MakeHoldfast) -> None:
    hf = await make_hf(policies=Policy("p", Rule(name="other", when="flow == 'invoice'", assign="role:cfo")))
    (hold,) = (await refund(timeout="1d").run(given(5000), on=hf)).holds
    assert hold.assignee == "group:finance"
    assert hold.terms.routed_by is None
    await decide(hf, hold.id, "approve")
    assert (await refund(timeout="1d").resume(hold.run, on=hf)).state["paid"] is True


@pytest.mark.covers("HOLD-POL-01")
async def test_a_condition_that_cannot_be_reported_matches_nothing(make_hf: MakeHoldfast) -> None:
    def breaks(_facts: Any) -> bool:
        raise LookupError("no")

    rules = (
        Rule(name="broken", when=breaks, decide="approve"),
        Rule(name="missing", when="nowhere > 3", decide="approve"),
        Rule(name="odd", when="amount", decide="approve"),
    )
    hf = await make_hf(policies=Policy("p", *rules))
    (hold,) = (await refund().run(given(5000), on=hf)).holds
    assert hold.terms.routed_by is None


@pytest.mark.covers("HOLD-POL-01")
async def test_rules_reach_what_is_shown_and_where_it_comes_from(make_hf: MakeHoldfast) -> None:
    seen: list[Any] = []
    hf = await make_hf(policies=Policy("p", Rule(name="look", when=lambda facts: seen.append(facts))))
    await refund(tags=["money"], priority="high").run(given(7), on=hf, started_by="user:eve")
    (facts,) = seen
    assert facts["flow"] == "refund"
    assert facts["node"] == "gate"
    assert facts["type"] == "approval"
    assert facts["prompt"] == "Refund 7 to c-9?"
    assert facts["options"] == ["approve", "reject"]
    assert facts["assignee"] == "group:finance"
    assert facts["context"] == {"amount": 7, "note": ""}
    assert (facts["tags"], facts["priority"]) == (["money"], "high")
    assert (facts["tenant"], facts["started_by"]) == ("default", "user:eve")


@pytest.mark.covers("HOLD-POL-01")
async def test_a_ladder_of_a_rule_is_climbed(make_hf: MakeHoldfast, clock: FakeClock) -> None:
    rule = Rule(name="r", timeout="1h", ladder=(Rung("role:lead"), Rung("role:cfo", "2h")))
    hf = await make_hf(policies=Policy("p", rule))
    result = await refund().run(given(7), on=hf)
    sweeper = (await hf.service()).runtime.sweeper
    for who in ("role:lead", "role:cfo"):
        clock.advance(hours=2)
        await sweeper.sweep()
        assert (await hold_of(hf, result.run_id)).assignee == who


@pytest.mark.covers("HOLD-POL-01")
async def test_a_rules_deadline_is_counted_in_business_time(make_hf: MakeHoldfast, clock: FakeClock) -> None:
    hf = await make_hf(policies=Policy("p", Rule(name="r", timeout="4bh", calendar="office")))
    await Calendars(await hf.open()).put("default", "office", NINE_TO_FIVE)
    friday = at("2030-01-11T15:00+01:00")
    clock.advance(seconds=(friday - clock.now()) / MICROS)
    (hold,) = (await refund().run(given(7), on=hf)).holds
    assert hold.created_at == friday
    assert hold.expires_at == at("2030-01-14T11:00+01:00")


@pytest.mark.covers("HOLD-POL-01")
async def test_stored_rules_that_cannot_be_read_leave_holds_to_people(make_hf: MakeHoldfast) -> None:
    hf = await make_hf(policies="store")
    body = b'{"rules": [{"name": "r", "decide": "approve", "of_a_newer_version": 1}]}'
    await (await hf.open()).put_document(Document(tenant="default", kind="policy", name="p", body=body))
    (hold,) = (await refund().run(given(7), on=hf)).holds
    assert (hold.assignee, hold.terms.routed_by) == ("group:finance", None)


@pytest.mark.covers("HOLD-POL-01")
async def test_a_tenants_stored_rules_are_its_own(make_hf: MakeHoldfast) -> None:
    hf = await make_hf(policies="store")
    rules = {"name": "p", "rules": [{"name": "r", "decide": "approve"}]}
    await put_policy(await hf.open(), "acme", rules, by="user:dana")
    assert (await refund().run(given(7), on=hf, tenant="acme")).completed
    assert not (await refund().run(given(7), on=hf, tenant="other")).completed


@pytest.mark.covers("HOLD-POL-01", "HOLD-BAD-02")
def test_every_slip_in_a_file_is_reported_with_its_line_and_field(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(
        'name = "refunds"\n'
        "[[rules]]\n"
        'name = "a"\n'
        'when = "amount > "\n'
        'assign = "user:"\n'
        'colour = "red"\n'
        "[[rules]]\n"
        'name = "a"\n'
        'timeout = "soon"\n'
        'on_timeout = "explode"\n'
        'priority = "urgent"\n'
        "[rules.approval]\n"
        'mode = "most"\n'
        "neeed = 2\n"
    )
    with pytest.raises(PolicyInvalidError) as output:
        read_policy(tmp_path / "bad.toml")
    lines = str(output.value).splitlines()
    expected = {
        4: "when", 5: "assign", 6: "colour", 8: "name", 9: "timeout", 10: "on_timeout", 11: "priority",
        12: "approval",
    }  # fmt: skip
    for line, field in expected.items():
        assert any(f"line {line}: rule 'a', {field}" in each for each in lines), (line, field, lines)
    assert any("'neeed'" in each for each in lines)


@pytest.mark.covers("HOLD-POL-01")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.toml", "name = "),
        ("x.json", "{"),
        ("x.yaml", "a: ["),
        ("x.yaml", "just text"),
        ("x.json", '{"rules": 3}'),
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PolicyInvalidError):
        read_policy(tmp_path / name)
    with pytest.raises(PolicyInvalidError):
        Holdfast("memory:", policies=tmp_path / name)
    with pytest.raises(SettingsError):
        read_policy(tmp_path / "none.toml")
    with pytest.raises(SettingsError):
        read_policy(tmp_path / "rules.txt")


@pytest.mark.covers("HOLD-POL-01")
@pytest.mark.parametrize(
    "rule",
    [
        Rule(name=""),
        Rule(name="a/b"),
        Rule(name="r", when="amount >"),
        Rule(name="r", decide="approve", judge="j"),
        Rule(name="r", judge="nobody"),
        Rule(name="r", decide="approve", approval=ApprovalTerms(mode="quorum", need=2)),
        Rule(name="r", decide="approve", approval=ApprovalTerms(exclude=("initiator",))),
        Rule(name="r", approval=ApprovalTerms(exclude=("grp:interns",))),
        Rule(name="r", approval=ApprovalTerms(veto=("rol:cfo",))),
        Rule(name="r", assign="grp:finance"),
        Rule(name="r", timeout="1h", ladder=(Rung("grp:finance", "1h"),)),
        Rule(name="r", on_timeout="cancel"),
        Rule(name="r", threshold=1.5),
        Rule(name="r", ladder=(Rung("", "soon"),)),
        Rule(name="r", max_reminders=0),
    ],
)
def test_rules_that_make_no_sense_are_refused(rule: Rule) -> None:
    with pytest.raises(PolicyInvalidError):
        Policy("p", rule)
