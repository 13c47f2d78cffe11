"""The process of one attempt at a node: loads the flow, calls the node's code, and replies."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import sys
import threading
from types import ModuleType
from typing import IO, Any

import msgspec

from holdfast.checkpoint import TypeRegistry, unpack
from holdfast.engine.messages import HandlerFinished
from holdfast.errors import NodeProcessError, ScriptError
from holdfast.frontends.python.builder import FlowBuilder
from holdfast.frontends.python.function_parameters import is_coroutine
from holdfast.model.position import Exec
from holdfast.model.program import Program
from holdfast.model.user_code.boundary import to_error
from holdfast.runs.driver import handler_result, retryable_errors
from holdfast.runs.node_process.message import (
    NodeAttempt,
    NodeRequest,
    encode_reply,
    read_frame,
    write_frame,
)

_MAIN = "__holdfast_main__"


class ProcessContext:
    """The context of a node in a process: it says which attempt this is, and cannot reach the run."""

    def __init__(self, attempt: NodeAttempt, given: Any) -> None:
        self._attempt = attempt
        self.input = given

    def __getattr__(self, name: str) -> Any:
        if name in NodeAttempt.__struct_fields__ and name != "place":
            return getattr(self._attempt, name)
        raise ScriptError(
            f'ctx.{name} in node {self._attempt.node!r}, which has isolation="process": its code cannot '
            "reach the run.",
            hint="Return the value, or do this in a node of its own.",
        )


def main() -> None:
    with os.fdopen(int(sys.argv[1]), "wb") as replies:
        data = read_frame(sys.stdin.buffer)
        if data is None:
            os._exit(1)
        threading.Thread(target=_end_with_worker, args=(sys.stdin.buffer,), daemon=True).start()
        request = msgspec.msgpack.decode(data, type=NodeRequest)
        registry = TypeRegistry()
        try:
            root = _program(request)
            registry = TypeRegistry(*root.all_types())
            root.adopt_with(registry.adopt)
            program = root.at(request.graph)
            if program.code.get(request.attempt.node, "") != request.code:
                raise _changed(request)
            reply = _perform(program, request, registry)
        except BaseException as error:
            reply = encode_reply(_not_called(request, error), registry)
        write_frame(replies, reply)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # Threads that the code left behind end with the process.
    os._exit(0)


def _end_with_worker(given: IO[bytes]) -> None:
    given.read()
    os._exit(1)


def _program(request: NodeRequest) -> Program:
    sys.path[:] = request.search_path
    module = _module(request.module, request.file)
    for value in list(vars(module).values()):
        if isinstance(value, FlowBuilder) and value.name == request.flow:
            program = value.compile()
            if program.version == request.version:
                return program
    raise _changed(request)


def _changed(request: NodeRequest) -> NodeProcessError:
    return NodeProcessError(
        f"{request.file or request.module} has another version of flow {request.flow!r} or of node "
        f"{request.attempt.node!r} than its worker.",
        hint="The file was changed after the worker had started: restart the worker.",
    )


def _module(name: str, file: str) -> ModuleType:
    if name != "__main__" and importlib.util.find_spec(name) is not None:
        module = importlib.import_module(name)
        if str(getattr(module, "__file__", None) or "") == file:
            return module
    spec = importlib.util.spec_from_file_location(_MAIN if name == "__main__" else name, file)
    if spec is None or spec.loader is None:
        raise NodeProcessError(f"the module {name} cannot be loaded in a process of its own.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _perform(program: Program, request: NodeRequest, registry: TypeRegistry) -> bytes:
    attempt = request.attempt
    node, handler = program.graph.nodes[attempt.place], program.handlers[attempt.node]
    values = {name: unpack(value, registry) for name, value in request.values.items()}
    scratch = dict(values["state"])
    finished = HandlerFinished(scope=attempt.scope, node=attempt.place, visit=attempt.visit)
    try:
        state = program.schema.build(scratch)
        given = {
            "state": state,
            **{name: values[name] for name in ("item", "index", "key") if name in values},
            "ctx": ProcessContext(attempt, values["input"]),
        }
        found = handler.fn(*[given[name] for name in handler.takes])
        if is_coroutine(handler.fn):
            found = asyncio.run(found)
        program.schema.unchanged(state, scratch)
        handler_result.fill_result(program, node, found, finished, scratch, [])
        return encode_reply(finished, registry)
    except BaseException as error:
        execution = Exec(attempt.scope, attempt.place, attempt.visit, frame=0, seq=0)
        failed = retryable_errors.failure(node, handler, execution, to_error(error), 0)
        return encode_reply(failed, registry)


def _not_called(request: NodeRequest, error: BaseException) -> HandlerFinished:
    attempt = request.attempt
    return HandlerFinished(
        scope=attempt.scope,
        node=attempt.place,
        visit=attempt.visit,
        outcome="fail",
        error=handler_result.describe(to_error(error)),
    )


if __name__ == "__main__":
    main()
