"""What rules read, and how they report problems: every diagnostic has a place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import Link, Pipeline, SourceLocation, Stage
from holdfast.frontends.dot.handler_kinds import BUILT_IN, EXITS, STARTS, kind_of
from holdfast.model.pipeline_conditions import ParsedCondition, read_clauses

BEGINNING = SourceLocation(1, 1)
LONGEST = 600
"""Maximum number of characters of a message, because values in it may have any length."""


class RuleContext:
    """A pipeline with the lookups that several rules need, each computed once."""

    def __init__(
        self, pipeline: Pipeline, *, known: Collection[str] = BUILT_IN, strict: bool = False
    ) -> None:
        self.pipeline = pipeline
        self.known = known
        self.strict = strict
        self.extended = pipeline.text("conditions") == "extended"
        self._readings: dict[str, ParsedCondition] = {}

    @cached_property
    def kinds(self) -> dict[str, str]:
        return {name: kind_of(stage, self.known) for name, stage in self.pipeline.stages.items()}

    @cached_property
    def starts(self) -> list[Stage]:
        return self._endings("Mdiamond", STARTS)

    @cached_property
    def exits(self) -> list[Stage]:
        return self._endings("Msquare", EXITS)

    @cached_property
    def uses(self) -> dict[str, list[Pipeline | Stage | Link]]:
        """Where each attribute is used, so that a rule does not look at everything."""
        found: dict[str, list[Pipeline | Stage | Link]] = defaultdict(list)
        for what in (self.pipeline, *self.pipeline.stages.values(), *self.pipeline.links):
            for key in what.attrs:
                found[key].append(what)
        return dict(found)

    def stages_with(self, key: str) -> Iterator[Stage]:
        return (what for what in self.uses.get(key, ()) if isinstance(what, Stage))

    @cached_property
    def conditions(self) -> dict[str, list[Link]]:
        """The edges by their condition."""
        found: dict[str, list[Link]] = {}
        for what in self.uses.get("condition", ()):
            if isinstance(what, Link) and what.condition:
                found.setdefault(what.condition, []).append(what)
        return found

    def _endings(self, shape: str, names: tuple[str, ...]) -> list[Stage]:
        """By shape; by name where no other shape was chosen, or where no stage has the shape."""
        stages = self.pipeline.stages
        shaped = [stage for stage in stages.values() if stage.shape == shape]
        named = [stage for stage in stages.values() if stage.id.lower() in names and stage.shape != shape]
        return shaped + [stage for stage in named if not shaped or "shape" not in stage.explicit]

    def reading(self, condition: str) -> ParsedCondition:
        """The parsed condition, kept for all rules."""
        found = self._readings.get(condition)
        if found is None:
            found = self._readings[condition] = read_clauses(condition)
        return found

    def of_kind(self, *kinds: str) -> Iterable[Stage]:
        return (stage for name, stage in self.pipeline.stages.items() if self.kinds[name] in kinds)

    def leaving(self, stage: Stage) -> tuple[Link, ...]:
        return self.pipeline.outgoing.get(stage.id, ())

    def at(
        self,
        rule: str,
        severity: DiagnosticSeverity,
        what: Pipeline | Stage | Link,
        message: str,
        *,
        key: str = "",
        fix: str = "",
    ) -> Diagnostic:
        """A diagnostic about the pipeline, a stage or an edge, at its attribute `key` if that is written. A
        stage of an included file is named with that."""
        of = self.pipeline.stages.get(what.source) if isinstance(what, Link) else what
        if isinstance(of, Stage) and of.origin:
            message = f"in {of.origin}: {message}"
        return Diagnostic(
            rule=rule,
            severity=severity,
            message=message if len(message) <= LONGEST else f"{message[:LONGEST]}…",
            node_id=what.id if isinstance(what, Stage) else "",
            edge=(what.source, what.target) if isinstance(what, Link) else None,
            fix=fix,
            place=_place(what, key),
            path=self.pipeline.path,
        )


Check: TypeAlias = Callable[[RuleContext], Iterable[Diagnostic]]


def _place(what: Pipeline | Stage | Link, key: str) -> SourceLocation:
    """What is not in the text, such as a stage that a transform added, is placed at the beginning."""
    own = BEGINNING if isinstance(what, Pipeline) else what.place
    found = what.places.get(key, own)
    return next((place for place in (found, own) if place.line), BEGINNING)


def name_list(what: Iterable[str], *, at_most: int = 8) -> str:
    """`a, b and c`; a long list is cut and counted."""
    names = list(what)
    shown = names[:at_most]
    if len(names) > at_most:
        return f"{', '.join(shown)} and {len(names) - at_most} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
