"""Forms that a handler asks for by `ctx.ask(form=...)`, and what was filled in as a value of their type."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from holdfast.errors import InputError
from holdfast.frontends.python.inline import inlined
from holdfast.model.annotations import is_pydantic
from holdfast.model.forms.compile import SUBMIT, compile_form, primary_options
from holdfast.model.forms.json_schema import schema_of, sections_of
from holdfast.model.forms.render import render_form
from holdfast.model.hold_rendering import UnshowableError
from holdfast.types.hold import Option
from holdfast.types.text import told


def form_asked(
    form: Any, schema: Any, options: tuple[Option, ...] | None, where: str
) -> tuple[dict[str, Any], tuple[Option, ...]]:
    """The schema that carries the form, and the choices. Its texts are texts: the handler has filled them."""
    listed = isinstance(form, (list, tuple))
    sections: Any = cast("list[Any]", form) if listed else _sections(form, where)
    found = compile_form(sections, templates=False)
    problems = list(found.problems)
    if schema is not None:
        problems.append("form= and schema= are both given; leave one of them out")
    if found.options is not None and options is not None:
        problems.append("options= and a decision section are both given; leave one of them out")
    if problems:
        lines = "".join(f"\n  - {told(each, 500)}" for each in problems)
        raise InputError(f"{where} makes no sense:{lines}", hint="Mend the form.", problems=problems)
    try:
        shown = render_form(found.form)
    except UnshowableError as error:
        raise InputError(f"{where}: {error}.", hint="Show less, or where to find it.") from error
    return schema_of(shown), primary_options(shown) or options or (SUBMIT,)


def _sections(form: Any, where: str) -> list[dict[str, Any]]:
    try:
        return sections_of(type_schema(form))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: no form can be made of {told(repr(form), 80)}: {error}.",
            hint="Give a list of sections, a type with fields, or a JSON Schema of an object.",
        ) from error


def typed(form: Any, values: Any, where: str) -> Any:
    """What was filled in, as an instance of the form's type."""
    try:
        required: Any = type_schema(form).get("required", ())
        given = {name: value for name, value in values.items() if value is not None or name in required}
        return form.model_validate(given) if is_pydantic(form) else msgspec.convert(given, form)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{where}: what was filled in is no {form.__name__}: {told(str(error), 500)}",
            hint="A form cannot ask for what only the type's own code checks: check that in the node.",
        ) from error


def type_schema(form: Any) -> dict[str, Any]:
    if isinstance(form, dict):
        return cast("dict[str, Any]", form)
    return inlined(form.model_json_schema() if is_pydantic(form) else msgspec.json.schema(form))
