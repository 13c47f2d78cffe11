"""Limits: how many runs may be running at once, and how many may start in a period."""

from __future__ import annotations

from hashlib import sha256

import msgspec

EACH_KEY = "*"
_LONGEST = 200
_ESCAPES = str.maketrans({"%": "%25", "/": "%2F", "*": "%2A"})


class LimitRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run has at most one limit, and counts for that one and the one above it: names are paths, so that a
    run with the limit `flow:refund/acme` counts for `flow:refund` too. `flow:refund/*` applies to each key
    that has no limit itself.

    The limits that flows declare and those that an operator fixed are stored separately; the fixed ones
    win."""

    name: str
    concurrency: int | None = None  # maximum number of runs with a lease
    rate: int | None = None  # maximum number of runs that start within `per`
    per: int = 0  # microseconds
    fixed: bool = False  # by an operator: what flows declare does not change it
    updated_at: int = 0  # 0: no limit is set, there are only runs with this key

    @property
    def root(self) -> str:
        return root_of(self.name)


def flow_limit(flow: str) -> str:
    """The limit of all runs of a flow, in all tenants."""
    return f"flow:{flow.translate(_ESCAPES)}"


def flow_of(name: str) -> str | None:
    """The flow, if this is the limit of a whole flow."""
    if not name.startswith("flow:") or "/" in name:
        return None
    return _unescape(name[5:])


def _unescape(spelled: str) -> str:
    return spelled.replace("%2A", "*").replace("%2F", "/").replace("%25", "%")


def key_limit(flow: str, key: str) -> str:
    """The limit of the flow's runs with this key. A long key is replaced by its digest."""
    if len(key) > _LONGEST:
        key = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{flow_limit(flow)}/{key.translate(_ESCAPES)}"


def normalized_name(name: str) -> str:
    """The stored name of a limit whose key was written unescaped, or too long."""
    root, _, key = name.partition("/")
    flow = flow_of(root)
    return name if flow is None or key in ("", EACH_KEY) else key_limit(flow, _unescape(key))


def root_of(name: str) -> str:
    return name.partition("/")[0]


def path_of(name: str) -> tuple[str, ...]:
    """The names of the limits that a run with this one counts for, itself included."""
    root = root_of(name)
    return (root,) if root == name else (root, name)
