"""The code of `callback` nodes: sends the request of an `http` node, with the address of the callback in it,
and waits until that is completed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.documents.connections import Connections
from holdfast.documents.http_node import HttpSender
from holdfast.errors import HttpResponseError, NotDone
from holdfast.frontends.document.node_type import DocumentNode
from holdfast.frontends.document.node_types.callback import CALLBACK, CallbackConfig
from holdfast.frontends.python.policies import Retry
from holdfast.model.program import NodeHandler
from holdfast.types.outcome import RETRY, Outcome
from holdfast.types.status import Effect

_SEND: Final = "send"


def callback_handler(node: DocumentNode, connections: Connections) -> NodeHandler:
    config: CallbackConfig = node.config
    sender = _CallbackSender(node, connections) if config.sends else None
    given = config.retry
    again = given and Retry(given.attempts, given.backoff, given.delay, given.cap)
    effect = Effect(config.effect) if config.effect is not None else Effect.external

    async def run(state: Mapping[str, Any], ctx: Any) -> dict[str, Any] | None:
        callback = await ctx.callback(node.id, timeout=config.timeout, heartbeat=config.heartbeat)
        if sender is not None:
            seen = {**state, CALLBACK: {"url": callback.url, "token": callback.token}}
            keyed = config.idempotency_key is not None
            refused = await ctx.step(
                _SEND, sender.send, seen, ctx, effect=effect, idempotent=keyed, retry=again
            )
            if refused:
                raise HttpResponseError(f"the request was refused: {refused}.")
        result = await callback.result()
        return {node.bind: result} if node.bind else None

    return NodeHandler(fn=run, is_async=True, takes=("state", "ctx"), code="canvas-callback/1")


class _CallbackSender(HttpSender):
    async def send(self, state: Mapping[str, Any], ctx: Any) -> str:
        """Why the server refused the request, so that it will not call back; empty: it took it. Raises
        NotDone where another attempt may succeed."""
        answer = await self.run(state, ctx)
        if not isinstance(answer, Outcome):
            return ""
        if answer.status == RETRY:
            raise NotDone(f"the request was refused: {answer.reason}")
        return answer.reason or "it failed"

    def _hidden(self, state: Mapping[str, Any]) -> list[str]:
        # Servers repeat the request in their errors, and who reads the run must not complete the callback.
        return [state[CALLBACK]["token"]]

    def _timeout(self, otherwise: float) -> float:
        # That of the config is how long the node waits for the callback.
        return otherwise
