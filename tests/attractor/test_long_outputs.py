"""Outputs of many megabytes: read at their ends, and handled beside the event loop, which other runs need."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import detached_commands, run_files
from holdfast.attractor.backends.agents import agent_process
from holdfast.attractor.backends.agents.agent_process import EventView
from holdfast.attractor.backends.agents.claude import ClaudeAdapter
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.long_texts import MANY, byte_size, last_line
from holdfast.attractor.runner import Runner
from holdfast.attractor.stage_outputs import middle_cut, tail_cut
from holdfast.checkpoint.envelope import stated_size
from holdfast.runs import blobs
from tests.attractor.run import dot, line

SIZE = 6 * 2**20
TEXTS = ["", "x", "short\n", "a" * 200, "é" * 150, "a\ud800b" * 60, "€" * 90 + "x" * 90, "\n\n \n"]


def cut_whole(text: str, limit: int, heads: int) -> str:
    """As `_cut`, of all bytes."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    room = max(0, limit - len("[... {} bytes left out ...]\n") - 9)
    head = raw[: room // heads] if heads else b""
    tail = raw[len(raw) - (room - len(head)) :]
    begin = f"{head.decode('utf-8', 'ignore')}\n" if head else ""
    left = len(raw) - len(head) - len(tail)
    return f"{begin}[... {left} bytes left out ...]\n{tail.decode('utf-8', 'ignore')}"


@pytest.mark.parametrize("text", TEXTS)
def test_ends_of_a_text_are_those_of_all_its_bytes(text: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    assert byte_size(text) == size
    for limit in (1, 50, 60, 100, 120, 150, 199, 200, 201, 300, 10_000):
        assert (byte_size(text, limit) <= limit) == (size <= limit)
        assert middle_cut(text, limit) == cut_whole(text, limit, 5)
        assert tail_cut(text, limit) == cut_whole(text, limit, 0)
        found = detached_commands.shown(text, limit)
        assert found == text if size <= limit else "bytes left out" in found
    lines = text.strip().splitlines()
    assert last_line(text) == (lines[-1] if lines else "")


def test_last_line_is_found_behind_long_ones() -> None:
    assert last_line("a\n" + "b" * 10_000) == "b" * 10_000
    assert last_line("a\nb" + " \n" * 10_000) == "b"
    assert last_line("x" * 10_000 + "\nlast\n") == "last"


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["tool", "failed", "model"])
async def test_long_output_does_not_hold_up_the_event_loop(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What takes time for each megabyte is done in threads."""
    here, done = threading.get_ident(), dict[str, set[int]]()

    def watched(name: str, module: Any, function: str, length: Any) -> None:
        known = getattr(module, function)

        def call(*args: Any) -> Any:
            if length(*args) >= MANY:
                done.setdefault(name, set()).add(threading.get_ident())
            return known(*args)

        monkeypatch.setattr(module, function, call)

    watched("file", run_files, "write", lambda path, text: len(text))
    watched("blob", blobs, "unspill", lambda ref, data, registry: stated_size(data))
    print_much = f"head -c {SIZE} /dev/zero | tr '\\\\0' x"
    more: dict[str, Any] = {}
    if kind == "model":
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\nhead -c {SIZE} /dev/zero | tr '\\0' x\n")
        program.chmod(0o755)
        source, more = line("a;", "a"), {"backend": CommandBackend(str(program))}
    else:
        end = "; exit 1" if kind == "failed" else ""
        stages = f'a [shape=parallelogram, tool_command="{print_much}{end}"]; b [label=B];'
        source = dot(stages, 'start -> a; a -> b; a -> b [condition="outcome=fail"]; b -> done')
        more = {"backend": lambda prompt: "fine"}
    found = await Runner(hf, logs_root=tmp_path / "logs", **more).run(source)
    assert found.succeeded, found.outcome
    assert done["file"]
    assert done["blob"]
    assert here not in done["file"] | done["blob"], done
    written = "response.md" if kind == "model" else "stdout"
    assert (tmp_path / f"logs/a/visits/1.{written}").stat().st_size == SIZE


def test_events_of_an_agent_are_shown_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Visit:
        folder = tmp_path

        class ctx:  # noqa: N801 (an attribute)
            @staticmethod
            def emit(data: Any, kind: str) -> None:
                shown.append(data)

    text = '{"type": "user"}\n' * 4
    (tmp_path / detached_commands.STDOUT).write_text(text + '{"type"')
    monkeypatch.setattr(agent_process, "_PART", len(text) // 2)
    view = EventView(Visit(), ClaudeAdapter(), tmp_path)  # type: ignore[arg-type]
    assert view.look()
    assert len(shown) == 2
    assert view.look()
    assert len(shown) == 4
    assert not view.look()
    assert len(shown) == 4
