"""What must be true in the end, whatever befell the fleet. Reads a history; asks nobody."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec

from holdfast.types.clock import MICROS, iso
from tests.fleet.torture.flows import AT_ONCE, EFFECTS, SCHEDULED, expected
from tests.fleet.torture.history import Ack, History, Hold, Ran
from tests.fleet.torture.ledger import Line

ENDED = ("completed", "failed", "cancelled")
MUST_STRIKE = (
    "kill with runs under way", "pause that lost leases", "drain", "restart of the server", "cut",
    "cut in a statement", "answer lost", "delay", "swallow", "refuse", "clock set",
    "processes with a wrong clock",
)  # fmt: skip


class Finding(msgspec.Struct, frozen=True):
    """A rule that is broken, and where."""

    rule: str
    run: str
    text: str


def judge(history: History) -> list[Finding]:
    """Empty where all is well."""
    lines: dict[str, list[Line]] = defaultdict(list)
    for line in history.lines:
        lines[line.run].append(line)
    found = [*_created(history), *_scheduled(history), *_limited(history)]
    found += [*_decisions(history), *_feed(history), *_whole(history)]
    for run in history.runs:
        found += [*_ended(run), *_effects(run, lines[run.id]), *_streams(run, history)]
    return found


# ---------------------------------------------------------------------- runs
def _created(history: History) -> Iterator[Finding]:
    """Every run whose creation was acknowledged is there, once, with the right end."""
    there = Counter(run.id for run in history.runs)
    by_id = {run.id: run for run in history.runs}
    cancelled = {ack.run for ack in history.acks if ack.what == "cancelled"}
    for ack in history.acks:
        if ack.what != "created":
            continue
        if there[ack.run] != 1:
            yield Finding("run lost", ack.run, f"it was created, and the store has it {there[ack.run]} times")
            continue
        run = by_id[ack.run]
        if run.status == "completed":
            for name, value in expected(ack.flow, ack.n).items():
                if run.state.get(name) != value:
                    text = f"{run.flow}: {name} is {run.state.get(name)!r} and not {value!r}"
                    yield Finding("wrong result", run.id, text)
        if run.id in cancelled and run.status != "cancelled":
            yield Finding("cancel lost", run.id, f"it was cancelled, and is {run.status}")


def _scheduled(history: History) -> Iterator[Finding]:
    """Each instant of the schedule became one run, also those that nobody was there to see."""
    started = Counter(run.state.get("ticked") for run in history.runs if run.flow == SCHEDULED)
    for ack in history.acks:
        if ack.what == "scheduled":
            due = {iso(moment) for moment in range(ack.begin, ack.end + 1, MICROS)}
            for moment in sorted(due - started.keys()):
                yield Finding("schedule missed", "", f"nothing was started for {moment}")
    for moment, times in started.items():
        if times > 1:
            yield Finding("schedule twice", "", f"{times} runs were started for {moment}")


def _limited(history: History) -> Iterator[Finding]:
    """Of a flow with a limit no more are under way at once. Runs whose worker was cut off are left out: it
    may still be in the middle of something when its place has long been given to another."""
    steady = {run.id for run in history.runs if run.flow == "narrow" and not run.recovered}
    moves = sorted(
        (line.at, 1 if line.what == "begin" else -1)
        for line in history.lines
        if line.run in steady and line.what in ("begin", "end")
    )
    under_way = most = 0
    for _at, step in moves:
        under_way += step
        most = max(most, under_way)
    if most > AT_ONCE:
        yield Finding("limit exceeded", "", f"{most} runs of 'narrow' at once, and {AT_ONCE} may be")


def _ended(run: Ran) -> Iterator[Finding]:
    if run.status not in ENDED:
        yield Finding("not ended", run.id, f"{run.flow} is {run.status} at record {run.head}: {run.error}")
    elif run.status == "failed" and not _may_fail(run):
        yield Finding("failed", run.id, f"{run.flow} failed: {run.error}")
    elif run.status == "cancelled" and run.flow != "stopped":
        yield Finding("cancelled", run.id, f"nobody cancelled this {run.flow}")
    if run.worker is not None:
        yield Finding("lease left", run.id, f"{run.worker} still has it")


def _may_fail(run: Ran) -> bool:
    """Only where the policy says that a doubt is a failure, and there was one."""
    return "fail" in EFFECTS[run.flow].values() and "started, and its outcome is not known" in (
        run.error or ""
    )


# ---------------------------------------------------------------------- effects
def _effects(run: Ran, lines: list[Line]) -> Iterator[Finding]:
    done = Counter(line.effect for line in lines if line.what == "did")
    for effect, policy in EFFECTS[run.flow].items():
        if run.status == "completed" and not done[effect]:
            yield Finding("effect missing", run.id, f"{run.flow} completed and {effect!r} never happened")
        allowed = 1 + _explained(run, effect, policy)
        if done[effect] > allowed:
            text = f"{effect!r} ({policy}) happened {done[effect]} times, and {allowed} can be explained"
            yield Finding("effect twice", run.id, text)
        keys = {line.key for line in lines if line.effect == effect}
        if len(keys) > 1:
            yield Finding("key changed", run.id, f"{effect!r} was called under {len(keys)} keys")
    for effect in done.keys() - EFFECTS[run.flow].keys():
        yield Finding("effect of nobody", run.id, f"{effect!r} happened")


def _explained(run: Ran, effect: str, policy: str) -> int:
    """How often it may have happened again: a person said that it had not, or its policy is to repeat."""
    asked = sum(hold.effect == effect and hold.decision == "not_happened" for hold in run.holds)
    if policy in ("retry", "probe"):
        return asked + run.restarts.get(effect, 0)
    return asked


# ---------------------------------------------------------------------- decisions
def _decisions(history: History) -> Iterator[Finding]:
    holds = {hold.id: (run, hold) for run in history.runs for hold in run.holds}
    for ack in history.acks:
        if ack.what == "decided":
            yield from _decided(ack, holds.get(ack.hold))
    for run, hold in holds.values():
        result = run.resolved.get(hold.id, 0)
        if result > 1:
            yield Finding("decision twice", run.id, f"{hold.node}: {result} events say that it was decided")
        if hold.status == "pending" and run.status in ENDED:
            yield Finding("hold left", run.id, f"{hold.node} still asks, and its run is {run.status}")


def _decided(ack: Ack, found: tuple[Ran, Hold] | None) -> Iterator[Finding]:
    if found is None:
        yield Finding("decision lost", ack.run, f"hold {ack.hold} is not there")
        return
    run, hold = found
    if hold.decision != ack.decision:
        text = f"{hold.node}: {ack.decision!r} was acknowledged, and {hold.decision!r} is stored"
        yield Finding("decision lost", run.id, text)
    if run.resolved.get(hold.id, 0) != 1:
        text = f"{hold.node}: {run.resolved.get(hold.id, 0)} events say that it was decided"
        yield Finding("decision not told", run.id, text)
    bound = {"talk": "said", "first": "word"}.get(hold.node) if hold.type != "in_doubt" else None
    if bound and run.status == "completed" and run.state.get(bound) != ack.decision:
        text = f"{hold.node}: {ack.decision!r} was acknowledged, and the run has {run.state.get(bound)!r}"
        yield Finding("decision not applied", run.id, text)


# ---------------------------------------------------------------------- streams
def _streams(run: Ran, history: History) -> Iterator[Finding]:
    numbers = [number for number, _ in run.events]
    if numbers != list(range(1, run.event_seq + 1)):
        yield Finding("event missing", run.id, f"stored: {_gap(numbers)}, and {run.event_seq} were numbered")
    seen = history.watched.events.get(run.id, [])
    if seen != run.events:
        yield Finding("stream differs", run.id, f"by the feed: {_differs(seen, run.events)}")
    if run.id in history.watched.streamed and history.watched.streams[run.id] != run.events:
        yield Finding(
            "stream differs", run.id, f"streamed: {_differs(history.watched.streams[run.id], run.events)}"
        )


def _feed(history: History) -> Iterator[Finding]:
    if history.watched.feed != history.feed:
        text = f"{len(history.watched.feed)} places were read, and the store has {len(history.feed)}"
        yield Finding("feed differs", "", text)
    upto: dict[str, int] = defaultdict(int)
    for run, first, last in history.watched.feed:
        if first != upto[run] + 1:
            yield Finding("feed torn", run, f"event {first} follows event {upto[run]}")
        upto[run] = last
    for run in history.runs:
        if upto[run.id] != run.event_seq:
            yield Finding("feed short", run.id, f"it tells up to {upto[run.id]} of {run.event_seq}")


def _gap(numbers: list[int]) -> str:
    for place, number in enumerate(numbers, 1):
        if number != place:
            return f"number {number} stands at place {place}"
    return f"{len(numbers)} in order"


def _differs(seen: list[tuple[int, str]], stored: list[tuple[int, str]]) -> str:
    for mine, theirs in zip(seen, stored, strict=False):
        if mine != theirs:
            return f"{mine} was seen and {theirs} is stored"
    return f"{len(seen)} were seen and {len(stored)} are stored"


# ---------------------------------------------------------------------- the instance
def _whole(history: History) -> Iterator[Finding]:
    if history.audit:
        yield Finding("audit broken", "", history.audit)
    if history.leases:
        yield Finding("lease left", "", f"{history.leases} runs still have a worker")
    for kind in MUST_STRIKE:
        if not history.faults.get(kind):
            yield Finding("did not strike", "", kind)
    for line in history.errors:
        yield Finding("unexpected in a log", "", line)
