"""The worker's side: starts a process for one attempt at a node, and kills it when the attempt is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import IO, Any, Final

import msgspec

from holdfast.checkpoint import pack
from holdfast.errors import NodeProcessError
from holdfast.frontends.python.builder import FlowBuilder
from holdfast.model.graph import Node
from holdfast.model.user_code.threads import leave_running, run_in_thread
from holdfast.runs.context.context import Context
from holdfast.runs.context.driver_protocols import HandlerSession
from holdfast.runs.node_process.message import NodeAttempt, NodeRequest, read_frame, write_frame
from holdfast.types.value import FrozenDict

_CHILD: Final = "holdfast.runs.node_process.child"
_KILL_WAIT: Final = 5.0  # seconds until the system has ended a process that was killed
_found: dict[tuple[str, str], tuple[str, str]] = {}


def source_of(flow: str, version: str) -> tuple[str, str]:
    """The module that has this flow, and its file. Raises NodeProcessError."""
    known = _found.get((flow, version))
    if known is None:
        known = _found[(flow, version)] = _find(flow, version)
    return known


def _find(flow: str, version: str) -> tuple[str, str]:
    for name, module in list(sys.modules.items()):
        for value in list(getattr(module, "__dict__", {}).values()):
            if isinstance(value, FlowBuilder) and value.name == flow and value.compile().version == version:
                return name, str(getattr(module, "__file__", None) or "")
    raise NodeProcessError(
        f"no module has the flow {flow!r}, so a process cannot load it.",
        hint='Assign the flow to a variable of a module; a node of it has isolation="process".',
    )


async def run_node(
    session: HandlerSession, ctx: Context, node: Node, item: dict[str, Any], code: str
) -> bytes:
    """The reply of the process that makes this attempt. `code`: the mark of the node's code."""
    execution = ctx.execution
    scope, registry = session.pos.scopes[execution.scope], session.codec.registry
    module, file = source_of(session.graph.name, session.program.version)
    values = {
        "state": FrozenDict(scope.tree.see(execution.frame, "scratch")),
        **item,
        "input": ctx.input,
    }
    attempt = NodeAttempt(
        run_id=session.run,
        node=node.id,
        scope=execution.scope,
        place=execution.node,
        visit=execution.visit,
        attempt=execution.attempt,
        failures=execution.failures,
        tenant=session.row.tenant,
        idempotency_key=ctx.idempotency_key,
    )
    return await run_in_process(
        NodeRequest(
            module=module,
            file=file,
            search_path=sys.path,
            flow=session.graph.name,
            version=session.program.version,
            graph=scope.graph,
            code=code,
            attempt=attempt,
            values={name: pack(value, registry) for name, value in values.items()},
        )
    )


async def run_in_process(request: NodeRequest) -> bytes:
    """The reply of the process. Raises NodeProcessError if it ended without one."""
    process = NodeProcess(request.attempt.node)
    work = asyncio.ensure_future(run_in_thread(process.exchange, msgspec.msgpack.encode(request)))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        process.kill()
        _, late = await asyncio.wait({work}, timeout=_KILL_WAIT)
        if late:
            leave_running(work)
        with suppress(asyncio.CancelledError, Exception):
            work.result()
        raise


class NodeProcess:
    """In a group of its own, so that processes that the code starts are killed with it. Its standard input
    stays open as long as the worker lives: at its end the process ends too."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    def exchange(self, request: bytes) -> bytes:
        """In a thread: start it, send the request, wait for the reply."""
        reading, writing = os.pipe()
        try:
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", _CHILD, str(writing)],
                stdin=subprocess.PIPE,
                pass_fds=(writing,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        with os.fdopen(reading, "rb") as replies:
            if self._killed:
                self.kill()
            assert process.stdin is not None
            reply = self._reply(process.stdin, replies, request)
        self.kill()
        code = process.wait()
        with suppress(OSError):
            process.stdin.close()
        if reply is None:
            raise NodeProcessError(
                f"the process of node {self._node!r} {_ending(code)} before the node had ended."
            )
        return reply

    def _reply(self, given: IO[bytes], replies: IO[bytes], request: bytes) -> bytes | None:
        # It may end before it has read the request.
        with suppress(BrokenPipeError):
            write_frame(given, request)
        reply = read_frame(replies)
        if reply is None and self._process is not None:
            self._process.wait()
        return reply

    def kill(self) -> None:
        self._killed = True
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
