"""docs/reference/errors.md, of the tree of errors."""

from __future__ import annotations

import inspect

from holdfast import errors
from holdfast.errors import HoldfastError

TOP = """# Errors

<!-- Made by tools/docs.py of src/holdfast/errors.py. -->

Every error that Holdfast raises is a `HoldfastError`: one `except` catches all of them, and one of the groups
below catches a kind. Each carries

- `message`: what happened, to what; `hint`: what to do (or None). `str(error)` is both.
- `code`: a stable word, also recorded on a run that failed (`result.error.code`, `run.failed` events).
- `status`: the HTTP status that says the same.
- `retryable`: whether the same call may succeed later without a change.
- `facts`: the ids, sizes and names in the message, for programs.

What a node's own code raises is recorded with the code `node_failed` and the class's name. A run that fails
does not raise: `result.failed` and `result.error` tell it, and `result.expect()` raises `RunError`.

The command line says the message and the hint in a sentence or two and exits with 2 for wrong input, what is
not found and conflicts, 1 for a run that failed and 4 for trouble with the store.

| error | code | status | retryable | when |
|---|---|---|---|---|
"""


def classes() -> list[type[HoldfastError]]:
    # An alias has another name than its class (`GateShutError`): one row is enough.
    found = [
        c
        for name, c in vars(errors).items()
        if inspect.isclass(c) and issubclass(c, HoldfastError) and c.__name__ == name
    ]
    return sorted(found, key=lambda c: inspect.getsourcelines(c)[1])


def words() -> dict[str, str]:
    """What the tree at the top of the module says of each class."""
    told: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        name, _, rest = line.lstrip(" │├└─").partition(" ")
        if name.endswith("Error") or name == "NotDone":
            told[name] = rest.strip()
    return told


def row(cls: type[HoldfastError], told: dict[str, str]) -> str:
    depth = len(cls.__mro__) - len(HoldfastError.__mro__)
    name = f"{'&nbsp;&nbsp;' * depth}`{cls.__name__}`"
    text = told.get(cls.__name__) or "any of these"
    return f"| {name} | `{cls.code}` | {cls.status} | {'yes' if cls.retryable else 'no'} | {text} |"


def page() -> str:
    told = words()
    return TOP + "\n".join(row(cls, told) for cls in classes()) + "\n"
