"""Every rule has an example that breaks it and one that does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import holdfast.frontends.document as package
from holdfast.agents.tools import as_tool
from holdfast.frontends.document.problem import DocumentProblem
from holdfast.frontends.document.site import UnusableFlow
from holdfast.model.diagnostics import Severity
from tests.documents.rule_examples import EXAMPLES, GOOD, NOT_YAML
from tests.documents.run import problems as found_problems


def known(a: int = 0) -> None: ...


FUNCTIONS = {"known": known}


def refuses_url(url: str) -> str:
    return "it is refused here" if "refused" in url else ""


def flows(name: str, _version: str) -> UnusableFlow | None:
    return UnusableFlow(rule="subflow-invalid", why="it has an error") if name == "broken" else None


def problems(text: str) -> list[DocumentProblem]:
    """Where one function, one tool, two connections and one secret are known."""
    return found_problems(
        text,
        FUNCTIONS,
        connections={"crm": "http", "gpt": "model"},
        secrets=frozenset({"key"}),
        tools={"search": as_tool(known)},
        refuses_url=refuses_url,
        flows=flows,
    )


def test_the_plain_example_has_no_problem() -> None:
    assert problems(GOOD) == []


@pytest.mark.covers("CV-51", "CV-50")
@pytest.mark.parametrize("rule", EXAMPLES)
def test_rule_is_reported_for_the_document_that_breaks_it_and_not_for_the_fixed_one(rule: str) -> None:
    broken, fixed = EXAMPLES[rule]

    found = [each for each in problems(broken) if each.rule == rule]
    assert found, [str(each) for each in problems(broken)]
    for each in found:
        assert each.message
        assert each.line is not None
        assert each.line >= 1
        assert each.column is not None
        assert each.column >= 1
    rest = problems(fixed)
    assert rule not in [each.rule for each in rest]
    assert [str(each) for each in rest if each.severity is Severity.error] == []


@pytest.mark.covers("CV-51")
def test_every_rule_of_the_code_has_an_example() -> None:
    """Rules are the texts with a dash, or alone, that reports are called with."""
    folder = Path(str(package.__file__)).parent
    called = re.compile(
        r'(?:\.(?:error|warn|hint)|_refuse|TextProblem|_wrong)\(\s*(?:[^"\n]|"[a-z_]+"[,)\]])*?"([a-z]+(?:-[a-z0-9]+)+)"'
    )
    written = {rule for path in folder.rglob("*.py") for rule in called.findall(path.read_text("utf-8"))}
    assert len(written) > 30
    assert written - set(EXAMPLES) - set(NOT_YAML) == set()
