"""The traceback of an error as text: the frames of the flow first, then those of libraries, ours left out."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from holdfast.types.redaction import redactor
from holdfast.types.text import clean_text

MAX_TRACEBACK: Final = 4_000
MAX_OWN: Final = 2_800
MAX_FRAMES: Final = 60
MAX_CAUSES: Final = 3
LIBRARIES: Final = "Through libraries:"

_ENGINE: Final = str(Path(__file__).parents[2])
_DEMO: Final = str(Path(_ENGINE) / "demo")
_FILE: Final = re.compile(r'^(  File ")([^"\n]+)(", line )', re.MULTILINE)
_INSTALLED: Final = ("site-packages", "dist-packages")


def flow_traceback(error: BaseException) -> str:
    """At most MAX_TRACEBACK characters; of a long one the frames nearest to the error are kept."""
    own, libraries = list[str](), list[str]()
    for each, title in _chain(error):
        frames = traceback.extract_tb(each.__traceback__, limit=-MAX_FRAMES)
        mine = [frame for frame in frames if _is_own(frame.filename)]
        others = [frame for frame in frames if not _is_own(frame.filename) and not _is_engine(frame.filename)]
        if not mine:
            mine, others = others, []
        own.append(title + _text(mine))
        libraries.append(_text(others))
    # Masked before they are cut: half of a secret is not recognised.
    first = _end(redactor.redact(with_short_paths("".join(own))), MAX_OWN)
    rest = redactor.redact(with_short_paths("".join(libraries)))
    if not rest:
        return first
    return f"{first}{LIBRARIES}\n{_end(rest, MAX_TRACEBACK - len(first) - len(LIBRARIES) - 1)}"


def with_short_paths(text: str) -> str:
    """A traceback whose files are named below their root, as imports name them: where code lies on a worker
    is the operator's."""
    return _FILE.sub(lambda found: f"{found[1]}{_short_path(found[2])}{found[3]}", text)


def _short_path(file: str) -> str:
    path = Path(file)
    if not path.is_absolute():
        return file
    for name in _INSTALLED:
        _, found, below = file.rpartition(f"/{name}/")
        if found:
            return below
    roots = [root for each in (*_standard(), *sys.path) if path.is_relative_to(root := Path(each).absolute())]
    within = max(roots, key=lambda root: len(root.parts), default=path.parent)
    return str(path.relative_to(within))


def without_source(text: str) -> str:
    """The frames of a traceback without their lines of code."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("    "))


def _chain(error: BaseException) -> Iterator[tuple[BaseException, str]]:
    """The error and what it was raised for, each with the line above its frames."""
    seen = {id(error)}
    yield error, ""
    for _ in range(MAX_CAUSES):
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None or id(cause) in seen:
            return
        seen.add(id(cause))
        yield cause, f"Because of {type(cause).__name__}: {clean_text(cause)[:300]}\n"
        error = cause


def _text(frames: list[traceback.FrameSummary]) -> str:
    return "".join(traceback.StackSummary.from_list(frames).format())


def _end(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[len(text) - limit + 2 :]
    return f"…\n{kept[kept.find(chr(10)) + 1 :]}"


@cache
def _standard() -> tuple[str, ...]:
    """Where the standard library is."""
    import sysconfig  # it reads how Python was built, and most programs see no error

    return tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


def _is_engine(file: str) -> bool:
    return file.startswith(_ENGINE) and not file.startswith(_DEMO)


def _is_own(file: str) -> bool:
    if _is_engine(file) or file.startswith("<frozen"):
        return False
    return not any(name in file for name in _INSTALLED) and not file.startswith(_standard())
