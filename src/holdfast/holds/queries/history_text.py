"""What happened to a hold, in sentences: the same on pages, the command line, in notices and in the API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, cast

from holdfast.holds.actions.conflicts import resolution_of
from holdfast.holds.actions.lost_right import SESSION_ENDED
from holdfast.holds.forms.validate_answer import form_of
from holdfast.holds.queries.decided_values import DecidedValue, decided_values
from holdfast.types.hold import HoldRow, Option, label_of
from holdfast.types.status import HoldStatus

DECIDING: Final = ("resolve", "vote", "place", "bulk")

CHANNELS: Final = {
    "inbox": "on the web page",
    "api": "over the API",
    "cli": "on the command line",
    "link": "by a link",
    "mail": "by mail",
    "slack": "in Slack",
    "teams": "in Teams",
    "queue": "through a queue",
    "mcp": "through an agent",
    "system": "automatically",
}
DECISIONS: Final = {
    "approve": "approved",
    "approved": "approved",
    "reject": "rejected",
    "rejected": "rejected",
    "deny": "denied",
    "continue": "continued",
}
REFUSALS: Final = {
    "form_invalid": "a field was missing or wrong",
    "answer_invalid": "it does not fit the question",
    "version_stale": "the question had changed meanwhile",
    "content_changed": "the question had changed meanwhile",
    "not_assigned": "the question is assigned to another person or group",
    "forbidden": "the right to do so is missing",
    "excluded": "this person is excluded from the decision",
    "claimed": "another person has claimed it",
    "reassigned": "it had been reassigned meanwhile",
    "invalid_input": "a given value was not valid",
}
# Where a right is missing. Everything else is a slip or came too late, and no refusal.
FORBIDDEN: Final = ("not_assigned", "forbidden", "excluded")


def history_sentence(
    actor: str,
    action: str,
    data: dict[str, Any],
    row: HoldRow | None = None,
    *,
    options: Sequence[Option] | None = None,
) -> str:
    """`dana approved with amount 900.00 (proposed 1,840.00), on the web page`. `row`: the hold as it is now;
    `options`: its options, where only their labels may be shown.
    An action that is not known here is shown by its name."""
    who = short_name(actor)
    known = options if row is None else row.options
    if action == "resolved":
        return _decided(who, data, known, row)
    if action == "voted":
        return f"{_decided(who, data, known)} (one of several votes)"
    if action == "refused":
        return _refused(who, data, row)
    sentence = _SENTENCES.get(action)
    return f"{who}: {action.replace('_', ' ')}" if sentence is None else sentence(who, data)


def outcome_sentence(row: HoldRow) -> str:
    """How a hold ended; empty while it is open."""
    if row.status is HoldStatus.pending:
        return ""
    if row.resolution is not None:
        return _decided(short_name(row.resolved_by or ""), resolution_of(row), row.options, row)
    data = {"reason": row.closed_reason} if row.closed_reason else {}
    return history_sentence(row.closed_by or "system:holdfast", str(row.status), data)


def short_name(actor: str) -> str:
    """`user:kim@example.org` is kim; `group:finance` is the group finance; `system:expiry` is Holdfast."""
    kind, colon, name = actor.partition(":")
    if not colon:
        return actor or "no assignee"
    if kind in ("user", "delegated_user"):
        return name.partition("@")[0] or name
    if kind in ("system", "policy"):
        return "Holdfast" if kind == "system" else f"the policy {name}"
    return f"the {kind} {name}"


def short_date(text: Any) -> str:
    """`16 Nov 03:38 UTC`."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    shown = found if found.tzinfo is None else found.astimezone(UTC)
    return f"{shown.day} {shown:%b %H:%M} UTC"


def _because(data: dict[str, Any], name: str = "reason") -> str:
    return f": {data[name]}" if data.get(name) else ""


def _created(_who: str, data: dict[str, Any]) -> str:
    asked = f"Asked of {short_name(str(data['assignee']))}" if data.get("assignee") else "Asked; unassigned"
    return asked + (f", due {short_date(data['expires_at'])}" if data.get("expires_at") else "")


def _decided(
    who: str, data: dict[str, Any], options: Sequence[Option] | None, row: HoldRow | None = None
) -> str:
    chosen = str(data.get("effective_decision") or data.get("decision") or "")
    label = label_of(options, chosen)
    did = DECISIONS.get(chosen, f"chose “{label}”" if chosen else "answered")
    text = f"{who} {did}"
    if row is not None and row.status is HoldStatus.resolved and (edits := edits_of(row)):
        text += f" with {edits}"
    if data.get("on_behalf_of"):
        text += f" for {short_name(str(data['on_behalf_of']))}"
    if data.get("rule"):
        text += f", by the rule {data['rule']}"
    elif data.get("auto_expired"):
        text += ", because no answer came in time"
    elif channel := CHANNELS.get(str(data.get("channel"))):
        text += f", {channel}"
    if data.get("late"):
        text += ", after the deadline"
    if data.get("authority") == "override":
        text += ", overriding the assignment" + _because(data, "override_reason")
    return text


def _refused(who: str, data: dict[str, Any], row: HoldRow | None = None) -> str:
    code, action = str(data.get("code")), str(data.get("action"))
    if code == "hold_decided":
        first = "" if row is None else row.resolved_by or row.closed_by or ""
        return f"{who} was too late; {_had_ended(first, row)}"
    why = REFUSALS.get(code, code.replace("_", " "))
    if action in DECIDING:
        return f"{who}'s answer was not accepted: {why}"
    verb = "was not allowed to" if code in FORBIDDEN else "could not"
    return f"{who} {verb} {action.replace('_', ' ')}: {why}"


def _had_ended(first: str, row: HoldRow | None) -> str:
    if row is None or row.status is HoldStatus.pending:
        return "it was already decided"
    if row.status is HoldStatus.expired or first.startswith("system:"):
        return "the deadline had passed"
    return f"{short_name(first)} had {'decided' if row.resolution else 'withdrawn the question'}"


def _returned(who: str, data: dict[str, Any]) -> str:
    code = str(data.get("code"))
    return f"{who} sent an answer that did not fit: {REFUSALS.get(code, code.replace('_', ' '))}"


def _to_date(who: str, data: dict[str, Any]) -> str:
    return f"{who} moved the deadline to {short_date(data.get('to'))}{_because(data)}"


def _until(verb: str) -> Callable[[str, dict[str, Any]], str]:
    def text_for(who: str, data: dict[str, Any]) -> str:
        return f"{who} {verb}" + (f" until {short_date(data['until'])}" if data.get("until") else "")

    return text_for


def _to_person(verb: str) -> Callable[[str, dict[str, Any]], str]:
    def text_for(who: str, data: dict[str, Any]) -> str:
        target = str(data.get("to") or "unrouted")
        to = "no one; it is unassigned" if target == "unrouted" else short_name(target)
        due = f", due {short_date(data['expires_at'])}" if data.get("expires_at") else ""
        return f"{who} {verb} {to}{due}{_because(data)}"

    return text_for


def _notified(_who: str, data: dict[str, Any]) -> str:
    return f"Notification sent to {short_name(str(data.get('to') or ''))} by {data.get('channel')}"


def _not_notified(_who: str, data: dict[str, Any]) -> str:
    to = short_name(str(data.get("to") or ""))
    return f"Notification to {to} by {data.get('channel')} failed{_because(data, 'error')}"


def _warned(_who: str, data: dict[str, Any]) -> str:
    listed = data.get("missing")
    missing = ", ".join(map(str, listed)) if isinstance(listed, list) else str(listed)  # pyright: ignore[reportUnknownArgumentType]
    return f"The question has no value for {missing}"


def _plain(text: str) -> Callable[[str, dict[str, Any]], str]:
    def text_for(who: str, data: dict[str, Any]) -> str:
        return text.format(who=who) + _because(data)

    return text_for


def _lapsed(what: str, ended: str) -> Callable[[str, dict[str, Any]], str]:
    def text_for(who: str, data: dict[str, Any]) -> str:
        why = ended if data.get("why") == SESSION_ENDED else "they may not decide it any more"
        return f"The {what} of {who} lapsed: {why}"

    return text_for


_SENTENCES: Final[dict[str, Callable[[str, dict[str, Any]], str]]] = {
    "created": _created,
    "warned": _warned,
    "returned": _returned,
    "cancelled": _plain("{who} withdrew the question"),
    "expired": _plain("The deadline passed without an answer"),
    "escalated": lambda _who, data: _to_person("escalated it to")("Holdfast", data),
    "reassigned": _to_person("reassigned it to"),
    "raised": lambda _who, data: f"The flow raised the priority to {data.get('to')}{_because(data)}",
    "extended": _to_date,
    "rescheduled": lambda who, data: f"{who} recalculated the deadline: {short_date(data.get('expires_at'))}",
    "claimed": _until("claimed it"),
    "released": _plain("{who} released it"),
    "placed": _until("decided; the decision can be undone"),
    "vote_lapsed": _lapsed("vote", "their session was ended"),
    "placed_lapsed": _lapsed("decision", "their session was ended before it was final"),
    "taken_back": _plain("{who} undid the decision"),
    "commented": _plain("{who} commented"),
    "asked_back": lambda who, data: f"{who} asked {short_name(str(data.get('to') or ''))} a question",
    "replied": _plain("{who} replied"),
    "question_dropped": _plain("{who} withdrew their question"),
    "notified": _notified,
    "notification_failed": _not_notified,
    "reminded": lambda _who, data: f"Reminder {data.get('reminder', '')} sent".replace("  ", " "),
    "viewed": _plain("{who} looked at it for the first time"),
    "snoozed": _until("snoozed it"),
    "unsnoozed": _plain("{who} ended the snooze"),
    "watched": _plain("{who} watches it"),
    "unwatched": _plain("{who} stopped watching it"),
    "attached": lambda who, data: f"{who} attached a file to {data.get('field')}",
    "file_read": _plain("{who} downloaded a file"),
    "link_opened": _plain("A link to it was opened"),
    "link_made": _plain("{who} had a link to it made"),
    "links_revoked": _plain("{who} revoked its links"),
    "exported": _plain("{who} exported the evidence"),
    "left_to_people": lambda who, data: f"{who} left it to people{_because(data, 'why')}",
    "vetoed": lambda _who, data: f"Guardrail {data.get('guardrail')} rejected the approval{_because(data)}",
}


MOST: Final = 3
LONGEST: Final = 60
_NUMBERS: Final = frozenset({"currency", "number", "integer", "percent"})
_SECRETS: Final = frozenset({"secret", "secret-reference"})


def edits_of(row: HoldRow) -> str:
    """At most three of them, then how many more. Empty if the proposal was confirmed, or there was none."""
    form = form_of(row)
    kinds = {each.get("field"): each.get("kind", "text") for each in (form or {}).get("sections", ())}
    edited = [each for each in decided_values(row) if each.edited and kinds.get(each.field) not in _SECRETS]
    shown = [_edit(each, str(kinds.get(each.field, ""))) for each in edited[:MOST]]
    more = len(edited) - len(shown)
    if more:
        shown.append(f"{more} more change{'s' if more > 1 else ''}")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _edit(each: DecidedValue, kind: str) -> str:
    value, proposed = _text(each.value, kind), _text(each.proposed, kind)
    name = _name(each.label)
    if value is None or proposed is None:
        return f"another value of {name}"
    return f"{name} {value} (proposed {proposed})"


def _name(label: str) -> str:
    """In the middle of a sentence: `Amount` is amount, `VAT id` stays."""
    return label if label[1:2].isupper() else label[:1].lower() + label[1:]


def _text(value: Any, kind: str) -> str | None:
    """None: too much for a sentence."""
    if isinstance(value, dict):
        money = cast("dict[str, Any]", value)
        amount = _text(money.get("amount"), "currency") if money.keys() == {"amount", "currency"} else None
        return None if amount is None else f"{amount} {money['currency']}"
    if value is None or value == "":
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return None
    text = " ".join(str(value).split())
    if kind in _NUMBERS or isinstance(value, int | float):
        text = _grouped(text)
    return text if len(text) <= LONGEST else None


def _grouped(text: str) -> str:
    """`1840.00` is 1,840.00: no digit is lost."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return f"{number:,f}" if number.is_finite() else text
