"""Documents of older major versions of the format, in terms of the present one.

An upgrade is a function of the data alone, so that a document means the same in every process and for ever.
What was sent is kept as it is: the upgrade happens each time the document is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from holdfast.frontends.document.document import FORMAT, Json

Upgrade = Callable[[Json], Json]

UPGRADES: Final[Mapping[int, Upgrade]] = {}
"""By major version, how its documents become those of the next one. None is needed yet: 1 is the first. Each
needs a golden file (`tests/documents/formats`)."""


def is_upgradable(major: int) -> bool:
    return all(each in UPGRADES for each in range(major, FORMAT[0]))


def upgraded(data: Json, major: int) -> Json:
    """The data of a document of an older major version, as this Holdfast reads it."""
    for each in range(major, FORMAT[0]):
        data = {**UPGRADES[each](data), "holdfast": f"{each + 1}.0"}
    return data
