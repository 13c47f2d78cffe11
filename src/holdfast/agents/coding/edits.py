"""What the edits of a model do to files: the contents that they plan, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.agents.coding.file_changes import Contents
from holdfast.agents.coding.patch import PatchOperation, parse_patch, patched
from holdfast.agents.coding.project_folder import Place, ProjectFolder
from holdfast.agents.tools import ToolError


def replaced_text(
    folder: ProjectFolder, path: str, old: str, new: str, *, every: bool
) -> tuple[Contents, int]:
    """(the contents, how often the text was replaced): exactly one match, or all of them."""
    place = folder.place_to_write(path)
    if not old:
        raise ToolError("old_string is empty; use write_file for a new file")
    if old == new:
        raise ToolError("old_string and new_string are the same")
    text = text_of(folder.read(place), path)
    old, new = _with_ends(text, old), _with_ends(text, new)
    count = text.count(old)
    if not count:
        raise ToolError(f"old_string is not in {path}; read it again")
    if count > 1 and not every:
        raise ToolError(
            f"old_string is {count} times in {path}; give more lines around it, or set replace_all"
        )
    return {place: bytes_of(text.replace(old, new))}, count


def _with_ends(text: str, given: str) -> str:
    """Models write LF; a file whose lines all end with CRLF keeps them."""
    if "\r" in given or "\r\n" not in text or text.count("\n") != text.count("\r\n"):
        return given
    return given.replace("\n", "\r\n")


class PatchedFile(msgspec.Struct, frozen=True):
    """One operation of a patch with the resolved places of its files."""

    operation: PatchOperation
    place: Place
    target: Place

    def contents(self, folder: ProjectFolder, so_far: dict[Place, bytes | None]) -> None:
        operation = self.operation
        if operation.kind == "add":
            so_far[self.place] = bytes_of("".join(f"{line}\n" for line in operation.added))
        elif operation.kind == "delete":
            so_far[self.place] = None
        else:
            before = so_far.get(self.place)
            text = text_of(folder.read(self.place) if before is None else before, operation.path)
            made = bytes_of(patched(text, operation.hunks, operation.path) if operation.hunks else text)
            if self.target != self.place:
                so_far[self.place] = None
            so_far[self.target] = made


def patched_files(folder: ProjectFolder, patch: str, left: set[Place] | None = None) -> list[PatchedFile]:
    """`left`: the files that have not changed yet, if some have. Raises ToolError: each file is named by one
    operation, unless all of them update it."""
    found: list[PatchedFile] = []
    for each in parse_patch(patch):
        removes = each.kind == "delete" or bool(each.moved_to)
        place = folder.place_to_remove(each.path) if removes else folder.place_to_write(each.path)
        target = folder.place_to_write(each.moved_to) if each.moved_to else place
        if each.kind != "add" and (left is None or place in left) and not folder.exists(place):
            raise ToolError(f"there is no file {each.path}")
        found.append(PatchedFile(each, place, target))
    _require_one_operation(found)
    return found


def _require_one_operation(files: Sequence[PatchedFile]) -> None:
    plain: set[Place] = set()
    others: set[Place] = set()
    for each in files:
        updates = each.operation.kind == "update" and not each.operation.moved_to
        named = {each.place, each.target}
        if named & others or (not updates and named & plain):
            raise ToolError(f"the patch names {each.operation.path} twice; combine its changes")
        (plain if updates else others).update(named)


def patched_contents(
    folder: ProjectFolder, files: Sequence[PatchedFile], wanted: set[Place] | None = None
) -> Contents:
    """Of all files, or only of those that are wanted: the others may have changed already."""
    found: dict[Place, bytes | None] = {}
    for each in files:
        if wanted is None or each.target in wanted:
            each.contents(folder, found)
        elif each.place in wanted:
            found[each.place] = None
    return found


def text_of(data: bytes, path: str) -> str:
    """Bytes that are no UTF-8 are kept as they are. Raises ToolError for a binary file."""
    if b"\0" in data:
        raise ToolError(f"{path} is a binary file")
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ToolError(f"the text cannot be written as UTF-8: {error.reason}") from error
