"""Where agents work: files that a conversation keeps, and sandboxes that outlive a process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    Files,
    Holdfast,
    LocalSandbox,
    RunStatus,
    SandboxGoneError,
    Scripted,
    file_tools,
    shell_tool,
    tool,
    tool_call,
)
from holdfast.agents.local_sandbox import write_file
from tests.agents.helpers import World, a_flow, results
from tests.flows.places import Place

pytestmark = pytest.mark.anyio

BINARY = bytes(range(256))


@tool(effect="pure")
async def photograph(path: str, files: Files) -> str:
    """Takes a picture."""
    files.write(path, BINARY)
    return "taken"


def a_note(path: str, text: str) -> Any:
    return tool_call("write_file", path=path, text=text)


@pytest.mark.covers("RS-AGENT-8")
async def test_files_written_before_a_question_are_there_after_it_and_are_returned(place: Place) -> None:
    world = World()
    model = Scripted(
        a_note("notes.txt", "calm"),
        tool_call("photograph", path="pier.png"),
        tool_call("pay", amount=1),
        tool_call("list_files"),
        tool_call("read_file", path="notes.txt"),
        "Done.",
    )
    tools = [*file_tools(), photograph, world.pays(approval=True)]
    flow = a_flow(model, *tools, uploads="given", files="made")
    given = {"chart.pdf": b"\xff\xfe", "readme.txt": "look here"}
    result = await flow.run({"prompt": "Go", "given": given}, on=await place.hf())
    assert result.status is RunStatus.pending_input
    hf = await place.hf()
    await (await hf.service()).answer(result.holds[0].id, "approve")
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    listed, notes = results(model.requests[-1])[-2:]
    assert listed.text == '["chart.pdf","notes.txt","pier.png","readme.txt"]'
    assert notes.text == "calm"
    # What the caller brought is not given back as if it were new.
    assert result.state["made"] == {"notes.txt": b"calm", "pier.png": BINARY}


@pytest.mark.covers("RS-AGENT-8")
async def test_uploads_are_in_no_record_of_the_agent(hf: Holdfast) -> None:
    model = Scripted(tool_call("list_files"), a_note("a.txt", "x"), "Done.")
    marker = b"upload-4711" * 3
    flow = a_flow(model, *file_tools(), uploads="given")
    result = await flow.run({"prompt": "Go", "given": {"big.bin": marker}}, on=hf)
    service = await hf.service()
    records = await service.store.read(result.run_id)
    assert marker in records[0].payload
    assert not any(marker in record.payload for record in records[1:])


@pytest.mark.covers("RS-AGENT-8")
async def test_files_stay_within_their_room(hf: Holdfast) -> None:
    from holdfast import Agent, Flow

    model = Scripted(a_note("a.txt", "x" * 60), a_note("b.txt", "y" * 60), a_note("a.txt", "z" * 10), "Done.")
    flow = Flow("small")
    flow.agent("bot", Agent("bot", model=model, tools=file_tools(), max_file_bytes=100), files="made")
    result = await flow.run({"prompt": "Go"}, on=hf)
    said = results(model.requests[-1])
    assert [message.failed for message in said] == [False, True, False]
    assert "40 bytes are left" in said[1].text
    assert result.state["made"] == {"a.txt": b"z" * 10}


@pytest.mark.covers("RS-AGENT-8")
async def test_tools_side_by_side_see_each_others_files_from_the_next_turn_on(hf: Holdfast) -> None:
    model = Scripted(
        [a_note("a.txt", "one"), a_note("a.txt", "two"), tool_call("list_files")],
        tool_call("read_file", path="a.txt"),
        tool_call("read_file", path="b.txt"),
        "Done.",
    )
    result = await a_flow(model, *file_tools(), files="made").run({"prompt": "Go"}, on=hf)
    said = [message.text for message in results(model.requests[-1])]
    # In the order of the calls, whichever was quicker.
    assert said[2:] == ["[]", "two", "Error: there is no file 'b.txt'; existing: a.txt"]
    assert result.state["made"] == {"a.txt": b"two"}


async def test_a_tool_that_fails_leaves_no_file_behind(hf: Holdfast) -> None:
    @tool(effect="pure")
    async def half(files: Files) -> None:
        """Writes and fails."""
        files.write("half.txt", "x")
        raise ValueError("no")

    @tool(effect="pure")
    async def clear(path: str, files: Files) -> str:
        """Deletes a file."""
        files.delete(path)
        return "gone" if path not in files else "still there"

    model = Scripted(
        a_note("a.txt", "x"),
        tool_call("half"),
        tool_call("clear", path="a.txt"),
        tool_call("list_files"),
        "Done.",
    )
    result = await a_flow(model, *file_tools(), half, clear, files="made").run({"prompt": "Go"}, on=hf)
    assert [message.text for message in results(model.requests[-1])][2:] == ["gone", "[]"]
    assert result.state["made"] == {}


SHELL = [
    tool_call("shell", command="echo one > a.txt && pwd"),
    tool_call("pay", amount=1),
    tool_call("shell", command="cat a.txt"),
]


def folders(root: Path) -> list[Path]:
    return sorted(root.iterdir()) if root.exists() else []


@pytest.mark.covers("RS-AGENT-8")
async def test_a_sandbox_is_found_again_by_the_process_that_goes_on(place: Place, tmp_path: Path) -> None:
    world = World()
    root = tmp_path / "sandboxes"
    model = Scripted(*SHELL, "Done.")

    def flow() -> Any:
        tools = [shell_tool(effect="read"), world.pays(approval=True)]
        return a_flow(model, *tools, sandbox=LocalSandbox(root))

    result = await flow().run({"prompt": "Go"}, on=await place.hf())
    (only,) = folders(root)
    hf = await place.hf()
    await (await hf.service()).answer(result.holds[0].id, "approve")
    result = await flow().resume(result.run_id, on=hf)
    assert result.completed
    assert folders(root) == [only]
    first, _, last = results(model.requests[-1])
    assert str(only) in first.text
    assert last.text == '{"exit":0,"output":"one\\n"}'


@pytest.mark.covers("RS-AGENT-8")
async def test_a_sandbox_that_no_tool_used_is_never_started(hf: Holdfast, tmp_path: Path) -> None:
    root = tmp_path / "sandboxes"
    model = Scripted(a_note("a.txt", "x"), "Done.")
    flow = a_flow(model, write_file, shell_tool(), sandbox=LocalSandbox(root))
    result = await flow.run({"prompt": "Go"}, on=hf)
    assert result.completed
    assert folders(root) == []


@pytest.mark.covers("RS-MORE-8", "RS-AGENT-8")
async def test_an_expired_sandbox_is_replaced_and_the_model_is_reported(place: Place, tmp_path: Path) -> None:
    world = World()
    root = tmp_path / "sandboxes"
    model = Scripted(*SHELL, tool_call("shell", command="echo two"), "Done.")
    flow = a_flow(model, shell_tool(effect="read"), world.pays(approval=True), sandbox=LocalSandbox(root))
    result = await flow.run({"prompt": "Go"}, on=await place.hf())
    (old,) = folders(root)
    shutil.rmtree(old)
    hf = await place.hf()
    await (await hf.service()).answer(result.holds[0].id, "approve")
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    (new,) = folders(root)
    assert new != old
    third, fourth = results(model.requests[-1])[2:]
    assert third.text.startswith("(The sandbox did not exist any more")
    assert '"exit":1' in third.text
    # Told once; from then on it is the new one.
    assert fourth.text == '{"exit":0,"output":"two\\n"}'


@pytest.mark.covers("RS-AGENT-8")
async def test_a_given_sandbox_wins_and_one_of_another_kind_is_not_mistaken_for_ours(
    place: Place, tmp_path: Path
) -> None:
    world = World()
    root = tmp_path / "sandboxes"

    class Other(LocalSandbox):
        kind = "other"

    async def last_output(sandbox: Any) -> str:
        model = Scripted(*SHELL, "Done.")
        tools = [shell_tool(effect="read"), world.pays(approval=True)]
        started = await a_flow(model, *tools, sandbox=LocalSandbox(root)).run(
            {"prompt": "Go"}, on=await place.hf()
        )
        hf = await place.hf()
        await (await hf.service()).answer(started.holds[0].id, "approve")
        result = await a_flow(model, *tools, sandbox=sandbox).resume(started.run_id, on=hf)
        assert result.completed
        return results(model.requests[-1])[-1].text

    mine = LocalSandbox(root)
    mine.id = await mine.start()
    (root / mine.id / "a.txt").write_text("mine")
    assert await last_output(mine) == '{"exit":0,"output":"mine"}'
    # An id of another kind means nothing here: a new one is started, and nothing was lost.
    said = await last_output(Other(root))
    assert '"exit":1' in said
    assert "gone" not in said


async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    sandbox = LocalSandbox(tmp_path)
    folder = await sandbox.connect(await sandbox.start())
    with pytest.raises(TimeoutError):
        await folder.run("sleep 60 & sleep 60", timeout=0.1)
    done = await folder.run("seq 1 100000")
    assert "characters left out" in done["output"]
    assert (await folder.run("exit 3"))["exit"] == 3
    for nobody in ("../x", "00000000-0000-4000-8000-000000000000"):
        with pytest.raises(SandboxGoneError):
            await sandbox.connect(nobody)


async def test_a_command_does_not_see_the_keys_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    sandbox = LocalSandbox(tmp_path, env={"LANG": "C"})
    folder = await sandbox.connect(await sandbox.start())
    seen = (await folder.run("env"))["output"]
    assert "sk-secret" not in seen
    assert "LANG=C" in seen


async def test_a_tool_that_wants_a_sandbox_is_reported_where_there_is_none(hf: Holdfast) -> None:
    model = Scripted(tool_call("shell", command="ls"), "Ok.")
    assert (await a_flow(model, shell_tool()).run({"prompt": "Go"}, on=hf)).completed
    assert results(model.requests[-1])[0].text == "Error: this agent has no sandbox"
