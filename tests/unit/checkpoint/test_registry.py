from __future__ import annotations

import dataclasses
import enum
from functools import cached_property
from typing import Any

import msgspec
import pytest

from holdfast.checkpoint import TypeRegistry, pack, unpack
from holdfast.errors import ValueNotStorableError
from holdfast.types.value import freeze


def write(value: Any, registry: TypeRegistry) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(pack(freeze(value, registry.adopt), registry)))


def round_trip(value: Any, cls: type) -> Any:
    registry = TypeRegistry(cls)
    return unpack(write(value, registry), registry)


@dataclasses.dataclass(frozen=True, slots=True)
class Money:
    amount: int
    currency: str = "CHF"


@dataclasses.dataclass(frozen=True)
class Squared:
    side: int
    area: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "side", self.side + 1)
        object.__setattr__(self, "area", self.side**2)

    @cached_property
    def half(self) -> float:
        return self.side / 2


class Doubling(msgspec.Struct, frozen=True, kw_only=True):
    n: int
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "n", self.n * 2)


class Colour(enum.Enum):
    red = 1


@pytest.mark.covers("RS-SER-1")
def test_registered_instance_comes_back_equal_when_it_has_slots():
    assert round_trip(Money(5, "EUR"), Money) == Money(5, "EUR")


def test_registered_instance_is_not_computed_anew_when_it_is_read():
    squared, doubling = Squared(3), Doubling(n=4, tags=("a",))
    assert squared.half == 2
    assert round_trip(squared, Squared) == squared
    assert round_trip(doubling, Doubling) == doubling


def test_reader_fills_in_the_default_when_a_field_was_added():
    @dataclasses.dataclass(frozen=True)
    class Old:
        amount: int

    raw = write(Old(5), _named(Old, "Money"))
    assert unpack(raw, TypeRegistry(Money)) == Money(5, "CHF")


def test_reader_refuses_when_a_field_is_unknown_or_missing():
    @dataclasses.dataclass(frozen=True)
    class Renamed:
        total: int

    with pytest.raises(ValueNotStorableError, match=r"unknown fields \['amount', 'currency'\]"):
        unpack(write(Money(5), TypeRegistry(Money)), _named(Renamed, "Money"))
    with pytest.raises(ValueNotStorableError, match=r"required fields \['amount'\]"):
        unpack(write(_Empty(), _named(_Empty, "Money")), TypeRegistry(Money))


@dataclasses.dataclass(frozen=True)
class _Empty:
    pass


def _named(cls: type, name: str, aliases: tuple[str, ...] = ()) -> TypeRegistry:
    registry = TypeRegistry()
    registry.register(cls, name, aliases=aliases)
    return registry


def test_reader_finds_a_renamed_type_by_its_alias():
    raw = write(Money(5), _named(Money, "Price"))
    assert unpack(raw, _named(Money, "Money", ("Price",))) == Money(5)


def test_reader_refuses_when_an_enum_lost_its_member():
    class Shrunk(enum.Enum):
        blue = 1

    with pytest.raises(ValueNotStorableError, match=r"Shrunk\.red"):
        unpack(write(Colour.red, TypeRegistry(Colour)), _named(Shrunk, "Colour"))


def test_registry_refuses_two_types_under_one_name_and_two_names_for_one_type():
    registry = TypeRegistry(Money)
    with pytest.raises(ValueNotStorableError, match="belongs to"):
        registry.register(Colour, "Money")
    with pytest.raises(ValueNotStorableError, match="already registered as 'Money'"):
        registry.register(Money, "Price")
    registry.register(Money, "Money")
    assert registry.names() == ("Money",)


def test_registry_refuses_types_that_are_not_frozen_or_of_another_kind():
    @dataclasses.dataclass
    class Open:
        x: int

    class OpenStruct(msgspec.Struct):
        x: int

    class Other:
        pass

    for cls, hint in ((Open, "frozen=True"), (OpenStruct, "frozen=True"), (Other, "frozen dataclass")):
        with pytest.raises(ValueNotStorableError, match=hint):
            TypeRegistry(cls)


@pytest.mark.parametrize("inside", [[1], {"a": 1}, {1}, ([1],), object()])
def test_registry_refuses_an_instance_that_holds_something_mutable_or_unknown(inside):
    with pytest.raises(ValueNotStorableError, match=r"Doubling\.tags"):
        freeze({"v": Doubling(n=1, tags=inside)}, TypeRegistry(Doubling).adopt)


@pytest.mark.covers("RS-SER-3")
def test_registry_adopts_only_what_was_registered():
    registry = TypeRegistry(Money)
    assert registry.adopt(Money(1))
    assert not registry.adopt(Colour.red)


def test_writer_refuses_attributes_that_are_not_fields():
    odd = Squared(2)
    object.__setattr__(odd, "extra", 1)
    with pytest.raises(ValueNotStorableError, match=r"\['extra'\]"):
        pack(odd, TypeRegistry(Squared))


def test_frozen_pydantic_model_comes_back_equal_with_the_fields_that_were_set():
    pydantic = pytest.importorskip("pydantic")

    class Address(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(frozen=True)
        city: str = pydantic.Field(alias="town")
        zip: int = 8000

    before = Address(town="Zürich")
    after = round_trip(before, Address)
    assert after == before
    assert after.model_fields_set == {"city"}
    assert after.zip == 8000
