"""The schema of a flow's state: updates are checked and frozen, and building the state for a handler is
cheap.

Only what an update touches is checked and copied, so that the cost of a step does not depend on the
size of the rest. The checks of one field are compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import is_
from typing import Any, Final

import msgspec

from holdfast.errors import InputError, StateError, StateMutationError
from holdfast.model.annotations import (
    Check,
    checker,
    is_frozen,
    item_type,
    named_types,
    plain_types,
    split_annotation,
    type_text,
)
from holdfast.model.diagnostics import GraphProblem
from holdfast.model.reducer_marks import ReducerMark
from holdfast.model.state_types import Shape, shape_of
from holdfast.model.user_code.boundary import call_plain
from holdfast.types.record import Op
from holdfast.types.reducers import GROWS
from holdfast.types.value import SCALARS, Adopt, FrozenDict, freeze


class _Delete:
    """Returned as a field's new value, it removes the key (or resets the field to its default)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DELETE"


DELETE: Final = _Delete()


class StateField(msgspec.Struct, frozen=True, kw_only=True):
    """One declared field with its checks compiled. `plain`: types that pass without looking further."""

    name: str
    annotation: Any
    op: str = "set"
    plain: frozenset[type] = frozenset()
    check: Check | None = None
    item: Check | None = None
    custom: Callable[[Any, Any], Any] | None = None
    required: bool = False
    default: Callable[[], Any] | None = None


def make_field(
    name: str,
    annotation: Any,
    *,
    mark: ReducerMark | None = None,
    required: bool = False,
    default: Callable[[], Any] | None = None,
    check: Check | None = None,
) -> StateField:
    bare, declared = split_annotation(annotation)
    mark = mark or declared or ReducerMark("set")
    return StateField(
        name=name,
        annotation=bare,
        op=mark.name,
        # No shortcut for a custom reducer, which has to be called.
        plain=frozenset() if mark.fn is not None else plain_types(bare),
        check=check or checker(bare),
        item=checker(item_type(bare)) if mark.name in GROWS else None,
        custom=mark.fn,
        required=required,
        default=default,
    )


class StateSchema:
    """Implements `holdfast.model.program.Schema`.

    `adopt` says which instances of declared types may be stored; a worker sets it to its registry's.
    """

    def __init__(
        self,
        state: Any = None,
        *,
        types: Iterable[type] = (),
        extra: Iterable[str] = (),
        reducers: Mapping[str, ReducerMark] | None = None,
    ) -> None:
        self.state: Any = state
        self.open = state is None
        self._shape: Shape = shape_of(state)
        # Straight to the shape: a step calls it once, and it is short.
        self.build = self._shape.build
        self.build_lazily = self._shape.build_lazily
        marks = dict(reducers or {})
        self.fields: dict[str, StateField] = {
            part.name: make_field(
                part.name,
                part.annotation,
                mark=marks.pop(part.name, None),
                required=part.required,
                default=part.default,
                check=part.check,
            )
            for part in self._shape.parts
        }
        self.declared = tuple(self.fields)
        for name in (*extra, *(name for name in marks if "." not in name)):
            if name not in self.fields:
                self.fields[name] = make_field(name, Any, mark=marks.get(name))
        self.types = self._known_types(types)
        self.adopt: Adopt = self._adopt_declared
        self.custom = {name: field.custom for name, field in self.fields.items() if field.custom is not None}
        self.reducers: dict[str, str] = {
            **{name: field.op for name, field in self.fields.items() if field.op != "set"},
            **{name: mark.name for name, mark in marks.items() if "." in name},
        }
        self.defaults: dict[str, Any] = self._storable_defaults()

    def _known_types(self, given: Iterable[type]) -> tuple[type, ...]:
        found = list(given)
        for name in self.declared:
            found += [cls for cls in named_types(self.fields[name].annotation) if is_frozen(cls)]
        return tuple(dict.fromkeys(found))

    def _adopt_declared(self, value: object) -> bool:
        return type(value) in self.types

    def _storable_defaults(self) -> dict[str, Any]:
        """Defaults that can be stored in a graph; a sub-flow starts with them."""
        found: dict[str, Any] = {}
        for name in self.declared:
            field = self.fields[name]
            if field.default is not None:
                try:
                    value = self._frozen(field, field.default())
                    msgspec.json.encode(value)
                except (InputError, TypeError, ValueError):
                    continue  # problems() names it
                found[name] = value
        return found

    def problems(self) -> list[GraphProblem]:
        found: list[GraphProblem] = []
        for name in self.declared:
            field = self.fields[name]
            found += [
                GraphProblem(
                    rule="state-type",
                    message=f"the state's field {name!r} holds a {cls.__qualname__}, which is not frozen",
                    fix=f"declare {cls.__qualname__} frozen, or use plain data",
                )
                for cls in named_types(field.annotation)
                if not is_frozen(cls)
            ]
            if field.default is not None:
                try:
                    self._frozen(field, field.default())
                except InputError as error:
                    found.append(
                        GraphProblem(
                            rule="state-default", message=f"the default of {name!r} does not fit: {error}"
                        )
                    )
        return found

    def describe(self) -> dict[str, Any] | None:
        """For the graph's fingerprint."""
        if self.open:
            return None
        return {
            name: {"type": type_text(self.fields[name].annotation), "required": self.fields[name].required}
            for name in self.declared
        }

    # A new run

    def start(self, given: Any) -> tuple[Any, dict[str, Any]]:
        """(input, scratch) for a new run, frozen. Raises StateError that lists every problem."""
        values = self._given(given)
        wrong: list[str] = []
        scratch: dict[str, Any] = {}
        for name, value in values.items():
            try:
                scratch[name] = self._frozen(self._field(name), value)
            except StateError as error:
                wrong.append(error.message)
        initial = FrozenDict(scratch)
        for name in self.declared:
            if name not in values:
                self._fill(self.fields[name], scratch, wrong)
        if wrong:
            raise StateError(f"the input does not fit the state: {'; '.join(wrong)}.", problems=wrong)
        return initial, scratch

    def is_slow_to_start(self, given: Any) -> bool:
        """Whether `start`, or `ops` with such values, may take so long that it should not be called in an
        event loop."""
        return False

    def _given(self, given: Any) -> Mapping[str, Any]:
        if given is None:
            return {}
        values = self._shape.take(given)
        if values is None:
            wanted = "a mapping" if self.open else f"a mapping or a {type_name(self.state)}"
            raise StateError(f"the input is a {type(given).__name__}.", hint=f"Pass {wanted}.")
        return values

    def _fill(self, field: StateField, scratch: dict[str, Any], wrong: list[str]) -> None:
        if field.default is not None:
            scratch[field.name] = self._frozen(field, field.default())
        elif field.required:
            wrong.append(f"{field.name!r} is missing")

    # A step

    def fit(self, name: str, value: Any) -> Any:
        """A whole value of one field, checked and frozen. Raises StateError. A name that the state does not
        declare is left alone."""
        field = self.fields.get(name)
        return value if field is None else self._frozen(field, value)

    def take(self, name: str, value: Any, scratch: dict[str, Any]) -> Op:
        """A value that does not come from a handler, as an update of its field. Raises StateError. An
        undeclared name is set as it is."""
        return self._op(name, value, scratch) if name in self.fields else ("scratch", name, "set", value)

    def unchanged(self, state: Any, scratch: dict[str, Any]) -> None:
        """Raises StateMutationError where the handler assigned to the state instead of returning."""
        held = getattr(state, "__dict__", None)
        if held is not None and len(held) == len(scratch) and all(map(is_, held.values(), scratch.values())):
            return
        changed = self._shape.changed(state, scratch)
        if changed:
            raise StateMutationError(
                f"the node assigned to {', '.join(map(repr, changed))} of its state.",
                hint=f"Return the change instead: `return {{{changed[0]!r}: ...}}`.",
            )

    def ops(self, update: dict[str, Any], scratch: dict[str, Any]) -> list[Op]:
        """A returned update as operations on scratch, values checked and frozen."""
        fields = self.fields
        found: list[Op] = []
        for name, value in update.items():
            field = fields.get(name)
            if field is not None and type(value) in field.plain:
                found.append(("scratch", name, field.op, value))
            elif field is None and self.open and type(value) in SCALARS and type(name) is str:
                found.append(("scratch", name, "set", value))
            else:
                found.append(self._op(name, value, scratch))
        return found

    def _op(self, name: str, value: Any, scratch: dict[str, Any]) -> Op:
        field = self._field(name)
        if value is DELETE:
            return self._delete(field)
        if field.custom is None:
            return ("scratch", name, field.op, self._operand(field, value))
        if scratch.get(name) is not None:
            value = call_plain(field.custom, scratch[name], value)
        return ("scratch", name, "set", self._frozen(field, value))

    def _delete(self, field: StateField) -> Op:
        if field.default is not None:
            return ("scratch", field.name, "set", self._frozen(field, field.default()))
        if field.required:
            raise StateError(f"{field.name!r} cannot be deleted: the state requires it.")
        return ("scratch", field.name, "delete", None)

    def _operand(self, field: StateField, value: Any) -> Any:
        if field.op in GROWS and not isinstance(value, (list, tuple, str, bytes)):
            return self._checked(field, field.item, value)
        if field.op == "append" and isinstance(value, (str, bytes)) and type(value) not in field.plain:
            return self._checked(field, field.item, value)
        return self._frozen(field, value)

    def _frozen(self, field: StateField, value: Any) -> Any:
        if type(value) in field.plain:
            return value
        return self._checked(field, field.check, value)

    def _checked(self, field: StateField, check: Check | None, value: Any) -> Any:
        if check is not None:
            try:
                # It may call code of the user's types.
                value = call_plain(check, value)
            except msgspec.ValidationError as error:
                raise StateError(_misfit(field, value, error)) from None
        return freeze(value, self.adopt, field.name)

    def _field(self, name: Any) -> StateField:
        field = self.fields.get(name)
        if field is not None:
            return field
        if type(name) is not str:
            raise StateError(f"the state's keys are text, not {type(name).__name__} ({name!r}).")
        if self.open:
            return make_field(name, Any)
        from difflib import get_close_matches

        near = get_close_matches(name, self.fields, n=1)
        advice = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(self.fields)}"
        raise StateError(f"the state has no field {name!r} ({advice})", field=name)


def _misfit(field: StateField, value: Any, error: Exception) -> str:
    text = str(error).replace("`$.value`", f"`{field.name}`").replace("$.value", field.name)
    problem = text.removesuffix(f" - at `{field.name}`")
    return f"{field.name!r} does not fit: {problem[:1].lower()}{problem[1:]}"


def type_name(cls: Any) -> str:
    return getattr(cls, "__qualname__", str(cls))
