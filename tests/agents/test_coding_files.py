"""The file tools of a coding agent, used by a model that means no good."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast import ToolError
from holdfast.agents.coding import project_folder
from tests.agents.coding import made, planned, tool_named, tree, use
from tests.deadlines import HANG

OUTSIDE = "secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a neighbour that no tool may reach."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret.txt").write_text(OUTSIDE)
    made_here = tmp_path / "project"
    (made_here / ".git").mkdir(parents=True)
    (made_here / ".git/config").write_text("[core]\n")
    (made_here / "src").mkdir()
    (made_here / "src/main.py").write_text("one\ntwo\nthree\n")
    (made_here / "out").symlink_to(tmp_path / "outside")
    (made_here / "gitlink").symlink_to(".git")
    (made_here / "loop").symlink_to("loop")
    (made_here / "inner").symlink_to("src")
    return made_here


ESCAPES = [
    "../outside/secret.txt",
    "src/../../outside/secret.txt",
    "out/secret.txt",
    "inner/../../outside/secret.txt",
    "loop",
    "/etc/passwd",
    "src/main.py\0",
    "",
]


def writes(path: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("write_file", {"file_path": path, "content": "x"}),
        ("edit_file", {"file_path": path, "old_string": "e", "new_string": "x"}),
        ("apply_patch", {"patch": f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"}),
        ("apply_patch", {"patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"}),
        (
            "apply_patch",
            {
                "patch": f"*** Begin Patch\n*** Update File: src/main.py\n*** Move to: {path}\n@@\n-one\n+1\n"
                "*** End Patch"
            },
        ),
    ]


@pytest.mark.covers("CP2-A4")
@pytest.mark.parametrize("path", ESCAPES)
def test_no_tool_leaves_the_working_folder(root: Path, path: str) -> None:
    before = tree(root.parent)
    for name, given in [("read_file", {"file_path": path}), *writes(path)]:
        with pytest.raises(ToolError):
            use(root, name, **given)
    if path:
        for name, given in [("grep", {"pattern": "secret", "path": path}), ("list_dir", {"path": path})]:
            with pytest.raises(ToolError):
                use(root, name, **given)
        with pytest.raises(ToolError):
            use(root, "glob", pattern="*", path=path)
    assert tree(root.parent) == before


@pytest.mark.covers("CP2-A4")
@pytest.mark.parametrize(
    "path",
    [".git/config", ".GIT/config", ".git/hooks/pre-commit", "gitlink/config", "src/../.git/x", ".git. /x"],
)
def test_git_is_only_read(root: Path, path: str) -> None:
    before = tree(root)
    for name, given in writes(path):
        with pytest.raises(ToolError, match="git"):
            use(root, name, **given)
    assert tree(root) == before
    assert "[core]" in use(root, "read_file", file_path=".git/config")


@pytest.mark.covers("CP2-A4")
@pytest.mark.parametrize("as_link", [True, False])
def test_the_folder_that_git_keeps_elsewhere_in_the_project_is_only_read(
    tmp_path: Path, as_link: bool
) -> None:
    (tmp_path / "store").mkdir()
    if as_link:
        (tmp_path / ".git").symlink_to("store")
    else:
        (tmp_path / ".git").write_text("gitdir: ./store\n")
    for name, given in writes("store/config")[:1] + writes("store/config")[2:3]:
        with pytest.raises(ToolError, match="git"):
            use(tmp_path, name, **given)


@pytest.mark.covers("CP2-A4")
def test_a_link_that_replaces_a_folder_between_check_and_write_leads_nowhere(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tool_named(root, "write_file")
    whole, prepared = planned(tool, file_path="src/new/secret.txt", content="x")
    opened = project_folder._inner_folder

    def swap(above: int, part: str, *, create: bool) -> int:
        if part == "new" and not (root / "src/new").is_symlink():
            (root / "src/new").symlink_to(root.parent / "outside")
        return opened(above, part, create=create)

    monkeypatch.setattr(project_folder, "_inner_folder", swap)
    with pytest.raises(ToolError, match="link"):
        made(tool, whole, prepared)
    assert (root.parent / "outside/secret.txt").read_text() == OUTSIDE


def test_a_named_pipe_is_not_read(root: Path) -> None:
    os.mkfifo(root / "pipe")
    found: list[str] = []

    def read() -> None:
        with pytest.raises(ToolError, match="not a regular file") as raised:
            use(root, "read_file", file_path="pipe")
        found.append(str(raised.value))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(HANG)
    assert found


@pytest.mark.covers("CP2-A4")
def test_an_edit_needs_one_match_or_replace_all(root: Path) -> None:
    (root / "a.txt").write_text("x y x\n")
    with pytest.raises(ToolError, match="2 times"):
        use(root, "edit_file", file_path="a.txt", old_string="x", new_string="z")
    with pytest.raises(ToolError, match="is not in"):
        use(root, "edit_file", file_path="a.txt", old_string="q", new_string="z")
    with pytest.raises(ToolError, match="empty"):
        use(root, "edit_file", file_path="a.txt", old_string="", new_string="z")
    with pytest.raises(ToolError, match="the same"):
        use(root, "edit_file", file_path="a.txt", old_string="x", new_string="x")
    assert (root / "a.txt").read_text() == "x y x\n"
    said = use(root, "edit_file", file_path="a.txt", old_string="x", new_string="z", replace_all=True)
    assert said == "a.txt: replaced 2 times"
    assert use(root, "edit_file", file_path="a.txt", old_string="y", new_string="w").endswith("1 time")
    assert (root / "a.txt").read_text() == "z w z\n"


@pytest.mark.covers("CP2-A4")
def test_an_edit_keeps_line_ends_permissions_and_bytes_that_are_no_text(root: Path) -> None:
    file = root / "run.sh"
    file.write_bytes(b"one\r\n\xff\xfe two\r\nthree\r\n")
    file.chmod(0o751)
    use(root, "edit_file", file_path="run.sh", old_string="two\nthree", new_string="2\n3")
    assert file.read_bytes() == b"one\r\n\xff\xfe 2\r\n3\r\n"
    assert file.stat().st_mode & 0o777 == 0o751
    patch = "*** Begin Patch\n*** Update File: run.sh\n@@\n-one\n+1\n+1b\n*** End Patch"
    use(root, "apply_patch", patch=patch)
    assert file.read_bytes() == b"1\r\n1b\r\n\xff\xfe 2\r\n3\r\n"
    assert file.stat().st_mode & 0o777 == 0o751


def test_binary_and_huge_files_are_not_edited(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "a.bin").write_bytes(b"a\0b")
    for name, given in writes("a.bin")[1:2]:
        with pytest.raises(ToolError, match="binary"):
            use(root, name, **given)
    with pytest.raises(ToolError, match="binary"):
        use(root, "read_file", file_path="a.bin")
    with (root / "huge.txt").open("wb") as file:
        file.truncate(project_folder.MAX_EDITED + 1)
    with pytest.raises(ToolError, match="more than"):
        use(root, "edit_file", file_path="huge.txt", old_string="e", new_string="x")


def test_what_is_written_through_an_inner_link_is_the_file_behind_it(root: Path) -> None:
    use(root, "write_file", file_path="inner/main.py", content="new\n")
    assert (root / "src/main.py").read_text() == "new\n"
    assert (root / "inner").is_symlink()
    (root / "alias.py").symlink_to("src/main.py")
    with pytest.raises(ToolError, match="is a link"):
        use(root, "apply_patch", patch="*** Begin Patch\n*** Delete File: alias.py\n*** End Patch")
    use(root, "write_file", file_path=str(root / "deep/er/a.txt"), content="abs")
    assert (root / "deep/er/a.txt").read_text() == "abs"


def patch_of(*sections: str) -> str:
    return "\n".join(["*** Begin Patch", *sections, "*** End Patch"])


@pytest.mark.covers("CP2-A4")
@pytest.mark.parametrize(
    ("last", "why"),
    [
        ("*** Update File: src/main.py\n@@\n-nowhere\n+x", "not in src/main.py"),
        ("*** Update File: src/main.py\n@@ def nothing\n-one\n+x", "has no line"),
        ("*** Update File: missing.py\n@@\n-one\n+x", "there is no file"),
        ("*** Delete File: missing.py", "there is no file"),
        ("*** Delete File: src", "folder"),
        ("*** Add File: src", "folder"),
        ("*** Add File: src/main.py/x.py\n+x", "not a folder"),
        ("*** Add File: added.txt\n+again", "twice"),
        ("*** Add File: added.txt/inner\n+x", "cannot be a file and the folder"),
        ("*** Update File: src/main.py\n*** Move to: added.txt\n@@\n-one\n+x", "twice"),
        ("*** Update File: src/main.py", "no hunk"),
        ("*** Update File: src/main.py\n@@", "no lines"),
        ("*** Rename File: src/main.py", "not valid"),
        ("*** Add File:", "names no file"),
        ("*** Add File: b.txt\n-x", "not valid"),
    ],
)
def test_a_patch_with_one_fault_writes_nothing(root: Path, last: str, why: str) -> None:
    before = tree(root)
    with pytest.raises(ToolError, match=why):
        use(root, "apply_patch", patch=patch_of("*** Add File: added.txt\n+x", last))
    assert tree(root) == before


@pytest.mark.parametrize(
    "text", ["", "hello", "*** Begin Patch", "*** Begin Patch\n*** End Patch", "\0" * 10]
)
def test_what_is_no_patch_is_an_error(root: Path, text: str) -> None:
    with pytest.raises(ToolError):
        use(root, "apply_patch", patch=text)


@pytest.mark.covers("CP2-A4")
def test_a_patch_adds_deletes_moves_and_updates_twice(root: Path) -> None:
    (root / "gone.txt").write_text("gone\n")
    (root / "taken.txt").write_text("taken\n")
    (root / "quoted.txt").write_text("say \u201chi\u201d   \nend\n")
    said = use(
        root,
        "apply_patch",
        patch=patch_of(
            "*** Add File: new/deep.txt\n+a\n+",
            "*** Delete File: gone.txt",
            "*** Update File: src/main.py\n*** Move to: taken.txt\n@@ one\n-two\n+TWO",
            '*** Update File: quoted.txt\n@@\n-say "hi"\n+said\n',
            "*** Update File: quoted.txt\n@@\n end\n+more\n*** End of File",
        ),
    )
    assert said.splitlines() == [
        "add new/deep.txt",
        "delete gone.txt",
        "update src/main.py -> taken.txt",
        "update quoted.txt",
        "update quoted.txt",
    ]
    found = tree(root)
    assert found["new/deep.txt"] == b"a\n\n"
    assert found["taken.txt"] == b"one\nTWO\nthree\n"
    assert found["quoted.txt"] == b"said\nend\nmore\n"
    assert not {"gone.txt", "src/main.py"} & set(found)


def test_a_disk_that_is_full_leaves_every_file_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(root)
    written: list[int] = []

    def full(fd: int) -> None:
        written.append(fd)
        if len(written) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="No space left"):
        use(root, "apply_patch", patch=patch_of("*** Add File: a.txt\n+x", "*** Add File: b.txt\n+x"))
    assert tree(root) == before


# ---------------------------------------------------------------------- after a crash
@pytest.mark.covers("CP2-A5")
def test_a_patch_that_was_cut_off_is_completed_and_what_is_done_is_left_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "b.txt").write_text("b\n")
    tool = tool_named(root, "apply_patch")
    whole, prepared = planned(
        tool,
        patch=patch_of(
            "*** Update File: b.txt\n@@\n b\n+b",
            "*** Update File: src/main.py\n*** Move to: moved.py\n@@\n-one\n+1",
            "*** Add File: c.txt\n+c",
        ),
    )
    done: list[str] = []
    for boundary in range(4):
        _crash_after(monkeypatch, boundary, done)
        with pytest.raises(SystemExit):
            made(tool, whole, prepared)
        monkeypatch.undo()
    assert made(tool, whole, prepared).count("\n") == 2
    found = tree(root)
    assert found["b.txt"] == b"b\nb\n"
    assert found["moved.py"] == b"1\ntwo\nthree\n"
    assert found["c.txt"] == b"c\n"
    assert "src/main.py" not in found
    assert not [name for name in found if ".holdfast-" in name]
    # Each change was made once, although the call was made five times.
    assert sorted(done) == ["b.txt", "c.txt", "moved.py"]


def _crash_after(monkeypatch: pytest.MonkeyPatch, changes: int, done: list[str]) -> None:
    """The process ends in place of the next change."""
    publish, remove = project_folder.ProjectFolder.publish, project_folder.ProjectFolder.remove

    def end_or(work: Any) -> Any:
        def change(self: Any, place: Any, *more: Any) -> None:
            if len(done) >= changes:
                raise SystemExit
            done.append("/".join(place))
            work(self, place, *more)

        return change

    monkeypatch.setattr(project_folder.ProjectFolder, "publish", end_or(publish))
    monkeypatch.setattr(project_folder.ProjectFolder, "remove", end_or(remove))


@pytest.mark.covers("CP2-A5")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("write_file", {"file_path": "src/main.py", "content": "new\n"}),
        ("edit_file", {"file_path": "src/main.py", "old_string": "one", "new_string": "one one"}),
        ("apply_patch", {"patch": patch_of("*** Update File: src/main.py\n@@\n one\n+one")}),
    ],
)
def test_an_interrupted_edit_of_a_file_that_something_else_changed_is_an_error(
    root: Path, name: str, given: dict[str, Any]
) -> None:
    tool = tool_named(root, name)
    whole, prepared = planned(tool, **given)
    made(tool, whole, prepared)
    after = (root / "src/main.py").read_text()
    # Again, as after a crash: nothing is changed twice.
    made(tool, whole, prepared)
    assert (root / "src/main.py").read_text() == after
    (root / "src/main.py").write_text("one\nsomebody else\n")
    with pytest.raises(ToolError, match="something else"):
        made(tool, whole, prepared)
    assert (root / "src/main.py").read_text() == "one\nsomebody else\n"
