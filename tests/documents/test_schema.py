"""The JSON Schema of documents, and documents made at random."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from holdfast.frontends.document.compile import compile_document
from holdfast.frontends.document.json_schema import flow_schema
from holdfast.frontends.document.read import read_data, read_text
from holdfast.frontends.document.registry import node_types
from holdfast.frontends.document.yaml_text import read_yaml
from tests.cli.conftest import Cli
from tests.documents.rule_examples import EXAMPLES, GOOD
from tests.documents.run import site_of

CORPUS = Path(__file__).parent / "corpus"


def test_schema_is_one_of_2020_12_and_every_document_of_the_corpus_passes_two_validators() -> None:
    schema = flow_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    one, other = jsonschema.Draft202012Validator(schema), jsonschema_rs.validator_for(schema)
    for path in CORPUS.glob("*.yaml"):
        data = read_yaml(path.read_text())
        assert [error.message for error in one.iter_errors(data)] == []
        assert other.is_valid(data)


@pytest.mark.parametrize("rule", ["key-unknown", "required", "type", "type-unknown", "document-version"])
def test_schema_refuses_what_cannot_be_read(rule: str) -> None:
    assert not jsonschema_rs.validator_for(flow_schema()).is_valid(read_yaml(EXAMPLES[rule][0]))


def test_example_of_each_node_type_fits_its_config() -> None:
    validator = jsonschema_rs.validator_for(flow_schema())
    for name, kind in node_types().items():
        assert kind.summary.endswith(".")
        node: dict[str, Any] = {"id": "m", "type": name, "config": kind.example}
        assert validator.is_valid({"holdfast": "1.0", "name": "n", "nodes": [node]}), name


def test_schema_is_printed_by_the_command_line(cli: Cli) -> None:
    said = cli("schema", "flow")
    assert said.code == 0
    assert json.loads(said.out) == json.loads(json.dumps(flow_schema()))


def _damaged(data: Any, choose: random.Random) -> Any:
    """The same data with something replaced, removed or repeated."""
    data = json.loads(json.dumps(data))
    for _ in range(choose.randint(1, 4)):
        here, steps = data, choose.randint(1, 4)
        for _ in range(steps):
            if not isinstance(here, (dict, list)) or not here:
                break
            key = choose.choice(list(here)) if isinstance(here, dict) else choose.randrange(len(here))
            if choose.random() < 0.3 or not isinstance(here[key], (dict, list)):
                here[key] = choose.choice(JUNK)
                break
            here = here[key]
    return data


JUNK: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "{{", "{{n}}", "{{a | b}}", "a >> b", "__class__", [], {}, [[]],
    {"": ""}, {"id": "a"}, {"type": "start"}, "a", "z", "m", "é\u2028", "9" * 50, {"$ref": "#"}, ["a", 1],
]  # fmt: skip


@pytest.mark.covers("CV-51")
def test_damaged_document_is_answered_with_problems_and_never_with_an_error() -> None:
    choose, site = random.Random(7), site_of({})
    whole = [read_yaml(path.read_text()) for path in sorted(CORPUS.glob("*.yaml"))]
    whole += [read_yaml(fixed) for _, fixed in EXAMPLES.values()]
    for _ in range(800):
        found = compile_document(read_data(_damaged(choose.choice(whole), choose)), site)
        assert (found.spec is None) == any(each.severity == "error" for each in found.problems)


@pytest.mark.covers("CV-51")
def test_text_with_any_part_cut_or_repeated_is_answered_with_problems() -> None:
    choose, site = random.Random(11), site_of({})
    for _ in range(400):
        at, more = choose.randrange(len(GOOD)), choose.randrange(30)
        text = GOOD[:at] + choose.choice(
            ["", GOOD[at : at + more] * 2, "\t", "&x ", "*x", ": ", "- ", '"', "{"]
        )
        text += GOOD[at + more :]
        for form in ("yaml", "json"):
            found = compile_document(read_text(text, form), site)  # type: ignore[arg-type]
            assert all(each.line is None or each.line >= 1 for each in found.problems)
