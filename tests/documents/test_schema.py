"""The JSON Schema of documents, and documents made at random."""

from __future__ import annotations

import json
import random
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import pytest

from holdfast.frontends.document import upgrade
from holdfast.frontends.document.compile import compile_document
from holdfast.frontends.document.document import FORMAT
from holdfast.frontends.document.json_schema import flow_schema
from holdfast.frontends.document.read import read_data, read_text
from holdfast.frontends.document.registry import node_types
from holdfast.frontends.document.upgrade import UPGRADES
from holdfast.frontends.document.yaml_text import read_yaml
from holdfast.model.fingerprint import graph_fingerprint
from tests.cli.conftest import Cli
from tests.documents.rule_examples import EXAMPLES, GOOD
from tests.documents.run import site_of

CORPUS = Path(__file__).parent / "corpus"
FORMATS = Path(__file__).parent / "formats"
ROOT = Path(__file__).parents[2]


def _examples() -> dict[str, Any]:
    """Every document of the examples, the corpus, the pages and the rules."""
    files = [*CORPUS.glob("*.yaml"), *(ROOT / "examples").glob("*.yaml")]
    found = {path.name: read_yaml(path.read_text("utf-8")) for path in files}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for index, text in enumerate(
            re.findall(r"```yaml[^\n]*\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        ):
            if text.lstrip().startswith("holdfast:") or "\nholdfast:" in text:
                found[f"{page.name}:{index}"] = read_yaml(text)
    return found | {rule: read_yaml(fixed) for rule, (_, fixed) in EXAMPLES.items()}


@pytest.mark.covers("CV-7")
def test_schema_is_one_of_2020_12_and_every_example_passes_two_validators() -> None:
    schema = flow_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    one, other = jsonschema.Draft202012Validator(schema), jsonschema_rs.validator_for(schema)
    found = _examples()
    assert len(found) > 120
    assert any(name.endswith(".md:0") for name in found)
    for name, data in found.items():
        assert [error.message for error in one.iter_errors(data)] == [], name
        assert other.is_valid(data), name


_FORM = """
holdfast: "1.0"
name: form
label: null
edges: [{source: start, target: ask, label: null, when: null}, {source: ask, target: done}]
nodes:
  - {id: start, type: start, config: null, label: null}
  - id: ask
    type: hitl_review
    config: {queue: q, scope: s, priority: null, prompt: null, sections: SECTIONS}
  - {id: done, type: end, config: {status: null}}
"""


@pytest.mark.covers("CV-7", "CV-32")
@pytest.mark.parametrize(
    ("sections", "fits"),
    [
        ("[{type: context, title: null, content: {a: '{{run.id}}'}}]", True),
        ("[{type: input, field: why, kind: select, options: [a, {id: b, label: B}], required: true}]", True),
        ("[{type: input, field: t, kind: table, columns: [a, {field: b, kind: number, min: 1}]}]", True),
        ("[{type: input, field: why, maxLength: 3, visible_if: null, extras: {x: 1}}]", True),
        ("[{type: decision, options: [yes, no]}]", True),
        ("null", True),
        ("[{type: decision}]", False),
        ("[{type: input, kind: text}]", False),
        ("[{type: input, field: 9x}]", False),
        ("[{type: input, field: why, required: maybe}]", False),
        ("[{type: context, field: why}]", False),
        ("[{type: quiz}]", False),
        ("[text]", False),
    ],
)
def test_schema_and_reader_agree_on_sections_and_on_null(sections: str, fits: bool) -> None:
    text = _FORM.replace("SECTIONS", sections)
    found = compile_document(read_text(text.encode(), "yaml"), site_of({}))
    about = [each for each in found.problems if each.severity == "error" and "/sections" in each.path]
    assert (about == []) is fits, about
    assert jsonschema.Draft202012Validator(flow_schema()).is_valid(read_yaml(text)) is fits


@pytest.mark.parametrize("rule", ["key-unknown", "required", "type", "type-unknown", "document-version"])
def test_schema_refuses_what_cannot_be_read(rule: str) -> None:
    assert not jsonschema_rs.validator_for(flow_schema()).is_valid(read_yaml(EXAMPLES[rule][0]))


@pytest.mark.covers("CV-7", "PLATFORM-DOC-01")
def test_schema_is_printed_by_the_command_line(cli: Cli) -> None:
    said = cli("schema", "flow")
    assert said.code == 0
    assert json.loads(said.out) == json.loads(json.dumps(flow_schema()))


@pytest.mark.covers("PLATFORM-DOC-01")
def test_schema_shows_an_editor_the_types_and_what_each_key_is_for() -> None:
    schema = flow_schema()
    node = schema["$defs"]["FlowNode"]
    assert node["properties"]["type"]["enum"] == list(node_types())
    for rule, kind in zip(node["allOf"], node_types().values(), strict=True):
        assert rule["then"]["properties"]["config"]["description"] == kind.summary
    for example in (ROOT / "examples").glob("*.yaml"):
        # The comment by which editors find the schema, without a server: a file that is there.
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", example.read_text("utf-8"))
        assert named is not None, example
        assert json.loads((example.parent / named[1]).read_text("utf-8")) == json.loads(json.dumps(schema))


@pytest.mark.covers("CV-47", "PLATFORM-DOC-01")
def test_each_older_major_version_has_an_upgrade_and_a_golden_file() -> None:
    """The first major version is 1. What is in `formats` still compiles to the version that is beside it."""
    assert set(UPGRADES) == set(range(1, FORMAT[0]))
    assert {path.stem for path in FORMATS.glob("*.yaml")} >= {
        f"{major}.0" for major in range(1, FORMAT[0] + 1)
    }
    for path in FORMATS.glob("*.yaml"):
        spec = compile_document(read_text(path.read_bytes(), "yaml")).require_valid()
        assert graph_fingerprint(spec) == path.with_suffix(".version").read_text("utf-8").strip()


@pytest.mark.covers("CV-47", "PLATFORM-DOC-01")
def test_document_of_an_older_major_version_is_upgraded_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def rename(data: dict[str, Any]) -> dict[str, Any]:
        return {("nodes" if key == "steps" else key): value for key, value in data.items()}

    old = GOOD.replace('"1.0"', '"0.3"').replace("\nnodes:", "\nsteps:")
    refused = read_text(old, "yaml").problems()
    assert [(each.rule, each.line) for each in refused] == [("document-version", 1)]
    monkeypatch.setattr(upgrade, "UPGRADES", {0: rename})
    found = read_text(old, "yaml")
    assert found.problems() == []
    now = compile_document(read_text(GOOD, "yaml")).require_valid()
    assert graph_fingerprint(compile_document(found).require_valid()) == graph_fingerprint(now)


def damaged(data: Any, choose: random.Random) -> Any:
    """The same data with something replaced, removed or repeated."""
    data = json.loads(json.dumps(data))
    for _ in range(choose.randint(1, 4)):
        here, steps = data, choose.randint(1, 4)
        for _ in range(steps):
            if not isinstance(here, (dict, list)) or not here:
                break
            key = choose.choice(list(here)) if isinstance(here, dict) else choose.randrange(len(here))
            if choose.random() < 0.3 or not isinstance(here[key], (dict, list)):
                here[key] = deepcopy(choose.choice(JUNK))  # it may be damaged itself
                break
            here = here[key]
    return data


JUNK: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "{{", "{{n}}", "{{a | b}}", "a >> b", "__class__", [], {}, [[]],
    {"": ""}, {"id": "a"}, {"type": "start"}, "a", "z", "m", "é\u2028", "9" * 50, {"$ref": "#"}, ["a", 1],
]  # fmt: skip


@pytest.mark.covers("CV-51", "PLATFORM-PROOF-01")
def test_damaged_document_is_answered_with_problems_and_never_with_an_error() -> None:
    choose, site = random.Random(7), site_of({})
    whole = [read_yaml(path.read_text()) for path in sorted(CORPUS.glob("*.yaml"))]
    whole += [read_yaml(fixed) for _, fixed in EXAMPLES.values()]
    for _ in range(800):
        found = compile_document(read_data(damaged(choose.choice(whole), choose)), site)
        assert (found.spec is None) == any(each.severity == "error" for each in found.problems)


@pytest.mark.covers("CV-51", "PLATFORM-PROOF-01")
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
