"""Compares a run that was killed with an undisturbed one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import msgspec

from holdfast.torture.trial import TrialResult
from holdfast.torture.trial_log import CallBegun, CallEnded, CallId, Doubt

OUTSIDE: Final = frozenset({"write", "external"})
_SHOWN = 120
_UNSTEADY = "texts that differ each time"


KINDS: Final = ("stuck", "twice", "extra", "missing", "arguments", "asked", "status", "state", "artifacts")


class TrialDifference(msgspec.Struct, frozen=True):
    """`kind` is one of KINDS, the most severe first."""

    kind: str
    what: str
    text: str


class EffectCounts(msgspec.Struct):
    """How often each effect may have happened: calls that ended, and calls that a kill cut off."""

    counts: Counter[CallId]
    keys: dict[CallId, set[str | None]]
    given: dict[CallId, set[str]]


def effect_counts(seen: TrialResult) -> EffectCounts:
    begun = [n for n in seen.notes if isinstance(n, CallBegun) and n.effect in OUTSIDE]
    ended = [n for n in seen.notes if isinstance(n, CallEnded)]
    # A call that reported that nothing happened is no effect, although it was made.
    undone = Counter((n.call, n.life) for n in ended if not n.done)
    counts: Counter[CallId] = Counter()
    for note in begun:
        if undone[note.call, note.life] > 0:
            undone[note.call, note.life] -= 1
        else:
            counts[note.call] += 1
    keys: dict[CallId, set[str | None]] = {}
    given: dict[CallId, set[str]] = {}
    for note in begun:
        keys.setdefault(note.call, set()).add(note.key)
        if note.given is not None:
            given.setdefault(note.call, set()).add(note.given)
    return EffectCounts(counts, keys, given)


class Baseline(msgspec.Struct, frozen=True):
    """The result of two undisturbed runs: where they differ anyway, and which effects are equal in both."""

    ignored: frozenset[tuple[str, str]] = frozenset()
    lines: frozenset[str] | None = None

    @classmethod
    def of(cls, calm: TrialResult, again: TrialResult, found: Sequence[TrialDifference]) -> Baseline:
        alike = frozenset(calm.outside.keys() & again.outside.keys())
        same = calm.outside.keys() == again.outside.keys()
        return cls(frozenset((d.kind, d.what) for d in found), None if same else alike)

    def fold(self, outside: Counter[str]) -> Counter[str]:
        """Lines that differ each time (because they contain a time) are at least counted."""
        if self.lines is None:
            return outside
        folded: Counter[str] = Counter()
        for line, times in outside.items():
            folded[line if line in self.lines else _UNSTEADY] += times
        return folded


def differences(
    calm: TrialResult, seen: TrialResult, steady: Baseline | None = None
) -> list[TrialDifference]:
    """Without differences that two undisturbed runs have as well."""
    steady = steady or Baseline()
    found = [d for d in set(_all(calm, seen, steady)) if (d.kind, d.what) not in steady.ignored]
    return sorted(found, key=lambda d: (KINDS.index(d.kind), d.what))


def _all(calm: TrialResult, seen: TrialResult, steady: Baseline) -> Iterator[TrialDifference]:
    if seen.ending is None or calm.ending is None:
        yield TrialDifference("stuck", "run", f"the run could not continue: {seen.trouble or calm.trouble}")
        return
    yield from _effect_differences(calm, seen)
    yield from _outside(steady.fold(calm.outside), steady.fold(seen.outside))
    yield from _asked(calm.ending.holds, seen.ending.holds)
    was, now = calm.ending, seen.ending
    if (was.status, was.error) != (now.status, now.error):
        text = (
            f"it ends {_status_text(now.status, now.error)} instead of {_status_text(was.status, was.error)}"
        )
        yield TrialDifference("status", "run", text)
    if not person_decided(seen):
        yield from _values("state", was.state, now.state)
        yield from _values("artifacts", was.artifacts, now.artifacts)


def person_decided(seen: TrialResult) -> bool:
    """If a person answered that an effect happened, its result is the one that they entered."""
    return any(isinstance(n, Doubt) and n.answer == "happened" for n in seen.notes)


def repeated_under_key(calm: TrialResult, seen: TrialResult) -> int:
    was, now = effect_counts(calm), effect_counts(seen)
    return sum(1 for call, n in now.counts.items() if n > was.counts[call] and None not in now.keys[call])


def _effect_differences(calm: TrialResult, seen: TrialResult) -> Iterator[TrialDifference]:
    was, now = effect_counts(calm), effect_counts(seen)
    asked = {note.call for note in seen.notes if isinstance(note, Doubt)}
    for call in sorted(was.counts | now.counts):
        before, after = was.counts[call], now.counts[call]
        if after < before:
            text = f"{call} happened {_times(after)}, and {_times(before)} without the crash"
            yield TrialDifference("missing", str(call), text)
        elif before == 0:
            yield TrialDifference("extra", str(call), f"{call} was done, but without the crash it is not")
        elif after > before and call not in asked:
            # If a person was asked, the repetition was a decision and not silent.
            yield from _repeated(call, after, now)


def _repeated(call: CallId, times: int, now: EffectCounts) -> Iterator[TrialDifference]:
    keys = now.keys[call]
    if None in keys:
        text = f"{call} was silently done {_times(times)}: it has no idempotency key, and no person was asked"
        yield TrialDifference("twice", str(call), text)
    elif len(keys) > 1:
        yield TrialDifference("twice", str(call), f"{call} was done {_times(times)} under different keys")
    elif len(now.given.get(call, ())) > 1:
        text = f"{call} was done {_times(times)} under one key, with different arguments"
        yield TrialDifference("arguments", str(call), text)


def _outside(was: Counter[str], now: Counter[str]) -> Iterator[TrialDifference]:
    for what in sorted(was.keys() | now.keys()):
        if now[what] != was[what]:
            kind = "missing" if now[what] < was[what] else "twice" if was[what] else "extra"
            text = f"outside: {what!r} {_times(now[what])} instead of {_times(was[what])}"
            yield TrialDifference(kind, what, text)


def _asked(was: list[str], now: list[str]) -> Iterator[TrialDifference]:
    before, after = Counter(was), Counter(now)
    for question in sorted(before | after):
        if before[question] != after[question]:
            text = f"asked {_times(after[question])} instead of {_times(before[question])}: {question}"
            yield TrialDifference("asked", question, text)


def _values(where: str, was: Any, now: Any) -> Iterator[TrialDifference]:
    if type(was) is type(now) is dict:
        old, new = cast("dict[str, Any]", was), cast("dict[str, Any]", now)
        for key in sorted((old.keys() | new.keys()) - _times_in(old)):
            if key in old and key in new:
                yield from _values(f"{where}.{key}", old[key], new[key])
            else:
                yield _absent(where, key, old, new)
    elif was != now:
        yield TrialDifference(
            where.partition(".")[0], where, f"{where} is {_short(now)} instead of {_short(was)}"
        )


def _times_in(value: dict[str, Any]) -> set[str]:
    """Times of decisions: a run that was killed was decided later."""
    return {"resolved_at"} if {"decision", "resolved_by"} <= value.keys() else set()


def _absent(where: str, key: str, old: dict[str, Any], new: dict[str, Any]) -> TrialDifference:
    """It counts as a difference of the object that has it: keys that are new each time are not compared."""
    text = f"{where}.{key} is {_short(new[key])}, and absent" if key in new else f"{where}.{key} is absent"
    kept = f"{text} without the crash" if key in new else f"{text} instead of {_short(old[key])}"
    return TrialDifference(where.partition(".")[0], where, kept)


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _times(n: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(n, f"{n} times")


def _status_text(status: str, error: str | None) -> str:
    return f"{status} ({error})" if error else status
