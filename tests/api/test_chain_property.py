"""Property: no sequence of calls of one person, with every right, satisfies a rule that needs two."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.api.harness import harness_of
from tests.api.lone_person import MOVES, RULES, LonePerson
from tests.flows.conftest import address_of

Move = tuple[str, int, int]

moves = st.tuples(st.sampled_from(MOVES), st.integers(0, 9), st.integers(0, 9))
plans = st.lists(moves, min_size=2, max_size=9)


async def play(rule: str, plan: list[Move], store: str = "memory:", way: int = 0) -> None:
    """`way`: the first of the routes that answer."""
    async with harness_of(policies="store", slack=True, store=store) as harness:
        ada = LonePerson(harness, rule)
        await ada.begins()
        for name, first, second in plan:
            await getattr(ada, name)(first, second)
        await ada.attack(0, way)
        await ada.wait(15, 0)
        await ada.attack(1, way + 1)
        await ada.wait(15, 0)
        await ada.works()
        assert ada.paid == [], (rule, plan)


KNOWN: dict[str, list[Move]] = {
    "tokens for two others": [("mint", 0, 1), ("mint", 0, 2), ("attack", 1, 0)],
    "tokens of tokens": [("mint", 0, 1), ("mint", 1, 2), ("mint", 2, 4), ("attack", 2, 0)],
    "people of her own": [
        ("put_person", 0, 3),
        ("put_person", 0, 4),
        ("put_group", 0, 0),
        ("put_group", 0, 2),
        ("link", 3, 0),
        ("link", 4, 0),
        ("attack", 2, 0),
    ],
    "people of her own, before her run": [
        ("put_person", 0, 3),
        ("put_person", 0, 4),
        ("put_group", 0, 0),
        ("start", 0, 0),
        ("attack", 2, 0),
    ],
    "their addresses": [("put_person", 0, 0), ("put_person", 0, 1), ("link", 0, 0), ("link", 1, 0)],
    "another name of hers": [
        ("start", 1, 0),
        ("put_group", 0, 0),
        ("rename_herself", 0, 0),
        ("attack", 0, 0),
        ("mint", 0, 5),
    ],
    "her address to a stranger": [("rename_herself", 0, 0), ("wait", 0, 0), ("start", 7, 0), ("wait", 0, 0)],
    "the same, and changed again": [
        ("rename_herself", 0, 0),
        ("wait", 0, 0),
        ("put_person", 0, 4),
        ("rename_herself", 0, 0),
        ("start", 7, 0),
    ],
    "nobody any more": [("start", 0, 0), ("delete_person", 0, 5)],
    "nobody any more, and her address to a stranger": [
        ("start", 0, 0),
        ("delete_person", 0, 5),
        ("rename_herself", 0, 0),
        ("wait", 0, 0),
        ("start", 0, 0),
    ],
    "no trader any more": [("put_group", 0, 1), ("attack", 0, 0), ("delete_group", 0, 1)],
    "a substitute": [("put_away", 0, 5), ("put_away", 1, 3), ("put_person", 0, 3), ("attack", 0, 0)],
    "handed on": [("put_person", 0, 3), ("reassign", 3, 0), ("attack", 1, 0), ("reassign", 5, 0)],
    "a fork with an answer": [("branch", 0, 1), ("branch", 1, 4), ("branch", 1, 2)],
    "a fork of what the others approved": [*(("branch", 0, how) for how in (5, 6, 7, 8, 9))],
    "a fork of a graph's checkpoint": [
        ("branch_graph", 0, 1),
        ("branch_graph", 1, 0),
        ("branch_graph", 0, 3),
    ],
    "a file": [("move_file", 0, 0), ("branch", 0, 1)],
    "her account in the chat": [("chat", 0, 0), ("attack", 9, 0), ("chat", 1, 0), ("attack", 9, 0)],
    "easier rules": [("put_policy", 0, 0), ("start", 0, 0), ("put_policy", 0, 2), ("start", 0, 0)],
    "an automatic yes": [("put_policy", 0, 3), ("start", 0, 0), ("put_deployment", 0, 1), ("start", 0, 0)],
    "her program": [("mint", 0, 6), ("start", 1, 0), ("attack", 0, 0), ("start", 1, 2), ("schedule", 1, 0)],
    "other voters": [
        ("put_policy", 0, 4),
        ("start", 0, 0),
        ("put_policy", 0, 5),
        ("start", 0, 0),
        ("wait", 1, 0),
    ],
    "other rules and rungs": [
        ("put_deployment", 0, 2),
        ("start", 0, 0),
        ("put_deployment", 0, 3),
        ("start", 0, 0),
    ],
    "answers as input": [("mint", 0, 1), ("start", 2, 0), ("start", 2, 2), ("attack", 0, 0)],
    "no entry of her own": [("delete_person", 6, 5)],
    "no entry of her own, before her run": [("delete_person", 6, 5), ("start", 3, 1), ("wait", 9, 0)],
    "no rule any more": [("delete_policy", 0, 0), ("start", 0, 0), ("delete_policy", 1, 0), ("start", 0, 0)],
    "no rule, and no entry of her own": [
        ("delete_person", 6, 5),
        ("start", 3, 1),
        ("delete_policy", 5, 4),
        ("start", 8, 5),
    ],
    "no rule for people of hers": [
        ("delete_policy", 0, 0),
        ("put_person", 0, 3),
        ("start", 0, 0),
        ("reassign", 3, 0),
        ("link", 3, 0),
        ("put_group", 0, 0),
        ("mint", 0, 4),
        ("attack", 2, 0),
    ],
    "an easier rule in its place": [
        ("put_policy", 1, 3),
        ("start", 0, 0),
        ("put_policy", 1, 2),
        ("start", 0, 0),
    ],
    "a rule before it": [("put_policy", 0, 3), ("start", 0, 0), ("put_policy", 0, 1), ("start", 0, 0)],
    "a token of hers, and out of the group": [
        ("start", 0, 0),
        ("mint", 0, 3),
        ("put_group", 0, 1),
        ("reassign", 2, 0),
    ],
    "a deadline of hers": [("put_policy", 0, 2), ("start", 0, 0), ("wait", 0, 0)],
    "a deadline of her deployment": [("put_deployment", 0, 1), ("start", 0, 0), ("wait", 0, 0)],
    "delegated": [("put_person", 0, 3), ("delegate", 3, 0), ("mint", 0, 4), ("delegate", 0, 0)],
}


@pytest.mark.covers("SAFE-CHAIN-08")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("way", KNOWN)
def test_known_ways_around_do_not_pass_a_rule_of_two(rule: str, way: str) -> None:
    asyncio.run(play(rule, KNOWN[way]))


@pytest.mark.covers("SAFE-CHAIN-08")
@settings(max_examples=25)
@given(st.sampled_from(sorted(RULES)), plans)
@example("two of a group", KNOWN["tokens for two others"])
def test_no_sequence_of_one_person_passes_a_rule_of_two(rule: str, plan: list[Move]) -> None:
    asyncio.run(play(rule, plan))


@pytest.mark.covers("SAFE-CHAIN-08")
@pytest.mark.parametrize("way", [2, 4, 6])
@pytest.mark.parametrize("rule", RULES)
def test_no_other_route_that_answers_passes_a_rule_of_two(rule: str, way: int) -> None:
    asyncio.run(play(rule, KNOWN["people of her own"], way=way))


@pytest.mark.soak
@settings(max_examples=2000)
@given(st.sampled_from(sorted(RULES)), st.lists(moves, min_size=4, max_size=20))
def test_no_long_sequence_of_one_person_passes_a_rule_of_two(rule: str, plan: list[Move]) -> None:
    asyncio.run(play(rule, plan))


@pytest.mark.covers("SAFE-CHAIN-08")
@pytest.mark.timeout(900)  # every way, with one server after the other; with the soak
@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
@pytest.mark.parametrize("rule", RULES)
def test_known_ways_around_do_not_pass_on_a_database_server(rule: str, kind: str, tmp_path: Path) -> None:
    for plan in KNOWN.values():
        asyncio.run(_played_on(kind, rule, plan, tmp_path))


async def _played_on(kind: str, rule: str, plan: list[Move], folder: Path) -> None:
    await play(rule, plan, await address_of(kind, folder))
