"""Runs and questions as resources, which an agent can read and subscribe to."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from holdfast.api.auth.rights import Right
from holdfast.api.routes.run_list import list_runs
from holdfast.api.schemas.runs import ListRuns
from holdfast.errors import NotFoundError
from holdfast.integrations.ask_people_flow import NAME
from holdfast.integrations.mcp.caller import McpCaller
from holdfast.integrations.mcp.question_tools import list_questions
from holdfast.integrations.mcp.question_view import view_question
from holdfast.integrations.mcp.run_tools import run_view
from holdfast.integrations.mcp.tool_schemas import ListQuestionsInput, McpQuestionList
from holdfast.types.redaction import redactor

MEDIA: Final = "application/json"
_URI: Final = re.compile(r"holdfast://(runs|questions)/([^/?#\s]{1,200})\Z")


class ResourceTemplate(msgspec.Struct, frozen=True):
    uri: str
    name: str
    about: str
    needs: Right


TEMPLATES: Final = (
    ResourceTemplate(
        "holdfast://runs/{run}", "run", "The state of a run, and what it waits for.", Right.runs_read
    ),
    ResourceTemplate(
        "holdfast://questions/{id}", "question", "A question to people, and its answer.", Right.holds_read
    ),
)


class ResourceEntry(msgspec.Struct, frozen=True):
    uri: str
    name: str
    about: str


async def list_resources(agent: McpCaller, cursor: str | None) -> tuple[list[ResourceEntry], str | None]:
    """The agent's open questions on the first page, then runs of the tenant, newest first."""
    found: list[ResourceEntry] = []
    if cursor is None and agent.principal.may(Right.holds_read):
        asked: McpQuestionList = await list_questions(agent, ListQuestionsInput(limit=50), ignore_progress)
        found += [
            ResourceEntry(f"holdfast://questions/{each.id}", f"question {each.id}", each.question[:200])
            for each in asked.items
        ]
    if not agent.principal.may(Right.runs_read):
        return found, None
    page = await list_runs(agent.call, ListRuns(cursor=cursor, limit=50))
    found += [
        ResourceEntry(f"holdfast://runs/{run.id}", f"run {run.id}", f"{run.flow}: {run.status}")
        for run in page.items
        if run.flow != NAME
    ]
    return found, page.next


async def read_resource(agent: McpCaller, uri: str) -> bytes:
    """The resource as JSON. Raises NotFoundError for an unknown address."""
    kind, name = parts_of(uri)
    agent.require(Right.runs_read if kind == "runs" else Right.holds_read)
    if kind == "runs":
        service = await agent.call.runs()
        row = await service.get(name, tenant=agent.call.tenant)
        return redactor.redact_json(msgspec.json.encode(await run_view(agent, row)))
    people = await agent.call.holds()
    question = await view_question(agent, await people.get(agent.call.actor, name))
    return redactor.redact_json(msgspec.json.encode(question))


async def version_of(agent: McpCaller, uri: str) -> str:
    """A text that changes whenever the resource does."""
    kind, name = parts_of(uri)
    agent.require(Right.runs_read if kind == "runs" else Right.holds_read)
    if kind == "runs":
        row = await (await agent.call.runs()).get(name, tenant=agent.call.tenant)
        return f"{row.status}.{row.event_seq}"
    return str((await (await agent.call.holds()).get(agent.call.actor, name)).version)


def parts_of(uri: str) -> tuple[str, str]:
    found = _URI.match(uri)
    if found is None:
        raise NotFoundError(
            f"there is no resource at {uri[:200]!r}.",
            hint=f"Known: {' and '.join(each.uri for each in TEMPLATES)}.",
        )
    return found[1], found[2]


async def ignore_progress(_done: float, _total: float | None, _message: str | None) -> None:
    """For callers that did not ask for progress."""
