"""The environment of commands that documents and models run: by an allow list, because the worker's own may
contain keys and passwords of the store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final

from holdfast.types.redaction import Redactor, is_strong

VARIABLE: Final = "HOLDFAST_TOOL_ENV"
ALLOWED: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "TMPDIR", "TMP",
    "TEMP",
)  # fmt: skip
"""What a command needs to find programs and to write text; none of it is a secret."""

SECRETS: Final = ("*_API_KEY", "*_SECRET", "*_TOKEN", "*_PASSWORD", "*_CREDENTIAL")
"""Names of variables that a coding agent's commands never get, even if they are allowed otherwise."""
_HIDDEN: Final = (
    *SECRETS, "*SECRET*", "*PASSWORD", "*PASSWD", "*_ACCESS_KEY", "*_PRIVATE_KEY", "*_PAT", "HOLDFAST_*KEYS",
)  # fmt: skip
"""Names of variables whose values are hidden in what commands print."""
_PASSWORD: Final = re.compile(r"://[^/?#\s@]*:([^/?#\s@]+)@")
_PARTS: Final = re.compile(r"[\s,;:\"'\[\]{}]+")
# Apart from the redactor of this process: the value of such a variable may be an ordinary word, which is
# hidden in the output of commands, but must not be in every text of this process.
_secrets: Final = Redactor()
_keys: Final = Redactor()


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not _is_secret(name)}


def _is_secret(name: str) -> bool:
    return any(fnmatchcase(name.upper(), pattern) for pattern in SECRETS)


def hide_secrets(text: str) -> str:
    """Without the values of such variables of this process: a command can read them in its parent's
    environment (`/proc/PID/environ`), and what it prints is recorded and sent to the model."""
    for value in _hidden_values():
        _secrets.learn_for(None, value)
    return _secrets.redact_operator(text)


def hide_keys(text: str) -> str:
    """The same, but only values that nobody could guess: for commands of a document, whose output conditions
    and people read, and in which a password like `postgres` is an ordinary word."""
    for value in _hidden_values():
        if is_strong(value) or _PASSWORD.search(value):
            _keys.learn_for(None, value)
    return _keys.redact_operator(text)


def _hidden_values() -> Iterator[str]:
    """Of variables with such names, with their parts (a list of keys); and addresses with a password, such as
    that of the store, with the password."""
    for name, value in os.environ.items():
        if _is_secret(name):
            yield value
        if any(fnmatchcase(name.upper(), pattern) for pattern in _HIDDEN):
            yield from filter(is_strong, (value, *_PARTS.split(value)))
        password = _PASSWORD.search(value)
        if password:
            yield value
            yield from filter(is_strong, [password[1]])


def tool_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Those variables of this process that are on the list, or that HOLDFAST_TOOL_ENV names."""
    known = os.environ if environment is None else environment
    allowed = [*ALLOWED, *filter(None, (name.strip() for name in known.get(VARIABLE, "").split(",")))]
    return {
        name: value for name, value in known.items() if any(fnmatchcase(name, pattern) for pattern in allowed)
    }
