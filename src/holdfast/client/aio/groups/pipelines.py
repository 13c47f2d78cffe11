"""`client.pipelines`."""

# Written by tools/client.py from the OpenAPI document. Do not change it here.
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.client import models
from holdfast.client.aio.group import AsyncGroup
from holdfast.client.aio.streams import AsyncEventStream
from holdfast.client.requests import request_of


class AsyncPipelines(AsyncGroup):
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
        """Answer what a pipeline asks.

        The first answer counts: 409 for the next, which says whose that was. 422 for what is none of
        them."""
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
        """Ask a pipeline to stop. Whoever has it does so at the next moment; its open questions are
        withdrawn."""
        request = request_of(
            "POST", "/v1/pipelines/{run}/cancel", {"run": run}, maybe={"reason": reason}, if_match=if_match
        )
        return await self._json(request, models.Pipeline)

    async def checkpoint(self, run: str) -> dict[str, Any]:
        """Where the pipeline stands, as its `checkpoint.json` has it."""
        request = request_of("GET", "/v1/pipelines/{run}/checkpoint", {"run": run})
        return await self._json(request, dict[str, Any])

    async def context(self, run: str) -> dict[str, Any]:
        """The values that its stages hand to each other, by key."""
        request = request_of("GET", "/v1/pipelines/{run}/context", {"run": run})
        return await self._json(request, dict[str, Any])

    async def get(self, run: str) -> models.Pipeline:
        """How far a pipeline is."""
        request = request_of("GET", "/v1/pipelines/{run}", {"run": run})
        return await self._json(request, models.Pipeline)

    async def graph(self, run: str) -> str:
        """The pipeline drawn as SVG: each stage coloured by its state, and the edges that were taken."""
        request = request_of("GET", "/v1/pipelines/{run}/graph", {"run": run})
        return await self._text(request)

    async def questions(self, run: str) -> models.QuestionList:
        """What a pipeline asks now, as far as it is for you to see."""
        request = request_of("GET", "/v1/pipelines/{run}/questions", {"run": run})
        return await self._json(request, models.QuestionList)

    def stream(self, run: str, *, after: int | None = None) -> AsyncEventStream:
        """A pipeline's events as server-sent events, in the words of section 9.6, from its stored log.

        A client that connects later gets every event from the first; one that reconnects with
        `Last-Event-ID` misses nothing and hears nothing twice. The stream ends behind the last event of
        a run that has ended; 204: there is nothing after that id, and nothing will come."""
        request = request_of("GET", "/v1/pipelines/{run}/events", {"run": run}, query={"after": after})
        return self._stream(request)

    async def submit(
        self,
        dot: str,
        *,
        context: Mapping[str, Any] | None = None,
        simulate: bool | None = None,
        strict: bool | None = None,
        thread: str | None = None,
        lane: str | None = None,
        idempotency_key: str | None = None,
    ) -> models.Pipeline:
        """Start a pipeline; durable when this answers, and taken by any worker.

        400 with every fault of the document at its place. 403 for commands and files, unless the
        operator allows them (`holdfast serve --allow-code`)."""
        request = request_of(
            "POST",
            "/v1/pipelines",
            sent={"dot": dot},
            maybe={
                "context": context,
                "simulate": simulate,
                "strict": strict,
                "thread": thread,
                "lane": lane,
            },
            keyed=True,
            key=idempotency_key,
        )
        return await self._json(request, models.Pipeline)
