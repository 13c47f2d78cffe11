"""The demo as a newcomer sees it: at a terminal, and then again without one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path
from urllib.request import HTTPCookieProcessor, ProxyHandler, Request, build_opener

import pytest

from tests.deadlines import HANG

pytestmark = pytest.mark.xdist_group("demo")
COMMAND = [sys.executable, "-m", "holdfast.demo"]
MINUTE = 60
# Neither DISPLAY nor BROWSER: it must do without them.
BARE = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"}
NO_NETWORK = """
import socket
def within(real):
    def method(self, address):
        if self.family != socket.AF_UNIX and address[0] != "127.0.0.1":
            raise OSError(f"this demo may not use the network: {address}")
        return real(self, address)
    return method
socket.socket.bind = within(socket.socket.bind)
socket.socket.connect = within(socket.socket.connect)
"""


class Told:
    """What a demo printed, and how long it took."""

    def __init__(self, story: str, seconds: float, work: float = 0.0) -> None:
        self.story = re.sub(r"\x1b\[[0-9;]*m|\r(?=\n)", "", story)
        self.raw = story
        self.seconds = seconds
        self.work = work  # CPU seconds of all its processes

    @property
    def headings(self) -> list[str]:
        return re.findall(r"^(?:== )?(\d\. .*?)[ ─]*$", self.story, re.MULTILINE)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A demo at a terminal."""
    return at_a_terminal(tmp_path_factory.mktemp("terminal"), "perhaps\nr\n")


@pytest.fixture(scope="module")
def alone(answered: Told, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """The next one, with nobody there."""
    return without_a_terminal(tmp_path_factory.mktemp("demo"))


def without_a_terminal(folder: Path) -> Told:
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(NO_NETWORK)
    env = BARE | {"TMPDIR": str(folder), "PYTHONPATH": str(site)}
    began, before = time.monotonic(), os.times()
    done = subprocess.run(
        COMMAND, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert list(folder.iterdir()) == [site]
    after = os.times()
    work = after.children_user + after.children_system - before.children_user - before.children_system
    return Told(done.stdout, time.monotonic() - began, work)


def at_a_terminal(folder: Path, typed: str) -> Told:
    here, there = pty.openpty()
    env = BARE | {"TMPDIR": str(folder), "TERM": "xterm"}
    began = time.monotonic()
    # In a session of its own, whose terminal this is: Ctrl-C means all of it.
    child = subprocess.Popen(
        COMMAND, env=env, stdin=there, stdout=there, stderr=there, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(there)
    try:
        story = read_until(here, "approve or reject? ")
        time.sleep(2.5)
        assert child.poll() is None, "it did not wait for the person"
        os.write(here, typed.encode())
        story += read_until(here, "ends the server and the demo")
        assert child.poll() is None, "it did not leave the server to the person"
        story += looked_at(story)
        os.write(here, b"\x03")
        story += read_until(here, "")
        assert child.wait(HANG) == 0, story
    finally:
        child.kill()
        child.wait()
        os.close(here)
    return Told(story, time.monotonic() - began)


def looked_at(story: str) -> str:
    """The inbox behind the address that it printed, as a browser without scripts gets it."""
    (address,) = re.findall(r"http://127\.0\.0\.1:\d+/sign-in\?code=[\w-]+", story)
    web = build_opener(ProxyHandler({}), HTTPCookieProcessor())
    found = ""
    for each in (address, f"{address.partition('/sign-in')[0]}/plain/"):
        with web.open(Request(each, headers={"Accept": "text/html"}), timeout=MINUTE) as answer:
            found = answer.read().decode()
    return found


def read_until(terminal: int, words: str) -> str:
    """What the terminal shows until these words come, or until nobody writes to it any more."""
    seen = ""
    deadline = time.monotonic() + MINUTE
    while not words or words not in seen:
        assert time.monotonic() < deadline, seen
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other side is gone
            return seen
        seen += part.decode(errors="replace")
    return seen


@pytest.mark.covers("CORE-DEMO-01")
def test_demo_shows_a_retry_an_approval_and_both_arms_of_its_branch(alone: Told, answered: Told) -> None:
    assert "failed; will be retried" in alone.story
    assert "waiting for input" in alone.story
    assert "The run has completed; its receipt: R-A17." in alone.story
    assert "paid 250" in alone.story
    assert "paid 250" not in answered.story


@pytest.mark.covers("CORE-DEMO-02")
def test_demo_is_killed_and_nothing_settled_runs_again(alone: Told) -> None:
    story = alone.story
    assert re.search(r"kill -9 \d+", story)
    (again,) = re.findall(r"Handlers that ran now: (.*)\. Recorded steps did not run again", story)
    assert again == "read_letters"
    assert "Each effect happened exactly once" in story


@pytest.mark.covers("CORE-DEMO-03")
def test_demo_waits_at_the_terminal_until_it_is_answered(answered: Told) -> None:
    assert answered.story.count("approve or reject? ") == 2, "a wrong word is asked again"
    assert "The answer is 'reject'" in answered.story
    assert "by itself" not in answered.story
    assert "6. What was kept" in answered.story


@pytest.mark.covers("CORE-DEMO-04")
def test_demo_prints_the_command_and_answers_itself_when_nobody_is_there(alone: Told) -> None:
    assert re.search(r"holdfast answer [0-9a-f]{8} approve", alone.story)
    assert "answers by itself in two seconds" in alone.story
    assert alone.seconds > 2
    assert "\x1b" not in alone.raw


@pytest.mark.covers("CORE-DEMO-05")
def test_demo_needs_no_network_and_no_display(alone: Told) -> None:
    """It came to its end where every socket but those of loopback is refused, and no display is named."""
    assert len(alone.headings) == 7


@pytest.mark.covers("SERVER-PAGE-06")
def test_demo_ends_at_the_server_with_living_examples(alone: Told, answered: Told) -> None:
    story = alone.story
    shown = story.partition("7. The server and its web app")[2]
    assert "Book invoice R-2026-118 of Nordwerk GmbH?" in shown
    assert "The agent wants to run pay_back" in shown
    assert re.search(r"A worker was in the middle of the run \w{8}, and is killed too: kill -9 \d+", shown)
    for words in (
        "asks you to check a form", "an agent that wants to run a tool", "paused at a breakpoint",
        "sleeps for two weeks", "failed; it can be resumed", "the one that was killed and finished",
        "running; its worker was killed, the server's worker resumed it",
    ):  # fmt: skip
        assert words in shown
    assert "Open this in a browser" in answered.story
    assert "<h1>Waiting for you</h1>" in answered.story
    assert "The server is draining." in answered.story


@pytest.mark.covers("CORE-DEMO-06")
def test_demo_tells_the_same_when_it_is_run_twice(alone: Told, answered: Told) -> None:
    told = [each.replace("'reject'", "'approve'") for each in answered.headings]
    assert alone.headings == told
    runs = [re.findall(r"holdfast resume ([0-9a-f]{8})", told.story)[0] for told in (answered, alone)]
    assert runs[0] != runs[1]


@pytest.mark.covers("CORE-DEMO-07")
def test_demo_is_over_within_a_minute(alone: Told) -> None:
    """Its work and its waiting, which are the same on a busy machine: the person's two seconds, and the lease
    of the process that was killed."""
    waits = 2 + 10
    assert 0 < alone.work < MINUTE - waits
