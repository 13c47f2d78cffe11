"""How a run is started: its names checked, and what it has of its own beside its flow's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from holdfast.errors import InputError
from holdfast.model.breakpoints import find_breaks, find_places
from holdfast.model.graph import Graph
from holdfast.types.ids import is_id
from holdfast.types.text import demand_text, told

MAX_PRIORITY: Final = 1_000_000
MODES: Final = ("barrier", "strict", "exit")
POLICIES: Final = {"every": "every_node", "every_node": "every_node", "explicit": "explicit", "none": "none"}
MOMENTS: Final = ("before", "after", "both")


def check_options(names: Mapping[str, Any], priority: Any, mode: Any) -> None:
    """Raises InputError; the store is not touched."""
    for name, value in names.items():
        if value is not None and not demand_text(value, name):
            raise InputError(f"{name} is empty.", hint="Leave it out, or give it a value.")
    run_id = names["run_id"]
    if run_id is not None and not is_id(run_id):
        raise InputError(
            f"run_id {run_id!r} has not the form of an id.",
            hint="Give a version-4 UUID in lower case; a name of your own goes into idempotency_key=.",
        )
    if priority is not None and (type(priority) is not int or abs(priority) > MAX_PRIORITY):
        raise InputError(f"priority {told(repr(priority), 80)} is not a whole number up to {MAX_PRIORITY:,}.")
    if mode is not None and mode not in MODES:
        raise InputError(f"mode {told(repr(mode), 80)} is none of {', '.join(MODES)}.")


def own_options(
    graph: Graph, breaks: Sequence[str] | None, checkpoints: str | Mapping[str, Any] | None
) -> dict[str, Any]:
    """What is kept in the run's first record. Raises InputError for nodes that are not there."""
    options: dict[str, Any] = {}
    if breaks:
        options["breaks"] = break_places(graph, breaks)
    if checkpoints is not None:
        options["checkpoints"] = _checkpoints(graph, checkpoints)
    return options


def break_places(graph: Graph, breaks: Sequence[str]) -> list[str]:
    return find_breaks(graph, _names(breaks, "breaks"))


def _names(given: Any, what: str) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(f"{what} is {told(repr(given), 80)}.", hint=f'Give a list: {what}=["pay"].')
    return [
        demand_text(getattr(name, "id", name), f"a node in {what}") for name in cast("Sequence[Any]", given)
    ]


def _checkpoints(graph: Graph, given: Any) -> dict[str, Any]:
    chosen = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {"policy": given}
    unknown = sorted(map(str, chosen.keys() - {"policy", "when", "exclude"}))
    if unknown:
        raise InputError(f"checkpoints has no {', '.join(unknown)}.", hint="It has policy, when and exclude.")
    policy = chosen.get("policy", graph.spec.checkpoints)
    if not isinstance(policy, str) or policy not in POLICIES:
        raise InputError(f"checkpoints {told(repr(policy), 80)} is none of {', '.join(POLICIES)}.")
    when = chosen.get("when")
    if when is not None and when not in MOMENTS:
        raise InputError(f"checkpoints when {told(repr(when), 80)} is none of {', '.join(MOMENTS)}.")
    names = _names(chosen.get("exclude", ()), "exclude")
    return {
        "policy": POLICIES[policy],
        "when": when,
        "exclude": find_places(graph, names, "no checkpoint of"),
    }
