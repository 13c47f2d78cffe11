"""The code of `http` nodes: renders the request, sends it under the egress rules, binds the response.

Secrets are read here and go into the request only. A server may send one back: it is masked before anything
of the response is recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from ipaddress import ip_address
from math import isinf
from typing import Any, Final, cast
from urllib.parse import quote, unquote, urlencode

import msgspec

from holdfast.documents.connections import (
    Connections,
    HttpConnection,
    internal_hosts,
    is_reference,
    secret_text,
)
from holdfast.documents.http_exchange import HttpRequest, HttpResponse, exchange
from holdfast.errors import (
    ConnectionUnknownError,
    EgressError,
    ExpressionError,
    HttpResponseError,
    SettingsError,
)
from holdfast.frontends.document.node_type import DocumentNode
from holdfast.frontends.document.node_types.http import READS, HttpConfig, HttpType
from holdfast.frontends.document.render import Render, compile_value, resolver_for
from holdfast.frontends.document.secret_rules import SECRET, is_secret
from holdfast.holds.egress import Egress, is_metadata, is_outside, target_of
from holdfast.model.expressions import Resolve
from holdfast.model.program import NodeHandler
from holdfast.model.template import Placeholder, Template, as_text, compile_template
from holdfast.types.duration import parse_duration
from holdfast.types.outcome import FAIL, RETRY, Outcome
from holdfast.types.own_threads import in_thread
from holdfast.types.secret_forms import echo_forms, mask_values
from holdfast.types.text import clean_text

AGAIN: Final = frozenset({408, 409, 425, 429, 503})
"""The server says that it did not act, or is still at it."""
_HIDDEN: Final = frozenset({"set-cookie", "set-cookie2", "authorization", "proxy-authenticate"})
_SHOWN: Final = 200
MAX_VALUES: Final = 250_000
"""Of a response that is JSON, at any depth."""
MAX_DEPTH: Final = 64
_READ_AT_ONCE: Final = 64_000
"""Bytes of a response. A longer one is read in a thread: everything else on this server would wait for it."""


def http_handler(node: DocumentNode, connections: Connections) -> NodeHandler:
    send = HttpSender(node, connections)
    return NodeHandler(fn=send.run, is_async=True, takes=("state", "ctx"), code="canvas-http/1", waits=False)


def refuses_url(connections: Connections) -> Callable[[str], str]:
    """For checks of documents: why an address is not allowed; empty if it is."""

    def why(url: str) -> str:
        egress = Egress(allow=connections.settings.allow)
        try:
            target = target_of(url, egress)
            address = ip_address(target.host)
        except EgressError as error:
            return error.message
        except ValueError:
            return ""  # a name: it is resolved when the request is sent
        allowed = egress.allows(target.host, target.port) or is_outside(address)
        return "" if allowed and not is_metadata(address) else f"{address} is not a public address"

    return why


class HttpSender:
    """`secrets` of one request are collected while it is put together, to mask them in its response."""

    def __init__(self, node: DocumentNode, connections: Connections) -> None:
        config: HttpConfig = node.config
        self.config, self.bind, self.connections = config, node.bind, connections
        self.address = _address(config.url if config.url is not None else config.path or "")
        self.query = {name: _value(each) for name, each in config.query.items()}
        self.headers = {name: _value(each) for name, each in config.headers.items()}
        self.body = None if config.body is msgspec.UNSET else compile_value(config.body)
        self.expected = frozenset(HttpType.expected(config))

    async def run(self, state: Mapping[str, Any], ctx: Any) -> Any:
        resolve, secrets = resolver_for(state, ctx), self._hidden(state)
        try:
            request, egress = self._request(resolve, ctx, secrets)
            response = await exchange(request, egress)
        except EgressError as error:
            return Outcome(FAIL, reason=f"egress_refused: {_masked(error.message, secrets)}", final=True)
        except ExpressionError as error:
            # Of a placeholder: nothing was sent, and nothing will change.
            return Outcome(FAIL, reason=error.message, final=True)
        except SettingsError as error:
            raise ConnectionUnknownError(error.message, hint=error.hint) from error
        if len(response.body) <= _READ_AT_ONCE:
            return self._result(response, secrets)
        return await in_thread(self._result, response, secrets)

    # ------------------------------------------------------------------ request
    def _hidden(self, state: Mapping[str, Any]) -> list[str]:
        """What is masked in the response, beside the secrets of the request."""
        return []

    def _request(self, resolve: Resolve, ctx: Any, secrets: list[str]) -> tuple[HttpRequest, Egress]:
        config, settings = self.config, self.connections.settings
        url, allow, base = self.address(resolve), settings.allow, None
        if config.connection is not None:
            base = self.connections.http(ctx.tenant, config.connection)
            url, allow = _joined(base, url), (*allow, *internal_hosts(base))
        egress = Egress(allow=allow, timeout=self._timeout(settings.timeout), max_reply=config.max_bytes)
        host = target_of(url, egress).host
        secret = _Secrets(self.connections, ctx.tenant, host, secrets)
        query = [*_fixed(base.query if base else {}, secret), *_pairs(self.query, resolve, secret)]
        headers = _headers(
            _pairs(self.headers, resolve, secret), _fixed(base.headers if base else {}, secret)
        )
        body = self._body(resolve, headers)
        _default(headers, "Accept", "application/json, */*;q=0.5")
        headers["Accept-Encoding"] = "identity"
        if config.method not in READS:
            _default(headers, "Idempotency-Key", ctx.idempotency_key)
        request = HttpRequest(
            method=config.method,
            url=_with_query(url, query),
            headers=_clean(headers),
            body=body,
            max_bytes=config.max_bytes,
        )
        return request, egress

    def _timeout(self, otherwise: float) -> float:
        """The node's own limit, which the driver holds too."""
        if self.config.timeout is None:
            return otherwise
        return parse_duration(self.config.timeout) / timedelta(seconds=1)

    def _body(self, resolve: Resolve, headers: dict[str, str]) -> bytes:
        if self.body is None:
            return b""
        value = self.body(resolve)
        if isinstance(value, str):
            _default(headers, "Content-Type", "text/plain; charset=utf-8")
            return value.encode()
        _default(headers, "Content-Type", "application/json")
        return msgspec.json.encode(value)

    # ------------------------------------------------------------------ response
    def _result(self, response: HttpResponse, secrets: list[str]) -> Any:
        status = response.status
        if not self.expected & {str(status), f"{status // 100}xx"}:
            return self._unexpected(response, secrets)
        if self.bind is None:
            return None
        headers = {name: value for name, value in response.headers.items() if name not in _HIDDEN}
        return {
            self.bind: _masked(_content(response), secrets),
            f"{self.bind}_response": {"status": status, "headers": _masked(headers, secrets)},
        }

    def _unexpected(self, response: HttpResponse, secrets: list[str]) -> Outcome:
        status = response.status
        # Masked before it is cut: a part of a secret would not be found.
        text = clean_text(_masked(response.body.decode("utf-8", "replace"), secrets), _SHOWN)
        reason = f"HTTP {status}: {text}" if text else f"HTTP {status}"
        if status in AGAIN:
            return Outcome(RETRY, reason=reason)
        if status >= 500:
            # Of a request with an effect nobody knows whether it was carried out.
            raise HttpResponseError(f"{reason}.", hint="See the server's log.")
        if 300 <= status < 400:
            reason = f"HTTP {status}: redirects are not followed"
        return Outcome(FAIL, reason=reason, final=True)


class _Secrets:
    def __init__(self, connections: Connections, tenant: str, host: str, used: list[str]) -> None:
        self._connections, self._tenant, self._host, self._used = connections, tenant, host, used

    def named(self, given: Mapping[str, str]) -> str:
        return given.get("prefix", "") + self._noted(
            self._connections.secret(self._tenant, given[SECRET], self._host)
        )

    def referenced(self, text: str, what: str) -> str:
        return self._noted(secret_text(text, what, self._tenant))

    def _noted(self, text: str) -> str:
        self._used.append(text)
        return text


Value = Render | Mapping[str, str]


def _value(given: Any) -> Value:
    """A secret stays a name until the request is made."""
    return cast("Mapping[str, str]", given) if is_secret(given) else compile_value(given)


def _pairs(values: Mapping[str, Value], resolve: Resolve, secret: _Secrets) -> list[tuple[str, str]]:
    """Null is left out; a list gives one pair for each of its values."""
    found: list[tuple[str, str]] = []
    for name, value in values.items():
        if not callable(value):
            found.append((name, secret.named(value)))
            continue
        shown = value(resolve)
        many = cast("list[Any]", shown) if isinstance(shown, (list, tuple)) else [shown]
        found += [(name, as_text(each)) for each in many if each is not None]
    return found


def _fixed(values: Mapping[str, str] | None, secret: _Secrets) -> list[tuple[str, str]]:
    """Of a connection."""
    return [
        (name, secret.referenced(value, f"{name} of the connection") if is_reference(value) else value)
        for name, value in (values or {}).items()
    ]


def _address(text: str) -> Callable[[Resolve], str]:
    """Placeholders inside of an address are encoded, so that a value stays one part of its path or query. An
    address that is one placeholder is taken as it is."""
    template = compile_template(text)
    parts = [
        each if isinstance(each, str) else Template(f"{{{{{'.'.join(each.path)}}}}}", (each,))
        for each in template.parts
    ]
    whole = len(parts) == 1 and isinstance(template.parts[0], Placeholder)

    def render(resolve: Resolve) -> str:
        shown = ""
        for part in parts:
            if isinstance(part, str):
                shown += part
            else:
                value = as_text(part.render(resolve, strict=True).value)
                shown += value if whole else quote(value, safe="")
        return _without_dots(shown)

    return render


def _without_dots(url: str) -> str:
    """Servers resolve `..`: a value of that text would reach another resource."""
    path, decoded = "", url.partition("?")[0].partition("#")[0]
    while path != decoded:
        # To the end: servers and proxies decode `%2f`, some of them twice.
        path, decoded = decoded, unquote(decoded)
    parts = path.replace("\\", "/").split("/")
    # Some servers drop what follows a semicolon, and characters that are not printed.
    if any(re.sub(r"[\x00-\x20\x7f]", "", part.partition(";")[0]) in (".", "..") for part in parts):
        raise EgressError("the path of the address has a part that is . or ..", hint="Check its values.")
    return url


def _joined(base: HttpConnection, path: str) -> str:
    if not path.startswith("/"):
        raise EgressError(
            f"the path {clean_text(path, 60)!r} does not begin with /.", hint="Check its values."
        )
    return base.base_url.rstrip("/") + path


def _with_query(url: str, query: list[tuple[str, str]]) -> str:
    url = url.partition("#")[0]
    if not query:
        return url
    return f"{url}{'&' if '?' in url else '?'}{urlencode(query, quote_via=quote)}"


def _headers(own: list[tuple[str, str]], fixed: list[tuple[str, str]]) -> dict[str, str]:
    """Those of the connection count: a document must not replace the credentials of the operator."""
    found: dict[str, str] = {}
    taken = {name.lower() for name, _ in fixed}
    for name, value in own:
        if name.lower() not in taken:
            found[name] = f"{found[name]}, {value}" if name in found else value
    return {**found, **dict(fixed)}


def _default(headers: dict[str, str], name: str, value: str) -> None:
    if not any(each.lower() == name.lower() for each in headers):
        headers[name] = value


def _clean(headers: dict[str, str]) -> dict[str, str]:
    """Raises EgressError for a value that would end its header."""
    for name, value in headers.items():
        if not value.replace("\t", " ").isprintable():
            raise EgressError(f"the header {name} has a character that headers cannot have.")
        try:
            value.encode("latin-1")
        except UnicodeEncodeError:
            raise EgressError(f"the header {name} has a character that headers cannot have.") from None
    return headers


def _content(response: HttpResponse) -> Any:
    """JSON as data, else text. Raises HttpResponseError for bytes that are neither."""
    if not response.body:
        return None
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        text = response.body.decode("utf-8")
        if kind.endswith(("/json", "+json")):
            found = json.loads(text, parse_constant=_refuse, parse_float=_finite)
            _require_few_values(found)
            return found
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        form = "JSON" if "json" in kind else "text"
        why = _TOO_DEEP if isinstance(error, RecursionError) else clean_text(error, 120)
        raise HttpResponseError(f"the response cannot be read as {form}: {why}.") from None
    return text


_TOO_DEEP: Final = f"it is nested more than {MAX_DEPTH} levels deep"


def _require_few_values(value: Any) -> None:
    """Raises ValueError. Level by level: what is over the limit is not walked through."""
    count, level = 0, [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, (dict, list)):
                held = cast("dict[str, Any] | list[Any]", each)
                count += len(held)
                if count > MAX_VALUES:
                    raise ValueError(f"it has more than {MAX_VALUES:,} values")
                inner += held.values() if isinstance(held, dict) else held
        if not inner:
            return
        level = inner
    raise ValueError(_TOO_DEEP)


def _finite(text: str) -> float:
    found = float(text)
    if isinf(found):
        raise ValueError(f"the number {text[:40]} is too large")
    return found


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _masked(value: Any, secrets: list[str]) -> Any:
    return mask_values(value, {form for secret in secrets for form in echo_forms(secret)})
