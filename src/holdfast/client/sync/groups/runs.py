"""`client.runs`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/runs.py. Do not change it here.

# ruff: noqa: A002
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group, Listing
from holdfast.client.sync.pages import Pages
from holdfast.client.sync.streams import EventStream


class Runs(Group):
    def artifact(self, run: str, name: str) -> bytes:
        """One of them as a file: bytes as they are, text as text, all else as JSON."""
        request = request_of("GET", "/v1/runs/{run}/artifacts/{name}", {"run": run, "name": name})
        return self._bytes(request)

    def artifacts(self, run: str) -> Listing[models.Artifact]:
        """What the run has made so far, by name."""
        request = request_of("GET", "/v1/runs/{run}/artifacts", {"run": run})
        return self._list(request, models.Artifact)

    def cancel(self, run: str, *, reason: str | None = None, if_match: str | None = None) -> models.RunDetail:
        """Cancel a run. Its worker stops it as soon as possible; its open holds are withdrawn."""
        request = request_of(
            "POST", "/v1/runs/{run}/cancel", {"run": run}, maybe={"reason": reason}, if_match=if_match
        )
        return self._json(request, models.RunDetail)

    def checkpoint(self, run: str, checkpoint: str) -> models.CheckpointDetail:
        """A checkpoint with the states of its nodes: by its id, the number of its record, or `latest`."""
        request = request_of(
            "GET", "/v1/runs/{run}/checkpoints/{checkpoint}", {"run": run, "checkpoint": checkpoint}
        )
        return self._json(request, models.CheckpointDetail)

    def checkpoints(
        self, run: str, *, node: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Pages[models.CheckpointSummary]:
        """A run's checkpoints, newest first, without their state."""
        request = request_of("GET", "/v1/runs/{run}/checkpoints", {"run": run}, query={"node": node})
        return self._pages(request, models.CheckpointSummary, limit, cursor)

    def create(
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

        201 with its `Location`; 200 and the same run for a key that was used before, 422 where the key
        was used for another input."""
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
        return self._json(request, models.RunDetail)

    def diff(self, run: str, to: str, *, at: str | None = None, whole: bool | None = None) -> dict[str, Any]:
        """What differs from this run, or a moment `at` of it, to another moment: values, visits, their
        cost."""
        request = request_of(
            "GET", "/v1/runs/{run}/diff", {"run": run}, query={"to": to, "at": at, "whole": whole}
        )
        return self._json(request, dict[str, Any])

    def drawing(self, run: str) -> str:
        """The run's graph with the state of each node, as SVG."""
        request = request_of("GET", "/v1/runs/{run}/drawing", {"run": run})
        return self._text(request)

    def events(self, run: str, *, after: int | None = None, limit: int | None = None) -> models.EventPage:
        """The stored log after a number, oldest first: nothing twice, nothing missing."""
        request = request_of(
            "GET", "/v1/runs/{run}/events", {"run": run}, query={"after": after, "limit": limit}
        )
        return self._json(request, models.EventPage)

    def export(self, run: str) -> bytes:
        """The run with its whole history as a file, for another store; encrypted where the store is."""
        request = request_of("GET", "/v1/runs/{run}/export", {"run": run})
        return self._bytes(request)

    def fork(
        self,
        run: str,
        *,
        checkpoint_id: str | None = None,
        seq: int | None = None,
        input_data: Mapping[str, Any] | None = None,
        patch: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.RunDetail:
        """A new run that begins at a checkpoint of this one. This one is not changed."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/fork",
            {"run": run},
            maybe={"checkpoint_id": checkpoint_id, "seq": seq, "input_data": input_data, "patch": patch},
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return self._json(request, models.RunDetail)

    def get(self, run: str) -> models.RunDetail:
        """One run."""
        request = request_of("GET", "/v1/runs/{run}", {"run": run})
        return self._json(request, models.RunDetail)

    def input(
        self,
        run: str,
        content: str | Mapping[str, Any],
        *,
        request_id: str | None = None,
        checkpoint_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.InputTaken:
        """Answer what a run asks, from any device; the body is read as JSON whatever its content type.

        A text is an answer's id, then its label, whatever the case: 422 with the ids where it is
        neither. 409 where several questions are open and none is named, and where it is decided
        already."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/input",
            {"run": run},
            sent={"content": content},
            maybe={"request_id": request_id, "checkpoint_id": checkpoint_id},
            keyed=True,
            key=idempotency_key,
        )
        return self._json(request, models.InputTaken)

    def list(
        self,
        *,
        status: Sequence[models.RunStatus] | None = None,
        flow: str | None = None,
        version: str | None = None,
        thread: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Run]:
        """The tenant's runs, newest first."""
        request = request_of(
            "GET", "/v1/runs", query={"status": status, "flow": flow, "version": version, "thread": thread}
        )
        return self._pages(request, models.Run, limit, cursor)

    def pending(
        self,
        *,
        thread: str | None = None,
        mine: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Pages[models.Pending]:
        """Runs that wait for input, with their questions: the newest question first.

        With `mine` a page may be short although `next` leads on: it is found among so many questions
        only."""
        request = request_of("GET", "/v1/runs/pending", query={"thread": thread, "mine": mine})
        return self._pages(request, models.Pending, limit, cursor)

    def result(self, run: str, *, wait: float | None = None) -> models.RunResult:
        """The result of a run. `wait`: at most this many seconds, until it has ended or waits for input."""
        request = request_of("GET", "/v1/runs/{run}/result", {"run": run}, query={"wait": wait}, wait=wait)
        return self._json(request, models.RunResult)

    def resume(
        self,
        run: str,
        *,
        checkpoint_id: str | None = None,
        input_data: Mapping[str, Any] | None = None,
        mode: Literal["fork", "resume", "rewind"] | None = None,
        accept_loss: bool | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.RunDetail:
        """Resume a run from its latest checkpoint or another.

        The latest checkpoint and no `input_data`: the same run is resumed, 200. An older checkpoint, or
        an input: a fork of it, 201 with its `Location` and `forked_from`; the run itself is left as it
        is. A finished run: 200, and nothing is executed."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/resume",
            {"run": run},
            maybe={
                "checkpoint_id": checkpoint_id,
                "input_data": input_data,
                "mode": mode,
                "accept_loss": accept_loss,
            },
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return self._json(request, models.RunDetail)

    def rewind(
        self,
        run: str,
        *,
        checkpoint_id: str | None = None,
        seq: int | None = None,
        input_data: Mapping[str, Any] | None = None,
        patch: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> models.RunDetail:
        """A fork that takes this run's place: this one ends as cancelled, with links both ways."""
        request = request_of(
            "POST",
            "/v1/runs/{run}/rewind",
            {"run": run},
            maybe={"checkpoint_id": checkpoint_id, "seq": seq, "input_data": input_data, "patch": patch},
            keyed=True,
            key=idempotency_key,
            if_match=if_match,
        )
        return self._json(request, models.RunDetail)

    def stream(
        self,
        run: str,
        *,
        after: int | None = None,
        after_sequence: int | None = None,
        names: models.EventNames | None = None,
    ) -> EventStream:
        """A run's events as server-sent events, from its stored log.

        The id of each is its number: a client that reconnects with `Last-Event-ID` (browsers do) misses
        nothing and sees nothing twice. The stream ends after the last event of a run that has ended;
        204: there is nothing after that number, and nothing will come. `names=seed`:
        `checkpoint_created`, `checkpoint_resumed` and `approval` with the fields of the runtime
        proposal, as under `/runs/{run}/stream`."""
        request = request_of(
            "GET",
            "/v1/runs/{run}/stream",
            {"run": run},
            query={"after": after, "after_sequence": after_sequence, "names": names},
        )
        return self._stream(request)

    def take_in(
        self, content: bytes, *, headers: Mapping[str, str] | None = None, as_new_run: bool | None = None
    ) -> models.RunDetail:
        """Import an exported run as read-only history, or as a new run that continues from its end.

        The same file again gives the same run."""
        request = request_of(
            "POST",
            "/v1/runs/import",
            query={"as_new_run": as_new_run},
            content=content,
            headers=headers,
            media="application/octet-stream",
        )
        return self._json(request, models.RunDetail)

    def timeline(self, run: str, *, limit: int | None = None) -> models.Timeline:
        """Each visit of each node: when it began, waited, asked, tried again, and what came of it."""
        request = request_of("GET", "/v1/runs/{run}/timeline", {"run": run}, query={"limit": limit})
        return self._json(request, models.Timeline)
