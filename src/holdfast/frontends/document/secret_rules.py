"""Where secrets may stand in a document (CV-23): by name only, in headers and query values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

from holdfast.frontends.document.document import Json
from holdfast.frontends.document.node_type import DocumentNode, NodeReport
from holdfast.frontends.document.problem import Path
from holdfast.frontends.document.site import DocumentSite
from holdfast.model.checks.names import near_name

SECRET: Final = "secret"
_PLACES: Final = ("headers", "query")
_KEYS: Final = frozenset({SECRET, "prefix"})
_CREDENTIAL: Final = re.compile(
    r"^(proxy-)?authorization$|^cookie$|(^|[-_])api[-_]?key$|(^|[-_])(access|auth)[-_]token$|(^|[-_])client[-_]secret$",
    re.IGNORECASE,
)


def is_secret(value: Any) -> bool:
    """Whether it is `{secret: NAME}`, with an optional `prefix` that is sent before it (`"Bearer "`)."""
    if not isinstance(value, dict):
        return False
    given = cast("Json", value)
    return SECRET in given and given.keys() <= _KEYS and all(isinstance(each, str) for each in given.values())


def check_secrets(node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
    """For nodes of every type."""
    for path, name in _secrets(node.given, ()):
        if path[0] not in _PLACES or len(path) != 2 or path[0] not in node.type.config.__struct_fields__:
            message = "a secret stands only in headers and query values"
            found.error(
                path, "secret-place", message, "send it as a header, or use another key than 'secret'"
            )
        elif site.secrets is not None and name not in site.secrets:
            fix = near_name(name, site.secrets) or "add it to the operator's file of connections"
            found.error(path, "secret-unknown", f"there is no secret {name!r}", fix)


def _secrets(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if is_secret(value):
        yield path, value[SECRET]
    elif isinstance(value, dict):
        for key, each in cast("Json", value).items():
            yield from _secrets(each, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _secrets(each, (*path, index))


def check_literals(place: str, values: Mapping[str, Any], found: NodeReport) -> None:
    """Credentials that are written down. A value from an earlier node, such as a token that a login gave,
    is none."""
    for name, value in values.items():
        if _CREDENTIAL.search(name) and isinstance(value, str) and "{{" not in value:
            message = (
                f"the value of {name} is written down; it would be stored with every version of the flow"
            )
            found.error((place, name), "secret-literal", message, f"write {name}: {{secret: NAME}}")


def check_address(field: str, text: str, found: NodeReport) -> None:
    """A user name or password in a URL, and credentials in its query."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return  # reported where the address is checked
    if "@" in parts.netloc:
        message = "the address has a user name or a password"
        found.error((field,), "secret-literal", message, "remove it, and send {secret: NAME} as a header")
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if _CREDENTIAL.search(name) and value and "{{" not in value:
            message = f"the value of {name} is written down in the address"
            found.error((field,), "secret-literal", message, f"write query: {{{name}: {{secret: NAME}}}}")
