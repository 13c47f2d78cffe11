"""What agents had said and done at a checkpoint in the middle of their work, read off their records."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from holdfast.model.graph import Graph
from holdfast.model.position import Position, Sub

PROMPT = "/prompt"


def conversations(graph: Graph, pos: Position) -> dict[str, dict[str, Any]]:
    """By node, and below it by sub-agent: turn, messages, calls that have no result yet, what was spent."""
    found: dict[str, dict[str, Any]] = {}
    for execution in pos.execs.values():
        if not execution.subs:
            continue
        node = pos.scope_graph(graph, pos.scopes[execution.scope]).nodes[execution.node]
        for ordinal in [key for key, sub in execution.subs.items() if _opens(key, sub)]:
            base = ordinal.removesuffix(PROMPT)
            name = f"{execution.scope}{node.id}{base.removeprefix('=agent')}"
            found[name] = _conversation(execution.subs, base)
    return found


def _opens(key: str, sub: Sub) -> bool:
    value: Any = sub.value
    return key.startswith("=agent") and key.endswith(PROMPT) and isinstance(value, dict) and "agent" in value


def _conversation(subs: dict[str, Sub], base: str) -> dict[str, Any]:
    opened: Any = subs[base + PROMPT].value
    messages: list[Any] = list(opened["messages"])
    if opened["prompt"]:
        messages.append({"role": "user", "text": opened["prompt"]})
    turn, tokens, cost, pending = 0, 0, Decimal(0), list[Any]()
    calls: Counter[str] = Counter()
    while (answer := subs.get(f"{base}/{turn + 1}/model")) is not None and answer.error is None:
        turn += 1
        said: Any = answer.value
        tokens, cost = tokens + said["tokens"], cost + said["cost"]
        messages.append(said["message"])
        calls.update(call["name"] for call in said["message"].get("calls", ()))
        results, pending = _results(subs, f"{base}/{turn}", said["message"].get("calls", ()))
        messages += results
    return {
        "agent": opened["agent"],
        "turn": turn,
        "messages": messages,
        "pending": pending,
        "calls": dict(calls),
        "tokens": tokens,
        "cost": str(cost),
    }


def _results(subs: dict[str, Sub], turn: str, calls: Any) -> tuple[list[Any], list[Any]]:
    """(results in the order of their calls, calls that have none)."""
    ended = subs.get(f"{turn}/turn")
    told: Any = (ended.value or {}) if ended is not None else {}
    results: list[Any] = []
    pending: list[Any] = []
    for index, call in enumerate(calls):
        sub = subs.get(f"{turn}/tool/{index}/call")
        made: Any = sub.value if sub is not None and sub.done else None
        if str(index) in told:
            results.append({"role": "tool", "text": told[str(index)], "call": call["id"]})
        elif isinstance(made, dict) and "text" in made:
            results.append({"role": "tool", "text": made["text"], "call": call["id"]})
        elif ended is None:
            pending.append(call)
    return results, pending
