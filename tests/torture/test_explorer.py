"""The crash explorer finds what is not safe, and leaves in peace what is."""

from __future__ import annotations

import inspect
import os
import tempfile
import threading
from pathlib import Path

import pytest

from holdfast import InputError
from holdfast.cli.commands.torture import torture as torture_command
from holdfast.testing import torture
from holdfast.torture.explorer import ExplorerOptions, _options
from tests.torture import flows

HERE = ["before_call", "after_call"]


@pytest.mark.covers("TOOL-TORTURE-01", "TOOL-TORTURE-05")
def test_explorer_kills_a_run_at_every_boundary_and_answers_its_holds_when_it_is_reported_what(
    tmp_path, tmp_path_factory, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("trials")))
    own = tmp_path / "mine.db"
    monkeypatch.setenv("HOLDFAST_STORE", f"sqlite:{own}")
    monkeypatch.chdir(tmp_path)
    report = torture(
        flows.approving, {"amount": 7}, answers={"approve": "yes", "settle": ["nothing"]}, keep=True
    )
    report.assert_safe()
    assert report.status == "completed"
    assert len(report.verdicts) == report.points > 20
    assert all(verdict.reached for verdict in report.verdicts)
    names = {verdict.point.name for verdict in report.verdicts}
    assert {
        "before_call",
        "after_call",
        "after_intent",
        "after_substep",
        "inside_settle",
        "after_settle",
    } <= names
    assert {"before_park", "after_park", "after_answer", "after_claim", "after_publish"} <= names
    assert list(tmp_path.iterdir()) == []  # neither the user's store nor their folder was touched
    assert (Path(report.verdicts[0].folder) / "store.db").exists()


@pytest.mark.covers("TOOL-TORTURE-02")
def test_explorer_names_the_smallest_point_when_an_effect_is_repeated_in_silence():
    report = torture(flows.retrying)
    assert not report.safe
    smallest = report.smallest
    assert smallest is not None
    assert (str(smallest.point), smallest.point.where) == ("after_call:1", "pay_again")
    assert [d.kind for d in smallest.differences] == ["twice"]
    assert smallest.point.index == min(verdict.point.index for verdict in report.unsafe)
    assert "silently done twice" in report.story()
    before = [v for v in report.verdicts if v.point.name == "before_call"]
    assert all(verdict.safe for verdict in before)  # killed before the call, it is done once


@pytest.mark.covers("TOOL-TORTURE-05")
def test_explorer_answers_a_doubt_by_what_happened_when_a_person_would_be_asked():
    report = torture(flows.asking, points=[*HERE, "after_intent"])
    report.assert_safe()
    doubts = {verdict.point.name: verdict.doubts for verdict in report.verdicts}
    assert doubts == {"after_intent": 1, "before_call": 1, "after_call": 1}


def test_explorer_shows_the_effect_twice_when_the_person_says_wrongly_that_it_did_not_happen():
    report = torture(flows.asking, points=HERE, in_doubt="not_happened")
    assert [str(v.point) for v in report.unsafe] == ["after_call:1"]
    assert report.unsafe[0].differences[0].text == "outside: 'paid 1' twice instead of once"


def test_explorer_sees_the_effect_missing_when_the_person_says_wrongly_that_it_happened():
    report = torture(flows.asking, points=HERE, in_doubt="happened")
    assert [str(v.point) for v in report.unsafe] == ["before_call:1"]
    assert {d.kind for d in report.unsafe[0].differences} == {"missing"}


@pytest.mark.covers("TOOL-TORTURE-02")
def test_explorer_finds_what_a_process_only_remembered_when_the_result_depends_on_it():
    report = torture(flows.counting)
    smallest = report.smallest
    assert smallest is not None
    assert "state.total is 0 instead of 1" in {d.text for d in smallest.differences}


def test_explorer_reports_what_differs_anyway_and_does_not_blame_the_crash_for_it():
    report = torture(flows.unsteady, points=HERE)
    report.assert_safe()
    assert len(report.unsteady) == 1
    assert report.unsteady[0].startswith("state.total is ")


def test_explorer_jumps_over_an_hour_of_waiting_when_an_attempt_is_tried_again():
    report = torture(flows.fickle, points=["after_timer_fired", *HERE])
    report.assert_safe()  # a refused attempt is not an effect
    assert "after_timer_fired" in {verdict.point.name for verdict in report.verdicts}
    assert report.seconds < 60


def test_explorer_calls_a_run_stuck_when_its_second_life_hangs():
    report = torture(flows.stuck, points=["after_call"], limit=3.0)
    assert [d.kind for d in report.unsafe[0].differences] == ["stuck"]
    assert "did not end in time" in report.story()


def test_explorer_tries_so_many_when_it_is_reported_the_most():
    report = torture(flows.asking, most=3)
    assert len(report.verdicts) == 3
    assert report.points > 3


def test_options_have_the_names_of_the_command_and_earlier_names_are_accepted():
    known = {*inspect.signature(torture).parameters, *ExplorerOptions.__struct_fields__}
    command = inspect.signature(torture_command).parameters
    named = {*command, "max"} - {"most", "may_fail", "json"}
    assert named <= known
    assert _options({"most": 3, "copies": ["a"], "life_limit": 1.0, "total_limit": 2.0}) == ExplorerOptions(
        max=3, copy=["a"], limit=1.0, time=2.0
    )


def test_decisions_are_given_by_node_as_to_the_command():
    report = torture(
        flows.approving, decide={"approve": "yes", "settle": ["nothing"]}, points=["after_park:1"]
    )
    assert report.status == "completed"


@pytest.mark.covers("TOOL-TORTURE-04")
def test_helper_fails_a_test_with_the_story_when_the_flow_is_not_safe():
    report = torture(flows.retrying, points=["after_call"])
    with pytest.raises(AssertionError, match=r"The first unsafe boundary is after_call:1, at pay_again"):
        report.assert_safe()


@pytest.mark.covers("TOOL-TORTURE-04")
@pytest.mark.anyio
async def test_helper_works_inside_an_async_test_when_a_loop_runs_already():
    torture(flows.asking, points=["after_call"]).assert_safe()


def test_explorer_refuses_when_the_undisturbed_run_cannot_be_made():
    with pytest.raises(InputError, match="is not one of the answers"):
        torture(flows.approving, answers={"approve": "perhaps"})
    with pytest.raises(InputError, match="unknown boundary 'x'"):
        torture(flows.asking, points=["x"])
    with pytest.raises(InputError, match="is not valid"):
        torture(flows.approving, answers={"approve": 3})


def test_explorer_ends_where_the_run_waits_when_nobody_said_what_to_answer():
    report = torture(flows.approving, points=["after_park"])
    report.assert_safe()
    assert report.status == "pending_input"
    assert report.waits == ["approve: Pay 1?"]


def test_effects_are_recorded_only_when_an_explorer_listens(tmp_path, monkeypatch):
    from holdfast.testing import effects

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_TORTURE_LOG", raising=False)
    effects.record("paid")
    assert list(tmp_path.iterdir()) == []


def test_effects_that_name_a_time_are_counted_when_no_two_are_alike():
    report = torture(flows.dated, points=HERE)
    assert [str(verdict.point) for verdict in report.unsafe] == ["after_call:1"]
    (twice,) = report.unsafe[0].differences
    assert twice.text == "outside: 'texts that differ each time' twice instead of once"


def test_script_is_suspected_when_its_code_around_the_steps_writes():
    report = torture(flows.careless_script, points=["after_claim"])
    assert report.suspects == [
        "around is a script, whose code around its steps runs again, and opens ledger.txt for writing"
    ]


def test_programs_that_a_handler_started_do_not_outlive_their_run(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    report = torture(flows.starting, points=["after_call"], keep=True)
    started = [int(file.read_text()) for file in Path(report.folder).rglob("child.pid")]
    assert len(started) == 3
    for child in started:
        with pytest.raises(ProcessLookupError):
            _await_gone(child)


def _await_gone(child: int) -> None:
    """A killed orphan is reaped by the system a moment later."""
    for _ in range(5000):
        os.kill(child, 0)
        state = Path(f"/proc/{child}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            raise ProcessLookupError
        os.sched_yield()


def test_helper_fails_a_test_when_the_run_fails_anyway():
    report = torture(flows.failing, points=["after_claim"])
    with pytest.raises(AssertionError, match="fails even without a crash: ValueError: never"):
        report.assert_safe()
    report.assert_safe(may_fail=True)


def test_explorer_lets_a_question_expire_and_gives_data_when_the_answers_say_so():
    given = {"approve": {"decision": "yes", "data": {"limit": 3}, "comment": "fine"}, "remind": None}
    report = torture(flows.expiring, answers=given, points=["after_answer", "after_lapse"])
    report.assert_safe()
    assert {verdict.point.name for verdict in report.verdicts} == {"after_answer", "after_lapse"}
    assert report.status == "completed"


def test_explorer_says_that_threads_do_not_come_along_when_a_run_cannot_be_made():
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with pytest.raises(InputError, match="other threads were running"):
            torture(flows.approving, answers={"approve": "perhaps"})
    finally:
        over.set()
        other.join()


def test_explorer_gives_back_a_secret_as_it_was_when_its_effect_is_in_doubt_and_shows_it_to_nobody():
    report = torture(flows.secretive, points=["after_call"])
    report.assert_safe()
    assert [verdict.doubts for verdict in report.verdicts] == [1, 0]
    assert "correct horse" not in str(report.as_json())
