"""Conversations that stages go on with: by which key, over crashes and models, apart in branches, bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.agents.messages import Message, ToolCall
from holdfast.attractor import Runner
from holdfast.attractor.conversations import PREFIX, ConversationTurn, compacted, history_of
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider
from tests.attractor.models import asked, backend, said
from tests.attractor.run import dot, line, run

__all__ = ["provider"]
pytestmark = pytest.mark.anyio

FULL = "goal=g, default_fidelity=full"


def listener(heard: dict[str, Any]) -> Any:
    def answer(node: Any, prompt: str, context: Any, session: list[dict[str, str]]) -> str:
        heard[node.id] = [each["text"] for each in session]
        return f"answer of {node.id}"

    return answer


@pytest.mark.covers("AT-132", "ATTRACTOR-HANDLER-10")
@pytest.mark.parametrize("kind", ["near", "far"])
async def test_stages_of_one_thread_go_on_with_one_conversation(
    hf: Holdfast, tmp_path: Path, provider: Provider, kind: str
) -> None:
    provider.says(Answer("4711"), Answer("fresh"), Answer("as I said: 4711"))
    text = line(
        'a [prompt="Think of a number"]; b [prompt="Alone", fidelity=compact]; c [prompt="Which was it?"];',
        "a", "b", "c", graph=f"{FULL}, thread_id=t, llm_provider={kind}",
    )  # fmt: skip
    result = await run(hf, text, tmp_path, backend=backend(provider))
    assert result.succeeded
    first, alone, again = provider.seen
    assert said(first) == [("user", "Think of a number")]
    assert len(said(alone)) == 1
    since = "Since your last turn in this conversation:\nCompleted stages:\n- b: success: fresh\n\n"
    assert said(again)[:2] == [("user", "Think of a number"), ("assistant", "4711")]
    assert said(again)[2:] == [("user", f"{since}Which was it?")]
    assert asked(alone).endswith("\n\nAlone")


@pytest.mark.covers("AT-133", "AT-A18")
@pytest.mark.parametrize(
    ("stage", "edge", "graph", "inside", "key"),
    [
        ("thread_id=mine", "thread_id=edges", "thread_id=graphs", True, "mine"),
        ("", "thread_id=edges", "thread_id=graphs", True, "edges"),
        ("", "", "thread_id=graphs", True, "graphs"),
        ("", "", "", True, "loop-a"),
        ("", "", "", False, "a"),
    ],
)
async def test_a_thread_is_known_by_the_first_that_names_it(
    hf: Holdfast, tmp_path: Path, stage: str, edge: str, graph: str, inside: bool, key: str
) -> None:
    b = f"b [{stage}];" if stage else "b;"
    b = f'subgraph cluster_x {{ label="Loop A"; {b} }}' if inside else b
    text = dot(
        f"a; {b}",
        f"start -> a; a -> b{f' [{edge}]' if edge else ''}; b -> done",
        ", ".join(filter(None, (FULL, graph))),
    )
    heard: dict[str, Any] = {}
    result = await run(hf, text, tmp_path, backend=listener(heard))
    assert result.context["internal.fidelity"] == {"mode": "full", "thread": key}
    turns = result.context[PREFIX + key]
    assert turns[-1]["stage"] == "b"
    assert [message["text"] for message in turns[-1]["messages"]] == ["b", "answer of b"]


@pytest.mark.covers("AT-A23")
async def test_branches_share_what_was_said_before_them_and_nothing_else(
    hf: Holdfast, tmp_path: Path
) -> None:
    heard: dict[str, Any] = {}
    text = dot(
        "a; fan [shape=component]; x; x2; y; y2; join [shape=tripleoctagon]; z;",
        "start -> a -> fan; fan -> x -> x2 -> join; fan -> y -> y2 -> join; join -> z -> done",
        f"{FULL}, thread_id=t",
    )
    await run(hf, text, tmp_path, backend=listener(heard))
    before = ["a", "answer of a"]
    assert heard["x"] == heard["y"] == heard["z"] == before
    assert heard["x2"] == [*before, "x", "answer of x"]
    assert heard["y2"] == [*before, "y", "answer of y"]


@pytest.mark.covers("ATTRACTOR-HANDLER-10", "ATTRACTOR-RUN-05")
async def test_a_conversation_outlives_its_process(tmp_path: Path, provider: Provider) -> None:
    """The run goes on in another house, after a person's answer: the whole conversation is there."""
    provider.says(Answer("4711"), Answer("4711"))
    text = dot(
        'a [prompt="Think"]; gate [shape=hexagon]; b [prompt="Which?"];',
        "start -> a -> gate; gate -> b [label=Go]; b -> done",
        f"{FULL}, thread_id=t",
    )
    store = f"sqlite:{tmp_path / 'store.db'}"
    async with Holdfast(store) as first:
        waiting = await Runner(first, backend=backend(provider), logs_root=tmp_path / "logs").run(text)
    assert waiting.status == "waiting"
    async with Holdfast(store) as second:
        service = await second.service()
        await service.answer(waiting.holds[0].id, decision="Go", by="user:ann")
        runner = Runner(second, backend=backend(provider), logs_root=tmp_path / "logs")
        ended = await runner.resume(waiting.run_id)
    assert ended.succeeded
    *before, (role, last) = said(provider.seen[1])
    assert before == [("user", "Think"), ("assistant", "4711")]
    assert role == "user"
    assert 'b follows gate, by the edge "Go".' in last
    assert last.endswith("\n\nWhich?")


@pytest.mark.covers("ATTRACTOR-HANDLER-10")
async def test_a_long_conversation_is_reported_in_short(hf: Holdfast, tmp_path: Path) -> None:
    heard: dict[str, Any] = {}
    names = [f"s{n}" for n in range(12)]

    def answer(node: Any, prompt: str, context: Any, session: list[dict[str, str]]) -> str:
        heard[node.id] = session
        return f"{node.id} " + "word " * 400

    text = line("; ".join(names) + ";", *names, graph=f"{FULL}, thread_id=t, session_max_tokens=2000")
    result = await run(hf, text, tmp_path, backend=answer)
    last = heard["s11"]
    assert sum(len(each["text"]) for each in last) / 4 < 2200
    assert last[0]["text"].startswith("What was said before, in short:")
    assert "s8 was asked: s8" in last[0]["text"]
    assert [each["text"][:3] for each in last[-2:]] == ["s10", "s10"]
    assert [each["role"] for each in last] == ["user", "assistant"] * (len(last) // 2)
    assert len(str(result.context[PREFIX + "t"])) < 12_000


def a_turn(stage: str, size: int) -> ConversationTurn:
    call = ToolCall("1", "look", "{}")
    return ConversationTurn(
        stage,
        (
            Message("user", f"do {stage}"),
            Message("assistant", "", (call,), extra=({"type": "thinking", "signature": "s"},)),
            Message("tool", "x" * size, call="1"),
            Message("assistant", f"did {stage}"),
        ),
        "m-1",
    )


@pytest.mark.covers("ATTRACTOR-HANDLER-10")
def test_a_call_is_never_parted_from_its_result() -> None:
    turns = compacted([a_turn(f"s{n}", 4000) for n in range(6)], 4000)
    assert len(turns) == 2
    assert turns[0].stage == ""
    assert "It answered (1 tool call): did s4" in turns[0].messages[0].text
    assert turns[1] == a_turn("s5", 4000)
    # One that is larger than everything together: what was asked and answered stays.
    alone = compacted([a_turn("big", 100_000)], 1000)
    assert "big was asked: do big" in alone[0].messages[0].text
    again = compacted([*alone, a_turn("next", 100_000)], 1000)
    assert len(again) == 1
    assert "big was asked" in again[0].messages[0].text


@pytest.mark.covers("ATTRACTOR-HANDLER-10")
def test_another_model_is_reported_what_it_can_read() -> None:
    turns = [a_turn("s", 3)]
    own = history_of(turns, model="m-1")
    assert own == turns[0].messages
    other = history_of(turns, model="m-2")
    assert not any(message.extra for message in other)
    assert [message.calls for message in other] == [message.calls for message in own]
    bare = history_of(turns, model="m-2", tools=False)
    assert [message.role for message in bare] == ["user", "assistant", "user", "assistant"]
    assert not any(message.calls for message in bare)
    assert bare[1].text == "(calls look with {})"
