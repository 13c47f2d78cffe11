"""Calls a model's endpoint: streaming, with retries, and without keys in messages."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, cast

import msgspec

from holdfast.agents.provider_errors import delay_in, is_quota_used_up, is_transient, message_in, retry_after
from holdfast.errors import InputError, ModelError, ModelRefusedError, ModelReplyError, ModelUnavailableError
from holdfast.holds.egress import Egress, address_of, target_of
from holdfast.model.user_code.boundary import call
from holdfast.types.backoff import Backoff
from holdfast.types.redaction import redactor
from holdfast.types.text import clean_text

if TYPE_CHECKING:
    import ssl

    import httpx2

    from holdfast.agents.messages import ModelReply
    from holdfast.agents.model import StreamCallback

Key = str | Callable[[], str | Awaitable[str]] | None
Sleep = Callable[[float], Awaitable[None]]
Events = AsyncIterator[dict[str, Any]]


class StreamedReply(Protocol):
    """Collects a streamed reply event by event."""

    def take(self, event: dict[str, Any]) -> None: ...

    def reply(self) -> ModelReply: ...


LONGEST_WAIT = 3600.0
"""Seconds of a Retry-After that an agent waits for; its run does, and no process has to."""
LIKE_A_KEY = 8


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """The number of attempts, and the wait between them: doubled each time, up to `longest`, times a number
    that is up to `jitter` less or more than 1, and never less than the endpoint's Retry-After. If that is
    more than `longest`, the call fails; an agent makes it again later."""

    attempts: int = 5
    first: float = 1.0
    longest: float = 60.0
    jitter: float = 0.5

    def wait(self, attempt: int, asked: float | None, seed: bytes) -> float:
        """Varied by the request, so that many refused requests are not repeated at the same time."""
        chance = sha256(b"%d" % attempt + seed).digest()[0] / 255
        backoff = Backoff(self.first, self.longest, spread=self.jitter)
        return max(asked or 0.0, backoff.pause(attempt, chance))


class EndpointOptions(TypedDict, total=False):
    """How an endpoint is called. `timeout`: seconds without a byte of an answer."""

    timeout: float
    retries: Retries | None
    sleep: Sleep
    egress: Egress | None


class StreamCutError(Exception):
    """The stream ended early. The partial answer is discarded."""


class Endpoint:
    """One address, and the key for it: the name of an environment variable, or a function that returns it.
    It is read at each call and never stored."""

    def __init__(
        self,
        base_url: str,
        *,
        key: Key,
        key_header: str = "authorization",
        headers: Mapping[str, str] | None = None,
        timeout: float = 120.0,
        connect: float = 10.0,
        retries: Retries | None = None,
        sleep: Sleep = asyncio.sleep,
        egress: Egress | None = None,
    ) -> None:
        """`headers`: sent with each request, beside that of the key. `egress`: the rules that its address
        must obey, checked with each request; then no proxy of the environment is used."""
        self.base_url = base_url.rstrip("/")
        self._egress = egress
        self._key = key
        self._key_header = key_header
        self._headers = dict(headers or {})
        self._timeout = timeout
        self._connect = connect
        self.retries = retries or Retries()
        self._sleep = sleep
        if not base_url.startswith(("http://", "https://")):
            raise InputError(f"{base_url!r} is not a URL of a model endpoint.", hint="Give https://host/v1.")

    def __repr__(self) -> str:
        return f"Endpoint({self.base_url!r})"

    async def key(self) -> str:
        """Raises ModelRefusedError if there is none: the endpoint would only refuse the request."""
        if self._key is None:
            return ""
        if isinstance(self._key, str):
            found = os.environ.get(self._key, "")
            if not found:
                raise ModelRefusedError(
                    f"the environment variable {self._key}, the key for {self.base_url}, is not set.",
                    hint=f"Set {self._key}, or pass key=None for an endpoint without a key.",
                )
            return found
        return await call(self._key)

    def _checked(self, key: str) -> str:
        """Checked here, because an error about an invalid header would show the key."""
        if not key.isascii() or not key.isprintable():
            raise ModelRefusedError(
                f"the key for {self.base_url} has invalid characters.",
                hint="Check for a line break or a quote at its ends.",
            )
        # From now on it is masked in every text that leaves this process.
        redactor.learn_for(None, key)
        return key

    async def stream(
        self, path: str, body: bytes, listen: Callable[[], StreamedReply], emit: StreamCallback
    ) -> ModelReply:
        """Post the request and read the streamed reply to its end. After a temporary failure it is sent
        again, with a new collector."""
        url = f"{self.base_url}{path}"
        key = self._checked((await self.key()).strip())
        paid = 0
        for attempt in range(1, self.retries.attempts + 1):
            try:
                # A new collector for each attempt: parts of a broken reply must not be mixed with the next.
                listener = listen()
                async with self._open(url, body, key) as events:
                    async for event in events:
                        listener.take(event)
                    return msgspec.structs.replace(listener.reply(), broken=paid)
            except EndpointBusyError as busy:
                paid += busy.may_be_paid
                wait = self.retries.wait(attempt, busy.after, body)
                await self._pause(attempt, busy, url, wait, emit, may_be_paid=paid > 0)
        raise AssertionError("the last attempt either answers or raises")

    async def _pause(
        self,
        attempt: int,
        busy: EndpointBusyError,
        url: str,
        wait: float,
        emit: StreamCallback,
        *,
        may_be_paid: bool,
    ) -> None:
        # A long wait belongs into the run, not into the memory of
        # a worker: the step fails, and the run is resumed later.
        longer = busy.after is not None and busy.after > self.retries.longest
        if attempt == self.retries.attempts or longer:
            asked = "" if busy.after is None else f" It asks to wait {busy.after:g} s."
            later = longer and busy.after is not None and busy.after <= LONGEST_WAIT
            tries = "" if attempt == 1 else f" in {attempt} attempts; the last one failed with"
            raise ModelUnavailableError(
                f"{url} did not answer{tries}: {busy.why}.{asked}",
                hint="Resume the run later; completed steps are kept.",
                attempts=attempt,
                may_be_paid=may_be_paid,
                **({"retry_after": busy.after} if later else {}),
            ) from None
        emit("retry", f"{busy.why}; retrying in {wait:g} s")
        await self._sleep(wait)

    @asynccontextmanager
    async def _open(self, url: str, body: bytes, key: str) -> AsyncGenerator[Events]:
        client_of, errors = _library()
        headers = {"content-type": "application/json", "accept": "text/event-stream", **self._headers}
        if key:
            headers[self._key_header] = f"Bearer {key}" if self._key_header == "authorization" else key
        try:
            at, route = (url, {}) if self._egress is None else await self._routed(url, self._egress)
            if route:
                headers["host"] = route.pop("host")
            async with (
                client_of(self._timeout, self._connect, self._egress is None) as client,
                client.stream("POST", at, content=body, headers=headers, extensions=route) as response,
            ):
                if response.status_code != 200:
                    raise await _refusal(response, url, key)
                async with aclosing(_events(response, url)) as events:
                    yield events
        # `from None`: a chained original error would show the key that `without_key` removes.
        except errors.InvalidURL as error:
            raise ModelRefusedError(f"{url} is not a valid URL: {without_key(error, key)}.") from None
        except errors.RequestError as error:
            text = without_key(error, key)
            unsent = isinstance(error, (errors.ConnectError, errors.ConnectTimeout, errors.PoolTimeout))
            raise EndpointBusyError(
                f"{type(error).__name__}: {text}" if text else type(error).__name__, may_be_paid=not unsent
            ) from None
        except StreamCutError as cut:
            raise EndpointBusyError(without_key(cut, key), may_be_paid=True) from None
        except ModelReplyError as error:
            shown = without_key(error.message, key)
            raise ModelReplyError(shown, hint=error.hint, may_be_paid=True) from None

    async def _routed(self, url: str, egress: Egress) -> tuple[str, dict[str, str]]:
        """The URL with the address that its host was resolved to: a second lookup could give an internal one.
        Raises EgressError."""
        target = target_of(url, egress)
        try:
            address = await address_of(target, egress)
        except OSError as error:
            raise EndpointBusyError(f"{target.host} has no address: {clean_text(error, 200)}") from None
        host = f"[{address}]" if ":" in address else address
        at = f"{'https' if target.tls else 'http'}://{host}:{target.port}{target.path}"
        return at, {"host": target.authority, "sni_hostname": target.host}


class EndpointBusyError(Exception):
    """Retry, after the endpoint's Retry-After if it gives one. `may_be_paid`: it has begun to answer, or may
    have; so the attempt may cost something."""

    def __init__(self, why: str, after: float | None = None, *, may_be_paid: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.after = after
        self.may_be_paid = may_be_paid


def require_library() -> None:
    """Raises ModelError if the HTTP library is not installed."""
    _library()


def _library() -> tuple[Callable[[float, float, bool], httpx2.AsyncClient], Any]:
    try:
        import httpx2
    except ImportError:
        raise ModelError(
            "model endpoints require the package httpx2, which is not installed.",
            hint="Install the extra `llm`: pip install 'holdfast-flow[llm]'.",
        ) from None

    def client(timeout: float, connect: float, proxies: bool) -> httpx2.AsyncClient:
        limits = httpx2.Timeout(timeout, connect=connect)
        return httpx2.AsyncClient(timeout=limits, verify=_trusted(), trust_env=proxies)

    return client, httpx2


@cache
def _trusted() -> ssl.SSLContext:
    """Created once: reading the certificates takes longer than a short answer."""
    import httpx2

    return httpx2.create_ssl_context()


async def _events(response: httpx2.Response, url: str) -> AsyncGenerator[dict[str, Any]]:
    """The data of each event, as JSON; `[DONE]` ends them."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "text/event-stream":
        raise ModelReplyError(
            f"{url} answered with {kind or 'no content type'} instead of a stream of events.",
            hint="Check the address: the endpoint must support this provider's protocol with streaming.",
        )
    _, library = _library()
    async for event in library.EventSource(response):
        if not event.data or event.data == "[DONE]":
            continue
        try:
            found: Any = msgspec.json.decode(event.data)
        except ValueError as error:
            raise ModelReplyError(
                f"{url} sent an event that is not JSON ({error}): {clean_text(event.data, 80)}"
            ) from None
        if not isinstance(found, dict):
            raise ModelReplyError(f"{url} sent an event that is not an object: {clean_text(found, 80)}")
        yield cast("dict[str, Any]", found)


async def _refusal(response: httpx2.Response, url: str, key: str) -> Exception:
    body = (await response.aread()).decode(errors="replace")
    text = without_key(message_in(body), key)
    why = f"HTTP {response.status_code}" + (f": {text}" if text else "")
    if is_transient(response.status_code) and not is_quota_used_up(body):
        after = retry_after(response.headers)
        return EndpointBusyError(why, after if after is not None else delay_in(body))
    hint = {
        401: "Check the key.",
        403: "Check the key and its permissions.",
        404: "Check the address and the model's name.",
        429: "The quota of this key is used up: a retry would be refused again.",
    }.get(response.status_code, "Correct the request: a retry would be refused again.")
    return ModelRefusedError(f"{url} refused the request with {why}.", hint=hint, http=response.status_code)


def without_key(text: object, key: str) -> str:
    """Removes the key from a text, also if the endpoint repeats it or it was cut."""
    shown = str(text)
    if not key:
        return shown
    shown = shown.replace(key, "***")
    # Endpoints may repeat a part of the key; a short key would match ordinary words.
    return re.sub(re.escape(key[:LIKE_A_KEY]) + r"\S*", "***", shown) if len(key) > LIKE_A_KEY else shown
