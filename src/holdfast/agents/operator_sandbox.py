"""The operator's sandbox: a program that runs the commands of documents and models, such as bubblewrap or a
container. Holdfast has none of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from holdfast.errors import InputError

VARIABLE: Final = "HOLDFAST_TOOL_SANDBOX"
FIELDS: Final = ("workdir", "stage_dir", "logs", "repository")
_FIELD: Final = re.compile(r"\{([^{}]*)\}")


def sandbox_words(places: Mapping[str, Path]) -> list[str]:
    """The words before a command, from HOLDFAST_TOOL_SANDBOX; none without it. `places`: what stands for
    `{workdir}` and the others. Raises InputError if it cannot be used: no command runs without it then."""
    setting = os.environ.get(VARIABLE, "").strip()
    if not setting:
        return []
    try:
        words = shlex.split(setting)
    except ValueError as error:
        raise _refused(f"cannot be parsed: {error}") from None
    unknown = [name for word in words for name in _FIELD.findall(word) if name not in FIELDS]
    if unknown:
        raise _refused(f"has the unknown field {{{unknown[0]}}}; known: {', '.join(FIELDS)}")
    program = shutil.which(words[0])
    if program is None:
        raise _refused(f"names {words[0]}, which does not exist here")
    # The values are not split: a folder may have any name.
    filled = [_FIELD.sub(lambda found: str(places[found[1]].resolve()), word) for word in words[1:]]
    return [program, *filled]


def _refused(why: str) -> InputError:
    return InputError(f"{VARIABLE} {why}.", hint="Correct it in the environment of the worker, or unset it.")
