"""How much texts are alike: by an embedding that the application gives, else by the parts of their words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.errors import SettingsError
from holdfast.model.user_code.boundary import call

if TYPE_CHECKING:
    from holdfast.runs.node_memory import Embed

_PART = 3


async def likeness(text: str, others: Sequence[str], embed: Embed | None = None) -> list[float]:
    """For each of the others: from 0 (nothing in common) to 1 (alike)."""
    if not others:
        return []
    if embed is None:
        wanted = _parts(text)
        return [_cosine(wanted, _parts(other)) for other in others]
    vectors: list[Sequence[float]] = list(await call(embed, [text, *others]))
    lengths = {len(vector) for vector in vectors}
    if len(vectors) != len(others) + 1 or len(lengths) != 1:
        raise SettingsError(
            f"the embedding of {len(others) + 1} texts gave {len(vectors)} vectors of lengths "
            f"{sorted(lengths)}.",
            hint="Return one vector for each text, all of one length.",
        )
    first, *rest = [dict(enumerate(vector)) for vector in vectors]
    return [_cosine(first, vector) for vector in rest]


def _parts(text: str) -> Mapping[Any, float]:
    """Pieces of its words, so that \"pipes\" is like \"pipe\". A word counts as much as a longer one."""
    found: Counter[str] = Counter()
    for word in text.casefold().split():
        plain = "".join(letter for letter in word if letter.isalnum())
        if plain:
            around = f" {plain} "
            found.update(around[at : at + _PART] for at in range(max(1, len(around) - _PART + 1)))
    return found


def _cosine(a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
    shared = sum(weight * b[part] for part, weight in a.items() if part in b)
    size = math.hypot(*a.values()) * math.hypot(*b.values()) if a and b else 0.0
    return max(0.0, shared / size) if size else 0.0
