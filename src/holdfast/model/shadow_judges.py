"""Judges that a flow gives by value (`shadow=judge`): the name by which a hold refers to one of them."""

from __future__ import annotations

from itertools import count
from typing import Any

_JUDGES: dict[str, Any] = {}
_numbers = count()


def shadow_name(flow: str, node: str, given: Any, *, once: bool = False) -> Any:
    """`given`: a judge, or the name of one of the instance, which is returned. Anything else is returned too,
    and reported where the terms are read. `once`: for one question, which may be asked beside others of the
    node that have other judges."""
    if given is None or isinstance(given, str) or not (callable(given) or hasattr(given, "judge")):
        return given
    name = f"{flow}/{node}{f'#{next(_numbers)}' if once else ''}"
    _JUDGES[name] = given
    return name


def shadow_judge(name: str) -> Any:
    """None if no flow that is loaded here has given it."""
    return _JUDGES.get(name)


def forget_judge(name: str) -> None:
    """The question was asked; the judge of a node is kept for the next one."""
    if "#" in name:
        _JUDGES.pop(name, None)


def shown_name(name: str) -> str:
    return name.partition("#")[0]
