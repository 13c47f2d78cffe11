"""`client.holds`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/holds.py. Do not change it here.

# ruff: noqa: A002
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.client import models
from holdfast.client.requests import Files, request_of
from holdfast.client.sync.group import Group, Listing
from holdfast.client.sync.pages import Pages
from holdfast.client.sync.streams import EventStream


class Holds(Group):
    def ask_back(self, hold: str, text: str, *, to: str | None = None) -> models.Hold:
        """Ask a question before you decide; the deadline pauses until there is a reply."""
        request = request_of(
            "POST", "/v1/holds/{hold}/ask-back", {"hold": hold}, sent={"text": text}, maybe={"to": to}
        )
        return self._json(request, models.Hold)

    def attach_file(self, hold: str, files: Files) -> Listing[models.File]:
        """Attach files to fields of kind `file`: a form whose parts are named as the fields.

        What it answers goes into the `response_data` of the decision."""
        request = request_of("POST", "/v1/holds/{hold}/files", {"hold": hold}, files=files)
        return self._list(request, models.File)

    def cancel(self, hold: str, *, reason: str | None = None, if_match: str | None = None) -> models.Hold:
        """Withdraw it without a decision."""
        request = request_of(
            "POST", "/v1/holds/{hold}/cancel", {"hold": hold}, maybe={"reason": reason}, if_match=if_match
        )
        return self._json(request, models.Hold)

    def claim(self, hold: str, *, seconds: float | None = None, reason: str | None = None) -> models.Hold:
        """Claim it for a while; an unassigned one becomes yours."""
        request = request_of(
            "POST", "/v1/holds/{hold}/claim", {"hold": hold}, maybe={"seconds": seconds, "reason": reason}
        )
        return self._json(request, models.Hold)

    def comment(self, hold: str, text: str) -> models.Note:
        """For all who see the hold, also after it is decided."""
        request = request_of("POST", "/v1/holds/{hold}/comments", {"hold": hold}, sent={"text": text})
        return self._json(request, models.Note)

    def comments(self, hold: str) -> Listing[models.Note]:
        """Comments, questions back and their answers, oldest first."""
        request = request_of("GET", "/v1/holds/{hold}/comments", {"hold": hold})
        return self._list(request, models.Note)

    def count(
        self,
        *,
        view: models.HoldView | None = None,
        q: str | None = None,
        status: Sequence[models.HoldStatus] | None = None,
        type: Sequence[str] | None = None,
        assignee: Sequence[str] | None = None,
        group: Sequence[str] | None = None,
        role: Sequence[str] | None = None,
        priority: Sequence[str] | None = None,
        deployment: Sequence[str] | None = None,
        flow: Sequence[str] | None = None,
        run: Sequence[str] | None = None,
        instance_key: Sequence[str] | None = None,
        tag: Sequence[str] | None = None,
        text: str | None = None,
        created_from: str | datetime | None = None,
        created_to: str | datetime | None = None,
        expires_from: str | datetime | None = None,
        expires_to: str | datetime | None = None,
        resolved_by: Sequence[str] | None = None,
    ) -> models.Count:
        """How many that list has."""
        request = request_of(
            "GET",
            "/v1/holds/count",
            query={
                "view": view,
                "q": q,
                "status": status,
                "type": type,
                "assignee": assignee,
                "group": group,
                "role": role,
                "priority": priority,
                "deployment": deployment,
                "flow": flow,
                "run": run,
                "instance_key": instance_key,
                "tag": tag,
                "text": text,
                "created_from": created_from,
                "created_to": created_to,
                "expires_from": expires_from,
                "expires_to": expires_to,
                "resolved_by": resolved_by,
            },
        )
        return self._json(request, models.Count)

    def decide_many(
        self,
        holds: Sequence[str],
        decision: str,
        *,
        comment: str | None = None,
        preview: bool | None = None,
        versions: Mapping[str, int] | None = None,
    ) -> models.Bulk:
        """One decision on many, each by itself. A preview, the default, says what would be."""
        request = request_of(
            "POST",
            "/v1/holds/bulk",
            sent={"holds": holds, "decision": decision},
            maybe={"comment": comment, "preview": preview, "versions": versions},
        )
        return self._json(request, models.Bulk)

    def draft(self, hold: str) -> models.Draft:
        """Your own, as far as it is filled in. Raises 404 where there is none."""
        request = request_of("GET", "/v1/holds/{hold}/draft", {"hold": hold})
        return self._json(request, models.Draft)

    def drop_draft(self, hold: str) -> None:
        """Forget it."""
        request = request_of("DELETE", "/v1/holds/{hold}/draft", {"hold": hold})
        self._none(request)

    def drop_question(self, hold: str, *, question: str | None = None) -> models.Hold:
        """Withdraw the question: no reply is needed, and the deadline runs again."""
        request = request_of(
            "POST", "/v1/holds/{hold}/drop-question", {"hold": hold}, maybe={"question": question}
        )
        return self._json(request, models.Hold)

    def end_presence(self, hold: str) -> None:
        """Say that you no longer look at it."""
        request = request_of("DELETE", "/v1/holds/{hold}/presence", {"hold": hold})
        self._none(request)

    def evidence(self, hold: str) -> bytes:
        """One decision as a file that `tools/verify_evidence.py` checks offline. That you took it is
        audited."""
        request = request_of("GET", "/v1/holds/{hold}/evidence", {"hold": hold})
        return self._bytes(request)

    def extend(
        self, hold: str, expires_at: str | datetime, *, reason: str | None = None, if_match: str | None = None
    ) -> models.Hold:
        """Give it a later deadline."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/extend",
            {"hold": hold},
            sent={"expires_at": expires_at},
            maybe={"reason": reason},
            if_match=if_match,
        )
        return self._json(request, models.Hold)

    def files(self, hold: str) -> Listing[models.File]:
        """What was attached, in the order in which it came."""
        request = request_of("GET", "/v1/holds/{hold}/files", {"hold": hold})
        return self._list(request, models.File)

    def get(self, hold: str) -> models.Hold:
        """One hold. Its ETag is its version: send it as If-Match to decide on what you have seen."""
        request = request_of("GET", "/v1/holds/{hold}", {"hold": hold})
        return self._json(request, models.Hold)

    def history(self, hold: str) -> Listing[models.Entry]:
        """What happened to it, oldest first. Each entry has its number in the audit."""
        request = request_of("GET", "/v1/holds/{hold}/history", {"hold": hold})
        return self._list(request, models.Entry)

    def list(
        self,
        *,
        view: models.HoldView | None = None,
        q: str | None = None,
        status: Sequence[models.HoldStatus] | None = None,
        type: Sequence[str] | None = None,
        assignee: Sequence[str] | None = None,
        group: Sequence[str] | None = None,
        role: Sequence[str] | None = None,
        priority: Sequence[str] | None = None,
        deployment: Sequence[str] | None = None,
        flow: Sequence[str] | None = None,
        run: Sequence[str] | None = None,
        instance_key: Sequence[str] | None = None,
        tag: Sequence[str] | None = None,
        text: str | None = None,
        created_from: str | datetime | None = None,
        created_to: str | datetime | None = None,
        expires_from: str | datetime | None = None,
        expires_to: str | datetime | None = None,
        resolved_by: Sequence[str] | None = None,
        order: models.HoldOrder | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Hold]:
        """Holds that you may see, in pages that stay in place. `view=mine` is your own inbox."""
        request = request_of(
            "GET",
            "/v1/holds",
            query={
                "view": view,
                "q": q,
                "status": status,
                "type": type,
                "assignee": assignee,
                "group": group,
                "role": role,
                "priority": priority,
                "deployment": deployment,
                "flow": flow,
                "run": run,
                "instance_key": instance_key,
                "tag": tag,
                "text": text,
                "created_from": created_from,
                "created_to": created_to,
                "expires_from": expires_from,
                "expires_to": expires_to,
                "resolved_by": resolved_by,
                "order": order,
            },
        )
        return self._pages(request, models.Hold, limit, cursor)

    def make_link(
        self, hold: str, to: str, *, decide: bool | None = None, seconds: int | None = None
    ) -> models.Link:
        """A link for one person. It is void once it is used, the hold is reassigned or decided, or its
        links are

        revoked."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/links",
            {"hold": hold},
            sent={"to": to},
            maybe={"decide": decide, "seconds": seconds},
        )
        return self._json(request, models.Link)

    def mark_seen(self, hold: str) -> None:
        """Mark it as seen; the first time is in the audit, and counts in the metrics."""
        request = request_of("PUT", "/v1/holds/{hold}/seen", {"hold": hold})
        self._none(request)

    def metrics(
        self,
        *,
        view: models.HoldView | None = None,
        q: str | None = None,
        status: Sequence[models.HoldStatus] | None = None,
        type: Sequence[str] | None = None,
        assignee: Sequence[str] | None = None,
        group: Sequence[str] | None = None,
        role: Sequence[str] | None = None,
        priority: Sequence[str] | None = None,
        deployment: Sequence[str] | None = None,
        flow: Sequence[str] | None = None,
        run: Sequence[str] | None = None,
        instance_key: Sequence[str] | None = None,
        tag: Sequence[str] | None = None,
        text: str | None = None,
        created_from: str | datetime | None = None,
        created_to: str | datetime | None = None,
        expires_from: str | datetime | None = None,
        expires_to: str | datetime | None = None,
        resolved_by: Sequence[str] | None = None,
        calendar: str | None = None,
    ) -> models.HoldMetrics:
        """Figures about the holds that you may see. Lengths are seconds, rates are shares of 1."""
        request = request_of(
            "GET",
            "/v1/holds/metrics",
            query={
                "view": view,
                "q": q,
                "status": status,
                "type": type,
                "assignee": assignee,
                "group": group,
                "role": role,
                "priority": priority,
                "deployment": deployment,
                "flow": flow,
                "run": run,
                "instance_key": instance_key,
                "tag": tag,
                "text": text,
                "created_from": created_from,
                "created_to": created_to,
                "expires_from": expires_from,
                "expires_to": expires_to,
                "resolved_by": resolved_by,
                "calendar": calendar,
            },
        )
        return self._json(request, models.HoldMetrics)

    def place(
        self,
        hold: str,
        decision: str | None = None,
        *,
        resolution: str | Mapping[str, Any] | None = None,
        response_data: Any = None,
        comment: str | None = None,
        request_hash: str | None = None,
        reason: str | None = None,
        seconds: float | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.Hold:
        """Decide it after a few seconds, unless you take the decision back before."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/place",
            {"hold": hold},
            maybe={
                "decision": decision,
                "resolution": resolution,
                "response_data": response_data,
                "comment": comment,
                "request_hash": request_hash,
                "reason": reason,
                "seconds": seconds,
            },
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return self._json(request, models.Hold)

    def presence(self, hold: str) -> Listing[models.HoldViewer]:
        """Who is looking at it now."""
        request = request_of("GET", "/v1/holds/{hold}/presence", {"hold": hold})
        return self._list(request, models.HoldViewer)

    def read_file(self, hold: str, digest: str) -> bytes:
        """The content of a file, to be saved: no browser opens it here. Who read it is in the audit."""
        request = request_of("GET", "/v1/holds/{hold}/files/{digest}", {"hold": hold, "digest": digest})
        return self._bytes(request)

    def reassign(
        self,
        hold: str,
        assignee: str | None = None,
        *,
        expires_at: str | datetime | None = None,
        reason: str | None = None,
        if_match: str | None = None,
    ) -> models.Hold:
        """Reassign it; the new assignee is notified. Its older links are void."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/reassign",
            {"hold": hold},
            maybe={"assignee": assignee, "expires_at": expires_at, "reason": reason},
            if_match=if_match,
        )
        return self._json(request, models.Hold)

    def release(self, hold: str) -> models.Hold:
        """Release a claim."""
        request = request_of("POST", "/v1/holds/{hold}/release", {"hold": hold})
        return self._json(request, models.Hold)

    def reply(self, hold: str, text: str, *, question: str | None = None) -> models.Hold:
        """Reply to a question."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/reply",
            {"hold": hold},
            sent={"text": text},
            maybe={"question": question},
        )
        return self._json(request, models.Hold)

    def resolve(
        self,
        hold: str,
        decision: str | None = None,
        *,
        resolution: str | Mapping[str, Any] | None = None,
        response_data: Any = None,
        comment: str | None = None,
        request_hash: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.Hold:
        """Decide it, once; where several have to agree, give your vote.

        `Idempotency-Key`: the same request again gets the same answer. `If-Match`: only the version
        that you have seen. 409 names who was first; 422 names each field that does not fit, and the
        hold stays open."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/resolve",
            {"hold": hold},
            maybe={
                "decision": decision,
                "resolution": resolution,
                "response_data": response_data,
                "comment": comment,
                "request_hash": request_hash,
                "reason": reason,
            },
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return self._json(request, models.Hold)

    def revoke_links(self, hold: str) -> models.Hold:
        """Every link of it is void."""
        request = request_of("DELETE", "/v1/holds/{hold}/links", {"hold": hold})
        return self._json(request, models.Hold)

    def save_draft(
        self,
        hold: str,
        *,
        decision: Any = None,
        response_data: Any = None,
        comment: Any = None,
        request_hash: str | None = None,
    ) -> None:
        """Keep what is filled in so far; it is not checked."""
        request = request_of(
            "PUT",
            "/v1/holds/{hold}/draft",
            {"hold": hold},
            maybe={
                "decision": decision,
                "response_data": response_data,
                "comment": comment,
                "request_hash": request_hash,
            },
        )
        self._none(request)

    def schema(self, hold: str) -> models.AnswerSchema:
        """What an answer to it must be, for programs."""
        request = request_of("GET", "/v1/holds/{hold}/schema", {"hold": hold})
        return self._json(request, models.AnswerSchema)

    def snooze(self, hold: str, until: str | datetime) -> None:
        """Snooze it until then. Its deadline stays."""
        request = request_of("PUT", "/v1/holds/{hold}/snooze", {"hold": hold}, sent={"until": until})
        self._none(request)

    def stream(self, *, after: int | None = None) -> EventStream:
        """What becomes of the holds that you may see, as server-sent events.

        The id of each is its number in the tenant's audit; `Last-Event-ID` or `after` continues from
        there, without one it begins now. The numbers have gaps where something is not for you to see."""
        request = request_of("GET", "/v1/holds/stream", query={"after": after})
        return self._stream(request)

    def tell_presence(self, hold: str, *, editing: bool | None = None) -> Listing[models.HoldViewer]:
        """Say that you are looking at it, for 30 seconds: repeat it every 10 to 20. Returns who else is."""
        request = request_of("PUT", "/v1/holds/{hold}/presence", {"hold": hold}, maybe={"editing": editing})
        return self._list(request, models.HoldViewer)

    def undo(self, hold: str) -> models.Hold:
        """Take your own placed decision back."""
        request = request_of("POST", "/v1/holds/{hold}/undo", {"hold": hold})
        return self._json(request, models.Hold)

    def unsnooze(self, hold: str) -> None:
        """End the snooze."""
        request = request_of("DELETE", "/v1/holds/{hold}/snooze", {"hold": hold})
        self._none(request)

    def unwatch(self, hold: str) -> None:
        """Stop watching it."""
        request = request_of("DELETE", "/v1/holds/{hold}/watch", {"hold": hold})
        self._none(request)

    def vote(
        self,
        hold: str,
        decision: str | None = None,
        *,
        resolution: str | Mapping[str, Any] | None = None,
        response_data: Any = None,
        comment: str | None = None,
        request_hash: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.Hold:
        """The same, by the name that it has where several have to agree."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/vote",
            {"hold": hold},
            maybe={
                "decision": decision,
                "resolution": resolution,
                "response_data": response_data,
                "comment": comment,
                "request_hash": request_hash,
                "reason": reason,
            },
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return self._json(request, models.Hold)

    def watch(self, hold: str) -> None:
        """Watch it."""
        request = request_of("PUT", "/v1/holds/{hold}/watch", {"hold": hold})
        self._none(request)
