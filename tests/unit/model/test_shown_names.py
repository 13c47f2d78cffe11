"""Nodes inside maps and sub-flows as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow
from holdfast.model.graph import Graph
from holdfast.model.shown_names import shown_name


def fetch(item: int) -> int:
    return item


def graph() -> Graph:
    inner = Flow("inner")
    inner.node(step_a)
    inner.node(step_b)
    inner.edge(step_a, step_b)
    shop = Flow("shop")
    shop.map("each", over="items", body=fetch, into="found")
    shop.map("orders", over="items", body=inner, into="done")
    shop.subflow("pay", inner)
    shop.edge("each", "orders")
    shop.edge("orders", "pay")
    return shop.program().graph


def step_a(state: Any) -> dict[str, Any]:
    return {}


def step_b(state: Any) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("pay", "pay"),
        ("", ""),
        ("each.1[110]/fetch", "each[110]"),
        ("each.2[0]/fetch", "each.2[0]"),
        ("each.1~1[4]/fetch", "each[4]"),
        ("each.1[0]/fetch__breakpoint", "each[0]/fetch__breakpoint"),
        ("orders.1[7]/step_a", "orders[7]/step_a"),
        ("pay.1[0]/step_b", "pay/step_b"),
        ("older.1[3]/node", "older[3]/node"),
        ("no/scope", "no/scope"),
    ],
)
def test_name_is_as_short_as_the_graph_allows(label: str, shown: str) -> None:
    assert shown_name(label, graph()) == shown


@pytest.mark.parametrize(
    ("label", "shown"),
    [("each.1[110]/fetch", "each[110]/fetch"), ("a.1[0]/b.2[3]/c", "a[0]/b.2[3]/c"), ("pay", "pay")],
)
def test_name_has_no_number_of_a_first_visit_where_the_graph_is_not_known(label: str, shown: str) -> None:
    assert shown_name(label) == shown
