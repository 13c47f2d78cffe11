"""One class for each theme of the API, and all of them together."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
# ruff: noqa: A002
from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup, Listing
from holdfast.client.aio.pages import AsyncPages
from holdfast.client.aio.streams import AsyncEventStream
from holdfast.client.aio.transport import AsyncTransport
from holdfast.client.requests import Files, request_of


class AsyncAdmin(AsyncGroup):
    """`client.admin`."""

    async def figures(self) -> models.Figures:
        """The backlog, and how late it is."""
        request = request_of("GET", "/v1/figures")
        return await self._json(request, models.Figures)

    def list_leases(
        self, *, worker: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> AsyncPages[models.Lease]:
        """Runs that a process has now, of all tenants, the newest first: those of `worker`, or all. A
        process

        that only runs one flow has leases too, and is not in the list of workers."""
        request = request_of("GET", "/v1/leases", query={"worker": worker})
        return self._pages(request, models.Lease, limit, cursor)

    async def status(self) -> models.Status:
        """The state of the server and its store."""
        request = request_of("GET", "/v1/admin/status")
        return await self._json(request, models.Status)

    async def workers(self) -> Listing[models.Worker]:
        """Workers by name, including those that stopped heartbeating within the last day."""
        request = request_of("GET", "/v1/workers")
        return await self._list(request, models.Worker)


class AsyncArrangements(AsyncGroup):
    """`client.arrangements`."""

    async def delete_policy(self, name: str) -> None:
        """Delete it: its rules apply to no hold that opens from now on; open holds keep what they said.

        The people who delete a rule that needs several people, or excludes some, cannot decide what it
        would have bound, until another person deletes it again and so confirms it. A change of such a
        rule has the same effect."""
        request = request_of("DELETE", "/v1/policies/{name}", {"name": name})
        await self._none(request)

    async def replay_notices(
        self, notices: Sequence[int], *, preview: bool | None = None
    ) -> models.ReplayedNotices:
        """Retry failed notifications, each separately. By default only a preview."""
        request = request_of(
            "POST", "/v1/notices/replay", sent={"notices": notices}, maybe={"preview": preview}
        )
        return await self._json(request, models.ReplayedNotices)


class AsyncAudit(AsyncGroup):
    """`client.audit`."""

    async def head(self) -> models.AuditHead:
        """The current head of the audit."""
        request = request_of("GET", "/v1/audit/head")
        return await self._json(request, models.AuditHead)

    def list(
        self,
        *,
        module: Sequence[str] | None = None,
        checkpoint: str | None = None,
        execution: Sequence[str] | None = None,
        actor: Sequence[str] | None = None,
        action: Sequence[str] | None = None,
        actor_part: str | None = None,
        action_part: str | None = None,
        text: str | None = None,
        order: Literal["newest", "oldest"] | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Audit]:
        """Actions and refusals, the oldest first unless `order` is `newest`. A page may be short and still
        have a

        `next`."""
        request = request_of(
            "GET",
            "/v1/audit",
            query={
                "module": module,
                "checkpoint": checkpoint,
                "execution": execution,
                "actor": actor,
                "action": action,
                "actor_part": actor_part,
                "action_part": action_part,
                "text": text,
                "order": order,
                "since": since,
                "until": until,
            },
        )
        return self._pages(request, models.Audit, limit, cursor)

    async def verify(
        self, *, against: models.KnownHead | Mapping[str, Any] | None = None
    ) -> models.AuditVerification:
        """Verify the chain from the first record to the head. `against`: an earlier head that you kept."""
        request = request_of("POST", "/v1/audit/verify", maybe={"against": against})
        return await self._json(request, models.AuditVerification)


class AsyncCalendars(AsyncGroup):
    """`client.calendars`."""

    async def list(self) -> Listing[models.HoldSetting]:
        """Business calendars; holds that name none use `default`."""
        request = request_of("GET", "/v1/calendars")
        return await self._list(request, models.HoldSetting)

    async def put(self, name: str, body: Mapping[str, Any]) -> models.HoldSetting:
        """Set it. Deadlines of open holds that use it are recalculated."""
        request = request_of("PUT", "/v1/calendars/{name}", {"name": name}, whole=body)
        return await self._json(request, models.HoldSetting)


class AsyncCallbacks(AsyncGroup):
    """`client.callbacks`."""

    async def complete(
        self, token: str, *, result: Any = None, error: str | None = None, data: Any = None
    ) -> models.Callback:
        """Complete a callback, or report that it failed (`error`).

        The token in the path is the credential. The first outcome counts: the same one again changes
        nothing, another one is 409. 410: the run has given it up."""
        request = request_of(
            "POST",
            "/v1/callbacks/{token}",
            {"token": token},
            maybe={"result": result, "error": error, "data": data},
        )
        return await self._json(request, models.Callback)

    async def list(self, run: str) -> models.OpenCallbacks:
        """The callbacks that a run waits for, with their tokens."""
        request = request_of("GET", "/v1/runs/{run}/callbacks", {"run": run})
        return await self._json(request, models.OpenCallbacks)

    async def send_heartbeat(self, token: str) -> models.Callback:
        """Tell the run that the work is still in progress: its next heartbeat is due later (`expires_at`)."""
        request = request_of("POST", "/v1/callbacks/{token}/heartbeat", {"token": token})
        return await self._json(request, models.Callback)


class AsyncCheckpoints(AsyncGroup):
    """`client.checkpoints`."""

    async def cancel(
        self, checkpoint: str, *, reason: str | None = None, if_match: str | None = None
    ) -> models.Checkpoint:
        """Withdraw it without a decision."""
        request = request_of(
            "POST",
            "/v1/checkpoints/{checkpoint}/cancel",
            {"checkpoint": checkpoint},
            maybe={"reason": reason},
            if_match=if_match,
        )
        return await self._json(request, models.Checkpoint)

    async def get(self, checkpoint: str) -> models.Checkpoint:
        """One hold."""
        request = request_of("GET", "/v1/checkpoints/{checkpoint}", {"checkpoint": checkpoint})
        return await self._json(request, models.Checkpoint)

    async def history(self, checkpoint: str) -> Listing[models.Entry]:
        """The history: created, notification sent, resolved and more, oldest first."""
        request = request_of("GET", "/v1/checkpoints/{checkpoint}/history", {"checkpoint": checkpoint})
        return await self._list(request, models.Entry)

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
        resolved_from: str | datetime | None = None,
        resolved_to: str | datetime | None = None,
        order: models.HoldOrder | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        checkpoint_type: Sequence[str] | None = None,
        core: Sequence[str] | None = None,
        execution: Sequence[str] | None = None,
    ) -> AsyncPages[models.Checkpoint]:
        """Holds that you may see; `checkpoint_type=debug_breakpoint` for the bar of breakpoints."""
        request = request_of(
            "GET",
            "/v1/checkpoints",
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
                "resolved_from": resolved_from,
                "resolved_to": resolved_to,
                "order": order,
                "checkpoint_type": checkpoint_type,
                "core": core,
                "execution": execution,
            },
        )
        return self._pages(request, models.Checkpoint, limit, cursor)

    async def reassign(
        self,
        checkpoint: str,
        assignee: str | None = None,
        *,
        expires_at: str | datetime | None = None,
        reason: str | None = None,
        if_match: str | None = None,
    ) -> models.Checkpoint:
        """Reassign it; the new assignee is notified."""
        request = request_of(
            "POST",
            "/v1/checkpoints/{checkpoint}/reassign",
            {"checkpoint": checkpoint},
            maybe={"assignee": assignee, "expires_at": expires_at, "reason": reason},
            if_match=if_match,
        )
        return await self._json(request, models.Checkpoint)

    async def resolve(
        self,
        checkpoint: str,
        decision: str | None = None,
        *,
        resolution: str | Mapping[str, Any] | None = None,
        response_data: Any = None,
        comment: str | None = None,
        request_hash: str | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.Checkpoint:
        """Decide it: `{"decision": ...}` or `{"resolution": ...}`. A breakpoint takes `continue`."""
        request = request_of(
            "POST",
            "/v1/checkpoints/{checkpoint}/resolve",
            {"checkpoint": checkpoint},
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
        return await self._json(request, models.Checkpoint)


class AsyncDead(AsyncGroup):
    """`client.dead`."""

    async def discard(
        self, run: str, *, reason: str | None = None, unread: bool | None = None
    ) -> models.RunDetail:
        """Discard it: the next worker that serves its flow cancels it.

        With `unread` it is cancelled at once, without being loaded: for a run whose flow no worker
        serves."""
        request = request_of(
            "POST", "/v1/dead/{run}/discard", {"run": run}, maybe={"reason": reason, "unread": unread}
        )
        return await self._json(request, models.RunDetail)

    async def get(self, run: str) -> models.DeadRun:
        """Every death of a worker that had this run, with the nodes that were running."""
        request = request_of("GET", "/v1/dead/{run}", {"run": run})
        return await self._json(request, models.DeadRun)

    async def list(self, *, limit: int | None = None) -> Listing[models.Run]:
        """Dead letters: runs that were given up because their workers kept dying, newest first."""
        request = request_of("GET", "/v1/dead", query={"limit": limit})
        return await self._list(request, models.Run)

    async def retry(self, run: str) -> models.RunDetail:
        """Retry it once the cause is fixed: any worker may resume it."""
        request = request_of("POST", "/v1/dead/{run}/retry", {"run": run})
        return await self._json(request, models.RunDetail)


class AsyncDeployments(AsyncGroup):
    """`client.deployments`."""

    async def delegate(self, name: str, to: str, *, seconds: int | None = None) -> models.Deployment:
        """Delegate it to a person: holds for `delegated_user` are assigned to them."""
        request = request_of(
            "PUT",
            "/v1/deployments/{name}/delegation",
            {"name": name},
            sent={"to": to},
            maybe={"seconds": seconds},
        )
        return await self._json(request, models.Deployment)

    async def get(self, name: str) -> models.Deployment:
        """By name or id."""
        request = request_of("GET", "/v1/deployments/{name}", {"name": name})
        return await self._json(request, models.Deployment)

    async def list(self) -> Listing[models.Deployment]:
        """List deployments; a hold's `deployment` is the id of one."""
        request = request_of("GET", "/v1/deployments")
        return await self._list(request, models.Deployment)

    async def put(
        self,
        name: str,
        flow: str,
        *,
        version: str | None = None,
        mode: str | None = None,
        skills: Sequence[str] | None = None,
        policies: Sequence[str] | None = None,
        on_changed_skill: str | None = None,
        defaults: models.Defaults | Mapping[str, Any] | None = None,
    ) -> models.Deployment:
        """Create it, or change its settings for later runs."""
        request = request_of(
            "PUT",
            "/v1/deployments/{name}",
            {"name": name},
            sent={"flow": flow},
            maybe={
                "version": version,
                "mode": mode,
                "skills": skills,
                "policies": policies,
                "on_changed_skill": on_changed_skill,
                "defaults": defaults,
            },
        )
        return await self._json(request, models.Deployment)

    async def revoke_delegation(self, name: str) -> models.Deployment:
        """End its delegation."""
        request = request_of("DELETE", "/v1/deployments/{name}/delegation", {"name": name})
        return await self._json(request, models.Deployment)


class AsyncDirectory(AsyncGroup):
    """`client.directory`."""

    async def delete_group(self, key: str) -> None:
        """Delete the group."""
        request = request_of("DELETE", "/v1/directory/groups/{key}", {"key": key})
        await self._none(request)

    async def delete_person(self, person: str) -> None:
        """Remove a person from the directory and from all groups and roles."""
        request = request_of("DELETE", "/v1/directory/people/{person}", {"person": person})
        await self._none(request)

    async def delete_role(self, key: str) -> None:
        """Delete the role."""
        request = request_of("DELETE", "/v1/directory/roles/{key}", {"key": key})
        await self._none(request)

    async def end_away(self, person: str) -> None:
        """Back again."""
        request = request_of("DELETE", "/v1/directory/people/{person}/away", {"person": person})
        await self._none(request)

    async def end_own_away(self) -> None:
        """You are back."""
        request = request_of("DELETE", "/v1/directory/me/away")
        await self._none(request)

    async def get_own_person(self) -> models.Person:
        """Your own entry in the store's directory."""
        request = request_of("GET", "/v1/directory/me")
        return await self._json(request, models.Person)

    async def groups(self) -> Listing[models.Circle]:
        """All groups."""
        request = request_of("GET", "/v1/directory/groups")
        return await self._list(request, models.Circle)

    async def people(self) -> Listing[models.Person]:
        """All people in the store's directory."""
        request = request_of("GET", "/v1/directory/people")
        return await self._list(request, models.Person)

    async def person(self, person: str) -> models.Person:
        """By id or address."""
        request = request_of("GET", "/v1/directory/people/{person}", {"person": person})
        return await self._json(request, models.Person)

    async def put_away(
        self,
        person: str,
        substitute: str,
        *,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
    ) -> None:
        """Set an absence; a substitute acts for them."""
        request = request_of(
            "PUT",
            "/v1/directory/people/{person}/away",
            {"person": person},
            sent={"substitute": substitute},
            maybe={"since": since, "until": until},
        )
        await self._none(request)

    async def put_group(self, key: str, members: Sequence[str], *, name: str | None = None) -> models.Circle:
        """With exactly these members."""
        request = request_of(
            "PUT", "/v1/directory/groups/{key}", {"key": key}, sent={"members": members}, maybe={"name": name}
        )
        return await self._json(request, models.Circle)

    async def put_own_away(
        self, substitute: str, *, since: str | datetime | None = None, until: str | datetime | None = None
    ) -> None:
        """Set your own absence and substitute."""
        request = request_of(
            "PUT",
            "/v1/directory/me/away",
            sent={"substitute": substitute},
            maybe={"since": since, "until": until},
        )
        await self._none(request)

    async def put_person(
        self,
        person: str,
        *,
        email: str | None = None,
        name: str | None = None,
        active: bool | None = None,
        language: str | None = None,
        zone: str | None = None,
    ) -> models.Person:
        """Add or change a person. A person who is not `active` has no rights."""
        request = request_of(
            "PUT",
            "/v1/directory/people/{person}",
            {"person": person},
            maybe={"email": email, "name": name, "active": active, "language": language, "zone": zone},
        )
        return await self._json(request, models.Person)

    async def put_role(self, key: str, members: Sequence[str], *, name: str | None = None) -> models.Circle:
        """With exactly these members."""
        request = request_of(
            "PUT", "/v1/directory/roles/{key}", {"key": key}, sent={"members": members}, maybe={"name": name}
        )
        return await self._json(request, models.Circle)

    async def roles(self) -> Listing[models.Circle]:
        """All roles to which holds can be assigned."""
        request = request_of("GET", "/v1/directory/roles")
        return await self._list(request, models.Circle)


class AsyncDocuments(AsyncGroup):
    """`client.documents`."""

    async def discard(self, document: str, *, if_match: str | None = None) -> None:
        """Discard the draft. What is deployed stays, and is the text of the document again. 428 without

        `If-Match`."""
        request = request_of("DELETE", "/v1/documents/{document}", {"document": document}, if_match=if_match)
        await self._none(request)

    async def get(self, document: str) -> models.EditableDocument:
        """The text that people work on: the draft that was saved last, else that of the current version."""
        request = request_of("GET", "/v1/documents/{document}", {"document": document})
        return await self._json(request, models.EditableDocument)

    def list(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.SavedDocument]:
        """The documents of the tenant, by name: drafts, and those that are deployed."""
        request = request_of("GET", "/v1/documents")
        return self._pages(request, models.SavedDocument, limit, cursor)

    async def save(
        self,
        document: str,
        source: str,
        *,
        format: Literal["json", "yaml"] | None = None,
        if_match: str | None = None,
    ) -> models.EditableDocument:
        """Save the text as it is, finished or not. Runs and the deployed version stay as they are; `POST

        /v1/flows` deploys it. 428 without `If-Match` if there is one; a new one needs none. With
        `If-None-Match: *` only a new one is saved, with `If-Match: *` only one that exists; else 412."""
        request = request_of(
            "PUT",
            "/v1/documents/{document}",
            {"document": document},
            sent={"source": source},
            maybe={"format": format},
            if_match=if_match,
        )
        return await self._json(request, models.EditableDocument)


class AsyncFlows(AsyncGroup):
    """`client.flows`."""

    async def activate(self, flow: str, version: str) -> models.Flow:
        """Make a version the current one: new runs start on it, runs that exist keep theirs."""
        request = request_of("POST", "/v1/flows/{flow}/activate", {"flow": flow}, sent={"version": version})
        return await self._json(request, models.Flow)

    async def arrange(
        self,
        *,
        document: Mapping[str, Any] | None = None,
        source: str | None = None,
        format: Literal["json", "yaml"] | None = None,
        graph: Mapping[str, Any] | None = None,
        flow: str | None = None,
    ) -> models.Arrangement:
        """Where a canvas may place the nodes of a document or a graph: top down, with few crossings

        unless it is very large and dense. Nothing is stored, and positions that the document has are
        not read."""
        request = request_of(
            "POST",
            "/v1/flows/arrange",
            maybe={"document": document, "source": source, "format": format, "graph": graph, "flow": flow},
        )
        return await self._json(request, models.Arrangement)

    async def check(self, flow: str) -> models.FlowCheck:
        """Whether active runs on other versions fit the version that new runs start on, and why not."""
        request = request_of("GET", "/v1/flows/{flow}/check", {"flow": flow})
        return await self._json(request, models.FlowCheck)

    async def check_document(
        self,
        *,
        document: Mapping[str, Any] | None = None,
        source: str | None = None,
        format: Literal["json", "yaml"] | None = None,
        graph: Mapping[str, Any] | None = None,
        flow: str | None = None,
    ) -> models.FlowCheck:
        """Whether the live runs of a flow would fit a document that is not deployed yet, and why not. They
        keep

        their version until they are migrated."""
        request = request_of(
            "POST",
            "/v1/flows/check",
            maybe={"document": document, "source": source, "format": format, "graph": graph, "flow": flow},
        )
        return await self._json(request, models.FlowCheck)

    async def diff(
        self,
        flow: str,
        *,
        from_: str | None = None,
        to: str | None = None,
        document: Mapping[str, Any] | None = None,
        source: str | None = None,
        format: Literal["json", "yaml"] | None = None,
    ) -> models.FlowDiff:
        """What differs between two versions of a document, or a version and a document that is sent: nodes
        by

        id, edges, settings, each with both values; layout apart."""
        request = request_of(
            "POST",
            "/v1/flows/{flow}/diff",
            {"flow": flow},
            maybe={"from": from_, "to": to, "document": document, "source": source, "format": format},
        )
        return await self._json(request, models.FlowDiff)

    async def drawing(self, flow: str, version: str) -> str:
        """The graph of a version, as SVG."""
        request = request_of(
            "GET", "/v1/flows/{flow}/versions/{version}/drawing", {"flow": flow, "version": version}
        )
        return await self._text(request)

    async def get(self, flow: str) -> models.Flow:
        """A flow's versions, newest first. Versions of its code come before graphs that were posted."""
        request = request_of("GET", "/v1/flows/{flow}", {"flow": flow})
        return await self._json(request, models.Flow)

    async def get_document(
        self, flow: str, version: str, *, format: Literal["json", "source", "yaml"] | None = None
    ) -> bytes:
        """The document of a version: the bytes that were sent, or written anew as JSON or YAML with its
        present

        layout. 404 `no_document` for a flow that comes from code."""
        request = request_of(
            "GET",
            "/v1/flows/{flow}/versions/{version}/document",
            {"flow": flow, "version": version},
            query={"format": format},
        )
        return await self._bytes(request)

    async def get_input_schema(self, flow: str, version: str) -> dict[str, Any]:
        """The JSON Schema of the input that a version takes; empty if it does not say."""
        request = request_of(
            "GET", "/v1/flows/{flow}/versions/{version}/input-schema", {"flow": flow, "version": version}
        )
        return await self._json(request, dict[str, Any])

    async def get_layout(self, flow: str, version: str) -> models.FlowLayout:
        """How a document is drawn. Its ETag changes with each change of the layout."""
        request = request_of(
            "GET", "/v1/flows/{flow}/versions/{version}/layout", {"flow": flow, "version": version}
        )
        return await self._json(request, models.FlowLayout)

    async def get_schema(self, version: str) -> dict[str, Any]:
        """The JSON Schema (2020-12) of flow documents, for editors: completion, and problems while one
        types.

        `version` is the major version of the format. It needs no credential: it says nothing about a
        tenant."""
        request = request_of("GET", "/v1/schemas/flow/{version}", {"version": version})
        return await self._json(request, dict[str, Any])

    async def get_stats(
        self, flow: str, *, version: str | None = None, runs: int | None = None
    ) -> models.FlowStatistics:
        """Where the latest runs of a flow failed and wait, and how long each node takes."""
        request = request_of(
            "GET", "/v1/flows/{flow}/stats", {"flow": flow}, query={"version": version, "runs": runs}
        )
        return await self._json(request, models.FlowStatistics)

    async def list(self) -> Listing[models.Flow]:
        """All flows in the store, by name, with their versions."""
        request = request_of("GET", "/v1/flows")
        return await self._list(request, models.Flow)

    async def put_layout(
        self,
        flow: str,
        version: str,
        *,
        nodes: Mapping[str, models.NodeLayout | Mapping[str, Any]] | None = None,
        edges: Mapping[str, models.EdgeLayout | Mapping[str, Any]] | None = None,
        label: str | None = None,
        notes: Sequence[Mapping[str, Any]] | None = None,
        groups: Sequence[Mapping[str, Any]] | None = None,
        ui: Any = None,
        if_match: str | None = None,
    ) -> models.FlowLayout:
        """Replace the layout of a document. What it does, its version and its bytes stay as they are. 428
        without

        `If-Match`."""
        request = request_of(
            "PUT",
            "/v1/flows/{flow}/versions/{version}/layout",
            {"flow": flow, "version": version},
            maybe={
                "nodes": nodes,
                "edges": edges,
                "label": label,
                "notes": notes,
                "groups": groups,
                "ui": ui,
            },
            if_match=if_match,
        )
        return await self._json(request, models.FlowLayout)

    async def register(
        self,
        *,
        document: Mapping[str, Any] | None = None,
        source: str | None = None,
        format: Literal["json", "yaml"] | None = None,
        graph: Mapping[str, Any] | None = None,
        flow: str | None = None,
        dry_run: bool | None = None,
        activate: bool | None = None,
    ) -> models.FlowGraph:
        """Store a version of a flow: 201, or 200 if it is already stored.

        A document (its text as the body with `application/yaml`, and `dry_run` and `activate` in the
        query; or in JSON) can be started at once, by any worker: 422 with every problem in `errors`,
        each with its place and fix. A known version stays as it is, and becomes current only with
        `activate: true`. A graph is data and contains no code: its runs advance on workers that have
        code with the same graph. 409 `name_taken` if a flow of that name comes from code and has
        another graph."""
        request = request_of(
            "POST",
            "/v1/flows",
            maybe={
                "document": document,
                "source": source,
                "format": format,
                "graph": graph,
                "flow": flow,
                "dry_run": dry_run,
                "activate": activate,
            },
        )
        return await self._json(request, models.FlowGraph)

    async def validate(
        self,
        *,
        document: Mapping[str, Any] | None = None,
        source: str | None = None,
        format: Literal["json", "yaml"] | None = None,
        graph: Mapping[str, Any] | None = None,
        flow: str | None = None,
    ) -> models.FlowValidation:
        """All problems of a flow, each with its position and fix. Nothing is stored or run.

        Send a document (its text as the body with `application/yaml`, or in JSON), a graph, or the name
        of a flow."""
        request = request_of(
            "POST",
            "/v1/flows/validate",
            maybe={"document": document, "source": source, "format": format, "graph": graph, "flow": flow},
        )
        return await self._json(request, models.FlowValidation)

    async def version(self, flow: str, version: str) -> models.FlowGraph:
        """The graph of a version: by its fingerprint, its label, or `latest`."""
        request = request_of("GET", "/v1/flows/{flow}/versions/{version}", {"flow": flow, "version": version})
        return await self._json(request, models.FlowGraph)


class AsyncGraph(AsyncGroup):
    """`client.graph`."""

    async def delete_checkpoint(self, checkpoint: str) -> None:
        """Delete the oldest checkpoint of an ended run; 409 for any other."""
        request = request_of("DELETE", "/v1/graph/checkpoints/{checkpoint}", {"checkpoint": checkpoint})
        await self._none(request)

    async def fork_checkpoint(
        self, checkpoint: str, *, patch: Mapping[str, Any] | None = None, repeat_effects: bool | None = None
    ) -> models.GraphRun:
        """Create a run that starts at this checkpoint, with a patch of its state; the source is not
        changed."""
        request = request_of(
            "POST",
            "/v1/graph/checkpoints/{checkpoint}/fork",
            {"checkpoint": checkpoint},
            maybe={"patch": patch, "repeat_effects": repeat_effects},
        )
        return await self._json(request, models.GraphRun)

    async def get_checkpoint(self, checkpoint: str) -> models.GraphCheckpoint:
        """One checkpoint."""
        request = request_of("GET", "/v1/graph/checkpoints/{checkpoint}", {"checkpoint": checkpoint})
        return await self._json(request, models.GraphCheckpoint)

    async def list_checkpoints(
        self, graphId: str, *, runId: str | None = None, limit: int | None = None
    ) -> Listing[models.GraphCheckpointMetadata]:
        """The newest checkpoints of a graph (the version of a flow), or of one run of it, without their
        state."""
        request = request_of(
            "GET", "/v1/graph/checkpoints", query={"graphId": graphId, "runId": runId, "limit": limit}
        )
        return await self._list(request, models.GraphCheckpointMetadata)

    async def load_checkpoint(self, run: str, *, nodeId: str | None = None) -> models.GraphCheckpoint:
        """The newest checkpoint of a run, or of a node of it."""
        request = request_of("GET", "/v1/graph/runs/{run}/checkpoint", {"run": run}, query={"nodeId": nodeId})
        return await self._json(request, models.GraphCheckpoint)

    async def save_checkpoint(
        self,
        checkpoint: str,
        id: str,
        graphId: str,
        runId: str,
        nodeId: str,
        timestamp: int,
        state: models.GraphState | Mapping[str, Any],
        nodeResults: Mapping[str, models.GraphNodeResult | Mapping[str, Any]],
        visitedNodes: Sequence[str],
        pendingEdges: Sequence[str],
        *,
        skippedNodes: Sequence[str] | None = None,
        memorySnapshot: models.GraphMemory | Mapping[str, Any] | None = None,
    ) -> models.GraphCheckpoint:
        """Save a checkpoint that is stored exactly like this: nothing changes.

        409 for any other: checkpoints are written by the run, and a changed one is a fork."""
        request = request_of(
            "PUT",
            "/v1/graph/checkpoints/{checkpoint}",
            {"checkpoint": checkpoint},
            sent={
                "id": id,
                "graphId": graphId,
                "runId": runId,
                "nodeId": nodeId,
                "timestamp": timestamp,
                "state": state,
                "nodeResults": nodeResults,
                "visitedNodes": visitedNodes,
                "pendingEdges": pendingEdges,
            },
            maybe={"skippedNodes": skippedNodes, "memorySnapshot": memorySnapshot},
        )
        return await self._json(request, models.GraphCheckpoint)


class AsyncHolds(AsyncGroup):
    """`client.holds`."""

    async def ask_back(self, hold: str, text: str, *, to: str | None = None) -> models.Hold:
        """Ask a question before you decide; the deadline pauses until there is a reply."""
        request = request_of(
            "POST", "/v1/holds/{hold}/ask-back", {"hold": hold}, sent={"text": text}, maybe={"to": to}
        )
        return await self._json(request, models.Hold)

    async def attach_file(self, hold: str, files: Files) -> Listing[models.File]:
        """Attach files to fields of kind `file`: a form whose parts are named like the fields.

        Put the returned values into the `response_data` of the decision."""
        request = request_of("POST", "/v1/holds/{hold}/files", {"hold": hold}, files=files)
        return await self._list(request, models.File)

    async def cancel(
        self, hold: str, *, reason: str | None = None, if_match: str | None = None
    ) -> models.Hold:
        """Withdraw it without a decision."""
        request = request_of(
            "POST", "/v1/holds/{hold}/cancel", {"hold": hold}, maybe={"reason": reason}, if_match=if_match
        )
        return await self._json(request, models.Hold)

    async def claim(
        self, hold: str, *, seconds: float | None = None, reason: str | None = None
    ) -> models.Hold:
        """Claim it for a while; an unassigned one becomes yours."""
        request = request_of(
            "POST", "/v1/holds/{hold}/claim", {"hold": hold}, maybe={"seconds": seconds, "reason": reason}
        )
        return await self._json(request, models.Hold)

    async def comment(self, hold: str, text: str) -> models.Note:
        """Add a comment, visible to everyone who may see the hold, also after the decision."""
        request = request_of("POST", "/v1/holds/{hold}/comments", {"hold": hold}, sent={"text": text})
        return await self._json(request, models.Note)

    async def comments(self, hold: str) -> Listing[models.Note]:
        """Comments, questions back and their answers, oldest first."""
        request = request_of("GET", "/v1/holds/{hold}/comments", {"hold": hold})
        return await self._list(request, models.Note)

    async def consequences(self, hold: str) -> models.HoldPreview:
        """What each option would lead to, with the values that its form proposes: the run is continued in
        memory

        up to the next questions and outside effects. Nothing is done outside, and nothing is stored."""
        request = request_of("GET", "/v1/holds/{hold}/consequences", {"hold": hold})
        return await self._json(request, models.HoldPreview)

    async def conversation(self, hold: str) -> models.HoldConversation:
        """What was said before an agent asked: its instructions, its model, its tools and their results.
        Empty

        if no agent asked. Secrets are masked; results of tools are not checked."""
        request = request_of("GET", "/v1/holds/{hold}/conversation", {"hold": hold})
        return await self._json(request, models.HoldConversation)

    async def count(
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
        resolved_from: str | datetime | None = None,
        resolved_to: str | datetime | None = None,
    ) -> models.Count:
        """The number of holds in that list."""
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
                "resolved_from": resolved_from,
                "resolved_to": resolved_to,
            },
        )
        return await self._json(request, models.Count)

    async def decide_many(
        self,
        holds: Sequence[str],
        decision: str,
        *,
        comment: str | None = None,
        preview: bool | None = None,
        undo: bool | None = None,
        versions: Mapping[str, int] | None = None,
    ) -> models.Bulk:
        """Apply one decision to many holds, each separately. By default only a preview."""
        request = request_of(
            "POST",
            "/v1/holds/bulk",
            sent={"holds": holds, "decision": decision},
            maybe={"comment": comment, "preview": preview, "undo": undo, "versions": versions},
        )
        return await self._json(request, models.Bulk)

    async def delete_draft(self, hold: str) -> None:
        """Delete the draft."""
        request = request_of("DELETE", "/v1/holds/{hold}/draft", {"hold": hold})
        await self._none(request)

    async def draft(self, hold: str) -> models.Draft:
        """Your draft; its fields are null if there is none."""
        request = request_of("GET", "/v1/holds/{hold}/draft", {"hold": hold})
        return await self._json(request, models.Draft)

    async def end_presence(self, hold: str) -> None:
        """Report that you no longer look at it."""
        request = request_of("DELETE", "/v1/holds/{hold}/presence", {"hold": hold})
        await self._none(request)

    async def evidence(self, hold: str) -> bytes:
        """One decision as a file that `tools/verify_evidence.py` verifies offline. The export is audited."""
        request = request_of("GET", "/v1/holds/{hold}/evidence", {"hold": hold})
        return await self._bytes(request)

    async def extend(
        self, hold: str, expires_at: str | datetime, *, reason: str | None = None, if_match: str | None = None
    ) -> models.Hold:
        """Extend its deadline."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/extend",
            {"hold": hold},
            sent={"expires_at": expires_at},
            maybe={"reason": reason},
            if_match=if_match,
        )
        return await self._json(request, models.Hold)

    async def files(self, hold: str) -> Listing[models.File]:
        """The attached files, in the order of their upload."""
        request = request_of("GET", "/v1/holds/{hold}/files", {"hold": hold})
        return await self._list(request, models.File)

    async def get(self, hold: str) -> models.Hold:
        """One hold. Its ETag is its version: send it as If-Match to decide on what you have seen."""
        request = request_of("GET", "/v1/holds/{hold}", {"hold": hold})
        return await self._json(request, models.Hold)

    async def history(self, hold: str) -> Listing[models.Entry]:
        """Its history, oldest first. Each entry has its number in the audit."""
        request = request_of("GET", "/v1/holds/{hold}/history", {"hold": hold})
        return await self._list(request, models.Entry)

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
        resolved_from: str | datetime | None = None,
        resolved_to: str | datetime | None = None,
        order: models.HoldOrder | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Hold]:
        """Holds that you may see, with stable pages. `view=mine` is your inbox."""
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
                "resolved_from": resolved_from,
                "resolved_to": resolved_to,
                "order": order,
            },
        )
        return self._pages(request, models.Hold, limit, cursor)

    async def make_link(
        self, hold: str, to: str, *, decide: bool | None = None, seconds: int | None = None
    ) -> models.Link:
        """Create a link for one person. It is valid until it is used, the hold is reassigned or decided,
        or its

        links are revoked.

        A link for another person is sent to their address and not returned: its holder decides in their
        name. 409 if no channel has an address of theirs."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/links",
            {"hold": hold},
            sent={"to": to},
            maybe={"decide": decide, "seconds": seconds},
        )
        return await self._json(request, models.Link)

    async def mark_seen(self, hold: str) -> None:
        """Mark it as seen; the first time is recorded in the audit and counts in the metrics."""
        request = request_of("PUT", "/v1/holds/{hold}/seen", {"hold": hold})
        await self._none(request)

    async def metrics(
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
        resolved_from: str | datetime | None = None,
        resolved_to: str | datetime | None = None,
        calendar: str | None = None,
    ) -> models.HoldMetrics:
        """Metrics of the holds that you may see. Durations are seconds, rates are shares of 1."""
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
                "resolved_from": resolved_from,
                "resolved_to": resolved_to,
                "calendar": calendar,
            },
        )
        return await self._json(request, models.HoldMetrics)

    async def place(
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
        """Decide it after a few seconds, unless you undo the decision before."""
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
        return await self._json(request, models.Hold)

    async def presence(self, hold: str) -> Listing[models.HoldViewer]:
        """Who is looking at it now."""
        request = request_of("GET", "/v1/holds/{hold}/presence", {"hold": hold})
        return await self._list(request, models.HoldViewer)

    async def preview(
        self, hold: str, *, decision: str | None = None, response_data: Any = None
    ) -> models.HoldPreview:
        """The same for one option, or with values that were filled in."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/consequences",
            {"hold": hold},
            maybe={"decision": decision, "response_data": response_data},
        )
        return await self._json(request, models.HoldPreview)

    async def read_file(self, hold: str, digest: str) -> bytes:
        """Download a file; browsers do not display it. The access is in the audit."""
        request = request_of("GET", "/v1/holds/{hold}/files/{digest}", {"hold": hold, "digest": digest})
        return await self._bytes(request)

    async def reassign(
        self,
        hold: str,
        assignee: str | None = None,
        *,
        expires_at: str | datetime | None = None,
        reason: str | None = None,
        if_match: str | None = None,
    ) -> models.Hold:
        """Reassign it; the new assignee is notified. Older links become invalid."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/reassign",
            {"hold": hold},
            maybe={"assignee": assignee, "expires_at": expires_at, "reason": reason},
            if_match=if_match,
        )
        return await self._json(request, models.Hold)

    async def release(self, hold: str) -> models.Hold:
        """Release a claim."""
        request = request_of("POST", "/v1/holds/{hold}/release", {"hold": hold})
        return await self._json(request, models.Hold)

    async def reply(self, hold: str, text: str, *, question: str | None = None) -> models.Hold:
        """Reply to a question."""
        request = request_of(
            "POST",
            "/v1/holds/{hold}/reply",
            {"hold": hold},
            sent={"text": text},
            maybe={"question": question},
        )
        return await self._json(request, models.Hold)

    async def report_presence(self, hold: str, *, editing: bool | None = None) -> Listing[models.HoldViewer]:
        """Report that you are looking at it, for 30 seconds: repeat it every 10 to 20. Returns all
        viewers."""
        request = request_of("PUT", "/v1/holds/{hold}/presence", {"hold": hold}, maybe={"editing": editing})
        return await self._list(request, models.HoldViewer)

    async def resolve(
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
        """Decide it, once; if several people must agree, vote.

        `Idempotency-Key`: a repeated request gets the same answer. `If-Match`: only the version that
        you read. 409 names who decided before; 422 names each invalid field, and the hold stays open."""
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
        return await self._json(request, models.Hold)

    async def revoke_links(self, hold: str) -> models.Hold:
        """Revoke all links to the hold."""
        request = request_of("DELETE", "/v1/holds/{hold}/links", {"hold": hold})
        return await self._json(request, models.Hold)

    async def save_draft(
        self,
        hold: str,
        *,
        decision: Any = None,
        response_data: Any = None,
        comment: Any = None,
        request_hash: str | None = None,
    ) -> None:
        """Save your draft; it is not checked."""
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
        await self._none(request)

    async def schema(self, hold: str) -> models.AnswerSchema:
        """The schema of an answer to it, for programs."""
        request = request_of("GET", "/v1/holds/{hold}/schema", {"hold": hold})
        return await self._json(request, models.AnswerSchema)

    async def snooze(self, hold: str, until: str | datetime) -> None:
        """Snooze it until then. Its deadline stays."""
        request = request_of("PUT", "/v1/holds/{hold}/snooze", {"hold": hold}, sent={"until": until})
        await self._none(request)

    def stream(self, *, after: int | None = None) -> AsyncEventStream:
        """Changes of the holds that you may see, as server-sent events.

        The id of each is its number in the tenant's audit; `Last-Event-ID` or `after` continues from
        there, without one it starts now, with the event `stream.opened` whose id is the current number.
        A number that is not there yet, because the store was restored from a backup, counts as none.
        The numbers have gaps where you may not see a change."""
        request = request_of("GET", "/v1/holds/stream", query={"after": after})
        return self._stream(request)

    async def undo(self, hold: str) -> models.Hold:
        """Undo your placed decision."""
        request = request_of("POST", "/v1/holds/{hold}/undo", {"hold": hold})
        return await self._json(request, models.Hold)

    async def unsnooze(self, hold: str) -> None:
        """End the snooze."""
        request = request_of("DELETE", "/v1/holds/{hold}/snooze", {"hold": hold})
        await self._none(request)

    async def unwatch(self, hold: str) -> None:
        """Stop watching it."""
        request = request_of("DELETE", "/v1/holds/{hold}/watch", {"hold": hold})
        await self._none(request)

    async def vote(
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
        """The same as resolve, for holds on which several people must agree."""
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
        return await self._json(request, models.Hold)

    async def watch(self, hold: str) -> None:
        """Watch it."""
        request = request_of("PUT", "/v1/holds/{hold}/watch", {"hold": hold})
        await self._none(request)

    async def withdraw_question(self, hold: str, *, question: str | None = None) -> models.Hold:
        """Withdraw the question: no reply is needed, and the deadline continues."""
        request = request_of(
            "POST", "/v1/holds/{hold}/withdraw-question", {"hold": hold}, maybe={"question": question}
        )
        return await self._json(request, models.Hold)


class AsyncInbound(AsyncGroup):
    """`client.inbound`."""

    async def click(self, way: str, content: bytes, *, headers: Mapping[str, str] | None = None) -> None:
        """A click in Slack: the request URL of the app's interactivity. Signed by Slack
        (`X-Slack-Signature`)."""
        request = request_of(
            "POST",
            "/v1/inbound/slack/{way}",
            {"way": way},
            content=content,
            headers=headers,
            media="application/x-www-form-urlencoded",
        )
        await self._none(request)

    async def delete_chat_person(self, way: str, chat: str) -> None:
        """Remove this chat user: it can no longer decide."""
        request = request_of("DELETE", "/v1/inbound/slack/{way}/people/{chat}", {"way": way, "chat": chat})
        await self._none(request)

    async def mail(
        self, way: str, content: bytes, *, headers: Mapping[str, str] | None = None
    ) -> models.MailTaken:
        """A reply to a mail: the whole message as the mail server received it, with its
        Authentication-Results.

        Signed as Standard Webhooks by the system that forwards it."""
        request = request_of(
            "POST",
            "/v1/inbound/mail/{way}",
            {"way": way},
            content=content,
            headers=headers,
            media="message/rfc822",
        )
        return await self._json(request, models.MailTaken)

    async def set_chat_person(self, way: str, chat: str, person: str) -> None:
        """Set the person of a chat user."""
        request = request_of(
            "PUT",
            "/v1/inbound/slack/{way}/people/{chat}",
            {"way": way, "chat": chat},
            sent={"person": person},
        )
        await self._none(request)

    async def webhook(
        self, way: str, content: bytes, *, headers: Mapping[str, str] | None = None
    ) -> models.WebhookTaken:
        """Answer a hold from another system: `{"data": {"correlation_id", "decision", ...}}`.

        Signed as Standard Webhooks. A repeated message has no effect and is answered with 200."""
        request = request_of(
            "POST",
            "/v1/inbound/webhooks/{way}",
            {"way": way},
            content=content,
            headers=headers,
            media="application/json",
        )
        return await self._json(request, models.WebhookTaken)


class AsyncLimits(AsyncGroup):
    """`client.limits`."""

    async def clear(self, name: str) -> None:
        """Remove a set limit: the flow's declared limit applies again."""
        request = request_of("DELETE", "/v1/limits/{name}", {"name": name})
        await self._none(request)

    async def list(self, *, prefix: str | None = None, keys: bool | None = None) -> Listing[models.Limit]:
        """Limits in effect, with the number of active and waiting runs; and those that items of maps share
        by a

        key (`items:KEY`, of the caller's tenant), as far as items run or wait."""
        request = request_of("GET", "/v1/limits", query={"prefix": prefix, "keys": keys})
        return await self._list(request, models.Limit)

    async def set(
        self, name: str, *, concurrency: int | None = None, rate: str | None = None
    ) -> models.Limit:
        """Set a limit that overrides the flow's: `flow:refund`, `flow:refund/*`, `flow:refund/acme`."""
        request = request_of(
            "PUT", "/v1/limits/{name}", {"name": name}, maybe={"concurrency": concurrency, "rate": rate}
        )
        return await self._json(request, models.Limit)


class AsyncMetrics(AsyncGroup):
    """`client.metrics`."""

    async def get(
        self,
        metric: str,
        *,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        step: str | None = None,
    ) -> models.Metric:
        """One series of the tenant, computed from its newest holds or runs.

        `time_to_decision`: p50 and p95 in seconds, and the number of decisions by people. `backlog`:
        open holds by age, at the end of each step. `breaches`: deadlines that passed before the
        decision. `runs`: runs that completed, failed and were cancelled. For long series, collect the
        metrics of `--metrics`."""
        request = request_of(
            "GET", "/v1/metrics/{metric}", {"metric": metric}, query={"from": from_, "to": to, "step": step}
        )
        return await self._json(request, models.Metric)


class AsyncNotices(AsyncGroup):
    """`client.notices`."""

    def by_state(
        self,
        *,
        state: Literal["failed", "sent", "unneeded", "waiting"] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Notice]:
        """Notifications in one state, newest first."""
        request = request_of("GET", "/v1/notices", query={"state": state})
        return self._pages(request, models.Notice, limit, cursor)

    async def list(self) -> Listing[models.DeadNotice]:
        """Notifications that could not be delivered, at most 200."""
        request = request_of("GET", "/v1/notices/dead")
        return await self._list(request, models.DeadNotice)

    async def replay(self, message: str) -> models.DeadNotice:
        """Retry it, after its cause was fixed."""
        request = request_of("POST", "/v1/notices/dead/{message}/replay", {"message": message})
        return await self._json(request, models.DeadNotice)


class AsyncPipelines(AsyncGroup):
    """`client.pipelines`."""

    async def answer(
        self,
        run: str,
        hold: str,
        *,
        value: str | None = None,
        text: str | None = None,
        comment: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.AnswerTaken:
        """Answer a question of a pipeline.

        The first answer counts: 409 for later ones, with the person of the first. 422 for an unknown
        answer."""
        request = request_of(
            "POST",
            "/v1/pipelines/{run}/questions/{hold}/answer",
            {"run": run, "hold": hold},
            maybe={"value": value, "text": text, "comment": comment},
            keyed=True,
            key=idempotency_key,
        )
        return await self._json(request, models.AnswerTaken)

    async def cancel(
        self, run: str, *, reason: str | None = None, if_match: str | None = None
    ) -> models.Pipeline:
        """Cancel a pipeline. Its worker stops it as soon as possible; its open questions are withdrawn."""
        request = request_of(
            "POST", "/v1/pipelines/{run}/cancel", {"run": run}, maybe={"reason": reason}, if_match=if_match
        )
        return await self._json(request, models.Pipeline)

    async def checkpoint(self, run: str) -> dict[str, Any]:
        """The content of the pipeline's `checkpoint.json`."""
        request = request_of("GET", "/v1/pipelines/{run}/checkpoint", {"run": run})
        return await self._json(request, dict[str, Any])

    async def context(self, run: str) -> dict[str, Any]:
        """The context values that its stages share, by key."""
        request = request_of("GET", "/v1/pipelines/{run}/context", {"run": run})
        return await self._json(request, dict[str, Any])

    async def get(self, run: str) -> models.Pipeline:
        """The progress of a pipeline."""
        request = request_of("GET", "/v1/pipelines/{run}", {"run": run})
        return await self._json(request, models.Pipeline)

    async def get_stage_output(self, run: str, stage: str, output: str, *, visit: int | None = None) -> bytes:
        """What a stage left, whole: `response`, `stdout`, `stderr`, `verdict` or `diff`."""
        request = request_of(
            "GET",
            "/v1/pipelines/{run}/stages/{stage}/outputs/{output}",
            {"run": run, "stage": stage, "output": output},
            query={"visit": visit},
        )
        return await self._bytes(request)

    async def get_stage_prompt(self, run: str, stage: str, *, visit: int | None = None) -> bytes:
        """What the model of a stage was given: the preamble, the prompt, and how to report the verdict."""
        request = request_of(
            "GET",
            "/v1/pipelines/{run}/stages/{stage}/prompt",
            {"run": run, "stage": stage},
            query={"visit": visit},
        )
        return await self._bytes(request)

    async def graph(self, run: str) -> str:
        """The pipeline as SVG: each stage with its state, and the taken edges."""
        request = request_of("GET", "/v1/pipelines/{run}/graph", {"run": run})
        return await self._text(request)

    async def questions(self, run: str) -> models.QuestionList:
        """A pipeline's open questions that you may see."""
        request = request_of("GET", "/v1/pipelines/{run}/questions", {"run": run})
        return await self._json(request, models.QuestionList)

    def stream(self, run: str, *, after: int | None = None) -> AsyncEventStream:
        """A pipeline's events as server-sent events, in the form of section 9.6, from its stored log.

        A client that connects later gets every event from the first; one that reconnects with
        `Last-Event-ID` misses and repeats nothing. The stream ends after the last event of an ended
        run; 204: there is and will be nothing after that id."""
        request = request_of("GET", "/v1/pipelines/{run}/events", {"run": run}, query={"after": after})
        return self._stream(request)

    async def submit(
        self,
        dot: str,
        *,
        files: Mapping[str, str] | None = None,
        context: Mapping[str, Any] | None = None,
        simulate: bool | None = None,
        backend: str | None = None,
        strict: bool | None = None,
        thread: str | None = None,
        lane: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Pipeline:
        """Start a pipeline; it is durable when this returns, and any worker runs it.

        The files that it names are those of `files`; no other is read. Its prompts go to `backend`,
        else to that of the server, else to the one that all live workers have; if these differ,
        `backend` must be given. 400 with every problem of the document and its position. 403 for
        commands, unless the operator allows them (`holdfast serve --allow-code`)."""
        request = request_of(
            "POST",
            "/v1/pipelines",
            sent={"dot": dot},
            maybe={
                "files": files,
                "context": context,
                "simulate": simulate,
                "backend": backend,
                "strict": strict,
                "thread": thread,
                "lane": lane,
            },
            keyed=True,
            key=idempotency_key,
        )
        return await self._json(request, models.Pipeline)


class AsyncPolicies(AsyncGroup):
    """`client.policies`."""

    async def list(self) -> Listing[models.HoldSetting]:
        """The stored policies, by name."""
        request = request_of("GET", "/v1/policies")
        return await self._list(request, models.HoldSetting)

    async def put(self, name: str, body: Mapping[str, Any]) -> models.HoldSetting:
        """Store it: it applies to holds that open from now on."""
        request = request_of("PUT", "/v1/policies/{name}", {"name": name}, whole=body)
        return await self._json(request, models.HoldSetting)

    async def simulate(
        self,
        *,
        policy: Mapping[str, Any] | None = None,
        since: str | datetime | None = None,
        flows: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> models.Simulation:
        """Replay past decisions under these rules. Nothing is changed, and no judge is called."""
        request = request_of(
            "POST",
            "/v1/policies/simulate",
            maybe={"policy": policy, "since": since, "flows": flows, "limit": limit},
        )
        return await self._json(request, models.Simulation)


class AsyncQueues(AsyncGroup):
    """`client.queues`."""

    async def claim_message(
        self, scope: str, queue: str, message: str, *, ttl: str | None = None
    ) -> models.Message:
        """Claim this message. A review request can be claimed by those who may decide its hold."""
        request = request_of(
            "POST",
            "/v1/queues/{scope}/{queue}/messages/{message}/claim",
            {"scope": scope, "queue": queue, "message": message},
            maybe={"ttl": ttl},
        )
        return await self._json(request, models.Message)

    async def claim_messages(
        self,
        scope: str,
        queue: str,
        *,
        limit: int | None = None,
        wait: float | None = None,
        ttl: str | None = None,
    ) -> models.ClaimedMessages:
        """Claim ready messages: by priority, then the longest ready. Review requests that the caller may
        not

        decide are left out. The list is empty if there is none."""
        request = request_of(
            "POST",
            "/v1/queues/{scope}/{queue}/messages/claim",
            {"scope": scope, "queue": queue},
            maybe={"limit": limit, "wait": wait, "ttl": ttl},
            wait=wait,
        )
        return await self._json(request, models.ClaimedMessages)

    async def complete_message(
        self, scope: str, queue: str, message: str, token: str, *, result: Any = None
    ) -> models.Message:
        """Complete a claimed message. Completing a review request decides its hold, under the caller's
        rights."""
        request = request_of(
            "POST",
            "/v1/queues/{scope}/{queue}/messages/{message}/complete",
            {"scope": scope, "queue": queue, "message": message},
            sent={"token": token},
            maybe={"result": result},
        )
        return await self._json(request, models.Message)

    async def extend_message(
        self, scope: str, queue: str, message: str, token: str, *, ttl: str | None = None
    ) -> models.Message:
        """Extend the claim, while the work takes longer."""
        request = request_of(
            "POST",
            "/v1/queues/{scope}/{queue}/messages/{message}/extend",
            {"scope": scope, "queue": queue, "message": message},
            sent={"token": token},
            maybe={"ttl": ttl},
        )
        return await self._json(request, models.Message)

    async def get_message(self, scope: str, queue: str, message: str) -> models.Message:
        """A message with its content, state and result."""
        request = request_of(
            "GET",
            "/v1/queues/{scope}/{queue}/messages/{message}",
            {"scope": scope, "queue": queue, "message": message},
        )
        return await self._json(request, models.Message)

    async def give_up_message(
        self, scope: str, queue: str, message: str, *, token: str | None = None, error: str | None = None
    ) -> models.Message:
        """Give the message up, as its worker or while it is not claimed. It is kept until it is requeued
        or

        withdrawn."""
        request = request_of(
            "POST",
            "/v1/queues/{scope}/{queue}/messages/{message}/dead",
            {"scope": scope, "queue": queue, "message": message},
            maybe={"token": token, "error": error},
        )
        return await self._json(request, models.Message)

    async def list(self) -> Listing[models.Queue]:
        """The tenant's queues that have messages, with the number of messages by state."""
        request = request_of("GET", "/v1/queues")
        return await self._list(request, models.Queue)

    def list_messages(
        self,
        scope: str,
        queue: str,
        *,
        state: Sequence[Literal["claimed", "completed", "dead", "expired", "ready", "withdrawn"]]
        | None = None,
        type: str | None = None,
        correlation_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Message]:
        """The messages of a queue, newest first. The content of a review request is `null` for callers who
        may

        not see its hold."""
        request = request_of(
            "GET",
            "/v1/queues/{scope}/{queue}/messages",
            {"scope": scope, "queue": queue},
            query={"state": state, "type": type, "correlation_id": correlation_id},
        )
        return self._pages(request, models.Message, limit, cursor)

    async def publish_message(
        self,
        scope: str,
        queue: str,
        payload: Any,
        *,
        id: str | None = None,
        type: str | None = None,
        correlation_id: str | None = None,
        priority: Literal["critical", "high", "low", "normal"] | None = None,
        delay: str | None = None,
        expires_in: str | None = None,
        group_key: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Message:
        """Publish a message, once for each `id` or `Idempotency-Key`."""
        request = request_of(
            "POST",
            "/v1/queues/{scope}/{queue}/messages",
            {"scope": scope, "queue": queue},
            sent={"payload": payload},
            maybe={
                "id": id,
                "type": type,
                "correlation_id": correlation_id,
                "priority": priority,
                "delay": delay,
                "expires_in": expires_in,
                "group_key": group_key,
            },
            keyed=True,
            key=idempotency_key,
        )
        return await self._json(request, models.Message)

    async def release_message(
        self,
        scope: str,
        queue: str,
        message: str,
        token: str,
        *,
        delay: str | None = None,
        error: str | None = None,
    ) -> models.Message:
        """Give a claimed message back. After its last attempt it becomes a dead letter."""
        request = request_of(
            "POST",
            "/v1/queues/{scope}/{queue}/messages/{message}/release",
            {"scope": scope, "queue": queue, "message": message},
            sent={"token": token},
            maybe={"delay": delay, "error": error},
        )
        return await self._json(request, models.Message)

    async def requeue_message(self, scope: str, queue: str, message: str) -> models.Message:
        """Make a dead message ready again."""
        request = request_of(
            "POST",
            "/v1/queues/{scope}/{queue}/messages/{message}/requeue",
            {"scope": scope, "queue": queue, "message": message},
        )
        return await self._json(request, models.Message)

    async def send_event(
        self,
        name: str,
        *,
        data: Any = None,
        key: str | None = None,
        run: str | None = None,
        id: str | None = None,
        keep: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.SentEvent:
        """Send an event to the run that waits for its name and key, or to one run. Without such a run it
        is kept

        for `keep`."""
        request = request_of(
            "POST",
            "/v1/events",
            sent={"name": name},
            maybe={"data": data, "key": key, "run": run, "id": id, "keep": keep},
            keyed=True,
            key=idempotency_key,
        )
        return await self._json(request, models.SentEvent)

    async def withdraw_message(self, scope: str, queue: str, message: str) -> None:
        """Withdraw an open or dead message. A worker that has claimed it cannot complete it any more. The
        request

        of a review is withdrawn only by those who may decide it."""
        request = request_of(
            "DELETE",
            "/v1/queues/{scope}/{queue}/messages/{message}",
            {"scope": scope, "queue": queue, "message": message},
        )
        await self._none(request)


class AsyncRuns(AsyncGroup):
    """`client.runs`."""

    async def artifact(self, run: str, name: str) -> bytes:
        """An artifact as a file: bytes unchanged, text as text, everything else as JSON."""
        request = request_of("GET", "/v1/runs/{run}/artifacts/{name}", {"run": run, "name": name})
        return await self._bytes(request)

    async def artifacts(self, run: str) -> Listing[models.Artifact]:
        """The run's artifacts so far, by name."""
        request = request_of("GET", "/v1/runs/{run}/artifacts", {"run": run})
        return await self._list(request, models.Artifact)

    async def cancel(
        self, run: str, *, reason: str | None = None, if_match: str | None = None
    ) -> models.RunDetail:
        """Cancel a run. Its worker stops it as soon as possible; its open holds are withdrawn."""
        request = request_of(
            "POST", "/v1/runs/{run}/cancel", {"run": run}, maybe={"reason": reason}, if_match=if_match
        )
        return await self._json(request, models.RunDetail)

    async def change_many(
        self,
        runs: Sequence[str],
        action: Literal["cancel", "discard", "retry"],
        *,
        reason: str | None = None,
        preview: bool | None = None,
    ) -> models.BulkRunsResult:
        """Cancel or retry many runs, or discard dead letters, each separately. By default only a preview."""
        request = request_of(
            "POST",
            "/v1/runs/bulk",
            sent={"runs": runs, "action": action},
            maybe={"reason": reason, "preview": preview},
        )
        return await self._json(request, models.BulkRunsResult)

    async def checkpoint(self, run: str, checkpoint: str) -> models.CheckpointDetail:
        """A checkpoint with the states of its nodes: by its id, the number of its record, or `latest`."""
        request = request_of(
            "GET", "/v1/runs/{run}/checkpoints/{checkpoint}", {"run": run, "checkpoint": checkpoint}
        )
        return await self._json(request, models.CheckpointDetail)

    def checkpoints(
        self, run: str, *, node: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.CheckpointSummary]:
        """A run's checkpoints, newest first, without their state."""
        request = request_of("GET", "/v1/runs/{run}/checkpoints", {"run": run}, query={"node": node})
        return self._pages(request, models.CheckpointSummary, limit, cursor)

    async def continue_breakpoints(
        self,
        *,
        holds: Sequence[str] | None = None,
        run: str | None = None,
        flow: str | None = None,
        clear: bool | None = None,
        preview: bool | None = None,
    ) -> models.Bulk:
        """Continue runs that wait at breakpoints: those named, those of a run or of a flow. `preview`:
        only say

        which."""
        request = request_of(
            "POST",
            "/v1/breakpoints/continue",
            maybe={"holds": holds, "run": run, "flow": flow, "clear": clear, "preview": preview},
        )
        return await self._json(request, models.Bulk)

    async def count(
        self,
        *,
        status: Sequence[models.RunStatus] | None = None,
        flow: str | None = None,
        version: str | None = None,
        thread: str | None = None,
        forked_from: str | None = None,
        parent_run: str | None = None,
        instance_key: str | None = None,
        q: str | None = None,
    ) -> models.RunCounts:
        """The number of runs in that list, in all and by status."""
        request = request_of(
            "GET",
            "/v1/runs/count",
            query={
                "status": status,
                "flow": flow,
                "version": version,
                "thread": thread,
                "forked_from": forked_from,
                "parent_run": parent_run,
                "instance_key": instance_key,
                "q": q,
            },
        )
        return await self._json(request, models.RunCounts)

    async def create(
        self,
        flow: str | None = None,
        input: Mapping[str, Any] | None = None,
        *,
        workflow_uri: str | None = None,
        version: str | None = None,
        thread: str | None = None,
        lane: str | None = None,
        priority: int | None = None,
        instance_key: str | None = None,
        deployment: str | None = None,
        mode: Literal["barrier", "exit", "strict"] | None = None,
        breaks: Sequence[str] | None = None,
        wait: float | None = None,
        idempotency_key: str | None = None,
    ) -> models.RunDetail:
        """Start a run. It is durable when this returns; a worker that serves its flow runs it.

        201 with its `Location`; 200 and the same run if the key was used before, 422 if the key was
        used with another input."""
        request = request_of(
            "POST",
            "/v1/runs",
            maybe={
                "flow": flow,
                "workflow_uri": workflow_uri,
                "version": version,
                "input": input,
                "thread": thread,
                "lane": lane,
                "priority": priority,
                "instance_key": instance_key,
                "deployment": deployment,
                "mode": mode,
                "breaks": breaks,
                "wait": wait,
            },
            keyed=True,
            key=idempotency_key,
            wait=wait,
        )
        return await self._json(request, models.RunDetail)

    async def delete(self, run: str, *, if_match: str | None = None) -> None:
        """Delete an ended run for good, with its history, holds and artifacts. The audit keeps its
        entries.

        409 for a run that has not ended: cancel it first. Forks of it stay."""
        request = request_of("DELETE", "/v1/runs/{run}", {"run": run}, if_match=if_match)
        await self._none(request)

    async def diff(
        self, run: str, to: str, *, at: str | None = None, whole: bool | None = None
    ) -> dict[str, Any]:
        """Compare this run, or a checkpoint `at` of it, with another: values, visits, cost."""
        request = request_of(
            "GET", "/v1/runs/{run}/diff", {"run": run}, query={"to": to, "at": at, "whole": whole}
        )
        return await self._json(request, dict[str, Any])

    async def drawing(self, run: str) -> str:
        """The run's graph with the state of each node, as SVG."""
        request = request_of("GET", "/v1/runs/{run}/drawing", {"run": run})
        return await self._text(request)

    async def events(
        self, run: str, *, after: int | None = None, limit: int | None = None
    ) -> models.EventPage:
        """The stored events after a number, oldest first, without gaps or repetitions."""
        request = request_of(
            "GET", "/v1/runs/{run}/events", {"run": run}, query={"after": after, "limit": limit}
        )
        return await self._json(request, models.EventPage)

    async def export(self, run: str) -> bytes:
        """The run with its whole history as a file, for another store; encrypted if the store is."""
        request = request_of("GET", "/v1/runs/{run}/export", {"run": run})
        return await self._bytes(request)

    async def fork(
        self,
        run: str,
        *,
        checkpoint_id: str | None = None,
        seq: int | None = None,
        input_data: Mapping[str, Any] | None = None,
        patch: Mapping[str, Any] | None = None,
        repeat_effects: bool | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.RunDetail:
        """Create a new run that starts at a checkpoint of this one. This one is not changed."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/fork",
            {"run": run},
            maybe={
                "checkpoint_id": checkpoint_id,
                "seq": seq,
                "input_data": input_data,
                "patch": patch,
                "repeat_effects": repeat_effects,
            },
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return await self._json(request, models.RunDetail)

    async def get(self, run: str) -> models.RunDetail:
        """One run."""
        request = request_of("GET", "/v1/runs/{run}", {"run": run})
        return await self._json(request, models.RunDetail)

    async def get_graph(self, run: str, *, open: Sequence[str] | None = None) -> models.Graph:
        """The graph of a run's version with the place of each node and edge. It does not change while the
        run

        does: the timeline has the states."""
        request = request_of("GET", "/v1/runs/{run}/graph", {"run": run}, query={"open": open})
        return await self._json(request, models.Graph)

    async def get_postmortem(
        self, run: str, *, format: Literal["html", "md"] | None = None, visits: int | None = None
    ) -> models.Postmortem:
        """A report of a run's whole history: each node in order, what it changed, what failed and how that
        was

        handled. The run need not have ended."""
        request = request_of(
            "GET", "/v1/runs/{run}/postmortem", {"run": run}, query={"format": format, "visits": visits}
        )
        return await self._json(request, models.Postmortem)

    async def get_step(self, run: str, seq: str, *, past: bool | None = None) -> models.Step:
        """The visit that a record settled, or that was under way there: its input, output, attempts with
        their

        workers, sub-steps, live output, changes of the state, and error with its traceback. Lines of
        code in a traceback need the right `runs:write`."""
        request = request_of(
            "GET", "/v1/runs/{run}/steps/{seq}", {"run": run, "seq": seq}, query={"past": past}
        )
        return await self._json(request, models.Step)

    async def input(
        self,
        run: str,
        content: str | Mapping[str, Any],
        *,
        request_id: str | None = None,
        checkpoint_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.InputTaken:
        """Answer a question of a run; the body is read as JSON whatever its content type.

        A text is matched with the options' ids, then with their labels, ignoring case: 422 with the ids
        if it matches none. 409 if several questions are open and none is named, or if it is already
        decided."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/input",
            {"run": run},
            sent={"content": content},
            maybe={"request_id": request_id, "checkpoint_id": checkpoint_id},
            keyed=True,
            key=idempotency_key,
        )
        return await self._json(request, models.InputTaken)

    def list(
        self,
        *,
        status: Sequence[models.RunStatus] | None = None,
        flow: str | None = None,
        version: str | None = None,
        thread: str | None = None,
        forked_from: str | None = None,
        parent_run: str | None = None,
        instance_key: str | None = None,
        q: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Run]:
        """The tenant's runs, newest first. `q` searches with words."""
        request = request_of(
            "GET",
            "/v1/runs",
            query={
                "status": status,
                "flow": flow,
                "version": version,
                "thread": thread,
                "forked_from": forked_from,
                "parent_run": parent_run,
                "instance_key": instance_key,
                "q": q,
            },
        )
        return self._pages(request, models.Run, limit, cursor)

    async def list_records(
        self, run: str, *, first: int | None = None, limit: int | None = None
    ) -> models.RecordPage:
        """Records of a run's journal from a number on, without their values. Pruned ones are left out."""
        request = request_of(
            "GET", "/v1/runs/{run}/records", {"run": run}, query={"first": first, "limit": limit}
        )
        return await self._json(request, models.RecordPage)

    def pending(
        self,
        *,
        thread: str | None = None,
        mine: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Pending]:
        """Runs that wait for input, with their questions: the newest question first.

        With `mine` a page may be short and still have a `next`: only a limited number of questions is
        scanned."""
        request = request_of("GET", "/v1/runs/pending", query={"thread": thread, "mine": mine})
        return self._pages(request, models.Pending, limit, cursor)

    async def preview_change(
        self,
        run: str,
        action: Literal["cancel", "fork", "resume", "retry", "rewind"],
        *,
        seq: int | None = None,
        patch: Mapping[str, Any] | None = None,
    ) -> models.RunChangePreview:
        """What a resume, retry, fork, rewind or cancel would do: which nodes run again, which effects may

        happen once more, which questions are withdrawn or asked again. With a patch also what the new
        run would do: it is continued in memory. Nothing is changed, and nothing is done outside."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/preview",
            {"run": run},
            sent={"action": action},
            maybe={"seq": seq, "patch": patch},
        )
        return await self._json(request, models.RunChangePreview)

    async def result(self, run: str, *, wait: float | None = None) -> models.RunResult:
        """The result of a run. `wait`: at most this many seconds, until it has ended or waits for input."""
        request = request_of("GET", "/v1/runs/{run}/result", {"run": run}, query={"wait": wait}, wait=wait)
        return await self._json(request, models.RunResult)

    async def resume(
        self,
        run: str,
        *,
        checkpoint_id: str | None = None,
        input_data: Mapping[str, Any] | None = None,
        mode: Literal["fork", "resume", "rewind"] | None = None,
        accept_loss: bool | None = None,
        repeat_effects: bool | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.RunDetail:
        """Resume a run from its latest checkpoint or another.

        The latest checkpoint or the question that was just answered, and no `input_data`: the same run
        is resumed, 200, and the question is not asked again. An older checkpoint, or an input: a fork
        of it, 201 with its `Location` and `forked_from`; the run itself is not changed. A finished run:
        200, and nothing is executed."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/resume",
            {"run": run},
            maybe={
                "checkpoint_id": checkpoint_id,
                "input_data": input_data,
                "mode": mode,
                "accept_loss": accept_loss,
                "repeat_effects": repeat_effects,
            },
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return await self._json(request, models.RunDetail)

    async def rewind(
        self,
        run: str,
        *,
        checkpoint_id: str | None = None,
        seq: int | None = None,
        input_data: Mapping[str, Any] | None = None,
        patch: Mapping[str, Any] | None = None,
        repeat_effects: bool | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.RunDetail:
        """Replace this run by a fork: this one is cancelled, and both link to each other."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/rewind",
            {"run": run},
            maybe={
                "checkpoint_id": checkpoint_id,
                "seq": seq,
                "input_data": input_data,
                "patch": patch,
                "repeat_effects": repeat_effects,
            },
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return await self._json(request, models.RunDetail)

    async def steer(self, run: str, text: str, *, stage: str | None = None) -> models.SteerTaken:
        """Send a message to the agent that is running in the run. A model gets it once, after the tool
        calls that

        it makes now; a command-line agent in a further turn. 409 if no stage with an agent is active."""
        request = request_of(
            "POST", "/v1/runs/{run}/steer", {"run": run}, sent={"text": text}, maybe={"stage": stage}
        )
        return await self._json(request, models.SteerTaken)

    def stream(
        self,
        run: str,
        *,
        after: int | None = None,
        after_sequence: int | None = None,
        names: models.EventNames | None = None,
    ) -> AsyncEventStream:
        """A run's events as server-sent events, from its stored log.

        The id of each is its number: a client that reconnects with `Last-Event-ID` (browsers do) misses
        and repeats nothing. The stream ends after the last event of an ended run; 204: there is and
        will be nothing after that number. `names=seed`: `checkpoint_created`, `checkpoint_resumed` and
        `approval` with the fields of the runtime proposal, as under `/runs/{run}/stream`."""
        request = request_of(
            "GET",
            "/v1/runs/{run}/stream",
            {"run": run},
            query={"after": after, "after_sequence": after_sequence, "names": names},
        )
        return self._stream(request)

    async def take_in(
        self,
        content: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        as_new_run: bool | None = None,
        repeat_effects: bool | None = None,
    ) -> models.RunDetail:
        """Import an exported run as read-only history, or as a new run that continues from its end.

        Importing the same file again returns the same run. A new run of a flow that may ask people
        starts again with the run's input, because a file proves no decision: its `forked_from` says so.
        Where the file shows work with outside effects, that is refused with 409 and nothing is
        imported, unless `repeat_effects` is set."""
        request = request_of(
            "POST",
            "/v1/runs/import",
            query={"as_new_run": as_new_run, "repeat_effects": repeat_effects},
            content=content,
            headers=headers,
            media="application/octet-stream",
        )
        return await self._json(request, models.RunDetail)

    async def timeline(
        self,
        run: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        fold: Literal["items"] | None = None,
        within: str | None = None,
        since: int | None = None,
    ) -> models.Timeline:
        """Each visit of each node: its start, waits, questions, retries and outcome; the latest first
        page, and

        `next` for earlier ones."""
        request = request_of(
            "GET",
            "/v1/runs/{run}/timeline",
            {"run": run},
            query={"limit": limit, "cursor": cursor, "fold": fold, "within": within, "since": since},
        )
        return await self._json(request, models.Timeline)


class AsyncSchedules(AsyncGroup):
    """`client.schedules`."""

    async def delete(self, name: str, *, if_match: str | None = None) -> None:
        """Delete it. Runs that it has started continue."""
        request = request_of("DELETE", "/v1/schedules/{name}", {"name": name}, if_match=if_match)
        await self._none(request)

    async def fill(
        self,
        name: str,
        first: str,
        last: str,
        *,
        one_by_one: bool | None = None,
        dry_run: bool | None = None,
        idempotency_key: str | None = None,
    ) -> models.ScheduleFill:
        """Start the runs of its past instants in a range. An instant that has a run is left as it is."""
        request = request_of(
            "POST",
            "/v1/schedules/{name}/fill",
            {"name": name},
            sent={"first": first, "last": last},
            maybe={"one_by_one": one_by_one, "dry_run": dry_run},
            keyed=True,
            key=idempotency_key,
        )
        return await self._json(request, models.ScheduleFill)

    async def get(self, name: str) -> models.Schedule:
        """A schedule with its settings and state."""
        request = request_of("GET", "/v1/schedules/{name}", {"name": name})
        return await self._json(request, models.Schedule)

    async def history_of(self, name: str) -> Listing[models.Firing]:
        """What became of its instants, the newest first: the last hundred."""
        request = request_of("GET", "/v1/schedules/{name}/history", {"name": name})
        return await self._list(request, models.Firing)

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Schedule]:
        """The tenant's schedules, by name."""
        request = request_of("GET", "/v1/schedules")
        return self._pages(request, models.Schedule, limit, cursor)

    async def next(self, name: str, *, count: int | None = None) -> models.Instants:
        """Its next starts, if it is not paused."""
        request = request_of("GET", "/v1/schedules/{name}/next", {"name": name}, query={"count": count})
        return await self._json(request, models.Instants)

    async def pause(self, name: str, *, reason: str | None = None) -> models.Schedule:
        """Pause it until it is resumed."""
        request = request_of("POST", "/v1/schedules/{name}/pause", {"name": name}, maybe={"reason": reason})
        return await self._json(request, models.Schedule)

    async def put(
        self,
        name: str,
        flow: str,
        *,
        cron: str | None = None,
        every: str | None = None,
        at: str | None = None,
        zone: str | None = None,
        anchor: str | None = None,
        start: str | None = None,
        end: str | None = None,
        jitter: str | None = None,
        missed: Literal["all", "last", "skip"] | None = None,
        grace: str | None = None,
        overlap: Literal["allow", "cancel", "skip", "wait"] | None = None,
        input: Mapping[str, Any] | None = None,
        stamp: str | None = None,
        lane: str | None = None,
        priority: int | None = None,
        thread: str | None = None,
        instance_key: str | None = None,
        deployment: str | None = None,
        mode: Literal["barrier", "exit", "strict"] | None = None,
        if_match: str | None = None,
    ) -> models.Schedule:
        """Create (201) or change (200) a schedule. `If-Match`: only the version that you read."""
        request = request_of(
            "PUT",
            "/v1/schedules/{name}",
            {"name": name},
            sent={"flow": flow},
            maybe={
                "cron": cron,
                "every": every,
                "at": at,
                "zone": zone,
                "anchor": anchor,
                "start": start,
                "end": end,
                "jitter": jitter,
                "missed": missed,
                "grace": grace,
                "overlap": overlap,
                "input": input,
                "stamp": stamp,
                "lane": lane,
                "priority": priority,
                "thread": thread,
                "instance_key": instance_key,
                "deployment": deployment,
                "mode": mode,
            },
            if_match=if_match,
        )
        return await self._json(request, models.Schedule)

    async def resume(self, name: str) -> models.Schedule:
        """Resume it, from its next start."""
        request = request_of("POST", "/v1/schedules/{name}/resume", {"name": name})
        return await self._json(request, models.Schedule)

    async def trigger(
        self, name: str, *, input: Mapping[str, Any] | None = None, idempotency_key: str | None = None
    ) -> models.ScheduleTrigger:
        """Start one run now, in addition to its scheduled starts, even while it is paused."""
        request = request_of(
            "POST",
            "/v1/schedules/{name}/trigger",
            {"name": name},
            maybe={"input": input},
            keyed=True,
            key=idempotency_key,
        )
        return await self._json(request, models.ScheduleTrigger)


class AsyncSession(AsyncGroup):
    """`client.session`."""

    async def begin(self, token: str) -> None:
        """Sign in with a token in a browser: starts a session, which ends with the token."""
        request = request_of("POST", "/v1/session", sent={"token": token})
        await self._none(request)

    async def end(self) -> None:
        """Sign out, here and everywhere this session is used."""
        request = request_of("DELETE", "/v1/session")
        await self._none(request)

    async def get(self) -> models.Session:
        """The caller and their rights."""
        request = request_of("GET", "/v1/session")
        return await self._json(request, models.Session)

    async def get_preferences(self) -> models.Preferences:
        """Your own. Its ETag changes with each of your changes."""
        request = request_of("GET", "/v1/me/preferences")
        return await self._json(request, models.Preferences)

    async def put_preferences(
        self,
        *,
        language: str | None = None,
        time_zone: str | None = None,
        theme: Literal["dark", "light", "system"] | None = None,
        shortcuts: bool | None = None,
        notifications: models.NoticeChoices | Mapping[str, Any] | None = None,
        if_match: str | None = None,
    ) -> models.Preferences:
        """All of them at once; what is left out gets its default."""
        request = request_of(
            "PUT",
            "/v1/me/preferences",
            maybe={
                "language": language,
                "time_zone": time_zone,
                "theme": theme,
                "shortcuts": shortcuts,
                "notifications": notifications,
            },
            if_match=if_match,
        )
        return await self._json(request, models.Preferences)

    async def switch_tenant(self, tenant: str) -> None:
        """Continue in another of your tenants: a new session in place of this one. Only for browsers."""
        request = request_of("POST", "/v1/session/tenant", sent={"tenant": tenant})
        await self._none(request)


class AsyncSkills(AsyncGroup):
    """`client.skills`."""

    async def list(self, *, name: str | None = None) -> Listing[models.Skill]:
        """Every version of every skill, or of one."""
        request = request_of("GET", "/v1/skills", query={"name": name})
        return await self._list(request, models.Skill)

    async def publish(
        self,
        name: str,
        version: str,
        *,
        instructions: str | None = None,
        tools: Sequence[models.SkillTool | Mapping[str, Any]] | None = None,
        description: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> models.Skill:
        """Publish a version. It is immutable: the same content again has no effect, other content is
        refused."""
        request = request_of(
            "PUT",
            "/v1/skills/{name}/{version}",
            {"name": name, "version": version},
            maybe={"instructions": instructions, "tools": tools, "description": description, "data": data},
        )
        return await self._json(request, models.Skill)

    async def restore(self, name: str, version: str) -> models.Skill:
        """Undo a yank."""
        request = request_of(
            "POST", "/v1/skills/{name}/{version}/restore", {"name": name, "version": version}
        )
        return await self._json(request, models.Skill)

    async def yank(self, name: str, version: str, *, reason: str | None = None) -> models.Skill:
        """No new run gets it; runs that are pinned to it keep it."""
        request = request_of(
            "POST",
            "/v1/skills/{name}/{version}/yank",
            {"name": name, "version": version},
            maybe={"reason": reason},
        )
        return await self._json(request, models.Skill)


class AsyncThreads(AsyncGroup):
    """`client.threads`."""

    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Thread]:
        """The tenant's threads, the one with the newest run first."""
        request = request_of("GET", "/v1/threads")
        return self._pages(request, models.Thread, limit, cursor)

    def runs(
        self,
        thread: str,
        *,
        status: Sequence[models.RunStatus] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Run]:
        """The runs of a thread, newest first."""
        request = request_of("GET", "/v1/threads/{thread}/runs", {"thread": thread}, query={"status": status})
        return self._pages(request, models.Run, limit, cursor)

    async def say(
        self,
        thread: str,
        content: str | Mapping[str, Any] | None = None,
        *,
        flow: str | None = None,
        workflow_uri: str | None = None,
        version: str | None = None,
        input: Mapping[str, Any] | None = None,
        lane: str | None = None,
        priority: int | None = None,
        instance_key: str | None = None,
        deployment: str | None = None,
        mode: Literal["barrier", "exit", "strict"] | None = None,
        breaks: Sequence[str] | None = None,
        wait: float | None = None,
        request_id: str | None = None,
        auto_resume_pending: bool | None = None,
        idempotency_key: str | None = None,
    ) -> models.RunDetail:
        """Send a message to a thread.

        If a run of it waits for input, the message is the answer: 200 and that run, which resumes (409
        if several questions are open and none is named; 404 or 409 if the named one is not there or was
        decided). Otherwise, and with `auto_resume_pending=false`, it starts a run of `flow` in the
        thread: 201."""
        request = request_of(
            "POST",
            "/v1/threads/{thread}/runs",
            {"thread": thread},
            query={"auto_resume_pending": auto_resume_pending},
            maybe={
                "flow": flow,
                "workflow_uri": workflow_uri,
                "version": version,
                "input": input,
                "lane": lane,
                "priority": priority,
                "instance_key": instance_key,
                "deployment": deployment,
                "mode": mode,
                "breaks": breaks,
                "wait": wait,
                "content": content,
                "request_id": request_id,
            },
            keyed=True,
            key=idempotency_key,
            wait=wait,
        )
        return await self._json(request, models.RunDetail)


class AsyncTokens(AsyncGroup):
    """`client.tokens`."""

    async def create(
        self,
        subject: str,
        *,
        roles: Sequence[str] | None = None,
        rights: Sequence[models.Right] | None = None,
        groups: Sequence[str] | None = None,
        expires_at: str | None = None,
        never_expires: bool | None = None,
        note: str | None = None,
    ) -> models.Token:
        """Create a token of this tenant, with at most your own rights. Its text is shown only now.

        It expires after 90 days, or at `expires_at`; with `never_expires` it does not expire."""
        request = request_of(
            "POST",
            "/v1/tokens",
            sent={"subject": subject},
            maybe={
                "roles": roles,
                "rights": rights,
                "groups": groups,
                "expires_at": expires_at,
                "never_expires": never_expires,
                "note": note,
            },
        )
        return await self._json(request, models.Token)

    async def list(self) -> Listing[models.Token]:
        """The tenant's tokens, newest first, without their text."""
        request = request_of("GET", "/v1/tokens")
        return await self._list(request, models.Token)

    async def revoke(self, token: str) -> models.Token:
        """Revoke it: on this server at once, on others within five seconds."""
        request = request_of("DELETE", "/v1/tokens/{token}", {"token": token})
        return await self._json(request, models.Token)


class AsyncViews(AsyncGroup):
    """`client.views`."""

    async def change(
        self,
        view: str,
        title: str,
        filters: models.Filters | Mapping[str, Any],
        *,
        order: models.HoldOrder | None = None,
        shared: bool | None = None,
        if_match: str | None = None,
    ) -> models.SavedView:
        """Change it, as its owner or an admin. `If-Match`: only the version that you read."""
        request = request_of(
            "PUT",
            "/v1/views/{view}",
            {"view": view},
            sent={"title": title, "filters": filters},
            maybe={"order": order, "shared": shared},
            if_match=if_match,
        )
        return await self._json(request, models.SavedView)

    async def delete(self, view: str) -> None:
        """Delete it; the holds stay."""
        request = request_of("DELETE", "/v1/views/{view}", {"view": view})
        await self._none(request)

    async def get(self, view: str) -> models.SavedView:
        """One view."""
        request = request_of("GET", "/v1/views/{view}", {"view": view})
        return await self._json(request, models.SavedView)

    def holds(
        self, view: str, *, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Hold]:
        """The holds of a view that you may see."""
        request = request_of("GET", "/v1/views/{view}/holds", {"view": view})
        return self._pages(request, models.Hold, limit, cursor)

    async def list(self, *, counts: bool | None = None) -> Listing[models.SavedView]:
        """Your views and shared ones, by title. `counts=true`: with the number of holds for you."""
        request = request_of("GET", "/v1/views", query={"counts": counts})
        return await self._list(request, models.SavedView)

    async def save(
        self,
        title: str,
        filters: models.Filters | Mapping[str, Any],
        *,
        order: models.HoldOrder | None = None,
        shared: bool | None = None,
    ) -> models.SavedView:
        """Save filters of holds under a title."""
        request = request_of(
            "POST",
            "/v1/views",
            sent={"title": title, "filters": filters},
            maybe={"order": order, "shared": shared},
        )
        return await self._json(request, models.SavedView)


class AsyncGroups:
    """One attribute for each theme of the API."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.admin = AsyncAdmin(transport)
        self.arrangements = AsyncArrangements(transport)
        self.audit = AsyncAudit(transport)
        self.calendars = AsyncCalendars(transport)
        self.callbacks = AsyncCallbacks(transport)
        self.checkpoints = AsyncCheckpoints(transport)
        self.dead = AsyncDead(transport)
        self.deployments = AsyncDeployments(transport)
        self.directory = AsyncDirectory(transport)
        self.documents = AsyncDocuments(transport)
        self.flows = AsyncFlows(transport)
        self.graph = AsyncGraph(transport)
        self.holds = AsyncHolds(transport)
        self.inbound = AsyncInbound(transport)
        self.limits = AsyncLimits(transport)
        self.metrics = AsyncMetrics(transport)
        self.notices = AsyncNotices(transport)
        self.pipelines = AsyncPipelines(transport)
        self.policies = AsyncPolicies(transport)
        self.queues = AsyncQueues(transport)
        self.runs = AsyncRuns(transport)
        self.schedules = AsyncSchedules(transport)
        self.session = AsyncSession(transport)
        self.skills = AsyncSkills(transport)
        self.threads = AsyncThreads(transport)
        self.tokens = AsyncTokens(transport)
        self.views = AsyncViews(transport)
