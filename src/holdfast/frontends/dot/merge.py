"""Combines pipelines: `merge` adds one to another, `embed` replaces a stage by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from holdfast.errors import InputError
from holdfast.frontends.dot.document import Link, Pipeline, SourceLocation, Stage
from holdfast.frontends.dot.handler_kinds import kind_of
from holdfast.frontends.dot.parallel_regions import PARALLEL, stages_in_branches
from holdfast.frontends.dot.policies import APPROVAL, NO_APPROVAL, approvals_in, wanted_approvals
from holdfast.frontends.dot.references import with_names
from holdfast.frontends.dot.rule_context import RuleContext
from holdfast.frontends.dot.values import Value

SEPARATOR: Final = "__"
_TARGETS: Final = ("retry_target", "fallback_retry_target", "human.default_choice")
_RETRIES: Final = {
    "retry_policy": "retry_policy",
    "default_max_retry": "max_retries",
    "default_max_retries": "max_retries",
}
_MODEL: Final = ("llm_model", "llm_provider", "reasoning_effort")
_AGENT: Final = ("agent_permissions", "agent_idle_timeout")
_WORK: Final = (
    "tools", "tool_hooks.pre", "tool_hooks.post", "tool_hooks.timeout", "in_doubt", "max_turns",
    "session_max_tokens", "max_same_failures", "human.unknown_answer",
)  # fmt: skip
_INHERITED: Final = {
    **{key: key for key in (*_MODEL, *_AGENT, *_WORK, "max_visits", "fail_closed")},
    "default_fidelity": "fidelity",
    "workdir": "cwd",
}
_GATE_TARGETS: Final = ("retry_target", "fallback_retry_target")
_AT_THE_END: Final = ("class", "goal_gate", "fail_closed", "auto_status", "verdict", *_GATE_TARGETS)
_AT_THE_BEGINNING: Final = ("class", "max_visits")
_ON_FAILURE: Final = "outcome=fail"
_LAST: Final = -1_000_000
"""The weight of an edge that every other edge comes before."""
_FOR_ALL: Final = (*_MODEL, "agent", *_AGENT, *_WORK, "cwd", "fidelity", "thread_id")
OF_INCLUSIONS: Final = frozenset(
    {"subgraph_file", "label", "shape", "type", APPROVAL, *_AT_THE_END, *_AT_THE_BEGINNING, *_FOR_ALL}
)
"""The attributes that have an effect on a stage which another pipeline replaces."""


def merge(into: Pipeline, other: Pipeline, *, prefix: str = "") -> Pipeline:
    """The stages and links of both. Attributes of `into` win; ids of `other`, and what names them, get the
    prefix. Raises InputError if an id is in both."""
    added = renamed(other, {name: prefix + name for name in other.stages})
    taken = sorted(into.stages.keys() & added.stages.keys())
    if taken:
        raise InputError(
            f"{into.name} and {other.name} both have a stage {taken[0]}.", hint="Merge with a prefix."
        )
    return replace(
        into,
        attrs={**added.attrs, **into.attrs},
        places={**added.places, **into.places},
        stages={**into.stages, **added.stages},
        links=(*into.links, *added.links),
    )


def embed(into: Pipeline, at: str, other: Pipeline) -> Pipeline:
    """Replace the stage `at` by `other`. That stage becomes the entry; the exit of `other` becomes the stage
    from which the edges of `at` leave, with the outcome of the stage that ran last inside. A stage inside
    that fails with no way on leads there too, if `at` has an answer to a failure.
    Raises InputError if `other` does not have exactly one start and one exit, or an id is in both."""
    view = RuleContext(other)
    if len(view.starts) != 1 or len(view.exits) != 1:
        raise InputError(
            f"{other.name or 'it'} has {len(view.starts)} starts and {len(view.exits)} exits.",
            hint="Give it exactly one of each.",
        )
    start, end = view.starts[0].id, view.exits[0].id
    stage = into.stages[at]
    names = {name: f"{at}{SEPARATOR}{name}" for name in other.stages} | {start: at}
    asked = _asked_around(into, stage, other)
    inner = renamed(_with_graph_defaults(other), names)
    way_out = names[end]
    placed = {
        name: _with_approvals(_placed(each, stage, other.path), asked) for name, each in inner.stages.items()
    }
    placed[at] = _passage(stage, at, stage.label, _AT_THE_BEGINNING)
    placed[way_out] = _passage(stage, way_out, f"{stage.label}: done", _AT_THE_END)
    others = {name: each for name, each in into.stages.items() if name != at}
    if taken := sorted(others.keys() & placed.keys()):
        raise InputError(f"stage {taken[0]} exists already.", hint="Give one of the two another id.")
    links = [replace(link, source=way_out) if link.source == at else link for link in into.links]
    inside = [replace(link, place=_of(stage), places={}) for link in inner.links]
    if _has_fail_edge(into, stage):
        inside += _failure_links(other, names, way_out, _of(stage))
    return replace(into, stages=_in_order(into, at, placed), links=(*links, *inside))


def with_approvals_of(child: Pipeline, asked: frozenset[str]) -> Pipeline:
    """A child pipeline of managers that ask about these tools: its stages ask about them too, unless a stage
    says otherwise itself."""
    if not asked:
        return child
    around = ",".join(sorted(asked | approvals_in(child.text(APPROVAL))))
    stages = {name: _with_approvals(stage, around) for name, stage in child.stages.items()}
    return replace(child, stages=stages)


def _asked_around(into: Pipeline, at: Stage, other: Pipeline) -> str | None:
    """`tool_approval` of stages inside that have none of their own: everything that a graph around them asks
    about, so that no file takes an approval of another away. None: only the outer graph says something, and
    that applies anyhow."""
    if not (at.text(APPROVAL) or approvals_in(other.text(APPROVAL))):
        return None
    asked = wanted_approvals(at, into) | approvals_in(other.text(APPROVAL))
    return ",".join(sorted(asked)) or NO_APPROVAL


def _with_approvals(stage: Stage, around: str | None) -> Stage:
    if around is None or (APPROVAL in stage.explicit and stage.text(APPROVAL)):
        return stage
    # Of a graph or a block inside: a stage says it itself.
    asked = approvals_in(stage.text(APPROVAL)) | approvals_in(around)
    return replace(stage, attrs={**stage.attrs, APPROVAL: ",".join(sorted(asked)) or NO_APPROVAL})


def _has_fail_edge(into: Pipeline, stage: Stage) -> bool:
    """Whether a failure of the stage may lead anywhere: by a condition, a diamond or a retry target."""
    leads = (
        link.condition or into.stages[link.target].shape == "diamond"
        for link in into.outgoing[stage.id]
        if link.target in into.stages
    )
    return any(leads) or any(stage.text(key) for key in _GATE_TARGETS)


def _failure_links(
    other: Pipeline, names: Mapping[str, str], way_out: str, place: SourceLocation
) -> list[Link]:
    """From each stage of `other` to its exit, for a failure that no other edge of the stage takes. Branches
    of a fan-out and stages with a retry target answer their failures themselves."""
    kinds = {name: kind_of(stage) for name, stage in other.stages.items()}
    inside = stages_in_branches(other, kinds)
    attrs: dict[str, Value] = {"condition": _ON_FAILURE, "weight": _LAST}
    return [
        Link(source=names[name], target=way_out, attrs=attrs, place=place)
        for name, stage in other.stages.items()
        if kinds[name] not in ("start", "exit", PARALLEL)
        and name not in inside
        and not any(stage.text(key) for key in _GATE_TARGETS)
        and not any(link.weight == _LAST for link in other.outgoing[name])
    ]


def _in_order(into: Pipeline, at: str, placed: Mapping[str, Stage]) -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    for name, stage in into.stages.items():
        found.update(placed if name == at else {name: stage})
    return found


def _of(stage: Stage) -> SourceLocation:
    return stage.places.get("subgraph_file", stage.place)


def _placed(inner: Stage, outer: Stage, path: str) -> Stage:
    """The inner stage, at the place where the outer file includes it, with the classes of both, so that both
    stylesheets apply to it. `path`: the file that it is from."""
    derived = tuple(dict.fromkeys((*outer.derived, *inner.derived)))
    own = tuple(dict.fromkeys((*_own(inner), *_own(outer))))
    given = {key: outer.attrs[key] for key in _FOR_ALL if key in outer.attrs}
    attrs = {**given, **inner.attrs, **({"class": ",".join(own)} if own else {})}
    return replace(
        inner,
        attrs=attrs,
        origin=inner.origin or path,
        place=_of(outer),
        places={},
        classes=tuple(dict.fromkeys((*own, *derived))),
        derived=derived,
    )


def _own(stage: Stage) -> list[str]:
    return [name for name in stage.classes if name not in stage.derived]


def _passage(stage: Stage, name: str, label: str, keys: tuple[str, ...]) -> Stage:
    """A diamond, which does nothing and passes on the outcome that led to it. It takes the attributes `keys`
    of the stage: one about the stage's end, such as `goal_gate`, belongs to the diamond at the exit."""
    kept = {key: stage.attrs[key] for key in keys if key in stage.attrs}
    attrs: dict[str, Value] = {"shape": "diamond", "label": label, **kept}
    places = {**stage.places, "subgraph_file": _of(stage)}
    return replace(stage, id=name, attrs=attrs, places=places, explicit=frozenset(attrs), place=_of(stage))


def _with_graph_defaults(other: Pipeline) -> Pipeline:
    """Copies the defaults of its graph to each stage, because the outer graph has other defaults."""
    given = _given(other, _INHERITED)
    retries = _given(other, _RETRIES)
    gates = _given(other, {key: key for key in _GATE_TARGETS})

    def settled(stage: Stage) -> Stage:
        found = dict(given)
        if not {"max_retries", "retry_policy"} & stage.attrs.keys():
            found |= retries
        if stage.flag("goal_gate"):
            found |= gates
        return replace(stage, attrs={**found, **stage.attrs})

    return replace(other, stages={name: settled(stage) for name, stage in other.stages.items()})


def _given(other: Pipeline, keys: Mapping[str, str]) -> dict[str, Value]:
    return {key: other.attrs[source] for source, key in keys.items() if source in other.attrs}


def renamed(pipeline: Pipeline, names: Mapping[str, str]) -> Pipeline:
    """The same pipeline with other ids, also in attributes that name a stage."""

    def attribute(key: str, value: Value) -> Value:
        if key == "prompt" and isinstance(value, str):
            return with_names(value, names)
        return names.get(str(value), value) if key in _TARGETS else value

    def attributes(attrs: Mapping[str, Value]) -> dict[str, Value]:
        return {key: attribute(key, value) for key, value in attrs.items()}

    def stage(name: str, each: Stage) -> Stage:
        return replace(each, id=names[name], attrs=attributes(each.attrs))

    def link(each: Link) -> Link:
        return replace(
            each,
            source=names.get(each.source, each.source),
            target=names.get(each.target, each.target),
        )

    return replace(
        pipeline,
        attrs=attributes(pipeline.attrs),
        stages={names[name]: stage(name, each) for name, each in pipeline.stages.items()},
        links=tuple(map(link, pipeline.links)),
    )
