"""Row K: an agent of Pydantic AI with our durability, beside the framework's own integration with DBOS.

The overhead of an engine is the time of a model request with it, less that of the same request without one.
"""

from __future__ import annotations

import json
import subprocess

from bench.lines import Line
from bench.measure import Plan, line, ratios
from tools import partners, setup


def row_k(plan: Plan) -> list[Line]:
    why = partners.make(partners.DBOS)
    if why:
        return [Line(row="K", name="Pydantic AI, not measured", value=None, unit="", note=why)]
    done = subprocess.run(
        [str(partners.DBOS.python), "-m", "bench.peers.agents_peer", str(plan.rounds)],
        cwd=setup.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    added = {
        engine: [max(with_it - none, 1e-9) for with_it, none in zip(took, found["none"], strict=True)]
        for engine, took in found.items()
        if engine != "none"
    }
    said = "overhead of a model request"
    return [
        line("K", f"{said}, strict", ratios(added["strict"], added["dbos"]), "x DBOS", target="K-strict"),
        line("K", f"{said}, barrier", ratios(added["barrier"], added["dbos"]), "x DBOS", target="K-barrier"),
        line("K", f"{said}, strict", added["strict"], "us", scale=1e6),
        line("K", f"{said}, DBOS", added["dbos"], "us", scale=1e6),
    ]
