"""Changes of files that are made once, whatever happens to the worker.

Before any file changes, the digests of all of them are recorded, as they are and as they will be. After a
crash a file that is as it will be is left alone, one that is as it was is changed, and anything else is an
error: something else has changed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from holdfast.agents.coding.project_folder import Place, ProjectFolder
from holdfast.agents.tools import ToolError

Contents = Mapping[Place, bytes | None]
"""What files will contain; None: the file is deleted."""


class PlannedFile(msgspec.Struct, frozen=True):
    """Digests; None: there is no such file."""

    path: list[str]
    before: str | None
    after: str | None


def planned_changes(folder: ProjectFolder, contents: Contents) -> list[dict[str, Any]]:
    """As it is recorded. Raises ToolError, before anything is written, if a file cannot be there."""
    places = set(contents)
    for place, data in contents.items():
        if data is not None:
            folder.require_room_for(place)
        inner = next((each for each in places if each != place and each[: len(place)] == place), None)
        if inner is not None:
            raise ToolError(f"{'/'.join(place)} cannot be a file and the folder of {'/'.join(inner)}")
    return [
        msgspec.to_builtins(PlannedFile(list(place), folder.digest(place), _digest(data)))
        for place, data in contents.items()
    ]


def make_changes(
    folder: ProjectFolder, planned: Any, contents_of: Callable[[set[Place]], Contents], key: str
) -> None:
    """`contents_of`: the new contents of the named files, from those that have not changed yet. Raises
    ToolError."""
    files = msgspec.convert(planned, list[PlannedFile])
    made = sha256(key.encode()).hexdigest()[:16]
    # The same in every attempt, so that nothing of one that was cut off stays.
    names = {tuple(each.path): f".holdfast-{made}-{number}.new" for number, each in enumerate(files)}
    try:
        left = {tuple(each.path): each.after for each in files if not _is_done(folder, each)}
        contents: Contents = contents_of(set(left)) if left else {}
        for place, after in left.items():
            if _digest(contents[place]) != after:
                raise ToolError(f"{'/'.join(place)} has changed since; read it again")
        _put(folder, {place: contents[place] for place in left}, names)
    except ToolError:
        for place, name in names.items():
            folder.discard(place, name)
        raise


def _is_done(folder: ProjectFolder, planned: PlannedFile) -> bool:
    """Raises ToolError for a file that is neither as it was nor as it will be."""
    now = folder.digest(tuple(planned.path))
    if now == planned.after:
        return True
    if now != planned.before:
        raise ToolError(
            f"{'/'.join(planned.path)} was changed by something else while this edit was interrupted; the "
            "edit was not completed. Read the files again"
        )
    return False


def _put(folder: ProjectFolder, contents: Contents, names: Mapping[Place, str]) -> None:
    """All contents are on the disk before the first file changes; deletions are last, because a moved file
    is computed from its old place."""
    for place, data in contents.items():
        if data is not None:
            folder.stage(place, data, names[place])
    for place, data in contents.items():
        if data is not None:
            folder.publish(place, names[place])
    for place, data in contents.items():
        if data is None:
            folder.remove(place)


def _digest(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()
