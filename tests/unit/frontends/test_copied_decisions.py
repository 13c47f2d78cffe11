"""`holdfast check` follows a decision to where it is copied: by code, by sub-flows and by maps."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from holdfast import Context, Flow, Outcome
from holdfast.frontends.python.code_values import CodeFacts
from holdfast.frontends.python.lower import lower
from holdfast.model.diagnostics import Severity
from holdfast.model.validate import validate

CHOICES = ["approve", "reject"]
WORDS = {"approve": "approve", "reject": "reject"}
SLIPS = {"approve": "paid", "rejct": "kept"}
TABLES = {"words": WORDS, "others": {"approve": "yes"}}


@dataclass
class Claim:
    amount: int = 0
    decision: str = ""
    verdict: str = ""


def shows(s: Any) -> dict[str, Any]:
    return {"verdict": s["decision"]}


def gets(s: Any) -> dict[str, Any]:
    return {"verdict": s.get("decision", "none")}


def through_a_variable(s: Any) -> dict[str, Any]:
    found = s["decision"]
    other = found if s["amount"] > 3 else "none"
    return {"verdict": other}


def in_other_letters(s: Any) -> dict[str, Any]:
    return {"verdict": s["decision"].strip().lower()}


def by_a_table(s: Any) -> dict[str, Any]:
    return {"verdict": {"approve": "approve", "reject": "reject"}[s["decision"]]}


def with_an_outcome(s: Any) -> Outcome:
    return Outcome("done", {"verdict": s["decision"]})


def by_a_variable(s: Any) -> dict[str, Any]:
    update = {"verdict": s["decision"]}
    return update  # noqa: RET504


def entry_by_entry(s: Any) -> dict[str, Any]:
    update: dict[str, Any] = {}
    update["verdict"] = s["decision"]
    return update


async def asks(ctx: Context) -> dict[str, Any]:
    reply = await ctx.ask("Pay?", options=["approve", "reject"])
    return {"verdict": reply.decision}


async def asks_with_a_constant(ctx: Context) -> dict[str, Any]:
    return {"verdict": (await ctx.ask("Pay?", options=CHOICES)).decision}


async def asks_with_records(ctx: Context) -> dict[str, Any]:
    reply = await ctx.ask(
        "Pay?", options=[{"id": "approve", "label": "Yes"}, {"id": "reject", "label": "No"}]
    )
    return {"verdict": reply.decision}


def by_a_table_of_the_module(s: Any) -> dict[str, Any]:
    return {"verdict": WORDS[s["decision"]]}


def by_a_table_in_a_table(s: Any) -> dict[str, Any]:
    return {"verdict": TABLES["words"][s["decision"]]}


def through_a_record(s: Any) -> dict[str, Any]:
    found = {"review": {"said": s["decision"]}}
    return {"verdict": found["review"]["said"]}


def as_a_format(s: Any) -> dict[str, Any]:
    return {"verdict": f"{s['decision']}"}


def in_pieces(s: Any) -> dict[str, Any]:
    return {"verdict": "" + s["decision"]}


def same(text: str, _unused: int = 0) -> str:
    if text == "approve":
        return "approve"
    return text


def said_in(state: Any) -> str:
    return same(state["decision"])


def by_a_function(s: Any) -> dict[str, Any]:
    return {"verdict": same(s["decision"], 3)}


def by_a_function_of_the_state(s: Any) -> dict[str, Any]:
    return {"verdict": said_in(s)}


def hides(s: Any) -> dict[str, Any]:
    return {"verdict": str(sorted(s)[0])}


async def asks_freely(ctx: Context) -> dict[str, Any]:
    return {"verdict": (await ctx.ask("Pay?")).decision}


async def asks_with_computed_options(s: Any, ctx: Context) -> dict[str, Any]:
    return {"verdict": (await ctx.ask("Pay?", options=list(s["names"]))).decision}


COPIES: list[Callable[..., Any]] = [
    shows,
    gets,
    through_a_variable,
    in_other_letters,
    by_a_table,
    by_a_table_of_the_module,
    by_a_table_in_a_table,
    through_a_record,
    as_a_format,
    in_pieces,
    by_a_function,
    by_a_function_of_the_state,
    with_an_outcome,
    by_a_variable,
    entry_by_entry,
    asks,
    asks_with_a_constant,
    asks_with_records,
]
UNKNOWN: list[Callable[..., Any]] = [hides, asks_freely, asks_with_computed_options]


def copied(copy: Callable[..., Any], condition: str, state: Any = None) -> Flow:
    flow = Flow("claim", state=state, effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="copy")(copy)
    flow.node(id="pay")(lambda _s: None)
    flow.node(id="close")(lambda _s: None)
    flow.chain("approve", "copy")
    flow.edge("copy", "pay", when=condition)
    flow.edge("copy", "close", otherwise=True)
    return flow


def slips(flow: Flow, severity: Severity = Severity.error) -> list[str]:
    rules = ("unknown-option", "unknown-outcome", "decision-part")
    return [p.rule for p in flow.problems() if p.rule in rules and p.severity is severity]


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize("copy", COPIES)
def test_wrong_option_is_found_when_code_copied_the_decision(copy: Callable[..., Any]) -> None:
    assert slips(copied(copy, "verdict != 'rejct'"), Severity.warning) == ["unknown-option"]
    assert slips(copied(copy, "verdict != 'reject'"), Severity.warning) == []


def shown(_s: Any) -> None: ...


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize("copy", COPIES)
def test_wrong_option_is_an_error_when_all_code_shows_what_it_sets(copy: Callable[..., Any]) -> None:
    flow = Flow("claim", effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="copy")(copy)
    flow.node(id="pay")(shown)
    flow.node(id="close")(shown)
    flow.chain("approve", "copy")
    flow.edge("copy", "pay", when="verdict != 'rejct'")
    flow.edge("copy", "close", otherwise=True)
    # A variable may have been changed anywhere.
    unsure = copy in (by_a_variable, entry_by_entry)
    assert slips(flow, Severity.warning if unsure else Severity.error) == ["unknown-option"]


@pytest.mark.parametrize("copy", UNKNOWN)
def test_nothing_is_claimed_when_the_copy_is_computed(copy: Callable[..., Any]) -> None:
    for severity in (Severity.error, Severity.warning):
        assert slips(copied(copy, "verdict != 'rejct'"), severity) == []


def sets_attribute(s: Claim) -> None:
    s.verdict = s.decision


def test_wrong_option_is_found_when_code_sets_a_field_of_a_typed_state() -> None:
    flow = copied(sets_attribute, "verdict != 'rejct'", Claim)
    assert slips(flow, Severity.warning) == ["unknown-option"]
    assert (
        slips(copied(sets_attribute, "verdict != 'reject' && verdict != ''", Claim), Severity.warning) == []
    )


def skips(s: Claim) -> None:
    s.decision = "skipped"


def test_option_is_accepted_when_code_sets_it_in_a_typed_state() -> None:
    flow = copied(skips, "decision == 'skipped'", Claim)
    assert slips(flow) == slips(flow, Severity.warning) == []


def nested(condition: str, *, asked_in: str, over: str | None = None) -> Flow:
    """A decision of one flow that another reads: of the flow around it, or of the flow inside."""
    child = Flow("child", effect="pure")
    child.node(id="work")(shown)
    child.node(id="done")(shown)
    parent = Flow("parent", effect="pure")
    parent.node(id="end")(shown)
    if asked_in == "parent":
        child.edge("work", "done", when=condition)
        parent.hold("ask", prompt="?", options=["approve", "reject"])
        if over is None:
            parent.subflow("sub", child, inputs={"verdict": "input.a ? decision : 'none'"})
        else:
            parent.map("sub", over=over, body=child, into="results")
        parent.chain("ask", "sub", "end")
    else:
        child.hold("ask", prompt="?", options=["approve", "reject"])
        child.chain("work", "ask", "done")
        parent.subflow("sub", child, inputs={}, outputs={"verdict": "state.decision"})
        parent.edge("sub", "end", when=condition)
    return parent


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize(
    ("name", "asked_in", "over"),
    [
        ("verdict", "parent", None),
        ("input.verdict", "parent", None),
        ("verdict", "child", None),
        ("item", "parent", "[decision, 'later']"),
    ],
)
def test_wrong_option_is_found_when_a_flow_hands_the_decision_to_another(
    name: str, asked_in: str, over: str | None
) -> None:
    assert slips(nested(f"{name} != 'rejct'", asked_in=asked_in, over=over)) == ["unknown-option"]
    assert slips(nested(f"{name} != 'reject'", asked_in=asked_in, over=over)) == []
    # The same graph as data, as a server stores it.
    flow = nested(f"{name} != 'rejct'", asked_in=asked_in, over=over)
    assert [p.rule for p in validate(lower(flow).spec) if p.rule == "unknown-option"] == ["unknown-option"]


async def compares_its_answer(ctx: Context) -> str:
    reply = await ctx.ask("Pay?", options=["approve", "reject"])
    return "paid" if reply.decision != "rejct" else "kept"


async def compares_the_reply(ctx: Context) -> str:
    reply = await ctx.ask("Pay?", options=["approve", "reject"])
    if reply not in ("approve", "rejct"):
        return "kept"
    return "paid"


def matches(s: Any) -> str:
    match s["decision"]:
        case "aprove":
            return "paid"
        case _:
            return "kept"


def compares_a_field(s: Any) -> str:
    found = s.get("decision")
    return "paid" if found != "rejct" else "kept"


def looks_up(s: Any) -> str:
    return {"approve": "paid", "rejct": "kept"}[s["decision"]]


def gets_from_a_table(s: Any) -> str:
    return {"approve": "paid", "rejct": "kept"}.get(s["decision"], "kept")


def asks_for_a_part(s: Any) -> bool:
    return bool(s["decision"].startswith("aprov"))


def is_paid(state: Any) -> bool:
    return bool(state["decision"] != "rejct")


def equals(one: Any, other: str) -> bool:
    return bool(one == other)


def asks_a_function(s: Any) -> str:
    return "paid" if is_paid(s) else "kept"


def asks_a_function_with_a_literal(s: Any) -> str:
    return "paid" if equals(s["decision"], "aprove") else "kept"


def compares_a_format(s: Any) -> str:
    return "paid" if f"it: {s['decision']}" == "it: aprove" else "kept"


def compares_a_record(s: Any) -> str:
    found = {"a": {"said": s["decision"]}}
    return "paid" if found["a"]["said"] != "rejct" else "kept"


def looks_up_in_the_module(s: Any) -> str:
    return SLIPS[s["decision"]]


CODES = [
    asks_a_function,
    compares_a_format,
    compares_a_record,
    looks_up_in_the_module,
    compares_its_answer,
    compares_the_reply,
    matches,
    compares_a_field,
    looks_up,
    gets_from_a_table,
    asks_for_a_part,
]


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize("code", CODES)
def test_wrong_option_is_found_when_code_compares_with_it(code: Callable[..., Any]) -> None:
    flow = Flow("claim", effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="code")(code)
    flow.chain("approve", "code")
    assert slips(flow) == ["unknown-option"]


def routes(s: Any) -> bool:
    return bool(s["decision"] != "rejct")


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize("router", [routes, lambda s: s["decision"] != "rejct"])
def test_wrong_option_is_found_when_a_function_is_the_condition(router: Callable[..., Any]) -> None:
    flow = Flow("claim", effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="pay")(shown)
    flow.edge("approve", "pay", when=router)
    assert slips(flow) == ["unknown-option"]


def decides(s: Any) -> Any:
    return s["decision"]


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize("router", [decides, lambda s: s.get("decision")])
@pytest.mark.parametrize(("key", "found"), [("rejct", ["unknown-option"]), ("reject", [])])
def test_arm_is_refused_when_the_decision_that_chooses_it_has_no_such_option(
    router: Callable[..., Any], key: str, found: list[str]
) -> None:
    flow = Flow("claim", effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="pay")(shown)
    flow.node(id="close")(shown)
    flow.branch("approve", router, {"approve": "pay", key: "close"})
    assert slips(flow) == found


def test_variable_of_the_function_around_is_not_taken_for_one_of_the_module() -> None:
    def inside(choices: list[str]) -> Callable[..., Any]:
        CHOICES = choices  # noqa: N806

        async def asks_inside(ctx: Context) -> dict[str, Any]:
            return {"verdict": (await ctx.ask("Pay?", options=CHOICES)).decision}

        return asks_inside

    for severity in (Severity.error, Severity.warning):
        assert slips(copied(inside(["yes", "no"]), "verdict != 'no'"), severity) == []
    assert slips(copied(inside(["yes", "no"]), "verdict != 'reject'"), Severity.warning) == ["unknown-option"]


def succeeds(_s: Any) -> Outcome:
    return Outcome("paid")


def ends_somehow(s: Any) -> Any:
    return Outcome(s["word"])


@pytest.mark.parametrize(
    ("code", "condition", "severity"),
    [
        (shown, "outcome != 'fial'", Severity.error),
        (shown, "outcome != 'done'", Severity.error),
        (succeeds, "outcome == 'payd'", Severity.error),
        (succeeds, "outcome == 'paid'", None),
        (ends_somehow, "outcome != 'fial'", Severity.warning),
        (ends_somehow, "outcome == 'shipped'", None),
    ],
)
def test_wrong_outcome_is_found(code: Callable[..., Any], condition: str, severity: Severity | None) -> None:
    flow = Flow("claim", effect="pure")
    flow.node(id="work")(code)
    flow.node(id="next")(shown)
    flow.edge("work", "next", when=condition)
    for each in (Severity.error, Severity.warning):
        assert slips(flow, each) == (["unknown-outcome"] if each is severity else [])


def test_function_without_source_shows_nothing() -> None:
    assert CodeFacts(len, ("state",)).values == {}
    assert CodeFacts(len, ("state",)).outcomes is None


@dataclass
class Typed:
    amount: int = 0
    good: bool = False
    plan: Literal["free", "pro"] = "free"
    note: str | None = None
    names: list[str] = field(default_factory=list)
    decision: str = ""


@pytest.mark.covers("SAFE-CHECK-05")
@pytest.mark.parametrize(
    ("condition", "rule"),
    [
        ("amount > '100'", "type-mismatch"),
        ("good == 'true'", "type-mismatch"),
        ("plan != 'porr'", "unknown-value"),
        ("note == 3", "type-mismatch"),
        ("decision != 'rejct'", "unknown-option"),
        ("amuont > 3", "unknown-field"),
        ("amount.total > 3", "unknown-field"),
        ("plan == 'pro' && amount > 3 && note == null && names.0 == 'x'", None),
    ],
)
def test_graph_without_code_is_checked_as_with_it(condition: str, rule: str | None) -> None:
    """As `POST /v1/flows` and a deployment of a stored flow see it."""
    flow = Flow("typed", state=Typed, effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="pay")(shown)
    flow.edge("approve", "pay", when=condition)
    rules = [p.rule for p in validate(lower(flow).spec) if p.severity is Severity.error]
    assert (
        rules == [p.rule for p in flow.problems() if p.severity is Severity.error] == ([rule] if rule else [])
    )


def puts_a_record(s: Any) -> dict[str, Any]:
    return {"review": {"said": s["decision"], "by": "me"}}


@pytest.mark.covers("SAFE-CHECK-06")
def test_wrong_option_is_found_when_a_record_in_the_state_has_the_decision() -> None:
    assert slips(copied(puts_a_record, "review.said != 'rejct'"), Severity.warning) == ["unknown-option"]
    assert slips(copied(puts_a_record, "review.said != 'reject'"), Severity.warning) == []
    assert slips(copied(puts_a_record, "review.by == 'you'"), Severity.warning) == []


def computed(s: Any) -> dict[str, Any]:
    return {"verdict": re.sub("x", "", s["decision"])}


def computed_in_pieces(s: Any) -> dict[str, Any]:
    return {"verdict": s["decision"][:3]}


def computed_by_a_function(s: Any) -> dict[str, Any]:
    def inner(text: str) -> str:
        return text

    return {"verdict": inner(s["decision"])}


def computed_with_a_width(s: Any) -> dict[str, Any]:
    return {"verdict": f"{s['decision']:>10}"}


def grows(s: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    found["said"] = s["decision"]
    return {"verdict": found["said"]}


def given_away(s: Any) -> dict[str, Any]:
    found = {"said": s["decision"]}
    fill(found)
    return {"verdict": found["said"]}


def fill(found: dict[str, Any]) -> None:
    found["said"] = "else"


def uncertain(flow: Flow) -> list[Severity]:
    return [p.severity for p in flow.problems() if p.rule == "uncertain-option"]


COMPUTED = [computed, computed_in_pieces, computed_by_a_function, computed_with_a_width]


@pytest.mark.covers("SAFE-CHECK-06")
@pytest.mark.parametrize("copy", COMPUTED)
def test_a_warning_says_that_a_copy_cannot_be_checked_when_it_is_computed(copy: Callable[..., Any]) -> None:
    assert uncertain(copied(copy, "verdict != 'rejct'")) == [Severity.warning]
    assert uncertain(copied(copy, "amount == 'rejct'")) == []
    assert slips(copied(copy, "verdict != 'rejct'")) == []


@pytest.mark.parametrize("copy", [grows, given_away])
def test_nothing_is_claimed_when_a_record_may_have_been_changed(copy: Callable[..., Any]) -> None:
    for severity in (Severity.error, Severity.warning):
        assert slips(copied(copy, "verdict != 'else'"), severity) == []


def compares_what_is_computed(s: Any) -> str:
    return "paid" if re.sub("x", "", s["decision"]) == "aprove" else "kept"


async def shows_a_decision(s: Any, ctx: Context) -> str:
    reply = await ctx.ask("Which?", options=list(s["names"]), context={"said": s["decision"]})
    return "paid" if reply.decision == "x" and reply.comment == "y" and len(s["decision"]) == 3 else "kept"


def test_a_warning_says_that_code_cannot_be_checked_when_it_compares_what_is_computed() -> None:
    for code, found in ((compares_what_is_computed, [Severity.warning]), (shows_a_decision, [])):
        flow = Flow("claim", effect="pure")
        flow.hold("approve", prompt="?", options=["approve", "reject"])
        flow.node(id="code")(code)
        flow.chain("approve", "code")
        assert uncertain(flow) == found


def calls_itself(s: Any, depth: int = 0) -> Any:
    return calls_itself(s, depth + 1) if depth < 3 else calls_back(s)


def calls_back(s: Any) -> Any:
    return calls_itself(s) or s["decision"] == "aprove"


def test_functions_that_call_each_other_are_followed_to_an_end() -> None:
    flow = Flow("claim", effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="code")(lambda s: calls_back(s))
    flow.chain("approve", "code")
    assert "unknown-option" in slips(flow)


def test_a_long_sum_is_followed_once() -> None:
    text = " + ".join(["s['decision']"] * 60)
    made: dict[str, Any] = {}
    source = f"def long(s):\n    return {text} == 'aprove'\n"
    linecache.cache["long.py"] = (len(source), None, source.splitlines(keepends=True), "long.py")
    exec(compile(source, "long.py", "exec"), made)  # noqa: S102
    flow = Flow("claim", effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="code")(made["long"])
    flow.chain("approve", "code")
    assert slips(flow) == []


@pytest.mark.covers("SAFE-CHECK-06")
def test_wrong_option_is_a_warning_when_a_function_compares_what_it_is_given() -> None:
    flow = Flow("claim", effect="pure")
    flow.hold("approve", prompt="?", options=["approve", "reject"])
    flow.node(id="code")(asks_a_function_with_a_literal)
    flow.chain("approve", "code")
    assert (slips(flow), slips(flow, Severity.warning)) == ([], ["unknown-option"])
