"""What an agent on the command line tells of itself, where it ends with a JSON object of `type` "result": its
answer, whether it failed, its tokens and its cost."""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

_COUNTED: Final = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
_MOST: Final = 1e12


class AgentResult(msgspec.Struct, frozen=True):
    text: str
    failed: bool = False
    tokens: int = 0
    cost: float = 0.0


def result_in(output: str) -> AgentResult | None:
    """Of the whole output, or of its last line, where events came before. None: it is plain text."""
    lines = output.strip().splitlines()
    for candidate in (output.strip(), lines[-1] if lines else ""):
        found = _object(candidate)
        if found.get("type") == "result" and isinstance(found.get("result"), str):
            return _read(found)
    return None


def _object(text: str) -> dict[str, Any]:
    if not text.startswith("{"):
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        return {}


def _read(found: dict[str, Any]) -> AgentResult:
    said: Any = found.get("usage")
    usage: dict[str, Any] = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    tokens = sum(int(_amount(usage.get(name))) for name in _COUNTED)
    cost = _amount(found.get("total_cost_usd"))
    return AgentResult(found["result"], found.get("is_error") is True, tokens, cost)


def _amount(value: Any) -> float:
    return float(value) if type(value) in (int, float) and 0 <= value < _MOST else 0.0
