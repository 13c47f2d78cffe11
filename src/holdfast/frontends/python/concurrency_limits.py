"""Checks the limits of a flow when it is compiled, before there is a run."""

from __future__ import annotations

from holdfast.frontends.python.declarations import Collector
from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.expressions import PARTITIONS, Path
from holdfast.model.secrets import ANY, Paths
from holdfast.model.state_schema import StateSchema
from holdfast.model.template import Template, TemplateSyntaxError, compile_template
from holdfast.types.concurrency_limits import Limits

_OWN = ("tenant", "thread", "instance_key")
_EXAMPLE = 'write limits=Limits(concurrency=20, key="{{customer}}", per_key=1)'


def limit_problems(
    builder: Collector, schema: StateSchema, secrets: Paths, *, child: bool
) -> list[GraphProblem]:
    """`child`: the flow is a part of another one here."""
    limits = builder.limits
    if limits is None:
        return []
    if not isinstance(limits, Limits):  # pyright: ignore[reportUnnecessaryIsInstance]
        return [_wrong(f"limits={limits!r} is not Limits", _EXAMPLE)]
    found: list[GraphProblem] = []
    if child:
        message = "its limits have no effect here: a sub-flow is part of its parent's run"
        found.append(GraphProblem(rule="limits", severity=Severity.warning, message=message))
    if limits.key is None:
        return found
    try:
        template = compile_template(limits.key)
    except TemplateSyntaxError as error:
        return [*found, _wrong(f"the key {limits.key!r} of its limits: {error.message}", error.hint)]
    return found + _key_problems(template, schema, secrets)


def _key_problems(template: Template, schema: StateSchema, secrets: Paths) -> list[GraphProblem]:
    if not template.names:
        fix = "name a field of the input, such as {{customer}}"
        return [_wrong(f"the key {template.text!r} of its limits is the same for every run", fix)]
    found: list[GraphProblem] = []
    for path in sorted(template.names):
        name = _from_state(path)
        shown = ".".join(path)
        if not schema.open and name[0] not in (*schema.declared, *_OWN):
            fix = f"name one of {', '.join((*schema.declared, *_OWN))}"
            found.append(_wrong(f"the key of its limits names {shown!r}, which the input does not have", fix))
        if any(_meets(name, secret) for secret in secrets):
            fix = "use a field that is not secret: names of limits are stored as plain text"
            found.append(_wrong(f"the key of its limits names {shown!r}, which is secret", fix))
    return found


def _from_state(path: Path) -> Path:
    parts = tuple(map(str, path))
    return parts[1:] if len(parts) > 1 and parts[0] in (*PARTITIONS, "state") else parts


def _meets(path: Path, secret: Path) -> bool:
    """Whether one of the paths is the beginning of the other, or both are the same."""
    pairs = zip(path, secret, strict=False)
    return all(a == b or b == ANY for a, b in pairs)


def _wrong(message: str, fix: str | None) -> GraphProblem:
    return GraphProblem(rule="limits", message=message, fix=fix)
