"""Reads the files that a pipeline names: prompts, stylesheets, other pipelines. No other module does."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

LARGEST: Final = 4 * 1024 * 1024


class FileRefusedError(Exception):
    """The file is not read. `message` and `fix` become a diagnostic."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix


class FileAccess(msgspec.Struct, frozen=True, kw_only=True):
    """`base` is the folder for relative names. `confined`: nothing outside of `base` is read, also not
    through symbolic links; for documents from untrusted clients."""

    base: Path
    confined: bool = True

    @property
    def root(self) -> Path:
        return self.base.resolve()

    def find(self, name: str, beside: Path | None = None) -> Path:
        """The file of that name, relative to the folder `beside`. Raises FileRefusedError."""
        try:
            found = ((beside or self.base) / name).resolve()
            inside = found.is_relative_to(self.base.resolve())
            if self.confined and not inside:
                raise FileRefusedError(
                    f"{name} is outside of the pipeline's folder", fix="copy it into the folder"
                )
            if not found.exists():
                raise FileRefusedError(
                    f"{name} does not exist", fix="names are relative to the file's folder"
                )
            if not found.is_file():
                raise FileRefusedError(f"{name} is not a file", fix="name a text file")
        except (OSError, ValueError, RuntimeError) as error:
            raise FileRefusedError(f"{name[:80]!r} cannot be a file: {error}") from None
        return found

    def read(self, path: Path, name: str) -> str:
        """Raises FileRefusedError."""
        try:
            if path.stat().st_size > LARGEST:
                raise FileRefusedError(
                    f"{name} is larger than {LARGEST // 1024 // 1024} MB", fix="split or shorten it"
                )
            return path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FileRefusedError(f"{name} is not UTF-8 text", fix="save it as UTF-8") from None
        except OSError as error:
            raise FileRefusedError(f"{name} cannot be read: {error.strerror}") from None


class RequestFiles(msgspec.Struct, frozen=True):
    """The files of one request, by name: nothing of the machine is read."""

    texts: Mapping[str, str] = {}
    confined: bool = True

    @property
    def root(self) -> Path:
        return Path()

    def find(self, name: str, beside: Path | None = None) -> Path:
        """Raises FileRefusedError."""
        found = posixpath.normpath(posixpath.join((beside or self.root).as_posix(), name))
        if found not in self.texts:
            raise FileRefusedError(
                f"{found[:200]} is not one of the files of the request", fix="send its text in `files`"
            )
        return Path(found)

    def read(self, path: Path, name: str) -> str:
        return self.texts[path.as_posix()]


PipelineFiles = FileAccess | RequestFiles


def access_of(path: str) -> FileAccess | None:
    """Access for a pipeline that its owner runs from a file: it may name files in any folder. None if the
    pipeline has no file."""
    if not path or path == "-":
        return None
    return FileAccess(base=Path(path).absolute().parent, confined=False)
