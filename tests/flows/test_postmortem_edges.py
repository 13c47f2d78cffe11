"""Post-mortems of what is damaged, huge, renamed or long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from holdfast import Flow, Holdfast
from holdfast.checkpoint.visit import Visit
from holdfast.reports.html import to_html
from holdfast.reports.markdown import to_markdown
from holdfast.reports.postmortem import Gap
from tests.flows.test_postmortem import Page, careful, chapter, examined

pytestmark = pytest.mark.anyio


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_is_made_when_the_journal_is_damaged(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'd.db'}") as hf:
        run = (await careful().run({}, on=hf)).expect().run_id
        connection = apsw.Connection(str(tmp_path / "d.db"))
        sql = "UPDATE journal SET payload = x'00' WHERE key & 4294967295 = ?"
        seq = next(m.seq for m in await (await hf.service()).checkpoints(run) if m.node == "send")
        connection.execute(sql, (seq,))
        connection.close()
        result = await examined(hf, run)
        assert f"record {seq}" in result.unreadable
        assert [c.label for c in result.chapters if isinstance(c, Visit)] == ["think", "send"]
        assert not chapter(result, "send").readable
        for text in (to_markdown(result), Page(to_html(result)).said):
            assert "not readable" in text


@pytest.mark.covers("TOOL-TIME-07", "TOOL-TIME-08")
async def test_report_says_that_a_graph_is_too_large_to_be_drawn(
    bare_hf: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow("wide", effect="pure")
    first = flow.node(id="first")(_passes)
    flow.start(first)
    for i in range(420):
        flow.edge(first, flow.node(id=f"n{i}")(lambda s: None), when="false")
    run = (await flow.run({}, on=bare_hf)).run_id
    result = await examined(bare_hf, run)
    assert "too many for a page" in to_markdown(result)
    page = Page(to_html(result))
    assert "svg" not in page.tags
    assert "too many for a page" in page.said
    # More than any picture has: the report is made all the same.
    monkeypatch.setattr("holdfast.drawing.flow_picture.MOST_DRAWN", 400)
    assert "too large for a page" in to_markdown(await examined(bare_hf, run))


@pytest.mark.covers("TOOL-TIME-07")
async def test_report_follows_a_node_that_a_migration_renamed(bare_hf: Holdfast) -> None:
    old, new = (Flow("order", effect="read", version=label) for label in ("1", "2"))
    for flow, gate in ((old, "gate"), (new, "approve")):
        flow.start(flow.hold(gate, prompt="Go?", options=["yes"]))
    new.migrate("1", rename={"gate": "approve"})
    waiting = await old.run({}, on=bare_hf)
    await new.migrate_runs(on=bare_hf)
    service = await bare_hf.service()
    (hold,) = await service.holds(waiting.run_id)
    await service.answer(hold.id, "yes", by="user:ann")
    (await new.resume(waiting.run_id, on=bare_hf)).expect()

    result = await examined(bare_hf, waiting.run_id)
    (only,) = [c for c in result.chapters if isinstance(c, Visit)]
    assert (only.label, only.outcome, only.questions[0].by) == ("approve", "success", "user:ann")
    assert any(remark.kind == "migrated" for remark in result.remarks)
    assert (await service.replay(waiting.run_id)).same
    found = await service.diff(f"{waiting.run_id}@0", waiting.run_id)
    assert found.a.version != found.b.version


@pytest.mark.covers("TOOL-TIME-07", "TOOL-TIME-08")
async def test_report_of_a_long_run_is_bounded_and_says_what_it_leaves_out(bare_hf: Holdfast) -> None:
    flow = Flow("long", effect="pure")
    before: Any = None
    for i in range(200):
        node: Callable[..., Any] = flow.node(id=f"n{i}", on_failure="skip" if i == 90 else "abort")(
            _fails if i == 90 else _passes
        )
        if before is None:
            flow.start(node)
        else:
            flow.edge(before, node)
        before = node
    run = (await flow.run({}, on=bare_hf)).expect().run_id

    result = await examined(bare_hf, run, chapters=30)
    assert result.visits == 200
    gaps = [part.left_out for part in result.chapters if isinstance(part, Gap)]
    kept = [part.label for part in result.chapters if isinstance(part, Visit)]
    assert (len(kept), sum(gaps)) == (21, 179)
    assert "n90" in kept
    text = to_markdown(result)
    assert "*80 visits at which nothing went wrong are left out here.*" in text
    assert "### 91. n90: skipped" in text
    assert "### 200. n199: success" in text
    assert len(to_html(await examined(bare_hf, run))) < 500_000
    service = await bare_hf.service()
    await service.prune(run, keep=5)
    short = await examined(bare_hf, run, chapters=0)
    assert short.visits == 200
    assert "was pruned" in to_markdown(short)


def _passes(s: dict[str, Any]) -> dict[str, Any]:
    return {"n": s.get("n", 0) + 1}


def _fails(s: dict[str, Any]) -> None:
    raise ValueError("the ninety-first")
