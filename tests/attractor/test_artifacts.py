"""The artifact store of section 5.5, by itself and inside a run."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.artifacts import FILE_BACKING_THRESHOLD, ArtifactInfo, ArtifactStore
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.export import export_directory
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import Runner
from holdfast.errors import NotFoundError, ValueNotStorableError
from holdfast.frontends.dot.document import Stage
from tests.attractor.run import line

LARGE = "x" * (FILE_BACKING_THRESHOLD + 1)


@pytest.mark.covers("AT-241", "AT-242", "AT-146", "AT-245")
def test_what_is_large_is_a_file_and_both_come_back(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    before = datetime.now(UTC)
    small = store.store("small", "A small one", {"a": [1, None]})
    large = store.store("large", "A large one", {"text": LARGE})
    assert FILE_BACKING_THRESHOLD == 100 * 1024
    assert isinstance(small, ArtifactInfo)
    assert (small.id, small.name, small.is_file_backed) == ("small", "A small one", False)
    assert small.size_bytes == len('{"a":[1,null]}')
    assert before <= small.stored_at <= datetime.now(UTC)
    assert large.is_file_backed
    assert json.loads((tmp_path / "artifacts" / "large.json").read_text()) == {"text": LARGE}
    assert not (tmp_path / "artifacts" / "small.json").exists()
    assert store.retrieve("small") == {"a": [1, None]}
    assert store.retrieve("large") == {"text": LARGE}
    assert not ArtifactStore().store("large", "no folder", LARGE).is_file_backed


@pytest.mark.covers("AT-241")
def test_the_threshold_itself_stays_in_memory(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    assert not store.store("at", "", "x" * (FILE_BACKING_THRESHOLD - 2)).is_file_backed
    assert store.store("over", "", "x" * (FILE_BACKING_THRESHOLD - 1)).is_file_backed


@pytest.mark.covers("AT-243", "AT-244")
def test_artifacts_are_listed_and_removed(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    store.store("a", "A", 1)
    store.store("b", "B", LARGE)
    assert [info.id for info in store.list()] == ["a", "b"]
    assert store.has("b")
    store.remove("b")
    assert not store.has("b")
    assert not (tmp_path / "artifacts" / "b.json").exists()
    with pytest.raises(NotFoundError, match="artifact not found: 'b'"):
        store.retrieve("b")
    store.remove("b")
    store.clear()
    assert store.list() == []
    with pytest.raises(ValueNotStorableError):
        store.store("c", "C", object())


@pytest.mark.covers("AT-242")
def test_a_caller_cannot_change_what_is_stored(tmp_path: Path) -> None:
    store, data = ArtifactStore(tmp_path), {"list": [1]}
    store.store("a", "A", data)
    data["list"].append(2)
    store.retrieve("a")["list"].append(3)
    assert store.retrieve("a") == {"list": [1]}


def test_an_artifact_never_leaves_its_folder(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "logs")
    store.store("../../evil", "", LARGE)
    assert [path.parent for path in tmp_path.rglob("*.json")] == [tmp_path / "logs" / "artifacts"]
    assert store.retrieve("../../evil") == LARGE


@pytest.mark.covers("AT-244")
def test_several_threads_may_use_it_at_once(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path, threshold=10)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: store.store(f"a{i % 7}", "", "y" * i), range(200)))
    assert len(store.list()) == 7
    assert all(set(store.retrieve(info.id)) <= {"y"} for info in store.list())


@pytest.mark.covers("ATTRACTOR-DIR-04")
def test_several_stores_may_write_one_artifact_at_once(tmp_path: Path) -> None:
    """As branches that have one of the same name do."""
    stores = [ArtifactStore(tmp_path, threshold=10) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: stores[i % 8].store("same", "", str(i) * 1000), range(400)))
    assert len(set(stores[0].retrieve("same"))) <= 3
    assert [path.name for path in (tmp_path / "artifacts").iterdir()] == ["same.json"]


class Keeps:
    """A handler that stores, and one that reads it back later."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    async def execute(
        self, node: Stage, context: PipelineContext, graph: Any, logs_root: Path, *, visit: StageVisit
    ) -> StageOutcome:
        store = await ArtifactStore.of(visit)
        if node.id == "a":
            store.store("large", "Large", {"text": LARGE})
            store.store("middle", "Middle", "m" * 50_000)
            store.store("gone", "Gone", LARGE)
        elif node.id == "b":
            store.remove("gone")
        else:
            self.found = {info.id: store.retrieve(info.id) for info in store.list()}
        if node.id == "b" and not context.get_string("failed"):
            return StageOutcome(status="fail", terminal=True, context_updates={"failed": "once"})
        return StageOutcome()


@pytest.mark.anyio
@pytest.mark.covers("AT-146", "AT-242", "ATTRACTOR-DIR-05")
async def test_artifacts_of_a_run_are_there_for_later_stages_and_made_anew_from_the_journal(
    hf: Holdfast, tmp_path: Path
) -> None:
    keeps, logs = Keeps(), tmp_path / "logs"
    runner = Runner(hf, logs_root=logs)
    runner.register_handler("keeps", keeps)
    text = line("a [type=keeps]; b [type=keeps, max_retries=0]; c [type=keeps];", "a", "b", "c")
    failed = await runner.run(text)
    assert failed.status == "fail"
    (logs / "artifacts" / "large.json").unlink()
    found = await runner.resume(failed.run_id)
    assert found.succeeded
    assert keeps.found == {"large": {"text": LARGE}, "middle": "m" * 50_000}
    saved = json.loads((logs / "checkpoint.json").read_text())
    assert saved["artifacts"] == {
        "large": {"name": "Large", "path": "artifacts/large.json"},
        "middle": {"name": "Middle", "path": None},
    }
    await export_directory(await hf.service(), found.run_id, tmp_path / "again")
    made = tmp_path / "again" / "artifacts" / "large.json"
    assert json.loads(made.read_text()) == {"text": LARGE}
    assert made.read_bytes() == (logs / "artifacts" / "large.json").read_bytes()
    assert not (tmp_path / "again" / "artifacts" / "gone.json").exists()
