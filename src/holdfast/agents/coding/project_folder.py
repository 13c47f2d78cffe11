"""The files of one folder, for a model: nothing outside of it is reached, and `.git` is only read.

A path is resolved first, with its links. It is then opened part by part from the folder's own descriptor and
without following links, so that a link that is put there in the meantime leads nowhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from holdfast.agents.tools import ToolError

GIT: Final = ".git"
MAX_EDITED: Final = 16 * 2**20
"""Bytes of a file that is edited."""
_BLOCK: Final = 2**20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without blocking: the reader of a named pipe would wait for its writer.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Place = tuple[str, ...]
"""A file's resolved place inside the folder; empty for the folder itself."""


def shown(place: Place) -> str:
    return "/".join(place) or "the working folder"


class ProjectFolder:
    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).resolve()

    def place(self, path: str) -> Place:
        """Raises ToolError for a path that leads out of the folder."""
        if not path or "\0" in path:
            raise ToolError("a file needs a path")
        try:
            found = (self.root / path).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ToolError(f"{path} cannot be resolved: {_reason(error)}") from error
        if not found.is_relative_to(self.root):
            raise ToolError(f"{path} is not inside the working folder")
        return found.relative_to(self.root).parts

    def place_to_write(self, path: str) -> Place:
        """Raises ToolError for the folder itself, and for what belongs to git."""
        place = self.place(path)
        if not place:
            raise ToolError(f"{path} is the working folder itself")
        given = Path(path).parts
        if any(_is_git(part) for part in (*place, *given)) or self._is_in_git_folder(place):
            raise ToolError(f"{path} belongs to git: {GIT} is only read")
        return place

    def place_to_remove(self, path: str) -> Place:
        """Raises ToolError for a link: its target would be removed in its place."""
        place = self.place_to_write(path)
        if (self.root / path).is_symlink():
            raise ToolError(f"{path} is a link; name the file that it leads to")
        return place

    def _is_in_git_folder(self, place: Place) -> bool:
        """`.git` may be a link to a folder, or a file that names one; that may be inside the folder, too."""
        found = self.root / GIT
        try:
            if found.is_symlink():
                kept = found.resolve()
            elif found.is_file():
                words = found.read_text("utf-8", "replace")[:4096].partition("gitdir:")[2].strip()
                kept = (self.root / words.splitlines()[0]).resolve() if words else None
            else:
                return False
        except (OSError, RuntimeError, ValueError):
            return False
        return kept is not None and kept != self.root and self.root.joinpath(*place).is_relative_to(kept)

    def exists(self, place: Place) -> bool:
        return os.path.lexists(self.root.joinpath(*place))

    def is_folder(self, place: Place) -> bool:
        return self.root.joinpath(*place).is_dir()

    def require_room_for(self, place: Place) -> None:
        """Raises ToolError if no file can be there: a folder is, or a part of its path is a file."""
        if self.is_folder(place):
            raise ToolError(f"{shown(place)} is a folder")
        for end in range(1, len(place)):
            above = self.root.joinpath(*place[:end])
            if above.exists() and not above.is_dir():
                raise ToolError(f"{shown(place[:end])} is not a folder")

    # ------------------------------------------------------------------ contents
    @contextmanager
    def open_file(self, place: Place) -> Generator[int]:
        """A descriptor of a regular file. Raises ToolError."""
        with self._above(place) as above:
            fd = self._opened(place, above)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    what = "a folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "not a regular file"
                    raise ToolError(f"{shown(place)} is {what}")
                yield fd
            finally:
                os.close(fd)

    def _opened(self, place: Place, above: int) -> int:
        try:
            return os.open(place[-1] if place else ".", _FILE, dir_fd=above)
        except OSError as error:
            raise ToolError(f"{shown(place)} cannot be read: {_reason(error)}") from error

    def read(self, place: Place, most: int = MAX_EDITED) -> bytes:
        """Raises ToolError for a larger file."""
        with self.open_file(place) as fd:
            data = bytearray()
            while len(data) <= most and (block := os.read(fd, _BLOCK)):
                data += block
        if len(data) > most:
            raise ToolError(f"{shown(place)} has more than {most:,} bytes")
        return bytes(data)

    def digest(self, place: Place) -> str | None:
        """Of its content, whatever its size; None if there is no such file."""
        if not self.exists(place):
            return None
        made = sha256()
        with self.open_file(place) as fd:
            while block := os.read(fd, _BLOCK):
                made.update(block)
        return made.hexdigest()

    # ------------------------------------------------------------------ changes
    def stage(self, place: Place, data: bytes, name: str) -> None:
        """Write the content beside its place, under this name; `publish` puts it there."""
        try:
            with self._above(place, create=True) as above:
                # Left by an attempt that was cut off.
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=above)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(name, flags, 0o666, dir_fd=above), "wb") as file:
                    file.write(data)
                    _take_mode(file.fileno(), place[-1], above)
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise ToolError(f"{shown(place)} cannot be written: {_reason(error)}") from error

    def discard(self, place: Place, name: str) -> None:
        with suppress(OSError, ToolError), self._above(place) as above:
            os.unlink(name, dir_fd=above)

    def publish(self, place: Place, name: str) -> None:
        try:
            with self._above(place) as above:
                os.replace(name, place[-1], src_dir_fd=above, dst_dir_fd=above)
                os.fsync(above)
        except OSError as error:
            raise ToolError(f"{shown(place)} cannot be written: {_reason(error)}") from error

    def remove(self, place: Place) -> None:
        try:
            with self._above(place) as above:
                os.unlink(place[-1], dir_fd=above)
                os.fsync(above)
        except OSError as error:
            raise ToolError(f"{shown(place)} cannot be deleted: {_reason(error)}") from error

    @contextmanager
    def _above(self, place: Place, *, create: bool = False) -> Generator[int]:
        """A descriptor of the folder that a file is in."""
        try:
            fd = os.open(self.root, _FOLDER)
        except OSError as error:
            raise ToolError(f"the working folder cannot be opened: {_reason(error)}") from error
        try:
            for part in place[:-1]:
                inner = _inner_folder(fd, part, create=create)
                os.close(fd)
                fd = inner
            yield fd
        except OSError as error:
            raise ToolError(f"{shown(place)} cannot be reached: {_reason(error)}") from error
        finally:
            os.close(fd)


def _inner_folder(above: int, part: str, *, create: bool) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        if not create:
            raise
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=above)
        return os.open(part, _FOLDER, dir_fd=above)


def _take_mode(fd: int, name: str, above: int) -> None:
    """The permissions of the file that it replaces: a script stays executable."""
    with suppress(OSError):
        before = os.stat(name, dir_fd=above, follow_symlinks=False)
        if stat.S_ISREG(before.st_mode):
            os.fchmod(fd, stat.S_IMODE(before.st_mode) & 0o777)


def _is_git(part: str) -> bool:
    """Some file systems ignore case, and dots and spaces at the end."""
    return part.rstrip(". ").casefold() == GIT


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return "a part of its path is a link or a file"
        return error.strerror or str(error)
    return str(error)
