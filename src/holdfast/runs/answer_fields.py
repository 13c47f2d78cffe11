"""The fields of a run's state that hold the answers of people: no caller of a server writes them, neither by
the input of a new run nor by the patch of a branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from holdfast.errors import InputError
from holdfast.model.graph import GraphSpec, HoldSpec
from holdfast.model.hold_declaration import decision_fields, fields_of_hold


def without_answers(spec: GraphSpec, changes: dict[str, Any], *, every: bool) -> dict[str, Any]:
    """A patch without the answers of holds that certain people must decide: only they give them. `every`:
    a policy may say so of any hold."""
    answers: set[str] = set()
    for hold in _binding_holds(spec, every=every):
        answers |= fields_of_hold(hold)
    if not answers:
        return changes
    kept = dict(changes)
    for name in ("input", "scratch"):
        part: Any = kept.get(name)
        if isinstance(part, Mapping):
            given = cast("Mapping[str, Any]", part)
            kept[name] = {key: value for key, value in given.items() if key not in answers}
    return kept


def require_no_answers(spec: GraphSpec, given: Any, *, every: bool) -> None:
    """Raises InputError for an input that answers such a hold. The data of a form may be given: it is what
    people are shown first."""
    if not isinstance(given, Mapping):
        return
    names = {name for hold in _binding_holds(spec, every=every) for name in decision_fields(hold)}
    # An empty field is no answer: callers may send every field of a state.
    filled = (key for key, value in cast("Mapping[str, Any]", given).items() if value not in (None, ""))
    found = sorted(names.intersection(filled))
    if found:
        raise InputError(
            f"the input has the field {found[0]!r}, which is the answer of a hold.",
            hint="Leave it out: people decide the hold.",
            field=found[0],
        )


def _binding_holds(spec: GraphSpec, *, every: bool) -> Iterator[HoldSpec]:
    """The holds of a flow that certain people must decide."""
    for node in spec.nodes:
        if node.hold is not None and (every or (node.hold.terms and node.hold.terms.binds_everybody)):
            yield node.hold
    for inner in spec.subgraphs:
        yield from _binding_holds(inner, every=every)
