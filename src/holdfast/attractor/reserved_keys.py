"""Keys of the context that the outcome of a stage cannot set. An agent writes its verdict itself: it must not
raise its budget, change the goal, answer for a person, or report for a command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.human import ANSWERS
from holdfast.attractor.pipeline_limits import BUILT_IN
from holdfast.model.graph import GATE
from holdfast.types.text import clean_text

_ENGINE, _GRAPH = "internal.", "graph."
_SET_BY: Final = {
    ANSWERS: GATE,
    "parallel.": "parallel.fan_in",
    "stack.child.": "stack.manager_loop",
    "tool.": "tool",
}
"""What only one kind of stage reports. Handlers of one's own may do the same."""
_OF_WALK: Final = ("outcome", "preferred_label", "current_node")
"""The engine sets them after each stage."""


def is_reserved(key: str, kind: str) -> bool:
    if key.startswith((_ENGINE, _GRAPH)):
        return True
    # Conditions read `context.k` before `k`, so both are meant.
    name = key.removeprefix("context.")
    if name in _OF_WALK:
        return True
    return kind in BUILT_IN and any(name.startswith(of) and kind != by for of, by in _SET_BY.items())


def note_reserved(visit: StageVisit, keys: Iterable[str], kind: str) -> None:
    """In the log of the run. Keys of the engine, which have no effect, are not noted."""
    ours = (_ENGINE, *_OF_WALK)
    ignored = sorted(key for key in keys if is_reserved(key, kind) and not key.startswith(ours))
    if ignored:
        names = ", ".join(clean_text(key, 60) for key in ignored[:5])
        what = (
            "attributes of the graph"
            if ignored[0].startswith(_GRAPH)
            else "what other kinds of stages report"
        )
        visit.ctx.emit(f"stage {visit.stage.id} cannot change {what}: {names} stays as it was", "log")
