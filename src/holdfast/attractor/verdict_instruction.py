"""Which stages are asked for a verdict, how, and which words are outcomes of theirs.

The stages behind a stage that only choose (diamonds, the end of an included pipeline) act on its outcome:
what they ask for is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from holdfast.attractor.outcome import StageOutcome, StageStatus
from holdfast.attractor.verdict import FILE, PLACEHOLDER, unreadable
from holdfast.attractor.verdict_id import FIELD
from holdfast.frontends.dot.document import Link, Pipeline, Stage
from holdfast.frontends.dot.handler_kinds import kind_of
from holdfast.model.pipeline_conditions import OUTCOMES, Clause, outcome_word, read_clauses
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    from holdfast.attractor.handler import StageVisit

ROUTING: Final = "conditional"
_USUAL: Final = ("success", "partial_success", "retry", "fail")
_PARTIAL: Final = "partial_success"
_KEYS: Final = ("outcome", "context.outcome")


def wants_verdict(visit: StageVisit) -> bool:
    """A goal gate, a stage with several ways on, and one with `verdict=true`."""
    stages = _with_choices(visit.stage, visit.pipeline)
    if any(stage.flag("goal_gate") or stage.flag("verdict") for stage in stages):
        return True
    return len(_ways_out(stages, visit.pipeline)) > 1


def is_fail_closed(stage: Stage, pipeline: Pipeline) -> bool:
    """Fail closed: `auto_status=false` written on a goal gate, or `fail_closed=true` on it or the graph."""
    return any(_is_closed(each, pipeline) for each in _with_choices(stage, pipeline))


def _is_closed(stage: Stage, pipeline: Pipeline) -> bool:
    if not stage.flag("goal_gate") or stage.flag("auto_status"):
        return False
    return "auto_status" in stage.attrs or stage.flag("fail_closed", default=pipeline.flag("fail_closed"))


def _with_choices(stage: Stage, pipeline: Pipeline) -> list[Stage]:
    """The stage, and the stages behind it that pass its outcome on."""
    found, names = [stage], {stage.id}
    for each in found:
        for link in pipeline.outgoing.get(each.id, ()):
            target = pipeline.stages.get(link.target)
            if target is not None and target.id not in names and kind_of(target) == ROUTING:
                names.add(target.id)
                found.append(target)
    return found


def _links(stages: Iterable[Stage], pipeline: Pipeline) -> list[Link]:
    return [link for stage in stages for link in pipeline.outgoing.get(stage.id, ())]


def _ways_out(stages: Iterable[Stage], pipeline: Pipeline) -> list[Link]:
    stages = list(stages)
    names = {stage.id for stage in stages}
    return [link for link in _links(stages, pipeline) if link.target not in names]


def instruction(visit: StageVisit, *, files: bool) -> str:
    """How to report the verdict; the same for every backend. `files`: it can write to this machine."""
    stages = _with_choices(visit.stage, visit.pipeline)
    links = _links(stages, visit.pipeline)
    form = (
        f'{{"outcome": "{PLACEHOLDER}", "preferred_label": "", "suggested_next_ids": [], "notes": "", '
        f'"failure_reason": "", "context_updates": {{}}, "score": null, "{FIELD}": "{visit.verdict_id}"}}'
    )
    outcomes = _words(_ways_out(stages, visit.pipeline), links)
    words = (
        f"outcome: {', '.join(outcomes)}. Say success only if the stage did all that it was asked for; "
        "with fail or retry, say why in failure_reason."
    )
    lines = [
        "End your answer with a verdict on this stage, one fenced block of JSON:",
        f"```json\n{form}\n```",
        words,
    ]
    labels = dict.fromkeys(link.label for link in links if link.label)
    if labels:
        lines.append(f"preferred_label: empty, or the label of the edge to follow: {', '.join(labels)}.")
    own = visit.pipeline.outgoing.get(visit.stage.id, ())
    if len(own) > 1:
        # A diamond does not pass them on.
        targets = dict.fromkeys(link.target for link in own)
        lines.append(f"suggested_next_ids: empty, or the stages to continue with: {', '.join(targets)}.")
    lines.append("context_updates: values for later stages. score: a number, higher is better, or null.")
    lines.append(f"{FIELD}: as above. It is of this stage alone: a verdict with another one does not count.")
    if files:
        path = visit.folder.resolve() / FILE
        lines.append(f"You may write the same JSON object to {path} as well; the worse of the two counts.")
    return "\n".join(lines)


FOLLOW_UP: Final = (
    "Your answer has no verdict, and without one this stage fails. Do no further work: repeat in a sentence "
    "what came of it, then give the verdict."
)
"""The one further turn of a fail-closed gate."""


def _words(ways: list[Link], links: list[Link]) -> list[str]:
    """The usual outcomes, and those that the conditions of the stage's edges compare. A partial success that
    no edge takes would end the run."""
    usual = [word for word in _USUAL if word != _PARTIAL or not ways or any(map(_takes, ways))]
    compared = (outcome_word(clause.literal) for clause in _about_outcomes(links) if clause.literal)
    return [*usual, *(word for word in dict.fromkeys(compared) if word not in OUTCOMES)]


def _takes(link: Link) -> bool:
    """Whether a partial success may follow the edge."""
    found = read_clauses(link.condition).alternatives
    return not found or any(
        all(clause.holds(lambda _: _PARTIAL) for clause in clauses if clause.key in _KEYS)
        for clauses in found
    )


def _about_outcomes(links: Iterable[Link]) -> list[Clause]:
    read = (read_clauses(link.condition).alternatives for link in links if link.condition)
    return [clause for found in read for clauses in found for clause in clauses if clause.key in _KEYS]


def with_known_outcome(visit: StageVisit, outcome: StageOutcome) -> StageOutcome:
    """A failure in place of a word that a stage which was asked for its verdict made up: no edge would be
    chosen by it, and `blocked` is no success. Also for a goal gate that is skipped, because gates without an
    outcome are not checked."""
    word = outcome_word(str(outcome.status))
    fault = ""
    if word == StageStatus.SKIPPED:
        stages = _with_choices(visit.stage, visit.pipeline)
        if any(stage.flag("goal_gate") for stage in stages):
            fault = "a goal gate cannot be skipped"
    elif word not in OUTCOMES and wants_verdict(visit) and not _is_compared(word, visit.pipeline):
        shown = clean_text(word, 60)
        fault = f"the outcome {shown!r} is none of {', '.join(_USUAL)}, and no condition compares it"
    if not fault:
        return outcome
    failed = unreadable("", fault).outcome
    updates = {**outcome.context_updates, **failed.context_updates}
    return StageOutcome(
        status=failed.status, failure_reason=fault, notes=outcome.notes, context_updates=updates
    )


def _is_compared(word: str, pipeline: Pipeline) -> bool:
    return any(
        clause.operator not in ("=", "!=") or outcome_word(clause.literal) == word
        for clause in _about_outcomes(pipeline.links)
    )
