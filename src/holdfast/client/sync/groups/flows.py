"""`client.flows`."""

# Written by tools/client.py from src/holdfast/client/aio/groups/flows.py. Do not change it here.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.client import models
from holdfast.client.requests import request_of
from holdfast.client.sync.group import Group, Listing


class Flows(Group):
    def check(self, flow: str) -> models.FlowCheck:
        """What the newest version that is loaded here means for live runs on others: which fit, and why
        not."""
        request = request_of("GET", "/v1/flows/{flow}/check", {"flow": flow})
        return self._json(request, models.FlowCheck)

    def drawing(self, flow: str, version: str) -> str:
        """The graph of a version, as SVG."""
        request = request_of(
            "GET", "/v1/flows/{flow}/versions/{version}/drawing", {"flow": flow, "version": version}
        )
        return self._text(request)

    def get(self, flow: str) -> models.Flow:
        """A flow's versions, newest first."""
        request = request_of("GET", "/v1/flows/{flow}", {"flow": flow})
        return self._json(request, models.Flow)

    def list(self) -> Listing[models.Flow]:
        """Every flow that the store knows, by name, with its versions."""
        request = request_of("GET", "/v1/flows")
        return self._list(request, models.Flow)

    def register(
        self, *, graph: Mapping[str, Any] | None = None, flow: str | None = None
    ) -> models.FlowGraph:
        """Keep a version of a flow: 201, or 200 where it is known already.

        A graph is data: it brings no code. Its runs advance on workers that have code of the same
        graph."""
        request = request_of("POST", "/v1/flows", maybe={"graph": graph, "flow": flow})
        return self._json(request, models.FlowGraph)

    def validate(
        self, *, graph: Mapping[str, Any] | None = None, flow: str | None = None
    ) -> models.FlowValidation:
        """Every problem of a flow at once, each with its place and how to fix it. Nothing is stored or
        run."""
        request = request_of("POST", "/v1/flows/validate", maybe={"graph": graph, "flow": flow})
        return self._json(request, models.FlowValidation)

    def version(self, flow: str, version: str) -> models.FlowGraph:
        """The graph of a version: by its fingerprint, its label, or `latest`."""
        request = request_of("GET", "/v1/flows/{flow}/versions/{version}", {"flow": flow, "version": version})
        return self._json(request, models.FlowGraph)
