"""Flows with long texts, and one that a judge answers beside people."""

from __future__ import annotations

from typing import Any

from holdfast import Flow, Judgement

LABEL = "Approve the refund in full and tell the customer that it was our mistake, with an apology " * 2
PROMPT = "Long question\n\n" + "A sentence of the question that a person reads. " * 420
ERROR = "The bank refused the transfer because of a rule that it explains at length. " * 66

long_label = Flow[Any]("long_label", effect="pure")
long_label.hold(
    "decide",
    prompt="Refund?",
    options=[{"id": "yes", "label": LABEL.strip()}, "no"],
    assignee="user:local",
)

long_prompt = Flow[Any]("long_prompt", effect="pure")
long_prompt.hold("decide", prompt=PROMPT, options=["yes", "no"], assignee="user:local")

long_error = Flow[Any]("long_error", effect="pure")


@long_error.node
async def pay() -> None:
    raise ValueError(ERROR)


def judge(_facts: object) -> Judgement:
    return Judgement("yes", 0.82, "The amount is small.")


judged = Flow[Any]("judged", effect="pure")
judged.hold(
    "decide",
    prompt="Refund 12?",
    options=[{"id": "yes", "label": "Refund"}, "no"],
    assignee="user:local",
    shadow=judge,
)
