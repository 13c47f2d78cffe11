"""kill -9 at each named point, then resume: every effect once, and the end of a run that nobody killed."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.attractor import detached_commands
from tests.attractor.kill import CRASHED, Called, End, Place, finished, place, until
from tests.attractor.victims import BACKOFF, BRANCHES, GATE, GOAL, HELD, LINE, MANAGER, RESTART, TOOL

__all__ = ["place"]


@pytest.mark.covers("ATTRACTOR-PROOF-07", "AT-152", "AT-153", "AT-155")
@pytest.mark.parametrize(
    "crash",
    [
        pytest.param("after_intent:2", id="node start"),
        pytest.param("after_substep:4", id="tool done, not recorded as a step"),
        pytest.param("inside_settle:4", id="tool done, amid the write"),
        pytest.param("after_settle:3", id="checkpointed"),
    ],
)
def test_a_stage_whose_process_dies_has_run_once(place: Callable[[str], Place], crash: str) -> None:
    here = place(LINE)
    here.touch("b.go")
    assert here.start(crash).end() == CRASHED, here.calls[-1].told
    assert finished(here) == End("completed", ["start", "a", "b", "c", "end"],
                                 Counter({"a": 1, "b": 1, "b.end": 1, "c": 1}))  # fmt: skip


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-DIR-01", "AT-156")
def test_an_end_that_was_stored_and_not_shown_is_shown_by_who_resumes(place: Callable[[str], Place]) -> None:
    here = place(LINE)
    here.touch("b.go")
    assert here.start().end() == 0, here.calls[-1].told
    shown = here.folder / "D" / "checkpoint.json"
    behind = json.loads(shown.read_text())
    shown.write_text(json.dumps({**behind, "current_node": "b", "completed_nodes": ["start", "a", "b"]}))
    assert finished(here).completed == ["start", "a", "b", "c", "end"]


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-HANDLER-01", "AT-155")
@pytest.mark.parametrize("ends", ["while nobody looks", "after the next has come"])
def test_a_tool_that_outlives_its_engine_is_adopted(place: Callable[[str], Place], ends: str) -> None:
    here = place(LINE)
    first = here.start()
    until(lambda: here.has("b.began"), "the tool begins")
    first.kill()
    if ends == "while nobody looks":
        here.touch("b.go")
        until(lambda: "b.end" in here.trace, "the tool ends alone")
    again = here.resume()
    if not here.has("b.go"):
        until(here.is_claimed_again, "the run is taken over")
        assert here.trace == ["a", "b"]
        here.touch("b.go")
    assert again.end() == 0, again.told
    assert here.end() == End("completed", ["start", "a", "b", "c", "end"],
                             Counter({"a": 1, "b": 1, "b.end": 1, "c": 1}))  # fmt: skip


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-RUN-01", "ATTRACTOR-PROOF-04")
def test_branches_that_ended_are_not_run_again(place: Callable[[str], Place], tmp_path: Path) -> None:
    here = place(BRANCHES)
    first = here.start()
    until(lambda: here.has("b2.began") and here.has("a2.done") and "d" in here.trace, "one branch is left")
    first.kill()
    here.touch("b2.go")
    names = ("a", "a2", "b", "b2", "b2.end", "c", "d", "last")
    assert finished(here) == End("completed", ["start", "fan", "join", "last", "end"], Counter(names))


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-PROOF-04")
@pytest.mark.parametrize("crash", ["after_handler:6", "inside_settle:4"])
def test_branches_come_to_the_same_end_whose_process_dies(place: Callable[[str], Place], crash: str) -> None:
    here = place(BRANCHES)
    here.touch("b2.go")
    assert here.start(crash).end() == CRASHED, here.calls[-1].told
    names = ("a", "a2", "b", "b2", "b2.end", "c", "d", "last")
    assert finished(here) == End("completed", ["start", "fan", "join", "last", "end"], Counter(names))


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-PROOF-09", "ATTRACTOR-GATE-02")
@pytest.mark.parametrize("crash", ["before_park", "after_park"])
def test_a_gate_stands_when_its_process_dies_and_is_asked_once(
    place: Callable[[str], Place], crash: str
) -> None:
    here = place(GATE)
    assert here.start(crash).end() == CRASHED, here.calls[-1].told
    if crash == "before_park":
        assert here.resume().end() == 3, here.calls[-1].told
    listed = here.call("holds", "list", "--json")
    assert listed.end() == 0, listed.told
    assert here.call("answer", here.run_id, "Y").end() == 0, here.calls[-1].told
    assert finished(here) == End("completed", ["start", "a", "ask", "b", "end"], Counter("ab"))
    assert listed.told.count("Go on?") == 1


@pytest.mark.covers("ATTRACTOR-PROOF-07", "AT-151", "ATTRACTOR-BOUND-06")
def test_a_back_off_goes_on_with_its_count(place: Callable[[str], Place]) -> None:
    here = place(BACKOFF)
    assert here.start("during_backoff:1").end() == CRASHED, here.calls[-1].told
    assert here.trace == ["a"]
    assert finished(here) == End("completed", ["start", "a", "b", "end"], Counter({"a": 3, "b": 1}))


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-PROOF-11", "ATTRACTOR-RUN-04", "ATTRACTOR-BOUND-06")
@pytest.mark.parametrize("crash", ["inside_settle:5", "after_intent:4"])
def test_a_walk_that_begins_anew_does_so_once(place: Callable[[str], Place], crash: str) -> None:
    here = place(RESTART)
    assert here.start(crash).end() == CRASHED, here.calls[-1].told
    ended = finished(here)
    assert ended.status == "completed"
    assert ended.effects == Counter({"a": 2, "b": 2})
    assert here.has("D/restart-1/b/status.json")
    assert not here.has("D/restart-2")


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-RUN-03")
def test_a_managers_child_goes_on_where_it_stood(place: Callable[[str], Place]) -> None:
    here = place(MANAGER)
    first = here.start()
    until(lambda: here.has("work.began"), "the child works")
    first.kill()
    here.touch("work.go")
    ended = finished(here)
    assert ended == End("completed", ["start", "boss", "b", "end"],
                        Counter({"work": 1, "work.end": 1, "more": 1, "b": 1}))  # fmt: skip


@pytest.mark.covers("ATTRACTOR-PROOF-07", "AT-118", "ATTRACTOR-PROOF-11", "ATTRACTOR-BOUND-06")
def test_a_run_that_must_fail_its_goal_gate_still_fails_it(place: Callable[[str], Place]) -> None:
    here = place(GOAL)
    first = here.start()
    until(lambda: here.has("late.began"), "the gate is behind it")
    first.kill()
    here.touch("late.go")
    ended = finished(here)
    assert ended.status == "failed"
    assert ended.effects == Counter({"work": 3, "late": 3, "late.end": 3})
    assert ended.completed == ["start", *["work", "check", "late", "end"] * 3]


@pytest.mark.covers("ATTRACTOR-PROOF-08")
def test_two_processes_on_one_run_never_both_execute_it(place: Callable[[str], Place]) -> None:
    here = place(LINE)
    first = here.start("", "--json")
    until(lambda: here.has("b.began"), "the tool begins")
    others = [here.resume() for _ in range(2)]
    here.touch("b.go")
    assert [each.end() for each in (first, *others)] == [0, 0, 0]
    for each in (first, *others):
        reply = json.loads(each.told.splitlines()[-1])
        assert (reply["status"], reply["completed_nodes"]) == ("completed", ["start", "a", "b", "c", "end"])
    assert here.trace == ["a", "b", "b.end", "c"]


@contextmanager
def frozen(here: Place, called: Called) -> Iterator[None]:
    """Stopped in its tracks, but not while it holds the store's file: nobody could write then."""
    pid = called.process.pid
    assert pid is not None
    while True:
        os.kill(pid, signal.SIGSTOP)
        if not here.is_locked():
            break
        os.kill(pid, signal.SIGCONT)
    yield
    os.kill(pid, signal.SIGCONT)


@pytest.mark.covers("ATTRACTOR-PROOF-08", "ATTRACTOR-HANDLER-01", "ATTRACTOR-PROOF-07")
def test_a_process_that_was_frozen_and_lost_its_run_does_nothing_more(place: Callable[[str], Place]) -> None:
    here = place(LINE)
    first = here.start()
    until(lambda: here.has("b.began"), "the tool begins")
    with frozen(here, first):
        here.touch("b.go")
        ended = finished(here)
    first.end()
    assert ended == End("completed", ["start", "a", "b", "c", "end"],
                        Counter({"a": 1, "b": 1, "b.end": 1, "c": 1}))  # fmt: skip
    assert Counter(here.trace) == ended.effects


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-HANDLER-01")
def test_a_tool_left_behind_is_stopped_at_its_time_by_who_comes_next(place: Callable[[str], Place]) -> None:
    here = place(
        f"""digraph left {{ start; end
        a [{TOOL}="echo $$ >pid; touch a.began; sleep 300 & sleep 300; echo late >>trace", timeout=1500ms]
        b [{TOOL}="echo b >>trace"]
        start -> a; a -> end [condition="outcome=success"]; a -> b [condition="outcome=fail"]; b -> end }}"""
    )
    first = here.start()
    until(lambda: here.has("a.began"), "the tool begins")
    first.kill()
    assert finished(here) == End("completed", ["start", "a", "b", "end"], Counter("b"))
    group = int((here.folder / "D" / "a" / "tool-1-1-1" / "pid").read_text())
    until(lambda: not detached_commands.is_living(group), "the group is gone")


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-HANDLER-01", "ATTRACTOR-RUN-03")
@pytest.mark.parametrize(
    ("text", "began"), [(LINE, "b.began"), (MANAGER, "work.began")], ids=["tool", "child"]
)
def test_what_a_dead_process_left_ends_with_the_run_that_is_cancelled(
    place: Callable[[str], Place], text: str, began: str
) -> None:
    here = place(text)
    first = here.start()
    until(lambda: here.has(began), "the tool begins")
    first.kill()
    assert here.call("cancel", here.run_id).end() == 0, here.calls[-1].told
    worker = here.call("worker")
    groups = [int(path.read_text()) for path in (here.folder / "D").glob("**/tool-*/pid")]
    until(lambda: not any(map(detached_commands.is_living, groups)), "nothing is left")
    until(lambda: here.statuses() == {"cancelled"}, "all runs have ended")
    worker.kill()


@pytest.mark.covers("ATTRACTOR-PROOF-07", "ATTRACTOR-RUN-02", "ATTRACTOR-HANDLER-01")
def test_a_loser_is_stopped_by_who_comes_next(place: Callable[[str], Place]) -> None:
    here = place(
        f"""digraph race {{ start; end; fan [shape=component, join_policy=first_success]
        join [shape=tripleoctagon]; a [{TOOL}="{HELD.format("a")}"]; b [{TOOL}="{HELD.format("b")}"]
        start -> fan; fan -> a -> join; fan -> b -> join; join -> end }}"""
    )
    first = here.start()
    until(lambda: here.has("a.began") and here.has("b.began"), "both run")
    first.kill()
    here.touch("a.go")
    ended = finished(here)
    assert ended == End("completed", ["start", "fan", "join", "end"], Counter(["a", "b", "a.end"]))
    (group,) = [int(path.read_text()) for path in (here.folder / "D" / "b").glob("tool-*/pid")]
    until(lambda: not detached_commands.is_living(group), "the loser is gone")


@pytest.mark.covers("ATTRACTOR-PROOF-09", "ATTRACTOR-GATE-02")
def test_a_gate_answered_while_no_engine_lives_goes_on_by_itself_when_a_worker_comes(
    place: Callable[[str], Place],
) -> None:
    here = place(GATE)
    assert here.start().end() == 3, here.calls[-1].told
    assert here.call("answer", here.run_id, "Y").end() == 0, here.calls[-1].told
    assert here.trace == ["a"]
    worker = here.call("worker")
    until(lambda: here.statuses() == {"completed"}, "a worker goes on")
    worker.kill()
    assert finished(here) == End("completed", ["start", "a", "ask", "b", "end"], Counter("ab"))
