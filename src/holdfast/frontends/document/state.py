"""The state of a flow that was made from a document: open, with the types of its variables checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.errors import StateError
from holdfast.frontends.document.available_names import Validate
from holdfast.frontends.document.document import Variable
from holdfast.frontends.document.render import require_growth
from holdfast.model.reducer_marks import ReducerMark
from holdfast.model.state_schema import StateField, StateSchema
from holdfast.types.record import Op
from holdfast.types.reducers import GROWS
from holdfast.types.value import has_few_values

_TYPES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "string": ((str,), "text"),
    "number": ((int, float), "a number"),
    "integer": ((int,), "a whole number"),
    "boolean": ((bool,), "true or false"),
    "array": ((list, tuple), "a list"),
    "object": ((dict,), "a mapping"),
}

_FEW: Final = 1_000
"""Values that are compared with a schema in the event loop."""
_COMBINES: Final = GROWS | {"sum", "merge"}


class DocumentState(StateSchema):
    """`given`: the JSON Schema of the input, checked when a run starts."""

    def __init__(
        self, variables: dict[str, Variable], given: Any = None, validate: Validate | None = None
    ) -> None:
        super().__init__(
            reducers={name: ReducerMark(each.reducer) for name, each in variables.items() if each.reducer}
        )
        self._input, self._validate = given, validate
        schemas = [given, *(each.schema for each in variables.values())]
        self._compares = validate is not None and any(each is not None for each in schemas)
        self._large = not has_few_values(schemas, _FEW)
        for name, each in variables.items():
            self.fields[name] = _field(name, each, validate)

    def is_slow_to_start(self, given: Any) -> bool:
        return self._compares and (self._large or not has_few_values(given, _FEW))

    def start(self, given: Any) -> tuple[Any, dict[str, Any]]:
        if self._input is not None and self._validate is not None:
            wrong = self._validate(self._input, {} if given is None else given)
            if wrong:
                raise StateError(
                    f"the input does not fit: {'; '.join(wrong)}.", hint="See the input of the flow.",
                    problems=wrong,
                )  # fmt: skip
        return super().start(given)

    def _op(self, name: str, value: Any, scratch: dict[str, Any]) -> Op:
        # Before it is checked, copied and written: that takes as long as the value is large.
        if name in self.fields and self.fields[name].op in _COMBINES:
            require_growth(name, scratch.get(name), value)
        return super()._op(name, value, scratch)


def _field(name: str, variable: Variable, validate: Validate | None) -> StateField:
    op = variable.reducer or "set"
    return StateField(
        name=name, annotation=Any, op=op, check=None if op in GROWS else _check(name, variable, validate)
    )


def _check(name: str, variable: Variable, validate: Validate | None) -> Callable[[Any], Any] | None:
    if variable.type == "any" and (variable.schema is None or validate is None):
        return None
    kinds, words = _TYPES.get(variable.type, ((object,), ""))

    def check(value: Any) -> Any:
        wrong_bool = isinstance(value, bool) and bool not in kinds and object not in kinds
        if value is not None and (wrong_bool or not isinstance(value, kinds)):
            raise msgspec.ValidationError(f"expected {words}, found {_kind_of(value)}")
        if variable.schema is not None and validate is not None:
            wrong = validate(variable.schema, value)
            if wrong:
                raise msgspec.ValidationError("; ".join(wrong))
        return value

    return check


def _kind_of(value: Any) -> str:
    """In the words of documents."""
    if isinstance(value, bool):
        return "true or false"
    found = (words for kinds, words in _TYPES.values() if isinstance(value, kinds))
    return next(found, type(value).__name__)
