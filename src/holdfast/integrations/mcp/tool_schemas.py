"""Input and output of the tools for questions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from holdfast.api.pagination import Cursor, Limit
from holdfast.api.schemas.common import Name

LONGEST_WAIT = 55
"""Seconds: many clients time out a tool after a minute."""

Wait = Annotated[
    float,
    msgspec.Meta(ge=0, le=LONGEST_WAIT, description="Maximum seconds to wait; 0: answer at once."),
]
Words = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="The id from ask_people.")]
RunName = Annotated[str, msgspec.Meta(min_length=1, max_length=200, description="The id of a run.")]


class QuestionChoice(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An answer to choose. `id` is returned as the decision."""

    id: Name
    label: Name | None = None
    variant: Literal["primary", "secondary", "danger"] = "secondary"
    requires_comment: bool = False


class AskPeopleInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    question: Annotated[Words, msgspec.Meta(description="What people read. Say what depends on the answer.")]
    choices: Annotated[
        list[Name | QuestionChoice],
        msgspec.Meta(max_length=50, description="The answers to choose from; none: a free text."),
    ] = []
    form: Annotated[
        dict[str, Any] | None,
        msgspec.Meta(description="A JSON Schema of an object: further fields to fill in."),
    ] = None
    assignee: Annotated[
        Name | None,
        msgspec.Meta(description="user:NAME, group:NAME or role:NAME; none: an administrator assigns it."),
    ] = None
    deadline: Annotated[
        Name | None, msgspec.Meta(description="Time to answer: 30m, 24h, 7d. None: no deadline.")
    ] = None
    on_deadline: Annotated[
        str,
        msgspec.Meta(
            # No default answer: an agent could set an approval with a deadline of one second.
            pattern="^(fail|cancel|escalate:[^\\x00]+)$",
            max_length=200,
            description="fail: it expires; cancel: it is withdrawn; escalate:WHO: it is reassigned to them.",
        ),
    ] = "fail"
    priority: Literal["low", "normal", "high", "critical"] = "normal"
    context: Annotated[dict[str, Any], msgspec.Meta(description="Facts that are shown with it.")] = {}
    idempotency_key: Annotated[
        Name | None, msgspec.Meta(description="Calls with the same key ask one question.")
    ] = None
    wait_seconds: Wait = 0


class CheckAnswerInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    id: Id
    wait_seconds: Wait = 0


class ListQuestionsInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    status: Literal["pending", "resolved", "expired", "cancelled", "any"] = "pending"
    limit: Limit = 20
    cursor: Cursor | None = None


class WithdrawQuestionInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    id: Id
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] = "withdrawn by the agent"


class CommentInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    id: Id
    text: Words


class ReplyInput(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    id: Id
    text: Words
    question: Annotated[
        Name | None, msgspec.Meta(description="Which of `asked_back`; none: the only one.")
    ] = None


class FollowUpQuestion(msgspec.Struct, kw_only=True):
    """A person asks for more information before they decide: answer with reply_to_people."""

    question: str
    by: str
    text: str


class QuestionComment(msgspec.Struct, kw_only=True):
    by: str
    at: str | None
    text: str


class McpQuestionView(msgspec.Struct, kw_only=True):
    """A question to people. `status`: opening, pending, resolved, expired or cancelled; only `resolved` is an
    answer, and only a person gave it. `next`: what to do now."""

    id: str
    run: str
    status: str
    question: str
    next: str
    assignee: str | None = None
    choices: list[str] | None = None
    asked_at: str | None = None
    deadline: str | None = None
    decision: Any = None
    data: Any = None
    comment: str | None = None
    decided_by: str | None = None
    decided_at: str | None = None
    asked_back: list[FollowUpQuestion] = []
    comments: list[QuestionComment] = []
    page: Annotated[str | None, msgspec.Meta(description="The page on which a person decides it.")] = None


class McpQuestionList(msgspec.Struct, kw_only=True):
    items: list[McpQuestionView]
    next: str | None = None


class CommentResult(msgspec.Struct, kw_only=True):
    id: str
    comment: str
