from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import SettingsError
from holdfast.types.concurrency_limits import (
    LimitRow,
    Limits,
    flow_limit,
    flow_of,
    key_limit,
    parse_rate,
    path_of,
    rate_text,
)

MINUTE = 60_000_000


@pytest.mark.covers("FLEET-WORK-04")
@pytest.mark.parametrize(
    ("text", "count", "per"),
    [
        ("100/min", 100, MINUTE),
        ("5/s", 5, 1_000_000),
        (" 1000 / h ", 1000, 60 * MINUTE),
        ("3 per day", 3, 1440 * MINUTE),
        ("20/30s", 20, 30_000_000),
        ("1/1h30m", 1, 90 * MINUTE),
        ("7/250ms", 7, 250_000),
    ],
)
def test_rate_is_read_and_written_as_people_write_it(text: str, count: int, per: int) -> None:
    assert parse_rate(text) == (count, per)
    assert parse_rate(rate_text(count, per)) == (count, per)


@pytest.mark.parametrize(
    "text", ["", "100", "fast", "/min", "0/s", "-1/s", "1.5/s", "5/", "5/moon", "5/0s", 5]
)
def test_text_that_is_no_rate_is_refused_with_examples(text: Any) -> None:
    with pytest.raises(SettingsError, match="100/min"):
        parse_rate(text)


@pytest.mark.covers("FLEET-WORK-03")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "none is given"),
        ({"concurrency": 0}, "concurrency=0 is not a number of runs"),
        ({"concurrency": -1}, "concurrency=-1"),
        ({"concurrency": True}, "concurrency=True"),
        ({"concurrency": 2.5}, "concurrency=2.5"),
        ({"rate": "often"}, "limits: rate='often' is not a rate"),
        ({"per_key": 1}, "need key="),
        ({"key": "{{a}}"}, "neither per_key= nor key_rate="),
        ({"key": " ", "per_key": 1}, "is not text"),
        ({"key": "{{a}}", "per_key": 0}, "per_key=0"),
        ({"key": "{{a}}", "key_rate": "x"}, "key_rate='x'"),
    ],
)
def test_limits_that_mean_nothing_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Limits(**given)


def test_limits_are_the_gates_of_a_flow_and_of_each_key() -> None:
    limits = Limits(concurrency=20, rate="100/min", key="{{who}}", per_key=1, key_rate="5/s")
    assert limits.rows("refund") == [
        LimitRow(name="flow:refund", concurrency=20, rate=100, per=MINUTE),
        LimitRow(name="flow:refund/*", concurrency=1, rate=5, per=1_000_000),
    ]
    assert [row.name for row in Limits(concurrency=1).rows("a/b")] == ["flow:a%2Fb"]


def test_names_of_gates_are_paths() -> None:
    assert path_of(key_limit("refund", "acme")) == ("flow:refund", "flow:refund/acme")
    assert path_of(flow_limit("refund")) == ("flow:refund",)
    for flow in ("refund", "a/b", "50%", "a%2Fb", "*"):
        assert flow_of(flow_limit(flow)) == flow
        assert flow_of(key_limit(flow, "k")) is None
