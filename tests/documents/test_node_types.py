"""What each node type does in a run."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.frontends.document import render
from holdfast.model import state_schema
from holdfast.model.graph import JoinKind, NodeKind
from tests.documents.rule_examples import flow, request
from tests.documents.run import answer, flow_text, graph, problems, rules, start

NUMBER = "input: {type: object, properties: {n: {type: number}, items: {type: array}}}"


async def test_set_and_condition_lead_by_true_and_false(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: double, type: set, config: {values: {m: "{{n}}", said: "n is {{n}}"}}}
        {id: big, type: condition, config: {when: "m > 9"}}
        {id: yes, type: set, config: {values: {size: big}}}
        {id: no, type: set, config: {values: {size: small}}}
        {id: z, type: end, config: {output: {size: "{{size}}", said: "{{said}}"}}}
        """,
        """
        a -> double -> big
        big:true -> yes -> z
        big:false -> no -> z
        """,
        NUMBER,
    )
    assert (await start(hf, text, {"n": 12})).artifacts == {"size": "big", "said": "n is 12"}
    assert (await start(hf, text, {"n": 2})).artifacts == {"size": "small", "said": "n is 2"}


@pytest.mark.parametrize(
    ("mode", "n", "hit"), [("first", 12, ["x"]), ("all", 12, ["x", "y"]), ("all", 0, ["w"])]
)
async def test_router_takes_the_cases_that_hold_and_else_without_one(
    hf: Holdfast, mode: str, n: int, hit: list[str]
) -> None:
    text = flow_text(
        f"""
        {{id: a, type: start}}
        {{id: r, type: router, config: {{mode: {mode}, cases: [{{id: big, when: "n > 9"}}, {{id: some, when: "n > 1"}}]}}}}
        {{id: x, type: set, config: {{values: {{x: true}}}}}}
        {{id: y, type: set, config: {{values: {{y: true}}}}}}
        {{id: w, type: set, config: {{values: {{w: true}}}}}}
        {{id: z, type: end}}
        """,
        """
        a -> r
        r:big -> x -> z
        r:some -> y -> z
        r:else -> w -> z
        """,
        NUMBER,
    )
    ended = await start(hf, text, {"n": n})
    assert ended.status == "completed"
    assert [name for name in ("x", "y", "w") if name in ended.state] == hit


async def test_python_calls_a_registered_function_sync_or_async_and_binds_its_result(hf: Holdfast) -> None:
    async def score(customer: str, ctx: Any) -> dict[str, Any]:
        return {"of": customer, "node": ctx.node}

    def twice(of: int) -> int:
        return of * 2

    text = flow_text(
        """
        {id: a, type: start}
        {id: risk, type: python, config: {function: score, args: {customer: "c-{{n}}"}}}
        {id: more, type: python, config: {function: twice, bind: total, args: {of: "{{n}}"}}}
        {id: z, type: end}
        """,
        "a -> risk -> more -> z",
        NUMBER,
    )
    ended = await start(hf, text, {"n": 4}, {"score": score, "twice": twice})
    assert ended.state["risk"] == {"of": "c-4", "node": "risk"}
    assert ended.state["total"] == 8


async def test_error_port_is_taken_when_the_node_fails_and_retries_are_used_up(hf: Holdfast) -> None:
    calls: list[int] = []

    def pay() -> None:
        calls.append(1)
        raise OSError("no line")

    text = flow_text(
        """
        {id: a, type: start}
        {id: pay, type: python, config: {function: pay, effect: read, retry: {attempts: 2, delay: 0}}}
        {id: sorry, type: set, config: {values: {failed: true}}}
        {id: z, type: end}
        """,
        """
        a -> pay -> z
        pay:error -> sorry -> z
        """,
    )
    ended = await start(hf, text, None, {"pay": pay})
    assert (ended.status, ended.state["failed"], len(calls)) == ("completed", True, 2)


async def test_end_with_status_failed_fails_the_run(hf: Holdfast) -> None:
    text = flow_text("{id: a, type: start}\n{id: z, type: end, config: {status: failed}}", "a -> z")
    ended = await start(hf, text)
    assert ended.status == "failed"
    assert ended.error is not None
    assert "'z'" in ended.error.message


async def test_parallel_branches_meet_in_a_join(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: p, type: parallel}
        {id: x, type: set, config: {values: {x: 1}}}
        {id: y, type: set, config: {values: {y: 2}}}
        {id: j, type: join}
        {id: z, type: end, config: {output: {x: "{{x}}", y: "{{y}}"}}}
        """,
        """
        a -> p -> x -> j -> z
        p -> y -> j
        """,
    )
    assert (await start(hf, text)).artifacts == {"x": 1, "y": 2}
    assert rules(text, severity="warning") == []


def test_join_lowers_to_its_policy_and_its_timeout_port_needs_a_timeout() -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: x, type: set, config: {values: {x: 1}}}
        {id: y, type: set, config: {values: {y: 2}}}
        {id: j, type: join, config: {wait: 2, timeout: 1h, cancel_losers: true}}
        {id: z, type: end}
        """,
        """
        a -> x -> j -> z
        a -> y -> j
        j:timeout -> z
        """,
    )
    [join] = [node.join for node in graph(text).nodes if node.id == "j"]
    assert (join.kind, join.count, join.timeout, join.cancel_losers) == (
        JoinKind.quorum,
        2,
        3_600_000_000,
        True,
    )
    assert rules(text.replace(", timeout: 1h", "")) == ["join-timeout"]
    assert rules(text.replace("wait: 2", "wait: 3")) == ["quorum"]


async def test_join_leads_by_timeout_when_a_branch_is_late(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: x, type: set, config: {values: {x: 1}}}
        {id: y, type: checkpoint, config: {prompt: Late?}}
        {id: j, type: join, config: {timeout: 0.05}}
        {id: late, type: set, config: {values: {late: true}}}
        {id: z, type: end}
        """,
        """
        a -> x -> j -> z
        a -> y -> j
        j:timeout -> late -> z
        """,
    )
    import asyncio

    waiting = await start(hf, text)
    assert waiting.status == "pending_input"
    await asyncio.sleep(0.1)
    service = await hf.service()
    await service.store.fire_timers(limit=10)
    row = await service.get(waiting.run_id)
    from holdfast.app.flow import advance

    program = await service.runtime.find_program(row.version, row.flow)
    later = await advance(service, program, row.id)
    assert later.state["late"] is True


@pytest.mark.covers("CORE-FLOW-18")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (1e308, "outside of the years 1 to 9999"),
        (-1e308, "outside of the years 1 to 9999"),
        (10**18, "outside of the years 1 to 9999"),
        (-(10**12), "outside of the years 1 to 9999"),
        ("9999-12-31T23:59:59-23:59", "outside of the years 1 to 9999"),
        ([1], "is [1]: no number of seconds"),
        ({}, "no number of seconds"),
        (None, "is null: no number of seconds"),
        (True, "is True: no number of seconds"),
        ("soon", "no instant with a time zone"),
        ("2026-01-31T09:00:00", "no instant with a time zone"),
    ],
)
async def test_wait_until_what_is_no_time_fails_and_takes_the_port_error(
    hf: Holdfast, given: Any, said: str
) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: w, type: wait, config: {until: "{{u}}"}}
        {id: bad, type: set, config: {values: {failed: true}}}
        {id: z, type: end}
        """,
        """
        a -> w -> z
        w:error -> bad -> z
        """,
        "input: {type: object, properties: {u: {}}}",
    )
    ended = await start(hf, text, {"u": given})
    assert ended.completed
    assert ended.state["failed"] is True
    failed = await start(
        hf,
        text.replace("{source: w, source_port: error, target: bad}", "{source: a, target: bad}"),
        {"u": given},
    )
    assert failed.status == "failed"
    assert said in str(failed.error)


async def test_map_runs_its_inside_for_each_item_with_what_it_reads_around_it(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: each, type: map, config: {over: items, into: results, item: order, concurrency: 2}}
        {id: price, type: python, parent: each, config: {function: price, args: {of: "{{order.price}}", rate: "{{n}}"}}}
        {id: note, type: set, parent: each, config: {values: {text: "{{order.name}}: {{price}}"}}}
        {id: z, type: end, config: {output: {all: "{{results}}"}}}
        """,
        """
        a -> each -> z
        price -> note
        """,
        NUMBER,
    )
    items = [{"name": "x", "price": 1}, {"name": "y", "price": 2}, {"name": "w", "price": 3}]
    ended = await start(hf, text, {"n": 10, "items": items}, {"price": lambda of, rate: of * rate})
    assert ended.artifacts["all"] == [
        {"price": 10, "text": "x: 10"},
        {"price": 20, "text": "y: 20"},
        {"price": 30, "text": "w: 30"},
    ]


async def test_map_asks_a_person_for_each_item(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: each, type: map, config: {over: items, into: results}}
        {id: ask, type: checkpoint, parent: each, config: {prompt: "Item {{item}}?", options: [ok, no]}}
        {id: mark, type: set, parent: each, config: {values: {good: true}}}
        {id: z, type: end}
        """,
        """
        a -> each -> z
        ask:ok -> mark
        ask:no -> mark
        """,
        NUMBER,
    )
    waiting = await start(hf, text, {"items": [1, 2]})
    assert sorted(hold.prompt for hold in waiting.holds) == ["Item 1?", "Item 2?"]


async def test_loop_repeats_while_its_condition_holds_and_then_leads_on(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: again, type: loop, config: {while: "tries < 3", max_turns: 9}}
        {id: work, type: python, parent: again, config: {function: more, bind: tries, args: {of: "{{tries}}"}}}
        {id: odd, type: condition, parent: again, config: {when: "tries == 2"}}
        {id: two, type: set, parent: again, config: {values: {seen: "{{tries}}"}}}
        {id: z, type: end, config: {output: {tries: "{{tries}}", seen: "{{seen}}"}}}
        """,
        """
        a -> again
        work -> odd
        odd:true -> two
        again:done -> z
        """,
        "variables: {tries: {type: integer, default: 0}}",
    )
    ended = await start(hf, text, None, {"more": lambda of: of + 1})
    assert ended.artifacts == {"tries": 3, "seen": 2}
    names = [node.id for node in graph(text, {"more": lambda of: of}).nodes]
    assert names == ["a", "again", "again__next", "work", "odd", "two", "z"]


FAILING = """
    {id: a, type: start}
    {id: pay, type: python, config: {function: pay, effect: read}}
    {id: why, type: condition, config: {when: "pay_error.type == 'ValueError'"}}
    {id: z, type: end, config: {output: {said: "{{pay_error.node}}: {{pay_error.message}}"}}}
    {id: y, type: end}
    """
LEADS_ON = "a -> pay -> y\npay:error -> why\nwhy:true -> z\nwhy:false -> y"


@pytest.mark.covers("CV-22")
async def test_what_failed_can_be_read_behind_the_error_port(hf: Holdfast) -> None:
    def pay() -> None:
        raise ValueError("no money")

    ended = await start(hf, flow_text(FAILING, LEADS_ON), None, {"pay": pay})
    assert (ended.status, ended.artifacts) == ("completed", {"said": "pay: no money"})
    assert problems(flow_text(FAILING, LEADS_ON), {"pay": pay}) == []
    # Where nothing reads it, the graph and its version are as before.
    unread = graph(
        flow_text(
            "{id: a, type: start}\n{id: pay, type: python, config: {function: pay}}\n{id: y, type: end}",
            "a -> pay -> y\npay:error -> y",
        ),
        {"pay": pay},
    )
    assert [node.error_as for node in unread.nodes] == [msgspec.UNSET] * 3


@pytest.mark.covers("CV-22")
def test_error_of_a_node_is_known_only_behind_its_error_port() -> None:
    functions = {"pay": lambda: None}
    there = problems(flow_text(FAILING, "a -> pay -> why\nwhy:true -> z\nwhy:false -> y"), functions)
    (first, *_) = [each for each in there if each.rule == "variable-unknown"]
    assert "if its port 'error' leads on" in first.message
    both = flow_text(FAILING, f"{LEADS_ON}\n".replace("pay -> y", "pay -> why"))
    assert {each.rule for each in problems(both, functions)} == {"variable-maybe"}
    own = flow_text(FAILING, LEADS_ON, "variables: {pay_error: {default: {type: x, node: n, message: m}}}")
    assert {node.error_as for node in graph(own, functions).nodes} == {msgspec.UNSET}


@pytest.mark.parametrize(("limit", "status"), [("fail", "failed"), ("continue", "completed")])
async def test_loop_stops_after_its_last_turn(hf: Holdfast, limit: str, status: str) -> None:
    text = flow_text(
        f"""
        {{id: a, type: start}}
        {{id: again, type: loop, config: {{while: "true", max_turns: 3, on_limit: {limit}}}}}
        {{id: work, type: python, parent: again, config: {{function: more, bind: tries, args: {{of: "{{{{tries}}}}"}}}}}}
        {{id: z, type: end}}
        """,
        "a -> again -> z",
        "variables: {tries: {default: 0}}",
    )
    calls: list[int] = []

    def more(of: int) -> int:
        calls.append(of)
        return of + 1

    result = await start(hf, text, None, {"more": more})
    assert result.status == status
    assert len(calls) == 3
    if result.error is not None:
        assert "begins at 'again'" in result.error.message  # not the node that Holdfast added
        assert "again__next" not in result.error.message


async def test_placeholder_without_a_value_names_its_field_and_a_fix_that_documents_have(
    hf: Holdfast,
) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: m, type: set, config: {values: {x: "Hello {{text}}"}}}
        {id: z, type: end}
        """,
        "a -> m -> z",
        "input: {type: object, properties: {text: {type: string}}}",
    )
    result = await start(hf, text, {})
    assert result.error is not None
    assert "x: {{text}} at column 9: it has no value" in result.error.message
    assert "strict templates" not in result.error.message


async def test_loops_and_maps_stand_inside_of_each_other(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: outer, type: loop, config: {while: "turn < 2", max_turns: 5}}
        {id: count, type: python, parent: outer, config: {function: add, bind: turn, args: {of: "{{turn}}"}}}
        {id: each, type: map, parent: outer, config: {over: items, into: results}}
        {id: inner, type: loop, parent: each, config: {while: "k < item", max_turns: 5}}
        {id: step, type: python, parent: inner, config: {function: add, bind: k, args: {of: "{{k}}"}}}
        {id: z, type: end, config: {output: {results: "{{results}}", turn: "{{turn}}"}}}
        """,
        """
        a -> outer -> z
        count -> each
        """,
        f"{NUMBER}\nvariables: {{turn: {{default: 0}}, k: {{default: 0}}}}",
    )
    ended = await start(hf, text, {"items": [1, 3]}, {"add": lambda of: of + 1})
    assert ended.artifacts == {"results": [{"k": 1}, {"k": 3}], "turn": 2}


async def test_guardrail_blocks_or_leaves_by_its_violation_port(hf: Holdfast) -> None:
    from holdfast import Violation

    def small(state: Any) -> Violation | None:
        return Violation("too much") if state["n"] > 9 else None

    nodes = """
        {id: a, type: start}
        {id: g, type: guardrail, config: {check: small}}
        {id: other, type: set, config: {values: {blocked: true}}}
        {id: z, type: end}
        """
    routed = flow_text(nodes, "a -> g -> z\ng:violation -> other -> z", NUMBER)
    assert (await start(hf, routed, {"n": 12}, {"small": small})).state["blocked"] is True
    assert "blocked" not in (await start(hf, routed, {"n": 2}, {"small": small})).state
    plain = flow_text(
        nodes.replace("{id: other, type: set, config: {values: {blocked: true}}}", ""), "a -> g -> z", NUMBER
    )
    assert (await start(hf, plain, {"n": 12}, {"small": small})).status == "failed"
    assert rules(plain) == ["check-unknown"]


async def test_wait_sleeps_and_needs_one_of_duration_and_until(hf: Holdfast) -> None:
    def waiting(config: str) -> str:
        return flow_text(
            f"{{id: a, type: start}}\n{{id: w, type: wait, config: {config}}}\n{{id: z, type: end}}",
            "a -> w -> z",
            "input: {type: object, properties: {due: {type: string}}}",
        )

    assert (await start(hf, waiting("{duration: 0.01}"))).status == "completed"
    assert (
        await start(hf, waiting("{until: '{{due}}'}"), {"due": "2020-01-01T00:00:00Z"})
    ).status == "completed"
    assert (await start(hf, waiting("{until: '2020-01-01T00:00:00Z'}"))).status == "completed"
    assert (await start(hf, waiting("{until: '{{due}}'}"), {"due": "soon"})).status == "failed"
    assert rules(waiting("{}")) == ["wait-one-of"]
    assert rules(waiting("{until: tomorrow}")) == ["wait-until"]
    assert rules(waiting("{duration: -1}")) == ["duration"]


@pytest.mark.covers("CV-2")
async def test_edges_pass_through_disabled_nodes(hf: Holdfast) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: b, type: set, disabled: true, config: {values: {b: 1}}}
        {id: c, type: set, disabled: true, config: {values: {c: 1}}}
        {id: d, type: set, config: {values: {d: 1}}}
        {id: z, type: end}
        """,
        "a -> b -> c -> d -> z",
    )
    ended = await start(hf, text)
    assert ended.state == {"d": 1}
    assert [edge.id for edge in graph(text).edges] == ["a:out->d", "d:out->z"]


@pytest.mark.covers("FL-1", "FL-2", "FL-3")
async def test_the_three_questions_lower_to_the_same_kind_and_only_a_review_is_published(
    hf: Holdfast,
) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: c, type: checkpoint, config: {prompt: "Go, {{n}}?", options: ["yes", "no"], timeout: 1h, on_timeout: fail}}
        {id: d, type: hitl_decision, config: {options: [ok], decision_bind: second}}
        {id: r, type: hitl_review, config: {queue: reviews, decision_bind: third, sections: [{type: input, field: why}]}}
        {id: z, type: end}
        """,
        "a -> c -> d -> r -> z",
        f"{NUMBER}\nconfig: {{scaiqueue: {{scope: support}}}}",
    )
    holds = {node.id: node for node in graph(text).nodes if node.kind is NodeKind.hold}
    assert set(holds) == {"c", "d", "r"}
    specs = {name: node.hold for name, node in holds.items()}
    assert {name: bool(spec and spec.target) for name, spec in specs.items()} == {
        "c": False,
        "d": False,
        "r": True,
    }
    first = specs["c"]
    assert first is not None
    assert (first.type, first.timeout, first.on_timeout) == ("approval", 3_600_000_000, "fail")

    run = await start(hf, text, {"n": 3})
    assert run.holds[0].prompt == "Go, 3?"
    run = await answer(hf, await answer(hf, run, "yes"), "ok")
    run = await answer(hf, run, "submit", {"why": "because"})
    assert run.status == "completed"
    assert (run.state["decision"], run.state["second"], run.state["third"]) == ("yes", "ok", "submit")
    assert run.state["r"]["why"] == "because"


@pytest.mark.covers("CV-21")
@pytest.mark.parametrize("grown", ["{{x}}{{x}}", "{{x | json}}"])
async def test_text_that_doubles_in_a_loop_fails_before_it_fills_the_memory(hf: Holdfast, grown: str) -> None:
    text = flow_text(
        f"""
        {{id: a, type: start}}
        {{id: l, type: loop, config: {{while: "true", max_turns: 100}}}}
        {{id: s, type: set, parent: l, config: {{values: {{x: '{grown}'}}}}}}
        {{id: z, type: end}}
        """,
        "a -> l\nl:done -> z",
        "variables: {x: {default: '\\\\\\\\\\\\\\\\'}}",
    )
    ended = await start(hf, text)

    assert ended.status == "failed"
    assert ended.failed_node == "s"
    assert ended.error is not None
    assert "more than 16,000,000 characters" in ended.error.message


async def test_data_that_grows_in_each_turn_of_a_loop_fails_the_node_before_it_stops_the_worker(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "MAX_VALUES", 1000)
    nodes = """
        {id: a, type: start}
        {id: l, type: loop, config: {while: 'true', max_turns: 20}}
        {id: s, type: set, parent: l, config: {values: {x: ['{{x}}', '{{x}}']}}}
        {id: z, type: end}
    """
    ended = await start(hf, flow_text(nodes, "a -> l -> z", "variables: {x: {default: 1}}"))
    assert ended.status == "failed"
    assert "more than 1,000 values" in ended.error.message


@pytest.mark.parametrize(
    ("reducer", "grown", "first"),
    [
        ("append", "'{{x}}'", "[1]"),
        ("append", "[['{{x}}']]", "[1]"),
        ("concat", "'{{x}}'", "[1]"),
        ("sum", "'{{x}}'", "[1]"),
        ("merge", "{k: '{{x}}', l: '{{x}}'}", "{a: 1}"),
    ],
)
@pytest.mark.covers("CV-5")
async def test_variable_that_is_added_to_itself_in_a_loop_fails_the_node_before_it_stops_the_worker(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch, reducer: str, grown: str, first: str
) -> None:
    monkeypatch.setattr(render, "MAX_VALUES", 1000)
    sizes: list[int] = []
    freeze = state_schema.freeze

    def measured(value: Any, *more: Any) -> Any:
        sizes.append(len(value) if isinstance(value, (list, dict)) else 0)
        return freeze(value, *more)

    monkeypatch.setattr(state_schema, "freeze", measured)
    nodes = f"""
        {{id: a, type: start}}
        {{id: l, type: loop, config: {{while: 'true', max_turns: 1000}}}}
        {{id: s, type: set, parent: l, config: {{values: {{x: {grown}}}}}}}
        {{id: z, type: end}}
    """
    more = f"variables: {{x: {{reducer: {reducer}, default: {first}}}}}"
    ended = await start(hf, flow_text(nodes, "a -> l -> z", more))
    assert (ended.status, ended.failed_node) == ("failed", "s")
    assert "more than 1,000 values" in ended.error.message
    # Refused before the work: nothing of that size was copied.
    assert max(sizes) <= 1000


@pytest.mark.covers("CV-5")
async def test_text_that_is_added_to_itself_in_a_loop_fails_the_node(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "MAX_TEXT", 1000)
    nodes = """
        {id: a, type: start}
        {id: l, type: loop, config: {while: 'true', max_turns: 100}}
        {id: s, type: set, parent: l, config: {values: {x: '{{x}}'}}}
        {id: z, type: end}
    """
    more = "variables: {x: {reducer: concat, default: abc}}"
    ended = await start(hf, flow_text(nodes, "a -> l -> z", more))
    assert ended.status == "failed"
    assert "'x' would have more than 1,000 characters" in ended.error.message


@pytest.mark.covers("CV-5")
@pytest.mark.parametrize(("more", "grown"), [("reducer: append, ", "'{{x}}'"), ("", "['{{x}}', '{{x}}']")])
async def test_long_texts_that_are_added_to_themselves_in_a_loop_fail_the_node(
    hf: Holdfast, monkeypatch: pytest.MonkeyPatch, more: str, grown: str
) -> None:
    """A few values, and each of them long."""
    monkeypatch.setattr(render, "MAX_TEXT", 10_000)
    nodes = f"""
        {{id: a, type: start}}
        {{id: l, type: loop, config: {{while: 'true', max_turns: 30}}}}
        {{id: s, type: set, parent: l, config: {{values: {{x: {grown}}}}}}}
        {{id: z, type: end}}
    """
    text = flow_text(nodes, "a -> l -> z", f"variables: {{x: {{{more}default: [{'y' * 1000}]}}}}")
    ended = await start(hf, text)
    assert (ended.status, ended.failed_node) == ("failed", "s")
    assert "texts of more than 10,000 characters together" in ended.error.message


@pytest.mark.covers("CV-23")
@pytest.mark.parametrize(
    ("text", "field"),
    [
        (request("connection: crm, path: /x, method: POST, body: {a: [{secret: key}]}"), "body.a[0]"),
        (request("connection: crm, path: /x, headers: {X: {secret: key, more: 1}}"), "headers.X"),
        (request("connection: crm, path: /x, query: {x: {secret: 5}}"), "query.x"),
        (request("connection: crm, path: /x, headers: {X: {secret: key, prefix: 'Bearer '}}"), None),
        (flow("{id: m, type: set, config: {values: {x: {secret: key}}}}"), "values.x"),
        (flow("{id: m, type: queue_publish, config: {queue: q, payload: {secret: key}}}"), "payload"),
        (flow(end="{id: z, type: end, config: {output: {x: {secret: key}}}}"), "output.x"),
        (flow(head="variables: {x: {default: [{secret: key}]}}"), "variables.x.default"),
    ],
)
def test_secret_stands_only_in_headers_and_query_values(text: str, field: str | None) -> None:
    found = problems(text, connections={"crm": "http"}, secrets=frozenset({"key"}))
    assert [(each.rule, each.field) for each in found] == ([("secret-place", field)] if field else [])


@pytest.mark.parametrize("given", ["999999999d", 10**18, "365001d"])
async def test_a_hold_fails_when_its_timeout_is_longer_than_a_store_keeps(hf: Holdfast, given: Any) -> None:
    text = flow_text(
        """
        {id: a, type: start}
        {id: n, type: checkpoint, config: {options: [ok], timeout: '{{x}}', on_timeout: cancel}}
        {id: z, type: end}
        """,
        """
        a -> n
        n:ok -> z
        """,
        "input: {type: object, properties: {x: {}}}",
    )
    result = await start(hf, text, {"x": given})
    assert result.status == "failed"
    assert "longer than 1,000 years" in str(result.error)


@pytest.mark.parametrize(
    "node",
    [
        "{id: n, type: wait, config: {duration: 999999999d}}",
        "{id: n, type: queue_publish, config: {queue: q, scope: s, payload: 1, delay: 365001d}}",
        "{id: n, type: queue_publish, config: {queue: q, scope: s, payload: 1, expires: 365001d}}",
        "{id: n, type: queue_consume, config: {queue: q, scope: s, timeout: 365001d, on_timeout: fail}}",
        "{id: n, type: set, config: {values: {a: 1}, timeout: 365001d}}",
    ],
)
def test_a_time_that_is_longer_than_a_store_keeps_is_a_problem(node: str) -> None:
    text = flow_text(f"{{id: a, type: start}}\n{node}\n{{id: z, type: end}}", "a -> n -> z")
    assert "duration" in rules(text)
