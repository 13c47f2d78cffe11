"""The state of a run as a new version declares it: fitted, migrated by what was declared, or refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

from holdfast import Flow, append, renamed
from tests.flows.places import Place, answer

pytestmark = pytest.mark.anyio


@dataclass
class One:
    amount: int
    note: str = ""
    log: Annotated[list[str], append] = field(default_factory=list)
    decision: str = ""


@dataclass
class Two:
    total: int
    currency: str
    log: Annotated[list[str], append] = field(default_factory=list)
    decision: str = ""
    tags: list[str] = field(default_factory=list)


def flow_of(label: str, kept: Any, **migration: Any) -> Flow:
    flow = Flow("bill", state=kept, effect="read", version=label)

    async def look(s: Any) -> dict[str, Any]:
        return {"log": [f"look {label}"]}

    flow.node(id="look")(look)
    flow.hold("gate", prompt="Go?", options=["yes"])
    flow.node(id="after")(look)
    flow.edge("look", "gate")
    flow.edge("gate", "after")
    if migration:
        flow.migrate("1", **migration)
    return flow


BY_FIELDS = {"state": {"total": renamed("amount"), "currency": "EUR"}, "drop": ["note"]}
BY_FUNCTION = {
    "state": lambda s: {
        "total": s["amount"],
        "currency": "EUR",
        "log": s["log"],
        "decision": s["decision"],
    }
}


@pytest.mark.parametrize("how", [BY_FIELDS, BY_FUNCTION], ids=["fields", "function"])
@pytest.mark.covers("TOOL-VER-03")
async def test_the_state_becomes_what_was_declared_and_the_run_goes_on_with_it(
    place: Place, how: dict[str, Any]
) -> None:
    waiting = await flow_of("1", One).run({"amount": 7, "note": "x"}, on=await place.hf())
    new, hf = flow_of("2", Two, **how), await place.hf()
    (verdict,) = await new.migrate_runs(on=hf)
    assert verdict.migrated, verdict.misfits
    await answer(hf, waiting, "yes")
    result = await new.resume(waiting.run_id, on=hf)
    assert result.completed
    assert result.state == Two(7, "EUR", ["look 1", "look 2"], "yes", [])


@pytest.mark.covers("TOOL-VER-02", "TOOL-VER-03", "TOOL-VER-07")
async def test_every_field_that_does_not_fit_is_named_with_what_would_repair_it(place: Place) -> None:
    await flow_of("1", One).run({"amount": 7}, on=await place.hf())
    (verdict,) = await flow_of("2", Two).check_runs(on=await place.hf())
    shown = {misfit.why: misfit.fix for misfit in verdict.misfits}
    assert any("'total' is missing" in why and "state=" in mend for why, mend in shown.items()), shown
    assert any("no field 'amount'" in why and "drop=" in mend for why, mend in shown.items()), shown
    assert any("no field 'note'" in why for why in shown), shown


@pytest.mark.covers("TOOL-VER-02")
async def test_what_is_wrong_with_place_and_state_is_reported_at_once(place: Place) -> None:
    await flow_of("1", One).run({"amount": 7}, on=await place.hf())
    other = Flow("bill", state=Two, effect="read", version="2")
    other.hold("door", prompt="Go?", options=["yes"])
    (verdict,) = await other.check_runs(on=await place.hf())
    text = " ".join(misfit.why for misfit in verdict.misfits)
    assert "it is at node 'gate'" in text
    assert "'currency' is missing" in text


@pytest.mark.covers("TOOL-VER-02")
async def test_a_field_of_another_type_is_a_reason(place: Place) -> None:
    @dataclass
    class Texts:
        amount: str
        note: str = ""
        log: Annotated[list[str], append] = field(default_factory=list)
        decision: str = ""

    await flow_of("1", One).run({"amount": 7}, on=await place.hf())
    (verdict,) = await flow_of("2", Texts).check_runs(on=await place.hf())
    assert "'amount' does not fit: expected `str`, got `int`" in verdict.misfits[0].why
    fits = flow_of("3", Texts, state={"amount": lambda s: str(s["amount"])})
    (verdict,) = await fits.check_runs(on=await place.hf())
    assert verdict.fits


@pytest.mark.covers("TOOL-VER-07")
async def test_one_run_that_does_not_fit_does_not_stop_the_others(place: Place) -> None:
    def strict(s: dict[str, Any]) -> dict[str, Any]:
        if s["amount"] < 0:
            raise ValueError("no debts")
        return {"total": s["amount"], "currency": "EUR"}

    hf = await place.hf()
    runs = [(await flow_of("1", One).run({"amount": n}, on=hf)).run_id for n in (1, -1, 2)]
    new, later = flow_of("2", Two, state=strict), await place.hf()
    verdicts = {v.run: v for v in await new.migrate_runs(on=later)}
    assert [verdicts[run].migrated for run in runs] == [True, False, True]
    assert "ValueError: no debts" in verdicts[runs[1]].misfits[0].why
    service = await later.service()
    assert (await service.get(runs[1])).version == flow_of("1", One).program().version


@pytest.mark.covers("TOOL-VER-03")
async def test_versions_lead_to_the_newest_step_by_step(place: Place) -> None:
    """By flows that carry their own migrations, and by labels of versions whose code is gone."""
    first = flow_of("1", None)
    second = flow_of("2", None, state={"b": renamed("a")})
    third = flow_of("3", None)
    third.migrate(second, state={"c": renamed("b")})
    gone = flow_of("4", None)
    gone.migrate("1", to="2", state={"b": renamed("a")})
    gone.migrate("2", state={"d": renamed("b")})
    hf = await place.hf()
    for new, name in ((third, "c"), (gone, "d")):
        waiting = await first.run({"a": 5}, on=hf)
        later = await place.hf()
        (verdict,) = await new.migrate_runs(waiting.run_id, on=later)
        assert verdict.migrated, verdict
        latest = await (await later.service()).latest(waiting.run_id)
        assert latest.state[name] == 5
        assert "a" not in latest.state


@pytest.mark.covers("TOOL-VER-03", "D-24")
async def test_what_parallel_branches_hold_is_renamed_with_the_rest_or_refused(place: Place) -> None:
    def parallel(label: str, **migration: Any) -> Flow:
        flow = Flow("par", effect="read", version=label, reducers={"got" if label == "1" else "had": append})
        field_name = "got" if label == "1" else "had"

        async def work() -> dict[str, Any]:
            return {field_name: ["a"]}

        async def start() -> None: ...

        flow.node(id="start")(start)
        flow.node(id="a")(work)
        flow.hold("gate", prompt="Go?", options=["yes"])
        flow.node(id="join")(work)
        flow.start("start")
        for name in ("a", "gate"):
            flow.edge("start", name)
            flow.edge(name, "join")
        if migration:
            flow.migrate("1", **migration)
        return flow

    waiting = await parallel("1").run({"got": ["0"]}, on=await place.hf())
    hf = await place.hf()
    (verdict,) = await parallel("2").migrate_runs(on=hf)
    assert "the reducer of 'got' is set in NEW" in verdict.misfits[0].why
    by_function = parallel("2", state={"had": renamed("got"), "n": lambda s: len(s)})
    (verdict,) = await by_function.migrate_runs(on=hf)
    assert "a function cannot migrate them" in verdict.misfits[0].why
    new = parallel("3", state={"had": renamed("got")})
    (verdict,) = await new.migrate_runs(on=hf)
    assert verdict.migrated, verdict.misfits
    await answer(hf, waiting, "yes")
    result = await new.resume(waiting.run_id, on=hf)
    assert list(result.state["had"]) == ["0", "a", "a"]


@pytest.mark.covers("TOOL-VER-03", "D-37")
async def test_large_values_stay_where_they_are_or_go_where_large_values_lie(place: Place) -> None:
    big = "x" * 300_000
    waiting = await flow_of("1", None).run({"a": big, "b": "y" * 200_000}, on=await place.hf())
    new = flow_of("2", None, state={"c": renamed("a"), "made": lambda s: "z" * 250_000})
    hf = await place.hf()
    (verdict,) = await new.migrate_runs(on=hf)
    assert verdict.migrated
    service = await hf.service()
    row = await service.get(waiting.run_id)
    (record,) = await service.store.read(row.id, first=row.migrated, last=row.migrated)
    assert len(record.payload) < 5_000
    await answer(hf, waiting, "yes")
    result = await new.resume(waiting.run_id, on=hf)
    assert (result.state["c"], result.state["made"]) == (big, "z" * 250_000)
