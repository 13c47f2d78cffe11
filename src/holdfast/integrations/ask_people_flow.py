"""The flow of `ask_people`: one durable question, with its answer as the run's state.

`holdfast worker`, `serve` and `mcp` always serve it, even if the MCP library is not installed.
"""

from __future__ import annotations

from typing import Any, Final, TypedDict

from holdfast.app.flow import Flow
from holdfast.errors import InputError
from holdfast.runs.context.context import Context

NAME: Final = "ask-people"
MANNER: Final = frozenset({"assignee", "priority", "context", "tags", "timeout", "on_timeout"})


class AskPeopleState(TypedDict, total=False):
    question: str
    choices: list[Any] | None
    form: dict[str, Any] | None
    manner: dict[str, Any]
    decision: Any
    data: Any
    comment: str | None
    decided_by: str | None


ask_people: Final = Flow(NAME, state=AskPeopleState)


# A question may stay open for months, over several releases of this code. `version=` on the node would make
# another version of the graph, which old runs are not pinned to. So the marks of earlier code that took the
# same steps are listed here: a run that was started under one of them resumes with this code. A change that
# takes other steps needs a new version of the flow, and a worker that still serves the old one.
EARLIER_CODE: Final = ("c1-430c60babf547d6af73b916f", "c1-05a27265981406466d68440b")


@ask_people.node(effect="pure", compatible_with=EARLIER_CODE)
async def ask(s: Any, ctx: Context) -> dict[str, Any]:
    _require_that_people_decide(s["manner"])
    reply = await ctx.ask(s["question"], options=s["choices"], form=s["form"], **s["manner"])
    return {"decision": reply.decision, "data": reply.data, "comment": reply.comment, "decided_by": reply.by}


def _require_that_people_decide(manner: dict[str, Any]) -> None:
    """It can be started as a run, too, past the tool: a default answer, or an agent that may decide its own
    question, would be an approval that no person gave. Raises InputError."""
    lapses = str(manner.get("on_timeout", "fail")).partition(":")[0]
    if not manner.keys() <= MANNER or lapses not in ("fail", "cancel", "escalate"):
        raise InputError("only people answer what an agent asks.", hint="Ask with ask_people.", flow=NAME)
