"""The context: values, copies, threads, and what it refuses."""

from __future__ import annotations

import threading

import pytest

from holdfast.attractor.context import PipelineContext
from holdfast.errors import ValueNotStorableError


@pytest.mark.covers("AT-119")
def test_a_missing_key_has_the_default_and_strings_read_as_conditions_do() -> None:
    context = PipelineContext({"n": 3, "yes": True, "none": None, "list": [1]})
    assert context.get("x") is None
    assert context.get("x", 7) == 7
    assert context.get_string("x") == ""
    assert context.get_string("none", "d") == "d"
    assert (context.get_string("n"), context.get_string("yes")) == ("3", "true")


@pytest.mark.covers("AT-120")
def test_snapshots_and_clones_are_deep() -> None:
    context = PipelineContext({"a": {"b": [1]}})
    context.append_log("one")
    snapshot, clone = context.snapshot(), context.clone()
    snapshot["a"]["b"].append(2)
    clone.get("a")["b"].append(3)
    clone.set("a", {"b": [9]})
    clone.append_log("two")
    assert context.get("a") == {"b": [1]}
    assert context.logs == ["one"]
    assert clone.logs == ["one", "two"]


@pytest.mark.covers("AT-121")
def test_updates_are_merged_all_or_none() -> None:
    context = PipelineContext({"a": 1, "b": 2})
    context.apply_updates({"b": 3, "c": {"d": (1, 2)}})
    assert context.snapshot() == {"a": 1, "b": 3, "c": {"d": [1, 2]}}
    with pytest.raises(ValueNotStorableError):
        context.apply_updates({"a": 5, "bad": object()})
    assert context.get("a") == 1
    assert context.changes() == {"b": 3, "c": {"d": [1, 2]}}


@pytest.mark.covers("AT-122")
def test_the_log_only_grows() -> None:
    context = PipelineContext(logs=["old"])
    context.append_log("new")
    context.logs.append("not there")
    assert context.logs == ["old", "new"]
    assert context.new_logs() == ["new"]


@pytest.mark.covers("AT-123")
def test_threads_may_use_it_at_once() -> None:
    context = PipelineContext()

    def work(name: int) -> None:
        for i in range(300):
            context.set(f"{name}.{i}", i)
            context.append_log(str(i))
            context.snapshot()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(context.snapshot()) == 1200
    assert len(context.logs) == 1200


@pytest.mark.covers("AT-148")
@pytest.mark.parametrize(
    "value", [object(), {1, 2}, b"x", float("nan"), float("inf"), {"in": {"deep": object()}}, {1: 2}]
)
def test_what_json_cannot_hold_is_refused_by_the_name_of_its_key(value: object) -> None:
    with pytest.raises(ValueNotStorableError, match=r"'my\.key'"):
        PipelineContext().set("my.key", value)
