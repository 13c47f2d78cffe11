"""Conditions on generic records, new types, aliases and tuples: as typed as any other field."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NewType, TypedDict, TypeVar

import msgspec
import pytest
from pydantic import BaseModel

from holdfast import Flow
from tests.unit.frontends.test_approval_slips import OPTIONS, found

T = TypeVar("T")
UserId = NewType("UserId", str)


@dataclass(frozen=True)
class Address:
    city: str = ""


@dataclass(frozen=True)
class Box(Generic[T]):
    item: T | None = None
    others: tuple[T, ...] = ()
    noted: Annotated[int, {"unhashable": True}] = 0


class Slot(msgspec.Struct, Generic[T], frozen=True):
    item: T | None = None


@dataclass
class Plain:
    box: Box[Address] = field(default_factory=Box)
    slot: Slot[Address] = field(default_factory=Slot)
    deep: Box[Box[Address]] = field(default_factory=Box)
    open: Box = field(default_factory=Box)  # type: ignore[type-arg]
    user: UserId = UserId("")
    pair: tuple[str, int] = ("", 0)
    many: tuple[str, ...] = ()
    decision: str = ""


class Model(BaseModel):
    box: Box[Address] = Box()
    slot: Box[Address] = Box()
    deep: Box[Box[Address]] = Box()
    open: Any = None
    user: UserId = UserId("")
    pair: tuple[str, int] = ("", 0)
    many: tuple[str, ...] = ()
    decision: str = ""


class Typed(TypedDict):
    box: Box[Address]
    slot: Slot[Address]
    deep: Box[Box[Address]]
    open: Any
    user: UserId
    pair: tuple[str, int]
    many: tuple[str, ...]
    decision: str


@pytest.mark.covers("SAFE-CHECK-05")
@pytest.mark.parametrize("state", [Plain, Model, Typed])
@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ("box.itme.city == 'x'", "unknown-field"),
        ("box.item.ctiy == 'x'", "unknown-field"),
        ("box.others.0.ctiy == 'x'", "unknown-field"),
        ("box.item.city == 3", "type-mismatch"),
        ("slot.item.ctiy == 'x'", "unknown-field"),
        ("deep.item.item.ctiy == 'x'", "unknown-field"),
        ("user == 3", "type-mismatch"),
        ("pair.0 == 3", "type-mismatch"),
        ("pair.2 == 'x'", "unknown-field"),
        ("box.item.city == 'x' and deep.item.item.city == 'x'", None),
        ("user == 'x' and pair.1 == 3 and many.7 == 'x'", None),
        ("box.noted == 3", None),
        ("open.item.whatever == 'x'", None),
    ],
)
def test_condition_is_refused_when_a_generic_type_has_no_such_part(
    state: Any, asked: str, rule: str | None
) -> None:
    flow = Flow("order", state=state, effect="pure")
    flow.node(id="look")(lambda: None)
    flow.hold("ask", prompt="Pay?", options=OPTIONS)
    flow.node(id="pay", effect="external")(lambda: None)
    flow.edge("look", "ask", when=asked)
    flow.edge("look", "pay", otherwise=True)
    flow.edge("ask", "pay", when="decision == 'approve'")
    assert found(flow) == ([(rule, "error", "look->ask")] if rule else [])
