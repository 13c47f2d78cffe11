"""Fills the placeholders of a config when its node runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from holdfast.frontends.document.limits import MAX_TEXT
from holdfast.model.expr import Resolve, partition_resolver
from holdfast.model.template import compile_template

Render = Callable[[Resolve], Any]


def resolver_for(state: Mapping[str, Any], ctx: Any) -> Resolve:
    """How the texts of a node read the state as it sees it."""
    return partition_resolver({"scratch": state, "input": ctx.input})


def compile_value(value: Any) -> Render:
    """Data whose texts may have placeholders. Without a value for one of them it raises TemplateRenderError:
    what is left out would go unnoticed into a request or a variable. So does a text over MAX_TEXT: one that
    doubles in each turn of a loop would use up the memory of the worker."""
    if isinstance(value, str):
        if "{{" not in value:
            return lambda _resolve: value
        template = compile_template(value)
        return lambda resolve: template.render(resolve, strict=True, limit=MAX_TEXT).value
    if isinstance(value, dict):
        parts = {key: compile_value(each) for key, each in cast("dict[str, Any]", value).items()}
        return lambda resolve: {key: part(resolve) for key, part in parts.items()}
    if isinstance(value, (list, tuple)):
        items = [compile_value(each) for each in cast("list[Any]", value)]
        return lambda resolve: [item(resolve) for item in items]
    return lambda _resolve: value
