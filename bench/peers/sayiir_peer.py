"""Sayiir: a runtime in Rust that calls tasks in Python; checkpoints in memory or in PostgreSQL."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

from kit import DATABASE, EACH, RUNS, STEP, STEPS, main, measure, now
from sayiir import Flow, InMemoryBackend, PostgresBackend, run_durable_workflow, task
from sayiir.flow import Workflow


@task
def count_up(state: dict[str, int]) -> dict[str, int]:
    return {"x": state["x"] + 1}


def line_of(steps: int) -> Workflow:
    flow = Flow(f"line-{steps}")
    for number in range(steps):
        flow = flow.then(count_up, name=f"step-{number}")
    return flow.build()


def finish(workflow: Workflow, backend: InMemoryBackend | PostgresBackend) -> None:
    ended = run_durable_workflow(workflow, uuid.uuid4().hex, {"x": 0}, backend=backend)
    if not ended.is_completed():
        raise AssertionError(f"the workflow is {ended.status}: {ended.error}")


def row_a() -> None:
    backend, workflow = InMemoryBackend(), line_of(STEPS)

    def once() -> float:
        began = now()
        finish(workflow, backend)
        return (now() - began) / STEPS

    measure("A", "Sayiir memory", once, STEP)


def row_d() -> None:
    """Its calls block: many workflows at once are as many calls, in 20 threads over 20 connections."""
    backend, workflow = PostgresBackend(DATABASE, max_connections=20), line_of(EACH)
    with ThreadPoolExecutor(20) as threads:

        def once() -> float:
            began = now()
            list(threads.map(lambda _: finish(workflow, backend), range(RUNS)))
            return (now() - began) / (RUNS * EACH)

        measure("D", "Sayiir postgres", once, STEP, rounds=2, warm=0)


if __name__ == "__main__":
    main({"A": row_a, "D": row_d})
