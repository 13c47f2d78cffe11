"""Secret fields: nodes see them and the store keeps them, and nobody is shown them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import msgspec
import pytest

from holdfast import Context, Flow, Holdfast, append
from holdfast.checkpoint.json_view import jsonable
from holdfast.model.secrets import masked, parsed, secret_paths
from holdfast.types.redaction import MASK, Redactor, Secret, redactor

CANARY = "c4n4ry-token-8871"
PIN = 42


@pytest.fixture(autouse=True)
def fresh_veil() -> Iterator[None]:
    """As in a process that has met nothing."""
    redactor.forget()
    yield
    redactor.forget()


@dataclass(frozen=True)
class Card:
    number: Annotated[str, Secret]
    holder: str = ""


@dataclass
class Order:
    name: str
    token: Annotated[str, Secret]
    pin: Annotated[int, Secret] = PIN
    card: Card | None = None
    cards: Annotated[list[Card], append] = field(default_factory=list[Card])
    decision: str = ""
    note: str = ""


class Struct(msgspec.Struct):
    token: Annotated[str, Secret]
    inner: dict[str, Card] = {}


class Typed(TypedDict, total=False):
    token: Annotated[str | None, Secret()]
    cards: list[Card]


def test_paths_are_found_in_every_kind_of_state() -> None:
    assert secret_paths(Order) == [("token",), ("pin",), ("card", "number"), ("cards", "*", "number")]
    assert secret_paths(Struct) == [("token",), ("inner", "*", "number")]
    assert secret_paths(Typed) == [("token",), ("cards", "*", "number")]
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", token=(Annotated[str, Secret], ...), other=(str, ""))
    assert secret_paths(model) == [("token",)]


def test_paths_hide_what_lies_there_and_nothing_else() -> None:
    paths = parsed(["token", "card.number", "cards.*.number"])
    given = {
        "token": CANARY,
        "name": "n",
        "card": {"number": "4111", "holder": "h"},
        "cards": [{"number": "1"}, {"holder": "x"}],
        "child": {"token": "deep"},
        "none": {"token": None},
    }
    assert masked(given, paths) == {
        "token": MASK,
        "name": "n",
        "card": {"number": MASK, "holder": "h"},
        "cards": [{"number": MASK}, {"holder": "x"}],
        "child": {"token": MASK},
        "none": {"token": None},
    }
    assert given["token"] == CANARY


def test_typed_values_hide_their_own_fields() -> None:
    assert jsonable([Card("4111", "h"), Struct("t", {"a": Card("1")})]) == [
        {"number": MASK, "holder": "h"},
        {"token": MASK, "inner": {"a": {"number": MASK, "holder": ""}}},
    ]


def test_veil_hides_long_values_in_any_text_and_leaves_short_ones() -> None:
    one = Redactor()
    one.learn({"a": [CANARY, "ab"], "n": 1234567})
    assert one.redact(f"x{CANARY}y ab 1234567") == f"x{MASK}y ab {MASK}"


def order_flow(fail: bool = True) -> Flow:
    flow = Flow("order", state=Order, types=[Card])

    @flow.node(effect="read")
    async def check(s: Order, ctx: Context) -> dict[str, Any]:
        assert (s.token, s.pin, s.card and s.card.number) == (CANARY, PIN, CANARY + "-card")
        ctx.emit(f"using {s.token}")
        ctx.log.warning("calling with %s", s.token)
        return {"note": f"seen {s.token}", "cards": [Card(CANARY + "-more")]}

    ask = flow.hold("ask", prompt="Use {{token}} with {{card}} for {{name}}, {{pin}}?", options=["yes", "no"])

    @flow.node(effect="read")
    async def use(s: Order) -> dict[str, Any]:
        if fail:
            raise ValueError(f"the bank refused {s.token}")
        return {}

    flow.edge(check, ask)
    flow.edge(ask, use)
    return flow


GIVEN = {"name": "n", "token": CANARY, "card": {"number": CANARY + "-card", "holder": "h"}}


async def failed_run(hf: Holdfast) -> str:
    flow = order_flow()
    result = await flow.run(GIVEN, on=hf)
    service = await hf.service()
    (hold,) = await service.holds(result.run_id)
    assert hold.prompt == f'Use {MASK} with {{"holder":"h","number":"{MASK}"}} for n, {MASK}?'
    await service.answer(hold.id, "yes")
    assert (await flow.resume(result.run_id, on=hf)).failed
    return result.run_id


@pytest.mark.anyio
@pytest.mark.covers("TOOL-KEEP-09")
async def test_nothing_that_is_shown_through_the_library_has_the_secret(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    address = f"sqlite:{tmp_path / 'h.db'}"
    caplog.set_level(logging.DEBUG)
    async with Holdfast(address) as hf:
        run = await failed_run(hf)
    assert "calling with ***" in caplog.text
    for known in (True, False):
        redactor.forget()
        async with Holdfast(address) as hf:
            if known:
                hf.register(order_flow().program())
            service = await hf.service()
            row = await service.get(run)
            listed = await service.checkpoints(run, limit=0)
            shown = [
                row.error,
                [hold.prompt for hold in await service.holds(run, open_only=False)],
                [jsonable(event) for event in await service.events(run, after=6)],
                [jsonable(event) for event in await service.events(run)],
                [(await service.checkpoint(meta.id)).as_interface() for meta in listed],
                [jsonable(await service.checkpoint(meta.id)) for meta in listed],
            ]
            text = json.dumps(shown)
            assert CANARY not in text
            assert '"pin": 42' not in text
            assert "the bank refused ***" in text
    assert CANARY not in caplog.text


@pytest.mark.anyio
@pytest.mark.covers("TOOL-KEEP-10")
async def test_nodes_the_store_forks_and_exports_have_the_value(tmp_path: Any) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}") as hf:
        flow = order_flow(fail=False)
        waiting = await flow.run(GIVEN, on=hf)
        assert waiting.state.token == CANARY
        service = await hf.service()
        found = await service.latest(waiting.run_id)
        assert (found.state["token"], found.state["note"]) == (CANARY, f"seen {CANARY}")
        assert found.state["cards"][0].number == CANARY + "-more"
        assert CANARY.encode() in await service.export_run(waiting.run_id)
        fork = await service.fork(found.id)
        (hold,) = await service.holds(fork.id)
        await service.answer(hold.id, "yes")
        assert (await flow.resume(fork.id, on=hf)).expect().state.token == CANARY


@pytest.mark.anyio
@pytest.mark.covers("TOOL-KEEP-10")
async def test_mark_changes_no_byte_of_what_is_stored() -> None:
    class Plain(TypedDict, total=False):
        token: str

    class Hidden(TypedDict, total=False):
        token: Annotated[str, Secret]

    payloads: list[list[bytes]] = []
    for state in (Plain, Hidden):
        async with Holdfast("memory:") as hf:
            flow = Flow("same", state=state, effect="pure")

            async def work(s: Any) -> dict[str, Any]:
                return {"token": s["token"] + "!"}

            flow.node()(work)
            run = (await flow.run({"token": CANARY}, on=hf)).expect().run_id
            records = await (await hf.service()).store.read(run)  # type: ignore[arg-type]
            payloads.append([r.payload for r in records if CANARY.encode() in r.payload])
    assert len(payloads[0]) == len(payloads[1]) >= 2


@pytest.mark.anyio
@pytest.mark.covers("TOOL-KEEP-09")
async def test_secret_fields_of_a_flow_without_a_type_are_named() -> None:
    async with Holdfast("memory:") as hf:
        flow = Flow("open", effect="pure", secrets=["token", "people.*.code"])

        async def work(s: dict[str, Any]) -> dict[str, Any]:
            return {"people": [{"code": "abc", "name": "n"}]}

        flow.node()(work)
        run = (await flow.run({"token": 7}, on=hf)).expect().run_id
        shown = (await (await hf.service()).latest(run)).as_interface()
        assert shown["state"]["scratch"] == {"token": MASK, "people": [{"code": MASK, "name": "n"}]}
        assert shown["state"]["input"] == {"token": MASK}
        assert shown["nodeResults"]["work"]["output"] in (None, {"people": [{"code": MASK, "name": "n"}]})


@pytest.mark.anyio
@pytest.mark.covers("TOOL-KEEP-09")
async def test_secrets_of_a_sub_flow_are_hidden_in_the_run_around_it() -> None:
    async with Holdfast("memory:") as hf:
        child = Flow("child", effect="pure", secrets=["key"])

        async def inner(s: dict[str, Any]) -> dict[str, Any]:
            return {"key": CANARY, "said": f"with {CANARY}"}

        child.node()(inner)
        flow = Flow("parent", effect="pure")
        flow.subflow("call", child, inputs={"key": "given"}, outputs={"result": "state.said"})
        run = (await flow.run({"given": "x"}, on=hf)).expect().run_id
        service = await hf.service()
        shown = json.dumps([(await service.latest(run)).as_interface(), jsonable(await service.events(run))])
        assert CANARY not in shown


def test_mark_leaves_other_flows_their_version() -> None:
    def make(**options: Any) -> str:
        flow = Flow("v", effect="pure", **options)
        flow.node(id="a")(lambda s: None)
        return flow.program().version

    assert make() == make(secrets=[]) != make(secrets=["token"])


def _pydantic_state() -> Any:
    pydantic = pytest.importorskip("pydantic")
    return pydantic.create_model("State", token=(Annotated[str, Secret], ...), note=(str, ""))


@dataclass
class DataState:
    token: Annotated[str, Secret]
    note: str = ""


class StructState(msgspec.Struct):
    token: Annotated[str, Secret]
    note: str = ""


class DictState(TypedDict, total=False):
    token: Annotated[str, Secret]
    note: str


@pytest.mark.anyio
@pytest.mark.covers("TOOL-KEEP-09", "TOOL-KEEP-10")
@pytest.mark.parametrize("kind", [DataState, StructState, DictState, _pydantic_state])
async def test_field_is_hidden_and_seen_by_nodes_whatever_the_kind_of_state(kind: Any) -> None:
    state = kind() if kind is _pydantic_state else kind
    async with Holdfast("memory:") as hf:
        flow = Flow("kinds", state=state, effect="pure")

        async def work(s: Any) -> dict[str, Any]:
            token = s["token"] if isinstance(s, dict) else s.token
            return {"note": f"{token[:3]} of {len(token)}"}

        flow.node()(work)
        result = (await flow.run({"token": "ab7"}, on=hf)).expect()
        shown = (await (await hf.service()).latest(result.run_id)).as_interface()
        assert shown["state"]["scratch"] == {"token": MASK, "note": "ab7 of 3"}
        assert jsonable(result.state)["note"] == "ab7 of 3"
        if state is not DictState:
            assert jsonable(result.state)["token"] == MASK
