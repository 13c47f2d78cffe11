"""Flows of all screens: people decide, runs fail and stop, and names and values are hostile."""

from __future__ import annotations

import json
from typing import Any

from holdfast import Flow, Scripted, tool_call
from tests.web.approval_flows import refund, support
from tests.web.flows import claims, patient, short
from tests.web.run_flows import check_line, halts, orders, stops

__all__ = [
    "check_line",
    "claims",
    "halts",
    "hostile",
    "orders",
    "patient",
    "short",
    "stops",
    "support",
    "tricks",
]

NAME = "größe/a b?c#d%20"
MARKUP = (
    '<script>alert(1)</script><img src="http://evil.test/i.png" onerror="alert(2)"><svg onload="alert(3)">'
)
LINKS = (
    "[press](javascript:alert(4)) ![a picture](http://evil.test/p.png) <iframe src='http://evil.test/'></iframe> "  # noqa: E501
    "[data](data:text/html;base64,PHNjcmlwdD4=) [good](https://example.com/x)"
)
BIDI = "Pay \u202e00.01\u202c \u2066EUR\u2069 invoice\u202egnp.exe"
LONG = "W" * 20_000
LARGE = 9007199254740993123
deep: Any = "bottom"
for _ in range(25):
    deep = {"in": [deep]}
VALUES = {
    "__proto__": {"isAdmin": True}, "constructor": "x", "large": LARGE, "less": -LARGE, "deep": deep, "long": LONG,  # noqa: E501
    "markup": MARKUP, "bidi": BIDI, "spaces\n\tin it": "\u0000\u001b[31mred\u2028", "": "no name",
    "many": [{"line": each, "text": MARKUP} for each in range(300)],
}  # fmt: skip

DOCUMENT = f"""\
holdfast: "1.0"
name: tricky
description: {json.dumps(MARKUP + LINKS + BIDI)}
nodes:
  - {{id: start, type: start}}
  - {{id: ask, type: hitl_review, label: {json.dumps(BIDI + MARKUP)}, config: {{queue: trips, prompt: {json.dumps(LINKS + BIDI)}, sections: [{{type: context, title: {json.dumps(BIDI)}, content: {json.dumps(MARKUP + LINKS)}}}, {{type: decision, options: [{{id: yes, label: {json.dumps(BIDI)}}}]}}]}}}}
  - {{id: done, type: end, label: {json.dumps("W" * 400)}}}
edges:
  - {{source: start, target: ask, label: {json.dumps(BIDI)}}}
  - {{source: ask, source_port: "yes", target: done}}
"""  # noqa: E501

hostile = Flow[Any](NAME, effect="pure", description=MARKUP + LINKS + BIDI)


@hostile.node
def collect(s: dict[str, Any]) -> dict[str, Any]:
    return {"values": VALUES, "markup": MARKUP, "links": LINKS, "bidi": BIDI}


decide = hostile.hold(
    "decide",
    prompt="{{bidi}} {{markup}} {{links}}",
    context={"values": "{{values}}", "links": "{{links}}", "markup": "{{markup}}"},
    assignee="user:local",
    tags=["<b>tag</b>", "W" * 60],
    sections=[
        {"type": "context", "title": MARKUP, "content": f"# Title\n\n{LINKS}\n\n{MARKUP}"},
        {"type": "input", "field": "text", "kind": "text", "label": MARKUP, "default": MARKUP, "help": LINKS},
        {"type": "input", "field": "data", "kind": "json", "label": BIDI, "default": {"large": LARGE}},
        {"type": "input", "field": "bill", "kind": "file", "label": "Bill"},
        {"type": "input", "field": "pick", "kind": "select", "label": "Pick",
         "options": [{"id": "a", "label": MARKUP}, {"id": "b", "label": "W" * 300}]},
        {"type": "decision", "options": [
            {"id": "yes", "label": "Yes <b>bold</b> \u202egnp", "variant": "primary"},
            {"id": "no", "label": "N" * 120, "variant": "danger"},
        ]},
    ],
)  # fmt: skip


@hostile.node
def fail(s: dict[str, Any]) -> None:
    raise ValueError(f"{MARKUP} {BIDI} {LONG}")


tricks = Flow("tricks")
tricks.agent(
    "clerk <img src=x onerror=alert(5)>", instructions=MARKUP + LINKS + BIDI, tools=[refund], output="answer",
    model=Scripted(
        tool_call("refund", order=MARKUP + BIDI, amount=1, account=LARGE, lines=[LINKS, LONG], note=BIDI),
        "ok",
    ),
)  # fmt: skip

hostile.edge(collect, decide)
hostile.edge(decide, fail)
