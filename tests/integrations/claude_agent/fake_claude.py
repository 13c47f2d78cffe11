#!/usr/bin/env python3
"""Claude Code as the SDK sees it: its control protocol over stdin and stdout, without a model.

The folder FAKE_CLAUDE has `script.json`, a list of [tool, input]: the calls that the model makes, one after
the other. Of each session it keeps what was answered: a resumed session makes the first call again that has
no answer, as a model does that finds no result of its call. A call that is allowed is a line in `calls`.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from pathlib import Path

FOLDER = Path(os.environ["FAKE_CLAUDE"])


def say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hear() -> dict:
    line = sys.stdin.readline()
    if not line:
        raise SystemExit(0)
    return json.loads(line)


def permission(number: int, tool: str, given: dict) -> dict:
    """Asks as Claude Code does, and waits for the answer to this request."""
    request = f"permission-{uuid.uuid4()}"
    use = f"toolu_{number}_{uuid.uuid4().hex[:8]}"
    say(
        type="control_request",
        request_id=request,
        request={
            "subtype": "can_use_tool",
            "tool_name": tool,
            "input": given,
            "tool_use_id": use,
            "permission_suggestions": [],
        },
    )
    while True:
        heard = hear()
        if heard.get("type") == "control_response" and heard["response"]["request_id"] == request:
            return heard["response"]


def turn(session: str) -> None:
    about = {"tools": [], "model": "none", "cwd": str(FOLDER), "claude_code_version": "2.9.9"}
    say(type="system", subtype="init", session_id=session, **about)
    kept = FOLDER / f"{session}.json"
    done = json.loads(kept.read_text()) if kept.exists() else []
    for number, (tool, given) in enumerate(json.loads((FOLDER / "script.json").read_text())):
        if number < len(done):
            continue
        answer = permission(number, tool, given)
        if answer["subtype"] == "error":
            said = f"error: {answer['error']}"
        elif answer["response"]["behavior"] == "allow":
            said = f"ran {json.dumps(answer['response']['updatedInput'], sort_keys=True)}"
            with (FOLDER / "calls").open("a") as file:
                file.write(f"{tool} {said}\n")
            if os.environ.get("FAKE_CLAUDE_DIES") == str(number):
                os._exit(9)
        else:
            said = f"denied: {answer['response']['message']}"
        done.append(said)
        kept.write_text(json.dumps(done))
    say(
        type="result",
        subtype="success",
        duration_ms=1,
        duration_api_ms=1,
        is_error=False,
        num_turns=1,
        session_id=session,
        result="; ".join(done),
    )


def main() -> None:
    if "-v" in sys.argv or "--version" in sys.argv:
        print("2.9.9 (Claude Code)")
        return
    resumed = [word.partition("=")[2] for word in sys.argv if word.startswith("--resume=")]
    session = resumed[0] if resumed else str(uuid.uuid4())
    while True:
        heard = hear()
        if heard["type"] == "control_request":
            say(
                type="control_response",
                response={"subtype": "success", "request_id": heard["request_id"], "response": {}},
            )
        elif heard["type"] == "user":
            turn(session)


if __name__ == "__main__":
    main()
