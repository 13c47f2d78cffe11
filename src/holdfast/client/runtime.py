"""`RuntimeClient`: the four calls of the runtime proposal, for programs without an event loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.client.models import CheckpointSummary, InputTaken, RunDetail
from holdfast.client.settings import Token
from holdfast.client.sync.client import Client

REST = 5.0


class RuntimeClient:
    """`client` has all other calls. The default token is HOLDFAST_TOKEN."""

    def __init__(self, base_url: str | None = None, *, token: Token = None, timeout: float = 30.0) -> None:
        self.client = Client(base_url, token, timeout=timeout)

    def create_run(
        self,
        workflow_uri: str,
        input: Mapping[str, Any] | None = None,  # noqa: A002
        *,
        wait: float = REST,
        idempotency_key: str | None = None,
    ) -> RunDetail:
        """Start a run. Returns when it has ended or waits for a person, at the latest after `wait` seconds;
        the run itself continues."""
        return self.client.runs.create(workflow_uri, input, wait=wait, idempotency_key=idempotency_key)

    def get_run(self, run_id: str) -> RunDetail:
        return self.client.runs.get(run_id)

    def list_checkpoints(self, run_id: str, limit: int = 10) -> list[CheckpointSummary]:
        """The newest first."""
        return self.client.runs.checkpoints(run_id, limit=limit).all()

    def send_input(
        self, run_id: str, content: str | Mapping[str, Any], *, checkpoint_id: str | None = None
    ) -> InputTaken:
        """Answer a question of a run; `checkpoint_id`, if several are open."""
        return self.client.runs.input(run_id, content, checkpoint_id=checkpoint_id)

    def resume_run(
        self,
        run_id: str,
        checkpoint_id: str | None = None,
        input_data: Mapping[str, Any] | None = None,
    ) -> RunDetail:
        """Resume a run from its latest checkpoint; an older one, or another input, creates a fork."""
        return self.client.runs.resume(run_id, checkpoint_id=checkpoint_id, input_data=input_data)

    def close(self) -> None:
        self.client.close()

    def __enter__(self) -> RuntimeClient:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
