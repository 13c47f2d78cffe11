"""By what runs are found in the cluster: search attributes, registered once by `holdfast engine setup`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.common import SearchAttributeKey, SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from holdfast.errors import EngineError

if TYPE_CHECKING:
    from temporalio.client import Client

    from holdfast.drivers.temporal.address import EngineAddress

TENANT: Final = SearchAttributeKey.for_keyword("HoldfastTenant")
FLOW: Final = SearchAttributeKey.for_keyword("HoldfastFlow")
VERSION: Final = SearchAttributeKey.for_keyword("HoldfastVersion")
STATUS: Final = SearchAttributeKey.for_keyword("HoldfastStatus")
_ALL: Final = (TENANT, FLOW, VERSION, STATUS)
# Clusters that are operated by others may not show what is registered.
_HIDDEN: Final = (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED)


def attributes_of(tenant: str, flow: str, version: str, status: str) -> TypedSearchAttributes:
    """Of a run that starts."""
    values = ((TENANT, tenant), (FLOW, flow), (VERSION, version), (STATUS, status))
    return TypedSearchAttributes([SearchAttributePair(key, value) for key, value in values])


async def register_attributes(client: Client, address: EngineAddress) -> list[str]:
    """Those that were missing. Raises EngineError if the cluster refuses it."""
    try:
        missing = await _missing(client, address)
        if missing:
            kinds = dict.fromkeys(missing, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD)
            await client.operator_service.add_search_attributes(
                AddSearchAttributesRequest(namespace=address.namespace, search_attributes=kinds)
            )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise EngineError(
                f"the cluster at {address.target} has no namespace {address.namespace!r}.",
                hint=f"Create it: temporal operator namespace create -n {address.namespace}",
            ) from error
        raise EngineError(
            f"search attributes cannot be registered at {address.target}: {error.message[:300]}",
            hint=f"Register them as the cluster's operator does it, as keywords: {', '.join(_names())}.",
        ) from error
    return missing


async def require_attributes(client: Client, address: EngineAddress) -> None:
    """Raises EngineError if one is missing, RPCError if the cluster does not answer."""
    try:
        missing = await _missing(client, address)
    except RPCError as error:
        if error.status not in _HIDDEN:
            raise
        return
    if missing:
        raise EngineError(
            f"the namespace {address.namespace!r} of {address.target} has no search attribute "
            f"{', '.join(missing)}.",
            hint=f"Register it: holdfast engine setup --engine {address.name}",
        )


async def _missing(client: Client, address: EngineAddress) -> list[str]:
    found = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=address.namespace)
    )
    return [name for name in _names() if name not in found.custom_attributes]


def _names() -> list[str]:
    return [key.name for key in _ALL]
