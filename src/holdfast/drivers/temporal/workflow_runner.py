"""How the SDK runs `holdfast.run`: in its sandbox, and in one thread at a time.

The SDK gives an activation two seconds. After that it fails the workflow task, interrupts the thread with an
exception that any task of the workflow may swallow, and removes the workflow from its cache without waiting
for that thread (what it waits for was cancelled by its own timeout). Two threads in one workflow lose its
tasks; then it is never removed, and its run stands still as long as this worker lives. Here the second one
waits, and the first one ends by itself: code of the engine has no loop without an end.

It also asks the workflow for the context of each payload, three times and in the sandbox, which was a tenth
of the time of a step. All payloads of a run have the same one.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from temporalio.converter import WorkflowSerializationContext
from temporalio.worker import WorkflowInstance, WorkflowInstanceDetails
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions


class _OneThread(WorkflowInstance):
    def __init__(self, inner: WorkflowInstance) -> None:
        self._inner = inner
        self._turn = threading.Lock()
        info = inner.get_info()
        self._context = WorkflowSerializationContext(namespace=info.namespace, workflow_id=info.workflow_id)
        self._target = inner.get_external_store_context(None)

    def activate(self, act: Any) -> Any:
        with self._turn:
            return self._inner.activate(act)

    def get_serialization_context(self, command_info: Any) -> Any:
        return self._context

    def get_external_store_context(self, command_info: Any) -> Any:
        return self._target

    def get_info(self) -> Any:
        return self._inner.get_info()

    def get_thread_id(self) -> int | None:
        """None: the SDK interrupts no thread."""
        return None


class RunWorkflowRunner(SandboxedWorkflowRunner):
    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _OneThread(super().create_instance(det))


# The classes that workflow code may use as they are. It uses the engine and the codec alone.
RUNNER: Final = RunWorkflowRunner(
    restrictions=SandboxRestrictions.default.with_passthrough_modules("holdfast", "msgspec")
)
