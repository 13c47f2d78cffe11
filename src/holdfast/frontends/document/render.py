"""Fills the placeholders of a config when its node runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from holdfast.errors import ValueTooLargeError
from holdfast.frontends.document.limits import MAX_TEXT, MAX_VALUES
from holdfast.model.expressions import Resolve, partition_resolver
from holdfast.model.template import TemplateRenderError, compile_template

Render = Callable[[Resolve], Any]


def resolver_for(state: Mapping[str, Any], ctx: Any) -> Resolve:
    """How the texts of a node read the state as it sees it."""
    return partition_resolver({"scratch": state, "input": ctx.input})


def compile_value(value: Any) -> Render:
    """Data whose texts may have placeholders. Without a value for one of them it raises TemplateRenderError:
    what is left out would go unnoticed into a request or a variable. So does a text over MAX_TEXT; data in it
    with more than MAX_VALUES raises ValueTooLargeError: what doubles in each turn of a loop would use up the
    memory of the worker, and stop everything beside it."""
    if isinstance(value, dict):
        parts = {key: _limited(each) for key, each in cast("dict[str, Any]", value).items()}
        return lambda resolve: {key: _field(key, part, resolve) for key, part in parts.items()}
    return _compiled(value)


def _field(name: str, part: Render, resolve: Resolve) -> Any:
    try:
        return part(resolve)
    except TemplateRenderError as error:
        error.message = f"{name}: {error.message}"
        raise


def _limited(value: Any) -> Render:
    render = _compiled(value)
    if not isinstance(value, (dict, list, tuple)) or str(cast("Any", value)).count("{{") < 2:
        return render

    def limited(resolve: Resolve) -> Any:
        made = render(resolve)
        require_few_values(made, "the data", "Make it in a function instead.")
        return made

    return limited


def require_few_values(value: Any, what: str, hint: str, *, held: int = 0) -> None:
    """Raises ValueTooLargeError if there are more than MAX_VALUES in it at any depth, with the `held` ones,
    or texts of more than MAX_TEXT characters together: a few thousand values may be long texts. What is over
    the limit is not walked through."""
    left, text_left = MAX_VALUES - held, MAX_TEXT
    rest: list[Any] = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, (str, bytes)):
            text_left -= len(each)
            if text_left < 0:
                raise ValueTooLargeError(
                    f"{what} has texts of more than {MAX_TEXT:,} characters together.", hint=hint
                )
            continue
        if not isinstance(each, (dict, list, tuple)):
            continue
        values = cast("Any", each)
        left -= len(values)
        if left < 0:
            raise ValueTooLargeError(f"{what} has more than {MAX_VALUES:,} values.", hint=hint)
        rest.extend(values.values() if isinstance(each, dict) else values)


def require_growth(name: str, old: Any, new: Any) -> None:
    """What a reducer adds to a variable, before it is added: a list that is added to itself doubles in each
    turn of a loop. Raises ValueTooLargeError."""
    hint = "Add less in each turn, or store a file and keep its reference."
    if isinstance(old, (str, bytes)) and isinstance(new, (str, bytes)):
        if len(old) + len(new) > MAX_TEXT:
            raise ValueTooLargeError(f"{name!r} would have more than {MAX_TEXT:,} characters.", hint=hint)
        return
    held = len(cast("Any", old)) if isinstance(old, (dict, list, tuple)) else 0
    require_few_values(new, f"{name!r}, with what is added to it,", hint, held=held)


def _compiled(value: Any) -> Render:
    if isinstance(value, str):
        if "{{" not in value:
            return lambda _resolve: value
        template = compile_template(value)
        return lambda resolve: template.render(resolve, strict=True, limit=MAX_TEXT).value
    if isinstance(value, dict):
        parts = {key: _compiled(each) for key, each in cast("dict[str, Any]", value).items()}
        return lambda resolve: {key: part(resolve) for key, part in parts.items()}
    if isinstance(value, (list, tuple)):
        items = [_compiled(each) for each in cast("list[Any]", value)]
        return lambda resolve: [item(resolve) for item in items]
    return lambda _resolve: value
