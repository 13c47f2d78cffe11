"""What the benchmark is to reach. Ids are stable: the ledger names them (docs/ledger/README.md)."""

from __future__ import annotations

import msgspec


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """At most, or at least, this much of the line's unit."""

    most: float | None = None
    least: float | None = None


TARGETS: dict[str, Target] = {
    "A-memory": Target(most=60),
    "A-strict": Target(most=1.7),
    "A-barrier": Target(most=0.25),
    "B-last-step": Target(most=1.2),
    "B-stored": Target(most=1.4),
    "B-stored-short": Target(most=1.4),
    "C-step-barrier": Target(most=2.0),
    "C-step-strict": Target(most=2.0),
    "C-stored-barrier": Target(most=1.1),
    "C-stored-strict": Target(most=1.1),
    "D-sqlite": Target(least=12_000),
    "E-1000": Target(most=8.0),
    "E-10000": Target(most=12.0),
    "F-person": Target(most=2.0),
    "G-size": Target(most=1.3),
    "G-siblings": Target(most=13),
    "H-inbox": Target(most=3.0),
    "I-import": Target(most=150),
    "I-names": Target(most=150),
    "I-cli": Target(most=200),
    "N-calls-strict": Target(most=300),
    "N-calls-barrier": Target(most=300),
    "N-commits-strict": Target(most=1.05),
    "N-commits-barrier": Target(most=0.2),
    "N-flushes-strict": Target(most=1.05),
    "N-flushes-barrier": Target(most=0.2),
    "N-person": Target(most=53),
    "N-person-calls": Target(most=2560),
    "N-modules": Target(most=245),
    "N-stored": Target(most=1.5),
    "N-among": Target(most=1.1),
    "N-round": Target(most=1.1),
    "M-strict": Target(most=2.5),
    "O-beside": Target(most=1.03),
    "Q-database": Target(most=1.6),
    "Q-nats": Target(most=3.0),
    "P-strict": Target(most=2.0),
    "P-barrier": Target(most=0.3),
    "P-crowd": Target(least=5_000),
    "R-ag-ui": Target(most=1.2),
    "T-branches": Target(most=2.5),
    "T-claim": Target(most=2.0),
    "T-files": Target(most=3.0),
    "T-long": Target(most=12),
    "T-nop": Target(most=15),
    "T-size": Target(most=12),
    "T-step": Target(most=60),
    "T-turns": Target(most=3.0),
    "T-worktrees": Target(most=2.0),
    "X-cpu": Target(most=1.3),
    "Y-small-sqlite": Target(most=0.7),
    "Y-small-postgres": Target(most=0.6),
    "Y-appends": Target(most=0.3),
    "Y-appends-bytes": Target(most=0.01),
    "Y-constant-bytes": Target(most=0.02),
    "Y-crowd": Target(least=4.0),
    "J-1": Target(most=1.3),
    "J-10": Target(most=1.5),
    "J-50": Target(most=1.5),
    "J-p99": Target(most=1.5),
    "J-events": Target(most=1.3),
    "J-bytes": Target(most=2.5),
    "J-answer-activities": Target(most=1),
    "J-answer-tasks": Target(most=1),
    "K-strict": Target(most=0.5),
    "K-barrier": Target(most=0.5),
    "L-responses": Target(most=0.6),
    "L-openai": Target(most=0.6),
    "L-anthropic": Target(most=0.6),
    "L-gemini": Target(most=0.6),
    "V-preview": Target(most=200),
    "U-size-shell": Target(most=175),
    "U-size-inbox": Target(most=235),
    "U-size-run": Target(most=300),
    "U-size-operations": Target(most=260),
    "U-size-editor": Target(most=420),
    "U-size-styles": Target(most=25),
    "U-live": Target(most=300),
    "U-paint": Target(most=2.0),
    "U-readable": Target(most=10.0),
    "U-holds": Target(most=1.3),
    "U-steps": Target(most=1.2),
    "U-nodes": Target(most=2.0),
    "U-steps-task": Target(most=100),
    "U-nodes-task": Target(most=100),
    "U-steps-click": Target(most=50),
    "U-nodes-click": Target(most=50),
    "U-storm": Target(most=2.0),
    "U-heap": Target(most=1.5),
    "U-hour": Target(most=1.1),
    "W-speed": Target(least=10_000),
    "W-server": Target(most=50),
    "W-stored": Target(most=1_250),
    "S-rate": Target(least=490),
    "S-errors": Target(most=0),
    "S-p99": Target(most=200),
}

NONE = Target()


def target(name: str) -> Target:
    """Without a name: a figure that is there for information."""
    return TARGETS[name] if name else NONE
