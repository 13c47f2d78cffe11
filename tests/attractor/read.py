"""How tests read pipelines, and what they compare."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import PipelineSyntaxError
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.frontends.dot.parse import parse


def read(body: str) -> Pipeline:
    """The pipeline with that body, which the strict grammar takes as well as the lenient one."""
    found = parse(f"digraph G {{ {body} }}", strict=True)
    assert found.diagnostics == ()
    return found.pipeline


def stage(body: str, name: str = "a") -> Stage:
    return read(body).stages[name]


def leniently(body: str, *parts: str) -> Pipeline:
    """The pipeline with that body, after one warning that says these parts; strict reading refuses it."""
    source = f"digraph G {{ {body} }}"
    found = parse(source)
    assert [one.severity for one in found.diagnostics] == [DiagnosticSeverity.warning], found.diagnostics
    told(found.diagnostics[0], *parts)
    (refused,) = faults(source, strict=True)
    assert (refused.message, refused.place) == (found.diagnostics[0].message, found.diagnostics[0].place)
    return found.pipeline


def faults(source: str | bytes, *, strict: bool = False, path: str = "") -> list[Diagnostic]:
    """What reading is refused for; both ways of reading, unless strict alone is asked for."""
    with pytest.raises(PipelineSyntaxError) as caught:
        parse(source, strict=strict, path=path)
    found: tuple[Diagnostic, ...] = caught.value.facts["diagnostics"]  # type: ignore[assignment]
    return [one for one in found if one.severity is DiagnosticSeverity.error]


def told(found: Diagnostic, *parts: str) -> None:
    assert found.fix, f"{found} does not say what to change"
    for part in parts:
        assert part in str(found), f"{part!r} is not in {str(found)!r}"


def at(found: Diagnostic) -> tuple[int, int]:
    return found.place.line, found.place.column


def meaning(pipeline: Pipeline) -> dict[str, Any]:
    """All of a document but where it stood and whether a stage was only named by edges."""
    return {
        "name": pipeline.name,
        "attrs": typed(pipeline.attrs),
        "stages": [
            (one.id, typed(one.attrs), one.classes, one.derived, one.explicit)
            for one in pipeline.stages.values()
        ],
        "links": [(one.source, one.target, typed(one.attrs)) for one in pipeline.links],
    }


def typed(attrs: Any) -> dict[str, tuple[type, object]]:
    """1, 1.0 and true are three values."""
    return {key: (type(value), value) for key, value in attrs.items()}
