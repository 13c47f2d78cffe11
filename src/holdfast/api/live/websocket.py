"""WebSockets: the same events as the stream, for several runs over one socket, and answers on the way back.

    -> {"type": "auth", "token": "..."}                        first, if no header or cookie has a credential
    -> {"type": "subscribe", "id": 1, "run": "...", "after": 0}
    <- {"type": "ack", "id": 1, "result": {...}}
    <- {"type": "event", "run": "...", "id": 12, "event": "hold.opened", "data": {...}}
    -> {"type": "subscribe", "id": 3, "topic": "holds"}        changes of the holds that the caller may see
    <- {"type": "event", "topic": "holds", "id": 907, "event": "hold.resolved", "data": {...}}
    -> {"type": "subscribe", "id": 4, "topic": "runs"}         the tenant's runs that change, as they are then
    <- {"type": "event", "topic": "runs", "id": 4711, "event": "run.changed", "data": {...}}
    -> {"type": "answer", "id": 2, "run": "...", "content": "approve"}
    <- {"type": "error", "id": 2, "problem": {...}}            what HTTP would have answered
    <- {"type": "end", "run": "...", "after": 31}              the run has ended: nothing more will come

Requests are performed by the HTTP routes, with the same rights and the same errors.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from holdfast.api import problems
from holdfast.api.aliases import alias_in
from holdfast.api.auth.principal import Principal
from holdfast.api.auth.rights import Right
from holdfast.api.live.credential import is_still_valid
from holdfast.api.live.follower import (
    StreamTimeouts,
    feed_end,
    follow_holds,
    follow_run,
    follow_runs,
    known_position,
)
from holdfast.api.live.hub import Hub, hub_of
from holdfast.api.live.messages import (
    SocketCommand,
    SocketMessage,
    SocketSubscription,
    read_message,
    topic_position,
)
from holdfast.api.live.sse import require_known_event
from holdfast.api.problems import HttpError, no_right
from holdfast.api.rate_limit import TokenBuckets
from holdfast.api.request_id import request_id
from holdfast.api.routing import SIGN_IN, ApiCall, ApiReply, NoParameters, Route, read_query, require_single
from holdfast.api.schemas.events import EncodedEvent, EventNames, HoldEventWire
from holdfast.errors import HoldfastError
from holdfast.runs.run_view import RunWire
from holdfast.types.ids import new_id
from holdfast.types.redaction import enter_tenant, redactor
from holdfast.types.status import ENDED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence

    from starlette.types import Scope

    from holdfast.api.app import RequestAuthenticator
    from holdfast.api.settings import ApiSettings
    from holdfast.app.holdfast import Holdfast

    Admit = Callable[[Request], Awaitable[Principal | None]]

PATHS: Final = ("/v1/runs/{run}/stream/ws", "/v1/stream/ws")
PACE: Final = 20.0
"""Messages per second that one socket may send."""
MOST_RUNS: Final = 100
FIRST: Final = 10.0
"""Seconds within which a client has to authenticate."""
REFUSED, LEAVING = 1008, 1012


def sockets(
    hf: Holdfast,
    authenticator: RequestAuthenticator,
    settings: ApiSettings,
    routes: Iterable[Route],
    admit: Admit,
) -> list[WebSocketRoute]:
    """`routes`: all routes; messages are performed by them. `admit`: the caller of a handshake, within their
    rate limit."""
    known = {route.name: route for route in routes}

    async def endpoint(socket: WebSocket) -> None:
        await Socket(socket, hf, authenticator, settings, known, admit).serve()

    return [WebSocketRoute(path, endpoint) for path in PATHS]


class Socket:
    def __init__(
        self,
        socket: WebSocket,
        hf: Holdfast,
        authenticator: RequestAuthenticator,
        settings: ApiSettings,
        routes: dict[str, Route],
        admit: Admit,
    ) -> None:
        self._socket = socket
        self._admit = admit
        self._principal: Principal | None = None
        self._hf = hf
        self._authenticator = authenticator
        self._settings = settings
        self._routes = routes
        self._hub: Hub = hub_of(hf)
        self._following: dict[str, asyncio.Task[None]] = {}
        self._writing = asyncio.Lock()
        self._pace = TokenBuckets(PACE, 2.0, "by one socket")
        self._seed = alias_in(socket.scope) is not None
        # The credential as it was shown, to be checked again.
        self._proof = _request(socket.scope)

    async def serve(self) -> None:
        try:
            principal = await self._authenticate()
            if principal is None:
                return
            # The client has to reconnect now and then, so that a revoked credential ends.
            async with asyncio.timeout(self._settings.stream_life):
                await self._serve_messages(principal)
        except (WebSocketDisconnect, TimeoutError):
            pass
        finally:
            for task in self._following.values():
                task.cancel()
            await asyncio.gather(*self._following.values(), return_exceptions=True)
            await self._close(LEAVING)

    async def _close(self, code: int, reason: str = "") -> None:
        if self._socket.client_state is WebSocketState.CONNECTED is self._socket.application_state:
            await self._socket.close(code, reason)

    # ------------------------------------------------------------------ authentication
    async def _authenticate(self) -> Principal | None:
        """The caller; None if they were refused."""
        try:
            # Before the credential: the browser sends our cookie
            # with a socket that a page of another site opens.
            require_origin(self._socket, self._settings.origins, self._authenticator)
            require_single(self._socket)
            read_query(self._socket, StreamOptions if "run" in self._socket.path_params else NoParameters)
            self._hub.require_room(self._settings.most_streams)
            principal = await self._admit(self._proof)
            # A socket has no CSRF token; for a cookie the Origin
            # header is the only proof that our page opened it.
            if principal is not None and principal.method == "session" and not _origin(self._socket):
                raise HttpError(403, "a WebSocket with a session needs the Origin header.", code="cross_site")
        except HoldfastError as error:
            await self._note(error, None)
            # An HTTP answer instead of the handshake: a client can read its problem document.
            name = request_id(self._socket.scope)
            shown = problems.for_caller(error, None, name)
            await self._socket.send_denial_response(problems.problem_response(shown, name))
            return None
        # Also without a credential: browsers cannot set headers
        # of a socket, so the token may come as the first message.
        await self._socket.accept()
        if principal is None:
            principal = await self._authenticate_by_message()
        self._principal = principal
        if principal is not None:
            # The tasks that follow runs begin after this, and are inside.
            enter_tenant(principal.tenant)
            await self._send({"type": "hello", "by": principal.actor.id, "tenant": principal.tenant})
        return principal

    async def _authenticate_by_message(self) -> Principal | None:
        """By the first message."""
        try:
            async with asyncio.timeout(FIRST):
                message = read_message(await self._text())
            if message.type != "auth" or not message.token:
                raise HttpError(401, "this needs a credential.", code="unauthenticated", hint=SIGN_IN)
            self._proof = _request(self._socket.scope, token=message.token)
            found = await self._admit(self._proof)
        except (HoldfastError, TimeoutError) as error:
            problem = error if isinstance(error, HoldfastError) else _auth_timeout()
            await self._note(problem, None)
            await self._refuse(None, problem)
            await self._close(REFUSED, "no valid credential")
            return None
        return found

    # ------------------------------------------------------------------ messages
    async def _serve_messages(self, principal: Principal) -> None:
        named = self._socket.path_params.get("run")
        if named is not None:
            await self._handle(principal, _initial_subscription(named, self._socket))
        leaving = asyncio.create_task(self._until_closing(principal))
        try:
            while not leaving.done():
                # A task, because the wait must also end when the server
                # drains; a receive has no other way to be interrupted.
                reading = asyncio.create_task(self._text())
                await asyncio.wait((reading, leaving), return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
                    return
                await self._receive(principal, reading)
        finally:
            leaving.cancel()

    async def _until_closing(self, principal: Principal) -> None:
        """Also sends keep-alive messages, as the stream does, and checks each time that the credential is
        still valid, and when one of the tenant has ended: one that was revoked learns nothing more."""
        with self._hub.credential_news(principal.tenant) as news:
            while not self._hub.closing:
                has_news = await news.wait(self._settings.heartbeat)
                if self._hub.closing:
                    return
                if not await is_still_valid(self._authenticator, self._proof, principal):
                    await self._close(REFUSED, "the credential is not valid any more")
                    return
                if not has_news:
                    await self._send({"type": "beat"})

    async def _text(self) -> str:
        """Of the next message. Raises HttpError for a binary one."""
        received = await self._socket.receive()
        if received["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(received["code"], received.get("reason"))
        text = received.get("text")
        if text is None:
            raise HttpError(400, "the message is binary.", code="not_json", hint="Send JSON as text.")
        return str(text)

    async def _receive(self, principal: Principal, reading: asyncio.Task[str]) -> None:
        failed = reading.exception()
        if failed is not None and not isinstance(failed, HoldfastError):
            raise failed
        try:
            self._pace.take("")
            message = read_message(reading.result())
        except HoldfastError as error:
            await self._refuse(None, error)
            # Slows down only this socket: its client sends too fast.
            await asyncio.sleep(1 / PACE)
            return
        await self._handle(principal, message)

    async def _handle(self, principal: Principal, message: SocketMessage) -> None:
        try:
            match message.type:
                case "ping":
                    result: Any = {}
                case "subscribe" if message.topic is not None:
                    result = await self._subscribe_to_topic(principal, message)
                case "subscribe":
                    result = await self._subscribe(principal, message)
                case "unsubscribe":
                    result = self._unsubscribe(message)
                case "auth":
                    raise HttpError(409, "this socket is already authenticated.", code="conflict")
                case _:
                    result = await self._call_route(principal, message)
        except HoldfastError as error:
            await self._note(error, principal)
            await self._refuse(message.id, error)
        except Exception as error:
            problems.internal_error(error, request_id := new_id())
            failure = HttpError(
                500, "the server failed.", code="internal", hint=f"Report the request id {request_id}."
            )
            await self._refuse(message.id, failure)
        else:
            await self._send({"type": "ack", "id": message.id, "result": result})

    # ------------------------------------------------------------------ following
    async def _subscribe(self, principal: Principal, message: SocketMessage) -> Any:
        _require(principal, Right.runs_read)
        follow = SocketSubscription.of(message)
        service = await self._hf.service()
        row = await service.get(follow.run, tenant=principal.tenant)
        if row.status not in ENDED:
            require_known_event(follow.after, row.event_seq)
        # Streams of ended runs must not count against the limit.
        self._following = {run: task for run, task in self._following.items() if not task.done()}
        if row.id in self._following:
            raise HttpError(409, f"this socket already follows run {row.id}.", code="conflict")
        if len(self._following) >= MOST_RUNS:
            raise HttpError(
                409, f"this socket follows {MOST_RUNS} runs already, which is the limit.", code="conflict"
            )
        self._hub.require_room(self._settings.most_streams)
        patience = StreamTimeouts(beat=self._settings.heartbeat, life=self._settings.stream_life)
        source = follow_run(self._hub, service, row, follow.after, patience)
        names = follow.names or (EventNames.seed if self._seed else EventNames.own)
        self._following[row.id] = asyncio.create_task(
            self._forward_events(row.id, source, follow.after, names)
        )
        return {"run": row.id, "status": str(row.status), "event_seq": row.event_seq}

    def _unsubscribe(self, message: SocketMessage) -> Any:
        task = self._following.pop(message.topic or message.run or "", None)
        if task is not None:
            task.cancel()
        named = {"run": message.run} if message.topic is None else {"topic": message.topic}
        return {**named, "was_followed": task is not None}

    async def _subscribe_to_topic(self, principal: Principal, message: SocketMessage) -> Any:
        after, topic = topic_position(message), str(message.topic)
        _require(principal, Right.holds_read if topic == "holds" else Right.runs_read)
        if topic in self._following and not self._following[topic].done():
            raise HttpError(409, f"this socket already follows {topic}.", code="conflict")
        self._hub.require_room(self._settings.most_streams)
        patience = StreamTimeouts(beat=self._settings.heartbeat, life=self._settings.stream_life)
        store = await self._hf.open()
        if topic == "holds":
            head = (await store.audit_head(principal.tenant))[0]
            after = head if after is None else min(after, head)
            holds = follow_holds(self._hub, await self._hf.holds(), principal.actor, after, patience)
            forward = self._forward_holds(topic, holds)
        else:
            after = await feed_end(store) if after is None else await known_position(store, after)
            runs = follow_runs(self._hub, await self._hf.service(), principal.tenant, after, patience)
            forward = self._forward_runs(topic, runs)
        self._following[topic] = asyncio.create_task(forward)
        return {"topic": topic, "after": after}

    async def _forward_runs(self, topic: str, source: AsyncGenerator[list[tuple[int, RunWire]]]) -> None:
        try:
            async with aclosing(source):
                async for batch in source:
                    for position, run in batch:
                        head = {"type": "event", "topic": topic, "id": position, "event": "run.changed"}
                        await self._send({**head, "data": run})
        except (WebSocketDisconnect, RuntimeError):
            return  # it is closed: the reader notices too
        except HoldfastError as error:
            await self._refuse(None, error, topic=topic)

    async def _forward_holds(self, topic: str, source: AsyncGenerator[Sequence[HoldEventWire]]) -> None:
        try:
            async with aclosing(source):
                async for batch in source:
                    for each in batch:
                        head = {"type": "event", "topic": topic, "id": each.seq, "event": each.type}
                        await self._send({**head, "data": each})
        except (WebSocketDisconnect, RuntimeError):
            return  # it is closed: the reader notices too
        except HoldfastError as error:
            await self._refuse(None, error, topic=topic)

    async def _forward_events(self, run: str, source: Any, after: int, names: EventNames) -> None:
        try:
            async with aclosing(source):
                async for batch in source:
                    after = await self._send_events(run, batch, after, names)
        except (WebSocketDisconnect, RuntimeError):
            return  # it is closed: the reader notices too
        except HoldfastError as error:
            await self._refuse(None, error, run=run)
            return
        if not self._hub.closing:
            await self._send({"type": "end", "run": run, "after": after})

    async def _send_events(
        self, run: str, batch: Sequence[EncodedEvent], after: int, names: EventNames
    ) -> int:
        for each in batch:
            head = msgspec.json.encode(
                {"type": "event", "run": run, "id": each.number, "event": each.name(names)}
            )
            await self._write(head[:-1] + b',"data":' + each.body(names) + b"}")
            after = each.number
        return after

    # ------------------------------------------------------------------ requests
    async def _call_route(self, principal: Principal, message: SocketMessage) -> Any:
        """Perform it by the HTTP route."""
        asked = SocketCommand.of(message)
        route = self._routes[asked.route]
        assert isinstance(route.needs, Right)
        # The handler is called directly, past the application's own check of the right.
        _require(principal, route.needs)
        request = _request(self._socket.scope, key=message.key)
        call = ApiCall(request, principal, self._hf, route, new_id(), self._settings)
        given = {"query": route.query()} if route.query is not None else {}
        answer = await route.handler(call, run=asked.run, body=asked.body_for(route), **given)
        return answer.body if isinstance(answer, ApiReply) else answer  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    async def _note(self, error: HoldfastError, principal: Principal | None) -> None:
        """Refusals because of the credential are recorded, as over HTTP."""
        if isinstance(error, HttpError) and error.given_status in (401, 403):
            request = _request(self._socket.scope)
            path = self._socket.scope["path"]
            await self._authenticator.note_refusal(request, path, principal, error, new_id())

    # ------------------------------------------------------------------ writing
    async def _refuse(self, to: str | int | None, error: HoldfastError, **more: Any) -> None:
        shown = problems.for_caller(error, self._principal, request_id(self._socket.scope))
        problem = msgspec.json.decode(problems.problem_response(shown).body)
        await self._send({"type": "error", "id": to, **more, "problem": problem})

    async def _send(self, message: Any) -> None:
        await self._write(msgspec.json.encode(message))

    async def _write(self, data: bytes) -> None:
        # Several followed runs write to the same socket; frames must not be interleaved.
        async with self._writing:
            await self._socket.send_text(redactor.redact_json(data).decode())


def _request(scope: Scope, *, token: str | None = None, key: str | None = None) -> Request:
    """The handshake as a request for the authenticator. A token from the first message is its only
    credential."""
    # Not of the handshake: a key is of one message.
    headers = [(name, value) for name, value in scope["headers"] if name != b"idempotency-key"]
    if token is not None:
        headers = [(name, value) for name, value in headers if name not in (b"authorization", b"cookie")]
        headers.append((b"authorization", f"Bearer {token}".encode()))
    if key is not None:
        headers.append((b"idempotency-key", key.encode()))
    http = {"ws": "http", "wss": "https"}.get(scope.get("scheme", "ws"), "http")
    return Request({**scope, "type": "http", "method": "GET", "scheme": http, "headers": headers})


def _origin(connection: HTTPConnection) -> str:
    return connection.headers.get("origin", "").lower()


def require_origin(connection: HTTPConnection, listed: Sequence[str], authenticator: object) -> None:
    """Raises HttpError for a page of another site: browsers let every page open a socket, with our cookie."""
    origin = _origin(connection)
    if not origin or origin in listed:
        return
    ours = getattr(authenticator, "same_origin", None)
    # As texts: a browser sends no more than this, and an address that cannot be parsed is another site's.
    if origin.partition("://")[2] == connection.headers.get("host", "").lower():
        return
    if ours is None or not ours(connection):
        raise HttpError(
            403, "the request came from a page of another site.", code="cross_site",
            hint="The operator of this server can allow that origin (`holdfast serve --origin`).",
        )  # fmt: skip


def _require(principal: Principal, right: Right) -> None:
    if not principal.may(right):
        raise no_right(str(right))


class StreamOptions(msgspec.Struct, kw_only=True):
    """The parameters of a socket that follows one run."""

    after: str = "0"
    names: str | None = None


def _initial_subscription(run: str, socket: WebSocket) -> SocketMessage:
    """The options in the address."""
    given: StreamOptions = read_query(socket, StreamOptions)
    after = given.after
    number = int(after) if after.isascii() and after.isdigit() and len(after) < 11 else -1
    return SocketMessage(type="subscribe", id=0, run=run, after=number, names=given.names)


def _auth_timeout() -> HttpError:
    return HttpError(
        401, f"no credential was sent within {FIRST:.0f} s.", code="unauthenticated", hint=SIGN_IN
    )
