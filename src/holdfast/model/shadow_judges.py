"""Judges that a flow gives by value (`shadow=judge`): the name by which a hold refers to one of them."""

from __future__ import annotations

from typing import Any

_JUDGES: dict[str, Any] = {}


def shadow_name(flow: str, node: str, given: Any) -> Any:
    """`given`: a judge, or the name of one of the instance, which is returned. Anything else is returned too,
    and reported where the terms are read."""
    if given is None or isinstance(given, str) or not (callable(given) or hasattr(given, "judge")):
        return given
    name = f"{flow}/{node}"
    _JUDGES[name] = given
    return name


def shadow_judge(name: str) -> Any:
    """None if no flow that is loaded here has given it."""
    return _JUDGES.get(name)
