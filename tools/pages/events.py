"""docs/reference/events.md: every type of event with its fields."""

from __future__ import annotations

from holdfast.types.event import EVENTS

TOP = """# Events

<!-- Made by tools/docs.py of holdfast.types.event. -->

Events are ordered, stored facts about a run, in the past tense: what `flow.stream`, `--watch` and
`service.events` tell. Each has `run`, `number` (from 1, without a gap: the cursor of a reader), `at`
(microseconds since 1970), `type`, `node` and `scope` (where they apply) and `data`, whose fields are listed
here. An event is told when what it tells is durable, never before. Most are derived from the journal's
records; what others do to a run (an answer, a cancel) is stored as an event of its own.

A reader skips types that it does not know: new ones may come.

| type | when | data |
|---|---|---|
"""


def page() -> str:
    return TOP + "\n".join(_row(name) for name in EVENTS) + "\n"


def _row(name: str) -> str:
    kind = EVENTS[name]
    fields = ", ".join(f"`{field}`" for field in kind.fields) or "none"
    return f"| `{name}` | {kind.when} | {fields} |"
