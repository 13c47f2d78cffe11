"""Row I: what it takes to start."""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys

from bench.lines import Line
from bench.measure import Plan, aimed, line


def row_i(plan: Plan) -> list[Line]:
    lines = [
        _line(plan, "an empty interpreter, CPU", "pass"),
        _line(plan, "import holdfast, CPU", "import holdfast", "I-import"),
        # Names may be loaded on first use: this is what a program that has a flow pays.
        _line(
            plan, "from holdfast import Flow, Holdfast, CPU", "from holdfast import Flow, Holdfast", "I-names"
        ),
    ]
    name = "holdfast --help, CPU"
    if importlib.util.find_spec("holdfast.cli.main") is None:
        return [*lines, aimed("I", name, None, "ms", "I-cli")]
    program = "import sys; from holdfast.cli.main import main; sys.argv = ['holdfast', '--help']; main()"
    return [*lines, _line(plan, name, program, "I-cli")]


def _line(plan: Plan, name: str, program: str, target: str = "") -> Line:
    return line("I", name, cpu_of("-c", program, times=plan.some), "ms", scale=1e3, target=target)


def cpu_of(*arguments: str, times: int) -> list[float]:
    """CPU seconds of the interpreter with these arguments; the first start fills caches and is left out."""
    found: list[float] = []
    for _ in range(times + 1):
        before = _children()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        found.append(_children() - before)
    return found[1:]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
