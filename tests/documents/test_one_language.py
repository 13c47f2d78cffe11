"""One safe language: every text of every node type is an expression or a template, and neither runs code."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.frontends.document.node_type import EXPRESSION, TEMPLATE, NodeConfig, texts_of
from holdfast.frontends.document.registry import node_types
from tests.documents.rule_examples import flow
from tests.documents.run import problems, start

PLAIN_TEXTS = {
    "function", "check", "tool", "flow", "version", "connection", "model", "queue", "scope", "type", "of",
    "calendar", "item", "into", "decision_bind", "bind", "backoff", "method",
}  # fmt: skip
"""Names and choices: no language at all."""


@pytest.mark.covers("PLATFORM-NODE-02")
@pytest.mark.parametrize("name", list(node_types()))
def test_every_text_of_a_config_is_a_name_an_expression_or_a_template(name: str) -> None:
    kind = node_types()[name].config
    for field in msgspec.structs.fields(kind):
        if field.encode_name in PLAIN_TEXTS or field.type not in (str, str | None):
            continue
        raise AssertionError(f"{name}.{field.encode_name} is text without a language")
    languages = {text.language for text in texts_of(msgspec.convert(node_types()[name].example, kind))}
    assert languages <= {EXPRESSION, TEMPLATE}
    assert issubclass(kind, NodeConfig)


HOSTILE = [
    "open('/etc/passwd')", "__import__('os')", "n.__class__()", "[x for x in list]", "lambda: 1", "n := 1",
    "exec('1')", "f'{n}'", "n; n", "`id`", "$(id)", "n if n else n", "import os", "{% raw %}", "{{n}}",
]  # fmt: skip


@pytest.mark.covers("PLATFORM-NODE-02")
@pytest.mark.parametrize("text", HOSTILE)
def test_code_in_an_expression_or_a_template_is_refused_when_it_is_checked(text: str) -> None:
    shown = msgspec.json.encode(text).decode()
    [wrong] = problems(flow(f"{{id: m, type: condition, config: {{when: {shown}}}}}", EDGES))
    assert wrong.rule in ("expression", "variable-unknown")
    inside = msgspec.json.encode("{{" + text + "}}").decode()
    found = problems(flow(f"{{id: m, type: set, config: {{values: {{x: {inside}}}}}}}"))
    assert found
    assert {each.rule for each in found} <= {"template", "variable-unknown"}


EDGES = "a -> m\nm:true -> z\nm:false -> z"


@pytest.mark.covers("PLATFORM-NODE-02")
@pytest.mark.parametrize("path", ["n.real", "list.append", "input.keys", "run.items"])
async def test_text_reads_data_and_never_the_objects_behind_it(hf: Holdfast, path: str) -> None:
    text = flow(f"{{id: m, type: set, config: {{values: {{x: \"{{{{{path} | default('nothing')}}}}\"}}}}}}")
    ended: Any = await start(hf, text, {"n": 3, "list": [1]})
    assert (ended.status, ended.state["x"]) == ("completed", "nothing")


@pytest.mark.covers("PLATFORM-NODE-02")
@pytest.mark.parametrize("path", ["n.__class__", "list.__len__", "input.__dict__", "n.real", "list.append"])
async def test_condition_finds_data_and_never_the_objects_behind_it(hf: Holdfast, path: str) -> None:
    failed = "{id: y, type: end, config: {status: failed}}"
    nodes = f"{{id: m, type: condition, config: {{when: 'exists({path})'}}}}\n{failed}"
    ended: Any = await start(hf, flow(nodes, "a -> m\nm:true -> y\nm:false -> z"), {"n": 3, "list": [1]})
    assert ended.status == "completed"
