"""What goes through the cluster: compressed, encrypted where the store is, and large payloads in the store's
blobs.

The cluster sees the ids of runs, the names of tenants, flows and nodes, and nothing that flows compute. Where
the store is encrypted, what comes from the cluster must be, too: otherwise who may write there, and has no
key, could decide what a run continues with.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Self, cast

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    DefaultPayloadConverter,
    EncodingPayloadConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
)

from holdfast.checkpoint import Blob
from holdfast.checkpoint.compress import WORTH_TRYING
from holdfast.checkpoint.envelope import pack_envelope, unpack_envelope
from holdfast.checkpoint.size_limit import SPILL_OVER
from holdfast.drivers.temporal.unavailable import while_unavailable
from holdfast.errors import BlobMissingError, EngineError
from holdfast.telemetry import log
from holdfast.types.ciphertext import is_encrypted
from holdfast.types.ids import RunId
from holdfast.types.value import BlobRef

if TYPE_CHECKING:
    from holdfast.runs.blobs import BlobStore

_ENCODING: Final = "encoding"
INLINE: Final = b"binary/holdfast"
IN_BLOB: Final = b"binary/holdfast-blob"
REFUSED: Final = b"binary/holdfast-refused"
"""In place of a payload that should have been encrypted. Only where it is read it is an error: a signal says
nothing that counts, so a forged one is dropped and stops no run."""


class RunPayloadCodec(PayloadCodec, WithSerializationContext):
    """Of the payloads of one run; without a run, of those of none. `plain`: those that are not encrypted are
    taken although the store is."""

    def __init__(self, blobs: BlobStore, run: str = "", *, plain: bool = False) -> None:
        self._blobs = blobs
        self._run = RunId(run)
        self._plain = plain

    def with_context(self, context: SerializationContext) -> RunPayloadCodec:
        return RunPayloadCodec(self._blobs, getattr(context, "workflow_id", None) or "", plain=self._plain)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [await self._encode(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [await self._decode(payload) for payload in payloads]

    async def _encode(self, payload: Payload) -> Payload:
        if self._blobs.encrypted is None and len(payload.data) <= WORTH_TRYING:
            return payload
        data, encoding = pack_envelope(payload.SerializeToString()), INLINE
        if len(data) > SPILL_OVER:
            blob = Blob(BlobRef(sha256(data).digest(), len(data)), data)
            # Blobs go first: a history that names a missing one cannot be read.
            await while_unavailable(lambda: self._blobs.keep_for(self._run, blob))
            data, encoding = blob.ref.digest, IN_BLOB
        return Payload(metadata={_ENCODING: encoding}, data=await self._encrypted(data))

    async def _encrypted(self, data: bytes) -> bytes:
        """A digest, too: of a short content it could be guessed."""
        store = self._blobs.encrypted
        if store is None:
            return data
        tenant = await while_unavailable(lambda: store.tenant_of(self._run))
        return store.cipher.encrypt_bytes(data, tenant, "payload", self._run)

    async def _decode(self, payload: Payload) -> Payload:
        encoding, data = payload.metadata.get(_ENCODING), payload.data
        is_ours = encoding in (INLINE, IN_BLOB)
        if self._blobs.encrypted is not None and not self._plain and not (is_ours and is_encrypted(data)):
            log.error("a payload of run %s is refused: it is not encrypted", self._run)
            return Payload(metadata={_ENCODING: REFUSED}, data=self._run.encode())
        if not is_ours:
            return payload
        if self._blobs.encrypted is not None:
            data = self._blobs.encrypted.cipher.decrypt_bytes(data, "payload", self._run)
        if encoding == IN_BLOB:
            data = await while_unavailable(lambda: self._content(data))
        return Payload.FromString(bytes(unpack_envelope(data)[1]))

    async def _content(self, digest: bytes) -> bytes:
        found = await (await self._blobs.of_run(self._run)).content(digest)
        if found is None or sha256(found).digest() != digest:
            raise BlobMissingError(
                f"run {self._run}: the blob {digest.hex()} that its history names is "
                f"{'missing' if found is None else 'damaged'}.",
                hint="Restore the blob folder or the database from a backup; the run waits meanwhile.",
                digest=digest.hex(),
            )
        return found


class _Refused(EncodingPayloadConverter):
    """Raises EngineError where a payload is read that the codec has refused."""

    @property
    def encoding(self) -> str:
        return REFUSED.decode()

    def to_payload(self, value: Any) -> None:
        return None

    def from_payload(self, payload: Payload, type_hint: type[Any] | None = None) -> Any:
        run = payload.data.decode()
        raise EngineError(
            f"run {run}: a payload from the cluster is not encrypted, and the store is.",
            hint="If the run began before the store was encrypted, let its workers take it: "
            "?unencrypted=true in the address of the engine, until such runs have ended. Otherwise it was "
            "written without a key: see who may write to the namespace, then `holdfast rewind`.",
            run=run,
        )


_CONVERTERS: Final = (*DefaultPayloadConverter().converters.values(), _Refused())


class RunPayloadConverter(CompositePayloadConverter):
    def __init__(self) -> None:
        super().__init__(*_CONVERTERS)


class RunDataConverter(DataConverter):
    """Only its codec knows the run: the SDK would make everything anew for each activity and task."""

    def with_context(self, context: SerializationContext) -> Self:
        made = copy(self)
        codec = cast("RunPayloadCodec", self.payload_codec).with_context(context)
        # Frozen, as the SDK's own.
        object.__setattr__(made, "payload_codec", codec)
        return made


def converter_for(blobs: BlobStore, *, plain: bool = False) -> DataConverter:
    """Texts of failures are payloads like any other."""
    return RunDataConverter(
        payload_converter_class=RunPayloadConverter,
        payload_codec=RunPayloadCodec(blobs, plain=plain),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
