"""Blobs as objects of any S3-compatible store, each tenant under its own prefix."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import math
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from holdfast.errors import (
    BlobDamagedError,
    BlobForbiddenError,
    BlobMissingError,
    SettingsError,
    StoreUnavailableError,
)
from holdfast.store.blob.objects import NamedObject, content_address
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.ids import DEFAULT_TENANT

try:
    import obstore
    from obstore import exceptions
    from obstore.store import S3Store
except ModuleNotFoundError as missing:
    raise SettingsError(
        "blobs in S3 need the package obstore.", hint='Install it: pip install "holdfast-flow[s3]".'
    ) from missing

if TYPE_CHECKING:
    from obstore.store import S3Config

_log = logging.getLogger("holdfast.store.s3")

MULTIPART = 64 << 20
PART = 16 << 20
MARKER = ".holdfast"
_MARK = "holdfast blobs 1\n"
_OPTIONS = frozenset({"endpoint", "region", "sse", "sse_kms_key_id", "path_style"})
_SSE = frozenset({"AES256", "aws:kms"})
# A creation that meets another one in progress is refused with 409: it is tried again.
_CREATE_TRIES = 4
_WRONG_ADDRESS = "Check the address in HOLDFAST_BLOBS. Runs wait and then resume by themselves."
_CLIENT = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=30)}
_RETRY = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}


def open_s3(address: str, **credentials: str) -> S3Blobs:
    """`s3://BUCKET/PREFIX` with the options endpoint, region, sse, sse_kms_key_id and path_style. Credentials
    are `access_key_id`, `secret_access_key` and `session_token`, else those of the environment (`AWS_...`), a
    web identity or a role. Raises SettingsError."""
    parts = urlsplit(address)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.username or parts.password:
        raise SettingsError(
            "the address of the blob store contains credentials.",
            hint="Remove them, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
        )
    if not parts.hostname:
        raise SettingsError(
            "the address of the blob store names no bucket.", hint="Use s3://BUCKET/PREFIX?endpoint=..."
        )
    config = _config(options)
    config.update(credentials)  # type: ignore[typeddict-item]
    client: Any = {**_CLIENT, "allow_http": options.get("endpoint", "").startswith("http://")}
    retry: Any = _RETRY
    try:
        store = S3Store(parts.netloc, config=config, client_options=client, retry_config=retry)
    except exceptions.BaseError as error:
        raise SettingsError(
            f"the blob store s3://{parts.netloc} cannot be opened: its settings are not accepted "
            f"({type(error).__name__}).",
            hint="Check endpoint, region and sse in its address.",
        ) from error
    return S3Blobs(store, parts.path.strip("/"))


def _config(options: dict[str, str]) -> S3Config:
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        raise SettingsError(
            f"the address of the blob store has the unknown option {unknown[0]!r}.",
            hint=f"Known options: {', '.join(sorted(_OPTIONS))}.",
        )
    endpoint, sse = options.get("endpoint", ""), options.get("sse", "")
    if endpoint and not endpoint.startswith("https://") and not _is_loopback(endpoint):
        raise SettingsError(
            "the endpoint of the blob store must begin with https://; http:// is for this machine only.",
            hint="Use https://, or an endpoint on 127.0.0.1.",
        )
    if sse and sse not in _SSE:
        raise SettingsError(
            f"the option sse of the blob store is {sse!r}.", hint=f"Use one of {', '.join(sorted(_SSE))}."
        )
    config: S3Config = {
        "region": options.get("region", "us-east-1"),
        "checksum_algorithm": "SHA256",
        "virtual_hosted_style_request": options.get("path_style", "true" if endpoint else "false") != "true",
    }
    if endpoint:
        config["endpoint"] = endpoint
    if sse:
        config["server_side_encryption"] = sse
    if "sse_kms_key_id" in options:
        config["sse_kms_key_id"] = options["sse_kms_key_id"]
    return config


def _is_loopback(endpoint: str) -> bool:
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    with contextlib.suppress(ValueError):
        return parts.scheme == "http" and ipaddress.ip_address(host).is_loopback
    return parts.scheme == "http" and host == "localhost"


class _Place:
    """What is known of the prefix, by all that write below it in this process."""

    def __init__(self) -> None:
        self.owner: str | None = None
        # The marker is looked at once by a process, not with each value.
        self.marked = False


class S3Blobs:
    """`of` gives those of one tenant. Without a tenant it reads and deletes in all of them, for operators."""

    def __init__(
        self,
        store: S3Store,
        prefix: str,
        tenant: str | None = None,
        address: Callable[[bytes], bytes] = content_address,
    ) -> None:
        self._store, self._prefix, self._tenant, self._address = store, prefix, tenant, address
        self._root = f"{prefix}/v1" if prefix else "v1"
        self._place = _Place()

    def of(self, tenant: str) -> S3Blobs:
        bound = S3Blobs(self._store, self._prefix, tenant, self._address)
        bound._place = self._place
        return bound

    @property
    def owner(self) -> str | None:
        return self._place.owner

    def set_owner(self, owner: str) -> None:
        self._place.owner = owner

    async def is_taken(self, owner: str | None) -> bool:
        """Whether the prefix has the store's marker; it writes nothing. Raises BlobForbiddenError if it
        belongs to another store, StoreUnavailableError if there is no such bucket."""
        marker = await self._read(f"{self._root}/{MARKER}")
        if marker is None:
            # A bucket that does not exist has no marker either.
            await self._tenants()
            return False
        # A store without an identity has never marked a place.
        self._require_own_marker(marker, owner or "none")
        return True

    async def put(self, digest: bytes, data: bytes) -> None:
        """Durable when it returns. An existing blob of the same size is not changed."""
        await self._mark()
        await self._put_new(self._key(digest), data)

    async def replace(self, digest: bytes, data: bytes) -> None:
        """Replace the bytes of a blob that was encrypted with a new key, for each tenant that has it."""
        for key in await self._places(digest):
            await self._overwrite(key, data)

    async def get(self, digest: bytes) -> bytes:
        """Raises BlobMissingError if the object is missing, BlobDamagedError if its content has changed."""
        for key in await self._places(digest):
            data = await self._read(key)
            if data is None:
                continue
            if not self._fits(digest, data):
                # A connection that broke may have cut the answer off.
                data = await self._read(key) or b""
                if not self._fits(digest, data):
                    raise BlobDamagedError(
                        f"the object {key} is damaged: its content does not fit its name.",
                        hint="Restore it from a backup or an older version of the object.",
                    )
            return data
        await self._require_marker()
        raise BlobMissingError(
            f"the blob {digest.hex()} is missing from the blob store.",
            hint="Restore it from a backup; the runs that name it cannot be read without it.",
        )

    async def delete(self, digest: bytes) -> None:
        """Deleting a blob that does not exist is not an error."""
        await self.delete_all([digest])

    async def delete_all(self, digests: Sequence[bytes]) -> None:
        bound = [self] if self._tenant is not None else [self.of(each) for each in await self._tenants()]
        keys = [each._key(digest) for each in bound for digest in digests]
        with _store_errors("deleted"):
            if keys:
                await obstore.delete_async(self._store, keys)

    async def has(self, digest: bytes) -> bool:
        for key in await self._places(digest):
            if await self._size(key) is not None:
                return True
        await self._require_marker()
        return False

    async def list(self) -> AsyncIterator[bytes]:
        """The digests that are stored, in any order; those that several tenants have, as often."""
        async for digest in self.list_older(math.inf):
            yield digest

    async def list_older(self, than: float) -> AsyncIterator[bytes]:
        for tenant in [self._tenant] if self._tenant is not None else await self._tenants():
            async for _, path in self._list(f"{self._root}/{_quoted(tenant)}/", than):
                start, _, name = path.partition("/")
                if len(name) == 64 and name.startswith(start):
                    yield bytes.fromhex(name)

    # Objects that have a name instead of a digest: the state of a hold.

    async def put_named(self, name: str, data: bytes) -> str:
        """Returns the key. An existing object is replaced: the caller writes the same content again."""
        await self._mark()
        key = f"{self._folder()}/{name}"
        await self._overwrite(key, data)
        return key

    async def get_key(self, key: str) -> bytes:
        """Raises BlobForbiddenError for a key of another tenant, before any request."""
        self._require_own(key)
        data = await self._read(key)
        if data is None:
            await self._require_marker()
            raise BlobMissingError(f"the object {key} is missing.", hint="Restore it from a backup.")
        return data

    async def replace_key(self, key: str, data: bytes) -> None:
        self._require_own(key)
        await self._overwrite(key, data)

    async def delete_keys(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._require_own(key)
        with _store_errors("deleted"):
            await obstore.delete_async(self._store, keys)

    async def list_named(self, folder: str, than: float) -> AsyncIterator[NamedObject]:
        for tenant in [self._tenant] if self._tenant is not None else await self._tenants():
            async for path, _ in self._list(f"{self._root}/{_quoted(tenant)}/{folder}/", than):
                yield NamedObject(tenant, path)

    def _require_own(self, key: str) -> None:
        if not key.startswith(f"{self._folder()}/"):
            raise BlobForbiddenError(
                "the key belongs to another tenant.", hint="Use a key that this tenant's checkpoints name."
            )

    async def _list(self, folder: str, than: float) -> AsyncIterator[tuple[str, str]]:
        """(path, name in the folder) of the objects that were written before `than`."""
        with _store_errors("listed"):
            async for batch in obstore.list(self._store, folder):  # pyright: ignore[reportUnknownMemberType]
                for found in batch:
                    if found["last_modified"].timestamp() < than:
                        yield found["path"], found["path"].removeprefix(folder)

    async def _put_new(self, key: str, data: bytes) -> None:
        if len(data) >= MULTIPART:
            # A multipart upload has no condition, so what is there is looked at first.
            if await self._size(key) != len(data):
                await self._overwrite(key, data)
            return
        for tries_left in reversed(range(_CREATE_TRIES)):
            try:
                if await self._create(key, data):
                    return
            except BlobForbiddenError:
                raise
            except StoreUnavailableError:
                # The library repeats no creation whose connection broke. Ours may be repeated: it is the same
                # content, and what the first one left is looked at.
                if not tries_left:
                    raise
            size = await self._size(key)
            if size == len(data):
                return
            if size is not None:
                _log.warning("object %s had %d bytes instead of %d and is replaced", key, size, len(data))
                await self._overwrite(key, data)
                return
            await asyncio.sleep(0.05)
        raise StoreUnavailableError(
            "a large value cannot be stored now: another writer of the same object does not finish.",
            hint="The run waits, and resumes when the blob store accepts it.",
        )

    async def _create(self, key: str, data: bytes) -> bool:
        """False: there is one already, or another writer is about to create it."""
        with _store_errors("stored"):
            try:
                await obstore.put_async(self._store, key, data, mode="create", use_multipart=False)
            except exceptions.AlreadyExistsError:
                return False
            return True

    async def _overwrite(self, key: str, data: bytes) -> None:
        with _store_errors("stored"):
            await obstore.put_async(
                self._store,
                key,
                data,
                use_multipart=len(data) >= MULTIPART,
                chunk_size=PART,
                max_concurrency=4,
            )

    async def _read(self, key: str) -> bytes | None:
        """In parts: the time limit is one of a request, and a large object takes longer than that."""
        try:
            with _store_errors("read"):
                first = await self._first_part(key)
                if first is None:
                    return b""
                size = first.meta["size"]
                data = bytes(await first.bytes_async())
                if size <= PART:
                    return data
                starts = range(PART, size, PART)
                lengths = [min(PART, size - start) for start in starts]
                more = await obstore.get_ranges_async(self._store, key, starts=list(starts), lengths=lengths)
                return b"".join([data, *map(bytes, more)])
        except FileNotFoundError:
            return None

    async def _first_part(self, key: str) -> obstore.GetResult | None:
        """None: the object is empty, so that it has no such range."""
        try:
            return await obstore.get_async(self._store, key, options={"range": (0, PART)})
        except exceptions.GenericError:
            if (await obstore.head_async(self._store, key))["size"] == 0:
                return None
            raise

    async def _size(self, key: str) -> int | None:
        try:
            with _store_errors("read"):
                return (await obstore.head_async(self._store, key))["size"]
        except FileNotFoundError:
            return None

    def _fits(self, digest: bytes, data: bytes) -> bool:
        # Encrypted bytes are authenticated when they are decrypted; their address is keyed.
        return is_encrypted(data) or self._address(data) == digest

    def _key(self, digest: bytes) -> str:
        name = digest.hex()
        return f"{self._folder()}/{name[:2]}/{name}"

    def _folder(self) -> str:
        return f"{self._root}/{_quoted(self._tenant if self._tenant is not None else DEFAULT_TENANT)}"

    async def _places(self, digest: bytes) -> list[str]:
        if self._tenant is not None:
            return [self._key(digest)]
        return [self.of(tenant)._key(digest) for tenant in await self._tenants()]

    async def _tenants(self) -> list[str]:
        with _store_errors("listed"):
            found = await obstore.list_with_delimiter_async(  # pyright: ignore[reportUnknownMemberType]
                self._store, f"{self._root}/"
            )
        return [unquote(prefix.rstrip("/").rpartition("/")[2]) for prefix in found["common_prefixes"]]

    async def _mark(self) -> None:
        if not self._place.marked:
            await self.take(self._place.owner or "")

    async def take(self, owner: str) -> None:
        """The marker says that this is the place of the blobs: without it a 404 proves nothing, because a
        wrong endpoint answers the same. It names the store that they belong to."""
        key = f"{self._root}/{MARKER}"
        with _store_errors("stored"):
            try:
                text = f"{_MARK}{owner}\n".encode()
                await obstore.put_async(self._store, key, text, mode="create", use_multipart=False)
            except exceptions.AlreadyExistsError:
                self._require_own_marker(await self._read(key) or b"", owner)
        self._place.marked = True

    def _require_own_marker(self, marker: bytes, owner: str) -> None:
        found = marker.decode(errors="replace").removeprefix(_MARK).strip()
        # A marker without a name is of a program that used the objects without a store.
        if owner and found and found != owner:
            raise BlobForbiddenError(
                f"the prefix {self._root} of the blob store belongs to another store ({found}).",
                hint="Give each store its own prefix: s3://BUCKET/PREFIX. Nothing was written; runs wait.",
            )

    async def _require_marker(self) -> None:
        if await self._size(f"{self._root}/{MARKER}") is None:
            raise StoreUnavailableError(
                "the blob store has no Holdfast marker: it may be another bucket, prefix or endpoint.",
                hint=_WRONG_ADDRESS,
            )


def _quoted(tenant: str) -> str:
    """As one part of a key: no slash, and no `.` or `..` that a server might resolve."""
    return quote(tenant, safe="").replace(".", "%2E") if tenant.strip(".") == "" else quote(tenant, safe="@")


@contextmanager
def _store_errors(what: str) -> Generator[None]:
    """Our errors for those of the library, whose texts may contain addresses."""
    try:
        yield
    except (FileNotFoundError, exceptions.AlreadyExistsError):
        raise
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError) as error:
        raise BlobForbiddenError(
            f"a large value cannot be {what}: the blob store refuses the credentials.",
            hint="Check the credentials and the permissions of the bucket. Runs wait and then resume.",
        ) from error
    except (exceptions.BaseError, OSError) as error:
        if "NoSuchBucket" in str(error):
            raise StoreUnavailableError(
                "the bucket of the blob store does not exist.", hint=_WRONG_ADDRESS
            ) from error
        raise StoreUnavailableError(
            f"a large value cannot be {what} now: the blob store did not answer ({type(error).__name__}).",
            hint="Check that it can be reached; the run waits, and resumes when it can.",
        ) from error
