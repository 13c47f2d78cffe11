"""The state of a flow: what may go in, what a handler sees, what an update becomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from holdfast.errors import StateError, StateMutationError, ValueNotStorableError
from holdfast.model.reducer_marks import append, avg, concat, merge, reducer, sum_
from holdfast.model.state_schema import DELETE, StateSchema
from holdfast.types.value import FrozenDict, FrozenList


class Colour(Enum):
    red = "r"


@dataclass(frozen=True)
class Place:
    street: str
    number: int


@dataclass
class Order:
    id: str
    amount: int
    tags: Annotated[list[str], append] = field(default_factory=list)
    note: str | None = None
    at: datetime | None = None
    place: Place | None = None
    colour: Colour = Colour.red
    share: float = 0.0


class OrderStruct(msgspec.Struct):
    id: str
    amount: int
    tags: Annotated[list[str], append] = []


class OrderDict(TypedDict):
    id: str
    amount: NotRequired[int]
    tags: Annotated[list[str], append]


class OrderModel(pydantic.BaseModel):
    id: str
    amount: int = pydantic.Field(ge=0)
    tags: Annotated[list[str], append] = []


KINDS = [Order, OrderStruct, OrderDict, OrderModel, None]
TYPED = [Order, OrderStruct, OrderDict, OrderModel]
GIVEN = {"id": "A", "amount": 1, "tags": ["x"]}


def update(state: Any, **changes: Any) -> list[Any]:
    schema = StateSchema(state)
    return schema.ops(changes, schema.start(GIVEN)[1])


@pytest.mark.covers("CORE-FLOW-04")
@pytest.mark.parametrize(
    ("state", "kind"), [(Order, Order), (OrderStruct, OrderStruct), (OrderModel, OrderModel)]
)
def test_state_is_built_as_its_own_type(state, kind):
    schema = StateSchema(state)
    built = schema.build(schema.start(GIVEN)[1])
    assert type(built) is kind
    assert (built.id, built.amount, built.tags) == ("A", 1, ["x"])


@pytest.mark.parametrize("state", [OrderDict, None])
def test_state_without_a_class_is_a_read_only_mapping(state):
    schema = StateSchema(state)
    built = schema.build(schema.start(GIVEN)[1])
    assert built == GIVEN
    with pytest.raises(StateMutationError):
        built["amount"] = 2


@pytest.mark.covers("G-8")
@pytest.mark.parametrize("state", KINDS)
def test_input_is_frozen_deeply_and_the_callers_object_is_not(state):
    given = {"id": "A", "amount": 1, "tags": ["x"]}
    kept, scratch = StateSchema(state).start(given)
    assert isinstance(kept, FrozenDict)
    assert isinstance(scratch["tags"], FrozenList)
    given["tags"].append("y")
    assert scratch["tags"] == kept["tags"] == ["x"]
    with pytest.raises(StateMutationError):
        kept["tags"].append("z")


def test_start_takes_an_instance_and_fills_defaults():
    kept, scratch = StateSchema(Order).start(Order("A", 1))
    assert kept["id"] == "A"
    minimal = StateSchema(OrderStruct).start({"id": "A", "amount": 2})
    assert minimal == ({"id": "A", "amount": 2}, {"id": "A", "amount": 2, "tags": []})
    assert scratch["colour"] is Colour.red


def test_factories_of_defaults_are_called_for_each_run():
    counter = iter(range(5))

    @dataclass
    class Numbered:
        n: int = field(default_factory=lambda: next(counter))

    schema = StateSchema(Numbered)
    assert schema.start({})[1]["n"] < schema.start({})[1]["n"]


def test_start_lists_every_problem():
    with pytest.raises(StateError) as caught:
        StateSchema(Order).start({"amuont": 1, "note": 5, "share": "x"})
    text = str(caught.value)
    for part in (
        "'amuont'",
        "did you mean 'amount'",
        "'id' is missing",
        "'amount' is missing",
        "'note'",
        "'share'",
    ):
        assert part in text


def test_pydantic_input_is_checked_by_the_model_itself():
    with pytest.raises(StateError, match="amount"):
        StateSchema(OrderModel).start({"id": "A", "amount": -1})


def test_start_refuses_what_is_no_mapping():
    with pytest.raises(StateError, match="list"):
        StateSchema(Order).start([1])


def test_start_converts_what_json_cannot_say():
    scratch = StateSchema(Order).start(
        {
            "id": "A",
            "amount": 1,
            "at": "2026-01-02T03:04:05Z",
            "place": {"street": "s", "number": 1},
            "colour": "r",
        }
    )[1]
    assert scratch["at"] == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert (scratch["place"], scratch["colour"]) == (Place("s", 1), Colour.red)


@pytest.mark.parametrize("state", TYPED)
def test_update_of_an_unknown_field_names_the_nearest(state):
    with pytest.raises(StateError, match=r"no field 'amuont' .did you mean 'amount'"):
        update(state, amuont=1)


@pytest.mark.parametrize("state", TYPED)
@pytest.mark.parametrize("wrong", [{"amount": "2.5"}, {"tags": [1]}])
def test_update_of_the_wrong_type_is_refused(state, wrong):
    with pytest.raises(StateError, match=next(iter(wrong))):
        update(state, **wrong)


@pytest.mark.parametrize(
    "wrong", [{"amount": True}, {"amount": 1.0}, {"share": Decimal("0.1")}, {"note": b"x"}]
)
def test_update_is_never_coerced_where_that_changes_its_meaning(wrong):
    with pytest.raises(StateError):
        update(Order, **wrong)


@pytest.mark.parametrize("state", KINDS)
def test_update_becomes_operations_in_order(state):
    assert update(state, amount=2, id="B") == [("scratch", "amount", "set", 2), ("scratch", "id", "set", "B")]


@pytest.mark.parametrize("state", TYPED)
def test_append_takes_one_item_or_several(state):
    assert update(state, tags="y") == [("scratch", "tags", "append", "y")]
    ((_, _, op, operand),) = update(state, tags=["y", "z"])
    assert (op, operand, type(operand)) == ("append", ["y", "z"], FrozenList)


def test_instances_of_declared_types_pass_and_others_do_not():
    place = Place("s", 1)
    assert update(Order, place=place) == [("scratch", "place", "set", place)]
    with pytest.raises(ValueNotStorableError):
        StateSchema(None).ops({"place": place}, {})
    assert StateSchema(None, types=[Place]).ops({"place": place}, {})[0][3] is place


def test_types_named_by_the_state_are_declared_by_it():
    assert set(StateSchema(Order).types) == {Place, Colour}


def test_field_of_a_type_that_is_not_frozen_is_a_problem():
    @dataclass
    class Loose:
        x: int

    @dataclass
    class Holder:
        loose: Loose | None = None

    assert [p.rule for p in StateSchema(Holder).problems()] == ["state-type"]


def test_default_that_does_not_fit_is_a_problem():
    @dataclass
    class Wrong:
        n: int = "x"  # type: ignore[assignment]

    assert [p.rule for p in StateSchema(Wrong).problems()] == ["state-default"]


@pytest.mark.covers("D-26")
def test_custom_reducer_is_applied_at_once_and_stored_as_a_set():
    @dataclass
    class Best:
        best: Annotated[int | None, reducer(lambda old, new: old * 10 + new)] = None

    schema = StateSchema(Best)
    assert schema.ops({"best": 3}, {"best": None}) == [("scratch", "best", "set", 3)]
    assert schema.ops({"best": 3}, {"best": 4}) == [("scratch", "best", "set", 43)]
    assert schema.reducers["best"].startswith("custom:")


def test_reducers_keep_their_names():
    @dataclass
    class Many:
        a: Annotated[int, sum_] = 0
        b: Annotated[dict[str, int], merge] = field(default_factory=dict)
        c: Annotated[str, concat] = ""
        d: Annotated[float, avg] = 0.0
        e: int = 0

    assert StateSchema(Many).reducers == {"a": "sum", "b": "merge", "c": "concat", "d": "avg"}
    assert StateSchema(Many).ops({"c": "x", "b": {"k": 1}}, {}) == [
        ("scratch", "c", "concat", "x"),
        ("scratch", "b", "merge", {"k": 1}),
    ]


def test_delete_removes_a_free_key_and_restores_a_default():
    assert StateSchema(None).ops({"x": DELETE}, {"x": 1}) == [("scratch", "x", "delete", None)]
    assert update(Order, note=DELETE) == [("scratch", "note", "set", None)]
    with pytest.raises(StateError, match="requires"):
        update(Order, id=DELETE)


def test_keys_of_a_free_state_are_text():
    with pytest.raises(StateError, match="text"):
        StateSchema(None).ops({1: "x"}, {})


def test_names_that_the_flow_binds_are_part_of_the_state():
    schema = StateSchema(Order, extra=["decision"])
    scratch = {**schema.start(GIVEN)[1], "decision": "approve"}
    assert schema.build(scratch).decision == "approve"
    assert schema.ops({"decision": "reject"}, scratch) == [("scratch", "decision", "set", "reject")]
    assert StateSchema(OrderStruct, extra=["decision"]).build({**GIVEN, "decision": "x"}).id == "A"


@pytest.mark.parametrize("state", [Order, OrderStruct, OrderModel])
def test_assignment_to_the_state_is_noticed_and_named(state):
    schema = StateSchema(state)
    scratch = schema.start(GIVEN)[1]
    built = schema.build(scratch)
    schema.unchanged(built, scratch)
    built.amount = 2
    with pytest.raises(StateMutationError, match="'amount'"):
        schema.unchanged(built, scratch)


def test_new_attribute_on_the_state_is_noticed_but_a_cached_property_is_not():
    @dataclass
    class Lazy:
        n: int = 1

        @cached_property
        def double(self) -> int:
            return self.n * 2

    schema = StateSchema(Lazy)
    built = schema.build({"n": 1})
    assert built.double == 2
    schema.unchanged(built, {"n": 1})
    built.other = 1
    with pytest.raises(StateMutationError, match="'other'"):
        schema.unchanged(built, {"n": 1})


def test_state_with_slots_or_a_post_init_is_built_by_its_constructor():
    @dataclass(slots=True)
    class Slotted:
        n: int = 1

    @dataclass
    class Derived:
        n: int = 1
        double: int = field(init=False)

        def __post_init__(self) -> None:
            self.double = self.n * 2

    for state in (Slotted, Derived):
        schema = StateSchema(state)
        built = schema.build({"n": 4})
        schema.unchanged(built, {"n": 4})
        built.n = 5
        with pytest.raises(StateMutationError):
            schema.unchanged(built, {"n": 4})
    assert StateSchema(Derived).build({"n": 4}).double == 8


def test_typed_dict_refuses_to_lose_keys_inside_a_value():
    class Inner(TypedDict):
        a: int

    @dataclass
    class Outer:
        inner: Inner | None = None

    with pytest.raises(StateError, match="'b'"):
        StateSchema(Outer).ops({"inner": {"a": 1, "b": 2}}, {})


def test_description_says_the_same_of_equal_types_and_not_where_they_live():
    text = StateSchema(Order).describe()
    assert text is not None
    assert text["place"] == {"type": "None | Place{street: str, number: int}", "required": False}
    assert text["id"] == {"type": "str", "required": True}


def test_class_that_cannot_describe_a_state_is_refused():
    with pytest.raises(StateError, match="dataclass"):
        StateSchema(int)
