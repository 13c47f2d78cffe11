"""Where secrets may stand in a document (CV-23): by name only, in headers and query values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from holdfast.frontends.document.available_names import DocumentSite
from holdfast.frontends.document.document import Json, Variable
from holdfast.frontends.document.node_type import DocumentNode, NodeReport
from holdfast.frontends.document.problem import Path, ProblemReport
from holdfast.model.checks.names import near_name
from holdfast.types.redaction import redactor

SECRET: Final = "secret"
_PLACES: Final = ("headers", "query")
_KEYS: Final = frozenset({SECRET, "prefix"})
_NAMES: Final = (
    r"(?:proxy-)?authorization|cookie|(?:[\w-]*[-_])?(?:api[-_]?key|(?:access|auth|refresh|bearer|session)[-_]?token"
    r"|client[-_]?secret|(?:private|secret|signing)[-_]?key|password|passwd|passphrase)"
)
_CREDENTIAL: Final = re.compile(f"^(?:{_NAMES})$", re.IGNORECASE)
_OPERATOR: Final = "remove it: the operator's file of connections has addresses and credentials"
# A body that is text: JSON, or the fields of a form. A value with a placeholder is not written down.
_PAIR: Final = re.compile(
    rf"""(?:["'](?P<name>{_NAMES})["']\s*:\s*["'](?!\{{\{{)[^"']|(?:^|&)(?P<field>{_NAMES})=(?!\{{\{{)[^&\s])""",
    re.IGNORECASE,
)
# Forms of credentials that are nothing else.
_KNOWN: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_\w{50}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10}|\bsk-[A-Za-z0-9_-]{32}|\bglpat-[\w-]{20}"
    r"|\bBearer [A-Za-z0-9._~+/-]{20}|\beyJ[\w-]{10,200}\.eyJ[\w-]{10,200}\."
)


def is_secret(value: Any) -> bool:
    """Whether it is `{secret: NAME}`, with an optional `prefix` that is sent before it (`"Bearer "`)."""
    if not isinstance(value, dict):
        return False
    given = cast("Json", value)
    return SECRET in given and given.keys() <= _KEYS and all(isinstance(each, str) for each in given.values())


def check_secrets(node: DocumentNode, found: NodeReport, site: DocumentSite) -> None:
    """For nodes of every type."""
    for path, what in _literals(node.given, ()):
        fix = "send {secret: NAME} as a header or query value, or use a connection that has it"
        if len(path) == 2 and path[0] in _PLACES:
            fix = f"write {path[1]}: {{secret: NAME}}"
        found.error(path, "secret-literal", _written_down(what), fix)
    for place in _PLACES:
        values: Any = node.given.get(place)
        for name, each in cast("Json", values).items() if isinstance(values, dict) else ():
            if isinstance(each, dict) and SECRET in each and not is_secret(cast("Any", each)):
                message = "a secret has the keys 'secret' and 'prefix', both text, and no other"
                found.error((place, name), "secret-place", message, f"write {name}: {{secret: NAME}}")
    for path, name in _secrets(node.given, ()):
        if len(path) != 2 or path[0] not in _PLACES or path[0] not in node.type.config.__struct_fields__:
            message = "a secret is allowed only in headers and query values"
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


def _literals(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Where a credential is written down, and which. A value from an earlier node, such as a token that a
    login gave, is none."""
    if isinstance(value, str):
        name = str(path[-1]) if path else ""
        if _CREDENTIAL.search(name) and value and "{{" not in value:
            yield path, f"the value of {name}"
        elif _KNOWN.search(value):
            yield path, "a credential"
        elif redactor.finds_strong(value):
            yield path, "a secret of this tenant"
        elif path[:1] == ("body",) and (written := _PAIR.search(value)):
            yield path, f"the value of {written['name'] or written['field']}"
    elif is_secret(value):
        return
    elif isinstance(value, dict):
        for key, each in cast("Json", value).items():
            yield from _literals(each, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _literals(each, (*path, index))


def check_default(name: str, declared: Variable, report: ProblemReport) -> None:
    """Of a variable."""
    default = declared.default
    misplaced = any(True for _ in _secrets(default, ()))
    if misplaced:
        fix = "send {secret: NAME} as a header or query value in the node that needs it"
        message = "a secret is allowed only in headers and query values"
        report.error(("variables", name, "default"), "secret-place", message, fix)
    elif declared.secret and default not in (msgspec.UNSET, None, ""):
        fix = "remove the default and pass it as input, or send {secret: NAME} in the node that needs it"
        what = f"the default of the secret variable {name}"
        report.error(("variables", name, "default"), "secret-literal", _written_down(what), fix)
        return
    for _, what in _literals({name: default}, ()):
        fix = "pass it as input, or send {secret: NAME} in the node that needs it"
        report.error(("variables", name, "default"), "secret-literal", _written_down(what), fix)


def check_connections(given: Any, report: ProblemReport) -> None:
    """Of `config.connections`: names and kinds. Addresses and credentials are the operator's."""
    for path, what in _literals(given, ()):
        report.error(("config", "connections", *path), "secret-literal", _written_down(what), _OPERATOR)
    for path, text in _texts(given, ()):
        for what in address_faults(text):
            report.error(("config", "connections", *path), "secret-literal", what, _OPERATOR)


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, each in cast("Json", value).items():
            yield from _texts(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _texts(each, (*path, index))


def _written_down(what: str) -> str:
    return f"{what} is written down; it would be stored with every version of the flow"


def check_address(field: str, text: str, found: NodeReport) -> None:
    """A user name or password in a URL, and credentials in its query."""
    for what in address_faults(text):
        fix = "remove it, and send {secret: NAME} as a header or query value"
        found.error((field,), "secret-literal", what, fix)


def address_faults(text: str) -> Iterator[str]:
    try:
        parts = urlsplit(text)
    except ValueError:
        return  # reported where the address is checked
    if "@" in parts.netloc:
        yield "the address has a user name or a password"
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if _CREDENTIAL.search(name) and value and "{{" not in value:
            yield f"the value of {name} is written down in the address"
