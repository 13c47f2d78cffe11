"""An expense: one person checks it on a form, two of three approve large ones, and late approvals escalate.

holdfast run examples/approvals.py --input '{"what": "a desk", "amount": "480.00"}' --by user:ian@example.org
holdfast inbox --as user:dana@example.org
holdfast resume RUN
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from holdfast import Flow, Holdfast, operator

DANA, SAM, KIM = "user:dana@example.org", "user:sam@example.org", "user:kim@example.org"


@dataclass
class Expense:
    what: str = "a desk"
    amount: str = "480.00"
    checked: str = ""
    checked_result: dict[str, Any] = field(default_factory=dict[str, Any])
    decision: str = ""
    decision_result: dict[str, Any] = field(default_factory=dict[str, Any])
    paid: str = ""


expense = Flow("expense", state=Expense)

check = expense.hold(
    "check",
    prompt="Is {{what}} for {{amount}} EUR an expense of ours?",
    bind="checked",
    assignee=DANA,
    priority="high",
    timeout="2d",
    on_timeout="escalate:" + SAM,
    sections=[
        {"type": "context", "title": "Claimed", "content": "{{what}}, {{amount}} EUR"},
        {
            "type": "input",
            "field": "amount",
            "kind": "currency",
            "currency": "EUR",
            "label": "Amount",
            "default": "{{amount}}",
            "required": True,
        },
        {
            "type": "input",
            "field": "category",
            "kind": "select",
            "options": ["office", "travel", "other"],
            "label": "Category",
            "required": True,
        },
        {"type": "decision", "field": "decision", "options": ["accept", "reject"]},
    ],
)

sign = expense.hold(
    "sign",
    prompt="Sign for {{what}}: {{amount}} EUR?",
    options=["approve", {"id": "reject", "variant": "danger", "requires_comment": True}],
    approval={"mode": "quorum", "need": 2, "of": [DANA, SAM, KIM]},
)


@expense.node(effect="pure")
async def take_over(s: Expense) -> dict[str, str]:
    """The amount that was accepted, not the one that was claimed."""
    return {"amount": s.checked_result["response_data"]["amount"]}


@expense.node(effect="external", idempotency_key="expense-{{what}}")
async def pay(s: Expense) -> dict[str, str]:
    return {"paid": f"{Decimal(s.amount)} EUR for {s.what}"}


expense.start(check)
expense.edge(check, take_over, when="checked == 'accept'")
expense.edge(take_over, sign)
expense.edge(sign, pay, when="decision == 'approve'")


async def main() -> None:
    """The same without a terminal: three people, one after another."""
    async with Holdfast("memory:") as hf:
        holds = await hf.holds()
        result = await expense.run({"what": "a desk", "amount": "480.00"}, on=hf)
        form = {"amount": "450.00", "category": "office"}
        body = {"decision": "accept", "response_data": form, "comment": "The bill says 450."}
        await holds.resolve(operator(DANA), result.holds[0].id, body)
        result = await expense.resume(result.run_id, on=hf)
        for person in (SAM, KIM):
            await holds.vote(operator(person), result.holds[0].id, "approve")
        result = await expense.resume(result.run_id, on=hf)
        print(result.expect().state.paid)


if __name__ == "__main__":
    asyncio.run(main())
