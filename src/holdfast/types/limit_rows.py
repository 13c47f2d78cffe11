"""Gates: how many runs may be under way at once, and how many may start in a while."""

from __future__ import annotations

from hashlib import sha256

import msgspec

EACH_KEY = "*"
_LONGEST = 200
_ESCAPES = str.maketrans({"%": "%25", "/": "%2F", "*": "%2A"})


class LimitRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run stands at one gate at most, and passes that one and the one around it: names are paths, so that
    who stands at `flow:refund/acme` passes `flow:refund` too. `flow:refund/*` says what holds for each key
    that has no gate of its own.

    What flows declare and what an operator fixed are kept beside each other; what is fixed counts."""

    name: str
    concurrency: int | None = None  # runs with a lease
    rate: int | None = None  # runs that start within `per`
    per: int = 0  # microseconds
    fixed: bool = False  # by an operator: what flows declare does not change it
    updated_at: int = 0  # 0: no such gate, only runs that stand at this key

    @property
    def root(self) -> str:
        return root_of(self.name)


def flow_limit(flow: str) -> str:
    """The gate of all runs of a flow, whosever they are."""
    return f"flow:{flow.translate(_ESCAPES)}"


def flow_of(name: str) -> str | None:
    """Whose gate it is, where it is that of a whole flow."""
    if not name.startswith("flow:") or "/" in name:
        return None
    return _unescape(name[5:])


def _unescape(spelled: str) -> str:
    return spelled.replace("%2A", "*").replace("%2F", "/").replace("%25", "%")


def key_limit(flow: str, key: str) -> str:
    """The gate of the flow's runs with this key. A long one is known by its digest."""
    if len(key) > _LONGEST:
        key = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{flow_limit(flow)}/{key.translate(_ESCAPES)}"


def normalized_name(name: str) -> str:
    """The gate that is meant by somebody who wrote a key as it is, or too long."""
    root, _, key = name.partition("/")
    flow = flow_of(root)
    return name if flow is None or key in ("", EACH_KEY) else key_limit(flow, _unescape(key))


def root_of(name: str) -> str:
    return name.partition("/")[0]


def path_of(name: str) -> tuple[str, ...]:
    """The gates that are passed on the way to that one, itself included."""
    root = root_of(name)
    return (root,) if root == name else (root, name)
