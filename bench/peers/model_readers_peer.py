"""Our readers of models' streams beside the vendors' own SDKs: one process, in turns, over HTTP on this
machine, with the same bytes for both.

`bench.models` starts it in the environment of the partner `model-sdks` and reads what it prints: for each
protocol, ours and theirs, the seconds of CPU of each round for one stream.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from threading import Event, Thread
from time import thread_time
from typing import Any

import anthropic
import openai
from google import genai
from google.genai import types

from holdfast import Anthropic, Gemini, Message, OpenAI, OpenAIResponses
from holdfast.agents.messages import ModelRequest
from tests.agents.protocols import Answer, events

DELTAS = 3000
STREAMS = 1
ANSWER = Answer("four " * DELTAS)
ASKED = ModelRequest((Message("user", "Hi"),))


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    path = head.split(" ")[1]
    length = next(line for line in head.split("\r\n") if line.startswith("content-length"))
    await reader.readexactly(int(length.partition(":")[2]))
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    # The head is in lower case here.
    path = path.replace("streamgeneratecontent", "streamGenerateContent")
    for event in events(path, ANSWER):
        writer.write(event.encode())
    await writer.drain()
    writer.close()


def server() -> tuple[str, Callable[[], None]]:
    """In a thread of its own: its work is not counted."""
    ready, done, port = Event(), Event(), list[int]()

    async def run() -> None:
        found = await asyncio.start_server(serve, "127.0.0.1", 0, limit=2**24)
        port.append(found.sockets[0].getsockname()[1])
        ready.set()
        await asyncio.to_thread(done.wait)
        found.close()

    thread = Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    return f"http://127.0.0.1:{port[0]}", done.set


def ours(model: Any) -> Callable[[], Awaitable[int]]:
    async def read() -> int:
        return len((await model.reply(ASKED, lambda *_: None)).message.text)

    return read


def theirs(url: str) -> dict[str, Callable[[], Awaitable[int]]]:
    chat = openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1")
    claude = anthropic.AsyncAnthropic(api_key="k", base_url=url)
    gemini = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url, api_version="v1beta"))

    async def by_chat() -> int:
        messages: Any = [{"role": "user", "content": "Hi"}]
        stream = await chat.chat.completions.create(model="m", messages=messages, stream=True)
        return sum([len(c.choices[0].delta.content or "") async for c in stream if c.choices])

    async def by_responses() -> int:
        async with chat.responses.stream(model="m", input="Hi") as stream:
            return len((await stream.get_final_response()).output_text)

    async def by_messages() -> int:
        messages: Any = [{"role": "user", "content": "Hi"}]
        async with claude.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
            return len(await stream.get_final_text())

    async def by_gemini() -> int:
        stream = await gemini.aio.models.generate_content_stream(model="m", contents="Hi")
        return sum([len(chunk.text or "") async for chunk in stream])

    return {"openai": by_chat, "responses": by_responses, "anthropic": by_messages, "gemini": by_gemini}


def timed(read: Callable[[], Awaitable[int]]) -> Callable[[], Awaitable[float]]:
    async def measure() -> float:
        begun = thread_time()
        for _ in range(STREAMS):
            assert await read() == len(ANSWER.text)
        return (thread_time() - begun) / STREAMS

    return measure


async def main(rounds: int) -> None:
    url, close = server()
    try:
        models: dict[str, Any] = {
            "openai": OpenAI("m", base_url=f"{url}/v1", key=None),
            "responses": OpenAIResponses("m", base_url=f"{url}/v1", key=None),
            "anthropic": Anthropic("m", base_url=url, key=None),
            "gemini": Gemini("m", base_url=url, key=None),
        }
        readers = {f"{kind}:theirs": timed(read) for kind, read in theirs(url).items()}
        readers |= {f"{kind}:ours": timed(ours(model)) for kind, model in models.items()}
        for read in readers.values():
            await read()
        found: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(rounds):
            for name, read in readers.items():
                found[name].append(await read())
    finally:
        close()
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
