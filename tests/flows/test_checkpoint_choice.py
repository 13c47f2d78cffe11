"""Which records are listed as checkpoints: of the run, then the node, then the flow (D-10, RS-FLOW-8)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Flow, Holdfast, InputError
from holdfast.types.record import Kind
from tests.flows.conftest import node
from tests.flows.places import Place, answer

pytestmark = pytest.mark.anyio


def flow_of(**settings: Any) -> Flow:
    """`plain` follows the flow, `own` says for itself, `ask` waits, `last` comes after the answer."""
    child = Flow("child", effect="pure")
    node(child, "deep")
    flow = Flow("choice", effect="pure", **settings)
    node(flow, "plain")
    node(flow, "own", checkpoint="after")
    flow.subflow("sub", child)
    flow.hold("ask", prompt="?", options=["y"])
    node(flow, "last")
    flow.chain("plain", "own", "sub", "ask", "last")
    return flow


ALWAYS = ["-created", "ask-asked", "-end"]


async def listed(hf: Holdfast, flow: Flow, **options: Any) -> list[str]:
    waiting = await flow.run({}, on=hf, **options)
    await answer(hf, waiting, "y")
    result = await flow.resume(waiting.run_id, on=hf)
    assert result.completed
    records = await (await hf.service()).store.read(result.run_id)
    return [f"{r.node}-{Kind(r.kind).name}" for r in records if r.listed]


EVERY = ["plain", "own", "deep", "sub", "ask", "last"]


@pytest.mark.covers("RS-FLOW-8", "D-10", "G-30")
@pytest.mark.parametrize(
    ("settings", "choice", "steps"),
    [
        ({}, None, EVERY),
        ({"checkpoints": "explicit"}, None, ["own", "deep"]),
        ({"checkpoints": "explicit"}, "every", EVERY),
        ({"checkpoints": "none"}, {"policy": "every_node"}, EVERY),
        ({}, "explicit", ["own"]),
        ({}, "none", []),
        ({}, {"exclude": ["plain", "own", "sub/deep"]}, ["sub", "ask", "last"]),
        ({"checkpoints": "explicit"}, {"exclude": ["own"]}, []),
        ({"checkpoint_when": "before"}, {"when": "after"}, EVERY),
    ],
)
async def test_choice_of_a_run_replaces_that_of_its_flow_before_and_after_a_resume(
    hf: Holdfast, settings: dict[str, Any], choice: Any, steps: list[str]
) -> None:
    options = {} if choice is None else {"checkpoints": choice}
    found = await listed(hf, flow_of(**settings), **options)
    assert [name for name in found if name not in ALWAYS] == [f"{name}-step" for name in steps]
    assert [name for name in found if name in ALWAYS] == ALWAYS


@pytest.mark.covers("RS-FLOW-8")
async def test_choice_of_a_run_lists_starts_when_it_says_before(hf: Holdfast) -> None:
    found = await listed(hf, flow_of(), checkpoints={"when": "before"})
    assert [name for name in found if name not in ALWAYS] == [
        f"{name}-{'step' if name == 'own' else 'attempt'}"
        for name in ["plain", "own", "sub", "deep", "ask", "last"]
    ]


@pytest.mark.covers("RS-FLOW-8")
async def test_choice_of_a_run_survives_the_death_of_its_worker_and_a_fork(place: Place) -> None:
    flow, hf = flow_of(), await place.hf()
    waiting = await flow.run({}, on=hf, checkpoints="none")
    other = await place.hf()
    service = await other.service()
    other.register(flow.program())
    forked = await (await other.service()).fork(waiting.run_id, 0)
    await flow.resume(forked.id, on=other)
    await answer(other, forked.id, "y")
    assert (await flow.resume(forked.id, on=other)).completed
    records = await service.store.read(forked.id)
    assert {Kind(r.kind).name for r in records if r.listed} == {"created", "asked", "end"}


@pytest.mark.parametrize(
    "choice",
    ["some", 7, {"policy": "all"}, {"when": "never"}, {"exclude": ["gone"]}, {"exclude": "own"}, {"x": 1}],
)
async def test_choice_that_means_nothing_is_refused(hf: Holdfast, choice: Any) -> None:
    with pytest.raises(InputError):
        await flow_of().run({}, on=hf, checkpoints=choice)
