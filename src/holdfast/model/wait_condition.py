"""The condition of a hold that waits for a message, with the values of the run that it compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model.expressions import (
    MISSING,
    ExprSyntaxError,
    Resolve,
    compile_expr,
    mapping_resolver,
    nested_values,
    required_names,
)
from holdfast.model.hold_text import PlaceholderRenderer, UnshowableError
from holdfast.model.template import compile_template


def wait_condition(
    showing: PlaceholderRenderer, context: Mapping[str, Any], resolve: Resolve
) -> dict[str, Any]:
    """Of a wait for a message. A name without a value is left out of `values`: `exists` and `default` ask for
    it. Raises UnshowableError where `match` reads it otherwise: no message would ever be the right one."""
    if "match" not in context:
        return dict(context)
    values: Mapping[str, Any] = context.get("values") or {}
    known = {name: each for name, each in values.items() if not _lacks(each, resolve)}
    filled = {name: showing.value(each, f"match.{name}", read=False) for name, each in known.items()}
    find = mapping_resolver(nested_values(filled))
    try:
        needed = required_names(compile_expr(str(context["match"])).node)
    except ExprSyntaxError as error:
        raise UnshowableError("match", str(error)) from error
    received = ("message", "event") if "event" in context else ("message",)
    for path in sorted(needed):
        if path[0] not in received and find(path) is MISSING:
            raise UnshowableError("match", f"{'.'.join(path)} has no value (missing_name)")
    return {**context, "values": filled}


def _lacks(value: Any, resolve: Resolve) -> bool:
    text = isinstance(value, str) and "{{" in value
    return text and bool(compile_template(value).render(resolve).missing)
