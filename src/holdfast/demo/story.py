"""The demo, part by part. Each part uses the same commands as a user."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from holdfast.demo import server
from holdfast.demo.printout import Printout
from holdfast.types.ids import new_run_id

FLOW_INPUT = {"order": "A17", "customer": "c-9", "amount": 250}
PATIENCE = 20.0
CHOICES = ("approve", "reject")
MEANINGS = {
    "created": "the run is created with its input",
    "attempt": "another attempt starts",
    "intent": "an outside effect is about to happen",
    "step": "done; never runs again",
    "asked": "waiting for input",
    "end": "the run has ended",
}


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        return Demo(folder, Printout()).play()
    except KeyboardInterrupt:
        print("\nStopped.")
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Demo:
    def __init__(self, folder: Path, paper: Printout) -> None:
        self.folder = folder
        self.paper = paper
        self.run = new_run_id()
        self.short = self.run[:8]
        self.store = f"sqlite:{folder / 'demo.db'}"
        self.flow = str(Path(__file__).with_name("flow.py"))
        # A short lease, so that the demo does not wait long for the dead process.
        self.env = os.environ | {
            "HOLDFAST_DEMO": str(folder), "HOLDFAST_STORE": self.store, "HOLDFAST_LEASE": "2s"
        }  # fmt: skip

    def play(self) -> int:
        started = time.monotonic()
        self.starts()
        try:
            self.wait_for(lambda: "read_letters" in self.calls())
            time.sleep(0.7)
        finally:
            self.child.send_signal(signal.SIGKILL)
            self.child.communicate()
        self.dies()
        self.resumes()
        decision = self.asks()
        self.finishes(decision)
        self.keeps()
        took = time.monotonic() - started
        server.show(self.paper, self.flow, self.env, self.folder)
        self.paper.say(
            f"\nThe demo took {took:.0f} seconds. Its folder {self.folder} was deleted.",
            "dim",
        )
        return 0

    # ------------------------------------------------------------------ the acts
    def starts(self) -> None:
        self.paper.title("1. A refund starts in a separate process")
        self.paper.say(
            "check_order fails once and is retried; reserve moves money at the bank; read_letters takes long."
        )
        self.paper.typed(f"holdfast run demo/flow.py --input '{json.dumps(FLOW_INPUT)}'")
        self.child = self.spawn("run", self.flow, "--input", json.dumps(FLOW_INPUT), "--run-id", self.run)

    def dies(self) -> None:
        self.paper.title("2. The process is killed in the middle")
        self.paper.say(f"  kill -9 {self.child.pid}     no warning, no clean-up", "bold red")
        self.paper.say("The journal on disk has these records:")
        self.journal()

    def resumes(self) -> None:
        self.paper.title("3. Another process resumes the run")
        self.paper.typed(f"holdfast resume {self.short}")
        self.paper.say(
            "It waits until the dead process's lease has expired (two seconds here), then loads the journal.",
            "dim",
        )
        before = self.calls()
        self.command("resume", self.run, self.flow, "--json", expect=3)
        again = [name for name in self.calls() if self.calls()[name] > before[name]]
        self.paper.say(f"Handlers that ran now: {', '.join(again)}. Recorded steps did not run again.")

    def asks(self) -> str:
        self.paper.title("4. A person is asked, and no process has to wait")
        hold = self.shown()["holds"][0]
        self.paper.framed(hold["prompt"], "approve or reject")
        if sys.stdin.isatty():
            return self.ask_here()
        self.paper.say("A person would type:")
        self.paper.typed(f"holdfast answer {self.short} approve")
        self.paper.say("There is no terminal here: the demo answers by itself in two seconds.")
        time.sleep(2)
        self.command("answer", self.run, "approve", "--by", "user:demo")
        return "approve"

    def ask_here(self) -> str:
        """Here, or by the command in another terminal: the first answer counts."""
        has_inbox = find_spec("textual") is not None
        self.paper.say(f"Answer here, or in another terminal, by a command{' or in the inbox' * has_inbox}:")
        self.paper.typed(f"holdfast answer {self.short} approve --store {self.store}")
        if has_inbox:
            self.paper.typed(f"holdfast inbox --store {self.store}")
        while True:
            print("approve or reject? ", end="", flush=True)
            typed = self.typed_or_decided()
            if typed is None:
                decided = self.shown()["holds"][0]["resolution"]["decision"]
                self.paper.say(f"\nAnswered elsewhere: {decided}.")
                return decided
            found = [choice for choice in CHOICES if typed and choice.startswith(typed)]
            if found:
                self.command("answer", self.run, found[0], "--by", "user:you")
                return found[0]

    def typed_or_decided(self) -> str | None:
        while True:
            if select.select([sys.stdin], [], [], 1.0)[0]:
                line = sys.stdin.readline()
                if not line:
                    raise KeyboardInterrupt
                return line.strip().lower()
            if self.shown()["holds"][0]["status"] != "pending":
                return None

    def finishes(self, decision: str) -> None:
        self.paper.title(f"5. The answer is {decision!r}: a third process finishes")
        self.paper.typed(f"holdfast resume {self.short}")
        result = self.command("resume", self.run, self.flow, "--json")
        self.paper.say(
            f"The run has {result['status']}; its receipt: {result['state']['receipt']}.", "bold green"
        )
        self.journal()

    def keeps(self) -> None:
        self.paper.title("6. What was kept")
        calls = self.calls()
        self.paper.table(
            ("node", "effect", "entered", "why"),
            [
                ("check_order", "read", str(calls["check_order"]), "failed once, retried by its policy"),
                ("reserve", "external", str(calls["reserve"]), "recorded before the kill, never run again"),
                (
                    "read_letters",
                    "read",
                    str(calls["read_letters"]),
                    "was running when killed, safe to repeat",
                ),
                *[(n, "external", str(calls[n]), "after the answer") for n in ("pay", "release") if calls[n]],
            ],
        )
        ledger = (self.folder / "bank.log").read_text().splitlines()
        self.paper.say("The bank's ledger, which Holdfast does not write:")
        for line in ledger:
            self.paper.say(f"  {line}")
        if len(ledger) != len(set(ledger)) or len(ledger) != 2:
            raise SystemExit("The ledger should have two different lines. This is a bug: please report it.")
        self.paper.say(
            "Each effect happened exactly once, through one kill -9 and three processes.", "bold green"
        )

    # ------------------------------------------------------------------ tools
    def spawn(self, *args: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "holdfast", *args]
        return subprocess.Popen(
            command,
            env=self.env,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def command(self, *args: str, expect: int = 0) -> Any:
        child = self.spawn(*args)
        out, err = child.communicate(timeout=PATIENCE)
        if child.returncode != expect:
            raise SystemExit(f"holdfast {' '.join(args)} ended with {child.returncode}:\n{out}{err}")
        return json.loads(out) if "--json" in args else out

    def wait_for(self, met: Any) -> None:
        deadline = time.monotonic() + PATIENCE
        while not met():
            if self.child.poll() is not None or time.monotonic() > deadline:
                self.child.kill()
                raise SystemExit(f"The run did not reach the expected state:\n{self.child.communicate()}")
            time.sleep(0.05)

    def calls(self) -> Counter[str]:
        log = self.folder / "calls.log"
        return Counter(log.read_text().split() if log.exists() else [])

    def shown(self) -> Any:
        return self.command("show", self.run, "--json")

    def journal(self) -> None:
        rows = [
            (str(r["seq"]), r["kind"], r["node"], r["outcome"], _meaning(r)) for r in self.shown()["records"]
        ]
        self.paper.table(("seq", "record", "node", "outcome", "meaning"), rows)


def _meaning(record: dict[str, Any]) -> str:
    return "failed; will be retried" if record["outcome"] == "retry" else MEANINGS.get(record["kind"], "")
