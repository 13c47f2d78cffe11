"""Runs in JSON: the command line gives them as the HTTP API does."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from holdfast.api.schemas.events import EventWire
from holdfast.api.schemas.runs import RunResult
from holdfast.runs.run_view import RunWire
from tests.cli.conftest import Cli, given

TIMES = ("created_at", "updated_at")


def is_instant(text: Any) -> bool:
    return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None


@pytest.mark.covers("PLAIN-WIRE-06")
def test_a_run_has_the_fields_of_the_http_api_in_lists_and_when_it_is_shown(cli: Cli, refund: str) -> None:
    run = cli("run", refund, "--input", given(80), "--json").json["id"]
    (listed,) = cli("runs", "--json").items
    shown = cli("show", run, "--json").json
    assert list(listed) == list(RunWire.__struct_fields__)
    assert shown["run"] == listed
    assert all(is_instant(listed[name]) for name in (*TIMES, "ended_at"))
    assert shown["stored"]["recoveries"] == 0


@pytest.mark.covers("PLAIN-WIRE-06")
def test_a_result_has_the_fields_of_the_http_api_and_its_questions_in_full(cli: Cli, refund: str) -> None:
    result = cli("run", refund, "--input", given(250), "--json").json
    assert set(RunResult.__struct_fields__) <= set(result)
    assert result["open_holds"] == [hold["id"] for hold in result["holds"]]
    assert len(result["open_holds"]) == 1


@pytest.mark.covers("PLAIN-WIRE-06")
def test_watched_events_have_the_fields_and_times_of_the_stream(cli: Cli, refund: str) -> None:
    lines = cli("run", refund, "--input", given(80), "--watch", "--json").out.splitlines()
    *events, _result = [json.loads(line) for line in lines]
    assert events
    assert all(set(event) == set(EventWire.__struct_fields__) for event in events)
    assert all(is_instant(event["at"]) for event in events)
