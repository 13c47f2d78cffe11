"""Small documents with their graph, version and trace, as they were when they were added.

A change of a golden file changes the versions of flows that users have deployed: say why in its commit. Write
them anew with HOLDFAST_WRITE_GOLDEN=1.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.app.flow import advance
from holdfast.app.result import Result
from holdfast.documents.program import program_for
from holdfast.frontends.document.canonical import source_of
from holdfast.frontends.document.compile import compile_document
from holdfast.frontends.document.dump import dump_document
from holdfast.frontends.document.read import read_data, read_text
from holdfast.frontends.document.registry import node_types
from holdfast.frontends.document.source import FORMATS
from holdfast.model.fingerprint import decode_graph, encode_graph, graph_fingerprint
from holdfast.model.graph import GraphSpec
from tests.documents.corpus_functions import FUNCTIONS
from tests.documents.run import site_of

CORPUS = Path(__file__).parent / "corpus"
NAMES = sorted(path.stem for path in CORPUS.glob("*.yaml"))


@pytest.mark.covers("PLATFORM-PROOF-01")
def test_corpus_has_enough_documents_and_every_node_type_that_needs_no_outside() -> None:
    assert len(NAMES) >= 30
    read = [read_text((CORPUS / f"{name}.yaml").read_bytes(), "yaml").document for name in NAMES]
    used = {node.type for document in read if document is not None for node in document.nodes}
    # Tested with a server, a model, a queue or other documents in files of their own.
    apart = {
        "agent", "callback", "event", "http", "llm", "queue_consume", "queue_escalation", "queue_publish",
        "subflow", "tool",
    }  # fmt: skip
    assert used >= set(node_types()) - apart


@pytest.mark.covers("PLATFORM-PROOF-01")
@pytest.mark.parametrize("name", NAMES)
async def test_document_has_its_graph_and_runs_as_it_did(hf: Holdfast, name: str) -> None:
    found = await found_of(hf, name)
    golden = CORPUS / f"{name}.golden.json"
    if os.environ.get("HOLDFAST_WRITE_GOLDEN"):
        golden.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    assert found == json.loads(golden.read_text())


async def found_of(hf: Holdfast, name: str) -> Any:
    """Its graph, and how it runs on this store."""
    site = site_of(FUNCTIONS)
    compiled = compile_document(read_text((CORPUS / f"{name}.yaml").read_bytes(), "yaml"), site)
    spec = compiled.require_valid()
    case = json.loads((CORPUS / f"{name}.case.json").read_text())
    ended, questions = await _run(hf, program_for(compiled, site), case)
    found = {
        "version": graph_fingerprint(spec),
        **_graph(spec),
        "questions": questions,
        "trace": await _trace(hf, ended),
        "status": str(ended.status),
        "artifacts": _without_times(msgspec.to_builtins(ended.artifacts)),
    }
    return json.loads(json.dumps(found))


@pytest.mark.covers("CV-31")
@pytest.mark.parametrize("name", NAMES)
def test_document_has_the_same_version_as_json_with_its_keys_in_another_order(name: str) -> None:
    site = site_of(FUNCTIONS)
    read = read_text((CORPUS / f"{name}.yaml").read_bytes(), "yaml")
    assert read.document is not None
    mixed = json.dumps(_reversed(json.loads(dump_document(read.document, "json"))))
    other = compile_document(read_text(mixed, "json"), site).require_valid()
    assert graph_fingerprint(other) == graph_fingerprint(compile_document(read, site).require_valid())


@pytest.mark.covers("PLATFORM-DOC-03", "CV-12")
@pytest.mark.parametrize("name", NAMES)
def test_document_is_dumped_back_without_loss_and_its_graph_carries_all_of_its_meaning(name: str) -> None:
    site = site_of(FUNCTIONS)
    read = read_text((CORPUS / f"{name}.yaml").read_bytes(), "yaml")
    assert read.document is not None
    spec = compile_document(read, site).require_valid()
    for form in FORMATS:
        again = read_text(dump_document(read.document, form), form)
        assert again.document == read.document
        assert compile_document(again, site).require_valid() == spec
    # Only the stored graph: its meaning is a document, and that is the same flow.
    stored = decode_graph(encode_graph(spec))
    meaning = read_data(source_of(stored.document))
    assert compile_document(meaning, site).require_valid() == spec
    assert meaning.document is not None
    assert {node.id for node in meaning.document.nodes} == {node.id for node in read.document.nodes}
    assert [edge.name for edge in meaning.document.edges] == [edge.name for edge in read.document.edges]


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(inner) for key, inner in reversed(value.items())}
    return [_reversed(inner) for inner in value] if isinstance(value, list) else value


def _without_times(value: Any) -> Any:
    """Whole answers have the time of the decision."""
    if isinstance(value, dict):
        return {key: _without_times(inner) for key, inner in value.items() if not key.endswith("_result")}
    return [_without_times(inner) for inner in value] if isinstance(value, list) else value


def _graph(spec: GraphSpec) -> dict[str, Any]:
    """Without what is as by default."""
    return {
        "nodes": [
            {key: value for key, value in msgspec.to_builtins(node).items() if value not in (None, {}, False)}
            for node in spec.nodes
        ],
        "edges": [msgspec.to_builtins(edge) for edge in spec.edges],
        "start": list(spec.start),
        "inside": {inner.name: _graph(inner) for inner in spec.subgraphs},
    }


async def _run(hf: Holdfast, program: Any, case: dict[str, Any]) -> tuple[Result[Any], list[str]]:
    hf.register(program)
    service = await hf.service()
    row, _ = await service.create(program, case["input"])
    result = await advance(service, program, row.id, created=True)
    questions: list[str] = []
    for decision, *data in case["answers"]:
        hold = result.holds[0]
        questions.append(f"{hold.node}: {hold.prompt}")
        await service.answer(hold.id, decision, data=data[0] if data else None)
        result = await advance(service, program, row.id)
    return result, questions


async def _trace(hf: Holdfast, result: Result[Any]) -> list[str]:
    events = await (await hf.service()).events(result.run_id, limit=1000)
    kinds = ("node.completed", "node.failed", "node.skipped", "hold.opened", "node.retried")
    return [f"{each.type} {each.scope}{each.node}" for each in events if each.type in kinds]
