"""Blobs as files in a folder: named by their content, durable before a record can name them."""

from __future__ import annotations

import contextlib
import errno
import math
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from holdfast.errors import BlobMissingError, StoreError, StoreFullError, StoreUnavailableError
from holdfast.store.blob.objects import content_address
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.own_threads import in_thread

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def folder_beside(file: str | Path) -> Path:
    """The folder of a database's blobs: by a link to the database, that beside the file itself, as its log.
    An earlier release made it beside the link."""
    folders = [Path(f"{each}-blobs") for each in (Path(file).absolute(), Path(file).resolve())]
    return next((each for each in folders if each.is_dir()), folders[-1])


class LocalBlobs:
    """`address` computes a blob's digest from its bytes; every read is checked against it. The folder is
    created with the first blob. Several processes may share it.
    """

    def __init__(self, folder: str | Path, address: Callable[[bytes], bytes] = content_address) -> None:
        self._folder = Path(folder).absolute()  # a handler may change the folder of the process
        self._address = address

    async def put(self, digest: bytes, data: bytes) -> None:
        """Durable when it returns. An existing blob is not changed."""
        await in_thread(self.put_now, digest, data)

    async def replace(self, digest: bytes, data: bytes) -> None:
        """Replace the bytes of a blob that was encrypted with a new key. The old bytes stay until the new
        ones are durable."""
        await in_thread(self.replace_now, digest, data)

    async def get(self, digest: bytes) -> bytes:
        """Raises BlobMissingError if the file is missing or its content has changed."""
        return await in_thread(self.get_now, digest)

    async def delete(self, digest: bytes) -> None:
        await in_thread(self.delete_now, digest)

    async def has(self, digest: bytes) -> bool:
        return self.has_now(digest)

    async def list(self) -> AsyncIterator[bytes]:
        """The digests that are stored, in any order."""
        async for digest in self.list_older(math.inf):
            yield digest

    async def list_older(self, than: float) -> AsyncIterator[bytes]:
        for path in await in_thread(lambda: list(self._folder.glob("??/*"))):
            with contextlib.suppress(FileNotFoundError):
                if len(path.name) == 64 and path.stat().st_mtime < than:
                    yield bytes.fromhex(path.name)

    def has_now(self, digest: bytes) -> bool:
        return self._path(digest).is_file()

    def put_now(self, digest: bytes, data: bytes) -> None:
        path = self._path(digest)
        try:
            if path.is_file() and path.stat().st_size == len(data):
                return
            self._make_folder(path.parent)
            _write_durably(path, data)
        except OSError as error:
            raise _translated(error, path) from error

    def replace_now(self, digest: bytes, data: bytes) -> None:
        path = self._path(digest)
        try:
            self._make_folder(path.parent)
            _write_durably(path, data)
        except OSError as error:
            raise _translated(error, path) from error

    def get_now(self, digest: bytes) -> bytes:
        path = self._path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            if not self._is_there():
                raise _away(self._folder) from error
            raise _missing(path, "gone") from error
        except OSError as error:
            raise _translated(error, path) from error
        # Encrypted bytes are authenticated when they are decrypted; their address is keyed, so it cannot be
        # checked here (D-38).
        if not is_encrypted(data) and self._address(data) != digest:
            raise _missing(path, "damaged")
        return data

    def delete_now(self, digest: bytes) -> None:
        """Deleting a blob that does not exist is not an error."""
        path = self._path(digest)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _translated(error, path) from error

    def _is_there(self) -> bool:
        """Whether the folder can be trusted. A folder that is missing or empty may be a disk that is not
        mounted: then nothing can be said about a blob, and a caller that asks for one has put one."""
        try:
            return next(self._folder.iterdir(), None) is not None
        except OSError:
            return False

    def _path(self, digest: bytes) -> Path:
        name = digest.hex()
        return self._folder / name[:2] / name

    def _make_folder(self, folder: Path) -> None:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            # The new directory entries must survive a power cut as well as the file does.
            _sync_folder(self._folder)
            _sync_folder(self._folder.parent)


def _write_durably(path: Path, data: bytes) -> None:
    """Writes the file completely or not at all: a temporary name, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f"{path.name}.{os.urandom(6).hex()}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _missing(path: Path, what: str) -> BlobMissingError:
    return BlobMissingError(
        f"the blob {path.name} is {what}.",
        hint=f"Restore {path} from a backup; the runs that name it cannot be read without it.",
    )


def _away(folder: Path) -> StoreUnavailableError:
    return StoreUnavailableError(
        f"the blob folder {folder} is missing or empty: large values cannot be read now.",
        hint="Mount or restore it. Runs that need it wait and then resume by themselves.",
    )


def _translated(error: OSError, path: Path) -> StoreError:
    if error.errno in _NO_ROOM:
        return StoreFullError(f"the disk is full: {path} was not written.")
    return StoreUnavailableError(
        f"the blob file {path} cannot be used: {error.strerror}.",
        hint="Check that this user may read and write its folder.",
    )
