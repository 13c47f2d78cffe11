"""For each rule of documents, one that breaks it and the same without the fault."""

# ruff: noqa: E501  (a node of a document reads best on one line)

from __future__ import annotations

from tests.documents.run import flow_text

SET = "{id: m, type: set, config: {values: {x: 1}}}"
CHAIN = "a -> m -> z"
HEAD = "config: {scaiqueue: {scope: support}}\ninput: {type: object, properties: {n: {type: number}, list: {type: array}}}"
END = "{id: z, type: end}"
START = "{id: a, type: start}"


def flow(middle: str = SET, edges: str = CHAIN, head: str = HEAD, end: str = END) -> str:
    return flow_text(f"{START}\n{middle}\n{end}", edges, head)


def hold(config: str, edges: str = CHAIN) -> str:
    return flow(f"{{id: m, type: checkpoint, config: {{{config}}}}}", edges)


def review(config: str, edges: str = CHAIN, head: str = HEAD) -> str:
    return flow(f"{{id: m, type: hitl_review, config: {{{config}}}}}", edges, head)


def request(config: str) -> str:
    return flow(f"{{id: m, type: http, config: {{{config}}}}}")


def callback(config: str) -> str:
    return flow(f"{{id: m, type: callback, config: {{{config}}}}}")


def llm(config: str, connection: str = "gpt") -> str:
    return flow(f"{{id: m, type: llm, config: {{connection: {connection}, {config}}}}}")


def agent(config: str, connection: str = "gpt") -> str:
    return flow(f"{{id: m, type: agent, config: {{connection: {connection}, instructions: Go, {config}}}}}")


def consume(config: str, edges: str = CHAIN, head: str = HEAD) -> str:
    return flow(f"{{id: m, type: queue_consume, config: {{{config}}}}}", edges, head)


def event(config: str, edges: str = CHAIN) -> str:
    return flow(f"{{id: m, type: event, config: {{{config}}}}}", edges)


def approval(behind: str, edges: str) -> str:
    return flow(f"{{id: m, type: checkpoint, config: {{options: [approve, reject]}}}}\n{behind}", edges)


def corrected(sent: str) -> str:
    sections = (
        "[{type: input, field: m, kind: number, default: '{{n}}'}, {type: decision, options: [ok, no]}]"
    )
    ask = f"{{id: m, type: hitl_review, config: {{queue: r, sections: {sections}}}}}"
    send = f"{{id: c, type: http, config: {{connection: crm, path: '/{{{{{sent}}}}}', method: POST}}}}"
    return flow(f"{ask}\n{send}", "a -> m\nm:ok -> c -> z\nm:no -> z")


TEST = '{id: t, type: condition, config: {when: "%s"}}'
TESTS = "a -> m -> t\nt:true -> z\nt:false -> z"
CALL = "{id: c, type: http, config: {connection: crm, path: /pay, method: POST}}"
GOOD = flow()
ROUTER = "{id: m, type: router, config: {cases: [{id: big, when: 'n > 9'}, {id: %s, when: 'n > 1'}]}}"
ROUTES = "a -> m\nm:big -> z\nm:some -> z\nm:else -> z"
MAP = "{id: m, type: map, config: {over: list, into: out}}\n{id: i, type: set%s, config: {values: {y: 1}}}"
LOOP = "{id: m, type: loop, config: {while: 'false', max_turns: 2}}\n{id: i, type: set%s, config: {values: {y: 1}}}"
AGAIN = "{id: m, type: loop, config: {while: \"decision == 'reject'\", max_turns: 2, on_limit: %s}}"
ASK_AGAIN = "{id: i, type: checkpoint, parent: m, config: {options: [approve, reject]}}"
DECISION = "sections: [{type: decision, options: [ok]}]"

EXAMPLES: dict[str, tuple[str, str]] = {
    # Text
    "yaml": ("holdfast: [", GOOD),
    "tag": (GOOD.replace("name: sample", "name: !!str sample"), GOOD),
    "duplicate-key": (GOOD.replace("name: sample", "name: sample\nname: sample"), GOOD),
    "key-text": (GOOD.replace("name: sample", "name: sample\n1: x"), GOOD),
    "alias": (GOOD.replace("name: sample", "name: *nothing"), GOOD),
    "several-documents": (GOOD + "---\n" + GOOD, GOOD),
    "number": (flow("{id: m, type: set, config: {values: {x: .nan}}}"), GOOD),
    "number-range": (flow("{id: m, type: set, config: {values: {x: 99999999999999999999}}}"), GOOD),
    "surrogate": (flow('{id: m, type: set, config: {values: {x: "\\ud83d"}}}'), flow('{id: m, type: set, config: {values: {x: "\\ud83d\\ude00"}}}')),
    "document-depth": (GOOD.replace("name: sample", "name: sample\nui: " + "[" * 70 + "]" * 70), GOOD),
    # Shape
    "document": ("- a list", GOOD),
    "document-version": (GOOD.replace('holdfast: "1.0"', "holdfast: 1.0"), GOOD),
    "document-newer": (GOOD.replace('"1.0"', '"1.1"'), GOOD),
    "key-unknown": (GOOD.replace("name: sample", "name: sample\nnodez: 1"), GOOD),
    "required": (GOOD.replace("name: sample", ""), GOOD),
    "type": (GOOD.replace("name: sample", "name: Sample Flow"), GOOD),
    "document-size": (flow("{id: m, type: set, config: {values: {x: %s}}}" % ("y" * 260_000)), GOOD),
    # Nodes and edges
    "type-unknown": (flow("{id: m, type: sett}"), GOOD),
    "node-duplicate": (flow(f"{SET}\n{SET}"), GOOD),
    "edge-unknown": (flow(edges="a -> m -> zz\nm -> z"), GOOD),
    "edge-duplicate": (flow(edges="a -> m -> z\na -> m"), GOOD),
    "edge-when": (hold("options: [ok]", "a -> m\n{source: m, source_port: ok, target: z, when: 'n > 1'}"), hold("options: [ok]", "a -> m\nm:ok -> z")),
    "edge-port": (flow(edges="a -> m\n{source: m, source_port: out, sourceHandle: error, target: z}"), flow(edges="a -> m\n{source: m, sourceHandle: out, target: z}")),
    "port-unknown": (flow(edges="a -> m\nm:up -> z"), GOOD),
    "port-open": (hold("options: [ok, no]", "a -> m\nm:ok -> z"), hold("options: [ok, no]", "a -> m\nm:ok -> z\nm:no -> z")),
    "edge-mixed": (hold("options: [ok]", "a -> m\nm:ok -> z\n{source: m, id: other, target: z, when: 'n > 1'}"), hold("options: [ok]", "a -> m\nm:ok -> z")),
    "otherwise": (flow(edges="a -> m\n{source: m, target: z, otherwise: true}"), flow(edges="a -> m\n{source: m, target: z, otherwise: true}\n{source: m, id: big, target: z, when: 'n > 1'}")),
    "strict-assignee": (hold("options: [ok], strict_assignee: true"), hold("options: [ok], strict_assignee: true, assignee: 'role:cfo'")),
    "hold-approval": (hold("options: [ok], approval: {mode: sequential}"), hold("options: [ok], approval: {mode: sequential, of: ['role:cfo']}")),
    "hold-ladder": (hold("options: [ok], ladder: [{to: '', after: 4h}]"), hold("options: [ok], timeout: 1h, ladder: [{to: 'role:lead', after: 4h}]")),
    "hold-reminder": (hold("options: [ok], reminder: 5s"), hold("options: [ok], reminder: 5m")),
    "hold-type": (hold("options: [ok], type: callback_wait"), hold("options: [ok], type: choice")),
    "form-unread": (corrected("n"), corrected("m.m")),
    "decision-unread": (approval(CALL, "a -> m -> c -> z"), approval(CALL, "a -> m\nm:approve -> c -> z\nm:reject -> z")),
    "loop-limit": (
        flow(f"{AGAIN % 'continue'}\n{ASK_AGAIN}\n{CALL}", "a -> m -> c -> z"),
        flow(f"{AGAIN % 'fail'}\n{ASK_AGAIN}\n{CALL}", "a -> m -> c -> z"),
    ),
    "decision-variable": (
        approval("", "a -> m\nm:approve -> z\nm:reject -> z").replace(HEAD, "variables: {decision: {reducer: first}}"),
        approval("", "a -> m\nm:approve -> z\nm:reject -> z").replace(HEAD, "variables: {decision: {reducer: last}}"),
    ),
    "decision-truth": (approval(TEST % "decision", TESTS), approval(TEST % "decision == 'approve'", TESTS)),
    "text-truth": (flow(TEST % "word", TESTS.replace("m -> ", ""), head="variables: {word: {type: string, default: 'false'}}"), flow(TEST % "word == 'yes'", TESTS.replace("m -> ", ""), head="variables: {word: {type: string, default: 'false'}}")),
    "disabled": (flow("{id: m, type: condition, disabled: true, config: {when: 'n > 1'}}", "a -> m\nm:true -> z"), flow("{id: m, type: condition, disabled: true, config: {when: 'n > 1'}}")),
    "start-count": (flow(f"{SET}\n{{id: b, type: start}}", "a -> m -> z\nb -> z"), GOOD),
    "end-edge": (flow(edges="a -> m -> z -> m"), GOOD),
    "no-end": (flow(edges="a -> m", end=""), GOOD),
    "no-way-to-end": (flow(f"{SET}\n{{id: b, type: set, config: {{values: {{y: 1}}}}}}", "a -> m -> z\na -> b"), GOOD),
    "unreachable": (flow(f"{SET}\n{{id: b, type: set, config: {{values: {{y: 1}}}}}}", "a -> m -> z\nb -> z"), GOOD),
    "cycle": (flow(f"{SET}\n{{id: b, type: set, config: {{values: {{y: 1}}}}}}", "a -> m -> b -> m\nb -> z"), GOOD),
    "parent-unknown": (flow("{id: m, type: set, parent: a, config: {values: {x: 1}}}"), GOOD),
    "crosses-parent": (flow(MAP % ", parent: m", "a -> m -> z\na -> i"), flow(MAP % ", parent: m")),
    "map-empty": (flow("{id: m, type: map, config: {over: list, into: out}}"), flow(MAP % ", parent: m")),
    "loop-empty": (flow("{id: m, type: loop, config: {while: 'false', max_turns: 2}}"), flow(LOOP % ", parent: m")),
    "id-clash": (flow((LOOP % ", parent: m").replace("{id: i,", "{id: m__next,")), flow(LOOP % ", parent: m")),
    "case-duplicate": (flow(ROUTER % "big", "a -> m\nm:big -> z\nm:else -> z"), flow(ROUTER % "some", ROUTES)),
    "parallel-branches": (flow("{id: m, type: parallel}"), flow(f"{{id: p, type: parallel}}\n{SET}", "a -> p -> m -> z\np -> z")),
    "join-timeout": (flow("{id: m, type: join}", "a -> m -> z\nm:timeout -> z"), flow("{id: m, type: join, config: {timeout: 1h}}", "a -> m -> z\nm:timeout -> z")),
    "quorum": (flow("{id: m, type: join, config: {wait: 2}}"), flow("{id: m, type: join, config: {wait: 1}}")),
    # Names and texts
    "expression": (flow("{id: m, type: condition, config: {when: 'n >> 1'}}", "a -> m\nm:true -> z\nm:false -> z"), flow("{id: m, type: condition, config: {when: 'n > 1'}}", "a -> m\nm:true -> z\nm:false -> z")),
    "template": (hold('prompt: "Go {{n"'), hold('prompt: "Go {{n}}"')),
    "input-name": (flow(head="input: {properties: {run: {}}}"), flow(head="input: {properties: {ran: {}}}")),
    "variable-name": (flow("{id: m, type: set, config: {values: {input: 1}}}"), GOOD),
    "variable-unknown": (hold('prompt: "Go {{m2}}"'), hold('prompt: "Go {{n}}"')),
    "variable-maybe": (
        flow_text(f"{START}\n{{id: c, type: condition, config: {{when: 'n > 1'}}}}\n{SET}\n{{id: z, type: end, config: {{output: {{x: '{{{{x}}}}'}}}}}}", "a -> c\nc:true -> m -> z\nc:false -> z", HEAD),
        flow_text(f"{START}\n{{id: c, type: condition, config: {{when: 'n > 1'}}}}\n{SET}\n{{id: z, type: end, config: {{output: {{x: '{{{{x | default(0)}}}}'}}}}}}", "a -> c\nc:true -> m -> z\nc:false -> z", HEAD),
    ),
    "variable-default": (flow(head="variables: {k: {type: number, default: text}}"), flow(head="variables: {k: {type: number, default: 1}}")),
    "json-schema": (flow(head="input: {type: objekt}"), flow(head="input: {type: object}")),
    "secret-literal": (hold('prompt: "{{secret.key}}"'), hold("prompt: Go")),
    "reducer": (flow(head="variables: {k: {reducer: often}}"), flow(head="variables: {k: {reducer: append}}")),
    # Nodes of one type
    "function-unknown": (flow("{id: m, type: python, config: {function: nowhere}}"), flow("{id: m, type: python, config: {function: known}}")),
    "args-mismatch": (flow("{id: m, type: python, config: {function: known, args: {b: 1}}}"), flow("{id: m, type: python, config: {function: known, args: {a: 1}}}")),
    "check-unknown": (flow("{id: m, type: guardrail, config: {check: nowhere}}"), flow("{id: m, type: guardrail, config: {check: known}}")),
    "violation-edges": (flow("{id: m, type: guardrail, config: {check: known, on_violation: reroute}}"), flow("{id: m, type: guardrail, config: {check: known, on_violation: reroute}}", "a -> m -> z\nm:violation -> z")),
    "flow-unknown": (flow("{id: m, type: subflow, config: {flow: nowhere}}"), GOOD),
    "subflow-cycle": (flow("{id: m, type: subflow, config: {flow: sample}}"), GOOD),
    "subflow-invalid": (flow("{id: m, type: subflow, config: {flow: broken}}"), GOOD),
    "subflow-input": (flow("{id: m, type: subflow, config: {flow: nowhere, inputs: {x: 'a {{n}} b'}}}"), GOOD),
    "no-edge": (flow(edges="a -> m\n{source: m, target: z, when: 'n > 1'}"), flow(edges="a -> m\n{source: m, id: up, target: z, when: 'n > 1'}\n{source: m, id: down, target: z, when: 'n <= 1'}")),
    "subflow-size": (flow("{id: m, type: subflow, config: {flow: huge}}"), GOOD),
    "wait-one-of": (flow("{id: m, type: wait}"), flow("{id: m, type: wait, config: {duration: 1h}}")),
    "wait-until": (flow("{id: m, type: wait, config: {until: tomorrow}}"), flow("{id: m, type: wait, config: {until: '2026-01-31T09:00:00Z'}}")),
    "duration": (flow("{id: m, type: wait, config: {duration: soon}}"), flow("{id: m, type: wait, config: {duration: 1h}}")),
    # Requests
    "http-one-of": (request("url: 'https://example.org', path: /x"), request("url: 'https://example.org'")),
    "http-path": (request("connection: crm, path: x"), request("connection: crm, path: /x")),
    "http-header": (request("connection: crm, path: /x, headers: {Host: x}"), request("connection: crm, path: /x, headers: {Accept: x}")),
    "http-body": (request("connection: crm, path: /x, body: y"), request("connection: crm, path: /x, method: POST, body: y")),
    "http-expect": (request("connection: crm, path: /x, expect: 9xx"), request("connection: crm, path: /x, expect: [200, 4xx]")),
    "connection-unknown": (request("connection: nowhere, path: /x"), request("connection: crm, path: /x")),
    "connection-kind": (request("connection: gpt, path: /x"), request("connection: crm, path: /x")),
    "egress-refused": (request("url: 'http://refused.example'"), request("url: 'https://example.org'")),
    "secret-unknown": (request("connection: crm, path: /x, headers: {X-Key: {secret: nowhere}}"), request("connection: crm, path: /x, headers: {X-Key: {secret: key}}")),
    "secret-place": (flow("{id: m, type: set, config: {values: {x: {secret: key}}}}"), GOOD),
    "secret-target": (request("url: '{{input.url}}', headers: {X-Key: {secret: key}}"), request("url: 'https://example.org', headers: {X-Key: {secret: key}}")),
    "schema": (llm("prompt: Go, schema: {type: objekt}"), llm("prompt: Go, schema: {type: object}")),
    "tool-not-allowed": (flow("{id: m, type: tool, config: {tool: nowhere}}"), flow("{id: m, type: tool, config: {tool: search}}")),
    "tool-unknown": (flow("{id: m, type: agent, config: {connection: gpt, instructions: Go, tools: [nowhere]}}"), flow("{id: m, type: agent, config: {connection: gpt, instructions: Go, tools: [search]}}")),
    "tool-duplicate": (flow("{id: m, type: agent, config: {connection: gpt, instructions: Go, tools: [search], toolkit: [search]}}"), flow("{id: m, type: agent, config: {connection: gpt, instructions: Go, toolkit: [search]}}")),
    "effect-mismatch": (flow("{id: m, type: tool, config: {tool: search, effect: read}}"), flow("{id: m, type: tool, config: {tool: search, effect: external}}")),
    "message-type": (flow("{id: m, type: queue_publish, config: {queue: q, payload: 1, type: hitl_request}}"), flow("{id: m, type: queue_publish, config: {queue: q, payload: 1, type: job}}")),
    "escalation-target": (flow("{id: m, type: queue_escalation, config: {of: a, queue: q}}"), flow("{id: m, type: queue_escalation, config: {message: '{{n}}', queue: q}}")),
    "escalation-change": (flow("{id: m, type: queue_escalation, config: {message: '{{n}}'}}"), flow("{id: m, type: queue_escalation, config: {message: '{{n}}', priority: high}}")),
    # People
    "hold-options": (hold("options: [ok, ok]"), hold("options: [ok, no]")),
    "hold-form": (review(f"queue: r, options: [ok], {DECISION}"), review(f"queue: r, {DECISION}")),
    "hold-into": (review(f"queue: r, bind: decision, {DECISION}"), review(f"queue: r, bind: form, {DECISION}")),
    "field-kind": (review("queue: r, sections: [{type: input, field: f, kind: colour}]"), review("queue: r, sections: [{type: input, field: f}]")),
    "hold-effect": (hold("effect: pure"), hold("prompt: Go")),
    "option-id": (hold("options: [timeout]"), hold("options: [late]")),
    "assignee": (hold('assignee: "a\\nb"'), hold("assignee: group:leads")),
    "scope-missing": (review("queue: r", head=""), review("queue: r")),
    "queue-name": (review("queue: r, scope: Upper"), review("queue: r, scope: lower")),
    "timeout-edges": (hold("timeout: 1h, on_timeout: cancel", "a -> m -> z\nm:timeout -> z"), hold("timeout: 1h", "a -> m -> z\nm:timeout -> z")),
    "timeout-branch": (hold("timeout: 1h, on_timeout: 'branch:nowhere'"), hold("timeout: 1h, on_timeout: 'branch:z'")),
    "on-timeout": (hold("timeout: 1h, on_timeout: later"), hold("timeout: 1h, on_timeout: fail")),
    "no-timeout": (hold("on_timeout: cancel"), hold("timeout: 1h, on_timeout: cancel")),
    "escalate-target": (hold("timeout: 1h, on_timeout: 'escalate:'"), hold("timeout: 1h, on_timeout: 'escalate:role:cfo'")),
    "default-option": (hold("timeout: 1h, on_timeout: default, options: [ok, no]"), hold("timeout: 1h, on_timeout: default, options: [ok, {id: no, default: true}]")),
    "approving-default": (hold("timeout: 1h, on_timeout: default, options: [{id: approve, default: true}, reject]"), hold("timeout: 1h, on_timeout: default, options: [approve, {id: reject, default: true}]")),
    "breakpoint": (flow("{id: m, type: set, config: {breakpoint: true, values: {x: 1}}}\n{id: m__breakpoint, type: set, config: {values: {y: 1}}}", "a -> m -> m__breakpoint -> z"), flow("{id: m, type: set, config: {breakpoint: true, values: {x: 1}}}")),
}  # fmt: skip

_OPTIONS = "options: [ok]"
_MIXED = "a -> m\nm:ok -> z\n{source: m, id: other, target: z, when: 'n > 1'}"
_LATE = "a -> m -> z\nm:timeout -> z"
_PUBLISH = "{id: m, type: queue_publish, config: {queue: q, payload: 1%s}}"
_HOLDS: dict[str, tuple[str, str]] = {
    "hold-effect": ("effect: pure", CHAIN),
    "option-id": ("options: [timeout]", CHAIN),
    "edge-mixed": (_OPTIONS, _MIXED),
    "port-open": ("options: [ok, no]", "a -> m\nm:ok -> z"),
    "timeout-edges": ("timeout: 1h, on_timeout: cancel", _LATE),
    "default-option": ("timeout: 1h, on_timeout: default, options: [ok, no]", CHAIN),
    "duration": ("timeout: soon", CHAIN),
    "hold-options": ("options: [ok, ok]", CHAIN),
    "no-timeout": ("on_timeout: cancel", CHAIN),
    "assignee": ('assignee: "a\\nb"', CHAIN),
    "on-timeout": ("timeout: 1h, on_timeout: later", CHAIN),
    "variable-name": ("decision_bind: input", CHAIN),
    "strict-assignee": ("strict_assignee: true", CHAIN),
    "hold-approval": ("approval: {mode: sequential}", CHAIN),
    "hold-ladder": ("timeout: 1h, ladder: [{to: '', after: 4h}]", CHAIN),
    "hold-reminder": ("reminder: 5s", CHAIN),
    "hold-type": ("type: queue_wait", CHAIN),
}


def _of_holds(kind: str, more: str = "") -> dict[str, str]:
    return {
        rule: flow(f"{{id: m, type: {kind}, config: {{{more}{config}}}}}", edges)
        for rule, (config, edges) in _HOLDS.items()
    }


def _broken(*rules: str) -> dict[str, str]:
    """The documents of `EXAMPLES` that break these rules."""
    return {rule: EXAMPLES[rule][0] for rule in rules}


OF_TYPES: dict[str, dict[str, str]] = {
    "start": _broken("start-count"),
    "end": _broken("end-edge"),
    "python": _broken("function-unknown", "args-mismatch"),
    "llm": {
        **_broken("schema"),
        "connection-unknown": llm("prompt: Go", "nowhere"),
        "connection-kind": llm("prompt: Go", "crm"),
    },
    "agent": {
        **_broken("tool-unknown", "tool-duplicate"),
        "connection-unknown": agent("tools: []", "nowhere"),
        "connection-kind": agent("tools: []", "crm"),
    },
    "http": {
        **_broken(
            "connection-kind", "connection-unknown", "egress-refused", "http-body", "http-expect",
            "http-header", "http-one-of", "http-path", "secret-target",
        ),
        "secret-literal": request("connection: crm, path: /x, headers: {Authorization: Bearer abc}"),
    },
    "tool": _broken("tool-not-allowed", "effect-mismatch"),
    "set": _broken("variable-name"),
    "condition": {
        "port-open": flow("{id: m, type: condition, config: {when: 'n > 1'}}", "a -> m\nm:true -> z"),
        "edge-mixed": flow("{id: m, type: condition, config: {when: 'n > 1'}}", "a -> m -> z\nm:true -> z"),
    },
    "router": {
        **_broken("case-duplicate"),
        "port-open": flow(ROUTER % "some", "a -> m\nm:big -> z\nm:else -> z"),
        "edge-mixed": flow(ROUTER % "some", f"{ROUTES}\nm -> z"),
    },
    "parallel": _broken("parallel-branches"),
    "join": {
        **_broken("join-timeout", "quorum"),
        "edge-mixed": flow("{id: m, type: join, config: {timeout: 1h}}", "a -> m\nm:timeout -> z\n{source: m, target: z, when: 'n > 1'}"),
    },
    "map": {
        **_broken("map-empty", "crosses-parent"),
        "variable-name": flow((MAP % ", parent: m").replace("into: out", "into: input")),
    },
    "loop": {**_broken("loop-empty", "id-clash"), "crosses-parent": flow(LOOP % ", parent: m", "a -> m -> z\na -> i")},
    "subflow": _broken("flow-unknown", "subflow-cycle", "subflow-input", "subflow-invalid", "subflow-size"),
    "wait": _broken("wait-one-of", "wait-until", "duration"),
    "guardrail": _broken("check-unknown", "violation-edges"),
    "checkpoint": _of_holds("checkpoint"),
    "hitl_decision": _of_holds("hitl_decision"),
    "hitl_review": {**_of_holds("hitl_review", "queue: r, "), **_broken("hold-form", "hold-into", "queue-name", "scope-missing")},
    "queue_publish": {
        **_broken("message-type"),
        "scope-missing": flow(_PUBLISH % "", head=""),
        "queue-name": flow(_PUBLISH % ", scope: holdfast-events"),
    },
    "queue_consume": {
        "hold-effect": consume("queue: q, effect: pure"),
        "timeout-edges": consume("queue: q, timeout: 1h, on_timeout: cancel", _LATE),
        "duration": consume("queue: q, timeout: soon"),
        "scope-missing": consume("queue: q", head=""),
        "on-timeout": consume("queue: q, timeout: 1h, on_timeout: default_option"),
    },
    "event": {
        "hold-effect": event("event: paid, effect: pure"),
        "timeout-edges": event("event: paid, timeout: 1h, on_timeout: cancel", _LATE),
        "duration": event("event: paid, timeout: soon"),
        "event-name": event("event: ' '"),
        "on-timeout": event("event: paid, timeout: 1h, on_timeout: 'escalate:role:cfo'"),
    },
    "callback": {
        **{
            rule: EXAMPLES[rule][0].replace("type: http", "type: callback")
            for rule in ("connection-kind", "connection-unknown", "egress-refused", "http-expect",
                         "http-header", "http-one-of", "http-path", "secret-target")
        },
        "http-body": callback("method: GET, connection: crm, path: /x, body: 1"),
        "secret-literal": callback("connection: crm, path: /x, headers: {Authorization: Bearer abc}"),
        "duration": callback("heartbeat: soon"),
    },
    "queue_escalation": {
        **_broken("escalation-change", "escalation-target"),
        "assignee": flow("{id: m, type: queue_escalation, config: {message: '{{n}}', assignee: 'user:'}}"),
        "scope-missing": flow("{id: m, type: queue_escalation, config: {message: '{{n}}', queue: q}}", head="input: {type: object, properties: {n: {type: number}}}"),
    },
}  # fmt: skip
"""By node type, a document that breaks each rule of its own."""

NOT_YAML = ("json", "utf-8", "value")
"""Rules of other ways to give a document; tested beside."""
