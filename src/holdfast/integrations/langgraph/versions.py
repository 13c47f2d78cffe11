"""Which releases of LangGraph this integration works with."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final

TESTED: Final = {"langgraph": ((1, 2), (2,)), "langgraph-checkpoint": ((4, 3), (5,))}
"""From this release up to, and without, that one."""
INSTALL: Final = "pip install 'holdfast-flow[langgraph]'"


def require_versions() -> None:
    """Raises ImportError that says what is installed and what to install."""
    for name, (lowest, beyond) in TESTED.items():
        try:
            found = version(name)
        except PackageNotFoundError:
            found = ""
        numbers = tuple(int(each) for each in re.findall(r"\d+", found)[:3])
        if not lowest <= numbers < beyond:
            least, next_ = (".".join(map(str, each)) for each in (lowest, beyond))
            raise ImportError(
                f"holdfast.integrations.langgraph works with {name} from {least} to below {next_}, and "
                f"{found or 'none'} is installed: {INSTALL}"
            )
    try:
        import_module("langgraph.checkpoint.base")
        import_module("langgraph.types")
    except ImportError as error:
        raise ImportError(f"holdfast.integrations.langgraph cannot import LangGraph: {INSTALL}") from error
