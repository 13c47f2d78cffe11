"""What a torture came to, for people and for machines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from tests.fleet.torture.flows import EFFECTS
from tests.fleet.torture.run import Outcome


def write(outcome: Outcome, file: Path) -> None:
    """Markdown there, and all the facts as JSON beside it."""
    file.write_text(markdown(outcome))
    file.with_suffix(".json").write_bytes(msgspec.json.format(msgspec.json.encode(outcome), indent=1))


def markdown(outcome: Outcome) -> str:
    plan, history = outcome.plan, outcome.history
    verdict = "Nothing is wrong." if not outcome.findings else f"{len(outcome.findings)} findings."
    summary = (
        f"{verdict} {plan.workers} workers, {len(history.runs)} runs, {plan.seconds:.0f} s of faults; the "
        f"last run had ended {outcome.settled:.1f} s after the last fault; {outcome.took:.0f} s in all."
    )
    parts = [
        f"# Torture with seed {plan.seed}",
        summary,
        *_findings(outcome),
        "## What struck",
        _table(("fault", "times"), sorted(history.faults.items())),
        "## What was held against it",
        _table(("what", "how many"), _figures(outcome)),
        "## Runs",
        _table(
            ("flow", "completed", "failed", "cancelled", "other", "recoveries", "slowest (s)"), _runs(outcome)
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _findings(outcome: Outcome) -> list[str]:
    if not outcome.findings:
        return []
    rows = [(finding.rule, finding.run, finding.text) for finding in outcome.findings]
    acts = [f"- {act.at:6.1f} s {act.kind}, {act.whom}: {act.what}" for act in outcome.acts]
    return ["## Findings", _table(("rule", "run", "what"), rows), "## Acts", "\n".join(acts)]


def _figures(outcome: Outcome) -> list[tuple[str, int]]:
    history = outcome.history
    done = [line for line in history.lines if line.what == "did"]
    per = Counter((line.run, line.effect) for line in done)
    kinds = {(run.id, effect): kind for run in history.runs for effect, kind in EFFECTS[run.flow].items()}
    doubts = [hold for run in history.runs for hold in run.holds if hold.type == "in_doubt"]
    return [
        ("effects in the outside ledger", len(done)),
        ("effects that happened twice, each explained by a doubt", sum(times > 1 for times in per.values())),
        ("repeated calls that an idempotency key made one",
         sum(line.what == "again" for line in history.lines)),
        ("calls that began and never ended",
         sum(line.what == "begin" for line in history.lines)
         - sum(line.what == "end" for line in history.lines)),
        ("doubts that a person was asked about", len(doubts)),
        ("of these, it had happened", sum(hold.decision == "happened" for hold in doubts)),
        ("of these, it had not", sum(hold.decision == "not_happened" for hold in doubts)),
        ("doubts that the policy settled", sum(
            times for run in history.runs for node, times in run.restarts.items()
            if kinds.get((run.id, node)) in ("retry", "probe"))),
        ("decisions acknowledged", sum(ack.what == "decided" for ack in history.acks)),
        ("events stored, and seen once each by a reader", sum(len(run.events) for run in history.runs)),
        ("runs streamed to their end", len(history.watched.streamed)),
        ("times a reader had to begin anew by number", history.watched.broken),
        ("recoveries of a run after its worker fell silent", sum(run.recoveries for run in history.runs)),
    ]  # fmt: skip


def _runs(outcome: Outcome) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for flow in EFFECTS:
        mine = [run for run in outcome.history.runs if run.flow == flow]
        count = Counter(run.status for run in mine)
        ended = [count.pop(status, 0) for status in ("completed", "failed", "cancelled")]
        slowest = f"{max((run.seconds for run in mine), default=0.0):.1f}"
        rows.append((flow, *ended, sum(count.values()), sum(run.recoveries for run in mine), slowest))
    return rows


def _table(head: tuple[str, ...], rows: list[tuple[object, ...]] | list[tuple[str, int]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "/") for cell in line) + " |" for line in lines)
