"""One agent of Pydantic AI without an engine, with ours and with that of DBOS, in one process, in turns.

`bench.agents` starts it in the environment of the partner `dbos` and reads what it prints: for each engine
the seconds of each round for a model request.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

if sqlite3.sqlite_version_info < (3, 42):
    import pysqlite3

    sys.modules["sqlite3"] = pysqlite3
    sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from dbos import DBOS
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from bench.measure import folder, interleaved
from holdfast import Flow, Holdfast
from holdfast.integrations.pydantic_ai import HoldfastDurability

logging.disable(logging.WARNING)
REQUESTS = 20


async def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    return ModelResponse([TextPart(str(sum(isinstance(each, ModelResponse) for each in messages)))])


def agent_of(name: str, *engines: Any) -> Agent:
    """It asks its model so many times, without a tool: DBOS does not record the calls of functions."""
    agent = Agent(FunctionModel(answer), name=name, capabilities=list(engines), retries=REQUESTS)

    @agent.output_validator
    async def enough(said: str) -> str:
        if int(said) < REQUESTS - 1:
            raise ModelRetry("Once more.")
        return said

    return agent


def flow_of(agent: Agent, mode: str) -> Flow:
    flow = Flow(f"talk-{mode}", mode=mode)

    @flow.script
    async def talk() -> dict[str, Any]:
        return {"answer": (await agent.run("Go")).output}

    flow.start(talk)
    return flow


def timed(work: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        began = perf_counter()
        await work()
        return (perf_counter() - began) / REQUESTS

    return measure


async def main(rounds: int) -> dict[str, list[float]]:
    none, ours = agent_of("none"), agent_of("ours", HoldfastDurability())
    flows = {mode: flow_of(ours, mode) for mode in ("strict", "barrier")}
    with folder() as place:
        DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{place}/dbos.db"})
        theirs = agent_of("theirs", DBOSDurability())

        @DBOS.workflow()
        async def talk() -> str:
            return (await theirs.run("Go")).output

        DBOS.launch()
        try:
            async with Holdfast(f"sqlite:{place}/h.db") as hf:

                def run(mode: str) -> Callable[[], Awaitable[float]]:
                    async def work() -> None:
                        (await flows[mode].run({}, on=hf)).expect()

                    return timed(work)

                return await interleaved(
                    rounds,
                    none=timed(lambda: none.run("Go")),
                    strict=run("strict"),
                    barrier=run("barrier"),
                    dbos=timed(talk),
                )
        finally:
            DBOS.destroy()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(int(sys.argv[1])))))
