"""A notice about one hold for one person or channel, before it is put into the target's format."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.holds.notify.escape import clean_text, one_line
from holdfast.holds.queries.history_text import outcome_sentence
from holdfast.types import outbox
from holdfast.types.clock import to_datetime
from holdfast.types.hold import HoldRow, Option
from holdfast.types.redaction import redactor
from holdfast.types.terms import Assignee

DIGEST: Final = "holds.unrouted"
UNCLEAR: Final = "hold.reply_unclear"

_SUBJECTS: Final = {
    outbox.CREATED: "Decision needed",
    outbox.ASSIGNED: "Assigned to you",
    outbox.REMINDED: "Reminder",
    outbox.ESCALATED: "Escalated to you",
    outbox.ASKED_BACK: "Question for you",
    outbox.LINK: "Your link to a decision",
    outbox.CLOSED: "Closed",
    DIGEST: "Unassigned",
    UNCLEAR: "Your reply did not decide anything",
}


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the same on every attempt, so that a receiver can detect duplicates. `assignee` is the hold's,
    `to` an address of the channel; `link` leads this recipient to the hold."""

    id: str
    topic: str
    tenant: str
    hold: str = ""
    run: str = ""
    flow: str = ""
    node: str = ""
    type: str = ""
    prompt: str = ""
    options: tuple[Option, ...] = ()
    assignee: Assignee = Assignee("unrouted")
    priority: str = "normal"
    why: str = ""
    created_at: int = 0
    expires_at: int | None = None
    number: int = 0  # which reminder
    outcome: str = ""
    to: str = ""
    link: str = ""
    reply_token: str = ""  # with which this recipient can decide in a reply
    epoch: int = 0  # of the assignment that it is about
    request_hash: str = ""

    @property
    def title(self) -> str:
        """The first line of the prompt; without one, flow and node."""
        return one_line(self.prompt.strip().partition("\n")[0] or f"{self.flow} · {self.node}")

    @property
    def subject(self) -> str:
        text = _SUBJECTS.get(self.topic, "About a decision")
        number = f" {self.number}" if self.topic == outbox.REMINDED and self.number > 1 else ""
        urgent = f" [{self.priority}]" if self.priority in ("high", "critical") else ""
        return one_line(f"{text}{number}{urgent}: {self.title}", 200)

    @property
    def is_about_the_end(self) -> bool:
        return self.topic == outbox.CLOSED

    def without_secrets(self) -> Notice:
        """As it leaves the process. Its link and tokens are for the recipient, and stay."""
        texts = {name: redactor.redact(getattr(self, name)) for name in ("prompt", "why", "outcome")}
        options = tuple(
            msgspec.structs.replace(each, label=redactor.redact(each.label)) for each in self.options
        )
        return msgspec.structs.replace(self, options=options, **texts)

    def facts(self) -> list[tuple[str, str]]:
        """The facts below the prompt, as labels and texts."""
        found = [("Flow", f"{self.flow} · {self.node}"), ("Priority", self.priority)]
        if self.outcome:
            found.insert(0, ("Outcome", self.outcome))
        elif self.options:
            found.append(("Answers", ", ".join(option.text for option in self.options)))
        if self.expires_at is not None and not self.outcome:
            found.append(("Until", f"{to_datetime(self.expires_at):%Y-%m-%d %H:%M} UTC"))
        if self.why:
            found.append(("Why you", self.why))
        return [(name, clean_text(value, 1000)) for name, value in found if value.strip(" ·")]


def notice_of(
    row: HoldRow,
    *,
    id: str,  # noqa: A002
    topic: str,
    payload: dict[str, Any],
    prompt: str,
) -> Notice:
    """The common part; recipient and link are added later."""
    number = payload.get("reminder", 0)
    return Notice(
        id=id,
        topic=topic,
        tenant=row.tenant,
        hold=row.id,
        run=row.run,
        flow=row.flow,
        node=row.node,
        type=row.type,
        prompt=prompt,
        options=row.options or (),
        assignee=Assignee(row.assignee_type, row.assignee_value),
        priority=row.priority,
        why=_why(row),
        created_at=row.created_at,
        expires_at=row.expires_at,
        number=number if isinstance(number, int) else 0,
        outcome=outcome_sentence(row),
        epoch=row.epoch,
        request_hash=row.request_hash,
    )


def _why(row: HoldRow) -> str:
    """Why the recipient gets this: the policy rule or the assignment."""
    if row.terms.routed_by:
        return f"rule {row.terms.routed_by} assigned it to the {row.assignee_type} {row.assignee_value}"
    if row.assignee_type in ("group", "role"):
        return f"it is assigned to the {row.assignee_type} {row.assignee_value}"
    return ""
