"""Where queues have to be listed, a flow with another one is refused wherever it is checked or deployed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from holdfast import Flow, Holdfast
from holdfast.cli.commands.check import check_spec
from holdfast.documents.deploy import DeployedFlows, SentDocument
from holdfast.errors import FlowInvalidError
from holdfast.queues.settings import QueueSettings, QueueSpec
from tests.api.conftest import serving
from tests.documents.run import flow_text

pytestmark = [pytest.mark.anyio, pytest.mark.covers("QU-2")]

SETTINGS = QueueSettings(strict=True, queues={"shop/work": QueueSpec()})
NODES = {
    "hitl_review": "queue: %s, sections: [{type: decision, options: [ok]}], timeout: 1h, on_timeout: cancel",
    "queue_publish": "queue: %s, payload: 1",
    "queue_consume": "queue: %s, timeout: 1h, on_timeout: cancel",
    "queue_escalation": "queue: %s, message: some",
}
nodes = pytest.mark.parametrize("kind", NODES)


def document(kind: str, queue: str) -> str:
    middle = f"{{id: m, type: {kind}, config: {{{NODES[kind] % queue}}}}}"
    return flow_text(
        f"{{id: a, type: start}}\n{middle}\n{{id: z, type: end}}",
        "a -> m -> z",
        "config: {scaiqueue: {scope: shop}}",
    )


def asking(queue: str) -> Flow:
    flow = Flow("asking", effect="pure")
    flow.hold("ask", prompt="Go?", queue=f"shop/{queue}", timeout="1h", on_timeout="cancel")
    return flow


@nodes
async def test_document_with_an_unlisted_queue_is_neither_valid_nor_deployed(kind: str) -> None:
    async with Holdfast("memory:", queues=SETTINGS) as hf, serving(hf) as server:
        for queue, status, valid in (("other", 422, False), ("work", 201, True)):
            body = {"source": document(kind, queue), "format": "yaml"}
            checked = await server.json("POST", "/v1/flows/validate", json=body)
            assert checked["valid"] is valid
            assert [each["rule"] for each in checked["problems"]] == ([] if valid else ["queue-unlisted"])
            await server.json("POST", "/v1/flows", status, json=body)
        deployed = DeployedFlows(await hf.service(), "default")
        with pytest.raises(FlowInvalidError, match="shop/other"):
            await deployed.deploy(
                SentDocument(raw=document(kind, "other").encode(), format="yaml"), by="user:ann"
            )


@nodes
def test_check_of_a_document_names_an_unlisted_queue(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, settings = tmp_path / "sample.yaml", tmp_path / "queues.toml"
    settings.write_text('strict = true\n[queues."shop/work"]\n')
    monkeypatch.setenv("HOLDFAST_QUEUES", str(settings))
    for queue, expected in (("other", ["queue-unlisted"]), ("work", [])):
        file.write_text(document(kind, queue))
        [found] = check_spec(str(file))
        assert [each.rule for each in found.diagnostics] == expected


def test_check_of_a_flow_in_python_names_an_unlisted_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "queues.toml"
    settings.write_text('strict = true\n[queues."shop/work"]\n')
    monkeypatch.setenv("HOLDFAST_QUEUES", str(settings))
    file = tmp_path / "asks_in_an_unlisted_queue.py"
    file.write_text(
        "from holdfast import Flow\n"
        "flow = Flow('asking', effect='pure')\n"
        "flow.hold('ask', prompt='Go?', queue='shop/other', timeout='1h', on_timeout='cancel')\n"
    )
    [found] = check_spec(str(file))
    assert [each.rule for each in found.diagnostics] == ["queue-unlisted"]


async def test_flow_in_python_with_an_unlisted_queue_is_neither_valid_nor_run() -> None:
    async with Holdfast("memory:", queues=SETTINGS) as hf, serving(hf) as server:
        for queue, expected in (("other", ["queue-unlisted"]), ("work", [])):
            graph = msgspec.to_builtins(asking(queue).compile().graph.spec)
            checked = await server.json("POST", "/v1/flows/validate", json={"graph": graph})
            assert [each["rule"] for each in checked["problems"]] == expected
        with pytest.raises(FlowInvalidError, match="shop/other"):
            await asking("other").run({}, on=hf)
        assert (await asking("work").run({}, on=hf)).status == "pending_input"
