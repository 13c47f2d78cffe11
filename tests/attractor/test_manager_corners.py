"""Managers where it gets odd: a child that looks after its own parent, and one whose walk began anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor.runner import Runner
from holdfast.errors import PipelineInvalidError
from holdfast.store.rows import RunFilter
from tests.attractor.run import dot, run

pytestmark = pytest.mark.anyio

TOOL = "shape=parallelogram, tool_command"


@pytest.mark.covers("ATTRACTOR-RUN-03", "ATTRACTOR-BAD-03")
async def test_pipelines_that_look_after_each_other_are_refused_by_name(hf: Holdfast, tmp_path: Path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        graph = f'graph [stack.child_dotfile="{other}.dot"]'
        text = f"digraph {name} {{ {graph}; start; exit; m [shape=house]; start -> m -> exit }}"
        (tmp_path / f"{name}.dot").write_text(text)
    cycle = r"start each other in a cycle: one\.dot -> two\.dot -> one\.dot"
    with pytest.raises(PipelineInvalidError, match=cycle):
        await Runner(hf, logs_root=tmp_path / "L").run(tmp_path / "one.dot")
    service = await hf.service()
    assert not await service.store.list_runs(RunFilter(), after=None, limit=10)


@pytest.mark.covers("ATTRACTOR-RUN-03", "ATTRACTOR-BAD-03")
async def test_pipelines_that_start_each_other_late_are_a_failure_that_names_them(
    hf: Holdfast, tmp_path: Path
) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        graph = f'graph [stack.child_dotfile="{other}.dot", stack.child_resolve=late]'
        text = f"digraph {name} {{ {graph}; start; exit; m [shape=house]; start -> m -> exit }}"
        (tmp_path / f"{name}.dot").write_text(text)
    found = await Runner(hf, logs_root=tmp_path / "L").run(tmp_path / "one.dot")
    assert found.status == "fail"
    assert "start each other in a cycle: one.dot -> two.dot -> one.dot" in found.outcome.failure_reason
    service = await hf.service()
    rows = await service.store.list_runs(RunFilter(), after=None, limit=10)
    assert sorted(row.flow for row in rows) == ["one", "two"]


@pytest.mark.covers("AT-205", "AT-246")
async def test_a_child_whose_walk_began_anew_is_steered_in_its_new_directory(
    hf: Holdfast, tmp_path: Path
) -> None:
    mark, result = tmp_path / "mark", "$ATTRACTOR_STAGE_DIR/intervention.md"
    command = f"test -e {mark} || {{ touch {mark}; exit 1; }}; "
    command += f"until test -e {result} || ! test -e {mark}; do sleep 0.01; done"
    child = tmp_path / "child.dot"
    child.write_text(
        dot(
            f'c [{TOOL}="{command}; cat {result}", timeout=20s];',
            'start -> c; c -> done [condition="outcome=success"]; '
            'c -> c [condition="outcome=fail", loop_restart=true]',
        )
    )
    orders = 'manager.actions="steer,wait", manager.poll_interval=20ms, manager.steer_text="hurry up"'
    text = dot(f"m [shape=house, {orders}];", "start -> m -> done", f'stack.child_dotfile="{child}"')
    assert (await run(hf, text, tmp_path / "logs")).succeeded
    again = tmp_path / "logs/m/child-1/restart-1/c"
    assert (again / "tool-2-1-1/stdout").read_text() == "hurry up"


@pytest.mark.covers("ATTRACTOR-RUN-03", "AT-200")
async def test_a_manager_sees_no_run_of_another_tenant(hf: Holdfast, tmp_path: Path) -> None:
    gate = dot("ask [shape=hexagon, label=Secret];", "start -> ask -> done")
    theirs = await Runner(hf, logs_root=tmp_path / "theirs").run(gate, tenant="them")
    text = dot("m [shape=house, stack.child_autostart=false];", "start -> m -> done")
    given = {"context.stack.child.run_id": theirs.run_id}
    ours = await Runner(hf, logs_root=tmp_path / "ours").run(text, context=given, tenant="us")
    assert (ours.status, "context.stack.child.status" in ours.context) == ("fail", False)
    assert theirs.run_id in ours.outcome.failure_reason
