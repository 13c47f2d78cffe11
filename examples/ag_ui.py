"""An agent for front ends of AG-UI (CopilotKit and others), and the smallest front end: a program.

holdfast serve examples/ag_ui.py          # POST /v1/flows/desk/ag-ui
HOLDFAST_TOKEN=... python examples/ag_ui.py
"""

from __future__ import annotations

import json
import os
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

from holdfast import Agent, Approval, Flow, tool
from holdfast.agents.scripted import Scripted, tool_call


@tool(effect="external", approval=Approval(prompt="Refund {{amount}} for {{order}}?"))
async def refund(order: str, amount: int) -> str:
    return f"refunded {amount} for {order}"


# In your program: OpenAI("..."), Anthropic("...").
model = Scripted(tool_call("refund", order="A17", amount=250), "I have refunded 250 for A17.")

desk = Flow("desk", effect="read")
desk.agent("help", Agent("helper", model=model, tools=[refund]), prompt="{{prompt}}", output="answer")


def ask(url: str, token: str, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of one request."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/flows/desk/ag-ui", json.dumps(given).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        for line in answer:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def main() -> None:
    url = os.environ.get("HOLDFAST_URL", "http://127.0.0.1:8420")
    said = [{"id": "m1", "role": "user", "content": "My order A17 came broken."}]
    given: dict[str, Any] = {"threadId": f"t-{uuid.uuid4()}", "messages": said}
    resume: list[dict[str, Any]] | None = None
    while True:
        more = {} if resume is None else {"resume": resume}
        end: dict[str, Any] = {}
        for event in ask(url, os.environ["HOLDFAST_TOKEN"], {**given, "runId": str(uuid.uuid4()), **more}):
            print(
                event["type"], event.get("delta") or event.get("toolCallName") or event.get("stepName") or ""
            )
            end = event
        interrupts = end.get("outcome", {}).get("interrupts")
        if not interrupts:
            break
        print("?", interrupts[0]["message"], "approve")
        resume = [
            {"interruptId": each["id"], "status": "resolved", "payload": {"decision": "approve"}}
            for each in interrupts
        ]


if __name__ == "__main__":
    main()
