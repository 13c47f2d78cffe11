"""The proxy as a process of its own, and the words by which it is told what to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from tests.proxy.proxy import Proxy
from tests.proxy.wire import Counts, Way, by_way_of

ROOT = Path(__file__).resolve().parents[2]


class ProxyProcess:
    """The same as a process of its own, told by words: `tell("delay", 0.2, 0.1)`, `tell("cut")`.

    The commands: pass, delay SECONDS [JITTER], swallow [up|down], cut, cut-after BYTES [up|down], refuse,
    target HOST:PORT, counts. Each answers with the counts at that moment.
    """

    def __init__(self, target: str, *, listen: str = "127.0.0.1:0") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.proxy", listen, target],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self._line()

    def between(self, url: str) -> str:
        """The same URL, by way of this proxy."""
        return by_way_of(url, self.address)

    def tell(self, *words: object) -> Counts:
        """One command; done when this returns. Raises ValueError for one that means nothing."""
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(" ".join(map(str, words)) + "\n")
        pipe.flush()
        said = self._line()
        if not said.startswith("{"):
            raise ValueError(said)
        return msgspec.json.decode(said, type=Counts)

    def close(self) -> None:
        """End the process, and with it every connection."""
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> ProxyProcess:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _line(self) -> str:
        pipe = self._process.stdout
        assert pipe is not None
        said = pipe.readline().strip()
        if not said:
            raise ConnectionError("the proxy ended")
        return said


def execute_command(proxy: Proxy, line: str) -> str:
    """Do what one line of the control channel says; its answer."""
    word, *args = line.split() or [""]
    try:
        _COMMANDS[word](proxy, args)
    except KeyError:
        return f"no such command {word!r}; there are: {', '.join(_COMMANDS)}"
    except (ValueError, IndexError) as error:
        return f"{line.strip()!r} cannot be done: {error}"
    return msgspec.json.encode(proxy.counts).decode()


def _way(words: list[str]) -> Way | None:
    if not words:
        return None
    if words[0] not in ("up", "down"):
        raise ValueError("a way is up or down")
    return "up" if words[0] == "up" else "down"


_COMMANDS: Final[dict[str, Callable[[Proxy, list[str]], object]]] = {
    "pass": lambda proxy, _: proxy.clear(),
    "delay": lambda proxy, args: proxy.delay(float(args[0]), jitter=float(args[1]) if args[1:] else 0.0),
    "swallow": lambda proxy, args: proxy.swallow(_way(args)),
    "cut": lambda proxy, _: proxy.cut(),
    "cut-after": lambda proxy, args: proxy.cut_after(int(args[0]), _way(args[1:]) or "up"),
    "refuse": lambda proxy, _: proxy.refuse(),
    "target": lambda proxy, args: proxy.switch(args[0]),
    "counts": lambda _proxy, _: None,
}
