"""The public conformance tool speaks to our server, with both families of revisions.

Most of its scenarios are about tools, prompts and resources that it brings the names of, for servers that are
made to be tested. Those of them that go through what is ours (a plain answer, an error, progress) are added
here; the others are named below with the reason why they fail, and nothing else may fail.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec
import pytest
from starlette.requests import Request

from holdfast import Holdfast, Worker
from holdfast.api.app import ApiSettings, build
from holdfast.api.auth.authenticator import Authenticator
from holdfast.api.auth.host_guard import hosts_for
from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import Right
from holdfast.api.routes.all import THEMES
from holdfast.api.server import HttpServer
from holdfast.errors import InputError
from holdfast.integrations.ask_people_flow import ask_people
from holdfast.integrations.mcp import server
from holdfast.integrations.mcp.caller import McpCaller, Progress, agent_here
from holdfast.integrations.mcp.http import routes
from holdfast.integrations.mcp.tool_registry import ToolRegistry
from tests.services import mcp as conformance

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SERVER-MCP-03")]

FIXTURES: Final = "It wants tools, prompts or resources of its own, with images, sound and other content."
ASKING_CLIENTS: Final = "It wants tools that ask the client (elicitation, sampling, roots); we ask people."
NOT_OFFERED: Final = "Optional, and not among our capabilities."

EXCUSED: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
            "tools-call-mixed-content", "resources-read-text", "resources-read-binary",
            "resources-templates-read", "prompts-get-simple", "prompts-get-with-args",
            "prompts-get-embedded-resource", "prompts-get-with-image", "json-schema-2020-12-tool-found",
            "sep-2243-server-no-xmcp-tool", "sep-2243-server-decode-base64",
            "sep-2243-server-validate-param-match", "sep-2243-server-reject-invalid-param-chars",
            "sep-2243-server-reject-param-mismatch", "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400", "sep-2575-server-no-log-without-loglevel",
        ),
        FIXTURES,
    ),
    **dict.fromkeys(
        (
            "tools-call-sampling", "tools-call-elicitation", "elicitation-sep1034-general",
            "elicitation-sep1330-general", "sep-2322-elicitation-incomplete",
            "sep-2322-sampling-incomplete", "sep-2322-list-roots-incomplete",
            "sep-2322-request-state-incomplete", "sep-2322-multiple-inputs-incomplete",
            "sep-2322-multi-round-r1", "sep-2322-non-tool-incomplete", "sep-2322-result-type-included",
            "sep-2322-reject-tampered-state", "sep-2322-respect-client-capabilities",
            "sep-2575-http-server-no-independent-requests-on-stream",
        ),
        ASKING_CLIENTS,
    ),
    **dict.fromkeys(
        (
            "completion-complete", "logging-set-level", "tools-call-with-logging",
            # Of the revisions with sessions. The newer one subscribes by a stream, which we serve.
            "resources-subscribe", "resources-unsubscribe",
        ),
        NOT_OFFERED,
    ),
}  # fmt: skip
PASSED: Final = {
    "2025-11-25": {
        "server-initialize", "ping", "tools-list", "tools-call-simple-text", "tools-call-error",
        "tools-call-with-progress", "resources-list", "prompts-list", "dns-rebinding-protection",
    },
    "2026-07-28": {
        "tools-list", "tools-call-simple-text", "tools-call-error", "tools-call-with-progress",
        "server-sse-multiple-streams", "resources-list", "sep-2164-resource-not-found", "prompts-list",
        "dns-rebinding-protection", "caching", "http-header-validation",
        "input-required-result-missing-input-response", "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params", "input-required-result-validate-input",
    },
}  # fmt: skip
"""Scenarios with nothing that failed; in `server-stateless` only what needs tools of its own does."""


class OpenDoor(Authenticator):
    """The tool has no credential to show."""

    async def authenticate(self, request: Request) -> Principal | None:
        return agent_here("service:conformance")


class Given(msgspec.Struct, forbid_unknown_fields=True):
    pass


class Said(msgspec.Struct):
    text: str


theirs: Final = ToolRegistry()


@theirs.tool(needs=Right.runs_read)
async def test_simple_text(agent: McpCaller, given: Given, progress: Progress) -> Said:
    """Says something."""
    return Said(text="This is a simple text response for testing.")


@theirs.tool(needs=Right.runs_read)
async def test_error_handling(agent: McpCaller, given: Given, progress: Progress) -> Said:
    """Fails."""
    raise InputError("this tool intentionally returns an error for testing.")


@theirs.tool(needs=Right.runs_read)
async def test_tool_with_progress(agent: McpCaller, given: Given, progress: Progress) -> Said:
    """Takes its time."""
    for done in (0, 50, 100):
        await progress(done, 100, f"{done} of 100")
    return Said(text="done")


for each in (test_simple_text, test_error_handling, test_tool_with_progress):
    each.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize("revision", list(PASSED))
async def test_server_conforms(revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conformance.installed()
    monkeypatch.setattr(server, "TOOLS", {**server.TOOLS, **theirs.found})
    async with Holdfast(f"sqlite:{tmp_path / 'm.db'}") as hf, Worker(ask_people, on=hf):
        settings = ApiSettings(hosts=hosts_for("127.0.0.1", None))
        app = build(hf, OpenDoor(hf), settings, [*THEMES, routes])
        serving = HttpServer(app, host="127.0.0.1", port=0)
        listening = asyncio.create_task(serving.serve())
        try:
            found = await conformance.checks(f"{serving.address}/mcp", revision, tmp_path / "out")
        finally:
            serving.stop()
            await listening
    failed = {name: [each["id"] for each in of if each["status"] == "FAILURE"] for name, of in found.items()}
    # Tasks are an extension, which we do not offer: a question to people is one by itself.
    unexpected = {
        (name, check)
        for name, ids in failed.items()
        for check in ids
        if not name.startswith("tasks-") and check not in EXCUSED
    }
    assert unexpected == set()
    assert PASSED[revision] - {name for name, ids in failed.items() if not ids} == set()
